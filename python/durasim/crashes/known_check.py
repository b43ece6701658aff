"""Tests that the program of a crash campaign understands the arguments of its check."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from durasim.crashes.crash_request import PreparedCrash
from durasim.errors import DurasimError, refusal
from durasim.runs.simulation import run_request

_CHECK_INSTRUCTIONS_MAX = 2_000_000_000
"""Instruction limit of the test; the campaign itself refuses a longer check."""

_EXIT_USAGE = 2
"""Exit code for wrong arguments, as in guest/include/durasim/error.h and in most programs."""


def refuse_unknown_check(prepared: PreparedCrash) -> None:
    """Refuses a check that reports wrong usage without a crash: it would fail after every recovery.

    Runs the program and then its check functionally, without caches and time, on a temporary pool. There all writes
    persist under every design. If the program itself fails, the campaign reports it. Replays are not tested.

    Raises:
        ConfigError: The program rejects the arguments of its check.
    """
    check_args = prepared.options.check_args
    if check_args is None or prepared.options.replay is not None:
        return
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder:
        pool = str(Path(folder) / "pool")
        plain = {**prepared.run, "functional": True, "pool": pool}
        code, _ = _ending(plain)
        if code != 0:
            return
        check = {"args": list(check_args), "max_instructions": _CHECK_INSTRUCTIONS_MAX}
        code, said = _ending(plain | check)
    if code == _EXIT_USAGE:
        given = shlex.join(check_args)
        sentence = f"after a run without a power failure, '{given}' exits with code {code}, which means wrong usage"
        raise refusal("check", f"{sentence}{f': {said}' if said else ''}")


def _ending(request: Mapping[str, Any]) -> tuple[int | None, str]:
    """Returns the exit code and the last line of a program; no exit code if the simulation fails."""
    written = bytearray()
    try:
        result = run_request(request, lambda _stream, data: written.extend(data))
    except DurasimError:
        return None, ""
    lines = written.decode(errors="replace").splitlines()
    return result.guest_exit_code, lines[-1].strip() if lines else ""
