"""Runs studies: answers points from the store, simulates the others, and stores each answer at once."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim import _core
from durasim.crashes.crash_request import finish_crash
from durasim.documents.metrics import crash_metrics, run_metrics
from durasim.documents.results import CrashResult, RunResult
from durasim.documents.summaries import POINT_METRICS
from durasim.documents.sweep import SCHEMA, PointResult, SweepResult
from durasim.errors import ConfigError
from durasim.programs.workload_tables import unchanged_sources
from durasim.runs.scenario import design_variants
from durasim.store.database import Store, digest_of
from durasim.store.keys import Keys
from durasim.studies.estimates import Estimates
from durasim.studies.executor import Answer, Executor
from durasim.studies.notes import Evidence, evidence_of, notes
from durasim.studies.population import Populations, populations
from durasim.studies.prepared import Prepared, prepare
from durasim.studies.refine import Bisections
from durasim.studies.study import Point, Study, refuse_many
from durasim.studies.tasks import Expected, task_text
from durasim.watch import FAILED, REUSED, SIMULATED, UNWATCHED, Finished, Watch

Progress = Callable[[int, int], None]
"""Called with the points done and the total, which grows while an axis is bisected."""
See = Callable[[int, Mapping[str, Any]], None]
"""Called with the number of a point, in the order of the points, and its document."""
ATTEMPTS_MAX = 3
"""Attempts for a point whose worker process ends without an answer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a point, and the evidence for notes."""

    result: PointResult
    evidence: Evidence | None


class StudyRun:
    """One run of a study."""

    def __init__(
        self,
        study: Study,
        store: Store | None,
        progress: Progress,
        *,
        yes: bool = False,
        check: Callable[[Mapping[str, Any]], None] | None = None,
        see: See | None = None,
        watch: Watch = UNWATCHED,
    ) -> None:
        """Begins a run.

        Args:
            study: The study.
            store: The store of results, or None.
            progress: Called with the points done and the total.
            yes: Whether a study with very many points may run.
            check: Refuses requests that the workers cannot simulate; given if they are on other computers. Then the
                cost of each point is estimated, and long ones are simulated first.
            see: Called with each document, simulated or stored, for what its metrics do not contain.
            watch: Is notified of each point.
        """
        refuse_many(study, yes=yes)
        self._check = check
        self._expected: dict[int, Expected] = {}
        self.memory_bytes = 0
        """Expected memory of a simulation, known when workers on other computers are started; 0 before."""
        self._study, self._store, self._progress, self._see = study, store, progress, see
        self._watch = watch
        self._keys = Keys()
        self._outcomes: list[Outcome | None] = []
        self._prepared: list[Prepared] = []
        self._done = 0
        self._populations: Populations | None = None

    def run(self, executor: Callable[[], Executor], populating: Callable[[], Executor] | None = None) -> SweepResult:
        """Simulates all points that are not stored and returns the result of the study.

        Args:
            executor: Starts the workers.
            populating: Starts workers that can write snapshots to the store; `executor` if None.

        Raises:
            ConfigError: A point is refused before any is simulated.
            HostIoError: The store cannot be written.
            ToolchainError: A guest program cannot be built.
        """
        self._watch.begin_study(self._study.name, "points")
        bisections = None if self._study.refinement is None else Bisections(self._study)
        try:
            with (
                unchanged_sources(),
                populations(self._study, self._store, populating or executor) as self._populations,
            ):
                self._run_all(executor, bisections)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(self.kept())
            raise
        return self._result(bisections)

    def _run_all(self, executor: Callable[[], Executor], bisections: Bisections | None) -> None:
        waiting = self._add(self._study.points())
        self._reuse(waiting)
        while waiting:
            if unanswered := [number for number in waiting if self._outcomes[number] is None]:
                self._estimate(unanswered)
                with executor() as workers:
                    while waiting:
                        self._simulate(workers, [n for n in waiting if self._outcomes[n] is None])
                        waiting = self._next(bisections)
            else:
                waiting = self._next(bisections)

    @property
    def prepared(self) -> Sequence[Prepared]:
        """All points up to now, in the order of the numbers that `see` gets."""
        return tuple(self._prepared)

    @property
    def unanswered(self) -> int:
        """Number of points that are neither in the store nor simulated yet."""
        return self._outcomes.count(None)

    def kept(self) -> str:
        """Describes what remains of an interrupted study."""
        done = f"{self._done} of {len(self._prepared)} points were done"
        if self._store is None:
            return f"{done}, and their results are lost: without --no-store they are kept"
        return f"{done}, and their results are kept in {self._store.path}: the same command resumes the study"

    def _next(self, bisections: Bisections | None) -> list[int]:
        """Adds the points that a bisection asks for next, answers those that are stored, and returns all of them."""
        if bisections is None:
            return []
        results = [outcome.result for outcome in self._outcomes if outcome is not None]
        added = self._add(bisections.next_points(results))
        self._reuse(added)
        return added

    def _add(self, points: Sequence[Point]) -> list[int]:
        started = points if self._populations is None else self._populations.start(list(points))
        prepared = [prepare(point, self._keys) for point in started]
        for each in prepared if self._check is not None else ():
            self._check(each.request)
        first = len(self._prepared)
        self._prepared += prepared
        self._outcomes += [None] * len(prepared)
        self._watch.add([_name_of(point.point) for point in prepared])
        self._watch.count(self._done, len(self._prepared))
        return list(range(first, len(self._prepared)))

    def _reuse(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._answer_from_store(number)

    def _answer_from_store(self, number: int) -> bool:
        prepared = self._prepared[number]
        document = None if self._store is None else self._store.get(prepared.key)
        # A campaign keeps errors; here the point fails again.
        if document is None or "error" in document:
            return False
        seconds = float(document["host"]["seconds"])
        self._finish(number, self._seen(number, document, REUSED, seconds))
        return True

    def _simulate(self, workers: Executor, numbers: Sequence[int]) -> None:
        """Simulates points. Those in progress when a worker process ends are tried again one at a time."""
        fresh, suspects, running = deque(self._longest_first(numbers)), deque[int](), set[int]()
        attempts: Counter[int] = Counter()
        while True:
            for number in _to_begin(fresh, suspects, running, 1 if running & attempts.keys() else workers.capacity):
                # Another study may have stored it meanwhile.
                if not self._answer_from_store(number):
                    prepared = self._prepared[number]
                    workers.submit(number, task_text(prepared.point.kind, prepared.request, self._expected.get(number)))
                    running.add(number)
                    self._watch.begin(number)
            if not running:
                return
            is_alone = len(running) == 1
            found = workers.answers()
            running.difference_update(answer.number for answer in found)
            self._take_all([answer for answer in found if answer.text is not None])
            for answer in found:
                if answer.text is not None:
                    continue
                if answer.given_up is not None:
                    self._finish(answer.number, _failed(self._prepared[answer.number], answer.given_up, 0.0))
                    continue
                self._watch.put_back(answer.number)
                if answer.is_blameless:
                    fresh.appendleft(answer.number)
                    continue
                # A process that ends beside others says nothing about this point.
                attempts[answer.number] += is_alone
                if attempts[answer.number] < ATTEMPTS_MAX:
                    suspects.append(answer.number)
                else:
                    problem = f"its worker process was killed {ATTEMPTS_MAX} times"
                    self._finish(answer.number, _failed(self._prepared[answer.number], problem, 0.0))

    def _take_all(self, answers: Sequence[Answer]) -> None:
        """Takes results. The disk is synced once for those that have come together."""
        with self._store.together() if self._store is not None and len(answers) > 1 else contextlib.nullcontext():
            for answer in answers:
                self._take(answer)

    def _estimate(self, numbers: Sequence[int]) -> None:
        """Estimates the cost of points on other computers."""
        if self._check is None:
            return
        estimates = Estimates([] if self._store is None else self._store.entries())
        seconds = {number: estimates.seconds(self._prepared[number]) for number in numbers}
        self.memory_bytes = max(self.memory_bytes, estimates.memory_bytes)
        for number in numbers:
            self._expected[number] = Expected(self.memory_bytes, seconds[number])

    def _longest_first(self, numbers: Sequence[int]) -> Sequence[int]:
        """Returns points on other computers with the longest, or unknown, first."""
        if self._check is None:
            return numbers
        self._estimate([number for number in numbers if number not in self._expected])

        def expected_s(number: int) -> float:
            seconds = self._expected[number].seconds
            return math.inf if seconds is None else seconds

        return sorted(numbers, key=expected_s, reverse=True)

    def _take(self, answer: Answer) -> None:
        prepared, found = self._prepared[answer.number], json.loads(answer.text or "")
        if "error" in found:
            self._finish(answer.number, _failed(prepared, found["error"], found["seconds"]))
            return
        document, seconds = found["document"], found["seconds"]
        if self._keys.of(prepared.point.kind, prepared.request) != prepared.key:
            problem = "a file that it reads changed during the study: run the study again"
            self._finish(answer.number, _failed(prepared, problem, seconds))
            return
        try:
            outcome = self._seen(answer.number, document, SIMULATED, seconds)
        except ConfigError as error:
            self._finish(answer.number, _failed(prepared, f"the answer of its worker is refused: {error}", seconds))
            return
        if self._store is not None:
            self._store.put(
                prepared.key, prepared.point.kind, prepared.request, document,
                seconds=seconds, command=prepared.command, study=self._study.name,
            )  # fmt: skip
        self._finish(answer.number, outcome)

    def _seen(self, number: int, document: Mapping[str, Any], state: str, seconds: float) -> Outcome:
        if self._see is not None:
            self._see(number, document)
        return _outcome(self._prepared[number], document, state, seconds)

    def _finish(self, number: int, outcome: Outcome) -> None:
        self._outcomes[number] = outcome
        self._done += 1
        self._watch.finish(number, _finished(outcome.result, self._study.kind))
        self._watch.count(self._done, len(self._prepared))
        self._progress(self._done, len(self._prepared))

    def _result(self, bisections: Bisections | None) -> SweepResult:
        outcomes = [outcome for outcome in self._outcomes if outcome is not None]
        if bisections is not None:
            outcomes.sort(key=lambda outcome: bisections.place(outcome.result))
        results = [outcome.result for outcome in outcomes]
        states = Counter(result.state for result in results)
        return SweepResult(
            schema=SCHEMA,
            durasim_version=_core.__version__,
            name=self._study.name,
            kind=self._study.kind,
            axes=tuple(self._study.axes),
            points=tuple(results),
            simulated=states[SIMULATED],
            reused=states[REUSED],
            failed=states[FAILED],
            notes=tuple(notes(self._study, [(outcome.result, outcome.evidence) for outcome in outcomes])),
            refined=() if bisections is None else tuple(bisections.refined(results)),
        )


def _to_begin(fresh: deque[int], suspects: deque[int], running: set[int], capacity: int) -> Iterator[int]:
    """Yields the points to begin now: a suspect alone, or fresh ones up to the capacity."""
    while suspects and not running:
        yield suspects.popleft()
    # A point from the store is done at once and takes no place.
    while not suspects and len(running) < capacity and fresh:
        yield fresh.popleft()


def _outcome(prepared: Prepared, document: Mapping[str, Any], state: str, seconds: float) -> Outcome:
    point = prepared.point
    result: RunResult | CrashResult
    failures, causes = (), None
    if point.crash is None:
        result = RunResult.from_dict(document)
        metrics = run_metrics(result)
    else:
        result = finish_crash(document, point.scenario, point.crash)
        metrics = crash_metrics(result)
        failures, causes = result.failures, result.causes
    hardware = str(design_variants()[point.scenario.design]["hardware"])
    return Outcome(
        PointResult(
            key=prepared.key,
            state=state,
            seconds=seconds,
            command=prepared.command,
            digest=digest_of(point.kind, document),
            values=point.values,
            metrics=metrics,
            failures=failures,
            causes=causes,
            error=None,
        ),
        evidence_of(result.stats, hardware),
    )


def _name_of(point: Point) -> str:
    """Returns the values of the axes of a point."""
    return " ".join(f"{key}={value}" for key, value in point.values.items() if value is not None)


def _finished(result: PointResult, kind: str) -> Finished:
    metrics = result.metrics
    counters = {name: metrics.get(name) for name in (*POINT_METRICS[kind], "host_mips") if name in metrics}
    is_run = kind == "run" and result.error is None
    return Finished(
        state=result.state,
        seconds=result.seconds,
        command=result.command,
        counters=counters,
        instructions=float(metrics["host_mips"]) * float(metrics["host_seconds"]) * 1e6 if is_run else 0.0,
        sums={} if kind == "run" else {name: metrics[name] for name in POINT_METRICS[kind] if name in metrics},
        problem=result.error,
    )


def _failed(prepared: Prepared, problem: str, seconds: float) -> Outcome:
    result = PointResult(
        key=prepared.key,
        state=FAILED,
        seconds=seconds,
        command=prepared.command,
        digest=None,
        values=prepared.point.values,
        metrics={},
        failures=(),
        causes=None,
        error=problem,
    )
    return Outcome(result, None)
