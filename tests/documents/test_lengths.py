"""Pages that are read first stay short; what concerns one part alone is on the page of that part."""

import pytest

from document_blocks import ROOT

WORDS_MAX = {"ARCHITECTURE.md": 4500, "LIMITS.md": 1800}


@pytest.mark.parametrize("page", WORDS_MAX)
def test_a_page_stays_short(page):
    assert len((ROOT / page).read_text(encoding="utf-8").split()) <= WORDS_MAX[page]
