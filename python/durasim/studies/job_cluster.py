"""Dask workers as jobs of Slurm, PBS or LSF, with a scheduler in this process and certificates for one study."""

from __future__ import annotations

import contextlib
import logging
import math
import shutil
import sys
from queue import SimpleQueue
from typing import Any

import dask.config
import dask_jobqueue
from distributed import Client
from distributed.security import Security

from durasim.errors import HostIoError
from durasim.store.location import default_path

_SYSTEMS = {
    "slurm": (dask_jobqueue.SLURMCluster, "sbatch"),
    "pbs": (dask_jobqueue.PBSCluster, "qsub"),
    "lsf": (dask_jobqueue.LSFCluster, "bsub"),
}
_MEMORY_MIN_BYTES = 2 * 2**30
"""Memory of a job of small simulations, if the configuration of dask-jobqueue has none."""
_OF_WORKER_BYTES, _STEP_BYTES = 512 * 2**20, 256 * 2**20
"""Memory of a worker process of Dask, and the unit of the memory of a job."""
_MARGIN = 1.5
"""The estimate is that of one functional run. A simulation also has caches, and Dask ends a worker at 95 %."""
_NAME, _DEFAULT_NAME = "durasim", "dask-worker"
"""Name of a job, unless the configuration has another one than that of dask-jobqueue."""
_FAILURES_ALLOWED = 2
"""A task fails if it loses its worker once more."""
_WAIT_S = 24 * 3600.0
"""Longest wait for the first job to start, unless `--wait` gives another."""
_WITHOUT_PAGES = "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES=[]"


def _noting(job: Any, submitted: SimpleQueue[str | None]) -> Any:
    """Returns a class of jobs that reports each submission: None, or its error, which Dask would only log."""

    class NotingJob(job):
        async def start(self) -> None:
            try:
                await super().start()
            except Exception as error:
                submitted.put(str(error))
                raise
            submitted.put(None)

    return NotingJob


def _memory_of_job(memory_bytes: int) -> int:
    """Returns the memory of a job, in bytes, from the expected memory of a simulation."""
    needed = _MARGIN * memory_bytes + _OF_WORKER_BYTES
    return max(_MEMORY_MIN_BYTES, math.ceil(needed / _STEP_BYTES) * _STEP_BYTES)


class JobCluster:
    """Workers in jobs of one core each. Queue, account and so on are those of dask-jobqueue's configuration."""

    def __init__(self, system: str, jobs: int, wait_s: float | None = None) -> None:
        """`system` is the name of a batch system, `jobs` the number of jobs."""
        self.name, self.jobs = system, jobs
        self.wait_s = _WAIT_S if wait_s is None else wait_s
        self._cluster: Any = None

    @property
    def without_worker(self) -> str:
        """The sentence if no job starts."""
        return (
            f"no job has started a worker within {self.wait_s / 60:g} minutes, and the jobs are cancelled: "
            "--wait MINUTES waits longer"
        )

    def start(self, memory_bytes: int) -> None:
        """Starts a scheduler and submits the jobs, with memory for simulations of `memory_bytes` each.

        Raises:
            HostIoError: The batch system does not take them.
        """
        for name in ("distributed", "tornado.application"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        kind, command = _SYSTEMS[self.name]
        if shutil.which(command) is None:
            raise HostIoError(f"{self.name}: there is no command {command} here: run durasim where jobs are submitted")
        try:
            submitted: SimpleQueue[str | None] = SimpleQueue()
            with dask.config.set({"distributed.scheduler.http.routes": []}):
                self._cluster = kind(job_cls=_noting(kind.job_cls, submitted), **self.options(memory_bytes))
            self._cluster.scale(jobs=self.jobs)
            problems = [problem for _ in range(self.jobs) if (problem := submitted.get()) is not None]
        except (RuntimeError, ValueError, OSError) as error:
            problems = [str(error)]
        if problems:
            self.stop()
            raise HostIoError(f"{self.name}: the jobs cannot be submitted: {' '.join(problems[0].split())}")
        print(f"durasim: {self.name}: {self.jobs} jobs submitted, waiting for workers", file=sys.stderr)

    def options(self, memory_bytes: int) -> dict[str, Any]:
        """Returns the options of jobs that simulate with so much memory.

        The files with certificates are readable by this user alone.
        """
        section = f"jobqueue.{self.name}"
        folder = dask.config.get(f"{section}.shared-temp-directory", None)
        if folder is None:
            path = default_path().parent
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = str(path)
        given = dask.config.get(f"{section}.scheduler-options", None) or {}
        prologue = dask.config.get(f"{section}.job-script-prologue", None) or []
        extra = dask.config.get(f"{section}.worker-extra-args", None) or []
        name = dask.config.get(f"{section}.name", None)
        return {
            "cores": 1,
            "processes": 1,
            "memory": dask.config.get(f"{section}.memory", None) or f"{_memory_of_job(memory_bytes)}B",
            "security": Security.temporary(),
            "shared_temp_directory": folder,
            "job_name": _NAME if name in (None, _DEFAULT_NAME) else name,
            "job_script_prologue": [*prologue, f"export {_WITHOUT_PAGES}"],
            "worker_extra_args": [*extra, "--no-dashboard"],
            "scheduler_options": {
                "dashboard": False,
                "dashboard_address": ":0",
                "allowed_failures": _FAILURES_ALLOWED,
                **given,
            },
        }

    def connect(self) -> Client:
        """Returns a new connection."""
        try:
            return Client(self._cluster, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise HostIoError(f"{self.name}: the scheduler of the jobs does not answer: {error}") from None

    def stop(self) -> None:
        """Cancels the jobs and ends the scheduler."""
        if self._cluster is not None:
            # Dask asserts that all jobs were submitted.
            with contextlib.suppress(AssertionError, OSError, TimeoutError):
                self._cluster.close()
            self._cluster = None
