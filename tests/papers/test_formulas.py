"""Formulas: arithmetic over numbers that are labelled by the axes of their runs."""

import math

import pytest

from durasim import ConfigError
from durasim.papers.cells import Cells
from durasim.papers.formulas import formula_of
from durasim.papers.grids import Cell
from durasim.papers.selections import number_at, select

VALUES = {
    "ours": Cells(("workload", "seed"), {("a", 1): 2.0, ("a", 2): 4.0, ("b", 1): 6.0, ("b", 2): 8.0}),
    "baseline": Cells(("seed", "workload"), {(1, "a"): 1.0, (2, "a"): 2.0, (1, "b"): 2.0, (2, "b"): 2.0}),
    "of_seed": Cells(("seed",), {(1,): 10.0, (2,): 100.0}),
    "by_threads": Cells(("threads",), {(1,): 1.0, (2,): 3.0, (4,): 2.97}),
    "zero": Cells.of(0.0),
}


def numbers(text):
    return formula_of(text, list(VALUES)).numbers(VALUES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ours / baseline", (2, 2, 3, 4)),
        ("geomean(ours / baseline)", (48**0.25,)),
        ("mean(ours, 'seed')", (3, 7)),
        ("max(ours, 'workload')", (6, 8)),
        ("gain(mean(ours) / 4)", (25,)),
        ("loss(min(ours) / 4)", (50,)),
        ("percent(sum(baseline) / 14)", (50,)),
        # A value without an axis is paired with each value of the other.
        ("ours * of_seed", (20, 400, 60, 800)),
        ("[min(ours), max(ours), -1]", (2, 8, -1)),
        ("argmax(by_threads, 'threads')", (2,)),
        ("steps(by_threads, 'threads')", (3, 0.99)),
        ("smallest_that_keeps(by_threads, 'threads', 0.99)", (2,)),
        ("at_least(max(ours) - 10, 0)", (0,)),
        ("rate(zero, zero)", (0,)),
        ("mean(of_seed) - 5", (50,)),
    ],
)
def test_formulas(text, expected):
    assert numbers(text) == pytest.approx(expected)


def test_what_a_program_does_not_have_gives_no_number():
    assert math.isnan(numbers("of_seed / zero")[0])
    assert math.isnan(numbers("geomean(of_seed / zero)")[0])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("geomean(ourz)", "unknown name 'ourz' (did you mean 'ours'?"),
        ("geomaen(ours)", "unknown name 'geomaen' (did you mean 'geomean'?"),
        ("ours.real", "'ours.real' in 'ours.real' is neither a value, a number, a function nor an operator"),
        ("__import__('os')", "unknown name '__import__'"),
        ("ours ** 2", "is neither a value"),
        ("ours +", "is not a formula such as"),
        ("gain(ours, 'seed')", "gain in 'gain(ours, 'seed')' has arguments that it does not take"),
        ("rate(ours)", "takes events and attempts"),
        ("(" * 2000, "is not a formula such as"),
    ],
)
def test_what_is_no_formula_is_refused(text, problem):
    with pytest.raises(ConfigError) as refused:
        formula_of(text, list(VALUES))
    assert problem in str(refused.value)


def test_numbers_without_a_partner_are_refused():
    some = Cells(("workload",), {("a",): 1.0, ("c",): 1.0})
    other = Cells(("workload",), {("a",): 1.0, ("b",): 1.0})
    formula = formula_of("some / other", ["some", "other"])
    with pytest.raises(ConfigError, match="no run to compare with that of workload c"):
        formula.numbers({"some": some, "other": other})


DOCUMENT = {
    "throughput": 2.5,
    "stats": {"llc": {"misses": {"value": 3, "unit": "count"}}, "empty": {}},
    "tx": {"aborted_by": {"conflict": 4, "capacity": 5}},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("throughput", 2.5),
        ("stats.llc.misses", 3),
        ("tx.aborted_by.*", 9),
        ("stats.empty.*", 0),
        ("stats.none.*", None),
        ("stats.llc", None),
        ("stats.llc.hits", None),
    ],
)
def test_paths(path, expected):
    assert number_at(DOCUMENT, path) == expected


FOUND = [
    (Cell("main", {"workload": workload, "design": design, "seed": 1}), {"t": float(number)})
    for number, (workload, design) in enumerate([("a", "opt"), ("a", "tc"), ("b", "opt"), ("b", "tc")])
]


def test_a_selection_is_labelled_by_the_axes_that_vary():
    assert select({"runs": "main", "metric": "t", "design": "tc"}, FOUND) == Cells(
        ("workload",), {("a",): 1.0, ("b",): 3.0}
    )
    listed = select({"runs": "main", "metric": "t", "design": ["tc", "opt"], "workload": "b"}, FOUND)
    assert listed == Cells(("design",), {("tc",): 3.0, ("opt",): 2.0})
    assert list(listed.numbers) == [("tc",), ("opt",)]


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ({"metric": "t", "threads": 2}, "runs main have no axis 'threads'"),
        ({"metric": "t", "design": "kiln"}, "no run of main has design kiln"),
        ({"metric": "x"}, "'x' is no number in the result of workload a, design opt, seed 1"),
    ],
)
def test_a_selection_of_nothing_is_refused(selection, problem):
    found = [(cell, {"x": None, **numbers}) for cell, numbers in FOUND]
    with pytest.raises(ConfigError) as refused:
        select({"runs": "main", **selection}, found)
    assert problem in str(refused.value)
