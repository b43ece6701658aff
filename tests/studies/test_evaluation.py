"""Evaluation of studies: bisection, frontiers and plots."""

import dataclasses
import re
from xml.etree import ElementTree

import polars
import pytest
from in_process import InProcess, sweep

import command_line
import durasim as ds
from durasim.documents import charts
from durasim.documents.sweep import PointResult
from durasim.studies import plots
from durasim.studies.refine import Bisections
from durasim.studies.study import study_of

ENTRIES, LLC = "design.hercules.ewpq_entries", "llc.size_bytes"
BASE = {"name": "refined", "designs": ["hercules"], "workloads": ["array-swap"], "machine": "tiny"}


def refined_by(metric_of, axis=None, sizes=(4096, 8192), **refine):
    """Bisects with a metric that is a function of the values of a point, and returns results and refinements."""
    axes = {ENTRIES: axis or {"from": 1, "to": 64}, LLC: list(sizes)}
    study = study_of(BASE | {"axes": axes, "refine": {"metric": "ipc", "threshold": 10, **refine}})
    bisections, results, points = Bisections(study), [], study.points()
    while points:
        results += [
            PointResult("", "simulated", 0.0, "", "", point.values, {"ipc": metric_of(point.values)}, (), None, None)
            for point in points
        ]
        points = bisections.next_points(results)
    return results, list(bisections.refined(results))


def test_a_bisection_encloses_the_threshold_for_each_value_of_the_other_axes():
    limits = {4096: 37, 8192: 12}
    results, refined = refined_by(lambda values: 20 if values[ENTRIES] >= limits[values[LLC]] else 5)
    assert [(of.values[LLC], of.low, of.high, of.metric_low, of.metric_high) for of in refined] == [
        (4096, 36, 37, 5, 20), (8192, 11, 12, 5, 20),
    ]  # fmt: skip
    assert [of.at_or_beyond() for of in refined] == [37, 12]
    # Two ends and at most log2(63) halves of each.
    assert len(results) <= 2 * (2 + 6)


def test_a_metric_may_fall_along_the_axis_and_the_tolerance_ends_a_bisection_early():
    results, (refined,) = refined_by(lambda values: 20 - values[ENTRIES], sizes=(4096,), tolerance=8)
    assert refined.low <= 10 < refined.high
    assert refined.high - refined.low <= 8
    assert refined.at_or_beyond() == refined.low
    assert len(results) == 5


def test_a_threshold_may_be_a_part_of_the_metric_at_an_end():
    _, (last,) = refined_by(lambda values: float(values[ENTRIES]), sizes=(4096,), threshold=0.5, of="last")
    assert (last.threshold, last.low, last.high) == (32.0, 31, 32)
    axis = {"from": 1.0, "to": 64.0, "scale": "log"}
    _, (first,) = refined_by(lambda values: values[ENTRIES], axis, (4096,), threshold=3, of="first", tolerance=0.01)
    assert first.low < 3 <= first.high < first.low + 0.01


def test_a_threshold_that_is_nowhere_is_not_enclosed():
    results, (refined,) = refined_by(lambda _: 5, sizes=(4096,))
    assert (refined.low, refined.high, refined.metric_low, len(results)) == (None, None, 5, 2)


def test_a_study_is_refined_by_simulations_and_from_the_store(tmp_path):
    keys = {
        "workloads": ["btree"], "args": {"populate": 100}, "ops": 10, "axes": {ENTRIES: {"from": 1, "to": 16}},
        "refine": {"metric": "throughput", "threshold": 0.99, "of": "last"},
    }  # fmt: skip
    executor = InProcess()
    result = sweep(tmp_path / "s.sqlite", executor, **keys)
    (refined,) = result.refined
    by_entries = {point.values[ENTRIES]: point.metrics["throughput_ops_per_us"] for point in result.points}
    assert list(by_entries) == sorted(by_entries)
    assert refined.threshold == pytest.approx(0.99 * by_entries[16])
    assert refined.high - refined.low == 1
    assert by_entries[refined.low] < refined.threshold <= by_entries[refined.high]
    again = sweep(tmp_path / "s.sqlite", executor, **keys)
    assert again.refined == result.refined
    assert (again.simulated, len(executor.simulated)) == (0, len(result.points))


def test_a_frontier_has_the_rows_that_no_other_beats():
    frame = polars.DataFrame(
        {"workload": ["a"] * 5 + ["b"], "speed": [1.0, 2.0, 2.0, 3.0, None, 0.5], "bytes": [1, 2, 3, 4, 0, 9]}
    )
    marked = ds.pareto(frame, maximize=["speed"], minimize=["bytes"])
    assert marked["on_frontier"].to_list() == [True, True, False, True, False, False]
    by_workload = ds.pareto(frame, maximize=["speed"], minimize=["bytes"], by=["workload"])
    assert by_workload["on_frontier"].to_list() == [True, True, False, True, False, True]
    equal = ds.pareto(polars.DataFrame({"speed": [1, 1]}), maximize=["speed"])
    assert equal["on_frontier"].to_list() == [True, True]


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ({}, "maximize: give at least one metric"),
        ({"maximize": "speed"}, "maximize: expected a list of names"),
        ({"maximize": ["sped"]}, "did you mean 'speed'"),
        ({"maximize": ["speed"], "minimize": ["speed"]}, "speed is given twice"),
        ({"maximize": ["workload"]}, "workload has no numbers"),
    ],
)
def test_a_wrong_frontier_is_refused(metrics, sentence):
    with pytest.raises(ds.ConfigError, match=sentence):
        ds.pareto(polars.DataFrame({"workload": ["a"], "speed": [1.0]}), **metrics)


@pytest.fixture(scope="module")
def result():
    return sweep(name="a </script><b>& study", designs=["opt", "hercules"], axes={LLC: ["4KiB", "8KiB"]})


def test_a_plot_has_a_line_per_value_and_a_point_per_mean(result):
    chart = charts.line_chart(result, "throughput", LLC, "design").to_dict()
    assert {(row["x"], row["by"]) for row in chart["data"]["values"]} == {
        (size, design) for size in (4096, 8192) for design in ("opt", "hercules")
    }
    assert chart["encoding"]["y"]["title"] == "throughput_ops_per_us"


def test_plots_are_files_that_refer_to_nothing_outside(result, tmp_path):
    for suffix in (".svg", ".png", ".html"):
        plots.write(result, plots.Plot("throughput", LLC, "design", str(tmp_path / f"plot{suffix}")))
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()  # noqa: S314 - written above
    texts = {text for element in root.iter() if (text := (element.text or "").strip())}
    assert {"4 KiB", "8 KiB", "hercules", "opt", LLC, "a </script><b>& study"} <= texts
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "plot.html").read_text()
    assert "</script><b>" not in page
    assert "a <\u2060/script><\u2060b>& study" in page
    assert not re.search(r"<script [^>]*src=|<link ", page)


def test_the_bisected_axis_may_be_plotted(result):
    found = {"values": {LLC: 4096}, "axis": ENTRIES, "threshold": 1.0, "low": 3, "high": 4}
    refined = dataclasses.replace(
        result, refined=(ds.SweepResult.from_dict(result.to_dict() | {"refined": [
            found | {"metric_low": 0.5, "metric_high": 1.5}
        ]}).refined),
    )  # fmt: skip
    chart = charts.line_chart(refined, "ewpq_entries", LLC).to_dict()
    assert chart["data"]["values"] == [{"x": 4096, "y": 4}]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--by", "design"), "by: requires --plot METRIC"),
        (("--plot-file", "a.svg"), "plot_file: requires --plot METRIC"),
        (("--plot", "ipc", "--plot-file", "a.pdf"), "'a.pdf' ends with none of .svg, .png, .html"),
        (("--plot", "ipc", "--x", "lcl"), "x: unknown name 'lcl'"),
        (("--plot", "ipc", "--plot-file", "no/folder.svg"), "no/folder.svg: No such file"),
        (("--plot", "ipcs"), "metric: unknown name 'ipcs'"),
        (("--plot", "tx"), "metric: 'tx' may be tx_aborted or tx_begun"),
        (("--jobs", "0"), "0 is not in the range x>=1"),
        (("--store", "s", "--no-store"), "no_store: cannot be combined with --store"),
        (("--plan", "--format", "csv"), "format: is table or markdown with --plan"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_simulated(tmp_path, words, sentence):
    file = tmp_path / "study.toml"
    axes = '[axes]\n"llc.size_bytes" = ["4KiB", "8KiB"]\n'
    file.write_text(f'name = "n"\ndesigns = ["opt"]\nworkloads = ["array-swap"]\nmachine = "tiny"\nops = 2\n{axes}')
    ran = command_line.run("sweep", file, "--no-store", *words, cwd=tmp_path) if "--store" not in words else (
        command_line.run("sweep", file, *words, cwd=tmp_path)
    )  # fmt: skip
    assert ran.returncode in (2, 4)
    assert sentence in ran.stderr
    assert ran.stdout == ""
