"""durasim: an execution-driven, cycle-level simulator of RISC-V machines with persistent memory.

>>> import durasim as ds
>>> result = ds.run(design="hercules", workload="btree", ops=1000)
>>> compared = ds.compare(designs=["opt", "hercules"], workloads=["btree"])
>>> compared.to_frame()
>>> ds.explain(designs=["hercules"], workloads=["btree"]).plot()
>>> verdict = ds.crash(design="hercules", workload="btree", machine="tiny", points=300)
"""

import importlib
from typing import TYPE_CHECKING, Any

from durasim import own_core

if (_own := own_core.load()) is not None:
    _core = _own

from durasim._core import __version__

if TYPE_CHECKING:
    from durasim.api import (
        campaign,
        check_designs,
        compare,
        crash,
        describe_design,
        describe_machine,
        designs,
        explain,
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
        trace,
        workloads,
    )
    from durasim.crashes.traced_run import TracedRun
    from durasim.documents.artifact import Artifact, Deviation, Rerun, RerunPoint
    from durasim.documents.campaign import CampaignResult
    from durasim.documents.difference import Difference, diff
    from durasim.documents.explanation import Explained, Explanation
    from durasim.documents.loading import load
    from durasim.documents.reproduction import ReproducedPoint, ReproducedRow, Reproduction
    from durasim.documents.results import (
        Comparison,
        CrashFailure,
        CrashResult,
        Provenance,
        RunResult,
        TxLines,
        TxProfile,
    )
    from durasim.documents.sensitivity import MovedComparison, Sensitivity, SensitivityRow
    from durasim.documents.stats import Stat, StatTree
    from durasim.documents.sweep import PointResult, SweepResult
    from durasim.errors import ConfigError, DurasimError, GuestFault, HostIoError, InternalError, StuckError
    from durasim.programs import toolchain as toolchain
    from durasim.publication import artifact, reproduce, rerun, sensitivity
    from durasim.runs.machine import Machine
    from durasim.studies.pareto import pareto

__all__ = [
    "Artifact",
    "CampaignResult",
    "Comparison",
    "ConfigError",
    "CrashFailure",
    "CrashResult",
    "Deviation",
    "Difference",
    "DurasimError",
    "Explained",
    "Explanation",
    "GuestFault",
    "HostIoError",
    "InternalError",
    "Machine",
    "MovedComparison",
    "PointResult",
    "Provenance",
    "ReproducedPoint",
    "ReproducedRow",
    "Reproduction",
    "Rerun",
    "RerunPoint",
    "RunResult",
    "Sensitivity",
    "SensitivityRow",
    "Stat",
    "StatTree",
    "StuckError",
    "SweepResult",
    "TracedRun",
    "TxLines",
    "TxProfile",
    "__version__",
    "artifact",
    "campaign",
    "check_designs",
    "compare",
    "crash",
    "describe_design",
    "describe_machine",
    "designs",
    "diff",
    "explain",
    "load",
    "machine_schema",
    "machine_toml",
    "machines",
    "measure_workload",
    "mutation",
    "pareto",
    "random_campaign",
    "random_replay",
    "reproduce",
    "rerun",
    "run",
    "sensitivity",
    "suite_members",
    "sweep",
    "trace",
    "workloads",
]

# A module is imported when one of its names is first used: `durasim --version` needs none of them.
_NAMES = {
    "durasim.api": (
        "campaign", "check_designs", "compare", "crash", "describe_design", "describe_machine", "designs",
        "explain", "machine_schema", "machine_toml", "machines", "measure_workload", "mutation", "random_campaign",
        "random_replay", "run", "suite_members", "sweep", "trace", "workloads",
    ),
    "durasim.crashes.traced_run": ("TracedRun",),
    "durasim.documents.artifact": ("Artifact", "Deviation", "Rerun", "RerunPoint"),
    "durasim.documents.campaign": ("CampaignResult",),
    "durasim.documents.difference": ("Difference", "diff"),
    "durasim.documents.explanation": ("Explained", "Explanation"),
    "durasim.documents.loading": ("load",),
    "durasim.documents.reproduction": ("ReproducedPoint", "ReproducedRow", "Reproduction"),
    "durasim.documents.results": (
        "Comparison", "CrashFailure", "CrashResult", "Provenance", "RunResult", "TxLines", "TxProfile",
    ),
    "durasim.documents.sensitivity": ("MovedComparison", "Sensitivity", "SensitivityRow"),
    "durasim.documents.stats": ("Stat", "StatTree"),
    "durasim.documents.sweep": ("PointResult", "SweepResult"),
    "durasim.errors": ("ConfigError", "DurasimError", "GuestFault", "HostIoError", "InternalError", "StuckError"),
    "durasim.publication": ("artifact", "reproduce", "rerun", "sensitivity"),
    "durasim.runs.machine": ("Machine",),
    "durasim.studies.pareto": ("pareto",),
}  # fmt: skip
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "toolchain":
        return importlib.import_module("durasim.programs.toolchain")
    if name not in _MODULES:
        raise AttributeError(f"module 'durasim' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "toolchain"})
