"""The recorded results of papers follow the rule for verdicts, and each has a reason on its page."""

from pathlib import Path

import pytest

from durasim.papers.paper_files import paper_named, paper_names
from durasim.papers.recorded import place_of, place_of_published, recorded_rows
from durasim.papers.verdicts import RATIOS, SCORING, class_of, verdict
from tools import published as tool

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = [
    (name, claim.published) for name in paper_names() for figure in paper_named(name).figures for claim in figure.claims
]


def is_positive_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit() and float(text) > 0


@pytest.mark.parametrize("name", paper_names())
def test_the_recorded_verdicts_follow_the_rule(name: str):
    rows = recorded_rows(name)
    assert rows == tool.compared_again(name), "run python -m tools.published all --compare"
    assert all(row["command"].startswith("durasim ") for row in rows if row["verdict"] != "not comparable")


@pytest.mark.parametrize("name", paper_names())
def test_what_cannot_be_compared_has_a_reason_and_what_differs_an_experiment(name: str):
    page = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
    explained = " ".join(page.split("## What differs")[1].split())
    missing = set()
    for row in recorded_rows(name):
        if row["verdict"] == "not comparable":
            assert row["reason"], row
        if (
            row["verdict"] == "differs"
            and row["class"] not in ("repeat", "input")
            and f"`{row['metric']}`" not in explained
        ):
            missing.add((row["figure"], row["metric"]))
    assert missing == set()


def test_the_scoreboard_counts_each_number_once():
    rows = [
        {"class": "measured", "verdict": "reproduced"},
        {"class": "predicate", "verdict": "differs"},
        {"class": "null", "verdict": "reproduced"},
        {"class": "input", "verdict": "not comparable"},
        {"class": "repeat", "verdict": "reproduced"},
    ]
    found = tool.score(rows)
    assert found["reproduced"] == 1
    assert found["differs"] == 1
    assert found["not comparable"] == 1
    assert (found["null"], found["repeat"], found["input"]) == (1, 1, 0)
    total = tool.scoreboard().splitlines()[-1]
    assert total.startswith(f"| all | {len(CLAIMS)} |")


# Another digit of the measurement decides these: the page says so, and the next measurement records all digits.
DECIDED_BY_ROUNDING = {
    ("pinspect-micro20", design, "YCSB KV average, 4-issue") for design in ("Ideal-R", "P-INSPECT--", "P-INSPECT")
}


def test_no_other_verdict_depends_on_the_digits_that_are_not_recorded():
    recorded = {(name, place_of(row)): row for name in paper_names() for row in recorded_rows(name)}
    found = set()
    for name, number in CLAIMS:
        row = recorded[name, place_of_published(number)]
        text = row["values"]
        if class_of(number) not in SCORING or text != row["ours"] or not is_positive_number(text.removeprefix("-")):
            continue
        half = 0.5 * 10.0 ** -len(text.partition(".")[2])
        # Counts and predicates over counts have no further digits.
        if (
            number.relation.split()[0] in RATIOS
            and len({verdict(number, (float(text) + shift,)) for shift in (-half, 0, half)}) > 1
        ):
            found.add((name, number.design, number.workload))
    assert found == DECIDED_BY_ROUNDING
