"""Typed results. Each class mirrors one JSON document of durasim, with the conversions `from_dict` and `to_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim.documents.described import (
    Host,
    LatencyNs,
    PmemWriteBytes,
    Provenance,
    Region,
    RunResult,
    Transactions,
)
from durasim.documents.described_metrics import METRICS
from durasim.documents.document import Document
from durasim.documents.presentation import Presented, Summary
from durasim.documents.stats import StatTree
from durasim.errors import refusal

if TYPE_CHECKING:
    import altair
    import polars

__all__ = [
    "METRICS",
    "Comparison",
    "CrashFailure",
    "CrashResult",
    "Document",
    "Host",
    "LatencyNs",
    "LostCycles",
    "PmemWriteBytes",
    "Provenance",
    "Region",
    "Relative",
    "RelativeMean",
    "RunResult",
    "Transactions",
    "TxLines",
    "TxProfile",
]


@dataclass(frozen=True, slots=True)
class TxLines(Document):
    """Lines of persistent memory that a transaction writes, each counted once.

    Attributes:
        min: Lines of the smallest transaction.
        avg: The arithmetic mean.
        max: Lines of the largest transaction.
    """

    min: int
    avg: float
    max: int


@dataclass(frozen=True, slots=True)
class TxProfile(Document):
    """Use of persistent memory by the region of interest of a workload, independent of the machine.

    Attributes:
        transactions: Transactions that began and committed inside the region.
        tx_lines: Lines that they write; None without transactions.
        footprint_bytes: Lines of the pool's data used by the program up to the end of the region, in bytes.
        instructions_per_tx: Instructions of the region per transaction, including those between transactions.
    """

    transactions: int
    tx_lines: TxLines | None
    footprint_bytes: int
    instructions_per_tx: float | None


@dataclass(frozen=True, slots=True)
class CrashFailure(Document):
    """A crash after which recovery violated the promise of the design.

    Attributes:
        id: The id for `--replay`.
        oracle: The oracles that reported it: `bytes`, `history`, `guest`, `output`, `recovery` or `termination`;
            several are joined by `+`.
        disagreement: Whether other oracles checked the same contents and found no violation.
        message: The violation.
        alike: Failing trials with this oracle and this message, including this one; listed or not.
        command: The command that replays this crash.
    """

    id: str
    oracle: str
    disagreement: bool
    message: str
    alike: int
    command: str


@dataclass(frozen=True, slots=True)
class CheckOutput(Document):
    r"""The output of one run of a check; control characters are written as `\x1b`.

    Attributes:
        stdout: The first 4096 bytes of its standard output.
        stdout_left_out_bytes: Further bytes of its standard output.
        stderr: The first 4096 bytes of its standard error.
        stderr_left_out_bytes: Further bytes of its standard error.
    """

    stdout: str
    stdout_left_out_bytes: int
    stderr: str
    stderr_left_out_bytes: int


@dataclass(frozen=True, slots=True)
class TrialChecks(Document):
    """The runs of the check in a trial.

    Attributes:
        id: The id for `--replay`.
        checks: The runs in order: on what the power failure left, then on what the first one recovered. Empty if the
            trial ended before a check.
    """

    id: str
    checks: tuple[CheckOutput, ...]


@dataclass(frozen=True, slots=True)
class CrashResult(Presented, Document):
    """The result of a crash campaign.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        design: Durability design.
        workload: Name of the workload.
        machine: Preset, or the name given in a machine file.
        domain: Persistence domain of the machine.
        seed: Seed of all random choices.
        threads: Threads of the guest.
        ops: Operations of the workload.
        points: Persist events of the run, each a possible crash point.
        trials: Number of trials; a trial is an image, its recovery, and the verdicts of all oracles.
        trials_by_fault: Trials by fault; `nested` and `recrash` for more than one power failure, with the kinds of all
            power failures that are not clean, as in `nested+reorder`.
        not_tried: The requested faults that do not apply, with the reasons.
        persistency_model: The persistency model whose images were taken; None if those of the machine were.
        control: Whether it is a negative control: a control design, or `--control`.
        points_at_risk: Crash points at which a clean power failure loses a dirty line of persistent memory.
        violations: Trials after which the promise was violated.
        hangs: Violations in which recovery, check or the rerun exceeded its limit.
        disagreements: Violations in which oracles that checked the same contents disagreed.
        losses_reported: Trials in which residual energy was exhausted and recovery reported data loss.
        nested_depth_max: The largest number of recoveries interrupted in a row in one trial.
        trials_per_s_per_core: Trials per second of wall time of the crashed run and per thread that ran trials.
        judged_by: Trials judged by each oracle; `bytes` judges those with declared and stored data.
        failures: The first failing trials.
        events_by_kind: Persist events by kind.
        marks: Rare paths of the design by name, with the number of crashes inside each.
        timeline: For a replay, the events of the lines involved, see schemas/timeline.json; None for a campaign.
        causes: The causes of the violations of a program, see schemas/causes.json; None for a workload and without
            violations. A replay tests none of them.
        check_outputs: With `check_output`, what the check wrote in each listed failure, and in a replay; None without.
        limits: Limits of instructions and bytes of memory for recovery, check and the rerun in a trial.
        shrunk: The smallest failure found by minimization, with its timeline; None without minimization.
        host: Cost on this computer.
        provenance: Inputs of the crashed run, in addition to machine, design, threads and seed.
        configuration: The machine and the design's parameters after all overrides.
        stats: Every counter of the crashed run.
    """

    schema: str
    durasim_version: str
    design: str
    workload: str
    machine: str
    domain: str
    seed: int
    threads: int
    ops: int | None
    points: int
    trials: int
    trials_by_fault: Mapping[str, int]
    not_tried: Mapping[str, str]
    persistency_model: str | None
    control: bool
    points_at_risk: int
    violations: int
    hangs: int
    disagreements: int
    losses_reported: int
    nested_depth_max: int
    trials_per_s_per_core: float
    judged_by: Mapping[str, int]
    failures: tuple[CrashFailure, ...]
    events_by_kind: Mapping[str, int]
    marks: Mapping[str, int]
    timeline: Mapping[str, Any] | None
    causes: Mapping[str, Any] | None
    check_outputs: tuple[TrialChecks, ...] | None
    limits: Mapping[str, int]
    shrunk: Mapping[str, Any] | None
    host: Host
    provenance: Provenance
    configuration: Mapping[str, Any]
    stats: StatTree

    def summary(self) -> Summary:
        """Returns the verdict, the numbers of trials by fault, and the first failures with the commands to replay."""
        from durasim.documents import summaries  # noqa: PLC0415 - keeps the start-up of commands short

        text, _ = summaries.verdict(self)
        rows = [
            (failure.id, failure.oracle, failure.message, summaries.number(failure.alike))
            for failure in summaries.first_failures(self)
        ]
        notes = [f"replay {failure.id}: {failure.command}" for failure in summaries.first_failures(self)]
        notes += [f"not applicable: {fault}: {reason}" for fault, reason in self.not_tried.items()]
        title = f"{summaries.crash_case(self, self.design)}: {text}"
        if rows:
            return Summary(title, ("failure", "oracle", "message", "times"), rows, 1, notes)
        faults = [(fault, summaries.number(trials)) for fault, trials in self.trials_by_fault.items() if trials]
        return Summary(title, ("power failure", "crashes"), faults, 1, notes)

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row for each listed failure."""
        from durasim.documents.frame import failures_frame  # noqa: PLC0415 - polars takes a while to load

        return failures_frame(self)

    def plot(self) -> altair.Chart:
        """Returns a chart of the trials by fault, with the verdict in its title.

        Raises:
            ConfigError: There is no trial.
        """
        from durasim.documents.charts import bar_chart  # noqa: PLC0415 - keeps the start-up of commands short
        from durasim.documents.summaries import verdict  # noqa: PLC0415

        rows = [(fault, None, trials) for fault, trials in self.trials_by_fault.items() if trials]
        title = f"{self.workload} under {self.design}: {verdict(self)[0]}"
        return bar_chart(rows, title=title, of="power failure", value="crashes (count)")


@dataclass(frozen=True, slots=True)
class Relative(Document):
    """Ratios of a run of a comparison to the others of its workload.

    Attributes:
        design: The design.
        workload: The workload.
        set: Parameters set for the run, as path.to.key=value, without those of other designs.
        relative_to_opt: Throughput divided by that of `opt`; None without `opt`.
        relative_to_baseline: Throughput divided by that of the comparison's `baseline`; None without one.
        pmem_relative_to_baseline: Bytes written to persistent memory in the measured region, divided by those of the
            comparison's `pmem_baseline`; None without one.
        pmem_drained_relative_to_baseline: `pmem_relative_to_baseline` with the data still dirty at the end counted as
            written.
        rounds: Completed rounds of each background engine in the measured region.
        scored: Whether each engine completed the rounds that the scale requires.
    """

    design: str
    workload: str
    set: tuple[str, ...]
    relative_to_opt: float | None
    relative_to_baseline: float | None
    pmem_relative_to_baseline: float | None
    pmem_drained_relative_to_baseline: float | None
    rounds: Mapping[str, int]
    scored: bool


@dataclass(frozen=True, slots=True)
class RelativeMean(Document):
    """Geometric means of a design over the workloads with scored runs of the design and of the baselines.

    Attributes:
        design: The design.
        workloads: Number of these workloads.
        relative_to_opt: Mean of `Relative.relative_to_opt`; None if there is none.
        relative_to_baseline: Likewise.
        pmem_relative_to_baseline: Likewise.
        pmem_drained_relative_to_baseline: Likewise.
    """

    design: str
    workloads: int
    relative_to_opt: float | None
    relative_to_baseline: float | None
    pmem_relative_to_baseline: float | None
    pmem_drained_relative_to_baseline: float | None


@dataclass(frozen=True, slots=True)
class LostCycles(Document):
    """Causes of the cycles that a run takes beyond that of `opt`. Cycles are summed over all cores with a thread.

    Attributes:
        design: The design.
        workload: The workload.
        core_cycles: Additional cycles; fewer if negative.
        of_opt: `core_cycles` divided by the cycles of `opt`.
        instructions: Additional instructions.
        committing_cycles: Additional cycles in which an instruction commits.
        stalls: Additional cycles by instruction at the head of the reorder buffer and reason of its wait, as in the
            counters `core.stalls` of a run; negative if data that `opt` waits for arrive while the design waits for
            another reason.
        attributed: Share of the loss explained by additional stalls and instructions; None without a loss.
    """

    design: str
    workload: str
    core_cycles: int
    of_opt: float
    instructions: int
    committing_cycles: int
    stalls: Mapping[str, int]
    attributed: float | None


@dataclass(frozen=True, slots=True)
class Comparison(Presented, Document):
    """The document of `durasim compare`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        scale: The scale of machine, designs and data.
        runs_wanted: Number of runs of the comparison; `runs` has fewer if it was interrupted.
        baseline: The baseline of throughput; None if there is none.
        pmem_baseline: The baseline of bytes written; None if there is none.
        relative: Ratios of each run to the others of its workload.
        means: Geometric means of each design.
        lost_cycles: Causes of the cycles that each run takes beyond `opt`; empty without `opt`.
        runs: The runs, workload by workload.
    """

    schema: str
    durasim_version: str
    scale: str
    runs_wanted: int
    baseline: str | None
    pmem_baseline: str | None
    relative: tuple[Relative, ...]
    means: tuple[RelativeMean, ...]
    lost_cycles: tuple[LostCycles, ...]
    runs: tuple[RunResult, ...]

    def summary(self) -> Summary:
        """Returns the main measures of each run, with its ratios to the baselines."""
        from durasim.documents import summaries  # noqa: PLC0415 - keeps the start-up of commands short

        headers = summaries.comparison_headers(self.baseline, self.pmem_baseline)
        rows = list(summaries.comparison_rows(zip(self.runs, self.relative, strict=True)))
        machines = ", ".join(dict.fromkeys(run.machine for run in self.runs))
        return Summary(f"designs on {machines}", ("workload", "design", *headers), rows, len(headers))

    def plot(self, metric: str = "throughput") -> altair.Chart:
        """Returns a chart of a metric: a group of bars for each workload, a bar for each design.

        Args:
            metric: A column of `to_frame` with numbers, or the begin of its name.

        Raises:
            ConfigError: The metric is unknown, has no numbers, or no run has it.
        """
        from durasim.documents.charts import bar_chart  # noqa: PLC0415 - keeps the start-up of commands short
        from durasim.documents.metrics import metric_named, unit_of  # noqa: PLC0415

        frame = self.to_frame()
        name = metric_named(metric, frame.columns)
        if not frame.schema[name].is_numeric():
            raise refusal("metric", f"{name} has no numbers")
        of_runs = frame.select("workload", "design", name).iter_rows()
        rows = [(workload, design, value) for workload, design, value in of_runs if value is not None]
        unit = unit_of(name)
        value = f"{name} ({unit})" if unit and not name.endswith(f"_{unit}") else name
        return bar_chart(rows, title="designs compared", of="workload", value=value, group="design")

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row for each run, in order; the names of columns end with the unit.

        `relative_to_opt` is the throughput divided by that of `opt` on the same workload, null without `opt`.
        """
        from durasim.documents.frame import comparison_frame  # noqa: PLC0415 - polars takes a while to load

        return comparison_frame(self.runs, self.baseline)
