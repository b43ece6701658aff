"""The report of cache-block operations and fences by line of the source, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durasim.cli.tables import Column, FoldedTable
from durasim.documents.causes import place

Json = Mapping[str, Any]

_LINES_SHOWN = 20
_NUMBERS = {
    "operations": "cache-block\noperations",
    "operations_without_store": "without\na store",
    "fences": "fences",
    "fences_without_operation": "without an\noperation",
    "fence_wait_cycles": "wait of fences\ncycles",
    "uncleaned_bytes": "never cleaned\nbytes",
}
_MORE = {
    "operations_of_clean_lines": "of clean\nlines",
    "operations_of_volatile_lines": "of volatile\nlines",
    "operation_wait_cycles": "wait for operations\ncycles",
    "wasted_wait_cycles": "of that wasted\ncycles",
    "stores": "stores",
    "stored_bytes": "stored\nbytes",
}


def persistence_table(report: Json, *, wide: bool = False) -> FoldedTable:
    """Returns a row for each line, those with the most waste first, and the total."""
    shown = {**_NUMBERS, **(_MORE if wide else {})}
    lines = sorted(report["lines"], key=_waste, reverse=True)
    kept = lines if wide else lines[:_LINES_SHOWN]
    table = FoldedTable(
        "use of persistent memory by line of the source",
        [Column("line"), *(Column(header, right=True) for header in shown.values())],
        caption=_caption(report, len(lines) - len(kept)),
    )
    for line in kept:
        table.add_row(place({"at": line, "pc": line["pcs"][0]}), *(f"{line[name]:,}" for name in shown))
    table.add_section()
    table.add_row("total", *(f"{report['total'][name]:,}" for name in shown))
    return table


def _waste(line: Json) -> tuple[int, int, int]:
    wasted = line["operations_without_store"] + line["operations_of_volatile_lines"] + line["fences_without_operation"]
    return wasted, line["uncleaned_bytes"], line["fence_wait_cycles"]


def _caption(report: Json, left_out: int) -> str:
    per_stored, parts = report["cleaned_per_stored"], []
    if per_stored is not None:
        stored_bytes = report["total"]["stored_bytes"]
        parts.append(f"{report['cleaned_bytes']:,} bytes cleaned for {stored_bytes:,} stored: {per_stored:.2f}")
    if left_out:
        parts.append(f"--wide lists {left_out} more lines")
    if report["debug_information"] is not None:
        parts.append(report["debug_information"])
    return "; ".join(parts)
