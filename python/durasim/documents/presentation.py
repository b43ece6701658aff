"""Results in notebooks: a short table as HTML, a chart, and data frames of polars and pandas.

A page of a notebook runs scripts, so the tables have none, and text of others is escaped.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim.documents.document import Document
from durasim.documents.escaping import in_html
from durasim.errors import refusal

if TYPE_CHECKING:
    import altair
    import pandas
    import polars

_ROWS_MAX = 60
"""Rows of a table in a notebook; `to_frame` has all."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A short table.

    Attributes:
        title: Its title.
        headers: Headers with units; empty for a table without headers.
        rows: Rows of equal length.
        numbers: Number of columns, from the right, with numbers.
        notes: Sentences below it.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: int = 0
    notes: Sequence[str] = ()

    def to_html(self) -> str:
        """Returns the table as HTML, without scripts."""
        parts = ["<table>", f'<caption style="text-align: left">{in_html(self.title)}</caption>']
        if self.headers:
            parts += ["<thead>", self._row("th", self.headers), "</thead>"]
        parts += ["<tbody>", *(self._row("td", row) for row in self.rows[:_ROWS_MAX]), "</tbody>", "</table>"]
        notes = list(self.notes)
        if len(self.rows) > _ROWS_MAX:
            notes.insert(0, f"the first {_ROWS_MAX} of {len(self.rows)} rows; to_frame() has all")
        return "\n".join([*parts, *(f"<p>{in_html(note)}</p>" for note in notes)])

    def _row(self, element: str, cells: Sequence[str]) -> str:
        first_number = len(cells) - self.numbers
        aligned = (("right" if place >= first_number else "left", cell) for place, cell in enumerate(cells))
        shown = (f'<{element} style="text-align: {side}">{_cell(cell)}</{element}>' for side, cell in aligned)
        return f"<tr>{''.join(shown)}</tr>"


def _cell(text: str) -> str:
    """Returns the HTML of a cell; headers have several lines."""
    return "<br>".join(in_html(line) for line in text.split("\n"))


class Presented(abc.ABC):
    """A result that notebooks show as a table, and that becomes a data frame."""

    __slots__ = ()

    @abc.abstractmethod
    def summary(self) -> Summary:
        """Returns the short table that a notebook shows."""

    @abc.abstractmethod
    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame; the names of columns end with the unit."""

    def to_pandas(self) -> pandas.DataFrame:
        """Returns `to_frame` as a data frame of pandas, which the extra `durasim[pandas]` installs.

        Raises:
            ConfigError: pandas is not installed.
        """
        from durasim.documents.frame import pandas_frame  # noqa: PLC0415 - polars takes a while to load

        return pandas_frame(self.to_frame())

    def _repr_html_(self) -> str:
        return self.summary().to_html()


class PresentedRun(Presented, Document):
    """The presentation of a `RunResult`, which is generated."""

    __slots__ = ()

    def summary(self) -> Summary:
        """Returns the main measures of the run with their units."""
        from durasim.documents.summaries import run_rows  # noqa: PLC0415 - keeps the start-up of commands short

        of: Any = self
        rows = [(name, value, unit) for name, value, unit in run_rows(of)]
        title = f"{of.workload} under {of.design} on {of.machine} ({of.domain})"
        return Summary(title, ("measure", "value", "unit"), rows)

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row, with the columns of the data frame of a comparison."""
        from durasim.documents.frame import comparison_frame  # noqa: PLC0415 - polars takes a while to load

        of: Any = self
        return comparison_frame([of])

    def plot(self) -> altair.Chart:
        """Returns a chart of the bytes written to persistent memory by cause.

        Raises:
            ConfigError: The run was functional and has no such bytes.
        """
        from durasim.documents.charts import bar_chart  # noqa: PLC0415 - keeps the start-up of commands short

        of: Any = self
        if of.provenance.functional:
            raise refusal("plot", "a functional run has no caches and no writes to persistent memory")
        rows = [(name, None, size) for name, size in of.pmem_write_bytes.to_dict().items() if name != "total"]
        title = f"{of.workload} under {of.design}"
        return bar_chart(rows, title=title, of="cause", value="bytes written to persistent memory")
