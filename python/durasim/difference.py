"""The difference of two results of `durasim run`: what was configured differently, and what that changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durasim.results import METRICS, Document, RunResult

# Keys of a result that say what was run; the parameters of machine and design follow them.
_CONFIGURATION = ("durasim_version", "design", "workload", "machine", "domain", "seed", "threads", "ops")


@dataclass(frozen=True, slots=True)
class ConfigurationChange(Document):
    """A configuration key whose values differ; None where a result does not have the key."""

    key: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class MeasureChange(Document):
    """A measure in both results.

    Attributes:
        key: Path of the measure in the JSON of a run.
        unit: Such as `ops/us`, `cycles` or `bytes`.
        a: Value in the first result, None if it has none.
        b: Value in the second result.
        ratio: b divided by a; None where a is 0 or one value is missing.
    """

    key: str
    unit: str
    a: int | float | None
    b: int | float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Two results compared.

    Attributes:
        configuration: The keys that differ, in the order of the JSON of a run.
        measures: Throughput, cycles and bytes by cause, largest change first.
    """

    configuration: tuple[ConfigurationChange, ...]
    measures: tuple[MeasureChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """Gives the document that `durasim diff --json` writes."""
        return {
            "schema": "durasim-diff/1",
            "configuration": [change.to_dict() for change in self.configuration],
            "measures": [change.to_dict() for change in self.measures],
        }


def diff(a: RunResult, b: RunResult) -> Difference:
    """Compares two results of `durasim run`."""
    configurations = dict(_configuration(a)), dict(_configuration(b))
    keys = dict.fromkeys((*configurations[0], *configurations[1]))
    configuration = [
        ConfigurationChange(key, before, after)
        for key in keys
        if (before := configurations[0].get(key)) != (after := configurations[1].get(key))
    ]
    second = dict(_measures(b))
    measures = [_change(key, unit, before, second[key][1]) for key, (unit, before) in _measures(a)]
    return Difference(tuple(configuration), tuple(sorted(measures, key=_size, reverse=True)))


def _configuration(result: RunResult) -> Iterator[tuple[str, Any]]:
    for key in _CONFIGURATION:
        yield key, getattr(result, key)
    yield from _flat(result.configuration, "")


def _flat(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Gives the parameters by the paths that `--set` takes."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif f"{prefix}{key}" not in ("name", "description"):
            yield f"{prefix}{key}", value


def _measures(result: RunResult) -> Iterator[tuple[str, tuple[str, int | float | None]]]:
    yield "throughput_ops_per_us", ("ops/us", result.throughput_ops_per_us)
    yield "roi.cycles", ("cycles", result.roi.cycles)
    yield "program.cycles", ("cycles", result.program.cycles)
    causes: Mapping[str, int] = result.pmem_write_bytes.to_dict()
    for cause, size_bytes in causes.items():
        yield f"pmem_write_bytes.{cause}", ("bytes", size_bytes)
    for metric in METRICS:
        yield metric.name, (metric.metadata["unit"], getattr(result, metric.name))


def _change(key: str, unit: str, a: float | None, b: float | None) -> MeasureChange:
    ratio = b / a if a and b is not None else None
    return MeasureChange(key, unit, a, b, ratio)


def _size(change: MeasureChange) -> float:
    """How large a change is: doubling and halving are equally large, from or to nothing is the largest."""
    if change.a == change.b:
        return 0.0
    if not change.a or not change.b:
        return math.inf
    return abs(math.log(change.b / change.a))
