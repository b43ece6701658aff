"""Sentences for standard error about runs that measure something else than their user may think."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from durasim import toolchain
from durasim.results import RunResult

_MB = 1_000_000
# As many times the size of the last level are data to be that most of them are evicted.
_LLC_MULTIPLE = 2


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
    who = f" by {', '.join(run.design for run in runs)} under {first.workload}" if len(runs) > 1 else ""
    fact = f"nothing was written to pmem{who}: the {_size(changed)} of changed data fit the LLC of {_size(llc)}"
    return f"{fact}{_advice(first, changed, llc)}"


def _advice(run: RunResult, changed: int, llc: int) -> str:
    populate = run.provenance.workload_args.get("populate")
    if not isinstance(populate, int):
        return ""
    if run.configuration.get("start") is not None:
        # What was brought in before the run started is not in the caches: how much it is, these bytes do not tell.
        return "; try a larger --arg populate or more --ops"
    wanted = populate * _LLC_MULTIPLE * llc / changed
    # Two digits are enough of an estimate.
    scale = 10 ** max(len(str(int(wanted))) - 2, 0)
    return f"; try --arg populate={max(populate + 1, round(wanted / scale) * scale)}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / _MB:.1f} MB" if size_bytes >= _MB / 10 else f"{size_bytes / 1000:.1f} KB"
