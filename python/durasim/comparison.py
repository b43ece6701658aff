"""Every workload under every design, and what follows from the results: ratios, means, and which runs may count."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from durasim import _core
from durasim import settings as parameter_settings
from durasim.errors import refusal, unknown_name
from durasim.output import discard
from durasim.results import RelativeMean, RunResult
from durasim.scale import DEFAULT_SCALE, scale_named
from durasim.scenario import (
    DEFAULT_DESIGN,
    Scenario,
    ScenarioArguments,
    design_rows,
    row_name,
    scenario_of,
    settings_of,
    workload_info,
)
from durasim.simulation import GuestOutput, RunProgress, run_request

_PMEM_BASELINES = ("hercules", DEFAULT_DESIGN)
"""The design that pmem writes are compared with if none is named: the first of these that is compared."""


@dataclass(frozen=True)
class Judged:
    """A run of a comparison, and what it is next to the others of its workload.

    Attributes:
        result: The run.
        relative_to_opt: Throughput divided by that of `opt`; None without it.
        baseline: The design that throughput is compared with; None if there is none.
        relative_to_baseline: Throughput divided by that of this design; None without it.
        pmem_baseline: The design that writes are compared with; None if there is none.
        pmem_relative_to_baseline: Bytes written to persistent memory in the measured region, divided by those of that
            design; None without it.
        pmem_drained_relative_to_baseline: The same with what is dirty at the end as if it were written then.
        rounds: Rounds that each background engine completed in the measured region.
        scored: Whether each of them completed as many as the scale demands.
    """

    result: RunResult
    relative_to_opt: float | None
    baseline: str | None
    relative_to_baseline: float | None
    pmem_baseline: str | None
    pmem_relative_to_baseline: float | None
    pmem_drained_relative_to_baseline: float | None
    rounds: dict[str, int]
    scored: bool


def scenarios(
    designs: Iterable[str] | None,
    workloads: Iterable[str] | None,
    *,
    threads: int | None = None,
    **fields: Unpack[ScenarioArguments],
) -> list[Scenario]:
    """Gives every workload under every design, workload by workload, with the members of suites in their places.

    Without designs they are those that the paper of the suite compares; without threads each workload has those of its
    suite. A program with `elf` stands in place of the workloads. A parameter of a design is set under it alone.

    Raises:
        ConfigError: A name is unknown or stands twice, there are no designs and the workloads are not of one suite
            that has some, or none of the designs has a parameter that is set.
    """
    from durasim import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    if (workloads is None) == (fields.get("elf") is None):
        raise refusal("workloads", "give workloads or a program with elf, and not both")
    workload_names = (
        [] if workloads is None else _distinct("workloads", suites.expand(_distinct("workloads", workloads)))
    )
    if designs is None and workloads is None:
        raise refusal("designs", "a program belongs to no suite: name the designs to compare")
    expanded = (
        suites.designs_for(workload_names) if designs is None else suites.designs_of(_distinct("designs", designs))
    )
    design_names = _distinct("designs", [row_name(name) for name in expanded])
    # Every name is looked up before the first run, which may take minutes.
    for name in design_names:
        if name not in design_rows():
            raise unknown_name("designs", name, design_rows())
    for name in workload_names:
        workload_info(name)
    hardware = {name: str(design_rows()[name]["hardware"]) for name in design_names}
    settings = settings_of(fields.pop("set", None))
    parameter_settings.check_any(settings, hardware.values())
    set_of = {name: parameter_settings.of_design(settings, hardware[name]) for name in design_names}
    if workloads is None:
        # A program says by its arguments how many threads it has; others are refused.
        given = {} if threads is None else {"threads": threads}
        return [scenario_of(**(fields | given | {"design": name, "set": set_of[name]})) for name in design_names]
    if fields.get("fast_forward") is not None and fields.get("scale", DEFAULT_SCALE) != DEFAULT_SCALE:
        raise refusal("fast_forward", "a smaller scale starts all designs with one snapshot: leave fast_forward out")
    threads_of = {name: suites.threads_of(name) if threads is None else threads for name in workload_names}
    return [
        scenario_of(
            **(
                fields
                | {"design": design, "workload": workload, "threads": threads_of[workload], "set": set_of[design]}
            )
        )
        for workload in workload_names
        for design in design_names
    ]


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
    running: Callable[[float], None] | None = None,
    interrupted: Callable[[list[RunResult]], None] | None = None,
) -> list[RunResult]:
    """Runs all scenarios, some at a time, and gives their results in the same order.

    At a smaller scale the data of a workload are brought in once for each guest program, functionally; all designs with
    that program begin with the same snapshot.

    Args:
        scenarios: What is to be run.
        guest_output: Takes what the guests write.
        progress: Takes each result as soon as it is there.
        jobs: Runs at a time; all cores if None.
        running: Takes now and then how many runs are done, with parts of those in progress.
        interrupted: Takes the results that are there, in the order of their scenarios, if the user wants no more.

    Raises:
        ConfigError: Refused before cycle 0.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `durasim.run`.
        KeyboardInterrupt: The user wants no more; runs in progress end.
    """
    # All programs are built from the same sources, even if somebody edits them meanwhile.
    requests = [scenario.request() for scenario in scenarios]
    # Signals reach the main thread alone.
    cancellation = _core.Cancellation()
    results: dict[int, RunResult] = {}
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder, ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        plan = _Plan(scenarios, requests, Path(folder))
        parts = _Parts(running)

        def start(number: int) -> Future[RunResult]:
            return pool.submit(run_request, requests[number], guest_output, parts.of(number), cancellation)

        waiting = {start(number): number for number in plan.first}
        try:
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    number = waiting.pop(future)
                    results[number] = future.result()
                    parts.finish(number)
                    if progress is not None:
                        progress(results[number])
                    waiting |= {start(following): following for following in plan.after.get(number, ())}
        except KeyboardInterrupt as interrupt:
            cancellation.cancel()
            kept = [results[number] for number in sorted(results)]
            if interrupted is None or not kept:
                what = "nothing is kept of them"
            else:
                interrupted(kept)
                what = "their results are kept"
            interrupt.add_note(f"{len(results)} of {len(requests)} runs were done, and {what}")
            raise
        finally:
            cancellation.cancel()
            for future in waiting:
                future.cancel()
    return [results[number] for number in range(len(requests))]


class _Parts:
    """How much of all runs is done, as the threads that run them say."""

    def __init__(self, running: Callable[[float], None] | None) -> None:
        self._running = running
        self._lock = threading.Lock()
        self._done: dict[int, float] = {}

    def of(self, number: int) -> RunProgress:
        """Gives what takes the progress of one run."""

        def show(done: int, total: int | None) -> None:
            self._set(number, done / total if total else 0.0)

        return show

    def finish(self, number: int) -> None:
        """A run is done."""
        self._set(number, 1.0)

    def _set(self, number: int, part: float) -> None:
        if self._running is not None:
            with self._lock:
                self._done[number] = max(part, self._done.get(number, 0.0))
                self._running(sum(self._done.values()))


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


def judge(
    results: Iterable[RunResult],
    scale: str = DEFAULT_SCALE,
    pmem_baseline: str | None = None,
    baseline: str | None = None,
) -> list[Judged]:
    """Gives each result with what it is next to the others.

    Args:
        results: The runs.
        scale: Their scale.
        pmem_baseline: The design that pmem writes are compared with; hercules if it is among the designs, else opt.
        baseline: The design that throughput is compared with; opt if it is among the designs.
    """
    results = list(results)
    of = {(result.workload, result.design): result for result in results}
    if pmem_baseline is None:
        pmem_baseline = next((name for name in _PMEM_BASELINES if any(r.design == name for r in results)), None)
    if baseline is None and any(r.design == DEFAULT_DESIGN for r in results):
        baseline = DEFAULT_DESIGN
    rounds_min = scale_named(scale).rounds_min
    return [_judged(result, of, baseline, pmem_baseline, rounds_min) for result in results]


def baseline_of(field: str, name: str | None, scenarios: Iterable[Scenario]) -> str | None:
    """Gives the design that `--baseline` or `--pmem-baseline` names.

    Raises:
        ConfigError: It is not among those that are compared.
    """
    compared = dict.fromkeys(scenario.design for scenario in scenarios)
    if name is not None and row_name(name) not in compared:
        raise unknown_name(field, name, compared)
    return name if name is None else row_name(name)


def check_lost_cycles(wanted: bool, scenarios: Iterable[Scenario]) -> None:
    """Refuses what cannot be told.

    Raises:
        ConfigError: Cycles lost against `opt` are wanted, and it is not among the designs.
    """
    if wanted and all(scenario.design != DEFAULT_DESIGN for scenario in scenarios):
        raise refusal("lost_cycles", "are those that a design takes more than opt: name opt among the designs")


def _judged(
    result: RunResult,
    of: dict[tuple[str, str], RunResult],
    baseline: str | None,
    pmem_baseline: str | None,
    rounds_min: int,
) -> Judged:
    opt, writes = of.get((result.workload, DEFAULT_DESIGN)), of.get((result.workload, pmem_baseline or ""))
    reference = of.get((result.workload, baseline or ""))
    written = result.pmem_write_bytes.total
    rounds = _rounds(result)
    return Judged(
        result=result,
        relative_to_opt=_ratio(result.throughput_ops_per_us, opt and opt.throughput_ops_per_us),
        baseline=baseline,
        relative_to_baseline=_ratio(result.throughput_ops_per_us, reference and reference.throughput_ops_per_us),
        pmem_baseline=pmem_baseline,
        pmem_relative_to_baseline=_ratio(written, writes and writes.pmem_write_bytes.total),
        pmem_drained_relative_to_baseline=_ratio(
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


def means(judged: Sequence[Judged]) -> list[RelativeMean]:
    """Gives the geometric means of each design, in the order of the designs."""
    unscored = {(run.result.workload, run.result.design) for run in judged if not run.scored}
    designs = dict.fromkeys(run.result.design for run in judged)
    return [_mean(design, [run for run in judged if run.result.design == design], unscored) for design in designs]


def _mean(design: str, runs: list[Judged], unscored: set[tuple[str, str]]) -> RelativeMean:
    def mean(baseline: str, values: Iterable[float | None], workloads: Iterable[str]) -> float | None:
        counted = [v for v, name in zip(values, workloads, strict=True) if v and (name, baseline) not in unscored]
        return statistics.geometric_mean(counted) if counted else None

    scored = [run for run in runs if run.scored]
    baseline, pmem_baseline = runs[0].baseline or "", runs[0].pmem_baseline or ""
    names = [run.result.workload for run in scored]
    return RelativeMean(
        design=design,
        workloads=len(scored),
        relative_to_opt=mean(DEFAULT_DESIGN, (run.relative_to_opt for run in scored), names),
        relative_to_baseline=mean(baseline, (run.relative_to_baseline for run in scored), names),
        pmem_relative_to_baseline=mean(pmem_baseline, (run.pmem_relative_to_baseline for run in scored), names),
        pmem_drained_relative_to_baseline=mean(
            pmem_baseline, (run.pmem_drained_relative_to_baseline for run in scored), names
        ),
    )
