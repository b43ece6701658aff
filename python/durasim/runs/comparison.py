"""Comparisons: every workload under every design, with ratios, means and the runs to exclude from them."""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from durasim import _core
from durasim.documents.results import RelativeMean, RunResult
from durasim.errors import refusal, unknown_name
from durasim.output import discard
from durasim.programs.scale import DEFAULT_SCALE, scale_named
from durasim.runs import settings as parameter_settings
from durasim.runs.machine import machine_option
from durasim.runs.run_order import RunOrder
from durasim.runs.scenario import (
    DEFAULT_DESIGN,
    ComparisonArguments,
    Scenario,
    design_variants,
    scenario_of,
    settings_of,
    variant_name,
    workload_info,
)
from durasim.runs.simulation import GuestOutput, RunProgress, run_request
from durasim.store.reuse import Reuse

_PMEM_BASELINES = ("hercules", DEFAULT_DESIGN)
"""Default baselines of pmem writes: the first of these among the compared designs."""


@dataclass(frozen=True)
class Judged:
    """A run of a comparison, relative to the others of its workload.

    Attributes:
        result: The run.
        relative_to_opt: Throughput divided by that of `opt`; None without `opt`.
        baseline: The baseline of throughput; None if there is none.
        relative_to_baseline: Throughput divided by that of `baseline`; None without one.
        pmem_baseline: The baseline of pmem writes; None if there is none.
        pmem_relative_to_baseline: Bytes written to persistent memory in the measured region, divided by those of
            `pmem_baseline`; None without one.
        pmem_drained_relative_to_baseline: `pmem_relative_to_baseline` with the data still dirty at the end counted as
            written.
        rounds: Completed rounds of each background engine in the measured region.
        scored: Whether each engine completed the rounds that the scale requires.
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
    **fields: Unpack[ComparisonArguments],
) -> list[Scenario]:
    """Returns the scenarios of every workload under every design, workload by workload, with suites expanded.

    The default designs are those that the paper of the suite compares; the default threads are those of the suite. A
    program given by `elf` replaces the workloads. A parameter of a design applies only to that design.

    Raises:
        ConfigError: A name is unknown or given twice, no design is given or known from the suite of the workloads, or
            none of the designs has a parameter that is set.
    """
    from durasim.programs import suites  # noqa: PLC0415 - keeps the start-up of other commands short

    if (workloads is None) == (fields.get("elf") is None):
        raise refusal("workloads", "give either workloads or a program with elf")
    workload_names = (
        [] if workloads is None else _distinct("workloads", suites.expand(_distinct("workloads", workloads)))
    )
    if designs is None and workloads is None:
        raise refusal("designs", "is required: a program belongs to no suite with designs to compare")
    # Look up every name before the first run, which may take minutes.
    for name in workload_names:
        workload_info(name)
    expanded = (
        suites.designs_for(workload_names) if designs is None else suites.designs_of(_distinct("designs", designs))
    )
    design_names = _distinct("designs", [variant_name(name) for name in expanded])
    for name in design_names:
        if name not in design_variants():
            raise unknown_name("designs", name, design_variants())
    hardware = {name: str(design_variants()[name]["hardware"]) for name in design_names}
    settings = settings_of(fields.pop("set", None))
    if "machine" in fields:
        fields["machine"], changed = machine_option(fields["machine"])
        settings = settings_of(changed) + settings
    parameter_settings.check_any(settings, hardware.values())
    set_of = {name: parameter_settings.of_design(settings, hardware[name]) for name in design_names}
    if workloads is None:
        # The arguments of a program set its number of threads.
        given = {} if threads is None else {"threads": threads}
        return [scenario_of(**(fields | given | {"design": name, "set": set_of[name]})) for name in design_names]
    if fields.get("fast_forward") is not None and fields.get("scale", DEFAULT_SCALE) != DEFAULT_SCALE:
        raise refusal(
            "fast_forward", "cannot be combined with a smaller scale, which starts all designs from one snapshot"
        )
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


def explained_scenarios(
    baseline: str | None,
    designs: Iterable[str] | None,
    workloads: Iterable[str] | None,
    *,
    threads: int | None = None,
    **fields: Unpack[ComparisonArguments],
) -> tuple[str, list[Scenario]]:
    """Returns the baseline, and the scenarios of every workload under it and under every design, as `scenarios` does.

    Args:
        baseline: The design of the baseline; `opt` if None.
        designs: The designs, with or without the baseline.
        workloads: The workloads; None for a program.
        threads: Threads of the guest.
        fields: The other arguments of `scenarios`.

    Raises:
        ConfigError: As from `scenarios`, or the baseline is unknown or the only design.
    """
    name = variant_name(DEFAULT_DESIGN if baseline is None else baseline)
    if name not in design_variants():
        raise unknown_name("baseline", name, design_variants())
    if workloads is not None and not isinstance(workloads, str):
        # An iterator can be read once.
        workloads = list(workloads)
    # Settings are checked below, as they may be those of the baseline.
    named = scenarios(designs, workloads, elf=fields.get("elf"))
    others = [design for design in dict.fromkeys(scenario.design for scenario in named) if design != name]
    if not others:
        raise refusal("designs", f"gives only {name}, the baseline: name a design to explain")
    return name, scenarios([name, *others], workloads, threads=threads, **fields)


def _distinct(field: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise refusal(field, "expected a list of names, not one string")
    listed = list(names)
    if not listed:
        raise refusal(field, "is empty")
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise refusal(field, f"lists {', '.join(twice)} twice")
    return listed


def run_all(
    scenarios: Sequence[Scenario],
    guest_output: GuestOutput = discard,
    progress: Callable[[RunResult], None] | None = None,
    jobs: int | None = None,
    running: Callable[[float], None] | None = None,
    interrupted: Callable[[list[RunResult]], None] | None = None,
    reuse: Reuse | None = None,
) -> list[RunResult]:
    """Runs all scenarios concurrently and returns their results in the given order.

    At a smaller scale each guest program populates its data once, functionally; all designs with that program start
    from one snapshot.

    Args:
        scenarios: The scenarios to run.
        guest_output: Called with the output of the guests.
        progress: Called with each result as soon as the run is done.
        jobs: Number of concurrent runs; all cores if None.
        running: Called from time to time with the number of runs done, fractions of those in progress included.
        interrupted: Called with the completed results, in the order of their scenarios, if the user interrupts.
        reuse: The store that answers runs and keeps new results, and the snapshots that designs share.

    Raises:
        ConfigError: A configuration is refused before cycle 0.
        GuestFault, StuckError, HostIoError, ToolchainError: As from `durasim.run`.
        KeyboardInterrupt: The user interrupts; runs in progress end.
    """
    # Build all programs first, so that edits of the sources during the runs have no effect.
    requests = [scenario.request() for scenario in scenarios]
    # Only the main thread receives signals.
    cancellation = _core.Cancellation()
    results: dict[int, RunResult] = {}
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder, ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        order = RunOrder(scenarios, requests, Path(folder), reuse or Reuse(None))
        parts = _Parts(running)

        def start(number: int) -> Future[RunResult]:
            return pool.submit(run_request, requests[number], guest_output, parts.of(number), cancellation)

        def finish(number: int, result: RunResult) -> None:
            results[number] = result
            parts.finish(number)
            if progress is not None:
                progress(result)

        waiting: dict[Future[RunResult], int] = {}
        try:
            _run_in_order(order, start, finish, waiting)
        except KeyboardInterrupt as interrupt:
            cancellation.cancel()
            what = "their results are lost"
            if interrupted is not None and results:
                interrupted([results[number] for number in sorted(results)])
                what = "their results are kept"
            interrupt.add_note(f"{len(results)} of {len(requests)} runs were done, and {what}")
            raise
        finally:
            cancellation.cancel()
            for future in waiting:
                future.cancel()
    return [results[number] for number in range(len(requests))]


def _run_in_order(
    order: RunOrder,
    start: Callable[[int], Future[RunResult]],
    finish: Callable[[int, RunResult], None],
    waiting: dict[Future[RunResult], int],
) -> None:
    """Starts the runs in their order and takes their results; `waiting` has those in progress."""
    waiting.update((start(number), number) for number in order.first)
    for number, result in order.answered.items():
        finish(number, result)
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            number = waiting.pop(future)
            result = future.result()
            order.keep(number, result)
            finish(number, result)
            waiting.update((start(following), following) for following in order.after.get(number, ()))


class _Parts:
    """Progress of all runs, reported by the threads that run them."""

    def __init__(self, running: Callable[[float], None] | None) -> None:
        self._running = running
        self._lock = threading.Lock()
        self._done: dict[int, float] = {}

    def of(self, number: int) -> RunProgress:
        """Returns the progress callback of one run."""

        def show(done: int, total: int | None) -> None:
            self._set(number, done / total if total else 0.0)

        return show

    def finish(self, number: int) -> None:
        """Marks a run as done."""
        self._set(number, 1.0)

    def _set(self, number: int, part: float) -> None:
        if self._running is not None:
            with self._lock:
                self._done[number] = max(part, self._done.get(number, 0.0))
                self._running(sum(self._done.values()))


def judge(
    results: Iterable[RunResult],
    scale: str = DEFAULT_SCALE,
    pmem_baseline: str | None = None,
    baseline: str | None = None,
) -> list[Judged]:
    """Returns each result relative to the others of its workload.

    Args:
        results: The runs.
        scale: Their scale.
        pmem_baseline: The baseline of pmem writes (default: hercules if it is among the designs, else opt).
        baseline: The baseline of throughput (default: opt if it is among the designs).
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
    """Returns the design that `--baseline` or `--pmem-baseline` names.

    Raises:
        ConfigError: The design is not among the compared ones.
    """
    compared = dict.fromkeys(scenario.design for scenario in scenarios)
    if name is not None and variant_name(name) not in compared:
        raise unknown_name(field, name, compared)
    return name if name is None else variant_name(name)


def check_lost_cycles(wanted: bool, scenarios: Iterable[Scenario]) -> None:
    """Refuses `--lost-cycles` without `opt`.

    Raises:
        ConfigError: Lost cycles are requested and `opt` is not among the designs.
    """
    if wanted and all(scenario.design != DEFAULT_DESIGN for scenario in scenarios):
        raise refusal("lost_cycles", "requires opt among the designs: lost cycles are relative to opt")


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
    row = design_variants()[result.design]
    if not row["engines"]:
        return {}
    counters = {path: stat.value for path, stat in result.stats.walk()}
    return {engine: int(counters[f"{row['hardware']}.{engine}"]) for engine in row["engines"]}


def means(judged: Sequence[Judged]) -> list[RelativeMean]:
    """Returns the geometric means of each design, in the order of the designs."""
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
