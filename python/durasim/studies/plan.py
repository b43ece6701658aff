"""The plan of a study: its points, and an estimate of time and memory before anything is simulated."""

from __future__ import annotations

import os

from durasim import _core
from durasim.documents.sweep_plan import SCHEMA, Plan, PlannedPoint
from durasim.programs.workload_tables import unchanged_sources
from durasim.store.database import Store
from durasim.store.keys import Keys
from durasim.studies.estimates import Estimates, ProgramLengths
from durasim.studies.executor import LocalProcesses
from durasim.studies.population import populations
from durasim.studies.prepared import prepare
from durasim.studies.study import Study


def plan_of(study: Study, store: Store | None, jobs: int | None, lengths: ProgramLengths | None = None) -> Plan:
    """Returns the plan of a study. Guest programs are built, and run functionally for a short time.

    Args:
        study: The study.
        store: The store of results, or None.
        jobs: Number of concurrent simulations; all cores if None.
        lengths: Programs whose instructions other plans have counted; gets those of this study.

    Raises:
        ConfigError: A point is refused.
    """
    keys, workers = Keys(), jobs or os.cpu_count() or 1
    with unchanged_sources(), populations(study, store, lambda: LocalProcesses(jobs)) as shared:
        points_of = study.points() if shared is None else shared.start(study.points(), populates=False)
        prepared = [prepare(point, keys) for point in points_of]
    kept = {} if store is None else {entry.key: entry for entry in store.entries()}
    estimates = Estimates([*kept.values()], lengths)
    points = []
    for one in prepared:
        stored = one.key in kept
        seconds = 0.0 if stored else estimates.seconds(one)
        points.append(PlannedPoint(one.key, stored, seconds, one.command, one.point.values))
    waiting = [point for point in points if not point.is_stored]
    known = [point.seconds for point in waiting if point.seconds is not None]
    minutes = sum(known) / min(workers, max(len(waiting), 1)) / 60 if len(known) == len(waiting) else None
    return Plan(
        schema=SCHEMA,
        durasim_version=_core.__version__,
        name=study.name,
        points=tuple(points),
        to_simulate=len(waiting),
        minutes=minutes,
        memory_bytes=min(workers, len(waiting)) * estimates.memory_bytes,
        jobs=workers,
    )
