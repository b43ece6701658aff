"""Assumptions where a paper is silent, as `assumptions.toml` has them, and what other ones would change."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from durasim.sensitivity import Ratio, measurements, ratios

MEASURED, NO_EFFECT, NOT_MEASURED = "measured", "no effect", "not measured"
# Changes of less than a percent are no effect.
PERCENT = 0.01
# Fewer bytes than these are no baseline of a ratio.
FEW_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption.

    Attributes:
        key: What code, presets and documents cite.
        paper: Whose design or machine it is.
        section: Where that is silent; `none` if it says nothing.
        assumed: What is assumed.
        parameters: What changes it, as for `--set`, or `--arg NAME`; none if it is not configurable.
        range: The alternatives that were tried or are there.
        status: `measured`, `no effect` or `not measured`.
        designs: Rows of the registry that rest on it.
        page: The document that has the whole text, seen from the checkout.
        settled: Whether sources agree, or no source can tell.
        effect: What is measured elsewhere than in `sensitivity.csv`; empty if nothing.
        factor: How far that changes a ratio of two designs.
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
    """Gives all assumptions by key, in the order of the file."""
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
    """Gives what the alternatives to an assumption change, of one design or of all."""
    return [ratio for ratio in _ratios().get(key, ()) if design in (None, ratio.measured.design)]


@dataclass(frozen=True, slots=True)
class End:
    """An end of what alternatives change: `value` times the run as it is assumed, for `design`."""

    value: float
    design: str


def relative_throughput(key: str, design: str | None = None) -> tuple[End, End] | None:
    """Gives the least and the greatest change of throughput relative to `opt` under the same alternative.

    Where `opt` was not run, because the alternative does not concern it, the change is that of the design. None if no
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
    """Gives the least and the greatest change of the bytes written to persistent memory.

    Runs that write next to nothing as assumed are left out: see `written_from_nothing`.
    """
    return _ends([
        End(of.pmem_bytes, of.measured.design)
        for of in changes(key, design)
        if of.pmem_bytes is not None and _usual_bytes(of) >= FEW_BYTES
    ])  # fmt: skip


def written_from_nothing(key: str, design: str | None = None) -> int:
    """Gives the most bytes that an alternative writes where next to nothing is written as assumed; 0 if none does."""
    found = [
        of.measured.numbers[1]
        for of in changes(key, design)
        if of.measured.numbers is not None and _usual_bytes(of) < FEW_BYTES <= of.measured.numbers[1]
    ]
    return max(found, default=0)


@cache
def _usual() -> Mapping[tuple[str, str, str], int]:
    return {
        (run.key, run.place, run.design): run.numbers[1]
        for run in measurements()
        if run.numbers is not None and not run.setting
    }


def _usual_bytes(of: Ratio) -> int:
    return _usual()[of.measured.key, of.measured.place, of.measured.design]


def _ends(found: Iterable[End]) -> tuple[End, End] | None:
    ends = sorted(found, key=lambda end: end.value)
    return (ends[0], ends[-1]) if ends else None


def headline(assumption: Assumption) -> float:
    """Gives by which factor alternatives change a ratio of throughputs at most; 1 if nothing is measured."""
    found = relative_throughput(assumption.key)
    if found is None:
        return assumption.factor
    return max(math.exp(abs(math.log(end.value))) for end in found)


def measured_status(key: str) -> str | None:
    """Gives the status that follows from `sensitivity.csv`; None if no alternative was measured there."""
    found = changes(key)
    if not found:
        return None
    most = max(max(abs(of.throughput - 1), abs((1.0 if of.pmem_bytes is None else of.pmem_bytes) - 1)) for of in found)
    return MEASURED if most > PERCENT else NO_EFFECT


def effect_text(assumption: Assumption, design: str | None = None) -> str:
    """Says in one line what other assumptions change, for all designs or for one."""
    if assumption.effect:
        return assumption.effect
    if assumption.status != MEASURED:
        return assumption.status
    if not changes(assumption.key, design):
        return NOT_MEASURED
    parts = [_range_text("throughput", relative_throughput(assumption.key, design), name=design is None)]
    parts.append(_range_text("pmem writes", pmem_writes(assumption.key, design), name=False))
    if most := written_from_nothing(assumption.key, design):
        parts.append(f"up to {most:,} bytes where next to nothing was written")
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
    """Gives the assumptions that a row rests on, the largest effect on it first, those that are not measured last."""
    found = [assumption for assumption in assumptions().values() if design in assumption.designs]

    def order(assumption: Assumption) -> tuple[bool, float]:
        ends = relative_throughput(assumption.key, design)
        size = max(abs(math.log(end.value)) for end in ends) if ends else math.log(assumption.factor)
        return assumption.status == NOT_MEASURED, -size

    return sorted(found, key=order)


def described(design: str) -> list[dict[str, Any]]:
    """Gives the assumptions that a row rests on as `durasim designs NAME --json` has them."""
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
