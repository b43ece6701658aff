"""The workers that simulate studies: processes of this computer, or those of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from durasim.studies.cluster import Cluster, cluster_named
from durasim.studies.contents import check
from durasim.studies.study_run import Progress, See, StudyRun
from durasim.watch import UNWATCHED, Watch

if TYPE_CHECKING:
    from durasim.documents.sweep import SweepResult
    from durasim.store.database import Store
    from durasim.studies.study import Study


@dataclass(frozen=True, slots=True)
class Simulators:
    """Workers of one kind; they start when a study has a point to simulate.

    Attributes:
        jobs: Number of concurrent simulations; all cores, or all threads of the cluster, if None.
        cluster: The cluster; None for processes of this computer.
    """

    jobs: int | None
    cluster: Cluster | None

    def run(
        self,
        study: Study,
        store: Store | None,
        progress: Progress,
        *,
        yes: bool = False,
        see: See | None = None,
        watch: Watch = UNWATCHED,
    ) -> SweepResult:
        """Simulates all points of a study that are not stored; see `StudyRun`.

        Raises:
            ConfigError: The study is refused before any point is simulated.
            HostIoError: The store cannot be written, or the cluster does not answer.
            ToolchainError: A guest program cannot be built.
        """
        from durasim.studies.executor import LocalProcesses  # noqa: PLC0415 - tests replace it

        cluster = self.cluster
        if cluster is None:
            local = StudyRun(study, store, progress, yes=yes, see=see, watch=watch)
            return local.run(lambda: LocalProcesses(self.jobs))
        from durasim.studies.dask_executor import DaskCluster  # noqa: PLC0415 - requires Dask

        run = StudyRun(study, store, progress, yes=yes, check=check, see=see, watch=watch)
        return run.run(lambda: DaskCluster(cluster, run.memory_bytes), populating=LocalProcesses)


def simulators(
    jobs: int | None, cluster: str | None, *, insecure: bool = False, wait_minutes: float | None = None
) -> Simulators:
    """Returns the workers that the options `--jobs`, `--cluster`, `--insecure` and `--wait` name.

    Args:
        jobs: Number of concurrent simulations.
        cluster: `tls://HOST:PORT` or `tcp://HOST:PORT` of a Dask scheduler, `slurm`, `pbs` or `lsf`; processes of this
            computer if None or `local`.
        insecure: Permits `tcp://` beyond this computer.
        wait_minutes: Longest wait for a first worker; None for the default of the kind of cluster.

    Raises:
        ConfigError: The name or the address is refused, or Dask is not installed.
    """
    return Simulators(jobs, cluster_named(cluster, jobs, is_insecure=insecure, wait_minutes=wait_minutes))
