"""Tables of an explanation for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from durasim.cli.tables import Column, FoldedTable
from durasim.documents.explanation import QUANTITIES, Explained, Explanation
from durasim.documents.explanation_rows import PARTS, TITLES, by_workload, names_of, notes_of, rows_of, share, signed
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
        columns += [Column(f"{shown}\n- {baseline}", right=True), Column(f"of\n{baseline}", right=True)]
    title = f"{group[0].workload} on {group[0].machine}: {TITLES[quantity]}"
    table = FoldedTable(title, columns, keys=2)
    rows = rows_of(group, quantity, wide=wide)
    for row in rows:
        if row.is_sum:
            table.add_section()
        cells = [
            cell
            for difference in row.differences
            for cell in (signed(difference), share(difference, rows[-1].baseline))
        ]
        table.add_row(row.label, f"{row.baseline:,}", *cells)
    table.caption = "; ".join(notes_of(group, quantity)) or None
    return table
