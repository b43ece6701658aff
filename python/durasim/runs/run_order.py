"""Order and stored results of the runs of a comparison.

At a smaller scale the first run of each guest program populates its data functionally and saves a snapshot, from which
all designs with that program start. What is in that snapshot follows from the request of this first run, so the key of
that request stands for it in the keys of the others.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from durasim.documents.results import RunResult
from durasim.programs.scale import DEFAULT_SCALE
from durasim.runs.command import run_command
from durasim.runs.scenario import Scenario
from durasim.store.reuse import Reuse
from durasim.store.snapshots import Snapshots

_FROM_POINT = {"fast_forward": "0", "snapshot_at": 0}
_KIND = "run"


class RunOrder:
    """The runs of a comparison: those that the store answers, those to begin with, and those that follow another one.

    Only the main thread uses it.

    Attributes:
        answered: Results from the store, by the number of the run.
        first: Numbers of the runs to begin with.
        after: Numbers of the runs that start from the snapshot of another run, by its number.
    """

    def __init__(
        self, scenarios: Sequence[Scenario], requests: list[dict[str, Any]], folder: Path, reuse: Reuse
    ) -> None:
        """Completes the requests.

        Args:
            scenarios: The runs.
            requests: Their requests, which get the names of snapshots.
            folder: A folder for snapshots that no store keeps.
            reuse: The store; without one nothing is answered.

        Raises:
            ConfigError: A snapshot of the store belongs to another user.
            HostIoError: The store or a file of a request cannot be read.
        """
        self.answered: dict[int, RunResult] = {}
        self.first: list[int] = []
        self.after: dict[int, list[int]] = {}
        self._scenarios, self._requests, self._reuse = scenarios, requests, reuse
        # What a run reads: its request without the file that it writes, and with the key that stands for its snapshot.
        self._read: dict[int, Mapping[str, Any]] = {}
        self._keys: dict[int, str | None] = {}
        self._saved: dict[int, Path] = {}
        self._used: set[Path] = set()
        self._folder = folder
        self._snapshots: Snapshots | None = None
        groups: dict[tuple[str, str], list[int]] = {}
        for number, scenario in enumerate(scenarios):
            if scenario.scale == DEFAULT_SCALE:
                self._read[number] = dict(requests[number])
                if not self._answer(number):
                    self.first.append(number)
            else:
                groups.setdefault((scenario.workload or "", scenario.backend), []).append(number)
        for saving, *others in groups.values():
            self._share(saving, others)

    def _share(self, saving: int, others: Sequence[int]) -> None:
        """Orders the runs of one guest program: the one that saves the snapshot, and the others."""
        self._read[saving] = self._requests[saving] | _FROM_POINT
        key = self._reuse.key(_KIND, self._read[saving])
        for number in others:
            self._read[number] = self._requests[number] | {"populated_by": key}
        waiting = [number for number in others if not self._answer(number)]
        snapshot = self._kept(key)
        if snapshot is not None:
            self._start_from(snapshot, waiting)
            self.first += waiting
            waiting = []
        if waiting or not self._answer(saving):
            self._keys[saving] = key
            self._saved[saving] = self._fresh_path(saving, key)
            self._requests[saving] |= _FROM_POINT | {"snapshot": os.fspath(self._saved[saving])}
            self.first.append(saving)
            self.after[saving] = waiting

    def _answer(self, number: int) -> bool:
        self._keys[number], document = self._reuse.find(_KIND, self._read[number])
        if document is not None:
            self.answered[number] = RunResult.from_dict(document)
        return document is not None

    def _kept(self, key: str | None) -> Path | None:
        """Returns the snapshot of the store that the run with this key has saved."""
        if key is None or self._reuse.store is None:
            return None
        self._snapshots = self._snapshots or Snapshots(self._reuse.store)
        return self._snapshots.get(key)

    def _fresh_path(self, number: int, key: str | None) -> Path:
        if key is None or self._snapshots is None:
            return self._folder / f"{number}.snapshot"
        return self._snapshots.fresh_path(key)

    def _start_from(self, snapshot: Path, numbers: Sequence[int]) -> None:
        self._used.add(snapshot)
        for number in numbers:
            self._requests[number]["from"] = os.fspath(snapshot)

    def keep(self, number: int, result: RunResult) -> None:
        """Stores the result of a run, and gives its snapshot to the runs that start from it.

        Raises:
            HostIoError: The store or the snapshot cannot be written.
        """
        key, snapshot = self._keys.get(number), self._saved.get(number)
        if snapshot is not None:
            if key is not None and self._snapshots is not None:
                snapshot = self._snapshots.keep(key, snapshot, self._used)
            self._start_from(snapshot, self.after[number])
        if key is not None:
            document, command = result.to_dict(), run_command(self._alone(number))
            self._reuse.keep(key, _KIND, self._read[number], document, command)

    def _alone(self, number: int) -> Scenario:
        """Returns the scenario of a run for a command that makes it alone."""
        scenario, start = self._scenarios[number], self._requests[number]
        if scenario.scale == DEFAULT_SCALE:
            return scenario
        if number in self._saved:
            return dataclasses.replace(scenario, fast_forward=0)
        return dataclasses.replace(scenario, from_=start["from"])
