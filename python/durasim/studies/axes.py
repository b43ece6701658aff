"""Axes of a study: the values of a swept key, as a list or a range."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durasim.documents.toml_files import schema_named, validate
from durasim.errors import refusal
from durasim.runs.settings import size_in_bytes

_RANGE_KEYS = frozenset({"from", "to", "step", "factor", "points", "scale"})
_VALUES_MAX = 1_000_000
"""Most values of one range; a study with more is a mistake in a step."""

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one key.

    Attributes:
        key: The key.
        values: Its values in order; only the two ends if `is_open`.
        is_log: Whether samples and bisection use the logarithm.
        is_open: Whether it is a range from which points are drawn or bisected.
    """

    key: str
    values: tuple[Value, ...]
    is_log: bool = False
    is_open: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether values between the ends are whole numbers."""
        return all(isinstance(value, int) and not isinstance(value, bool) for value in self.values)

    def between(self, low: float, high: float) -> Value:
        """Returns the value halfway between two values of the axis, one of them if there is none between them."""
        return self._rounded(math.sqrt(low * high) if self.is_log else (low + high) / 2)

    def at(self, part: float) -> Value:
        """Returns the value at a part of the axis, from 0 to less than 1."""
        if not self.is_open:
            return self.values[int(part * len(self.values))]
        low, high = float(self.values[0]), float(self.values[-1])
        if self.is_log:
            return self._rounded(low * (high / low) ** part)
        # Each whole number of a linear axis has an equal share.
        return int(low + part * (high - low + 1)) if self.is_whole else low + part * (high - low)

    def _rounded(self, value: float) -> Value:
        return round(value) if self.is_whole else value


def axes_of(tables: Mapping[str, Any]) -> dict[str, Axis]:
    """Returns the axes of a table `[axes]`, whose keys may be quoted or nested.

    Raises:
        ConfigError: A list is empty, a range is wrong, or a key has two axes.
    """
    axes: dict[str, Axis] = {}
    for key, described in _flat(tables, ""):
        if key in axes:
            raise refusal(f"axes.{key}", "two axes have this key")
        axes[key] = axis_of(key, described)
    return axes


def _flat(tables: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, Mapping) and not value.keys() & _RANGE_KEYS:
            if not value:
                raise refusal(f"axes.{prefix}{name}", "has no values")
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def axis_of(key: str, described: Any) -> Axis:
    """Returns the axis of a key from its list or range."""
    schema = schema_named("study-file")
    if isinstance(described, list | tuple) and not described:
        raise refusal(f"axes.{key}", "has no values")
    if isinstance(described, Mapping):
        validate(described, _of_kind(schema, 1), f"axes.{key}")
        return _range(key, described)
    validate(list(described) if isinstance(described, tuple) else described, _of_kind(schema, 0), f"axes.{key}")  # type: ignore[arg-type]
    values = tuple(size_in_bytes(key, value) for value in described)
    twice = sorted({str(value) for value in values if values.count(value) > 1})
    if twice:
        raise refusal(f"axes.{key}", f"lists {', '.join(twice)} twice")
    return Axis(key, values)


def _of_kind(schema: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Returns the schema of a list (0) or of a range (1), whose sentences are shorter than those of both."""
    return schema["$defs"]["axis"]["anyOf"][number] | {"$defs": schema["$defs"]}


def _range(key: str, described: Mapping[str, Any]) -> Axis:
    field = f"axes.{key}"
    low, high = (_number(key, described[name]) for name in ("from", "to"))
    is_log = described.get("scale") == "log" or "factor" in described
    ways = [name for name in ("step", "factor", "points") if name in described]
    if len(ways) > 1:
        raise refusal(field, f"has {' and '.join(ways)}: give one of them")
    if low > high:
        raise refusal(field, f"the range from {low} to {high} is empty")
    if is_log and low <= 0:
        raise refusal(field, f"a logarithmic range cannot begin at {low}")
    if is_log and "step" in described:
        raise refusal(field, "a logarithmic range has a factor or a number of points, not a step")
    if not ways:
        return Axis(key, (low, high), is_log, is_open=True)
    values = [low]
    is_whole = isinstance(low, int) and isinstance(high, int)
    if "points" in described:
        count = described["points"] - 1
        _refuse_many(field, count)
        parts = [number / count for number in range(count + 1)]
        exact = [low * (high / low) ** part if is_log else low + part * (high - low) for part in parts]
        values = [*(round(value) if is_whole else value for value in exact[:-1]), high]
    elif "step" in described:
        step = _number(key, described["step"])
        if step <= 0:
            raise refusal(field, f"a step of {step} does not lead from {low} to {high}")
        _refuse_many(field, (high - low) / step)
        # Rounding must not lose the last value.
        values = [low + number * step for number in range(int((high - low) / step + 1e-9) + 1)]
    else:
        factor = described["factor"]
        _refuse_many(field, math.log(high / low) / math.log(factor))
        count = int(math.log(high / low) / math.log(factor) + 1e-9)
        values = [round(low * factor**n) if is_whole else low * factor**n for n in range(count + 1)]
    return Axis(key, tuple(dict.fromkeys(values)), is_log)


def _refuse_many(field: str, count: float) -> None:
    if count >= _VALUES_MAX:
        raise refusal(field, f"the range has {count:,.0f} values (allowed: {_VALUES_MAX:,})")


def _number(key: str, value: Any) -> int | float:
    found = size_in_bytes(key, value)
    if isinstance(found, str):
        raise refusal(f"axes.{key}", f"'{value}' is neither a number nor a size such as 64KiB")
    return found


def drawn(axes: Mapping[str, Axis], method: str, points: int, seed: int) -> Iterator[dict[str, Value]]:
    """Yields the values of all axes at drawn points, equal for equal arguments.

    Args:
        axes: The axes.
        method: `random` draws without end; `latin-hypercube` yields as many points, and each of as many equal parts
            of each axis once.
        points: Number of points.
        seed: Seed of the draws.
    """
    draws = random.Random(f"{method} {seed}")  # noqa: S311 - not used for secrets
    if method == "random":
        while True:
            yield {key: axis.at(draws.random()) for key, axis in axes.items()}
    parts = {key: draws.sample(range(points), points) for key in axes}
    for number in range(points):
        yield {key: axis.at((parts[key][number] + draws.random()) / points) for key, axis in axes.items()}


def refuse_open(axes: Mapping[str, Axis]) -> None:
    """Refuses ranges without points.

    Raises:
        ConfigError: A range has neither points nor a use for its ends alone.
    """
    for axis in axes.values():
        if axis.is_open:
            raise refusal(f"axes.{axis.key}", "a range requires step, factor or points, or the table sample or refine")
