"""The plan of a study: its points, and an estimate of time and memory before anything is simulated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from durasim import _core
from durasim.documents.document import Document
from durasim.programs.workload_tables import unchanged_sources
from durasim.store.database import Store
from durasim.store.keys import Keys
from durasim.studies.estimates import Estimates
from durasim.studies.executor import LocalProcesses
from durasim.studies.population import populations
from durasim.studies.prepared import prepare
from durasim.studies.study import Study


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
    estimates = Estimates([*kept.values()])
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
        memory_bytes=min(workers, len(waiting)) * estimates.memory_bytes,
        jobs=workers,
    )
