"""Causes of the cycles that a design takes beyond `opt`, from the stall counters at the head of the reorder buffer."""

from __future__ import annotations

from collections.abc import Iterable

from durasim.documents.results import LostCycles, RunResult
from durasim.runs.scenario import DEFAULT_DESIGN

_STALLS = "core.stalls."


def lost_cycles(results: Iterable[RunResult]) -> list[LostCycles]:
    """Returns the causes of lost cycles for each run with a run under `opt` of the same workload.

    In each cycle a core either commits an instruction or increments one stall counter. Therefore the differences of all
    counters and of the cycles with commits add up to the difference of the two runs.
    """
    results = list(results)
    of_opt = {result.workload: result for result in results if result.design == DEFAULT_DESIGN}
    return [
        _lost(result, of_opt[result.workload])
        for result in results
        if result.design != DEFAULT_DESIGN and result.workload in of_opt
    ]


def _lost(result: RunResult, opt: RunResult) -> LostCycles:
    own, others = _stalls(result), _stalls(opt)
    more = {name: own.get(name, 0.0) - others.get(name, 0.0) for name in sorted(own | others)}
    lost = _core_cycles(result) - _core_cycles(opt)
    committing = lost - sum(more.values())
    # More instructions need more cycles to commit.
    unexplained = committing if result.roi.instructions <= opt.roi.instructions else 0.0
    return LostCycles(
        design=result.design,
        workload=result.workload,
        core_cycles=round(lost),
        of_opt=lost / _core_cycles(opt),
        instructions=result.roi.instructions - opt.roi.instructions,
        committing_cycles=round(committing),
        stalls={name: round(cycles) for name, cycles in more.items() if round(cycles)},
        attributed=1.0 - max(0.0, unexplained) / lost if lost > 0 else None,
    )


def _stalls(result: RunResult) -> dict[str, float]:
    return {path.removeprefix(_STALLS): stat.value for path, stat in result.stats.walk() if path.startswith(_STALLS)}


def _core_cycles(result: RunResult) -> float:
    hardware_threads = int(result.configuration["cores"]) * int(result.configuration.get("threads_per_core", 1))
    return float(result.roi.cycles * min(result.threads, hardware_threads))
