"""Results as data frames of polars and pandas. A separate module because polars is slow to load.

Classes of results call these functions, so results are typed as Any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars

from durasim.documents.causes import cause_rows
from durasim.documents.described_metrics import METRICS
from durasim.errors import refusal

if TYPE_CHECKING:
    import pandas

_METRICS = tuple(metric.name for metric in METRICS)
_OPT = "opt"
_PHASES = ("execute", "prepare", "commit")
# An explicit schema, so that the columns and types do not depend on the results.
SCHEMA = {
    "design": polars.String,
    "workload": polars.String,
    "machine": polars.String,
    "domain": polars.String,
    "seed": polars.UInt64,
    "threads": polars.UInt32,
    "ops": polars.UInt64,
    "set": polars.List(polars.String),
    "throughput_ops_per_us": polars.Float64,
    "relative_to_opt": polars.Float64,
    "relative_to_baseline": polars.Float64,
    "ipc": polars.Float64,
    "instructions": polars.UInt64,
    "cycles": polars.UInt64,
    "pmem_write_total_bytes": polars.UInt64,
    "pmem_write_data_bytes": polars.UInt64,
    "pmem_write_log_bytes": polars.UInt64,
    "pmem_write_metadata_bytes": polars.UInt64,
    "pmem_write_migration_bytes": polars.UInt64,
    "pmem_write_checkpoint_bytes": polars.UInt64,
    **{metric.name: polars.Float64 if "float" in str(metric.type) else polars.UInt64 for metric in METRICS},
    "latency_p50_ns": polars.Float64,
    "latency_p99_ns": polars.Float64,
    "latency_p999_ns": polars.Float64,
    "latency_max_ns": polars.Float64,
    **{f"tx_{phase}_mean_cycles": polars.Float64 for phase in _PHASES},
    "reads_per_tx": polars.Float64,
    "writes_per_tx": polars.Float64,
    "tx_begun": polars.UInt64,
    "tx_committed": polars.UInt64,
    "tx_aborted": polars.UInt64,
    "digest": polars.String,
    "guest_exit_code": polars.Int64,
    "host_seconds": polars.Float64,
    "host_mips": polars.Float64,
    "host_peak_rss_bytes": polars.UInt64,
}


def comparison_frame(results: Sequence[Any], baseline: str | None = None) -> polars.DataFrame:
    """Returns one row for each result; `relative_to_baseline` is relative to this design, by default to opt."""
    throughputs = {(result.workload, result.design): result.throughput_ops_per_us for result in results}
    return polars.DataFrame([_row(result, throughputs, baseline or _OPT) for result in results], schema=SCHEMA)


def _row(result: Any, throughputs: dict[tuple[str, str], float | None], baseline: str) -> dict[str, object]:
    def relative_to(design: str) -> float | None:
        throughput, reference = result.throughput_ops_per_us, throughputs.get((result.workload, design))
        return throughput / reference if throughput is not None and reference else None

    return run_row(result) | {
        "relative_to_opt": relative_to(_OPT),
        "relative_to_baseline": relative_to(baseline),
    }


def run_row(result: Any) -> dict[str, object]:
    """Returns the columns of one result, without those that relate it to others."""
    row: dict[str, object] = {
        "set": list(result.provenance.set),
        "ipc": result.roi.ipc,
        "instructions": result.roi.instructions,
        "cycles": result.roi.cycles,
    }
    simple = ("design", "workload", "machine", "domain", "seed", "threads", "ops", "throughput_ops_per_us")
    row |= {name: getattr(result, name) for name in (*simple, *_METRICS, "digest", "guest_exit_code")}
    row |= {f"pmem_write_{cause}_bytes": size for cause, size in result.pmem_write_bytes.to_dict().items()}
    row |= {
        f"latency_{name}_ns": value
        for name, value in (result.latency_ns.to_dict() if result.latency_ns else {}).items()
    }
    if result.phases is not None:
        row |= {f"tx_{phase}_mean_cycles": getattr(result.phases, phase).mean_cycles for phase in _PHASES}
    if result.accesses_per_tx is not None:
        row |= {f"{kind}_per_tx": value for kind, value in result.accesses_per_tx.to_dict().items()}
    row |= {f"tx_{fate}": number for fate, number in result.tx.to_dict().items()}
    row |= {f"host_{name}": value for name, value in result.host.to_dict().items()}
    return row


FAILURE_SCHEMA = {
    "design": polars.String,
    "workload": polars.String,
    "id": polars.String,
    "oracle": polars.String,
    "disagreement": polars.Boolean,
    "message": polars.String,
    "alike": polars.UInt64,
    "command": polars.String,
}


def failures_frame(result: Any) -> polars.DataFrame:
    """Returns one row for each listed failure of a crash campaign."""
    of = {"design": result.design, "workload": result.workload}
    return polars.DataFrame([of | failure.to_dict() for failure in result.failures], schema=FAILURE_SCHEMA)


CAUSE_SCHEMA = {
    **dict.fromkeys(("place", "function", "file"), polars.String),
    **dict.fromkeys(("line", "pc", "size_bytes"), polars.UInt64),
    **dict.fromkeys(("what", "missing"), polars.String),
    "confirmed": polars.Boolean,
    "violations": polars.UInt64,
    "first": polars.String,
    "command": polars.String,
}


def causes_frame(runs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any] | None, str]]) -> polars.DataFrame:
    """Returns one row for each cause of violations.

    Args:
        runs: The columns that name a run, its causes (see schemas/causes.json), and its command.
    """
    rows = [
        {**of, **row, "command": command} for of, causes, command in runs for row in cause_rows(causes)
    ]  # fmt: skip
    names = dict.fromkeys(name for row in rows for name in row if name not in CAUSE_SCHEMA)
    columns = [
        *(polars.Series(name, [row[name] for row in rows], strict=False) for name in names),
        *(polars.Series(name, [row[name] for row in rows], dtype=kind) for name, kind in CAUSE_SCHEMA.items()),
    ]
    return polars.DataFrame(columns)


def campaign_frame(document: Mapping[str, Any]) -> polars.DataFrame:
    """Returns one row for each design, domain, workload and number of threads of the document of a campaign."""
    names = {"design": polars.String, "domain": polars.String, "workload": polars.String}
    counts = dict.fromkeys(("threads", "runs", "trials", "violations"), polars.UInt64)
    return polars.DataFrame(document["results"], schema=names | counts)


EXPLANATION_SCHEMA = {
    **dict.fromkeys(("workload", "design"), polars.String),
    "set": polars.List(polars.String),
    **dict.fromkeys(("baseline_design", "unit", "category", "counter"), polars.String),
    **dict.fromkeys(("baseline", "value", "difference"), polars.Int64),
}


def explanation_frame(result: Any) -> polars.DataFrame:
    """Returns one row for each stall counter, `base` and origin of each run of an explanation."""
    rows = [row for explained in result.explained for row in _explained_rows(explained)]
    return polars.DataFrame(rows, schema=EXPLANATION_SCHEMA, orient="row")


def _explained_rows(explained: Any) -> Iterator[tuple[object, ...]]:
    run = (explained.workload, explained.design.design, list(explained.design.set), explained.baseline.design)
    for category in explained.cycles:
        for counter in category.counters or (category,):
            name = counter.name if category.counters else None
            yield (*run, "cycles", category.name, name, counter.baseline, counter.design, counter.difference)
    for origin in explained.bytes:
        yield (*run, "bytes", origin.name, None, origin.baseline, origin.design, origin.difference)


def pandas_frame(frame: polars.DataFrame) -> pandas.DataFrame:
    """Returns a data frame of pandas; whole numbers stay whole where some are missing.

    Raises:
        ConfigError: pandas is not installed.
    """
    try:
        import pandas  # noqa: PLC0415 - an extra
    except ImportError:
        raise refusal("to_pandas", "pandas is not installed: `pip install 'durasim[pandas]'`") from None
    columns = {}
    for name, kind in frame.schema.items():
        values = frame[name].to_list()
        if kind.is_integer():
            # The types of pandas with a capital letter have missing values.
            width = f"{'U' if kind.is_unsigned_integer() else ''}Int64"
            columns[name] = pandas.Series(values, dtype=width if None in values else width.lower())
        else:
            columns[name] = pandas.Series(values, dtype="float64" if kind.is_float() else None)
    return pandas.DataFrame(columns)
