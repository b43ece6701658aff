"""All code blocks of all pages run, including those that are too long for `make test`."""

import pytest

import document_blocks
from document_blocks import blocks_of, run_page

pytestmark = [pytest.mark.long, pytest.mark.minutes(5)]
PAGES = [page for page in document_blocks.pages() if any(block.is_run and block.is_long for block in blocks_of(page))]
# These pages compile the crates of durasim in the folder in which test_own_design.py compiles them.
GROUPS = {"docs/own-designs.md": "own designs"}


def _case(page):
    name = page.relative_to(document_blocks.ROOT).as_posix()
    marks = [pytest.mark.minutes(10), pytest.mark.xdist_group(GROUPS[name])] if name in GROUPS else ()
    return pytest.param(page, id=name, marks=marks)


@pytest.mark.parametrize("page", [_case(page) for page in PAGES])
def test_all_blocks_do_what_the_page_says(page, tmp_path):
    assert any(block.is_long for block in run_page(page, tmp_path, with_long=True))
