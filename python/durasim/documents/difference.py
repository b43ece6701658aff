"""The difference of two results of `durasim run`: configuration and results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durasim.documents.results import METRICS, Document, RunResult

SCHEMA = "durasim-diff/2"
# Keys of a result that describe its configuration; provenance and parameters of machine and design follow them.
_CONFIGURATION = ("durasim_version", "design", "workload", "machine", "domain", "seed", "threads", "ops")


_Values = Mapping[str, tuple[str, int | float | None]]
"""Unit and value by key."""


@dataclass(frozen=True, slots=True)
class ConfigurationChange(Document):
    """A configuration key whose values differ; None where a result lacks the key."""

    key: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class MeasureChange(Document):
    """A measure in both results.

    Attributes:
        key: Path of the measure in the JSON of a run.
        unit: Such as `ops/us`, `cycles` or `bytes`.
        a: Value in the first result; None if it is missing.
        b: Value in the second result; None if it is missing.
        ratio: b divided by a; None if a is 0 or a value is missing.
    """

    key: str
    unit: str
    a: int | float | None
    b: int | float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Difference(Document):
    """The differences of two results.

    Attributes:
        schema: Name and version of this document.
        configuration: Differences of the configuration, in the order of the JSON of a run.
        measures: Throughput, cycles and bytes by cause, largest relative change first.
        counters: The counters that differ, largest relative change first.
    """

    schema: str
    configuration: tuple[ConfigurationChange, ...]
    measures: tuple[MeasureChange, ...]
    counters: tuple[MeasureChange, ...]


def diff(a: RunResult, b: RunResult) -> Difference:
    """Compares two results of `durasim run`."""
    configurations = dict(_configuration(a)), dict(_configuration(b))
    keys = dict.fromkeys((*configurations[0], *configurations[1]))
    configuration = [
        ConfigurationChange(key, before, after)
        for key in keys
        if (before := configurations[0].get(key)) != (after := configurations[1].get(key))
    ]
    measures = _changes(dict(_measures(a)), dict(_measures(b)))
    counters = [change for change in _changes(dict(_counters(a)), dict(_counters(b))) if change.a != change.b]
    return Difference(SCHEMA, tuple(configuration), tuple(measures), tuple(counters))


def _configuration(result: RunResult) -> Iterator[tuple[str, Any]]:
    for key in _CONFIGURATION:
        yield key, getattr(result, key)
    yield from _flat(result.provenance.to_dict(), "provenance.")
    yield from _flat(result.configuration, "")


def _flat(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Returns the parameters by their `--set` paths."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" not in ("name", "description"):
            yield f"{prefix}{key}", value


def _measures(result: RunResult) -> Iterator[tuple[str, tuple[str, int | float | None]]]:
    yield "throughput_ops_per_us", ("ops/us", result.throughput_ops_per_us)
    for name, region in (("roi", result.roi), ("program", result.program)):
        yield f"{name}.instructions", ("count", region.instructions)
        yield f"{name}.cycles", ("cycles", region.cycles)
        yield f"{name}.ipc", ("ratio", region.ipc)
    causes: Mapping[str, int] = result.pmem_write_bytes.to_dict()
    for cause, size_bytes in causes.items():
        yield f"pmem_write_bytes.{cause}", ("bytes", size_bytes)
    for percentile, value in (result.latency_ns.to_dict() if result.latency_ns else {}).items():
        yield f"latency_ns.{percentile}", ("ns", value)
    if result.phases is not None:
        for name, phase in result.phases.to_dict().items():
            for field, value in phase.items():
                yield f"phases.{name}.{field}", ("count" if field == "count" else "cycles", value)
    for kind, value in (result.accesses_per_tx.to_dict() if result.accesses_per_tx else {}).items():
        yield f"accesses_per_tx.{kind}", ("count", value)
    for fate, number in _flat(result.tx.to_dict(), "tx."):
        yield fate, ("count", number)
    for name, number in (result.replay.to_dict() if result.replay else {}).items():
        yield f"replay.{name}", ("cycles" if name.endswith("_cycles") else "count", number)
    for metric in METRICS:
        yield metric.name, (metric.metadata["unit"], getattr(result, metric.name))


def _counters(result: RunResult) -> Iterator[tuple[str, tuple[str, int | float | None]]]:
    for path, stat in result.stats.walk():
        yield path, (stat.unit, stat.value)


def _changes(a: _Values, b: _Values) -> list[MeasureChange]:
    """Returns the changes of all keys of both, largest relative change first, in stable order."""
    keys = dict.fromkeys((*a, *b))
    absent = (None, None)
    changes = [_change(key, (a.get(key) or b[key])[0], a.get(key, absent)[1], b.get(key, absent)[1]) for key in keys]
    return sorted(changes, key=_size, reverse=True)


def _change(key: str, unit: str, a: float | None, b: float | None) -> MeasureChange:
    ratio = b / a if a and b is not None else None
    return MeasureChange(key, unit, a, b, ratio)


def _size(change: MeasureChange) -> float:
    """Size of a change: doubling and halving are equal, a change from or to 0 is the largest."""
    if change.a == change.b:
        return 0.0
    if not change.a or not change.b:
        return math.inf
    return abs(math.log(change.b / change.a))
