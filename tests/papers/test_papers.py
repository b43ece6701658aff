"""The files of the papers: every published number once, as copied, with a formula that equal designs cannot pass."""

import hashlib
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from durasim.errors import ConfigError
from durasim.papers.cells import Cells
from durasim.papers.evaluation import Evidence, row_of
from durasim.papers.paper_files import paper_named, paper_names
from durasim.papers.recorded import place_of, place_of_published, recorded_rows
from durasim.papers.reproduction import Chosen, at_scale, chosen_figures
from durasim.papers.selections import paths_of
from durasim.papers.verdicts import (
    CLASSES,
    PREDICATES,
    RATIOS,
    REPRODUCED,
    SCORING,
    SMALL_LOGARITHM,
    class_of,
    values_if_equal,
    verdict,
)

# Numbers copied from the papers, and those derived from two of their numbers or from their words.
PRINTED = {"hercules-tecs23": 94, "tc-dac17": 15, "lad-micro19": 66, "pinspect-micro20": 101,
           "spht-eadr-2022": 30, "spht-eadr-2022-programs": 20}  # fmt: skip
ADDED = {"tc-dac17": 2, "lad-micro19": 1}
PAPERS = {name: paper_named(name) for name in paper_names()}
CLAIMS = [(name, claim) for name, paper in PAPERS.items() for figure in paper.figures for claim in figure.claims]
# Digest of the numbers copied from the papers, with their quotations.
COPIED = "f9f4005b0518cf2a298d22d6b1c074bcc6c967d736c6f361e88b124bf6aa8105"
# What the sentence of a refusal at scale `paper` has.
UNPUBLISHED_SIZES = {
    "lad-micro19": "neither the entries of the data nor the transactions",
    "spht-eadr-2022": "last five seconds each",
    "spht-eadr-2022-programs": "do not state the inputs",
}
COMPARES_DESIGNS = (*RATIOS, "at-least", "at-most", "near", "ascending", "lowest", "ranked", "above")


def claims_of(name):
    return [claim for paper, claim in CLAIMS if paper == name]


@cache
def grid_of(name, scale="quick"):
    return Chosen(PAPERS[name], PAPERS[name].figures).grid(scale)


def named(item):
    name, claim = item
    return f"{name}: {' '.join(claim.published.key)} {claim.published.baseline}"


def is_positive_number(text):
    return text.replace(".", "", 1).isdigit() and float(text) > 0


def test_the_numbers_are_those_that_were_copied_from_the_papers():
    """A change requires another reading of the paper, and a new digest here."""
    rows = [(name, claim.published) for name, claim in CLAIMS if not claim.published.note.startswith("added: ")]
    assert len(rows) == 326
    copied = sorted(
        "\x1f".join((
            *(name.removesuffix("-programs").replace("-", "_"), *of.key, of.baseline),
            *(of.value, of.unit, of.exact, of.quote, of.note),
        ))
        for name, of in rows
    )  # fmt: skip
    assert hashlib.sha256("\n".join(copied).encode()).hexdigest() == COPIED


def test_every_published_number_is_there_once():
    assert Counter(name for name, _ in CLAIMS) == Counter(PRINTED) + Counter(ADDED)
    added = Counter(name for name, claim in CLAIMS if claim.published.note.startswith("added: "))
    assert added == Counter(ADDED)
    keys = Counter((name.removesuffix("-programs"), *of.published.key, of.published.baseline) for name, of in CLAIMS)
    assert [key for key, count in keys.items() if count > 1] == []
    assert [named(item) for item in CLAIMS if not item[1].published.quote] == []


@pytest.mark.parametrize("item", CLAIMS, ids=map(named, CLAIMS))
def test_a_number_says_how_it_is_compared(item):
    name, published = item[0], item[1].published
    assert published.kind in CLASSES
    if published.relation:
        form, *bounds = published.relation.split()
        assert form in (*RATIOS, *PREDICATES, "amount", "rate", "rate-of-rest")
        assert not bounds or form in PREDICATES
        assert published.kind != "measured" or form not in PREDICATES
    assert bool(published.same_as) == (published.kind == "repeat")
    if published.same_as:
        others = {of.published.figure for of in claims_of(name) if of.published.kind != "repeat"}
        assert published.same_as in others
    if published.kind in ("input", "arithmetic"):
        assert published.class_reason


def test_a_design_equal_to_the_baseline_reproduces_nothing_that_scores():
    """Uses the value that each row declares for two equal designs."""
    scored = [of.published for _, of in CLAIMS if class_of(of.published) in SCORING and of.published.relation]
    assert len(scored) > 190
    assert [row.key for row in scored if verdict(row, values_if_equal(row)) == REPRODUCED] == []


@pytest.mark.parametrize("name", PAPERS)
def test_formulas_give_equal_designs_what_their_rows_say(name):
    """The formulas give these values if every number of every run is 1: a made-up design equal to its baseline."""
    paper = PAPERS[name]
    chosen = Chosen(paper, paper.figures)
    paths = paths_of(of for _, claim in chosen.claims() for of in claim.selections.values())
    cells = [(cell, dict.fromkeys(paths, 1.0)) for labels in grid_of(name).cells for cell in labels]
    evidence = Evidence(cells, [], lambda _: Cells.of(1.0), [("key", "durasim run")] * len(cells))
    found = 0
    for figure, claim in chosen.claims():
        row = claim.published
        form = row.relation.split(" ", maxsplit=1)[0] if row.relation else ""
        if class_of(row) not in (*SCORING, "null") or form not in COMPARES_DESIGNS or not row.baseline:
            continue
        ours = row_of(name, figure, claim, evidence)
        if form not in ("lowest", "ranked"):
            assert ours.ours == pytest.approx(values_if_equal(row)[: len(ours.ours)], abs=1e-9), row.key
        if class_of(row) in SCORING:
            assert ours.verdict != REPRODUCED, row.key
        found += 1
    assert found


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_has_a_grid_at_each_scale(name):
    quick, full = grid_of(name), grid_of(name, "paper")
    assert len({point.scenario for point in quick.points()}) == len(quick.points()) > 30
    assert not any(point.scenario.scale == "quick" for point in full.points())


@pytest.mark.parametrize("name", UNPUBLISHED_SIZES)
def test_a_paper_without_sizes_is_refused_alone_and_listed_beside_others(name):
    unknown, known = (Chosen(PAPERS[of], PAPERS[of].figures) for of in (name, "tc-dac17"))
    with pytest.raises(ConfigError, match=UNPUBLISHED_SIZES[name]):
        at_scale([unknown], "paper")
    both = at_scale([unknown, known], "paper")
    assert not both[0].grid("paper").distinct
    assert any(claim.note.startswith("no run of the published size: ") for _, claim in both[0].claims())
    assert len(both[0].claims()) == len(unknown.claims())
    assert both[1] == known


@pytest.mark.parametrize("name", [name for name in PAPERS if name not in UNPUBLISHED_SIZES])
def test_runs_at_the_scale_of_the_paper_have_no_operations_that_were_chosen_for_the_scored_ones(name):
    """They have those of their suites."""
    (chosen,) = at_scale([Chosen(PAPERS[name], PAPERS[name].figures)], "paper")
    points = chosen.grid("paper").points()
    assert points
    assert {point.scenario.ops for point in points} == {None}


def test_the_scale_that_is_scored_has_all_numbers():
    for paper in PAPERS.values():
        chosen = Chosen(paper, paper.figures)
        assert at_scale([chosen], "quick") == [chosen]


@pytest.mark.parametrize("name", PAPERS)
def test_every_run_is_read(name):
    """A table of runs that no figure reads would be dead."""
    paper = PAPERS[name]
    tables = {run for figure in paper.figures for run in figure.runs}
    assert tables == {cell.runs for labels in grid_of(name).cells for cell in labels}


@pytest.mark.parametrize("name", PAPERS)
def test_an_altered_published_number_changes_a_verdict(name):
    """A verdict depends on the published number: with a distant one, no number is reproduced."""
    rows = {place_of(row): row for row in recorded_rows(name)}
    changed = 0
    for claim in claims_of(name):
        published = claim.published
        row = rows[place_of_published(published)]
        form = published.relation.split(" ", maxsplit=1)[0]
        if row["verdict"] != REPRODUCED or form not in (*RATIOS, "amount") or not is_positive_number(published.value):
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
        assert verdict(replace(published, value=str(other)), values) != REPRODUCED, published.key
        changed += 1
    assert changed


@pytest.mark.parametrize("name", PAPERS)
def test_each_number_is_chosen_by_its_place(name):
    for place in {claim.published.figure for claim in claims_of(name)}:
        (chosen,) = chosen_figures([PAPERS[name]], place)
        assert place in {claim.published.figure for _, claim in chosen.claims()}


@pytest.mark.parametrize("name", PAPERS)
def test_a_plot_has_one_bar_for_each_number(name):
    for figure in PAPERS[name].figures:
        shown = [claim.published for claim in figure.claims if claim.published.metric == figure.plot.get("metric")]
        baseline = figure.plot.get("baseline")
        shown = [of for of in shown if baseline in (None, of.baseline)]
        bars = Counter((getattr(of, figure.plot["x"]), getattr(of, figure.plot.get("by", "unit"))) for of in shown)
        assert bool(bars) == bool(figure.plot)
        assert set(bars.values()) <= {1}, figure.file


@pytest.mark.parametrize("name", PAPERS)
def test_readings_change_runs_or_formulas(name):
    paper = PAPERS[name]
    chosen = Chosen(paper, paper.figures)
    for reading in paper.readings:
        assert reading.sentence
        other = chosen.under(reading)
        claims = [
            (of.published, under.published) for (_, of), (_, under) in zip(chosen.claims(), other.claims(), strict=True)
        ]
        assert [of for of, under in claims if of != under] == []
        if reading.changes_runs:
            plain, changed = grid_of(name), other.grid("quick")
            assert plain.cells == changed.cells
            assert plain.points() != changed.points()
        if reading.measures:
            assert chosen.claims() != other.claims()
    names = [reading.name for reading in paper.readings]
    assert len(set(names)) == len(names)
