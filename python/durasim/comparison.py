"""Every workload under every design, and what follows from the results: ratios, means, and which runs may count."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from durasim.errors import refusal, unknown_name
from durasim.output import discard
from durasim.results import RunResult
from durasim.scale import DEFAULT_SCALE, scale_named
from durasim.scenario import (
    DEFAULT_DESIGN,
    Scenario,
    ScenarioArguments,
    design_rows,
    row_name,
    scenario_of,
    workload_info,
)
from durasim.simulation import GuestOutput, run_request

WRITES_BASELINE = "hercules"
"""The row that pmem writes are compared with."""


@dataclass(frozen=True)
class Judged:
    """A run of a comparison, and what it is next to the others of its workload.

    Attributes:
        result: The run.
        relative_to_opt: Throughput divided by that of `opt`; None without it.
        pmem_relative_to_hercules: Bytes written to persistent memory in the measured region, divided by those of
            `hercules`; None without it.
        pmem_drained_relative_to_hercules: The same with what is dirty at the end as if it were written then.
        rounds: Rounds that each background engine completed in the measured region.
        scored: Whether each of them completed as many as the scale demands.
    """

    result: RunResult
    relative_to_opt: float | None
    pmem_relative_to_hercules: float | None
    pmem_drained_relative_to_hercules: float | None
    rounds: dict[str, int]
    scored: bool


@dataclass(frozen=True)
class Mean:
    """Geometric means of a design over the workloads of which its run and those of the baselines are scored.

    Attributes:
        design: The row.
        workloads: How many workloads those are.
        relative_to_opt: Mean of `Judged.relative_to_opt`; None if there is none.
        pmem_relative_to_hercules: Likewise.
        pmem_drained_relative_to_hercules: Likewise.
    """

    design: str
    workloads: int
    relative_to_opt: float | None
    pmem_relative_to_hercules: float | None
    pmem_drained_relative_to_hercules: float | None


def scenarios(designs: Iterable[str], workloads: Iterable[str], **fields: Unpack[ScenarioArguments]) -> list[Scenario]:
    """Gives every workload under every design, workload by workload, with the members of suites in their places.

    Raises:
        ConfigError: A name is unknown or stands twice.
    """
    from durasim import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    expanded = suites.designs_of(_distinct("designs", designs))
    design_names = _distinct("designs", [row_name(name) for name in expanded])
    workload_names = _distinct("workloads", suites.expand(_distinct("workloads", workloads)))
    # Every name is looked up before the first run, which may take minutes.
    for name in design_names:
        if name not in design_rows():
            raise unknown_name("designs", name, design_rows())
    for name in workload_names:
        workload_info(name)
    pairs = [(workload, design) for workload in workload_names for design in design_names]
    return [scenario_of(**(fields | {"design": design, "workload": workload})) for workload, design in pairs]


def _distinct(field: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise refusal(field, "expected a list of names, not one string")
    listed = list(names)
    if not listed:
        raise refusal(field, "names nothing")
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise refusal(field, f"names {', '.join(twice)} twice")
    return listed


def run_all(
    scenarios: Sequence[Scenario],
    guest_output: GuestOutput = discard,
    progress: Callable[[RunResult], None] | None = None,
    jobs: int | None = None,
) -> list[RunResult]:
    """Runs all scenarios, some at a time, and gives their results in the same order.

    At a smaller scale the data of a workload are brought in once for each guest program, functionally; all designs with
    that program begin with the same snapshot.

    Args:
        scenarios: What is to be run.
        guest_output: Takes what the guests write.
        progress: Takes each result as soon as it is there.
        jobs: Runs at a time; all cores if None.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `durasim.run`.
    """
    # All programs are built from the same sources, even if somebody edits them meanwhile.
    requests = [scenario.request() for scenario in scenarios]
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder, ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        plan = _Plan(scenarios, requests, Path(folder))
        results: dict[int, RunResult] = {}
        waiting: dict[Future[RunResult], int] = {
            pool.submit(run_request, requests[n], guest_output): n for n in plan.first
        }
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    number = waiting.pop(future)
                    results[number] = future.result()
                    if progress is not None:
                        progress(results[number])
                    waiting |= {
                        pool.submit(run_request, requests[n], guest_output): n for n in plan.after.get(number, ())
                    }
        finally:
            for future in waiting:
                future.cancel()
    return [results[number] for number in range(len(requests))]


class _Plan:
    """Which requests come first, and which go on with the snapshots that those leave."""

    def __init__(self, scenarios: Sequence[Scenario], requests: list[dict[str, Any]], folder: Path) -> None:
        leaders: dict[tuple[str, str], int] = {}
        self.first: list[int] = []
        self.after: dict[int, list[int]] = {}
        for number, scenario in enumerate(scenarios):
            if scenario.scale == DEFAULT_SCALE:
                self.first.append(number)
                continue
            leader = leaders.setdefault((scenario.workload or "", scenario.backend), number)
            file = os.fspath(folder / f"{leader}.snapshot")
            if leader == number:
                self.first.append(number)
                requests[number] |= {"fast_forward": "0", "snapshot_at": 0, "snapshot": file}
            else:
                self.after.setdefault(leader, []).append(number)
                requests[number] |= {"from": file}


def judge(results: Iterable[RunResult], scale: str = DEFAULT_SCALE) -> list[Judged]:
    """Gives each result with what it is next to the others."""
    results = list(results)
    of = {(result.workload, result.design): result for result in results}
    return [_judged(result, of, scale_named(scale).rounds_min) for result in results]


def _judged(result: RunResult, of: dict[tuple[str, str], RunResult], rounds_min: int) -> Judged:
    opt, writes = of.get((result.workload, DEFAULT_DESIGN)), of.get((result.workload, WRITES_BASELINE))
    written = result.pmem_write_bytes.total
    rounds = _rounds(result)
    return Judged(
        result=result,
        relative_to_opt=_ratio(result.throughput_ops_per_us, opt and opt.throughput_ops_per_us),
        pmem_relative_to_hercules=_ratio(written, writes and writes.pmem_write_bytes.total),
        pmem_drained_relative_to_hercules=_ratio(
            written + result.pmem_residual_dirty_bytes,
            writes and writes.pmem_write_bytes.total + writes.pmem_residual_dirty_bytes,
        ),
        rounds=rounds,
        scored=all(number >= rounds_min for number in rounds.values()),
    )


def _ratio(value: float | None, reference: float | None) -> float | None:
    return value / reference if value is not None and reference else None


def _rounds(result: RunResult) -> dict[str, int]:
    row = design_rows()[result.design]
    if not row["engines"]:
        return {}
    counters = {path: stat.value for path, stat in result.stats.walk()}
    return {engine: int(counters[f"{row['hardware']}.{engine}"]) for engine in row["engines"]}


def means(judged: Sequence[Judged]) -> list[Mean]:
    """Gives the geometric means of each design, in the order of the designs."""
    unscored = {(run.result.workload, run.result.design) for run in judged if not run.scored}
    designs = dict.fromkeys(run.result.design for run in judged)
    return [_mean(design, [run for run in judged if run.result.design == design], unscored) for design in designs]


def _mean(design: str, runs: list[Judged], unscored: set[tuple[str, str]]) -> Mean:
    def mean(baseline: str, values: Iterable[float | None], workloads: Iterable[str]) -> float | None:
        counted = [v for v, name in zip(values, workloads, strict=True) if v and (name, baseline) not in unscored]
        return statistics.geometric_mean(counted) if counted else None

    scored = [run for run in runs if run.scored]
    names = [run.result.workload for run in scored]
    return Mean(
        design=design,
        workloads=len(scored),
        relative_to_opt=mean(DEFAULT_DESIGN, (run.relative_to_opt for run in scored), names),
        pmem_relative_to_hercules=mean(WRITES_BASELINE, (run.pmem_relative_to_hercules for run in scored), names),
        pmem_drained_relative_to_hercules=mean(
            WRITES_BASELINE, (run.pmem_drained_relative_to_hercules for run in scored), names
        ),
    )
