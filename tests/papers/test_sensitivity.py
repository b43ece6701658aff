"""`durasim sensitivity`: what is varied where, effects, the recorded table, and verdicts that are robust."""

import csv
import io

import pytest
from typer.testing import CliRunner

import durasim
from durasim import publication
from durasim.cli import app
from durasim.documents.sensitivity import SensitivityRow
from durasim.papers import paper_files, sensitivity_file, sensitivity_study, sensitivity_table
from durasim.papers.cells import Cells
from durasim.papers.evaluation import Evidence, row_of
from durasim.papers.grids import Cell
from durasim.papers.paper_files import read_paper
from durasim.papers.robustness import effects_of, with_sensitivity
from durasim.runs.assumptions import assumptions
from durasim.runs.sensitivity import measurements
from studies.in_process import InProcess

PAPER = """
title = "A small paper"
citation = "Author, 2020"
figures = ["figure-1"]

[names.designs]
Ours = "hercules"
Ideal = "opt"

[names.workloads]
Swap = "array-swap"

[[runs]]
name = "main"
designs = ["opt", "hercules"]
workloads = ["array-swap", "binary-heap", "btree"]
machine = "tiny"
ops = 40
seeds = 2
args = { populate = 8 }
"""
FIGURE = """
place = "Fig1"
title = "Throughput"

[values]
ours = { runs = "main", metric = "throughput_ops_per_us", design = "$design", workload = "$workload" }
baseline = { runs = "main", metric = "throughput_ops_per_us", design = "$baseline", workload = "$workload" }

[measures.relative]
formula = "mean(ours / baseline)"

[[published]]
metric = "relative"
design = "Ours"
workload = "Swap"
baseline = "Ideal"
value = "0.6"
unit = "x"
quote = "sixty percent"
class = "measured"
relation = "factor"
"""
PLACES = """
[[places]]
paper = "small-2020"
runs = "main"
sources = ["Hercules", "TC"]
most = "array-swap"
least = "binary-heap"
further = ["tc"]
programs = [{ keys = ["hercules-txlen-store"], most = "btree", least = "array-swap" }]

[[alternatives]]
key = "core-queues"
points = [["core.issue_queue_entries=4", "core.load_queue_entries=4"], ["core.issue_queue_entries=0"]]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of papers with one small paper and its place, simulated in this process."""
    folder = tmp_path / "papers" / "small-2020"
    folder.mkdir(parents=True)
    (folder / "paper.toml").write_text(PAPER)
    (folder / "figure-1.toml").write_text(FIGURE)
    (folder.parent / "sensitivity.toml").write_text(PLACES)
    for module in (paper_files, sensitivity_file, sensitivity_table):
        monkeypatch.setattr(module, "papers_folder", lambda: folder.parent)
    monkeypatch.setattr("durasim.studies.executor.LocalProcesses", lambda _jobs: InProcess())
    caches = (
        paper_files.paper_names, sensitivity_file._tables, sensitivity_file.machine_alternatives,
        sensitivity_file._all_alternatives, sensitivity_table.recorded,
    )  # fmt: skip
    for cached in caches:
        cached.cache_clear()
    yield folder.parent
    for cached in caches:
        cached.cache_clear()


def command(*words):
    return CliRunner().invoke(app, ["sensitivity", *map(str, words)], prog_name="durasim")


@pytest.mark.usefixtures("place")
def test_one_run_with_all_assumptions_stands_beside_the_alternatives(tmp_path):
    store = tmp_path / "s.sqlite"
    keys = ("core-queues", "hercules-txlen-store")
    first = publication.sensitivity("small-2020", keys, store=store)
    plain = [(row.workload, row.design) for row in first.rows if not row.key]
    # Each compared design has one for a program, also for the programs of a single assumption.
    assert len(plain) == len(set(plain)) == 6
    assert {design for _, design in plain} == {"hercules", "opt"}
    by_key = {key: [row for row in first.rows if row.key == key] for key in keys}
    assert {(row.workload, row.design) for row in by_key["core-queues"]} == {
        (workload, design) for workload in ("array-swap", "binary-heap") for design in ("opt", "hercules")
    }
    assert {row.workload for row in by_key["hercules-txlen-store"]} == {"btree", "array-swap"}
    assert {row.design for row in by_key["hercules-txlen-store"]} == {"hercules"}
    narrow = [row for row in by_key["core-queues"] if row.setting.endswith("load_queue_entries=4")]
    assert all(row.throughput_ratio < 1 for row in narrow)
    # What the machine refuses is listed, and the others go on.
    refused = [row for row in by_key["core-queues"] if row.setting.endswith("=0")]
    assert first.failed == len(refused) == 4
    assert all("issue_queue_entries" in row.error and row.throughput_ratio is None for row in refused)
    assert {of.key for of in first.moved} == set(keys)
    assert first.build == durasim._core.__build__

    again = publication.sensitivity("small-2020", keys, store=store)
    assert again.rows == first.rows
    assert sensitivity_table.text_of(again) == sensitivity_table.text_of(first)


@pytest.mark.usefixtures("place")
def test_the_plan_says_the_hours_before(tmp_path):
    done = command("--key", "core-queues", "--plan", "--store", tmp_path / "s.sqlite")
    assert done.exit_code == 0, done.stderr
    assert "12 points, 12 to simulate" in done.stdout
    assert "expected: 0.0 hours of 2 cores; all places together may take 6" in done.stdout


def test_the_recorded_table_is_of_one_build(place, tmp_path):
    done = command("--key", "hercules-txlen-store", "--format", "csv", "--store", tmp_path / "s.sqlite")
    assert done.exit_code == 0, done.stderr
    (place / "sensitivity.csv").write_text(done.stdout)
    rows = sensitivity_table.recorded()
    assert [row.key for row in rows] == [""] * 4 + ["hercules-txlen-store"] * 2
    assert all((row.throughput_ratio is None) == (not row.key) for row in rows)
    lines = done.stdout.splitlines(keepends=True)
    lines[-1] = "0" * 16 + lines[-1][lines[-1].index(",") :]
    (place / "sensitivity.csv").write_text("".join(lines))
    with pytest.raises(durasim.ConfigError, match=r"has rows of the builds .*, 0000000000000000: measure all with one"):
        sensitivity_table.recorded_rows(place / "sensitivity.csv")
    (place / "sensitivity.csv").write_text("key\n")
    with pytest.raises(durasim.ConfigError, match="does not have the columns"):
        sensitivity_table.recorded_rows(place / "sensitivity.csv")


def test_effects_are_known_once_all_runs_of_a_place_are_recorded(place, tmp_path):
    file = place / "sensitivity.toml"
    changed = PLACES.replace('["Hercules", "TC"]', '["simulator"]').replace("core-queues", "skew")
    file.write_text(changed[: changed.index("points")] + 'points = [["skew_cycles=10"]]\n')
    text = command("--format", "csv", "--store", tmp_path / "s.sqlite").stdout
    lines = text.splitlines(keepends=True)
    assert len(lines) == 1 + 4 + 4
    for kept, count in ((lines, 8), (lines[:-1], 0)):
        (place / "sensitivity.csv").write_text("".join(kept))
        sensitivity_table.recorded.cache_clear()
        assert len(sensitivity_table.complete_rows("small-2020")) == count


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--key", "nothing"), "key: unknown name 'nothing'"),
        (("no-paper",), "paper: unknown name 'no-paper'"),
        (("--key", "hoop-home"), "key: no alternative to hoop-home is measured there"),
    ],
)
def test_unknown_names_are_refused(words, problem):
    done = command(*words, "--plan")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('runs = "main"', 'runs = "other"', "places.runs: unknown name 'other' (allowed: main)"),
        ('key = "core-queues"', 'key = "cores"', "'cores' is no assumption"),
        ('most = "array-swap"\nleast', "least", "'most' is a required property"),
    ],
)
def test_a_wrong_file_is_refused(place, old, new, problem):
    assert old in PLACES
    (place / "sensitivity.toml").write_text(PLACES.replace(old, new))
    done = command("--plan")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr


def effect_row(key, design, throughput, pmem_bytes=None, setting="x=1"):
    return SensitivityRow(key, "small-2020", "array-swap", setting, design, 1.0, 1, throughput, pmem_bytes, None, "")


def reproduced(place, ours, effects, metric="throughput_ops_per_us"):
    """The row of the number of the small paper with these throughputs of Ours over Ideal."""
    (place / "small-2020" / "figure-1.toml").write_text(FIGURE.replace("throughput_ops_per_us", metric))
    (figure,) = read_paper(place / "small-2020").figures
    (claim,) = figure.claims
    numbers = {"hercules": ours, "opt": 1.0}
    cells = [
        (Cell("main", {"design": design, "workload": "array-swap"}), {metric: number})
        for design, number in numbers.items()
    ]
    evidence = Evidence(cells, [], lambda _: Cells.of(1.0), [("0" * 32, "")] * 2)
    row = row_of("small-2020", figure, claim, evidence)
    return with_sensitivity(row, claim, evidence, effects_of("small-2020", effects))


def test_a_verdict_is_robust_if_all_alternatives_give_it(place):
    small = [effect_row("a", "hercules", 1.05), effect_row("b", "hercules", 1.2), effect_row("b", "opt", 1.25)]
    row = reproduced(place, 0.6, small)
    assert row.sensitivity_range == pytest.approx((0.576, 0.63))
    assert (row.verdict, row.robust) == ("reproduced", True)
    row = reproduced(place, 0.6, [*small, effect_row("c", "opt", 0.5)])
    assert row.sensitivity_range == pytest.approx((0.576, 1.2))
    assert (row.verdict, row.robust) == ("reproduced", False)


def test_a_number_without_known_effects_has_no_range(place):
    assert reproduced(place, 0.6, []).robust is None
    other = [effect_row("a", "hercules", 0.5)]
    assert reproduced(place, 0.6, other, metric="stats.llc.misses").sensitivity_range == ()
    assert reproduced(place, 0.6, other, metric="roi.cycles").sensitivity_range == pytest.approx((0.6, 1.2))
    # Bytes of a design with an effect on throughput alone are unknown.
    assert reproduced(place, 0.6, other, metric="pmem_write_bytes.total").sensitivity_range == ()
    known = [effect_row("a", "hercules", 0.5, 2.0)]
    assert reproduced(place, 0.6, known, metric="pmem_write_bytes.total").sensitivity_range == pytest.approx((0.6, 1.2))


def test_every_assumption_with_an_alternative_is_varied_at_a_place():
    places = sensitivity_file.places()
    varied = {run.key for run in sensitivity_study.planned(places)} - {""}
    assert varied | set(sensitivity_file.not_varied()) == assumptions().keys()
    assert {row.key for row in measurements()} <= varied
    names = [(run.place.paper, run.workload, run.design) for run in sensitivity_study.planned(places) if not run.key]
    assert len(names) == len(set(names))


def test_the_table_of_the_package_is_of_one_build_and_of_planned_runs():
    rows = sensitivity_table.recorded_rows(sensitivity_table.sensitivity_table())
    planned = {
        (run.key, run.place.paper, run.workload, run.setting, run.design)
        for run in sensitivity_study.planned(sensitivity_file.places())
    }
    assert {(row.key, row.paper, row.workload, row.setting, row.design) for row in rows} <= planned
    assert csv.DictReader(io.StringIO(",".join(sensitivity_table.COLUMNS))).fieldnames == [*sensitivity_table.COLUMNS]
