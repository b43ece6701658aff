"""Tables of studies and of the store for the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from durasim.cli.tables import Column, FoldedTable
from durasim.documents.causes import cause_rows
from durasim.documents.escaping import printable
from durasim.documents.summaries import (
    FAILURES_SHOWN,
    POINT_METRICS,
    axis_value,
    enclosed,
    first_failures,
    has_several_values,
    number,
    point_name,
    point_rows,
    shown_axes,
    sweep_title,
)
from durasim.documents.sweep import SweepResult
from durasim.documents.sweep_plan import Plan
from durasim.store.database import Entry
from durasim.studies.pareto import COLUMN

if TYPE_CHECKING:
    import polars

_ROWS_MAX = 60
"""Rows of a table without `--wide`."""


def study_tables(result: SweepResult, frame: polars.DataFrame, *, wide: bool = False) -> RenderableType:
    """Returns a table of the points, bisections, failed points with their commands, and notes.

    Args:
        result: The result of the study.
        frame: Its data frame, which may mark a frontier.
        wide: Whether to show all points with all metrics.
    """
    marks = frame[COLUMN].to_list() if COLUMN in frame.columns else []
    parts: list[RenderableType] = [_points(result, marks, wide=wide)]
    if result.refined:
        parts.append(_refined(result))
    parts += _crashes(result, wide=wide)
    failed = [point for point in result.points if point.error is not None]
    if failed:
        table = FoldedTable("failed points", [Column("reason", wraps=True), Column("command", wraps=True)], keys=0)
        for point in failed:
            table.add_row(point.error or "", point.command)
        parts.append(table)
    parts += [Text(f"note: {note}") for note in result.notes]
    return Group(*parts)


def _points(result: SweepResult, marks: Sequence[bool], *, wide: bool) -> FoldedTable:
    axes = list(result.axes) if wide else shown_axes(result)
    names = {name for point in result.points for name in point.metrics}
    shown = {name: name for name in sorted(names)} if wide else POINT_METRICS[result.kind]
    columns = [*map(_axis, axes), *(Column(header, right=True) for header in shown.values()), Column("state")]
    columns += [Column("on\nfrontier")] if marks else []
    table = FoldedTable(sweep_title(result), columns, keys=len(axes))
    rows = point_rows(result, axes, shown)
    for place, row in enumerate(rows if wide else rows[:_ROWS_MAX]):
        table.add_row(*row, *(["yes" if marks[place] else "no"] if marks else []))
    if not wide and len(rows) > _ROWS_MAX:
        table.caption = f"the first {_ROWS_MAX} of {len(rows)} points; --wide or --format csv has all"
    return table


def _crashes(result: SweepResult, *, wide: bool) -> Iterator[RenderableType]:
    """Yields the causes of violations of each point as a table, and its first failure of each message."""
    axes = list(result.axes) if wide else shown_axes(result)
    rows = [(point, row) for point in result.points for row in cause_rows(point.causes)]
    if rows:
        columns = [*map(_axis, axes), *map(Column, ("store", "state", "missing", "confirmed"))]
        table = FoldedTable("causes of violations", [*columns, Column("violations", right=True)], keys=len(axes))
        for point, row in rows if wide else rows[:_ROWS_MAX]:
            cells = (row["place"], row["what"], row["missing"], "yes" if row["confirmed"] else "no")
            table.add_row(*(axis_value(point.values[key]) for key in axes), *cells, number(row["violations"]))
        if not wide and len(rows) > _ROWS_MAX:
            table.caption = f"the first {_ROWS_MAX} of {len(rows)} causes; --wide or --json has all"
        yield table
    failing = [point for point in result.points if point.failures]
    for point in failing if wide else failing[:FAILURES_SHOWN]:
        text = Text(f"{point_name(result, point)}:", no_wrap=True, overflow="ignore")
        for failure in first_failures(point):
            message = f"{failure.id} ({failure.oracle}): {printable(failure.message)}"
            text.append(f"\n  {message}\n    {failure.command}")
        yield text
    if not wide and len(failing) > FAILURES_SHOWN:
        yield Text(f"and {len(failing) - FAILURES_SHOWN} more points with violations; --wide or --json has all")


def _axis(key: str) -> Column:
    # The last two parts of a key say enough beside the others.
    return Column(key.replace(".", ".\n", 1) if key.startswith("design.") else key)


def _refined(result: SweepResult) -> FoldedTable:
    first = result.refined[0]
    others = [key for key in first.values if key in ("design", "workload") or has_several_values(result, key)]
    headers = ("below", "at or above", "metric\nbelow", "metric\nat or above", "threshold")
    columns = [*map(_axis, others), *(Column(header, right=True) for header in headers)]
    table = FoldedTable(f"{first.axis}: values that enclose the threshold", columns, keys=len(others))
    for found in result.refined:
        table.add_row(*(axis_value(found.values[key]) for key in others), *enclosed(found), number(found.threshold))
    return table


def plan_tables(plans: Sequence[Plan], *, wide: bool = False) -> Group:
    """Returns the points of several plans."""
    return Group(*(plan_table(plan, wide=wide) for plan in plans))


def plan_table(plan: Plan, *, wide: bool = False) -> FoldedTable:
    """Returns the points of a plan, with expected time and memory in its title."""
    time_text = "time unknown" if plan.minutes is None else _minutes(plan.minutes)
    memory = f"about {plan.memory_bytes / 2**20:,.0f} MiB" if plan.to_simulate else "no memory"
    title = (
        f"{plan.name}: {len(plan.points)} points, {plan.to_simulate} to simulate, {time_text} and {memory} with "
        f"{plan.jobs} processes"
    )
    axes = [key for key in plan.points[0].values if all(key in point.values for point in plan.points)]
    columns = [*map(_axis, axes), Column("expected\nseconds", right=True), Column("stored")]
    table = FoldedTable(title, columns, keys=len(axes))
    for point in plan.points if wide else plan.points[:_ROWS_MAX]:
        seconds = "unknown" if point.seconds is None else f"{point.seconds:.1f}"
        cells = ("", "yes") if point.is_stored else (seconds, "no")
        table.add_row(*(axis_value(point.values[key]) for key in axes), *cells)
    if not wide and len(plan.points) > _ROWS_MAX:
        table.caption = f"the first {_ROWS_MAX} of {len(plan.points)} points; --wide or --json has all"
    return table


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes:,.0f} minutes" if minutes < 120 else f"about {minutes / 60:,.1f} hours"  # noqa: PLR2004 - two hours


def entries_table(path: str, entries: Sequence[Entry]) -> FoldedTable:
    """Returns the stored results."""
    columns = [
        Column("key"), Column("kind"), Column("study"), Column("design"), Column("workload"), Column("machine"),
        Column("seconds", right=True), Column("stored"), Column("digest"),
    ]  # fmt: skip
    table = FoldedTable(f"{path}: {len(entries)} results", columns)
    for entry in entries:
        stored = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created_s))
        table.add_row(
            entry.key[:12], entry.kind, entry.study, entry.design, entry.workload, entry.machine,
            f"{entry.seconds:.1f}", stored, entry.digest[:12],
        )  # fmt: skip
    return table
