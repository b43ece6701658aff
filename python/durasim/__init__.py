"""durasim: an execution-driven, cycle-level simulator of RISC-V machines with persistent memory.

>>> import durasim as ds
>>> result = ds.run(design="hercules", workload="btree", ops=1000)
>>> table = ds.compare(designs=["opt", "hercules"], workloads=["btree"])
>>> verdict = ds.crash(design="hercules", workload="btree", machine="tiny", points=300)
"""

from durasim._core import __version__
from durasim.api import (
    campaign,
    check_designs,
    compare,
    crash,
    describe_design,
    describe_machine,
    designs,
    machine_schema,
    machine_toml,
    machines,
    measure_workload,
    mutation,
    random_campaign,
    random_replay,
    run,
    suite_members,
    sweep,
    workloads,
)
from durasim.documents.difference import Difference, diff
from durasim.documents.loading import load
from durasim.documents.results import Comparison, CrashFailure, CrashResult, Provenance, RunResult, TxLines, TxProfile
from durasim.documents.stats import Stat, StatTree
from durasim.documents.sweep import PointResult, SweepResult
from durasim.errors import ConfigError, DurasimError, GuestFault, HostIoError, InternalError, StuckError
from durasim.programs import toolchain as toolchain
from durasim.studies.pareto import pareto

__all__ = [
    "Comparison",
    "ConfigError",
    "CrashFailure",
    "CrashResult",
    "Difference",
    "DurasimError",
    "GuestFault",
    "HostIoError",
    "InternalError",
    "PointResult",
    "Provenance",
    "RunResult",
    "Stat",
    "StatTree",
    "StuckError",
    "SweepResult",
    "TxLines",
    "TxProfile",
    "__version__",
    "campaign",
    "check_designs",
    "compare",
    "crash",
    "describe_design",
    "describe_machine",
    "designs",
    "diff",
    "load",
    "machine_schema",
    "machine_toml",
    "machines",
    "measure_workload",
    "mutation",
    "pareto",
    "random_campaign",
    "random_replay",
    "run",
    "suite_members",
    "sweep",
    "workloads",
]
