"""Sentences for standard error about runs that measure something else than their user may think."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from durasim import toolchain
from durasim.results import RunResult

_MB = 1_000_000
# As many times the size of the last level are data to be that most of them are evicted.
_LLC_MULTIPLE = 4
# An item is a key with its value at least: a few items take more for each of them than many do.
_ITEM_BYTES_MIN = 16
# With so many items for each operation most operations find some that none before them has changed.
_ITEMS_PER_OPERATION = 4


def tell_what_stayed_in_caches(results: Iterable[RunResult]) -> None:
    """Says of which runs nothing reached persistent memory because their data fit the caches."""
    by_workload: dict[str, list[RunResult]] = {}
    for result in results:
        if stayed_in_caches(result):
            by_workload.setdefault(result.workload, []).append(result)
    for runs in by_workload.values():
        print(f"durasim: {_sentence(runs)}", file=sys.stderr)


def tell_what_is_broken() -> None:
    """Says which workloads are left out of lists, and why."""
    for problem in toolchain.broken_workloads().values():
        print(f"durasim: left out: {problem.sentence}", file=sys.stderr)


def stayed_in_caches(result: RunResult) -> bool:
    """Whether the measured region has changed persistent data, and nothing was written to persistent memory."""
    return result.pmem_write_bytes.total == 0 and result.pmem_residual_dirty_bytes > 0


def _sentence(runs: list[RunResult]) -> str:
    first = max(runs, key=lambda run: run.pmem_residual_dirty_bytes)
    changed, llc = first.pmem_residual_dirty_bytes, int(first.configuration["llc"]["size_bytes"])
    who = f"{', '.join(run.design for run in runs)} under {first.workload}"
    fact = f"nothing was written to pmem by {who}: the {_size(changed)} of changed data fit the LLC of {_size(llc)}"
    return f"{fact}{_advice(first, changed, llc)}"


def _advice(run: RunResult, changed: int, llc: int) -> str:
    populate = run.provenance.workload_args.get("populate")
    if not isinstance(populate, int):
        return ""
    growth = _LLC_MULTIPLE * llc / changed
    if run.configuration.get("start") is None:
        items = _rounded(max(populate * growth, 2 * llc / _ITEM_BYTES_MIN))
        return f"; try --arg populate={max(populate + 1, items)}"
    # What was brought in before the run started is not in the caches. The operations alone change data there, and need
    # items enough that they do not change the same ones again.
    if run.ops is None:
        return ""
    ops = max(run.ops + 1, _rounded(run.ops * growth))
    return f"; try --ops {ops} --arg populate={max(populate, _ITEMS_PER_OPERATION * ops)}"


def _rounded(wanted: float) -> int:
    """Gives a number in two digits, which are enough of an estimate."""
    scale = 10 ** max(len(str(int(wanted))) - 2, 0)
    return round(wanted / scale) * scale


def _size(size_bytes: int) -> str:
    return f"{size_bytes / _MB:.1f} MB" if size_bytes >= _MB / 10 else f"{size_bytes / 1000:.1f} KB"
