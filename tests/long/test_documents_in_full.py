"""All code blocks of all pages run, including those that are too long for `make test`."""

import pytest

import document_blocks
from document_blocks import blocks_of, run_page

pytestmark = pytest.mark.long
PAGES = [page for page in document_blocks.pages() if any(block.is_run and block.is_long for block in blocks_of(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(document_blocks.ROOT).as_posix())
def test_all_blocks_do_what_the_page_says(page, tmp_path):
    assert any(block.is_long for block in run_page(page, tmp_path, with_long=True))
