"""Whether the program of a crash campaign knows the arguments that its pool is to be checked with."""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from pathlib import Path

from durasim.crash_request import CrashOptions
from durasim.errors import DurasimError, refusal
from durasim.scenario import Scenario
from durasim.simulation import run_request

_CHECK_INSTRUCTIONS_MAX = 2_000_000_000
"""A check that needs more is left to the campaign, which refuses it."""

_EXIT_USAGE = 2
"""With this a program says that it does not understand its arguments, as guest/include/durasim/error.h and most do."""


def refuse_unknown_check(scenario: Scenario, chosen: CrashOptions) -> None:
    """Refuses a check that ends as a wrong usage where power has never failed: it would object to every recovery.

    Runs the program and then its check without caches and time, on a pool that is thrown away. All that is written
    survives there, whatever the design. A run that fails so is left to the campaign. Replays are not looked at.

    Raises:
        ConfigError: The program does not understand the arguments of its check.
    """
    if scenario.elf is None or chosen.check_args is None or chosen.replay is not None:
        return
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder:
        pool = str(Path(folder) / "pool")
        plain = dataclasses.replace(scenario, functional=True, pool=pool)
        code, _ = _ending(plain)
        if code != 0:
            return
        check = dataclasses.replace(plain, args=chosen.check_args, max_instructions=_CHECK_INSTRUCTIONS_MAX)
        code, said = _ending(check)
    if code == _EXIT_USAGE:
        given = shlex.join(chosen.check_args)
        sentence = f"after a run without a power failure, '{given}' ends with exit code {code}, that of a wrong usage"
        raise refusal("check", f"{sentence}{f': {said}' if said else ''}")


def _ending(scenario: Scenario) -> tuple[int | None, str]:
    """Gives the exit code of a program and its last line; no exit code if the run fails otherwise."""
    written = bytearray()
    try:
        result = run_request(scenario.request(), lambda _stream, data: written.extend(data))
    except DurasimError:
        return None, ""
    lines = written.decode(errors="replace").splitlines()
    return result.guest_exit_code, lines[-1].strip() if lines else ""
