"""Every published number has one result, a verdict by the rule of `experiments/scoring.py` and a reason on its page."""

import hashlib
import math
import runpy
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.comparison import Documents
from experiments.scoring import (
    CLASSES,
    PREDICATES,
    RATIOS,
    REPRODUCED,
    SCORING,
    SMALL_LOGARITHM,
    Published,
    class_of,
    read_published,
    score,
    values_if_equal,
    verdict,
)
from tools import published as tool

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = vars(tool)
# Numbers copied from the papers, and those derived from two of their numbers or from their words.
PRINTED = {"hercules-tecs23": 94, "tc-dac17": 15, "lad-micro19": 66, "pinspect-micro20": 101,
           "spht-eadr-2022": 30, "spht-eadr-2022-programs": 20}  # fmt: skip
ADDED = {"tc-dac17": 2, "lad-micro19": 1}
NUMBERS = read_published()
# Digest of the numbers copied from the papers, with their quotations.
COPIED = "f9f4005b0518cf2a298d22d6b1c074bcc6c967d736c6f361e88b124bf6aa8105"


def number(compared: str, value: str, kind: str = "measured", unit: str = "%", if_equal: str = "") -> Published:
    return Published("", "", "", "", "", "", value, unit, "true", "", "", kind, compared, if_equal, "", "")


@pytest.mark.parametrize(
    ("compared", "value", "ours", "expected"),
    [
        # Within 15 %, and 0.58 of the logarithm.
        ("gain", "29.2", 16.0, "reproduced"),
        # Within 15 %, but a fifth of the logarithm: a gain of 3 % does not reproduce one of 15 %.
        ("gain", "15.2", 3.0, "differs"),
        ("gain", "15.2", -2.0, "differs"),
        ("gain", "15.2", 22.6, "reproduced"),
        ("gain", "15.2", 34.0, "differs"),
        ("gain", "50", 20.0, "differs"),
        ("gain", "60", 30.0, "direction holds"),
        ("loss", "20", 3.5, "differs"),
        ("loss", "20", 13.0, "reproduced"),
        # Both logarithms are small; and one is not, though the ratios are within 7 %.
        ("share", "98.5", 98.3, "reproduced"),
        ("share", "98.5", 102.0, "reproduced"),
        ("share", "98.5", 92.2, "differs"),
        ("share", "100", 99.0, "reproduced"),
        ("factor", "2-3", 2.5, "reproduced"),
        ("factor", "2-3", 1.6, "direction holds"),
        ("factor", "2-3", 1.3, "differs"),
        ("amount", "48", 44.0, "reproduced"),
        ("amount", "48", 20.0, "differs"),
        ("amount", "0", 0.0, "reproduced"),
        ("amount", "0", 2.0, "differs"),
        ("rate", "4", 4.9, "reproduced"),
        ("rate", "4", 5.1, "differs"),
        ("rate", "15.8", 13.5, "reproduced"),
        ("rate", "15.8", 12.0, "differs"),
        ("rate-of-rest", "100", 99.5, "reproduced"),
        ("rate-of-rest", "100", 98.5, "differs"),
        ("above", "3", 3.3, "reproduced"),
        ("above", "3", 3.0, "differs"),
        ("at-most", "5", 5.0, "reproduced"),
        ("at-least 1.10", "2", 1.05, "differs"),
        ("between", "8-12", 12.0, "reproduced"),
        ("between", "8-12", 24.0, "differs"),
        ("near 1 0.15", "0", 0.56, "differs"),
        ("near 1 0.15", "0", 1.15, "reproduced"),
    ],
)
def test_verdicts(compared: str, value: str, ours: float, expected: str):
    assert verdict(number(compared, value), [ours]) == expected


@pytest.mark.parametrize(
    ("compared", "values", "holds"),
    [
        ("ranked 2", (3, 2, 1), True),
        ("ranked 2", (3, 1, 1), False),
        ("ascending 1", (1.5, 9), True),
        ("ascending 1", (1.5, 1.2), False),
        ("rise-then-fall 2", (1.0, 1.1, 0.9, 0.8), True),
        ("rise-then-fall 2", (1.0, 0.9, 0.9, 0.8), False),
        ("lowest", (1, 2, 3), True),
        ("lowest", (2, 2, 3), False),
        ("only-first-falls", (-1, 2, 3), True),
        ("only-first-falls", (-1, 2, -3), False),
        ("equal", (12, 12), True),
    ],
)
def test_predicates(compared: str, values: tuple[float, ...], holds: bool):
    claim = number(compared, "12", "predicate", "" if compared == "equal" else "qualitative")
    assert (verdict(claim, values) == REPRODUCED) == holds


def test_what_cannot_be_compared_has_no_verdict():
    assert verdict(number("gain", "15"), ()) == "not comparable"
    assert verdict(number("", "15"), (1.0,)) == "not comparable"


@pytest.mark.parametrize(
    ("compared", "value", "expected"),
    [
        ("gain", "15.2", "measured"),
        ("gain", "4", "null"),
        ("loss", "2", "null"),
        ("share", "98.5", "null"),
        ("share", "87.8", "measured"),
        ("rate", "0.67", "null"),
        ("rate", "2.7", "measured"),
        ("amount", "0", "null"),
        ("at-most", "20", "null"),
        ("near 0 5", "0", "null"),
    ],
)
def test_a_number_that_the_baseline_would_reproduce_is_null(compared: str, value: str, expected: str):
    assert class_of(number(compared, value)) == expected


@pytest.mark.parametrize("name", PRINTED)
def test_an_altered_published_number_changes_a_verdict(name: str):
    """A verdict depends on the published number: with a distant one, no number is reproduced."""
    rows = {key_of(row): row for row in PUBLISHED["recorded"](name)}
    changed = 0
    for published in read_published(name):
        row = rows[(*published.key, published.baseline)]
        form = published.compared.split(" ", maxsplit=1)[0]
        if row["verdict"] != REPRODUCED or form not in (*RATIOS, "amount") or not _is_number(published.value):
            continue
        values = tuple(map(float, row["values"].split()))
        ratio = RATIOS[form](published.number) if form in RATIOS else published.number
        # Five times the logarithm of a ratio, three times an amount.
        fifth = ratio**5
        other = {"gain": 100 * (fifth - 1), "loss": 100 * (1 - fifth), "share": 100 * fifth, "factor": fifth}.get(
            form, 3 * published.number
        )
        if form in RATIOS and abs(math.log(ratio)) < SMALL_LOGARITHM:
            continue
        altered = replace(published, value=str(other))
        assert verdict(altered, values) != REPRODUCED, published.key
        changed += 1
    assert changed


def test_a_design_equal_to_the_baseline_reproduces_nothing_that_scores():
    """Uses the value that each row declares for two equal designs."""
    scored = [row for row in NUMBERS if class_of(row) in SCORING and row.compared]
    assert len(scored) > 190
    assert [row.key for row in scored if verdict(row, values_if_equal(row)) == REPRODUCED] == []


class Same(float):
    """A document equal for all designs, and each of its parts; every field name exists."""

    def __getitem__(self, _name: object) -> "Same":
        return self

    def __contains__(self, _name: object) -> bool:
        return True

    def get(self, _name: object, _default: object = None) -> "Same":
        return self

    def values(self) -> list["Same"]:
        return [self]

    def __iter__(self):
        return iter([self])


class AllSame(dict):
    def __missing__(self, _name: str) -> Same:
        return Same(1.0)


COMPARES_DESIGNS = (*RATIOS, "at-least", "at-most", "near", "ascending", "lowest", "ranked", "above")


@pytest.mark.parametrize("name", PRINTED)
def test_formulas_give_equal_designs_what_their_rows_say(name: str):
    """The formulas give these values on documents that are equal for each design and setting."""
    table = runpy.run_path(str(ROOT / "experiments" / name.replace("-", "_") / "table.py"))
    found = 0
    for row in read_published(name):
        form = row.compared.split(" ", maxsplit=1)[0] if row.compared else ""
        if class_of(row) not in (*SCORING, "null") or form not in COMPARES_DESIGNS or not row.baseline:
            continue
        ours = table["FORMULAS"][row.key](Documents(AllSame()), row).values
        equal = values_if_equal(row)
        if form not in ("lowest", "ranked"):
            assert ours == pytest.approx(equal[: len(ours)], abs=1e-9), row.key
        if class_of(row) in SCORING:
            assert verdict(row, ours) != REPRODUCED, row.key
        found += 1
    assert found


def test_the_numbers_are_those_that_were_copied_from_the_papers():
    """A change requires another reading of the paper, and a new digest here."""
    rows = [row for row in NUMBERS if not row.note.startswith("added: ")]
    assert len(rows) == 326
    copied = sorted(
        "\x1f".join((
            *(row.experiment.removesuffix("-programs").replace("-", "_"), *row.key, row.baseline),
            *(row.value, row.unit, row.exact, row.quote, row.note),
        ))
        for row in rows
    )  # fmt: skip
    assert hashlib.sha256("\n".join(copied).encode()).hexdigest() == COPIED


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit() and float(text) > 0


def key_of(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("figure", "metric", "design", "workload", "baseline"))


def test_every_published_number_is_there_once():
    assert Counter(row.experiment for row in NUMBERS) == Counter(PRINTED) + Counter(ADDED)
    assert Counter(row.experiment for row in NUMBERS if row.note.startswith("added: ")) == Counter(ADDED)
    keys = Counter((row.experiment.removesuffix("-programs"), *row.key, row.baseline) for row in NUMBERS)
    assert [key for key, count in keys.items() if count > 1] == []
    assert [row.key for row in NUMBERS if not row.quote] == []
    results = [(name, *key_of(row)) for name in PRINTED for row in PUBLISHED["recorded"](name)]
    assert Counter(results) == Counter((row.experiment, *row.key, row.baseline) for row in NUMBERS)


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: f"{row.experiment}: {' '.join(row.key)} {row.baseline}")
def test_a_number_says_how_it_is_compared(row: Published):
    assert row.kind in CLASSES
    if row.compared:
        form, *bounds = row.compared.split()
        assert form in (*RATIOS, *PREDICATES, "amount", "rate", "rate-of-rest")
        assert not bounds or form in PREDICATES
        assert row.kind != "measured" or form not in PREDICATES
    assert bool(row.same_as) == (row.kind == "repeat")
    if row.same_as:
        others = [other for other in NUMBERS if other.experiment == row.experiment and other.kind != "repeat"]
        assert row.same_as in {other.figure for other in others}
    if row.kind in ("input", "arithmetic"):
        assert row.class_reason


@pytest.mark.parametrize("name", PRINTED)
def test_the_recorded_verdicts_follow_the_rule(name: str):
    published, rows = read_published(name), PUBLISHED["recorded"](name)
    table = runpy.run_path(str(ROOT / "experiments" / name.replace("-", "_") / "table.py"))
    assert {row.key for row in published} == table["FORMULAS"].keys()
    assert rows == PUBLISHED["compared_again"](name), "run python -m tools.published all --compare"
    assert all(row["command"].startswith("durasim ") for row in rows if row["verdict"] != "not comparable")


@pytest.mark.parametrize("name", PRINTED)
def test_what_cannot_be_compared_has_a_reason_and_what_differs_an_experiment(name: str):
    page = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
    explained = " ".join(page.split("## What differs")[1].split())
    missing = set()
    for row in PUBLISHED["recorded"](name):
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
    found = score(rows)
    assert found["reproduced"] == 1
    assert found["differs"] == 1
    assert found["not comparable"] == 1
    assert (found["null"], found["repeat"], found["input"]) == (1, 1, 0)
    total = PUBLISHED["scoreboard"]().splitlines()[-1]
    assert total.startswith(f"| all | {len(NUMBERS)} |")


# Another digit of the measurement decides these: the page says so, and the next measurement records all digits.
DECIDED_BY_ROUNDING = {
    ("pinspect-micro20", design, "YCSB KV average, 4-issue") for design in ("Ideal-R", "P-INSPECT--", "P-INSPECT")
}


def test_no_other_verdict_depends_on_the_digits_that_are_not_recorded():
    found = set()
    for row in NUMBERS:
        recorded = next(of for of in PUBLISHED["recorded"](row.experiment) if of["baseline"] == row.baseline
                        and key_of(of)[:4] == (row.figure, row.metric, row.design, row.workload))  # fmt: skip
        text = recorded["values"]
        if class_of(row) not in SCORING or text != recorded["ours"] or not _is_number(text.removeprefix("-")):
            continue
        half = 0.5 * 10.0 ** -len(text.partition(".")[2])
        # Counts and predicates over counts have no further digits.
        if (
            row.compared.split()[0] in RATIOS
            and len({verdict(row, (float(text) + shift,)) for shift in (-half, 0, half)}) > 1
        ):
            found.add((row.experiment, row.design, row.workload))
    assert found == DECIDED_BY_ROUNDING
