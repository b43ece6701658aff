"""Shared populations: each program of a study is populated once, and its points start from that snapshot."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from durasim.errors import HostIoError
from durasim.runs import settings as parameter_settings
from durasim.runs.scenario import Scenario, design_variants, settings_of
from durasim.store.database import Store
from durasim.store.keys import Keys
from durasim.store.snapshots import Snapshots
from durasim.studies.executor import Executor
from durasim.studies.study import Point, Study
from durasim.studies.tasks import task_text


@dataclass
class Populations:
    """The snapshots of a study.

    Attributes:
        study: The study.
        store: The store that keeps snapshots; they are temporary if None.
        executor: Starts the workers that populate.
        folder: The folder for temporary snapshots.
        paths: The snapshots by the key of the request that populates.
    """

    study: Study
    store: Store | None
    executor: Callable[[], Executor]
    folder: Path
    paths: dict[str, Path] = field(default_factory=dict)

    def start(self, points: list[Point], *, populates: bool = True) -> list[Point]:
        """Returns the points with their snapshots as their start.

        Args:
            points: The points.
            populates: Whether to populate where no snapshot is kept; otherwise those points are unchanged.

        Raises:
            ConfigError: A snapshot belongs to another user, or a program does not run up to its snapshot point.
            HostIoError: A snapshot cannot be written.
        """
        keys = Keys()
        described = [self._request(point) for point in points]
        named = [keys.of("populate", request) for request in described]
        snapshots = None if self.store is None else Snapshots(self.store)
        missing: dict[str, Mapping[str, Any]] = {}
        for key, request in zip(named, described, strict=True):
            if key not in self.paths and key not in missing:
                found = None if snapshots is None else snapshots.get(key)
                if found is None:
                    missing[key] = request
                else:
                    self.paths[key] = found
        if missing and populates:
            self._populate(missing, snapshots)
        return [self._from(point, self.paths.get(key)) for point, key in zip(points, named, strict=True)]

    @staticmethod
    def _from(point: Point, snapshot: Path | None) -> Point:
        if snapshot is None:
            return point
        return dataclasses.replace(point, scenario=dataclasses.replace(point.scenario, from_=str(snapshot)))

    def _request(self, point: Point) -> dict[str, Any]:
        """Returns the request that populates for a point: without axes of the machine and of designs.

        Programs of one backend are equal, so the first design of the study with this backend stands for all.
        """
        of = point.scenario
        rows = design_variants()
        designs = (str(name) for name in self.study.axes["design"].values)
        design = next(name for name in designs if rows[name]["backend"] == of.backend)
        fixed = parameter_settings.of_design(settings_of(self.study.fixed_settings()), str(rows[design]["hardware"]))
        return Scenario(
            design=design,
            workload=of.workload,
            machine=of.machine,
            ops=of.ops,
            threads=of.threads,
            seed=of.seed,
            settings=fixed,
            elf=of.elf,
            args=of.args,
            env=of.env,
            workload_args=of.workload_args,
            macros=of.macros,
            include_folders=of.include_folders,
            scale=of.scale,
            control=True,
            fast_forward=0,
        ).request()

    def _populate(self, missing: Mapping[str, Mapping[str, Any]], snapshots: Snapshots | None) -> None:
        names = list(missing)
        files = [self.folder / f"{key}.new" if snapshots is None else snapshots.fresh_path(key) for key in names]
        with self.executor() as workers:
            waiting, running = list(range(len(names))), 0
            while waiting or running:
                while waiting and running < workers.capacity:
                    number = waiting.pop(0)
                    saved = {"snapshot_at": 0, "snapshot": str(files[number])}
                    workers.submit(number, task_text("run", {**missing[names[number]], **saved}))
                    running += 1
                for answer in workers.answers():
                    running -= 1
                    _refuse_failed(missing[names[answer.number]], answer.text)
                    key, file = names[answer.number], files[answer.number]
                    used = set(self.paths.values())
                    self.paths[key] = file if snapshots is None else snapshots.keep(key, file, used)


def _refuse_failed(request: Mapping[str, Any], text: str | None) -> None:
    problem = "its worker process was killed" if text is None else json.loads(text).get("error")
    if problem is not None:
        raise HostIoError(f"populating {request['workload']} failed: {problem}")


@contextlib.contextmanager
def populations(study: Study, store: Store | None, executor: Callable[[], Executor]) -> Iterator[Populations | None]:
    """Returns the snapshots of a study; None if its points do not share them."""
    if not study.tables.get("shared_population", False):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder:
        yield Populations(study, store, executor, Path(folder))
