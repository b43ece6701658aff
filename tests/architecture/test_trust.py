"""README.md and TRUST.md are short, and their generated parts use one build, one preset and every recorded reading."""

import math
import re
import runpy
from pathlib import Path

import pytest

import durasim as ds
from durasim.runs.assumptions import assumptions

ROOT = Path(__file__).resolve().parents[2]
TRUST = runpy.run_path(str(ROOT / "tools" / "trust.py"))
SOURCES = runpy.run_path(str(ROOT / "tools" / "sources.py"))
README, PAGE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "TRUST.md"))
README_LINES_MAX = 120
TRUST_WORDS_MAX = 1_150
SHOWN_MAX = 10


def _words(text):
    """Words that a reader sees: without comments, targets of links and lines of tables."""
    return re.sub(r"<!--.*?-->|\]\([^)]*\)|\||:?-{3,}:?", " ", text).split()


def test_the_readme_and_the_page_of_trust_are_short():
    assert len(README.splitlines()) <= README_LINES_MAX
    assert len(_words(PAGE)) <= TRUST_WORDS_MAX


def test_no_interval_is_shown_as_zero():
    assert "± 0.00" not in README + PAGE


def test_every_recorded_reading_is_used_or_named():
    for part, column, without in (("readings", "reading", "NOT_VARIED"), ("tc", "TC", "NOT_VARIED_OF_TC")):
        recorded = {row[column] for row in TRUST["_csv"](part)}
        used = [reading.name for reading in TRUST["READINGS"] if reading.part == part]
        assert len(set(used)) == len(used)
        assert {*used, *TRUST[without]} == recorded
        assert not TRUST[without] & set(used)


def test_a_reading_names_an_assumption_of_its_design():
    for reading in TRUST["READINGS"]:
        if reading.key in TRUST["PAGES_OF_READINGS"]:
            assert reading.key not in assumptions()
            continue
        assert {reading.design, f"{reading.design}-eadr"} & set(assumptions()[reading.key].designs), reading


def test_only_measured_assumptions_are_in_the_table_largest_first():
    rows = [line.split("|")[1:-1] for line in TRUST["headline_assumptions"]().splitlines() if line.startswith("| [")]
    assert 5 < len(rows) <= SHOWN_MAX
    factors = [
        max(abs(math.log(float(text) / float(row[3]))) for text in row[4].split(","))
        for row in rows
    ]  # fmt: skip
    assert min(factors) > 0.04
    assert factors == sorted(factors, reverse=True)
    keys = [re.search(r"\[([\w -]+)\]", row[0])[1] for row in rows]
    assert len(set(keys)) == len(keys)
    assert set(keys) <= {of.key for of in TRUST["_moved"]()}


def test_a_range_spans_the_result_itself():
    for line in TRUST["ranges"]().splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")]
        low, high = (float(cell.split()[0]) for cell in cells[6:8])
        assert low <= float(cells[4]) <= high
        assert cells[5] == "within 0.005" or float(cells[5].removeprefix("± ")) > 0


def test_rows_close_to_gem5_are_not_mixed_with_those_close_to_its_variant():
    found = [int(number) for number in re.findall(r"\b\d+\b", TRUST["multicore_counts"]())]
    total, of_gem5, _, of_variant, _ = found
    rows = TRUST["multicore"].recorded()
    assert total == len(rows)
    assert of_gem5 == sum(abs(100 * (row.cycles / row.gem5.cycles - 1)) <= 10 for row in rows)
    assert of_gem5 + of_variant == sum(row.is_close for row in rows)


def test_every_design_has_a_source():
    for row in ds.designs():
        assert SOURCES["source_of"](row["name"]), row["name"]
    assert set(SOURCES["SOURCES"]) <= {row["name"] for row in ds.designs()}


@pytest.mark.parametrize("design", ["kiln", "proteus", "hoop", "fwb"])
def test_rivals_whose_papers_were_not_read_are_labelled(design):
    row = next(line for line in README.splitlines() if line.startswith(f"| `{design}` |"))
    assert row.split("|")[2].strip() == "not read"
    table = PAGE[PAGE.index("## Papers not read") :]
    assert f"`{design}`" in table[: table.index("<!-- end generated -->")]
    designs = (ROOT / "docs/designs.md").read_text(encoding="utf-8")
    assert "not read" in next(line for line in designs.splitlines() if line.startswith(f"| [`{design}`]"))
