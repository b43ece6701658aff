"""Rows and charts of an explanation: the main categories, and the others as one, so that all that is shown adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim.documents.presentation import Summary
from durasim.documents.stall_categories import BASE
from durasim.documents.summaries import count
from durasim.errors import refusal, unknown_name

if TYPE_CHECKING:
    import altair

CYCLES, BYTES = QUANTITIES = ("cycles", "bytes")
_SHOWN_MIN = 0.02
"""Smallest share of all differences of a design, without their signs, at which a category has a row."""
_DRAWN_MIN = 0.01
"""Smallest share of the highest bar of a workload at which a category has a colour."""
_OTHERS = "others"
_SUM = "sum"
_VALUES = {CYCLES: "core cycles", BYTES: "bytes written to persistent memory"}
PARTS = {CYCLES: "category", BYTES: "origin"}
TITLES = {CYCLES: "where cycles went", BYTES: "where pmem bytes came from"}


@dataclass(frozen=True, slots=True)
class Row:
    """A row for one workload.

    Attributes:
        label: The category, counter or origin as it is shown.
        baseline: Cycles or bytes of the baseline.
        differences: Those of each design minus those of the baseline.
        is_sum: Whether it is the sum of the others.
    """

    label: str
    baseline: int
    differences: tuple[int, ...]
    is_sum: bool = False


def by_workload(explanation: Any) -> list[list[Any]]:
    """Returns the explained runs of each workload."""
    found: dict[str, list[Any]] = {}
    for explained in explanation.explained:
        found.setdefault(explained.workload, []).append(explained)
    return list(found.values())


def names_of(group: Sequence[Any]) -> list[str]:
    """Returns the names of the baseline and the designs of a workload; equal ones have their parameters or a number."""
    runs = [group[0].baseline, *(explained.design for explained in group)]
    designs = [run.design for run in runs]
    full = [run.design if designs.count(run.design) == 1 else " ".join((run.design, *run.set)) for run in runs]
    return [name if full.count(name) == 1 else f"{name} ({full[: at + 1].count(name)})" for at, name in enumerate(full)]


def rows_of(group: Sequence[Any], quantity: str, *, wide: bool = False) -> list[Row]:
    """Returns the rows for the runs of one workload, the largest difference first, with their sum at the end.

    Args:
        group: The explained runs of the workload.
        quantity: `cycles` or `bytes`.
        wide: Whether to show all categories with their counters instead of the main categories.
    """
    parts: dict[str, list[Any]] = {}
    for explained in group:
        for part in getattr(explained, quantity):
            parts.setdefault(part.name, [None] * len(group))
    for at, explained in enumerate(group):
        for part in getattr(explained, quantity):
            parts[part.name][at] = part
    ordered = sorted(parts, key=lambda name: -max(abs(_difference(part)) for part in parts[name]))
    shown = ordered if wide else [name for name in ordered if name == BASE or _is_large(parts, name)]
    hidden = [name for name in ordered if name not in shown and any(_is_there(part) for part in parts[name])]
    if len(hidden) == 1:
        shown, hidden = [*shown, *hidden], []
    rows: list[Row] = []
    for name in shown:
        if any(_is_there(part) for part in parts[name]):
            rows.append(_row(_label(name), parts[name]))
            rows += _counter_rows(parts[name]) if wide and quantity == CYCLES else []
    if hidden:
        rows.append(_added(count(len(hidden), "other"), (_row("", parts[name]) for name in hidden)))
    wholes = [_whole(explained, quantity) for explained in group]
    return [*rows, Row(_SUM, wholes[0][0], tuple(difference for _, difference in wholes), is_sum=True)]


def _difference(part: Any) -> int:
    return 0 if part is None else int(part.difference)


def _is_there(part: Any) -> bool:
    return part is not None and bool(part.baseline or part.design)


def _is_large(parts: dict[str, list[Any]], name: str) -> bool:
    for at, part in enumerate(parts[name]):
        all_of_design = sum(abs(_difference(of[at])) for of in parts.values())
        if part is not None and part.difference and abs(part.difference) >= _SHOWN_MIN * all_of_design:
            return True
    return False


def _row(label: str, of_designs: Sequence[Any]) -> Row:
    baseline = next(part.baseline for part in of_designs if part is not None)
    return Row(label, baseline, tuple(map(_difference, of_designs)))


def _counter_rows(of_designs: Sequence[Any]) -> Iterator[Row]:
    """Yields the counters of a category, the largest difference first; none for a category that is one counter."""
    parts = [part for category in of_designs if category for part in (category, *category.counters)]
    names = dict.fromkeys(part.name for part in parts[1:])
    names.pop(parts[0].name, None)
    found = {
        name: [next((p for p in category.counters if p.name == name), None) if category else None
               for category in of_designs]
        for name in names
    }  # fmt: skip
    for name in sorted(found, key=lambda name: -max(abs(_difference(part)) for part in found[name])):
        yield _row(f"- {_label(name)}", found[name])


def _added(label: str, rows: Iterable[Row]) -> Row:
    listed = list(rows)
    differences = zip(*(row.differences for row in listed), strict=True)
    return Row(label, sum(row.baseline for row in listed), tuple(map(sum, differences)))


def _whole(explained: Any, quantity: str) -> tuple[int, int]:
    """Returns the cycles or bytes of the baseline, and the difference."""
    if quantity == CYCLES:
        return explained.baseline.core_cycles, explained.core_cycles_difference
    return explained.baseline.pmem_write_bytes, explained.bytes_difference


def _label(name: str) -> str:
    return name.replace(".", ": ").replace("_", " ")


def signed(difference: int) -> str:
    """Returns a difference with its sign."""
    return f"{difference:+,}" if difference else "0"


def share(difference: int, whole: int) -> str:
    """Returns a difference as a share of the baseline; a dash if that has nothing."""
    if not whole:
        return "-"
    return f"{difference / whole:+,.1%}" if difference else "0"


def notes_of(group: Sequence[Any], quantity: str) -> list[str]:
    """Returns the remarks below the rows of one workload."""
    runs = list(zip(names_of(group), [group[0].baseline, *(each.design for each in group)], strict=True))
    if quantity == BYTES:
        left = ", ".join(f"{name} {run.pmem_residual_dirty_bytes:,}" for name, run in runs)
        return [f"still dirty at the end, and in no row: {left}"]
    threads = {run.hardware_threads for _, run in runs}
    if threads == {1}:
        return []
    used = str(max(threads)) if len(threads) == 1 else ", ".join(f"{name} {r.hardware_threads}" for name, r in runs)
    regions = ", ".join(f"{name} {run.region_cycles:,}" for name, run in runs)
    return [f"cycles are summed over hardware threads ({used}); cycles of the region: {regions}"]


def summary(explanation: Any) -> Summary:
    """Returns the short table of an explanation; see `Explanation.summary`."""
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for group in by_workload(explanation):
        for name, explained in zip(names_of(group)[1:], group, strict=True):
            for quantity in QUANTITIES:
                whole = _whole(explained, quantity)[0]
                for row in rows_of([explained], quantity):
                    (difference,) = row.differences
                    cells = (f"{row.baseline:,}", f"{row.baseline + difference:,}", signed(difference))
                    rows.append((explained.workload, name, quantity, row.label, *cells, share(difference, whole)))
        notes += [f"{group[0].workload}: {note}" for quantity in QUANTITIES for note in notes_of(group, quantity)]
    baseline = explanation.baseline
    headers = ("workload", "design", "of", "part", baseline, "design", "difference", f"of {baseline}")
    return Summary(f"cycles and bytes of designs beside {baseline}", headers, rows, 4, notes)


def is_empty(explanation: Any, quantity: str) -> bool:
    """Whether no run has any cycles or bytes."""
    wholes = (_whole(explained, quantity) for explained in explanation.explained)
    return not any(baseline or difference for baseline, difference in wholes)


def chart(explanation: Any, quantity: str) -> altair.Chart:
    """Returns a chart of stacked bars; see `Explanation.plot`."""
    from durasim.documents.charts import stacked_chart  # noqa: PLC0415 - keeps the start-up of commands short

    if quantity not in QUANTITIES:
        raise unknown_name("quantity", quantity, QUANTITIES)
    rows: list[tuple[str, str, str, int]] = []
    for group in by_workload(explanation):
        for name, parts in _bars(group, quantity):
            rows += [(group[0].workload, name, part, value) for part, value in parts]
    if is_empty(explanation, quantity):
        raise refusal("plot", f"no run has {_VALUES[quantity]}")
    # The sum of small categories is the highest part in all bars.
    rows.sort(key=lambda row: row[2] == _OTHERS)
    workloads = list(dict.fromkeys(workload for workload, *_ in rows))
    title = TITLES[quantity] if len(workloads) > 1 else f"{workloads[0]}: {TITLES[quantity]}"
    return stacked_chart(rows, title=title, value=_VALUES[quantity], part=PARTS[quantity])


def _bars(group: Sequence[Any], quantity: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yields the bars of one workload: the baseline first. Small categories are one; there are few origins."""
    first, *names_of_designs = names_of(group)
    bars = [(first, {part.name: part.baseline for of in group for part in getattr(of, quantity)})]
    for name, explained in zip(names_of_designs, group, strict=True):
        bars.append((name, {part.name: part.design for part in getattr(explained, quantity)}))
    highest = max(sum(parts.values()) for _, parts in bars)
    names = dict.fromkeys(name for _, parts in bars for name in parts)
    large = {
        name for name in names if quantity == BYTES or any(of.get(name, 0) >= _DRAWN_MIN * highest for _, of in bars)
    }
    for label, parts in bars:
        shown = [(_label(name), parts.get(name, 0)) for name in names if name in large]
        small = sum(value for name, value in parts.items() if name not in large)
        yield label, [*shown, (_OTHERS, small)] if small else shown
