"""Random campaigns: random machines without programs, with checks of every load and of every recovery."""

from __future__ import annotations

import itertools
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from durasim import _core
from durasim.errors import refusal
from durasim.own_core import command
from durasim.runs.scenario import variant_name
from durasim.store.reuse import Reuse

SCHEMA = "durasim-random/1"
DEFAULT_RUNS = 200
_FAILURES_MAX = 50
"""Failures that a document lists."""


@dataclass
class Blocks:
    """Runs in blocks. A store keeps each block that was simulated to its end.

    Attributes:
        reuse: The store.
        reused_runs: Number of runs that the store answered.
    """

    KIND = "random"
    RUNS = 200
    reuse: Reuse = field(default_factory=lambda: Reuse(None))
    reused_runs: int = 0

    def of(self, request: Mapping[str, Any], report: Callable[[int], bool]) -> dict[str, Any]:
        """Returns the document of a block, which has fewer runs than asked for if `report` ends it.

        Args:
            request: The request passed to the Rust core.
            report: Called with the runs done; returning False ends the block.
        """
        designs = ",".join(request["designs"])
        read = {**request, "design": designs, "workload": self.KIND, "machine": "tiny"}
        key, document = self.reuse.find(self.KIND, read)
        if document is not None:
            self.reused_runs += document["runs"]
            report(document["runs"])
            return document
        began = time.monotonic()
        document = json.loads(_core.random_campaign(json.dumps(request), report))
        seconds = time.monotonic() - began
        for failure in document["failures"]:
            failure["command"] = _command(failure)
        document = {"schema": SCHEMA, "durasim_version": _core.__version__, **document}
        if document["runs"] == request["runs"]:
            words = [word for name in request["designs"] for word in ("--design", name)]
            words += ["--runs", str(request["runs"]), "--seed", str(request["seed"])]
            repeated_by = shlex.join([command(), "campaign", "--random", *words])
            self.reuse.keep(key, self.KIND, read, document, repeated_by, seconds=seconds)
        return document


def run(
    designs: Sequence[str],
    runs: int | None,
    seconds: float | None,
    seed: int,
    progress: Callable[[int, int | None], None],
    blocks: Blocks | None = None,
    planted: str | None = None,
) -> dict[str, Any]:
    """Runs random machines of these designs in turn, by default of all, up to `runs` or for `seconds`.

    Blocks of `blocks` come from its store where it has them; a document does not depend on blocks.

    Raises:
        ConfigError: A name or number is not allowed.
        HostIoError: The store cannot be read or written.
    """
    _check(runs, seconds, seed)
    if runs is None and seconds is None:
        runs = DEFAULT_RUNS
    names = [variant_name(name) for name in designs] or _all_designs(seed)
    given, began = blocks or Blocks(), time.monotonic()
    parts: list[dict[str, Any]] = []
    done = 0
    for first, size in _sizes(len(names), seed, runs):

        def report(count: int, before: int = done) -> bool:
            progress(before + count, runs)
            return seconds is None or time.monotonic() - began < seconds

        request = {"designs": names, "seed": first, "runs": size, "planted": planted}
        parts.append(given.of(request, report))
        done += parts[-1]["runs"]
        if seconds is not None and time.monotonic() - began >= seconds:
            break
    return _joined(parts, seed)


def _all_designs(seed: int) -> list[str]:
    """Returns the designs that a campaign without names tries; the core says them with the result of a run."""
    request = {"designs": [], "seed": seed, "runs": 1, "planted": None}
    return [row["design"] for row in json.loads(_core.random_campaign(json.dumps(request), None))["designs"]]


def _sizes(designs: int, seed: int, runs: int | None) -> Iterator[tuple[int, int]]:
    """Yields first seed and number of runs of each block; each seed has two runs of each design."""
    seeds = -(-Blocks.RUNS // (2 * designs))
    size = seeds * 2 * designs
    for number in itertools.count():
        left = size if runs is None else min(runs - number * size, size)
        if left <= 0:
            return
        yield (seed + number * seeds) % 2**64, left


def _joined(parts: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    """Returns the document of all runs from those of its blocks."""
    first = parts[0]
    rows = [[part["designs"][place] for part in parts] for place in range(len(first["designs"]))]
    sums = {name: sum(part[name] for part in parts) for name in ("runs", "trials", "violations")}
    failures = [failure for part in parts for failure in part["failures"]][:_FAILURES_MAX]
    return {**first, "seed": seed, **sums, "designs": [_sum(of) for of in rows], "failures": failures}


def _sum(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the sums of the numbers of a design."""
    found = {name: sum(row[name] for row in rows) for name, value in rows[0].items() if isinstance(value, int)}
    marks = sorted({name for row in rows for name in row["marks"]})
    of_marks = {name: sum(row["marks"].get(name, 0) for row in rows) for name in marks}
    return {**rows[0], **found, "marks": of_marks}


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
