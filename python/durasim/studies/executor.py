"""Executors of tasks. A study submits tasks and waits for answers, wherever they are simulated."""

from __future__ import annotations

import contextlib
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from durasim.crashes.workers import worker_processes
from durasim.studies.tasks import simulate


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a task.

    Attributes:
        number: The number with which the task was submitted.
        text: The answer of `simulate`; None if the worker ended without one.
        given_up: The reason why the executor does not try the task again; None if it may be submitted again.
        is_blameless: Whether the task is certainly not the reason why there is no answer.
    """

    number: int
    text: str | None
    given_up: str | None = None
    is_blameless: bool = False


class Executor(Protocol):
    """Simulates tasks in any order and at any place. Tasks and answers are texts, so they can cross a network."""

    @property
    def capacity(self) -> int:
        """Number of tasks to submit at a time."""

    def submit(self, number: int, task: str) -> None:
        """Begins a task."""

    def answers(self) -> list[Answer]:
        """Waits until at least one submitted task has an answer, and returns all new answers."""

    def __enter__(self) -> Self:
        """Starts the workers."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Ends the workers, at once if there was an error."""


class LocalProcesses:
    """Worker processes of this computer. If one is killed, all are started again and their tasks are lost."""

    def __init__(self, jobs: int | None = None) -> None:
        """`jobs` is the number of processes; that of the cores if None."""
        self._jobs = jobs
        self._workers = contextlib.ExitStack()
        self._running: dict[Future[str], int] = {}
        self._capacity = 0
        self._pool: ProcessPoolExecutor

    @property
    def capacity(self) -> int:
        """Number of tasks to submit at a time: one per process, so that a killed process loses few."""
        return self._capacity

    def submit(self, number: int, task: str) -> None:
        """Begins a task."""
        try:
            future = self._pool.submit(simulate, task)
        except BrokenProcessPool as broken:
            # The task counts as lost, like those in progress.
            future = Future()
            future.set_exception(broken)
        self._running[future] = number

    def answers(self) -> list[Answer]:
        """Waits for an answer."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        found = []
        for future in done:
            number = self._running.pop(future)
            try:
                found.append(Answer(number, future.result()))
            except BrokenProcessPool:
                found.append(Answer(number, None))
        if any(answer.text is None for answer in found):
            found += [Answer(number, None) for number in self._running.values()]
            self._running.clear()
            self._workers.close()
            self._start()
        return found

    def _start(self) -> None:
        self._pool, self._capacity = self._workers.enter_context(worker_processes(self._jobs))

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._workers.__exit__(kind, error, at)
