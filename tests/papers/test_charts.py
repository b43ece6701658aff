"""Charts of figures on made-up numbers: every mark is there, and stands where its number is."""

import re

import pytest

from durasim.papers import charts
from durasim.papers.paper_files import paper_named, paper_names
from papers.made_up import marks, row, series

BARS = [("a-swap", "one", 2.0), ("a-swap", "two", 4.0), ("a-tree", "one", 8.0), ("a-tree", "two", 0.5)]
CURVES = [
    ("1", "one", 1.0, 0.9, 1.1),
    ("8", "one", 6.0, 5.0, 7.0),
    ("1", "two", 1.0, 0.9, 1.1),
    ("8", "two", 4.0, 3.0, 5.0),
]


def drawn(svg, kind):
    """The paths of marks of a kind, such as `bar`, `point`, `rule mark` and `line mark`."""
    return re.findall(rf'<(?:path|line)[^>]*aria-roledescription="{kind}"[^>]*>', svg)


def bar_heights(svg):
    """Top and bottom of each bar, from paths such as `M1,20h17v100h-17Z`."""
    found = [re.search(r'd="M[\d.]+,([\d.]+)h[\d.]+v([\d.]+)h', bar) for bar in drawn(svg, "bar")]
    return [(float(of[1]), float(of[1]) + float(of[2])) for of in found]


def test_bars_of_a_logarithmic_axis_start_at_the_reference():
    chart = charts.series_chart(series(points=BARS, scale="log", reference=1.0))
    heights = bar_heights(chart.svg)
    assert len(heights) == len(BARS)
    (top_2, start), (top_4, _), (top_8, _), (top_half, bottom_half) = heights
    # Twice as much is as far above the reference as half as much is below it.
    assert {round(bottom, 3) for _, bottom in heights[:3]} == {round(start, 3)} == {round(top_half, 3)}
    unit = start - top_2
    assert start - top_4 == pytest.approx(2 * unit, rel=0.01)
    assert start - top_8 == pytest.approx(3 * unit, rel=0.01)
    assert bottom_half - start == pytest.approx(unit, rel=0.01)
    assert "Dashed line: the baseline, 1." in chart.caption


def test_numbers_that_a_logarithmic_axis_cannot_have_are_named():
    chart = charts.series_chart(series(points=[*BARS, ("a-list", "one", 0.0)], scale="log", reference=1.0))
    assert len(bar_heights(chart.svg)) == len(BARS)
    assert chart.caption.endswith("not positive: a-list one.")
    plot = {"metric": "bytes_ratio", "x": "baseline", "scale": "log", "reference": 1.0}
    chart = charts.plot(plot, [row(baseline="A"), row(baseline="B", ours=(0.0,))])
    assert len(bar_heights(chart.svg)) == 1
    assert chart.caption.endswith("not positive: B.")
    assert charts.series_chart(series(points=[("x", "", 0.0)], scale="log")) is None


def test_an_interval_that_reaches_below_zero_ends_at_the_least_number():
    chart = charts.series_chart(series(points=[("a", "", 4.0, -1.0, 9.0), ("b", "", 2.0)], scale="log", reference=1.0))
    assert "NaN" not in chart.svg
    assert len(drawn(chart.svg, "rule mark")) == 2
    assert "not positive" not in chart.caption


def test_curves_have_lines_points_intervals_marks_and_the_published_peak():
    of = series("curves", CURVES, peak=(4.0, 8.0), marks=marks(("8", 5.0, 6.0)), x_scale="log", reference=1.0)
    chart = charts.series_chart(of)
    assert len(drawn(chart.svg, "line mark")) == 2
    # Four points of ours and a diamond.
    assert len(drawn(chart.svg, "point")) == 5
    # Four intervals, the published range and the reference.
    assert len(drawn(chart.svg, "rule mark")) == 6
    assert "95 % intervals" in chart.caption
    assert "the peak is published from 4 to 8" in chart.caption
    one = charts.series_chart(series("curves", CURVES, peak=(8.0, 8.0)))
    assert "the peak is published at 8" in one.caption
    assert "diamond" not in one.caption


def test_axes_have_plain_numbers():
    points = [("8", "", 2.0), ("12", "", 20000.0), ("24", "", 3.0)]
    for scales in ({}, {"scale": "log", "x_scale": "log"}):
        chart = charts.series_chart(series("curves", points, peak=(12.0, 12.0), **scales))
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", chart.svg)
        assert {"8", "12", "24"} <= set(texts)
        assert not any("e+" in text for text in texts)


def test_published_numbers_stand_in_front_of_their_bars():
    plot = {"metric": "bytes_ratio", "x": "workload", "by": "baseline"}
    rows = [row(baseline="A", published="3-5"), row(baseline="B", interval=(1.0, 3.0)), row(metric="other")]
    chart = charts.plot(plot, [*rows, row(baseline="C", ours=()), row(baseline="D", published="less")])
    assert len(bar_heights(chart.svg)) == 2
    assert len(drawn(chart.svg, "point")) == 2
    assert charts.plot(plot, rows[2:]) is None


def test_colours_do_not_repeat():
    many = [("x", f"design {number}", 1.0) for number in range(12)]
    chart = charts.series_chart(series(points=many))
    fills = [re.search(r'fill="([^"]+)"', bar)[1] for bar in drawn(chart.svg, "bar")]
    assert len(set(fills)) == len(fills) == 12


def test_names_are_escaped_and_lose_the_name_of_their_suite():
    chart = charts.series_chart(series(points=[("s-u-<a>", "", 1.0), ("s-u-b", "", 2.0)]))
    assert "&lt;a&gt;" in chart.svg
    assert "<a>" not in chart.svg
    assert "s-u-" not in re.sub(r'aria-label="[^"]*"', "", chart.svg)


@pytest.mark.parametrize("name", paper_names())
def test_series_of_papers_draw_their_axes(name):
    """Their formulas, marks and peaks are checked where files are read; here, that an axis has several values."""
    for figure in paper_named(name).figures:
        for of in figure.series:
            read = [figure.runs[run] for selection in of.selections.values() for run in _listed(selection["runs"])]
            x = of.drawn["x"]
            counts = [
                len(table["workloads" if x == "workload" else "threads"])
                for table in read
                if x in ("workload", "threads")
            ]
            assert all(count > 1 for count in counts), figure.file


def _listed(value):
    return value if isinstance(value, list) else [value]
