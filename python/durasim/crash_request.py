"""Crash campaigns: the request for the compiled half, and what is added to its answer."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from durasim.errors import refusal
from durasim.results import CrashResult
from durasim.scenario import DEFAULT_MACHINE, DEFAULT_SEED, Scenario, ScenarioArguments, workload_info

Points = int | Literal["all"]
"""How many persist events to crash at, spread over the run, or all of them."""
DEFAULT_POINTS = 300
DEFAULT_OPS = 200
"""Fewer than in a run: every crash costs a recovery and a check."""
FAULTS = ("clean", "torn", "reorder", "energy", "nested", "background", "recrash")
"""What can go wrong when the power fails; each is explained in docs/crash.md."""
DEFAULT_FAULTS = ("clean", "nested")
"""Of a workload. Of a program of `elf` all are: nobody knows which of them it withstands."""
DEFAULT_VARIANTS = 2
NUMBER_MAX = 1024
"""Of variants and of workers."""
RECOVERY_LIMIT_MAX = 10**15
"""Instructions."""
OPS_AFTER_A_CRASH = 8
"""Operations of the life between two crashes, at most."""


@dataclasses.dataclass(frozen=True, slots=True)
class CrashOptions:
    """What a campaign tries at the run of a scenario.

    Attributes:
        points: How many persist events to crash at, or "all".
        faults: What goes wrong there, of `FAULTS`; a clean power failure always does. If None, `DEFAULT_FAULTS` for a
            workload and all for a program of `elf`.
        variants: Draws at each point of a fault that can end in many ways; all, if there are no more.
        replay: The id of a failure: tries that alone.
        workers: Threads of this computer that judge; all its cores if None.
        check_args: Arguments with which a program of `elf` recovers and checks its pool.
        again_args: Arguments with which it works on between two crashes; those of its run if None.
        recovery_limit: Instructions that recovery, check and work between two crashes may each take in a trial;
            20 times as many as without a crash, at least 10 million, if None.
    """

    points: Points = DEFAULT_POINTS
    faults: tuple[str, ...] | None = None
    variants: int = DEFAULT_VARIANTS
    replay: str | None = None
    workers: int | None = None
    check_args: tuple[str, ...] | None = None
    again_args: tuple[str, ...] | None = None
    recovery_limit: int | None = None

    def check(self) -> None:
        """Refuses values that are not allowed.

        Raises:
            ConfigError: A number is out of range or a fault unknown.
        """
        points_of(str(self.points))
        for fault in self.faults or ():
            if fault not in FAULTS:
                raise refusal("fault", f"'{fault}' is none of {', '.join(FAULTS)}")
        for name, value in (("variants", self.variants), ("workers", self.workers)):
            if value is not None and not 1 <= value <= NUMBER_MAX:
                raise refusal(name, f"{value} is not between 1 and {NUMBER_MAX}")
        if self.recovery_limit is not None and not 1 <= self.recovery_limit <= RECOVERY_LIMIT_MAX:
            problem = f"{self.recovery_limit} is not between 1 and {RECOVERY_LIMIT_MAX} instructions"
            raise refusal("recovery-limit", problem)


class CrashArguments(ScenarioArguments, total=False):
    """The fields of a scenario and of what is tried at it, as arguments of the Python API."""

    points: Points
    faults: Iterable[str] | None
    variants: int
    replay: str | None
    check_args: Iterable[str] | None
    again_args: Iterable[str] | None
    recovery_limit: int | None


def points_of(text: str) -> Points:
    """Reads the value of `--points`.

    Raises:
        ConfigError: It is neither a number from 1 nor "all".
    """
    if text == "all":
        return "all"
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise refusal("points", f"'{text}' is neither 'all' nor a number from 1")
    return int(text)


def faults_of(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Reads the values of `--fault`; "all" stands for all, no value for the default."""
    if not names:
        return None
    return FAULTS if "all" in names else tuple(names)


def crash_request(scenario: Scenario, chosen: CrashOptions) -> dict[str, Any]:
    """Gives the request for a campaign over `scenario`.

    Raises:
        ConfigError: A name or number is not allowed.
        ToolchainError: The guest program cannot be built.
    """
    chosen.check()
    faults = chosen.faults
    if faults is None:
        faults = DEFAULT_FAULTS if scenario.elf is None else FAULTS
    return (_workload_request(scenario) if scenario.elf is None else _program_request(scenario, chosen)) | {
        "points": chosen.points,
        "faults": sorted({"clean", *faults}),
        "variants": chosen.variants,
        "replay": chosen.replay,
        "workers": chosen.workers,
        "recovery_limit": chosen.recovery_limit,
    }


def _workload_request(scenario: Scenario) -> dict[str, Any]:
    from durasim import toolchain  # noqa: PLC0415 - keeps the start-up of other commands short

    ops = DEFAULT_OPS if scenario.ops is None else scenario.ops
    scenario.check_promise()
    request = dataclasses.replace(scenario, ops=ops).request()
    program = toolchain.build(workload_info(scenario.workload or "").program, scenario.backend, history=True)
    return request | {
        "elf": os.fspath(program),
        "history": True,
        "recover_args": scenario.guest_command("recover", ops),
        "check_args": [*scenario.guest_command("recover-and-check", ops), "--dump"],
        "again_args": scenario.guest_command("run", min(ops, OPS_AFTER_A_CRASH)),
    }


def _program_request(scenario: Scenario, chosen: CrashOptions) -> dict[str, Any]:
    """A program of others reports no history: its check, which recovers first, and the bytes that it leaves judge."""
    if chosen.check_args is None:
        raise refusal("check", "say with which arguments the program of --elf recovers and checks its pool")
    request = scenario.request()
    return request | {
        "history": False,
        "recover_args": None,
        "check_args": list(chosen.check_args),
        "again_args": list(scenario.args if chosen.again_args is None else chosen.again_args),
    }


def finish_crash(document: Mapping[str, Any], scenario: Scenario, chosen: CrashOptions | None = None) -> CrashResult:
    """Gives the typed result, each failure with the command that replays it."""
    failures = [
        failure | {"command": replay_command(scenario, document["ops"], failure["id"], chosen)}
        for failure in document["failures"]
    ]
    return CrashResult.from_dict({"shrunk": None, **document, "failures": failures})


def replay_command(scenario: Scenario, ops: int | None, replay: str, chosen: CrashOptions | None = None) -> str:
    """Gives the command that crashes `scenario` at the failure `replay` alone."""
    words = ["durasim", "crash", "--design", scenario.design]
    if scenario.elf is None:
        words += ["--workload", scenario.workload or "", "--ops", str(ops)]
    else:
        words += ["--elf", scenario.elf]
        for name, arguments in (("--check", chosen and chosen.check_args), ("--again", chosen and chosen.again_args)):
            words += [] if arguments is None else [name, shlex.join(arguments)]
        for pair in scenario.env:
            words += ["--env", pair]
    if scenario.machine != DEFAULT_MACHINE:
        words += ["--machine", scenario.machine]
    if scenario.domain is not None:
        words += ["--domain", scenario.domain]
    if scenario.seed != DEFAULT_SEED:
        words += ["--seed", str(scenario.seed)]
    if scenario.threads != 1:
        words += ["--threads", str(scenario.threads)]
    for setting in scenario.settings:
        words += ["--set", setting]
    for name, value in scenario.workload_args:
        words += ["--arg", f"{name}={value}"]
    if scenario.control:
        words.append("--control")
    if chosen is not None and chosen.recovery_limit is not None:
        words += ["--recovery-limit", str(chosen.recovery_limit)]
    words += ["--replay", replay]
    return shlex.join([*words, "--", *scenario.args] if scenario.args else words)
