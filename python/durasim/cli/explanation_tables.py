"""Tables of an explanation for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from durasim.cli.tables import Column, FoldedTable
from durasim.documents.explanation import Explained, Explanation
from durasim.documents.explanation_rows import (
    PARTS,
    QUANTITIES,
    TITLES,
    Row,
    by_workload,
    names_of,
    notes_of,
    rows_of,
    share,
    signed,
)
from durasim.runs.sensitivity import with_dagger


def explanation_tables(explanation: Explanation, *, wide: bool = False) -> RenderableType:
    """Returns for each workload a table of cycles and one of bytes, with a column for each design.

    Args:
        explanation: The explanation.
        wide: Whether to show all categories with their counters instead of the main categories.
    """
    return Group(*(_table(group, quantity, wide=wide) for group in by_workload(explanation) for quantity in QUANTITIES))


def _table(group: Sequence[Explained], quantity: str, *, wide: bool) -> FoldedTable:
    baseline, *designs = names_of(group)
    columns = [Column(PARTS[quantity]), Column(baseline, right=True)]
    for name, explained in zip(designs, group, strict=True):
        shown = name.replace(explained.design.design, with_dagger(explained.design.design), 1)
        columns.append(Column(f"{shown}\n- {baseline}", right=True))
    table = FoldedTable(f"{group[0].workload} on {group[0].machine}: {TITLES[quantity]}", columns, keys=2)
    rows = rows_of(group, quantity, wide=wide)
    cells = zip(*(_cells(rows, at) for at in range(len(group))), strict=True)
    for row, of_designs in zip(rows, cells, strict=True):
        if row.is_sum:
            table.add_section()
        table.add_row(row.label, f"{row.baseline:,}", *of_designs)
    table.caption = "; ".join(notes_of(group, quantity)) or None
    return table


def _cells(rows: Sequence[Row], at: int) -> list[str]:
    """Returns the column of a design: differences, each with its share of the baseline, aligned."""
    shares = [share(row.differences[at], rows[-1].baseline) for row in rows]
    width = max(map(len, shares))
    return [f"{signed(row.differences[at])} {of:>{width}}" for row, of in zip(rows, shares, strict=True)]
