"""Other readings of a made-up paper: what they change, what is printed, and wrong ones. Nothing is simulated."""

import io
import re

import pytest
from rich.console import Console

from durasim.cli import reproduction_tables
from durasim.documents.reproduction import ReadingResult, ReadNumber
from durasim.errors import ConfigError
from durasim.papers.evaluation import row_of
from durasim.papers.paper_files import read_paper
from durasim.papers.reproduction import Chosen
from papers.made_up import evidence_of, reproduction_of

PAPER = """
title = "A small paper"
citation = "Author, 2020"
figures = ["figure-1"]

[names.designs]
Ours = "hercules"
Ideal = "opt"

[[runs]]
name = "main"
designs = ["opt", "hercules"]
workloads = ["array-swap"]
machine = "tiny"
threads = [1, 2]
ops = 4

[[runs]]
name = "other"
like = "main"

[[readings]]
name = "longer"
place = "Sec2"
sentence = "for a long time"
runs = ["main"]
changes = [{ threads = 1, ops = 5 }, { design = "hercules", args = { populate = 9 } }]

[[readings]]
name = "one-thread"
place = "Sec3"
sentence = "at low threads"

[readings.measures]
relative = "relative_of_one"
"""
FIGURE = """
place = "Fig1"
title = "Throughput"

[values]
ours = { runs = "main", metric = "throughput_ops_per_us", design = "$design", threads = 2 }
one = { runs = "main", metric = "throughput_ops_per_us", design = "$design", threads = 1 }
more = { runs = "other", metric = "throughput_ops_per_us", design = "$design", threads = 1 }

[measures.relative]
formula = "mean(ours)"

[measures.relative_of_one]
formula = "2 * mean(one)"

[measures.more]
formula = "mean(more)"

[[published]]
metric = "relative"
design = "Ours"
workload = ""
baseline = "Ideal"
value = "2"
unit = "x"
quote = "twice"
class = "measured"
relation = "factor"

[[published]]
metric = "more"
design = "Ours"
workload = ""
baseline = "Ideal"
value = "3"
unit = "x"
quote = "thrice"
class = "measured"
relation = "factor"
"""


def paper(folder, text=PAPER):
    place = folder / "small-2020"
    place.mkdir()
    (place / "paper.toml").write_text(text)
    (place / "figure-1.toml").write_text(FIGURE)
    return read_paper(place)


def test_a_reading_changes_the_runs_that_it_names(tmp_path):
    of = paper(tmp_path)
    chosen = Chosen(of, of.figures)
    longer = chosen.under(of.readings[0])

    def of_runs(grid, name):
        return {
            (cell.values["design"], cell.values["threads"]): (point.scenario.ops, point.scenario.workload_args)
            for point, cells in zip(grid.points(), grid.cells, strict=True)
            for cell in cells
            if cell.runs == name
        }

    assert of_runs(chosen.grid("quick"), "main") == {("hercules", 2): (4, ())}
    assert of_runs(longer.grid("quick"), "main") == {("hercules", 2): (4, (("populate", "9"),))}
    assert of_runs(longer.grid("quick"), "other") == {("hercules", 1): (4, ())}
    assert [claim.published for _, claim in longer.claims()] == [claim.published for _, claim in chosen.claims()]


def test_a_reading_measures_by_another_formula(tmp_path):
    of = paper(tmp_path)
    one = Chosen(of, of.figures).under(of.readings[1])
    number = {1: 3.0, 2: 7.0}
    evidence = evidence_of(one, lambda cell, paths: dict.fromkeys(paths, number[cell.values["threads"]]))
    rows = [row_of(of.name, figure, claim, evidence) for figure, claim in one.claims()]
    assert [row.ours for row in rows] == [(6.0,), (3.0,)]
    plain = Chosen(of, of.figures)
    evidence = evidence_of(plain, lambda cell, paths: dict.fromkeys(paths, number[cell.values["threads"]]))
    rows = [row_of(of.name, figure, claim, evidence) for figure, claim in plain.claims()]
    assert [row.ours for row in rows] == [(7.0,), (3.0,)]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            'relative = "relative_of_one"',
            'relativ = "relative_of_one"',
            "replaces relativ, by which no number is measured",
        ),
        (
            'relative = "relative_of_one"',
            'relative = "relative_of_on"',
            "replaces relative, by which no number is measured",
        ),
        ('runs = ["main"]', 'runs = ["man"]', "unknown name 'man' (did you mean 'main'?"),
        ('\n[readings.measures]\nrelative = "relative_of_one"\n', "", "'one-thread' changes neither runs nor measures"),
    ],
)
def test_wrong_readings_are_refused(tmp_path, old, new, problem):
    assert old in PAPER
    with pytest.raises(ConfigError, match=re.escape(problem)):
        paper(tmp_path, PAPER.replace(old, new))


def test_both_readings_and_the_count_of_those_tried_are_printed():
    gained = ReadNumber("Fig1, relative, Ours", "2 x", "3.1", "differs", "2.1", "reproduced")
    lost = ReadNumber("Fig2, relative, Ours", "5 x", "5.1", "reproduced", "9.0", "differs")
    same = ReadNumber("Fig3, relative, Ours", "8 x", "1.5", "differs", "1.6", "differs")
    result = ReadingResult(
        paper="small-2020", name="longer", place="Sec2", sentence="for a long time", gained=(gained.number,),
        lost=(lost.number,), changed=2, numbers=(gained, lost, same), claims={"reproduced": 1},
    )  # fmt: skip
    document = reproduction_of([], readings=(result, result))
    console = Console(file=io.StringIO(), width=200)
    console.print(reproduction_tables.tables(document, []))
    text = " ".join(console.file.getvalue().split())
    assert "readings tried: 2; verdicts gained 2, lost 2; no reading is chosen by its result" in text
    assert "1 gained, 1 lost, 2 verdicts differ" in text
    for of in (gained, lost, same):
        assert f"{of.published}" in text
        assert of.scored in text
        assert of.other in text
    assert "differs -> reproduced" in text
    assert "reproduced -> differs" in text


SUITES = """
[[readings]]
name = "others"
place = "Sec3"
sentence = "of other lengths"
suites = { hercules = "hercules-table4" }
"""


def of_suite(text):
    return text.replace('"array-swap"', '"hercules-array-swap"').replace("ops = 4", 'scale = "quick"')


def test_a_reading_runs_another_suite_under_the_names_of_the_first(tmp_path):
    of = paper(tmp_path, of_suite(PAPER.split("[[readings]]", maxsplit=1)[0] + SUITES))
    chosen = Chosen(of, of.figures)
    plain, other = chosen.grid("quick"), chosen.under(of.readings[0]).grid("quick")
    assert plain.cells == other.cells
    assert {point.scenario.workload for point in plain.points()} == {"hercules-array-swap"}
    assert {point.scenario.workload for point in other.points()} == {"hercules-table4-array-swap"}


def test_lines_of_a_reading_are_those_of_its_suite(tmp_path):
    (reading,) = paper(tmp_path, of_suite(PAPER.split("[[readings]]", maxsplit=1)[0] + SUITES)).readings
    selections = {"a": {"lines": "hercules-sdg", "ops": 5}, "b": {"lines": "lad-sps", "ops": 5}, "c": {"runs": "main"}}
    assert reading.selected(selections) == selections | {"a": {"lines": "hercules-table4-sdg", "ops": 5}}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"hercules-table4"', '"hercules-table5"', "unknown name 'hercules-table5'"),
        ('"hercules-table4"', '"hercules-huge"', "unknown name 'hercules-huge-array-swap'"),
    ],
)
def test_suites_with_other_programs_are_refused(tmp_path, old, new, problem):
    text = of_suite(PAPER.split("[[readings]]", maxsplit=1)[0] + SUITES).replace(old, new)
    with pytest.raises(ConfigError, match=problem):
        paper(tmp_path, text)
