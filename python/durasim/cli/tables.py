"""Tables for narrow terminals: columns that do not fit side by side are printed in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from durasim.documents.escaping import in_markdown, printable

# In addition to its text, a column has a space on both sides and a border.
_COLUMN_EXTRA = 3
_KEY_MAX = 36
"""Maximum width of key columns; longer keys are wrapped to leave space for other columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        header: Its header; line breaks are kept.
        right: Whether its cells are right-aligned, such as numbers.
        wraps: Whether its cells are sentences that may be wrapped between words.
        wraps_at: Minimum width of a wrapped column.
    """

    header: str
    right: bool = False
    wraps: bool = False
    wraps_at: int = 30


@dataclass(slots=True)
class _Row:
    cells: tuple[str, ...]
    style: str
    ends_section: bool = False


@dataclass(slots=True)
class FoldedTable:
    """A table that is split by columns into blocks that fit the width; each block starts with the key columns.

    Attributes:
        title: Title above the first block.
        columns: The columns.
        keys: Number of key columns, from the left.
        caption: Caption below the last block.
        header: Whether to show the headers.
    """

    title: str
    columns: Sequence[Column]
    keys: int = 1
    caption: str | None = None
    header: bool = True
    _rows: list[_Row] = field(default_factory=list)

    def add_row(self, *cells: str, style: str = "") -> None:
        """Adds a row with a cell for each column."""
        self._rows.append(_Row(tuple(map(printable, cells)), style))

    def add_section(self) -> None:
        """Draws a line below the last row."""
        if self._rows:
            self._rows[-1].ends_section = True

    def markdown(self) -> str:
        """Returns all columns as one Markdown table, with the title above and the caption below."""
        headers = (
            [column.header.replace("\n", " ") for column in self.columns] if self.header else ["" for _ in self.columns]
        )
        marks = ["---:" if column.right else "---" for column in self.columns]
        rows = [headers, marks, *(row.cells for row in self._rows)]
        lines = [f"| {' | '.join(in_markdown(cell) for cell in cells)} |" for cells in rows]
        caption = [] if self.caption is None else ["", self.caption]
        return "\n".join([f"**{in_markdown(self.title)}**", "", *lines, *caption])

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the blocks to rich."""
        blocks = list(self._blocks(options.max_width))
        for number, block in enumerate(blocks):
            yield self._block(block, is_first=number == 0, is_last=number == len(blocks) - 1)

    def _blocks(self, width: int) -> Iterator[list[int]]:
        """Returns the indices of the columns of each block."""
        keys = list(range(self.keys))
        room = width - 1 - sum(self._width(key) + _COLUMN_EXTRA for key in keys)
        block: list[int] = []
        left = room
        for number in range(self.keys, len(self.columns)):
            needed = self._width(number) + _COLUMN_EXTRA
            if block and needed > left:
                yield keys + block
                block, left = [], room
            block.append(number)
            left -= needed
        yield keys + block

    def _width(self, number: int) -> int:
        """Returns the minimum width of a column."""
        column, natural = self.columns[number], self._natural_width(number)
        if column.wraps:
            return min(natural, column.wraps_at)
        return min(natural, _KEY_MAX) if number < self.keys else natural

    def _natural_width(self, number: int) -> int:
        """Returns the width of the longest text of a column."""
        column = self.columns[number]
        texts = [*(column.header.split("\n") if self.header else ()), *(row.cells[number] for row in self._rows)]
        return max((cell_len(text) for text in texts), default=0)

    def _block(self, numbers: list[int], *, is_first: bool, is_last: bool) -> Table:
        caption = self.caption
        # Titles and headers contain names, whose brackets are not markup.
        table = Table(
            title=Text(printable(self.title), style="table.title") if is_first else None,
            caption=Text(printable(caption), style="table.caption") if is_last and caption is not None else None,
            show_header=self.header,
        )
        for number in numbers:
            column = self.columns[number]
            is_fixed = not column.wraps and (number >= self.keys or self._natural_width(number) <= _KEY_MAX)
            table.add_column(
                Text(column.header), justify="right" if column.right else "left", no_wrap=is_fixed, overflow="fold"
            )
        for row in self._rows:
            # A cell is plain text; brackets are not markup.
            cells = [Text(row.cells[number]) for number in numbers]
            table.add_row(*cells, style=row.style, end_section=row.ends_section)
        return table
