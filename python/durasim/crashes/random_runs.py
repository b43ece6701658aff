"""Random campaigns: random machines without programs, with checks of every load and of every recovery."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from durasim import _core
from durasim.errors import refusal
from durasim.own_core import command
from durasim.runs.scenario import variant_name

DEFAULT_RUNS = 200


def run(
    designs: Sequence[str],
    runs: int | None,
    seconds: float | None,
    seed: int,
    progress: Callable[[int, int | None], None],
    planted: str | None = None,
) -> dict[str, Any]:
    """Runs random machines of these designs in turn, by default of all, up to `runs` or for `seconds`.

    Raises:
        ConfigError: A name or number is not allowed.
    """
    _check(runs, seconds, seed)
    if runs is None and seconds is None:
        runs = DEFAULT_RUNS
    request = {"designs": [variant_name(name) for name in designs], "seed": seed, "runs": runs, "planted": planted}
    began = time.monotonic()

    def report(done: int) -> bool:
        progress(done, runs)
        return seconds is None or time.monotonic() - began < seconds

    found = json.loads(_core.random_campaign(json.dumps(request), report))
    for failure in found["failures"]:
        failure["command"] = _command(failure)
    return {"schema": "durasim-random/1", "durasim_version": _core.__version__, **found}


def _check(runs: int | None, seconds: float | None, seed: int) -> None:
    if runs is not None and runs < 1:
        raise refusal("runs", f"{runs} is less than 1")
    if seconds is not None and not seconds > 0:
        raise refusal("seconds", f"{seconds:g} is not above 0")
    if not 0 <= seed < 2**64:
        raise refusal("seed", f"{seed} is not from 0 to {2**64 - 1}")


def _command(failure: dict[str, Any]) -> str:
    return f"{command()} campaign --random --design {failure['design']} --replay {failure['id']}"


def replay(design: str, run_id: str, planted: str | None = None) -> dict[str, Any]:
    """Repeats one run and returns its violation with the last steps before it.

    Raises:
        ConfigError: The design is unknown, or the text is no run id.
    """
    found = json.loads(_core.random_replay(variant_name(design), run_id, planted))
    return {"schema": "durasim-random-replay/1", "durasim_version": _core.__version__, **found}
