"""The state of a running command: its main thread updates it, and the server of the monitor reads it."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from durasim.watch import FAILED, REUSED, SIMULATED, Finished, Watch

_RECENT_MAX = 20
_FAILURES_MAX = 50
_RUNNING_MAX = 64
_WAITS, _RUNS, _VIOLATES = "w", "r", "v"
_LETTERS: Mapping[str, str] = {REUSED: "u", SIMULATED: "s", FAILED: "f"}
"""The letter of each state of a point in the documents; `v` if it is done and has violations."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The part of a state that a browser has already.

    Attributes:
        study: Number of the study; -1 before the first one.
        names: Number of its points whose names were sent.
    """

    study: int = -1
    names: int = 0


@dataclass(slots=True)
class _Study:
    """The points of one study."""

    number: int
    name: str = ""
    unit: str = "points"
    limit_s: float | None = None
    names: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    running: dict[int, float] = field(default_factory=dict)
    done: int = 0
    total: int | None = None
    began_s: float = 0.0
    first_began_s: float | None = None
    done_before: int = 0
    """Number that was done when the first simulation began: those of the store."""


class Watched(Watch):
    """All that the page shows. Its methods may be called from any thread."""

    def __init__(self, command: str, clock_s: Callable[[], float] = time.monotonic) -> None:
        """`command` is the name of the command; `clock_s` gives seconds."""
        self._lock, self._clock_s = threading.Lock(), clock_s
        self._command, self._began_s = command, clock_s()
        self._study = _Study(-1, began_s=self._began_s)
        self._doing, self._ended = "preparing", ""
        self._states: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._instructions = 0.0
        self._simulates_since_s: float | None = None
        self._recent: deque[dict[str, Any]] = deque(maxlen=_RECENT_MAX)
        self._failures: list[dict[str, Any]] = []

    def begin_study(self, name: str, unit: str, limit_s: float | None = None) -> None:
        """A study begins."""
        with self._lock:
            self._study = _Study(self._study.number + 1, name, unit, limit_s, began_s=self._clock_s())
            self._doing = "preparing"

    def say(self, doing: str) -> None:
        """The command does something else than simulating points."""
        with self._lock:
            self._doing = doing

    def add(self, names: Sequence[str]) -> None:
        """The study has further points, which wait."""
        with self._lock:
            self._study.names += names
            self._study.states += [_WAITS] * len(names)

    def begin(self, number: int) -> None:
        """The simulation of a point begins."""
        now_s = self._clock_s()
        with self._lock:
            study = self._study
            study.states[number] = _RUNS
            study.running[number] = now_s
            if study.first_began_s is None:
                study.first_began_s, study.done_before = now_s, study.done
            if self._simulates_since_s is None:
                self._simulates_since_s = now_s
            self._doing = "simulating"

    def put_back(self, number: int) -> None:
        """The simulation of a point was lost; it waits again."""
        with self._lock:
            self._study.states[number] = _WAITS
            self._study.running.pop(number, None)

    def finish(self, number: int, finished: Finished) -> None:
        """A point is done."""
        with self._lock:
            study = self._study
            study.running.pop(number, None)
            violates = finished.state != FAILED and bool(finished.sums.get("violations"))
            study.states[number] = _VIOLATES if violates else _LETTERS[finished.state]
            self._states[finished.state] += 1
            self._sums.update(finished.sums)
            if finished.state == SIMULATED:
                self._instructions += finished.instructions
            row = {
                "name": study.names[number],
                "state": finished.state,
                "seconds": finished.seconds,
                "command": finished.command,
                "counters": dict(finished.counters),
                "problem": finished.problem,
                "violates": violates,
            }
            self._recent.appendleft(row)
            if (violates or finished.problem is not None) and len(self._failures) < _FAILURES_MAX:
                self._failures.append(row)

    def count(self, done: int, total: int | None) -> None:
        """The number done and the total; None if a budget of time is the limit."""
        with self._lock:
            self._study.done, self._study.total = done, total

    def end(self, how: str) -> None:
        """The command has `finished`, `failed` or was `interrupted`."""
        with self._lock:
            self._ended = how

    def document(self, sent: Sent) -> tuple[dict[str, Any], Sent]:
        """Returns the state, with the names of points that were not sent, and what is sent with it."""
        now_s = self._clock_s()
        with self._lock:
            study = self._study
            first = sent.names if sent.study == study.number else 0
            running = [
                {"name": study.names[number], "seconds": now_s - since_s}
                for number, since_s in list(study.running.items())[:_RUNNING_MAX]
            ]
            document = {
                "command": self._command,
                "study": study.number,
                "name": study.name,
                "doing": self._doing,
                "ended": self._ended,
                "unit": study.unit,
                "done": study.done,
                "total": study.total,
                "elapsed_s": now_s - self._began_s,
                "left_s": None if self._ended else _left_s(study, now_s),
                "mips": self._mips(now_s),
                "states": "".join(study.states),
                "first_name": first,
                "names": study.names[first:],
                "counts": dict(self._states),
                "running_points": len(study.running),
                "running": running,
                "sums": dict(self._sums),
                "recent": list(self._recent),
                "failures": list(self._failures),
            }
            return document, Sent(study.number, len(study.names))

    def _mips(self, now_s: float) -> float | None:
        """Returns million instructions of simulated points per second since the first one began."""
        if self._simulates_since_s is None or not self._instructions or now_s <= self._simulates_since_s:
            return None
        return self._instructions / (now_s - self._simulates_since_s) / 1e6


def _left_s(study: _Study, now_s: float) -> float | None:
    """Returns the time left by the rate since the first simulation began, or of the budget; None if unknown."""
    if study.limit_s is not None:
        return max(study.limit_s - (now_s - study.began_s), 0.0)
    # A campaign of random machines has no points.
    since_s = study.first_began_s if study.names else study.began_s
    simulated = study.done - study.done_before
    if study.total is None or since_s is None or simulated <= 0:
        return None
    return (now_s - since_s) / simulated * max(study.total - study.done, 0)
