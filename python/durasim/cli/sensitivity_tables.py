"""Tables of the sensitivity experiment for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from durasim.cli.study_tables import plan_table
from durasim.cli.tables import Column, FoldedTable
from durasim.documents.sensitivity import Sensitivity
from durasim.documents.sweep_plan import Plan
from durasim.papers.sensitivity_study import CORES, HOURS_MAX

_SHOWN = 10
"""Assumptions in the table without `--wide`."""


def plan(planned: Plan, *, wide: bool = False) -> Group:
    """Returns the points of a plan, and how many hours of two cores are expected, of those that the whole may take."""
    seconds = [of.seconds for of in planned.points if not of.is_stored]
    known = [of for of in seconds if of is not None]
    hours = sum(known) / CORES / 3600
    unknown = f", and {len(seconds) - len(known)} points whose time is unknown" if len(known) < len(seconds) else ""
    text = f"expected: {hours:.1f} hours of {CORES} cores{unknown}; all places together may take {HOURS_MAX:.0f}"
    return Group(plan_table(planned, wide=wide), Text(text))


def tables(document: Sensitivity, *, wide: bool = False) -> RenderableType:
    """Returns the assumptions that change a ratio of two designs most, failed runs, and with `--wide` all runs."""
    columns = [Column("assumption"), Column("paper"), Column("program"), Column("instead", wraps=True)]
    columns += [
        Column("throughput of"),
        Column("over"),
        Column("as assumed", right=True),
        Column("instead", right=True),
    ]
    moved = FoldedTable("assumptions, by the largest change of a ratio of two designs", columns, keys=1)
    shown = document.moved if wide else document.moved[:_SHOWN]
    for of in shown:
        ends = (f"{of.assumed:.3g}", f"{of.instead:.3g}")
        moved.add_row(of.key, of.paper, of.workload, of.setting, of.design, of.baseline, *ends)
    varied = {row.key for row in document.rows if row.key}
    moved.caption = (
        f"assumptions varied: {len(varied)}, without an alternative: {len(document.not_varied)}; "
        f"runs: {len(document.rows)}; build {document.build}"
    )
    parts: list[RenderableType] = [moved]
    if wide:
        parts.append(_runs(document))
    if document.failed:
        table = FoldedTable("failed runs", [Column("reason", wraps=True), Column("command", wraps=True)], keys=0)
        for row in document.rows:
            if row.error is not None:
                table.add_row(row.error, row.command)
        parts.append(table)
    return Group(*parts)


def _runs(document: Sensitivity) -> FoldedTable:
    columns = [
        Column("assumption"),
        Column("paper"),
        Column("program"),
        Column("instead", wraps=True),
        Column("design"),
    ]
    columns += [Column("ops/us", right=True), Column("throughput", right=True), Column("pmem bytes", right=True)]
    table = FoldedTable("all runs, relative to that with all assumptions", columns, keys=5)
    for row in document.rows:
        ratios = [_ratio(of) for of in (row.throughput_ratio, row.pmem_bytes_ratio)]
        throughput = "-" if row.throughput_ops_per_us is None else f"{row.throughput_ops_per_us:.4g}"
        table.add_row(row.key or "-", row.paper, row.workload, row.setting or "-", row.design, throughput, *ratios)
    return table


def _ratio(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"
