"""Output formats of `run`, `compare` and `crash`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from durasim import output
from durasim.cli import render
from durasim.cli.tables import FoldedTable
from durasim.documents.escaping import csv_text, in_csv, printable_lines
from durasim.errors import refusal, unknown_name

if TYPE_CHECKING:
    from durasim.documents.results import CrashResult, RunResult

TABLE = "table"
SARIF = "sarif"
FORMATS = (TABLE, "markdown", "csv", "json")
FORMATS_OF_CRASH = (*FORMATS, SARIF)


def check(form: str, json: str | None, forms: Sequence[str] = FORMATS) -> None:
    """Refuses an unknown format, and two documents on standard output.

    Raises:
        ConfigError: `form` is unknown, or conflicts with the document of `--json -` on standard output.
    """
    if form not in forms:
        raise unknown_name("format", form, forms)
    if form != TABLE and json == output.STANDARD_OUTPUT:
        raise refusal("format", "cannot be combined with --json -, which writes only the document to standard output")


def is_alone(form: str, json: str | None) -> bool:
    """Whether standard output carries a document, which output of the guest would corrupt."""
    return form in ("csv", "json") or json == output.STANDARD_OUTPUT


def show(form: str, document: Any, shown: RenderableType, rows: Callable[[], str]) -> None:
    """Prints a result to standard output.

    Args:
        form: One of `FORMATS`.
        document: Output of `json`.
        shown: Output of `table` and `markdown`.
        rows: Returns the output of `csv`.
    """
    if form == TABLE:
        render.show(shown)
    elif form == "markdown":
        output.write_stdout(markdown(shown) + "\n")
    else:
        output.write_stdout(rows() if form == "csv" else output.to_json(document))


def markdown(shown: RenderableType) -> str:
    """Returns tables and texts as Markdown."""
    if isinstance(shown, Group):
        return "\n\n".join(markdown(part) for part in shown.renderables)
    if isinstance(shown, FoldedTable):
        return shown.markdown()
    # Preserve the line breaks of commands and timelines.
    text = printable_lines(shown.plain if isinstance(shown, Text) else str(shown))
    # A longer fence than any in the text.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def runs_csv(results: Sequence[RunResult], baseline: str | None = None) -> str:
    """Returns a row for each run; column names end with the unit. List elements are separated by spaces."""
    from durasim.documents.frame import comparison_frame  # noqa: PLC0415 - polars takes a while to load

    return csv_text(comparison_frame(results, baseline))


def crash_csv(result: CrashResult) -> str:
    """Returns a row for each failure listed in the document."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "oracle", "message", "alike", "command"))
    rows = ((of.id, of.oracle, of.message, of.alike, of.command) for of in result.failures)
    writer.writerows(map(in_csv, row) for row in rows)
    return text.getvalue()
