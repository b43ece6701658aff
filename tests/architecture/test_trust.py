"""README.md and TRUST.md are short, and their generated parts use one build, one preset and every recorded reading."""

import re
import runpy
from pathlib import Path

import pytest

from durasim.runs.assumptions import assumptions

ROOT = Path(__file__).resolve().parents[2]
TRUST = runpy.run_path(str(ROOT / "tools" / "trust.py"))
README, PAGE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "TRUST.md"))
README_LINES_MAX = 120
TRUST_WORDS_MAX = 1_150
SHOWN = 10


def _words(text):
    """Words that a reader sees: without comments, targets of links and lines of tables."""
    return re.sub(r"<!--.*?-->|\]\([^)]*\)|\||:?-{3,}:?", " ", text).split()


def test_the_readme_and_the_page_of_trust_are_short():
    assert len(README.splitlines()) <= README_LINES_MAX
    assert len(_words(PAGE)) <= TRUST_WORDS_MAX


def test_no_interval_is_shown_as_zero():
    assert "± 0.00" not in README + PAGE


def test_every_recorded_reading_is_used_or_named():
    recorded = {row["reading"] for row in TRUST["_csv"]("readings")}
    used = [reading.name for reading in TRUST["READINGS"]]
    assert len(set(used)) == len(used)
    assert {*used, *TRUST["NOT_VARIED"]} == recorded
    assert not TRUST["NOT_VARIED"] & set(used)


def test_a_reading_names_an_assumption_of_its_design():
    for reading in TRUST["READINGS"]:
        assert {reading.design, f"{reading.design}-eadr"} & set(assumptions()[reading.key].designs), reading


def test_ten_assumptions_are_shown_and_what_was_not_measured_says_so():
    rows = [line.split("|")[1:-1] for line in TRUST["headline_assumptions"]().splitlines() if line.startswith("| [")]
    assert len(rows) == SHOWN
    measured = [row for row in rows if row[-1].strip() != "not measured"]
    factors = [max(abs(float(text) / float(row[3]) - 1) for text in row[4].split(",")) for row in measured]
    assert len(measured) < SHOWN
    assert min(factors) > 0.04
    keys = [re.search(r"\[([\w-]+)\]", row[0])[1] for row in rows]
    assert not {of.key for of in TRUST["_moved"]()} & set(keys[len(measured) :])


def test_a_range_spans_the_result_itself():
    for line in TRUST["ranges"]().splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")]
        low, high = (float(cell.split()[0]) for cell in cells[6:8])
        assert low <= float(cells[4]) <= high
        assert cells[5] == "within 0.005" or float(cells[5].removeprefix("± ")) > 0


@pytest.mark.parametrize("design", ["kiln", "proteus", "hoop", "fwb"])
def test_rivals_whose_papers_were_not_read_are_labelled(design):
    row = next(line for line in README.splitlines() if line.startswith(f"| `{design}` |"))
    assert re.search("as Hercules (and TC )?describes? it", row)
