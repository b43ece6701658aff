"""Progress of long commands point by point, for an observer.

A command calls these methods in its main thread. Nothing that it computes depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

REUSED, SIMULATED, FAILED = "reused", "simulated", "failed"
"""States of a point that is done."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A point that is done.

    Attributes:
        state: `reused` from the store, `simulated`, or `failed`.
        seconds: Host time of its simulation, in seconds.
        command: The command that repeats it alone.
        counters: Its main counters by name, which ends with the unit.
        instructions: Simulated instructions of a run; 0 for others.
        sums: Counters that are added up over all points, such as trials and violations.
        problem: The reason if it failed; None otherwise.
    """

    state: str
    seconds: float
    command: str
    counters: Mapping[str, Any] = field(default_factory=dict)
    instructions: float = 0.0
    sums: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None


class Watch:
    """Ignores all notices; the monitor overrides all methods."""

    def begin_study(self, name: str, unit: str, limit_s: float | None = None) -> None:
        """A study begins; its points are numbered from 0.

        Args:
            name: Its name.
            unit: The plural of what `count` counts, such as `points`.
            limit_s: Its budget in seconds; None if it ends with its points.
        """

    def say(self, doing: str) -> None:
        """The command does something else than simulating points."""

    def add(self, names: Sequence[str]) -> None:
        """The study has further points, which wait."""

    def begin(self, number: int) -> None:
        """The simulation of a point begins."""

    def put_back(self, number: int) -> None:
        """The simulation of a point was lost; it waits again."""

    def finish(self, number: int, finished: Finished) -> None:
        """A point is done."""

    def count(self, done: int, total: int | None) -> None:
        """The number done and the total; None if a budget of time is the limit."""


UNWATCHED = Watch()
