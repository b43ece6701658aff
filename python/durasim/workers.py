"""Worker processes that end with the process that started them, however that ends."""

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
def worker_processes() -> Iterator[tuple[ProcessPoolExecutor, int]]:
    """Gives a pool of as many processes as this computer has cores, and their number.

    Each worker watches a pipe whose other end this process alone holds. The kernel closes that end when the process
    ends, after kill -9 too, and so does an error or Ctrl-C here; then the workers end at once, whatever they are doing.
    A signal at the parent's death (PR_SET_PDEATHSIG) would do less: it is of Linux alone, is sent when the thread ends
    that started the worker, and nobody sends it while the parent lives.
    """
    number = os.cpu_count() or 1
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
    """Starts all workers, which do not hear Ctrl-C: it reaches all processes of a terminal, and the parent decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # A process inherits what is blocked. It takes long enough to start that none is idle for the next task.
        for _ in range(number):
            pool.submit(_nothing)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing() -> None:
    """A task that starts a worker."""


def _watch(parent: Connection) -> None:
    """Prepares a worker process: it ends when the pipe is closed."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        # Nothing is ever sent: this returns when the last writer is gone.
        parent.recv_bytes()
    os._exit(1)
