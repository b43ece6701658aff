"""Typed results. Each class mirrors one JSON document of durasim: `from_dict` reads it and `to_dict` gives it back."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from durasim.errors import refusal
from durasim.output import to_json
from durasim.stats import StatTree


class Document:
    """Reading and writing of a dataclass whose fields are those of a JSON object."""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Reads the JSON object.

        Raises:
            ConfigError: A field is missing or unknown, as in a document of another version.
        """
        return _read(cls, document, "")

    def to_dict(self) -> dict[str, Any]:
        """Gives the JSON object, its keys in their documented order."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Gives the JSON text, the same that `--json` writes."""
        return to_json(self.to_dict())


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
class PmemWriteBytes(Document):
    """Bytes that the persistent memory's media accepted in the region of interest, by cause.

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
    """Latency of an operation in simulated nanoseconds: percentiles 50, 99 and 99.9, and the maximum."""

    p50: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True)
class Transactions(Document):
    """Numbers of transactions in the region of interest."""

    begun: int
    committed: int
    aborted: int


@dataclass(frozen=True, slots=True)
class Host(Document):
    """What the run cost on this computer; the only part of a result that differs from run to run.

    Attributes:
        seconds: Wall time of the simulation, without the start-up of the process.
        mips: Million simulated instructions per second of wall time.
        peak_rss_bytes: Largest resident memory of the process so far.
    """

    seconds: float
    mips: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class RunResult(Document):
    """The result of a run.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        design: Row of the registry.
        workload: Name of the workload, or of the program's file.
        machine: Preset, or the name given in a machine file.
        domain: Persistence domain of the machine.
        seed: Seed of everything random.
        threads: Threads of the guest.
        ops: Operations of the workload in the region of interest; None for a program that marks none.
        roi: The region of interest, the whole program if it marks none.
        program: The whole program.
        throughput_ops_per_us: Operations per simulated microsecond of the region of interest; None without operations.
        pmem_write_bytes: Bytes the media accepted, by cause.
        pmem_residual_dirty_bytes: Bytes of persistent lines still dirty when the run ended.
        latency_ns: Latency of operations.
        tx: Transactions.
        digest: 32 hexadecimal digits that prove two runs equal.
        guest_exit_code: Exit code of the guest program.
        host: Cost on this computer.
        configuration: The machine and the design's parameters, as they were after all overrides.
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
    pmem_residual_dirty_bytes: int
    latency_ns: LatencyNs | None
    tx: Transactions
    digest: str
    guest_exit_code: int
    host: Host
    configuration: Mapping[str, Any]
    stats: StatTree


@dataclass(frozen=True, slots=True)
class CrashFailure(Document):
    """A crash after which recovery did not give what the design promises.

    Attributes:
        id: What `--replay` takes.
        oracle: Who objected: `bytes`, `history`, `guest` or `recovery`, several joined by `+`.
        disagreement: Whether other oracles looked at the same contents and had nothing to object.
        message: What was wrong.
        command: The command that replays this crash.
    """

    id: str
    oracle: str
    disagreement: bool
    message: str
    command: str


@dataclass(frozen=True, slots=True)
class CrashResult(Document):
    """The result of a crash campaign.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        design: Row of the registry.
        workload: Name of the workload.
        machine: Preset, or the name given in a machine file.
        domain: Persistence domain of the machine.
        seed: Seed of everything random.
        threads: Threads of the guest.
        ops: Operations of the workload.
        points: Persist events of the run, each a possible crash point.
        trials: Trials: each an image, its recovery, and what all oracles say.
        trials_by_fault: Trials by what failed.
        violations: Trials after which the promise was broken.
        disagreements: Those of them in which oracles that looked at the same contents did not agree.
        losses_reported: Trials in which energy ended early and recovery said so.
        nested_depth_max: The most recoveries that failed in a row in one trial.
        trials_per_s_per_core: Trials by the wall time of the crashed run and by the threads that judged.
        judged_by: How many trials each oracle has judged.
        failures: The first failing trials.
        events_by_kind: Persist events by kind.
        marks: Rare paths of the design by name, and how many crashes fell inside each.
        timeline: Of a replay, what became of the lines involved, as schemas/timeline.json says; None for a campaign.
        shrunk: The smallest failure that a reduction has found, with its timeline; None if there was no reduction.
        host: Cost on this computer.
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
    violations: int
    disagreements: int
    losses_reported: int
    nested_depth_max: int
    trials_per_s_per_core: float
    judged_by: Mapping[str, int]
    failures: tuple[CrashFailure, ...]
    events_by_kind: Mapping[str, int]
    marks: Mapping[str, int]
    timeline: Mapping[str, Any] | None
    shrunk: Mapping[str, Any] | None
    host: Host
    stats: StatTree


def _read(kind: Any, value: Any, path: str) -> Any:
    """Reads `value` as `kind`: a document class, a tuple, a mapping, an optional or a plain type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _read(arguments[0], value, path)
    if origin is tuple:
        return tuple(_read(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value))
    if kind is StatTree:
        return StatTree.from_dict(_object(value, path))
    if origin is not None:
        return types.MappingProxyType(dict(_object(value, path)))
    if isinstance(kind, type) and issubclass(kind, Document):
        return _read_document(kind, _object(value, path), path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise refusal(path, f"expected {kind.__name__}, found {value!r}")
    return value


def _read_document(kind: type[Document], value: Mapping[str, Any], path: str) -> Any:
    hints = typing.get_type_hints(kind)
    missing, unknown = hints.keys() - value.keys(), value.keys() - hints.keys()
    if missing or unknown:
        names = ", ".join(sorted(missing or unknown))
        problem = "lacks" if missing else "has unknown"
        raise refusal(path or kind.__name__, f"{problem} {names}; is it a document of another version or kind?")
    prefix = f"{path}." if path else ""
    return kind(**{name: _read(hint, value[name], prefix + name) for name, hint in hints.items()})


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise refusal(path or "document", f"expected an object, found {value!r}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Document | StatTree):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value
