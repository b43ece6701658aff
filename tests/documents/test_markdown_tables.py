"""Rows of Markdown tables have as many cells as the header: a renderer leaves out what is too much."""

import re

import pytest

import document_blocks
from document_blocks import ROOT, tokens_of

SEPARATOR = re.compile(r"(?<!\\)\|")


def _rows(page):
    """The number of cells of each row by its line, for each table."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for token in tokens_of(page):
        if token.type == "table_open":
            first, after = token.map
            yield {at + 1: len(SEPARATOR.findall(lines[at])) - 1 for at in range(first, after)}


@pytest.mark.parametrize("page", document_blocks.pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_rows_have_a_cell_for_each_header(page):
    odd = [(line, cells) for rows in _rows(page) for line, cells in rows.items() if cells != next(iter(rows.values()))]
    assert odd == []


def test_a_row_with_another_number_of_cells_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("| a | b |\n| --- | ---: |\n| 1 | `x\\|y` |\n| 1 | 2 | 3 |\n", encoding="utf-8")
    assert list(_rows(page)) == [{1: 2, 2: 2, 3: 2, 4: 3}]
