"""Crash campaigns: the request for the compiled half, and what is added to its answer."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from durasim.errors import refusal
from durasim.results import CrashResult
from durasim.scenario import DEFAULT_MACHINE, DEFAULT_SEED, Scenario

Points = int | Literal["all"]
"""How many persist events to crash at, spread over the run, or all of them."""
DEFAULT_POINTS = 300
DEFAULT_OPS = 200
"""Fewer than in a run: every crash costs a recovery and a check."""


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


def crash_request(scenario: Scenario, points: Points, replay: str | None) -> dict[str, Any]:
    """Gives the request for a campaign over `scenario`, which must be a workload.

    Raises:
        ConfigError: A name or number is not allowed.
        ToolchainError: The guest program cannot be built.
    """
    if scenario.workload is None:
        raise refusal("workload", "a crash campaign needs a workload, whose entry points recover and check")
    points_of(str(points))
    ops = DEFAULT_OPS if scenario.ops is None else scenario.ops
    request = dataclasses.replace(scenario, ops=ops).request()
    return request | {
        "elf_recover": request["elf"],
        "recover_args": scenario.guest_command("recover", ops),
        "check_args": scenario.guest_command("recover-and-check", ops),
        "points": points,
        "replay": replay,
    }


def finish_crash(document: Mapping[str, Any], scenario: Scenario) -> CrashResult:
    """Gives the typed result, each failure with the command that replays it."""
    failures = [
        failure | {"command": replay_command(scenario, document["ops"], failure["id"])}
        for failure in document["failures"]
    ]
    return CrashResult.from_dict({**document, "failures": failures})


def replay_command(scenario: Scenario, ops: int, replay: str) -> str:
    """Gives the command that crashes `scenario` at the failure `replay` alone."""
    words = ["durasim", "crash", "--design", scenario.design, "--workload", scenario.workload or "", "--ops", str(ops)]
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
    return shlex.join([*words, "--replay", replay])
