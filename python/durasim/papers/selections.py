"""Selections of runs: the numbers that a value of a formula reads from documents, labelled by the axes of the runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from durasim.errors import refusal
from durasim.papers.cells import Cells
from durasim.papers.grids import Cell

_NO_AXES = ("runs", "metric", "unset")

Found = list[tuple[Cell, Mapping[str, float | None]]]
"""Cells with the numbers of their documents by path."""


def paths_of(selections: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns the paths that selections read from documents of runs."""
    return tuple(dict.fromkeys(selection["metric"] for selection in selections if "runs" in selection))


def groups_of(selection: Mapping[str, Any]) -> list[str]:
    """Returns the names of the tables of runs that a selection reads; none for a selection without runs."""
    named = selection.get("runs", [])
    return named if isinstance(named, list) else [named]


def is_read(selection: Mapping[str, Any], cell: Cell) -> bool:
    """Returns whether a selection reads a cell."""
    wanted = ((key, value) for key, value in selection.items() if key not in _NO_AXES)
    return cell.runs in groups_of(selection) and all(
        cell.values.get(key) in (value if isinstance(value, list) else [value]) for key, value in wanted
    )


def number_at(document: Mapping[str, Any], path: str) -> float | None:
    """Returns the number at a path such as `stats.llc.misses`; None if there is none.

    `*` stands for all names at its place, as in `tx.aborted_by.*`: the number is their sum, 0 if the place is empty.
    """
    found = list(_numbers(document, path.split(".")))
    is_sum = "*" in path and any(True for _ in _nodes(document, path.partition("*")[0].rstrip(".").split(".")))
    return sum(found) if found or is_sum else None


def _numbers(document: Any, parts: Sequence[str]) -> Iterator[float]:
    for node in _nodes(document, parts):
        number = node.get("value") if isinstance(node, Mapping) else node
        if isinstance(number, int | float):
            yield float(number)


def _nodes(node: Any, parts: Sequence[str]) -> Iterator[Any]:
    if not parts:
        yield node
    elif isinstance(node, Mapping):
        for name in list(node) if parts[0] == "*" else [parts[0]]:
            if name in node:
                yield from _nodes(node[name], parts[1:])


def select(selection: Mapping[str, Any], found: Found) -> Cells:
    """Returns the numbers of a selection.

    Args:
        selection: `runs`, `metric`, and the values of axes: one, or several that are all kept. `unset` has the
            values of axes for runs of tables without them.
        found: All cells with their numbers.

    Raises:
        ConfigError: No run is selected, or a document has no such number.
    """
    groups = groups_of(selection)
    wanted = {
        key: value if isinstance(value, list) else [value] for key, value in selection.items() if key not in _NO_AXES
    }
    named, unset = ", ".join(groups), selection.get("unset", {})
    numbers: dict[tuple[Any, ...], float] = {}
    axes: dict[str, None] = {}
    chosen = []
    for cell, of in found:
        if cell.runs not in groups:
            continue
        if unknown := sorted(wanted.keys() - cell.values.keys()):
            raise refusal("values", f"runs {named} have no axis '{unknown[0]}', but {', '.join(cell.values)}")
        if all(cell.values[key] in values for key, values in wanted.items()):
            chosen.append((cell, of))
            axes |= dict.fromkeys(cell.values)
    if chosen and (unknown := sorted(unset.keys() - axes.keys())):
        raise refusal("values.unset", f"runs {named} have no axis '{unknown[0]}', but {', '.join(axes)}")
    for cell, of in _in_order(chosen, wanted):
        number = of[selection["metric"]]
        if number is None:
            raise refusal("metric", f"'{selection['metric']}' is no number in the result of {_text(cell.values)}")
        place = tuple(cell.values.get(axis, unset.get(axis)) for axis in axes)
        if place in numbers:
            raise refusal(
                "values", f"several runs of {named} have {_text(cell.values)}: give each an axis that differs"
            )
        numbers[place] = number
    if not numbers:
        raise refusal("values", f"no run of {named} has {_text({key: selection[key] for key in wanted})}")
    return Cells(tuple(axes), numbers).without_constant_axes()


def _in_order(chosen: Found, wanted: Mapping[str, Sequence[Any]]) -> Found:
    """Returns the chosen cells in the order of the listed values, then in that of the runs."""
    several = [(key, values) for key, values in wanted.items() if len(values) > 1]
    return sorted(chosen, key=lambda item: [values.index(item[0].values[key]) for key, values in several])


def _text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None) or "these values"
