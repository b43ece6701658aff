"""The cluster that `--cluster` names: a running Dask scheduler, or jobs of a batch system."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import logging
import re
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from durasim.errors import HostIoError, refusal

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

BATCH_SYSTEMS = ("slurm", "pbs", "lsf")
LOCAL = "local"
"""The name of the default: processes of this computer."""
_ADDRESS = re.compile(r"(tls|tcp)://(\[[0-9A-Fa-f:.]+\]|[^\s/:@]+):([0-9]{1,5})")
_PACKAGES = ("distributed", "dask_jobqueue", "cryptography")
_CONNECT_S = 10.0
_LOAD_S = 20.0
"""Longest time to load Dask."""
_FIRST_WORKER_S = 30.0
_TLS_KEYS = ("ca-file", "client.cert", "client.key")


class Cluster(Protocol):
    """A place at which tasks are simulated.

    Attributes:
        name: Its name in messages.
        jobs: Largest number of concurrent simulations; None for all threads of all workers.
        wait_s: Longest wait for a first worker.
        without_worker: The sentence if none comes.
    """

    name: str
    jobs: int | None
    wait_s: float
    without_worker: str

    def start(self, memory_bytes: int) -> None:
        """Starts it, if it is started for one study; `memory_bytes` is the expected memory of a simulation."""

    def connect(self) -> Client:
        """Returns a new connection to its scheduler.

        Raises:
            HostIoError: No scheduler answers.
        """

    def stop(self) -> None:
        """Ends what `start` has started."""


class RunningScheduler:
    """A scheduler that runs already; its workers and their number are not changed."""

    without_worker = "the scheduler has no worker that answers: start workers first"

    def __init__(self, address: str, jobs: int | None, wait_s: float | None = None) -> None:
        """`address` is checked already."""
        self.name, self.jobs = address, jobs
        self.wait_s = _FIRST_WORKER_S if wait_s is None else wait_s

    def start(self, memory_bytes: int) -> None:  # noqa: ARG002 - its workers have their memory already
        """Does nothing except to check the certificates.

        Raises:
            ConfigError: A certificate is not configured.
            HostIoError: A certificate cannot be read.
        """
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._security()

    def connect(self) -> Client:
        """Returns a new connection."""
        security = self._security()
        made: SimpleQueue[Client | None] = SimpleQueue()

        def make() -> None:
            from distributed import Client  # noqa: PLC0415 - takes seconds to load

            try:
                made.put(Client(self.name, timeout=_CONNECT_S, security=security, set_as_default=False))
            except (OSError, TimeoutError, ValueError):
                made.put(None)

        # A program that listens there and never answers is not covered by the time limit of Dask.
        threading.Thread(target=make, daemon=True).start()
        with contextlib.suppress(Empty):
            if (client := made.get(timeout=_LOAD_S + _CONNECT_S)) is not None:
                return client
        raise HostIoError(f"{self.name}: no Dask scheduler answers within {_CONNECT_S:.0f} seconds")

    def stop(self) -> None:
        """Does nothing."""

    def _security(self) -> Security | None:
        if self.name.startswith("tcp:"):
            return None
        import dask.config  # noqa: PLC0415
        import distributed  # noqa: PLC0415, F401 - loads the defaults of its keys
        from distributed.security import Security  # noqa: PLC0415

        for key in _TLS_KEYS:
            path = dask.config.get(f"distributed.comm.tls.{key}")
            if path is None:
                variable = f"DASK_DISTRIBUTED__COMM__TLS__{key.upper().replace('.', '__').replace('-', '_')}"
                raise refusal("cluster", f"tls requires the certificates of the scheduler: set {variable} to a file")
            if not Path(path).is_file():
                raise HostIoError(f"{path}: the file for distributed.comm.tls.{key} does not exist")
        return Security(require_encryption=True)


def cluster_named(
    word: str | None, jobs: int | None, *, is_insecure: bool, wait_minutes: float | None = None
) -> Cluster | None:
    """Returns the cluster that the option `--cluster` names; None for processes of this computer.

    Args:
        word: The value of the option.
        jobs: Number of concurrent simulations.
        is_insecure: Whether an address beyond this computer may be without encryption.
        wait_minutes: Longest wait for a first worker; None for the default of the kind of cluster.

    Raises:
        ConfigError: The name or the address is refused, or Dask is not installed.
    """
    if is_insecure and not (word or "").startswith("tcp:"):
        raise refusal("insecure", "applies only to --cluster tcp://HOST:PORT")
    if word is None or word == LOCAL:
        if wait_minutes is not None:
            raise refusal("wait", "applies only to --cluster: processes of this computer start at once")
        return None
    if wait_minutes is not None and not wait_minutes > 0:
        raise refusal("wait", f"{wait_minutes:g} is not above 0 minutes")
    found = _ADDRESS.fullmatch(word)
    if found is None and word not in BATCH_SYSTEMS:
        allowed = ", ".join(("tls://HOST:PORT", "tcp://HOST:PORT", *BATCH_SYSTEMS, LOCAL))
        raise refusal("cluster", f"'{word}' is unknown (allowed: {allowed})")
    if found is not None and found[1] == "tcp" and not (is_insecure or _is_loopback(found[2])):
        problem = "would send programs and results unencrypted, and any computer could answer"
        raise refusal("cluster", f"{word} {problem}: use tls://, or add --insecure on a network that you trust")
    if any(importlib.util.find_spec(package) is None for package in _PACKAGES):
        raise refusal("cluster", "requires Dask: install it with `pip install 'durasim[cluster]'`")
    wait_s = None if wait_minutes is None else 60 * wait_minutes
    if found is not None:
        return RunningScheduler(word, jobs, wait_s)
    if jobs is None:
        raise refusal("jobs", f"is required with --cluster {word}: the number of jobs to submit")
    from durasim.studies.job_cluster import JobCluster  # noqa: PLC0415 - requires Dask

    return JobCluster(word, jobs, wait_s)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
