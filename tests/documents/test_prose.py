"""Prose of pages: identifiers are in backticks, and the count of oracles is that of the program."""

import re

import pytest

import document_blocks
from document_blocks import ROOT, tokens_of

PAGES = [*document_blocks.pages(), ROOT / "tests/timing/README.md"]
# A word such as `store_fast_path`. One outside of backticks is an identifier that took the place of a plain word.
IDENTIFIER = re.compile(r"(?!x86_64)(?<![\w/.*-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/.*-])")
# Names of oracles in the source, and the words for their number.
ORACLES = re.compile(r"pub\(crate\) enum Oracle \{(.*?)\n\}", re.DOTALL)
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")
COUNT = re.compile(r"(?i)\b(\w+)(?: independent)? oracles\b")
COUNTED_PAGES = [page for page in PAGES if page.name != "CHANGELOG.md"]


def _name(page):
    return page.relative_to(ROOT).as_posix()


def _prose(page):
    """The text of a page that is neither code nor in a table."""
    is_table = False
    for token in tokens_of(page):
        is_table = (is_table or token.type == "table_open") and token.type != "table_close"
        if token.type == "inline" and not is_table:
            yield "".join(child.content for child in token.children or () if child.type == "text")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_identifiers_are_in_backticks(page):
    found = [(word, text[:80]) for text in _prose(page) for word in IDENTIFIER.findall(text)]
    assert found == []


def test_an_identifier_in_prose_is_found():
    assert IDENTIFIER.findall("whose searches it cannot allow_store_inside_commit") == ["allow_store_inside_commit"]
    for text in ("docs/results/lad_phases.rs", "a well-known word", "crates/x/tests/lad_phases"):
        assert IDENTIFIER.findall(text) == []


def _oracles():
    source = (ROOT / "crates/crash/src/outcome.rs").read_text(encoding="utf-8")
    return re.findall(r"^    (\w+),$", ORACLES.search(source)[1], re.MULTILINE)


def test_pages_name_every_oracle():
    names = [name.lower() for name in _oracles()]
    assert len(names) == 6
    for page in ("docs/crash.md", "docs/concepts.md", "python/durasim/documents/results.py"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [name for name in names if f"`{name}`" not in text] == [], page


@pytest.mark.parametrize("page", COUNTED_PAGES, ids=_name)
def test_the_number_of_oracles_is_one_everywhere(page):
    counts = [word.lower() for text in _prose(page) for word in COUNT.findall(text) if word.lower() in NUMBERS]
    assert set(counts) <= {NUMBERS[len(_oracles())]}
