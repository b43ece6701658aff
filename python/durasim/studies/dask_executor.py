"""An executor whose workers belong to a Dask scheduler, on this computer or others.

Dask places tasks, watches workers and repeats the tasks of a worker that ends. This module sends files to workers,
refuses workers of another build, and begins again if the scheduler was restarted.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from distributed import Client, Future, KilledWorker

from durasim import _core
from durasim.documents.toml_files import schema_named, validate
from durasim.errors import DurasimError, HostIoError, host_io
from durasim.studies import dask_worker
from durasim.studies.cluster import Cluster
from durasim.studies.contents import Contents, hashes_of
from durasim.studies.executor import Answer
from durasim.studies.tasks import simulator

ATTEMPTS_MAX = 3
"""Attempts for a task that ends with an error of its worker, such as a full disk."""
_TRANSFERS_MAX = 4
"""Files that are sent at the same time."""
_CHUNK_BYTES = 8 * 2**20
_POLL_S = 1.0
_GREETING_S = 30.0
"""Longest wait for the first workers to say which build they have; one that takes longer may be used later."""
_RECONNECT_S = 300.0
"""Longest time without a scheduler, or with a scheduler that has lost all workers."""
_REQUESTS_MAX = 10
"""Times that a process may lack files of one task; more than one if others send or remove them at the same time."""
_LONGEST_S = 10**9
"""Priority of a task with unknown time: before all others."""


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker of the right build: the threads that simulate, and the memory for each; 0 if it has no limit."""

    threads: int
    memory_bytes: int


@dataclass
class _Running:
    """A submitted task."""

    number: int
    text: str
    task: Mapping[str, Any]
    future: Future | None = None
    awaited: set[tuple[str, str]] = field(default_factory=set)
    """Files, each with its session, that are being sent to its worker."""
    sent_to: tuple[str, str] = ("", "")
    """The last worker to which files were sent for it, and the session of its process."""
    requests: int = 0
    """Number of times that this process lacked a file of the task."""
    ended: int = 0
    """Number of worker processes that ended after files were sent to them for it."""


class DaskCluster:
    """Simulates tasks with the workers of a Dask scheduler."""

    def __init__(self, cluster: Cluster, memory_bytes: int = 0) -> None:
        """`memory_bytes` is the expected memory of a simulation; 0 if unknown."""
        self._cluster, self._memory_bytes = cluster, memory_bytes
        self._contents = Contents()
        self._accepted: dict[str, _Worker] = {}
        self._greeted: set[str] = set()
        self._refused: set[str] = set()
        self._running: dict[str, _Running] = {}
        self._sending: set[tuple[str, str]] = set()
        self._sent: set[tuple[str, str]] = set()
        self._events: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._ready: list[Answer] = []
        self._sender = uuid.uuid4().hex
        self._transfers = threading.BoundedSemaphore(_TRANSFERS_MAX)
        self._next_look_s = 0.0
        self._has_begun = False
        self._alone_since_s: float | None = None
        self._client: Client

    @property
    def capacity(self) -> int:
        """Number of tasks to submit at a time: one per thread of all workers, so that one that ends loses few."""
        threads = sum(worker.threads for worker in self._accepted.values())
        return max(1, min(threads, self._cluster.jobs or threads))

    def submit(self, number: int, task: str) -> None:
        """Begins a task."""
        described = json.loads(task)
        try:
            files = self._contents.of(described["request"])
        except DurasimError as error:
            self._ready.append(Answer(number, None, given_up=str(error)))
            return
        described |= {"files": files}
        self._start(_Running(number, json.dumps(described), described))

    def _start(self, running: _Running, worker: str | None = None) -> None:
        """Submits a task, for a worker that has its files if one is given."""
        expects = running.task["expects"]
        able = self._able(expects["memory_bytes"])
        if self._accepted and not able:
            largest = max(each.memory_bytes for each in self._accepted.values()) // 2**20
            problem = f"it is expected to use {expects['memory_bytes'] // 2**20} MiB, and no worker may use more than"
            self._ready.append(Answer(running.number, None, given_up=f"{problem} {largest} MiB for each thread"))
            return
        chosen = [worker] if worker in self._accepted else able
        if self._client.status == "closed":
            self._ready.append(Answer(running.number, None, is_blameless=True))
            return
        is_free = len(chosen) == len(self._accepted) and not self._refused
        key = f"durasim-{uuid.uuid4().hex}"
        seconds = expects["seconds"]
        running.future = self._client.submit(
            dask_worker.answer,
            running.text,
            key=key,
            pure=False,
            retries=ATTEMPTS_MAX - 1,
            priority=_LONGEST_S if seconds is None else seconds,
            workers=None if is_free else chosen,
            allow_other_workers=not is_free,
        )
        self._running[key] = running
        running.future.add_done_callback(lambda done: self._events.put(("done", done.key)))

    def _able(self, memory_bytes: int) -> list[str]:
        """Returns the workers whose memory suffices for a task."""
        return [name for name, worker in self._accepted.items() if not 0 < worker.memory_bytes < memory_bytes]

    def answers(self) -> list[Answer]:
        """Waits for an answer.

        Raises:
            HostIoError: There is no scheduler or no worker any more.
        """
        if time.monotonic() >= self._next_look_s:
            self._look()
        while not self._ready:
            if time.monotonic() >= self._next_look_s:
                self._look()
            try:
                self._take(*self._events.get(timeout=_POLL_S))
                while True:
                    self._take(*self._events.get_nowait())
            except Empty:
                continue
        found, self._ready = self._ready, []
        return found

    def _take(self, event: str, about: Any) -> None:
        if event == "done" and (running := self._running.pop(about, None)) is not None:
            self._finish(running)
        elif event == "sent":
            self._go_on(*about)
        elif event == "greeted":
            self._hear(*about)
        elif event == "left":
            self._greeted.discard(about)

    def _finish(self, running: _Running) -> None:
        future = running.future
        if future is None or future.status not in ("finished", "error"):
            # The scheduler was lost, and with it all that it has in progress.
            self._ready.append(Answer(running.number, None, is_blameless=True))
            return
        try:
            text = future.result(timeout=_GREETING_S)
            found = json.loads(text)
            validate(found, schema_named("answer"), "answer")
            if running.task["kind"] == "run" and "document" in found:
                validate(found["document"], _result_schema(), "answer")
        except KilledWorker as killed:
            problem = f"its worker process ended {killed.allowed_failures + 1} times"
            self._ready.append(Answer(running.number, None, given_up=problem))
        except DurasimError as error:
            self._ready.append(Answer(running.number, None, given_up=f"the answer of its worker is refused: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever a worker raises is the problem of one point
            if future.status != "error" and isinstance(error, TimeoutError | OSError | CancelledError):
                # The worker ended between its answer and our question.
                self._ready.append(Answer(running.number, None, is_blameless=True))
                return
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            self._ready.append(
                Answer(running.number, None, given_up=f"its worker failed {ATTEMPTS_MAX} times: {problem}")
            )
        else:
            self._judge(running, found, text)

    def _judge(self, running: _Running, found: Mapping[str, Any], text: str) -> None:
        if "missing" in found:
            self._send(running, found["worker"], found["session"], found["missing"])
        elif "other_build" in found:
            self._refuse(found["worker"], found["other_build"])
            self._start(running)
        else:
            self._ready.append(Answer(running.number, text))

    def _send(self, running: _Running, worker: str, session: str, missing: list[str]) -> None:
        """Sends files that a task needs, each once to a worker. The task waits for them."""
        if running.sent_to != (worker, session):
            # Dask counts the processes that a task ends only until the task asks the next one for its files.
            running.ended += running.sent_to[0] != "" and not self._is_present(running.sent_to[0])
            running.sent_to, running.requests = (worker, session), 0
        if running.ended >= ATTEMPTS_MAX:
            problem = f"its worker process ended {running.ended} times"
            self._ready.append(Answer(running.number, None, given_up=problem))
            return
        running.requests += 1
        if running.requests > _REQUESTS_MAX or not set(missing) <= hashes_of(running.task["files"]):
            problem = f"{worker}: the worker does not keep the files that it receives"
            self._ready.append(Answer(running.number, None, given_up=problem))
            return
        running.awaited = {(session, content) for content in missing} - self._sent
        if not running.awaited:
            # They arrived after the worker had looked.
            self._start(running, worker)
            return
        self._running[f"waits-{uuid.uuid4().hex}"] = running
        for name in running.awaited - self._sending:
            self._sending.add(name)
            _in_background(self._transfer, worker, *name)

    def _is_present(self, worker: str) -> bool:
        try:
            return worker in self._client.scheduler_info()["workers"]
        except (OSError, TimeoutError):
            return worker in self._accepted

    def _transfer(self, worker: str, session: str, content: str) -> None:
        problem, is_sent = None, False
        try:
            with self._transfers, Path(self._contents.paths[content]).open("rb") as file:
                offset = 0
                while (data := file.read(_CHUNK_BYTES)) or offset == 0:
                    self._client.run(dask_worker.receive, content, self._sender, offset, data, workers=[worker])
                    offset += len(data) or 1
            self._client.run(dask_worker.finish, content, self._sender, workers=[worker])
            is_sent = True
        except HostIoError as error:
            problem = str(error)
        except Exception:  # noqa: BLE001 - the worker has ended, or left: the task goes to another one
            problem = None
        self._events.put(("sent", (worker, (session, content), is_sent, problem)))

    def _go_on(self, worker: str, name: tuple[str, str], is_sent: bool, problem: str | None) -> None:
        """Submits the tasks for which a file was the last to be sent."""
        self._sending.discard(name)
        if is_sent:
            self._sent.add(name)
        for key, running in list(self._running.items()):
            if name not in running.awaited:
                continue
            running.awaited.discard(name)
            if problem is not None:
                del self._running[key]
                self._ready.append(Answer(running.number, None, given_up=problem))
            elif not running.awaited:
                del self._running[key]
                self._start(running, worker)

    def _look(self) -> None:
        """Looks for new workers, and for a scheduler that was lost."""
        self._next_look_s = time.monotonic() + _POLL_S
        if self._client.status != "running":
            self._reconnect()
        try:
            workers = self._client.scheduler_info()["workers"]
        except (OSError, TimeoutError):
            return
        for key, running in list(self._running.items()):
            if running.future is not None and running.future.status in ("cancelled", "lost"):
                self._events.put(("done", key))
        self._accepted = {name: worker for name, worker in self._accepted.items() if name in workers}
        self._greeted &= workers.keys()
        for name, described in workers.items():
            if name not in self._greeted:
                self._greeted.add(name)
                _in_background(self._greet, self._client, name, int(described["nthreads"]), described["memory_limit"])
        self._end_if_alone()

    def _greet(self, client: Client, name: str, threads: int, memory_bytes: int | None) -> None:
        """Asks a worker for its build, beside the tasks that it simulates."""
        worker = _Worker(threads, int(memory_bytes or 0) // threads)
        try:
            build = client.run(dask_worker.greet, workers=[name])[name]
        except (OSError, TimeoutError, CancelledError, KeyError):
            # It has left, or the scheduler has: it is asked again if it comes back.
            self._events.put(("left", name))
        except Exception:  # noqa: BLE001 - whatever the import of durasim raises there
            self._events.put(("greeted", (name, None, worker)))
        else:
            self._events.put(("greeted", (name, str(build), worker)))

    def _hear(self, name: str, build: str | None, worker: _Worker) -> None:
        if name not in self._greeted:
            return
        if build == simulator():
            self._accepted[name] = worker
        else:
            self._refuse(name, build)

    def _refuse(self, name: str, build: str | None) -> None:
        """Excludes a worker, with a warning. At the begin the study ends."""
        self._refused.add(name)
        self._accepted.pop(name, None)
        problem = _problem_of(name, build)
        if not self._has_begun:
            raise HostIoError(problem)
        print(f"durasim: warning: {problem}; it gets no points", file=sys.stderr)

    def _end_if_alone(self) -> None:
        """Ends the study if all workers have left and none has come for some time."""
        if self._accepted:
            self._alone_since_s = None
            return
        self._alone_since_s = self._alone_since_s or time.monotonic()
        if time.monotonic() - self._alone_since_s > _RECONNECT_S:
            raise HostIoError(f"{self._cluster.name}: all workers have ended: the same command resumes the study")

    def _reconnect(self) -> None:
        print(f"durasim: warning: {self._cluster.name}: connection lost, trying again", file=sys.stderr)
        deadline_s = time.monotonic() + _RECONNECT_S
        while self._client.status == "connecting" and time.monotonic() < deadline_s:
            time.sleep(_POLL_S / 10)
        while self._client.status != "running":
            self._client.close(timeout=_POLL_S)
            try:
                self._client = self._cluster.connect()
            except DurasimError:
                if time.monotonic() > deadline_s:
                    raise
        self._accepted, self._greeted, self._refused = {}, set(), set()
        self._sending.clear()
        for key, running in self._running.items():
            running.future = None
            self._events.put(("done", key))

    def __enter__(self) -> Self:
        """Connects, and waits for workers.

        Raises:
            HostIoError: There is no scheduler, no worker, or a worker of another build.
        """
        self._cluster.start(self._memory_bytes)
        try:
            self._client = self._cluster.connect()
            self._await_workers()
            self._has_begun = True
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def _await_workers(self) -> None:
        deadline_s = time.monotonic() + self._cluster.wait_s
        while True:
            self._look()
            while not self._events.empty():
                self._take(*self._events.get_nowait())
            if self._accepted and (len(self._accepted) == len(self._greeted) or time.monotonic() > deadline_s):
                return
            if time.monotonic() > deadline_s:
                raise HostIoError(f"{self._cluster.name}: {self._cluster.without_worker}")
            if self._accepted:
                deadline_s = min(deadline_s, time.monotonic() + _GREETING_S)
            time.sleep(_POLL_S / 10)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        client = getattr(self, "_client", None)
        try:
            if client is not None:
                if client.status == "running":
                    futures = [running.future for running in self._running.values() if running.future is not None]
                    client.cancel(futures, force=True)
                client.close(timeout=_POLL_S)
        except (OSError, TimeoutError) as problem:
            raise host_io(self._cluster.name, OSError(0, str(problem))) from None
        finally:
            self._cluster.stop()


def _in_background(function: Callable[..., None], *arguments: Any) -> None:
    """Calls a function in a thread that does not keep the process alive: a worker may never answer."""
    threading.Thread(target=function, args=arguments, daemon=True).start()


@cache
def _result_schema() -> Any:
    """Returns the schema of the result of a run as the Rust core writes it: its statistics are not a tree yet."""
    schema = schema_named("run")
    return {**schema, "properties": {**schema["properties"], "stats": {"type": "object"}}}


def _problem_of(name: str, build: str | None) -> str:
    if build is None:
        return f"{name}: the worker cannot import durasim: install durasim {_core.__version__} there"
    return (
        f"{name}: the worker has another build of durasim ({build}, here {simulator()}): install the build that "
        "`durasim --version` prints here"
    )
