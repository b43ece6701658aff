"""Published numbers and ours stand beside each other, none is left out, and pages say why they differ."""

import csv
import math
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))
PUBLISHED = runpy.run_path(str(ROOT / "tools" / "published.py"))
from comparison import Kind, Measured, verdict  # noqa: E402 - found by the path above

PAPERS = ["lad-micro19", "pinspect-micro20", "spht-eadr-2022", "spht-eadr-2022-programs", "tc-dac17"]


def results(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs" / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize(
    ("kind", "ours", "published", "expected"),
    [
        (Kind.RATIO, 0.70, 0.80, "reproduced"),
        (Kind.RATIO, 0.91, 0.80, "reproduced"),
        (Kind.RATIO, 0.40, 0.56, "direction holds"),
        (Kind.RATIO, 1.20, 1.50, "differs"),  # 0.45 of the logarithm
        (Kind.RATIO, 1.30, 1.60, "direction holds"),
        (Kind.RATIO, 1.01, 0.80, "differs"),
        (Kind.RATIO, 0.20, 0.56, "differs"),
        (Kind.AMOUNT, 44.0, 48.0, "reproduced"),
        (Kind.AMOUNT, 20.0, 48.0, "differs"),
        (Kind.RATE, 0.045, 0.04, "reproduced"),
        (Kind.RATE, 0.06, 0.04, "differs"),
        (Kind.CLAIM, 1.0, math.nan, "reproduced"),
        (Kind.CLAIM, 0.0, math.nan, "differs"),
        (Kind.NONE, math.nan, math.nan, "not comparable"),
    ],
)
def test_verdicts(kind: Kind, ours: float, published: float, expected: str):
    assert verdict(Measured("", kind, ours, published)) == expected


@pytest.mark.parametrize("name", PAPERS)
def test_every_published_number_has_a_result(name: str):
    published, rows = PUBLISHED["read_published"](name), results(name)
    table = runpy.run_path(str(ROOT / "experiments" / name.replace("-", "_") / "table.py"))
    assert [row.key for row in published] == [
        (row["figure"], row["metric"], row["design"], row["workload"]) for row in rows
    ]
    assert {row.key for row in published} == table["FORMULAS"].keys()
    assert [row.value for row in published] == [row["published"] for row in rows]
    assert all(row["command"].startswith("durasim ") for row in rows if row["verdict"] != "not comparable")


@pytest.mark.parametrize("name", PAPERS)
def test_what_cannot_be_compared_has_a_reason_and_what_differs_an_experiment(name: str):
    page = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
    explained = " ".join(page.split("## What differs")[1].split())
    for row in results(name):
        if row["verdict"] == "not comparable":
            assert row["reason"], row
        if row["verdict"] == "differs":
            assert f"`{row['metric']}`" in explained, row["metric"]
