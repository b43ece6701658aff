"""The errors of durasim: each is one sentence, and `exit_code` is the exit code of the command line.

| exception | exit code | meaning |
| --- | --- | --- |
| `ConfigError` | 2 | a configuration, program or argument refused before cycle 0 |
| `GuestFault` | 3 | the guest program was stopped: unknown instruction or system call, wild access |
| `StuckError` | 3 | the modelled machine cannot go on |
| `InternalError` | 3 | an assertion of durasim itself failed |
| `HostIoError` | 4 | a file of the host could not be read or written, or a process of it was killed |
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

from durasim._core import ConfigError, DurasimError, GuestFault, HostIoError, InternalError, StuckError

__all__ = ["ConfigError", "DurasimError", "GuestFault", "HostIoError", "InternalError", "StuckError"]


def refusal(field: str, problem: str) -> ConfigError:
    """Gives the error that refuses `field` because of `problem`, for the caller to raise."""
    error = ConfigError(f"{field}: {problem}")
    error.field = field
    error.problem = problem
    return error


def unknown_name(field: str, name: str, allowed: Iterable[str]) -> ConfigError:
    """Gives the error for a name that is not among `allowed`; it names them all and the closest one."""
    names = sorted(allowed)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return refusal(field, f"unknown name '{name}' ({hint}allowed: {', '.join(names) or 'none'})")


def host_io(path: str | os.PathLike[str], error: OSError) -> HostIoError:
    """Gives the error for a host file that could not be read or written."""
    failure = HostIoError(f"{os.fspath(path)}: {error.strerror or error}")
    failure.path = os.fspath(path)
    return failure
