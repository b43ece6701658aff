"""durasim: an execution-driven, cycle-level simulator of RISC-V machines with persistent memory.

>>> import durasim as ds
>>> result = ds.run(design="hercules", workload="btree", ops=1000)
>>> table = ds.compare(designs=["opt", "hercules"], workloads=["btree"])
>>> verdict = ds.crash(design="hercules", workload="btree", machine="tiny", points=300)
"""

from durasim._core import __version__
from durasim.api import (
    check_designs,
    compare,
    crash,
    crash_campaign,
    designs,
    machine_schema,
    machine_toml,
    machines,
    measure_workload,
    run,
    suite_members,
    workloads,
)
from durasim.difference import Difference, diff
from durasim.errors import ConfigError, DurasimError, GuestFault, HostIoError, InternalError, StuckError
from durasim.results import CrashFailure, CrashResult, RunResult, TxLines, TxProfile
from durasim.stats import Stat, StatTree

__all__ = [
    "ConfigError",
    "CrashFailure",
    "CrashResult",
    "Difference",
    "DurasimError",
    "GuestFault",
    "HostIoError",
    "InternalError",
    "RunResult",
    "Stat",
    "StatTree",
    "StuckError",
    "TxLines",
    "TxProfile",
    "__version__",
    "check_designs",
    "compare",
    "crash",
    "crash_campaign",
    "designs",
    "diff",
    "machine_schema",
    "machine_toml",
    "machines",
    "measure_workload",
    "run",
    "suite_members",
    "workloads",
]
