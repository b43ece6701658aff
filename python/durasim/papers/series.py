"""Series of figures: our numbers over an axis of the runs, drawn as the paper draws them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim.errors import refusal
from durasim.papers.formulas import Formula, formula_of
from durasim.papers.verdicts import Published

Names = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A published number that a series shows.

    Attributes:
        x: The value of the axis at which it is shown.
        ends: Ends of its range, equal for a single number.
    """

    x: str
    ends: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """A table `[[series]]` of the file of a figure.

    Attributes:
        drawn: The table: form, axes, scales and titles.
        formula: The formula of the numbers.
        selections: The selection of runs of each value, by the name that the formula uses.
        marks: The published numbers that are shown with it.
        peak: Ends of the published range of the axis in which a curve has its largest number; empty without one.
        labels: Names of designs and workloads in the paper by their own names.
    """

    drawn: Mapping[str, Any]
    formula: Formula
    selections: Mapping[str, Mapping[str, Any]]
    marks: tuple[Mark, ...]
    peak: tuple[float, ...]
    labels: Mapping[str, str]


def series_of_tables(
    tables: Mapping[str, Any], published: Sequence[tuple[Published, Mapping[str, Any]]], names: Names
) -> Iterator[Series]:
    """Yields the series of the file of a figure.

    Args:
        tables: The tables of the file.
        published: Its published numbers, each with its table.
        names: Names of designs and workloads of the paper and the file, by kind.

    Raises:
        ConfigError: A table is wrong.
    """
    values = tables.get("values", {})
    labels: dict[str, str] = {}
    for kind in names.values():
        for label, name in kind.items():
            if isinstance(name, str):
                labels.setdefault(name, label)
    for table in tables.get("series", ()):
        formula = formula_of(table["formula"], tuple(values))
        selections = {name: values[name] for name in formula.names()}
        for name, selection in selections.items():
            if placed := [value for value in selection.values() if isinstance(value, str) and value.startswith("$")]:
                raise refusal("series", f"value '{name}' has {placed[0]}, which stands for that of a published number")
        if table["form"] == "bars" and table.keys() & {"x_scale", "peak"}:
            raise refusal("series", f"'{table['title']}' has bars: x_scale and peak are for curves")
        yield Series(table, formula, selections, _marks(table, published), _peak(table, published), labels)


def _marks(table: Mapping[str, Any], published: Sequence[tuple[Published, Mapping[str, Any]]]) -> tuple[Mark, ...]:
    if "published" not in table:
        return ()
    wanted = [(of, row) for of, row in published if of.metric == table["published"]]
    found = tuple(Mark(row["at"], of.ends) for of, row in wanted if "at" in row and of.is_number)
    if not found:
        raise refusal("series.published", f"no published number of '{table['published']}' says at which {table['x']}")
    return found


def _peak(table: Mapping[str, Any], published: Sequence[tuple[Published, Mapping[str, Any]]]) -> tuple[float, ...]:
    if "peak" not in table:
        return ()
    found = {of.ends for of, _ in published if of.metric == table["peak"] and of.is_number}
    if len(found) != 1:
        raise refusal("series.peak", f"'{table['peak']}' is published with {len(found)} different ranges, not one")
    return next(iter(found))
