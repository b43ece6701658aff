"""Crash campaigns: the request passed to the Rust core, and the completion of its result."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from durasim.documents.results import CrashResult
from durasim.errors import refusal
from durasim.runs.scenario import DEFAULT_MACHINE, DEFAULT_SEED, Scenario, ScenarioArguments, workload_info

Points = int | Literal["all"]
"""Number of persist events to crash at, spread over the run, or "all"."""
DEFAULT_POINTS = 300
DEFAULT_OPS = 200
"""Default operations, fewer than in a run because every crash costs a recovery and a check."""
FAULTS = ("clean", "torn", "reorder", "energy", "nested", "background", "recrash")
"""Kinds of power failures; docs/crash.md explains each."""
DEFAULT_FAULTS = ("clean", "nested")
"""Default faults of a workload. For a program given by `elf` the default is all of `FAULTS`."""
DEFAULT_VARIANTS = 2
NUMBER_MAX = 1024
"""Maximum of variants and of workers."""
RECOVERY_LIMIT_MAX = 10**15
"""Instructions."""
OPS_AFTER_A_CRASH = 8
"""Maximum number of operations of the run between two crashes."""


@dataclasses.dataclass(frozen=True, slots=True)
class CrashOptions:
    """Options of a crash campaign over a scenario.

    Attributes:
        points: Number of persist events to crash at, or "all".
        faults: Kinds of power failures, from `FAULTS`; clean ones are always included. If None, `DEFAULT_FAULTS` for a
            workload and all for a program given by `elf`.
        variants: Samples per crash point of a fault with many possible outcomes; all outcomes if there are fewer.
        replay: The id of a failure; only this trial runs.
        workers: Threads of this computer that run trials; all its cores if None.
        check_args: Arguments with which a program given by `elf` recovers and checks its pool.
        again_args: Arguments of its run between two crashes; those of the first run if None.
        recovery_limit: Instruction limit of recovery, of check and of the run between two crashes, each, in a trial;
            if None, 20 times the number without a crash, at least 10 million.
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
        """Refuses invalid values.

        Raises:
            ConfigError: A number is out of range or a fault unknown.
        """
        points_of(str(self.points))
        for fault in self.faults or ():
            if fault not in FAULTS:
                raise refusal("fault", f"'{fault}' is unknown (allowed: {', '.join(FAULTS)})")
        for name, value in (("variants", self.variants), ("workers", self.workers)):
            if value is not None and not 1 <= value <= NUMBER_MAX:
                raise refusal(name, f"{value} is not between 1 and {NUMBER_MAX}")
        if self.recovery_limit is not None and not 1 <= self.recovery_limit <= RECOVERY_LIMIT_MAX:
            problem = f"{self.recovery_limit} is not between 1 and {RECOVERY_LIMIT_MAX} instructions"
            raise refusal("recovery-limit", problem)


class CrashArguments(ScenarioArguments, total=False):
    """The fields of a scenario and of its crash options, as arguments of the Python API."""

    points: Points
    faults: Iterable[str] | None
    variants: int
    replay: str | None
    check_args: Iterable[str] | None
    again_args: Iterable[str] | None
    recovery_limit: int | None


def points_of(text: str) -> Points:
    """Parses the value of `--points`.

    Raises:
        ConfigError: The value is neither "all" nor a number of at least 1.
    """
    if text == "all":
        return "all"
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise refusal("points", f"'{text}' is neither 'all' nor a number of at least 1")
    return int(text)


def faults_of(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Parses the values of `--fault`; "all" means all, no value means the default."""
    if not names:
        return None
    return FAULTS if "all" in names else tuple(names)


def crash_request(scenario: Scenario, chosen: CrashOptions) -> dict[str, Any]:
    """Returns the request for a campaign over `scenario`.

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
    from durasim.programs import toolchain  # noqa: PLC0415 - keeps the start-up of other commands short

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
    """Returns the request for an external program, which has no history: its own check and the bytes judge it."""
    if chosen.check_args is None:
        raise refusal(
            "check", "is required with --elf: the arguments with which the program recovers and checks its pool"
        )
    request = scenario.request()
    return request | {
        "history": False,
        "recover_args": None,
        "check_args": list(chosen.check_args),
        "again_args": list(scenario.args if chosen.again_args is None else chosen.again_args),
    }


def finish_crash(document: Mapping[str, Any], scenario: Scenario, chosen: CrashOptions | None = None) -> CrashResult:
    """Returns the typed result; each failure includes the command that replays it."""
    failures = [
        failure | {"command": replay_command(scenario, document["ops"], failure["id"], chosen)}
        for failure in document["failures"]
    ]
    return CrashResult.from_dict({"shrunk": None, **document, "failures": failures})


def replay_command(scenario: Scenario, ops: int | None, replay: str, chosen: CrashOptions | None = None) -> str:
    """Returns the command that replays only the failure `replay` of `scenario`."""
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
