"""Metrics of the points of a study: their values, units, and names that may be shortened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from durasim.documents.described_metrics import METRICS
from durasim.errors import refusal, unknown_name

_CRASH_METRICS = (
    "points", "trials", "points_at_risk", "violations", "hangs", "disagreements", "losses_reported", "nested_depth_max",
)  # fmt: skip
_OF_POINT = ("design", "workload", "machine", "domain", "seed", "threads", "ops", "set", "digest")
"""Columns of a result that describe a point and are no metrics."""
_COUNTS = frozenset({*_CRASH_METRICS, "ops", "threads", "tx_begun", "tx_committed", "tx_aborted"})
_ENDINGS = {
    "ops_per_us": "ops/us", "bytes": "bytes", "ns": "ns", "cycles": "cycles", "seconds": "s", "mips": "MIPS",
    "instructions": "instructions", "per_tx": "accesses per transaction", "ipc": "instructions per cycle",
    "entries": "count", "s": "s",
}  # fmt: skip


def metric_names(kind: str) -> tuple[str, ...]:
    """Returns the names of all metrics of a `run` or `crash`."""
    from durasim.documents.frame import SCHEMA  # noqa: PLC0415 - polars takes a while to load

    of_host = tuple(name for name in SCHEMA if name.startswith("host_"))
    if kind == "crash":
        return _CRASH_METRICS + of_host
    return tuple(name for name in SCHEMA if name not in _OF_POINT and not name.startswith("relative_"))


def run_metrics(result: Any) -> dict[str, object]:
    """Returns the metrics of a run by name; None for those that the run does not have."""
    from durasim.documents.frame import run_row  # noqa: PLC0415 - polars takes a while to load

    row = run_row(result)
    return {name: row.get(name) for name in metric_names("run")}


def crash_metrics(result: Any) -> dict[str, object]:
    """Returns the metrics of a crash campaign by name."""
    host = {f"host_{name}": value for name, value in result.host.to_dict().items()}
    return {name: getattr(result, name) for name in _CRASH_METRICS} | host


def unit_of(column: str) -> str:
    """Returns the unit of a column of a study or export; empty for names, ratios and digests."""
    described = {metric.name: str(metric.metadata["unit"]) for metric in METRICS}
    name = column.rpartition(".")[2]
    if name in described:
        return described[name]
    if name in _COUNTS:
        return "count"
    return next((unit for ending, unit in _ENDINGS.items() if name == ending or name.endswith(f"_{ending}")), "")


def metric_named(name: str, known: Iterable[str], field: str = "metric") -> str:
    """Returns the metric that has this name or, as the only one, begins with it: `throughput` for one in ops/us.

    Raises:
        ConfigError: No metric, or more than one, begins with it.
    """
    names = list(known)
    if name in names:
        return name
    found = [each for each in names if each.startswith(name)] or [each for each in names if each.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise refusal(field, f"'{name}' may be {' or '.join(sorted(found))}")
    raise unknown_name(field, name, names)
