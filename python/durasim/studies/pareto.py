"""Frontiers: the points of a study that no other point beats in all metrics at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from durasim.documents.metrics import metric_named
from durasim.documents.sweep import SweepResult
from durasim.errors import refusal
from durasim.studies.study import Study

if TYPE_CHECKING:
    import polars

COLUMN = "on_frontier"


def pareto(
    frame: polars.DataFrame,
    *,
    maximize: Iterable[str] = (),
    minimize: Iterable[str] = (),
    by: Iterable[str] = (),
) -> polars.DataFrame:
    """Returns a data frame with a column `on_frontier`: whether no other row is better in all of these metrics.

    A row is beaten by one that is at least as good in each metric and better in one; equal rows are all on the
    frontier. Rows without a value of a metric are not.

    Args:
        frame: The data frame of a study or comparison.
        maximize: Columns to maximize, or the begins of their names.
        minimize: Columns to minimize.
        by: Columns with a frontier for each combination of their values, such as `workload`.

    Raises:
        ConfigError: No metric is given, one is given twice, or a column is unknown.
    """
    import polars  # noqa: PLC0415 - polars takes a while to load

    signs = [(metric_named(name, frame.columns, "maximize"), 1.0) for name in _listed("maximize", maximize)]
    signs += [(metric_named(name, frame.columns, "minimize"), -1.0) for name in _listed("minimize", minimize)]
    groups = [metric_named(name, frame.columns, "by") for name in _listed("by", by)]
    names = [name for name, _ in signs]
    if not names:
        raise refusal("maximize", "give at least one metric to maximize or minimize")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise refusal("minimize", f"{', '.join(twice)} is given twice")
    for name in names:
        if not frame.schema[name].is_numeric():
            raise refusal("maximize", f"{name} has no numbers")
    found: dict[tuple[object, ...], list[tuple[int, tuple[float, ...]]]] = {}
    for number, row in enumerate(frame.iter_rows(named=True)):
        values = [row[name] for name in names]
        if all(value is not None for value in values):
            better = tuple(sign * value for value, (_, sign) in zip(values, signs, strict=True))
            found.setdefault(tuple(row[name] for name in groups), []).append((number, better))
    marked = {number for rows in found.values() for number in _frontier(rows)}
    marks = [number in marked for number in range(frame.height)]
    return frame.with_columns(polars.Series(COLUMN, marks, dtype=polars.Boolean))


def frame_of(study: Study, result: SweepResult) -> polars.DataFrame:
    """Returns the data frame of a study, with the frontier that its file asks for."""
    frame, asked = result.to_frame(), study.tables.get("pareto")
    return frame if asked is None or frame.is_empty() else pareto(frame, **asked)


def _listed(field: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise refusal(field, "expected a list of names, not one string")
    return list(names)


def _frontier(rows: Sequence[tuple[int, tuple[float, ...]]]) -> Iterable[int]:
    """Yields the rows that no other one beats. In descending order only rows before a row can beat it."""
    kept: list[tuple[float, ...]] = []
    for number, values in sorted(rows, key=lambda row: row[1], reverse=True):
        if not any(_beats(other, values) for other in kept):
            kept.append(values)
            yield number


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))
