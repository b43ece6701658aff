"""The assumptions in `assumptions.toml`, made where a paper is silent, and the measured effect of alternatives."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from durasim.runs.sensitivity import FEW_BYTES, Ratio, measurements, ratios

MEASURED, NO_EFFECT, NOT_MEASURED = "measured", "no effect", "not measured"
# A change below one percent counts as no effect.
PERCENT = 0.01


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption.

    Attributes:
        key: The key that code, presets and documents cite.
        paper: The paper of the design or machine.
        section: The section that leaves it open; `none` if the paper does not mention it.
        assumed: The assumption.
        parameters: The parameters that change it, as for `--set`, or `--arg NAME`; none if it is not configurable.
        range: The alternatives, measured or available.
        status: `measured`, `no effect` or `not measured`.
        designs: Design variants that depend on it.
        page: The document with the full text, relative to the checkout.
        settled: Whether sources agree, or no source can decide.
        effect: An effect measured outside of `sensitivity.csv`; empty if none.
        factor: The factor by which that effect changes a ratio of two designs.
    """

    key: str
    paper: str
    section: str
    assumed: str
    parameters: tuple[str, ...]
    range: str
    status: str
    designs: tuple[str, ...]
    page: str
    settled: bool = False
    effect: str = ""
    factor: float = 1.0


@cache
def assumptions() -> Mapping[str, Assumption]:
    """Returns all assumptions by key, in the order of the file."""
    tables = tomllib.loads((files("durasim") / "assumptions.toml").read_text(encoding="utf-8"))
    lists = ("parameters", "designs")
    return MappingProxyType({
        key: Assumption(key=key, **(table | {name: tuple(table[name]) for name in lists}))
        for key, table in tables.items()
    })  # fmt: skip


@cache
def _ratios() -> Mapping[str, tuple[Ratio, ...]]:
    found: dict[str, list[Ratio]] = {}
    for ratio in ratios(measurements()):
        found.setdefault(ratio.measured.key, []).append(ratio)
    return {key: tuple(of) for key, of in found.items()}


def changes(key: str, design: str | None = None) -> Sequence[Ratio]:
    """Returns the effects of the alternatives to an assumption, on one design or on all."""
    return [ratio for ratio in _ratios().get(key, ()) if design in (None, ratio.measured.design)]


@dataclass(frozen=True, slots=True)
class End:
    """One end of the range of an effect: `value` times the run with the assumption, for `design`."""

    value: float
    design: str


def relative_throughput(key: str, design: str | None = None) -> tuple[End, End] | None:
    """Returns the smallest and the largest change of throughput relative to `opt` under the same alternative.

    If `opt` was not run, because the alternative does not concern it, the change is that of the design. None if no
    alternative was measured.
    """
    of_opt = {
        (of.measured.place, of.measured.setting): of.throughput for of in changes(key) if of.measured.design == "opt"
    }
    found = [
        End(of.throughput / of_opt.get((of.measured.place, of.measured.setting), 1.0), of.measured.design)
        for of in changes(key, design)
        if of.measured.design != "opt"
    ]
    return _ends(found)


def pmem_writes(key: str, design: str | None = None) -> tuple[End, End] | None:
    """Returns the smallest and the largest change of the bytes written to persistent memory.

    Excludes runs that write almost nothing under the assumption: see `written_from_nothing`.
    """
    return _ends([
        End(of.pmem_bytes, of.measured.design)
        for of in changes(key, design)
        if of.pmem_bytes is not None
    ])  # fmt: skip


def written_from_nothing(key: str, design: str | None = None) -> int:
    """Returns the most bytes that an alternative writes in a run that writes almost nothing otherwise; 0 if none."""
    found = [
        of.measured.numbers[1]
        for of in changes(key, design)
        if of.measured.numbers is not None and of.baseline_bytes < FEW_BYTES <= of.measured.numbers[1]
    ]
    return max(found, default=0)


def _ends(found: Iterable[End]) -> tuple[End, End] | None:
    ends = sorted(found, key=lambda end: end.value)
    return (ends[0], ends[-1]) if ends else None


def headline(assumption: Assumption) -> float:
    """Returns the largest factor by which alternatives change a ratio of throughputs; 1 if none was measured."""
    found = relative_throughput(assumption.key)
    if found is None:
        return assumption.factor
    return max(math.exp(abs(math.log(end.value))) for end in found)


def measured_status(key: str) -> str | None:
    """Returns the status according to `sensitivity.csv`; None if it has no alternative."""
    found = changes(key)
    if not found:
        return None
    most = max(max(abs(of.throughput - 1), abs((1.0 if of.pmem_bytes is None else of.pmem_bytes) - 1)) for of in found)
    return MEASURED if most > PERCENT or written_from_nothing(key) else NO_EFFECT


def effect_text(assumption: Assumption, design: str | None = None) -> str:
    """Returns the effect of other assumptions in one line, for all designs or for one."""
    if assumption.effect:
        return assumption.effect
    if assumption.status != MEASURED:
        return assumption.status
    if not changes(assumption.key, design):
        return NOT_MEASURED
    parts = [_range_text("throughput", relative_throughput(assumption.key, design), name=design is None)]
    parts.append(_range_text("pmem writes", pmem_writes(assumption.key, design), name=False))
    if most := written_from_nothing(assumption.key, design):
        parts.append(f"up to {most:,} bytes in runs that wrote almost nothing")
    return ", ".join(part for part in parts if part) or NO_EFFECT


def _range_text(what: str, ends: tuple[End, End] | None, *, name: bool) -> str:
    if ends is None or max(abs(end.value - 1) for end in ends) <= PERCENT:
        return ""
    if not name:
        return f"{what} {ends[0].value:.2f}x to {ends[1].value:.2f}x"
    if ends[0].design == ends[1].design:
        return f"{what} {ends[0].value:.2f}x to {ends[1].value:.2f}x (`{ends[0].design}`)"
    return f"{what} {' to '.join(f'{end.value:.2f}x (`{end.design}`)' for end in ends)}"


def assumptions_of(design: str) -> list[Assumption]:
    """Returns the assumptions that a design depends on, largest effect on it first, unmeasured ones last."""
    found = [assumption for assumption in assumptions().values() if design in assumption.designs]

    def order(assumption: Assumption) -> tuple[bool, float]:
        ends = relative_throughput(assumption.key, design)
        size = max(abs(math.log(end.value)) for end in ends) if ends else math.log(assumption.factor)
        return assumption.status == NOT_MEASURED, -size

    return sorted(found, key=order)


def described(design: str) -> list[dict[str, Any]]:
    """Returns the assumptions that a design depends on in the form of `durasim designs NAME --json`."""
    return [
        {
            "key": assumption.key,
            "paper": assumption.paper,
            "section": assumption.section,
            "assumed": assumption.assumed,
            "parameters": list(assumption.parameters),
            "range": assumption.range,
            "status": assumption.status,
            "effect": effect_text(assumption, design),
            "page": f"{assumption.page}#{assumption.key}",
        }
        for assumption in assumptions_of(design)
    ]
