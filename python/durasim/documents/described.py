"""The result and the options of a run, from `runs/result.rs` and `setup/request.rs` of crates/machine.

Written by tools/generate_schemas.py: to change it, change those files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from durasim.documents.document import Document
from durasim.documents.presentation import PresentedRun
from durasim.documents.stats import StatTree


@dataclass(frozen=True, slots=True)
class Region(Document):
    """Instructions and core cycles of a part of the run.

    Attributes:
        instructions: Retired instructions of all cores.
        cycles: Core cycles.
        ipc: Instructions per cycle.
    """

    instructions: int
    cycles: int
    ipc: float


@dataclass(frozen=True, slots=True)
class PmemWriteBytes(Document):
    """Bytes that the media of persistent memory accepted in the region of interest, by cause.

    Attributes:
        total: The sum of the others.
        data: The program's own data, at its home address.
        log: Undo or redo copies of data.
        metadata: Commit records, mapping tables, tags.
        migration: Copies moved between places of persistent memory in the background.
        checkpoint: Copies made for a checkpoint.
    """

    total: int
    data: int
    log: int
    metadata: int
    migration: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class LatencyNs(Document):
    """Latency of an operation, or of a transaction if the program marks no operations; None without either.

    Attributes:
        p50: Median.
        p99: 99th percentile.
        p999: 99.9th percentile.
        max: Largest value.
    """

    p50: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True)
class Phase(Document):
    """Latency of one phase of the transactions of a region.

    Attributes:
        count: Transactions that went through it and committed.
        mean_cycles: The mean in core cycles.
        p99_cycles: The 99th percentile in core cycles, three digits exact.
    """

    count: int
    mean_cycles: float
    p99_cycles: int


@dataclass(frozen=True, slots=True)
class Phases(Document):
    """Phases of the committed transactions; None where the design does not commit in two phases.

    Attributes:
        execute: From the begin to the moment at which the commit has left the store buffer.
        prepare: From there until all that was stored is where the commit needs it.
        commit: From there to the end of the commit instruction.
    """

    execute: Phase
    prepare: Phase
    commit: Phase


@dataclass(frozen=True, slots=True)
class AccessesPerTx(Document):
    """Lines that all media read and wrote for each committed transaction; None without transactions.

    Attributes:
        reads: Reads; what a write queue answers is none.
        writes: Writes that entered write queues; what joins a waiting write of its line is none.
    """

    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class AbortedBy(Document):
    """Attempts of hardware transactions that aborted, each counted once; None where the design has none.

    Attributes:
        conflict: Another thread wanted a line.
        capacity: A set of lines did not fit.
        explicit: An instruction of the program.
        nested: Any cause, while others were nested in it.
        trap: A system call, a fault, a breakpoint, a cache-block operation or an interrupt.
        other: Any other cause.
    """

    conflict: int
    capacity: int
    explicit: int
    nested: int
    trap: int
    other: int


@dataclass(frozen=True, slots=True)
class Transactions(Document):
    """Transactions of the region of interest.

    Attributes:
        begun: Transactions begun.
        committed: Transactions committed and acknowledged.
        aborted: Transactions aborted.
        htm_committed: Transactions of the program that committed as hardware transactions; None where the design has
            none.
        sgl_committed: Those that committed by software instead; None where the design has no hardware transactions.
        aborted_by: Attempts of hardware transactions that aborted, each counted once; None where the design has none.
    """

    begun: int
    committed: int
    aborted: int
    htm_committed: int | None
    sgl_committed: int | None
    aborted_by: AbortedBy | None


@dataclass(frozen=True, slots=True)
class Replay(Document):
    """Replay of redo logs by the runtime; None where the design has no hardware transactions.

    Attributes:
        transactions: Logged transactions applied to the persistent heap.
        lag_max: The largest number of transactions that a pass over the logs found waiting and applied.
        stall_cycles: Cycles that threads waited for room in their logs, added up.
        page_outs: Number of times that pages of a shadow left the DRAM, several at once.
        page_out_cycles: Cycles that took, the replay of what they waited for included.
    """

    transactions: int
    lag_max: int
    stall_cycles: int
    page_outs: int
    page_out_cycles: int


@dataclass(frozen=True, slots=True)
class Batches(Document):
    """Counters at the ends of batches of operations; None unless they were asked for.

    Attributes:
        ops: Least number of operations of a batch: a batch ends in the first step of the machine after them.
        count: Number of batches. The operations after the last one are in none.
        counters: Each counter, counted from the begin of the region, at the end of each batch, by its path in this
            document, or `media_reads` and `media_writes` in lines. Counters that remain 0 are left out.
    """

    ops: int
    count: int
    counters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Host(Document):
    """Cost on this computer; the only part that differs from run to run.

    Attributes:
        seconds: Wall time of the simulation, without the start-up of the process.
        mips: Million simulated instructions per second of wall time.
        peak_rss_bytes: Largest resident memory of the process so far.
    """

    seconds: float
    mips: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Provenance(Document):
    """Provenance of the run, beside machine, design, threads and seed.

    Attributes:
        durasim_build: Hash of the sources that durasim was built from.
        scale: Scale of machine, design and data, relative to the sizes of the paper.
        workload_args: Arguments of the workload by name, with defaults filled in; empty for a program.
        set: Parameters of machine and design that were set for this run, as path.to.key=value.
        guest_compiler: The compiler of the guest program; None for a program of the user.
        elf_hash: BLAKE3 of the guest program.
        elf_args: Its arguments.
        env: Its environment, as NAME=value.
        fast_forward: The snapshot point up to which the run was functional, or roi; None if it was not.
        functional: Whether the whole run was functional, without caches and time.
        warm: Whether caches and predictors were trained for what starts after a snapshot point.
        snapshot_hash: BLAKE3 of the snapshot that the run resumed from; None if it did not.
        pool_hash: Hash of the pool that the run started with; None if that was fresh.
        max_instructions: The limit of instructions; None without one.
        stop_after_roi: Whether the run was to stop at the end of the region of interest.
    """

    durasim_build: str
    scale: str
    workload_args: Mapping[str, Any]
    set: tuple[str, ...]
    guest_compiler: str | None
    elf_hash: str
    elf_args: tuple[str, ...]
    env: tuple[str, ...]
    fast_forward: str | None
    functional: bool
    warm: bool
    snapshot_hash: str | None
    pool_hash: str | None
    max_instructions: int | None
    stop_after_roi: bool


@dataclass(frozen=True, slots=True)
class RunResult(PresentedRun):
    """The result of `durasim run`. All but `host` is the same bytes on every run.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        design: Durability design.
        workload: Name of the workload, or of the program's file.
        machine: Preset, or the name given in a machine file.
        domain: Persistence domain of the machine.
        seed: Seed of everything random.
        threads: Threads of the guest.
        ops: Operations of the workload in the region of interest; None for a program that marks none.
        roi: The region of interest; the whole program if it marks none.
        program: The whole program.
        throughput_ops_per_us: Operations per simulated microsecond of the region of interest; None without operations.
        pmem_write_bytes: Bytes that the media of persistent memory accepted in the region of interest, by cause.
        pmem_residual_dirty_bytes: Bytes of persistent memory that are dirty in caches or wait in queues at the end of
            the region of interest.
        latency_ns: Latency of an operation, or of a transaction if the program marks no operations; None without
            either.
        instructions_per_transaction: Instructions of the region of interest, those between transactions included, for
            each transaction that it committed; None without transactions.
        phases: Phases of the committed transactions; None where the design does not commit in two phases.
        accesses_per_tx: Lines that all media read and wrote for each committed transaction; None without transactions.
        tx: Transactions of the region of interest.
        replay: Replay of redo logs by the runtime; None where the design has no hardware transactions.
        digest: 32 hexadecimal digits that prove two runs equal.
        guest_exit_code: Exit code of the guest program; None if it was stopped after its region of interest.
        persistence: The use of cache-block operations and fences by line of the source; None unless it was asked for.
        batches: Counters at the ends of batches of operations; None unless they were asked for.
        host: Cost on this computer; the only part that differs from run to run.
        provenance: Provenance of the run, beside machine, design, threads and seed.
        configuration: The machine and the design's parameters, as they were after all overrides, in the shape of a
            machine file.
        stats: Every counter.
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
    roi: Region
    program: Region
    throughput_ops_per_us: float | None
    pmem_write_bytes: PmemWriteBytes
    pmem_residual_dirty_bytes: int = field(metadata={"unit": "bytes", "label": "pmem left dirty"})
    latency_ns: LatencyNs | None
    instructions_per_transaction: float | None = field(metadata={"unit": "instructions"})
    phases: Phases | None
    accesses_per_tx: AccessesPerTx | None
    tx: Transactions
    replay: Replay | None
    digest: str
    guest_exit_code: int | None
    persistence: Mapping[str, Any] | None
    batches: Batches | None
    host: Host
    provenance: Provenance
    configuration: Mapping[str, Any]
    stats: StatTree


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run that are passed to the machine unchanged.

    Attributes:
        root: The folder of the host that the guest sees as its files; none if not given. Its changes stay in memory.
        root_write: Let the guest change files of the folder `root` on the host.
        pool: The file that keeps the guest's persistent memory; a fresh pool if not given.
        max_instructions: Stop the guest after this many instructions.
        max_memory_mib: Stop the guest once it has written this much memory, in whole pages (default: 8,192 MiB).
        functional: Run functionally to the end, without caches and time: only instructions, operations, transactions
            and checks of the hardware are counted.
        snapshot_at: Save the machine when the guest passes the snapshot point of this number for the first time;
            workloads pass point 0 between populating and measuring.
        snapshot: The file that the snapshot goes to.
        from_: Resume from this snapshot. Design, domain and parameters may differ; guest code and arguments must match.
        fast_forward: Run functionally, without caches and time, up to the snapshot point of this number or to the begin
            of the region of interest (roi).
        warm: Train caches and predictors for what starts after a snapshot point.
        stop_after_roi: Stop at the end of the region of interest: what the program does after it, such as its checks,
            is not simulated, and it has no exit code.
        persistence_report: Report the cache-block operations and fences of the detailed part of the run by line of the
            program's source: which had nothing to do, what they cost, and which stores none followed.
        batches: Report in the document counters at the ends of 32 to 63 batches of operations of the region of
            interest, from which intervals of numbers of one run follow.
    """

    root: str | None = field(
        default=None,
        metadata={
            "metavar": "DIR",
            "help": "The folder of the host that the guest sees as its files; none if not given. Its changes "
            "stay in memory.",
        },
    )
    root_write: bool = field(
        default=False,
        metadata={
            "help": "Let the guest change files of the folder `root` on the host.",
        },
    )
    pool: str | None = field(
        default=None,
        metadata={
            "metavar": "FILE",
            "help": "The file that keeps the guest's persistent memory; a fresh pool if not given.",
        },
    )
    max_instructions: int | None = field(
        default=None,
        metadata={
            "minimum": 1,
            "help": "Stop the guest after this many instructions.",
        },
    )
    max_memory_mib: int | None = field(
        default=None,
        metadata={
            "metavar": "MIB",
            "minimum": 1,
            "help": "Stop the guest once it has written this much memory, in whole pages (default: 8,192 MiB).",
        },
    )
    functional: bool = field(
        default=False,
        metadata={
            "help": "Run functionally to the end, without caches and time: only instructions, operations, "
            "transactions and checks of the hardware are counted.",
        },
    )
    snapshot_at: int | None = field(
        default=None,
        metadata={
            "metavar": "MARK",
            "minimum": 0,
            "help": "Save the machine when the guest passes the snapshot point of this number for the first "
            "time; workloads pass point 0 between populating and measuring.",
        },
    )
    snapshot: str | None = field(
        default=None,
        metadata={
            "metavar": "FILE",
            "help": "The file that the snapshot goes to.",
        },
    )
    from_: str | None = field(
        default=None,
        metadata={
            "metavar": "FILE",
            "help": "Resume from this snapshot. Design, domain and parameters may differ; guest code and "
            "arguments must match.",
        },
    )
    fast_forward: int | str | None = field(
        default=None,
        metadata={
            "metavar": "MARK|roi",
            "help": "Run functionally, without caches and time, up to the snapshot point of this number or to "
            "the begin of the region of interest (roi).",
        },
    )
    warm: bool = field(
        default=True,
        metadata={
            "help": "Train caches and predictors for what starts after a snapshot point.",
        },
    )
    stop_after_roi: bool = field(
        default=False,
        metadata={
            "help": "Stop at the end of the region of interest: what the program does after it, such as its "
            "checks, is not simulated, and it has no exit code.",
        },
    )
    persistence_report: bool = field(
        default=False,
        metadata={
            "help": "Report the cache-block operations and fences of the detailed part of the run by line of "
            "the program's source: which had nothing to do, what they cost, and which stores none "
            "followed.",
        },
    )
    batches: bool = field(
        default=False,
        metadata={
            "help": "Report in the document counters at the ends of 32 to 63 batches of operations of the "
            "region of interest, from which intervals of numbers of one run follow.",
        },
    )


class RunOptionArguments(TypedDict, total=False):
    """`RunOptions` as arguments of the Python API; files may be given as paths."""

    root: str | os.PathLike[str] | None
    root_write: bool
    pool: str | os.PathLike[str] | None
    max_instructions: int | None
    max_memory_mib: int | None
    functional: bool
    snapshot_at: int | None
    snapshot: str | os.PathLike[str] | None
    from_: str | os.PathLike[str] | None
    fast_forward: int | str | None
    warm: bool
    stop_after_roi: bool
    persistence_report: bool
    batches: bool
