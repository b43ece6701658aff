"""The errors of durasim: each is one sentence; `exit_code` is the exit code of the command line.

| exception | exit code | meaning |
| --- | --- | --- |
| `ConfigError` | 2 | a configuration, program or argument was refused before cycle 0 |
| `GuestFault` | 3 | the guest program was stopped: unknown instruction, wild access, unsupported request |
| `StuckError` | 3 | the modelled machine cannot continue |
| `InternalError` | 3 | an assertion of durasim itself failed |
| `ToolchainError` | 2 | a guest program could not be built (4 if a host file was the reason) |
| `HostIoError` | 4 | a host file could not be read or written, or a host process was killed |
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

from durasim._core import ConfigError, DurasimError, GuestFault, HostIoError, InternalError, StuckError

__all__ = ["ConfigError", "DurasimError", "GuestFault", "HostIoError", "InternalError", "StuckError", "ToolchainError"]


class ToolchainError(Exception):
    """A guest program could not be built. The text is one sentence; ``output`` is the output of the compiler."""

    def __init__(self, sentence: str, output: str = "") -> None:
        super().__init__(f"{sentence}\n{output.rstrip()}" if output else sentence)
        self.sentence = sentence
        self.output = output


def refusal(field: str, problem: str) -> ConfigError:
    """Returns the error that refuses `field` because of `problem`, for the caller to raise."""
    error = ConfigError(f"{field}: {problem}")
    error.field = field
    error.problem = problem
    return error


# Largest number of names that fit into one sentence.
_NAMES_SHOWN = 40


def unknown_name(field: str, name: str, allowed: Iterable[str], listed_by: str = "") -> ConfigError:
    """Returns the error for a name that is not in `allowed`; it lists the closest name and all allowed names.

    If there are too many, it gives the command `listed_by` instead.
    """
    names = sorted(allowed)
    is_short = not listed_by or len(names) <= _NAMES_SHOWN
    close = difflib.get_close_matches(name, names, n=1 if is_short else 4)
    meant = " or ".join(f"'{each}'" for each in close)
    hint = f"did you mean {meant}? " if close else ""
    those = f"allowed: {', '.join(names) or 'none'}" if is_short else f"`{listed_by}` lists all {len(names)}"
    return refusal(field, f"unknown name '{name}' ({hint}{those})")


def host_io(path: str | os.PathLike[str], error: OSError) -> HostIoError:
    """Returns the error for a host file that could not be read or written."""
    failure = HostIoError(f"{os.fspath(path)}: {error.strerror or error}")
    failure.path = os.fspath(path)
    return failure
