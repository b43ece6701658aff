"""Worker processes that end together with their parent, even if the parent is killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection


@contextlib.contextmanager
def worker_processes(wanted: int | None = None) -> Iterator[tuple[ProcessPoolExecutor, int]]:
    """Returns a pool of processes, one per core of this computer if their number is not given, and their number.

    Each worker watches a pipe whose other end only this process holds. The kernel closes that end when the process
    ends, even after kill -9, and so does an error or Ctrl-C here; then the workers end at once. A signal at the
    parent's death (PR_SET_PDEATHSIG) would not be enough: it exists only on Linux, is sent when the thread that
    started the worker ends, and is not sent while the parent lives.
    """
    number = wanted or os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    with reader, ProcessPoolExecutor(number, mp_context=context, initializer=_watch, initargs=(reader,)) as pool:
        try:
            _start(pool, number)
            yield pool, number
        except BaseException:
            writer.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            writer.close()


def _start(pool: ProcessPoolExecutor, number: int) -> None:
    """Starts all workers with Ctrl-C blocked: a terminal sends it to all processes, and the parent handles it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # A process inherits blocked signals. Starting takes long enough that no worker is idle for the next task.
        for _ in range(number):
            pool.submit(_nothing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing() -> None:
    """An empty task, which makes the pool start a worker."""


def _watch(parent: Connection) -> None:
    """Prepares a worker process to end when the pipe is closed."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        # No data are sent: this returns when the last writer has closed the pipe.
        parent.recv_bytes()
    os._exit(1)
