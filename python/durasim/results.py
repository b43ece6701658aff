"""Typed results. Each class mirrors one JSON document of durasim: `from_dict` reads it and `to_dict` gives it back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim.described import Host, LatencyNs, PmemWriteBytes, Provenance, Region, RunResult, Transactions
from durasim.document import Document
from durasim.stats import StatTree

if TYPE_CHECKING:
    import polars

METRICS = tuple(field for field in dataclasses.fields(RunResult) if "unit" in field.metadata)
"""The plain numbers among what a run measures; the metadata of each field has its unit, and a label for people."""

__all__ = [
    "METRICS",
    "Comparison",
    "CrashFailure",
    "CrashResult",
    "Document",
    "Host",
    "LatencyNs",
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
        min: Of the smallest transaction.
        avg: The arithmetic mean.
        max: Of the largest transaction.
    """

    min: int
    avg: float
    max: int


@dataclass(frozen=True, slots=True)
class TxProfile(Document):
    """What the region of interest of a workload does with persistent memory, whatever the machine.

    Attributes:
        transactions: Transactions that began and committed inside the region.
        tx_lines: How many lines they write; None if there are no transactions.
        footprint_bytes: Lines of the pool's data that the program has used up to the region's end, in bytes.
        instructions_per_tx: Instructions of the region for each transaction, with what lies between transactions.
    """

    transactions: int
    tx_lines: TxLines | None
    footprint_bytes: int
    instructions_per_tx: float | None


@dataclass(frozen=True, slots=True)
class CrashFailure(Document):
    """A crash after which recovery did not give what the design promises.

    Attributes:
        id: What `--replay` takes.
        oracle: Who objected: `bytes`, `history`, `guest` or `recovery`, several joined by `+`.
        disagreement: Whether other oracles looked at the same contents and had nothing to object.
        message: What was wrong.
        alike: Failing trials with this oracle and this message, this one included; listed or not.
        command: The command that replays this crash.
    """

    id: str
    oracle: str
    disagreement: bool
    message: str
    alike: int
    command: str


@dataclass(frozen=True, slots=True)
class CrashResult(Document):
    """The result of a crash campaign.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        design: Durability design.
        workload: Name of the workload.
        machine: Preset, or the name given in a machine file.
        domain: Persistence domain of the machine.
        seed: Seed of everything random.
        threads: Threads of the guest.
        ops: Operations of the workload.
        points: Persist events of the run, each a possible crash point.
        trials: Trials: each an image, its recovery, and what all oracles say.
        trials_by_fault: Trials by what failed; `nested` and `recrash` where power fails more than once, with the kinds
            of all power failures that are not clean, as in `nested+reorder`.
        not_tried: Of the faults asked for, those for which there was nothing to try, each with the reason.
        control: Whether it is a negative control: a control row, or `--control`.
        points_at_risk: Crash points at which a clean power failure loses a dirty line of persistent memory.
        violations: Trials after which the promise was broken.
        hangs: Those of them in which recovery, check or further work did not end within its limit.
        disagreements: Those of them in which oracles that looked at the same contents did not agree.
        losses_reported: Trials in which energy ended early and recovery said so.
        nested_depth_max: The most recoveries that failed in a row in one trial.
        trials_per_s_per_core: Trials by the wall time of the crashed run and by the threads that judged.
        judged_by: How many trials each oracle has judged; `bytes` does so where data are declared and stored.
        failures: The first failing trials.
        events_by_kind: Persist events by kind.
        marks: Rare paths of the design by name, and how many crashes fell inside each.
        timeline: Of a replay, what became of the lines involved, as schemas/timeline.json says; None for a campaign.
        limits: Instructions and bytes of memory that recovery, check and further work could take in a trial.
        shrunk: The smallest failure that a reduction has found, with its timeline; None if there was no reduction.
        host: Cost on this computer.
        provenance: What the run that was crashed was made from, beside machine, design, threads and seed.
        configuration: The machine and the design's parameters, as they were after all overrides.
        stats: Every counter of the run that was crashed.
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
    limits: Mapping[str, int]
    shrunk: Mapping[str, Any] | None
    host: Host
    provenance: Provenance
    configuration: Mapping[str, Any]
    stats: StatTree


@dataclass(frozen=True, slots=True)
class Relative(Document):
    """What a run of a comparison is next to the others of its workload.

    Attributes:
        design: The design.
        workload: The workload.
        set: Parameters that were set for the run, as path.to.key=value: those of other designs are left out.
        relative_to_opt: Throughput divided by that of `opt`; None without it.
        relative_to_baseline: Throughput divided by that of the comparison's `baseline`; None without it.
        pmem_relative_to_baseline: Bytes written to persistent memory in the measured region, divided by those of the
            comparison's `pmem_baseline`; None without it.
        pmem_drained_relative_to_baseline: The same with what is dirty at the end as if it were written then.
        rounds: Rounds that each background engine completed in the measured region.
        scored: Whether each of them completed as many as the scale demands.
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
    """Geometric means of a design over the workloads of which its run and those of the baselines are scored.

    Attributes:
        design: The design.
        workloads: How many workloads those are.
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
    """Why a run takes more cycles than that of `opt` on its workload. Cycles are those of all cores that have a thread.

    Attributes:
        design: The design.
        workload: The workload.
        core_cycles: How many cycles more; fewer if negative.
        of_opt: The same divided by the cycles of `opt`.
        instructions: How many instructions more.
        committing_cycles: Cycles more in which something commits.
        stalls: Cycles more by what stands at the head of the reorder buffer and why it waits, as in the counters
            `core.stalls` of a run; fewer if negative, because what `opt` waits for comes in while the design waits
            for something else.
        attributed: The part of the loss that more stalls and more instructions explain; None without a loss.
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
class Comparison(Document):
    """The document of `durasim compare`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        scale: How much of the paper's sizes machine, designs and data had.
        runs_wanted: How many runs the comparison has; `runs` has fewer of them if it was interrupted.
        baseline: The design that throughput is compared with; None if there is none.
        pmem_baseline: The design that bytes written are compared with; None if there is none.
        relative: What each run is next to the others of its workload.
        means: Geometric means of each design.
        lost_cycles: Why each run takes more cycles than that of `opt`; nothing without `opt`.
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

    def frame(self) -> polars.DataFrame:
        """Gives the data frame that `durasim.compare` gives: one row for each run, in their order."""
        from durasim.frame import comparison_frame  # noqa: PLC0415 - polars takes a while to load

        return comparison_frame(self.runs, self.baseline)
