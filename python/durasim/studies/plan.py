"""The plan of a study: its points, and an estimate of time and memory before anything is simulated."""

from __future__ import annotations

import itertools
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim import _core
from durasim.documents.document import Document
from durasim.errors import DurasimError
from durasim.output import discard
from durasim.programs.workload_tables import unchanged_sources
from durasim.store.database import Store
from durasim.store.keys import Keys
from durasim.studies.executor import LocalProcesses
from durasim.studies.population import populations
from durasim.studies.study import Study
from durasim.studies.study_run import Prepared, prepare

_PROBE_INSTRUCTIONS = 200_000_000
"""Instructions after which a functional run that counts those of a program is given up."""
_SIMULATED_PER_S = 4_000_000
"""Instructions per second of a simulation, where the store has no measurement (docs/performance.md)."""
_FUNCTIONAL_PER_S = 60_000_000
"""Instructions per second without caches and time: recovery and checks after a crash."""
_WORKER_BYTES = 100 * 2**20
"""Memory of a worker process without a simulated machine."""


@dataclass(frozen=True, slots=True)
class PlannedPoint(Document):
    """A point of a plan.

    Attributes:
        key: Hash of all that its simulation reads.
        is_stored: Whether its result is in the store.
        seconds: Expected host time; None if unknown.
        command: The command that simulates it alone.
        values: The value of each axis.
    """

    key: str
    is_stored: bool
    seconds: float | None
    command: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan(Document):
    """The document of `durasim sweep --plan`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        name: Name of the study.
        points: The points in order; those that a bisection adds are unknown.
        to_simulate: Number of points that are not stored.
        minutes: Expected time with `jobs` processes; None if unknown.
        memory_bytes: Expected memory of all processes together.
        jobs: Number of concurrent simulations.
    """

    schema: str
    durasim_version: str
    name: str
    points: tuple[PlannedPoint, ...]
    to_simulate: int
    minutes: float | None
    memory_bytes: int
    jobs: int


def plan_of(study: Study, store: Store | None, jobs: int | None) -> Plan:
    """Returns the plan of a study. Guest programs are built, and run functionally for a short time.

    Raises:
        ConfigError: A point is refused.
    """
    keys, workers = Keys(), jobs or os.cpu_count() or 1
    with unchanged_sources(), populations(study, store, lambda: LocalProcesses(jobs)) as shared:
        points_of = study.points() if shared is None else shared.start(study.points(), populates=False)
        prepared = [prepare(point, keys) for point in points_of]
    kept = {} if store is None else {entry.key: entry for entry in store.entries()}
    estimates = _Estimates([*kept.values()])
    points = []
    for one in prepared:
        stored = one.key in kept
        seconds = 0.0 if stored else estimates.seconds(one)
        points.append(PlannedPoint(one.key, stored, seconds, one.command, one.point.values))
    waiting = [point for point in points if not point.is_stored]
    known = [point.seconds for point in waiting if point.seconds is not None]
    minutes = sum(known) / min(workers, max(len(waiting), 1)) / 60 if len(known) == len(waiting) else None
    return Plan(
        schema="durasim-sweep-plan/1",
        durasim_version=_core.__version__,
        name=study.name,
        points=tuple(points),
        to_simulate=len(waiting),
        minutes=minutes,
        memory_bytes=min(workers, len(waiting)) * max(estimates.memory_bytes, _WORKER_BYTES),
        jobs=workers,
    )


class _Estimates:
    """Expected times: from results of the same program, or from the number of instructions of its run."""

    def __init__(self, entries: Sequence[Any]) -> None:
        self._measured: dict[tuple[str, ...], list[float]] = {}
        for entry in entries:
            of = (entry.kind, entry.design, entry.workload, entry.machine, _size_of(entry.command))
            self._measured.setdefault(of, []).append(entry.seconds)
        self._instructions: dict[str, int | None] = {}
        self.memory_bytes = 0

    def seconds(self, one: Prepared) -> float | None:
        """Returns the expected host time of a point; None if it is unknown."""
        request, scenario = one.request, one.point.scenario
        of = (one.point.kind, scenario.design, str(request["workload"]), scenario.machine, _size_of(one.command))
        if of in self._measured:
            return statistics.median(self._measured[of])
        count = self._count(one)
        if count is None:
            return None
        running = count / _SIMULATED_PER_S
        if one.point.crash is None:
            return running
        # The program runs twice; each trial recovers and checks.
        trials = 1000 if one.point.crash.points == "all" else one.point.crash.points
        return 2 * running + trials * one.point.crash.variants * count / _FUNCTIONAL_PER_S

    def _count(self, one: Prepared) -> int | None:
        """Returns the instructions of a run; None if they are too many to count, or it cannot run functionally."""
        kept = ("elf", "elf_name", "args", "env", "seed", "ops", "threads", "workload", "root")
        text = json.dumps([one.request[name] for name in kept])
        if text not in self._instructions:
            self._instructions[text] = self._probe(one.request)
        return self._instructions[text]

    def _probe(self, request: Mapping[str, Any]) -> int | None:
        of_run = {name: value for name, value in request.items() if name in _RUN_FIELDS}
        changed = {"functional": True, "max_instructions": _PROBE_INSTRUCTIONS, "fast_forward": None, "from": None}
        changed |= {"stop_after_roi": False, "root": None}
        try:
            document = json.loads(_core.run(json.dumps(of_run | changed), discard))
        except DurasimError:
            return None
        self.memory_bytes = max(self.memory_bytes, int(document["host"]["peak_rss_bytes"]))
        return int(document["program"]["instructions"])


def _size_of(command: str) -> str:
    """Returns the words of a command that decide how much its program does."""
    words = command.split()
    pairs = itertools.pairwise(words)
    return " ".join(f"{name} {value}" for name, value in pairs if name in ("--ops", "--threads", "--arg", "--points"))


_RUN_FIELDS = frozenset(json.loads(_core.run_schemas())["request"]["properties"])
"""Fields of the request of a run; that of a crash has more."""
