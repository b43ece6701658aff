"""Axes, samples and constraints: the points of a study before anything is simulated."""

import itertools

import pytest

import durasim as ds
from durasim.studies.axes import axes_of, axis_of, drawn
from durasim.studies.constraints import constraint_of, machine_values
from durasim.studies.study import study_of

BASE = {"name": "points", "designs": ["hercules"], "workloads": ["array-swap"], "machine": "tiny"}
LLC, L2 = "llc.size_bytes", "l2.size_bytes"


def values(study, *keys):
    return [tuple(point.values[key] for key in keys) for point in study.points()]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (["1KiB", "2MiB", 3], (1024, 2**21, 3)),
        ({"from": 1, "to": 10, "step": 3}, (1, 4, 7, 10)),
        ({"from": "1KiB", "to": "8KiB", "factor": 2}, (1024, 2048, 4096, 8192)),
        ({"from": 1, "to": 1000, "points": 4, "scale": "log"}, (1, 10, 100, 1000)),
        ({"from": 0, "to": 1, "points": 3}, (0, 1)),
        ({"from": 0.0, "to": 1.0, "points": 3}, (0.0, 0.5, 1.0)),
        ({"from": 0.0, "to": 0.3, "step": 0.1}, (0.0, 0.1, 0.2, pytest.approx(0.3))),
        ({"from": 5, "to": 5, "step": 1}, (5,)),
    ],
)
def test_values_of_lists_and_ranges(described, expected):
    assert axis_of("x_bytes", described).values == expected


def test_axes_may_be_nested_or_quoted():
    tables = {"llc": {"size_bytes": [1, 2], "ways": [3]}, "l2.ways": {"from": 1, "to": 2, "step": 1}}
    assert {key: axis.values for key, axis in axes_of(tables).items()} == {
        "llc.size_bytes": (1, 2), "llc.ways": (3,), "l2.ways": (1, 2),
    }  # fmt: skip


def test_a_latin_hypercube_has_one_point_in_each_part_of_each_axis():
    axes = axes_of({"a": {"from": 0.0, "to": 8.0}, "b": {"from": 1, "to": 2**16, "scale": "log"}, "c": ["x", "y"]})
    points = list(drawn(axes, "latin-hypercube", 8, 1))
    assert sorted(int(point["a"]) for point in points) == list(range(8))
    # Each part of a logarithmic axis is a factor of four.
    assert sorted((point["b"].bit_length() - 1) // 2 for point in points) == list(range(8))
    assert sorted(point["c"] for point in points) == ["x"] * 4 + ["y"] * 4
    assert points == list(drawn(axes, "latin-hypercube", 8, 1)) != list(drawn(axes, "latin-hypercube", 8, 2))


def test_random_points_cover_whole_ranges():
    axes = axes_of({"a": {"from": 3, "to": 5}, "b": [True, False]})
    points = list(itertools.islice(drawn(axes, "random", 0, 1), 200))
    assert {(point["a"], point["b"]) for point in points} == set(itertools.product((3, 4, 5), (True, False)))
    assert points == list(itertools.islice(drawn(axes, "random", 0, 1), 200))


def test_a_sample_draws_the_table_of_axes_and_combines_it_with_designs_and_seeds():
    axes = {"design.hercules.ewpq_entries": {"from": 1, "to": 1000}, LLC: ["4KiB", "8KiB"]}
    study = study_of(BASE | {"designs": ["opt", "hercules"], "seeds": 2, "axes": axes} | {
        "sample": {"method": "random", "points": 5, "seed": 3}
    })  # fmt: skip
    assert study.count() == 20
    of = {
        seed: [entry for design, entry, found in values(study, "design", "design.hercules.ewpq_entries", "seed")
               if (design, found) == ("hercules", seed)]
        for seed in (1, 2)
    }  # fmt: skip
    assert len(of[1]) == 5
    assert of[1] == of[2]


def test_constraints_leave_out_points_of_grids_and_samples():
    grid = study_of(BASE | {"axes": {LLC: ["2KiB", "4KiB"], L2: ["2KiB", "4KiB"]}, "constraints": ["llc >= l2"]})
    assert values(grid, LLC, L2) == [(2048, 2048), (4096, 2048), (4096, 4096)]
    axes = {LLC: {"from": 1024, "to": 65536, "scale": "log"}, L2: {"from": 1024, "to": 65536}}
    sample = study_of(BASE | {"axes": axes, "constraints": ["llc >= l2"], "sample": {"method": "random", "points": 20}})
    assert len(values(sample, LLC)) == 20
    assert all(llc >= l2 for llc, l2 in values(sample, LLC, L2))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("llc >= l2", True),
        ("llc.size_bytes == 2 * l2.size_bytes", True),
        ("l2 < llc < '1MiB'", True),
        ("not llc > 4096 and design == 'hercules'", True),
        ("rob_entries - 32 == 0 or llc < 0", True),
        ("llc % 3 == 0", False),
        ("-llc > 0", False),
    ],
)
def test_a_constraint_compares_axes_and_parameters_of_the_machine(text, holds):
    known = {**machine_values("tiny"), "design": "hercules"}
    assert constraint_of(text).holds(known) == holds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("llc >=", "constraints: 'llc >=' is not a condition such as 'llc >= l2'"),
        ("llc", "constraints: 'llc' compares nothing"),
        ("__import__('os').system('true') == 0", "constraints: .* is neither a key, a number, a text nor an operator"),
        ("[llc] == 1", r"constraints: '\[llc\]' in .* is neither a key"),
        ("llc ** 9999 > 1", r"constraints: 'llc \*\* 9999' in .* is neither"),
        ("(" * 5000 + "1" + ")" * 5000 + " == 1", "is not a condition"),
    ],
)
def test_a_text_that_is_no_constraint_is_refused(text, sentence):
    with pytest.raises(ds.ConfigError, match=sentence):
        constraint_of(text)


REFUSED = {
    "an unknown key": ({"axis": {}}, r"study: unknown name 'axis' \(did you mean 'axes'\?"),
    "no axis values": ({"axes": {LLC: []}}, "axes.llc.size_bytes: has no values"),
    "an empty range": ({"axes": {LLC: {"from": 2, "to": 1, "step": 1}}}, "the range from 2 to 1 is empty"),
    "no points of a range": ({"axes": {LLC: {"from": 1, "to": 2}}}, "requires step, factor or points, or the table"),
    "two ways": ({"axes": {LLC: {"from": 1, "to": 2, "step": 1, "factor": 2}}}, "has step and factor: give one"),
    "a log range from 0": ({"axes": {LLC: {"from": 0, "to": 2, "factor": 2}}}, "cannot begin at 0"),
    "a tiny step": ({"axes": {LLC: {"from": 0, "to": 1.0, "step": 1e-9}}}, "the range has 1,000,000,000 values"),
    "a wrong size": ({"axes": {LLC: ["4KB"]}}, "'4KB' is not a size"),
    "a value twice": ({"axes": {LLC: [4096, "4KiB"]}}, "axes.llc.size_bytes: lists 4096 twice"),
    "two axes": ({"axes": {LLC: [1], "llc": {"size_bytes": [2]}}}, "axes.llc.size_bytes: two axes have this key"),
    "two seeds": ({"axes": {"seed": [1]}, "seeds": 2}, "axes.seed: two axes have this key"),
    "a set axis": ({"axes": {LLC: [1]}, "set": {"llc": {"size_bytes": 2}}}, "two axes have this key, or the study"),
    "a fixed argument": ({"axes": {"arg.populate": [1]}, "args": {"populate": 2}}, "axes.arg.populate: two axes"),
    "an unmet constraint": ({"axes": {LLC: [1]}, "constraints": ["llc > 2"]}, "no point of the study meets 'llc > 2'"),
    "an unknown name": ({"axes": {LLC: [1]}, "constraints": ["lcl > 2"]}, "constraints: unknown name 'lcl'"),
    "no comparable values": ({"constraints": ["design > 2"]}, "'design > 2': '>' not supported"),
    "an unknown parameter": ({"axes": {"llc.sice_bytes": [1]}}, "unknown parameter; did you mean llc.size_bytes?"),
    "another parameter": ({"axes": {"weight": [1]}}, "weight: unknown parameter: `durasim machines NAME`"),
    "another design's": ({"axes": {"design.tc.entries": [1]}}, "is a parameter of tc, which is not among the designs"),
    "an unknown design": ({"designs": ["hercule"]}, "did you mean 'hercules'"),
    "a design twice": ({"designs": ["tc", "tc"]}, "designs: lists tc twice"),
    "an unknown workload": ({"workloads": ["btre"]}, "did you mean 'btree'"),
    "no workload": ({"workloads": None}, "workloads: give either workloads or programs"),
    "no design": ({"designs": None}, "designs: is required"),
    "crash of runs": ({"crash": {"points": 3}}, 'crash: applies only to a study of kind = "crash"'),
    "a crash axis of runs": ({"axes": {"crash.points": [3]}}, 'axes.crash.points: applies only to a study of kind'),
    "an option of runs": ({"kind": "crash", "run": {"warm": False}}, "run: applies only to a study of kind run"),
    "an unknown option": ({"run": {"warmer": 1}}, "run: unknown name 'warmer'"),
    "a pool": ({"run": {"pool": "p"}}, "run.pool: is a file that each point would write"),
    "a swept pool": ({"axes": {"pool": ["p", "q"]}}, "axes.pool: is a file that each point would write"),
    "a bad option": ({"kind": "crash", "crash": {"points": 0}}, "points: 0 is not between|points: '0' is neither"),
    "an unknown metric": (
        {"axes": {LLC: {"from": 1, "to": 2}}, "refine": {"metric": "ipx", "threshold": 1}},
        "refine.metric: unknown name 'ipx'",
    ),
    "an unknown goal": ({"pareto": {"maximize": ["ipx"]}}, "pareto.maximize: unknown name 'ipx'"),
    "refine of nothing": ({"refine": {"metric": "ipc", "threshold": 1}}, "refine.axis: is required: 0 axes"),
    "an unknown axis": (
        {"refine": {"metric": "ipc", "threshold": 1, "axis": "llc"}}, "refine.axis: unknown name 'llc'",
    ),
    "refine of a list": (
        {"axes": {LLC: [1, 2]}, "refine": {"metric": "ipc", "threshold": 1, "axis": LLC}}, "has to be a range with",
    ),
    "refine of a sample": (
        {"axes": {LLC: {"from": 1, "to": 2}}, "refine": {"metric": "ipc", "threshold": 1},
         "sample": {"method": "random", "points": 1}}, "refine: cannot be combined with sample",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_study_is_refused_with_one_sentence(name):
    changed, sentence = REFUSED[name]
    tables = {key: value for key, value in (BASE | changed).items() if value is not None}
    with pytest.raises(ds.ConfigError, match=sentence) as refusal:
        study_of(tables).points()
    assert "\n" not in str(refusal.value)


def test_a_million_points_by_mistake_ask_for_yes():
    axes = {LLC: {"from": 1024, "to": 2_000_000, "step": 2}}
    with pytest.raises(ds.ConfigError, match=r"the study has 999,489 points \(llc.size_bytes 999,489\): add --yes"):
        ds.sweep(**BASE, axes=axes, store=False)
