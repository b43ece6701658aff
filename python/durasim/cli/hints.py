"""Hints on standard error about runs that may not measure what the user intends."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from durasim.documents.escaping import printable
from durasim.documents.results import RunResult
from durasim.programs import workload_tables

_MB = 1_000_000
# Data set size, in multiples of the LLC, at which most of it is evicted.
_LLC_MULTIPLE = 4
# An item has at least a key and a value. Small data sets take more bytes per item than large ones.
_ITEM_BYTES_MIN = 16
# With this many items per operation, most operations change items that no earlier operation changed.
_ITEMS_PER_OPERATION = 4


def warn_if_data_fits_in_cache(results: Iterable[RunResult]) -> None:
    """Names the runs in which nothing was written to persistent memory because the data fit in the caches."""
    by_workload: dict[str, list[RunResult]] = {}
    for result in results:
        if stayed_in_caches(result):
            by_workload.setdefault(result.workload, []).append(result)
    for runs in by_workload.values():
        print(f"durasim: {printable(_sentence(runs))}", file=sys.stderr)


def report_reuse(reused: int, runs: int) -> None:
    """Says how many results are not new, because their times are those of earlier simulations."""
    if reused:
        print(f"durasim: {reused} of {runs} results are from the store; --no-store simulates all", file=sys.stderr)


def warn_of_broken_workloads() -> None:
    """Names the workloads that lists skip, with the reasons."""
    for problem in workload_tables.broken_workloads().values():
        print(f"durasim: warning: skipped: {problem.sentence}", file=sys.stderr)


def stayed_in_caches(result: RunResult) -> bool:
    """Whether the measured region changed persistent data without a write to persistent memory."""
    return result.pmem_write_bytes.total == 0 and result.pmem_residual_dirty_bytes > 0


def _sentence(runs: list[RunResult]) -> str:
    first = max(runs, key=lambda run: run.pmem_residual_dirty_bytes)
    changed, llc = first.pmem_residual_dirty_bytes, int(first.configuration["llc"]["size_bytes"])
    who = f"{', '.join(run.design for run in runs)} under {first.workload}"
    fact = f"nothing was written to pmem by {who}: {_size(changed)} of changed data fit in the LLC of {_size(llc)}"
    return f"{fact}{_advice(first, changed, llc)}"


def _advice(run: RunResult, changed: int, llc: int) -> str:
    populate = run.provenance.workload_args.get("populate")
    if not isinstance(populate, int):
        return ""
    growth = _LLC_MULTIPLE * llc / changed
    if run.configuration.get("start") is None:
        items = _rounded(max(populate * growth, 2 * llc / _ITEM_BYTES_MIN))
        return f"; try --arg populate={max(populate + 1, items)}"
    # Data populated before the start of the run are not in the caches. Only the operations put dirty data there, and
    # need enough items to change mostly different ones.
    if run.ops is None:
        return ""
    ops = max(run.ops + 1, _rounded(run.ops * growth))
    return f"; try --ops {ops} --arg populate={max(populate, _ITEMS_PER_OPERATION * ops)}"


def _rounded(wanted: float) -> int:
    """Rounds an estimate to two digits."""
    scale = 10 ** max(len(str(int(wanted))) - 2, 0)
    return round(wanted / scale) * scale


def _size(size_bytes: int) -> str:
    return f"{size_bytes / _MB:.1f} MB" if size_bytes >= _MB / 10 else f"{size_bytes / 1000:.1f} KB"
