"""Charts of figures: our numbers as bars or curves with intervals, the published ones as marks in front of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from durasim.documents.reproduction import ReproducedRow, ReproducedSeries

if TYPE_CHECKING:
    import altair

_HEIGHT = 240
_BAR_WIDTH, _BAR_WIDTH_GROUPED = 34, 17
"""Width of a bar with its space, in pixels: one alone, and one of a group."""
_GROUP_SPACE = 16
_WIDTH_MIN = 260
_CURVE_WIDTH = 420
# Of the palette of Okabe and Ito, which readers with any colour vision can distinguish.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_SHAPES = ("circle", "square", "triangle-up", "triangle-down", "cross", "triangle-right", "triangle-left", "stroke")
_PUBLISHED_COLOUR = "#B00020"
_LABELS_STRAIGHT_MAX = 6
"""Characters of a label that fits below its bar without being turned."""
_LABEL_WIDTH_MAX = 240
_LEGEND_COLUMNS_MAX = 4
# With its own precision: that of an axis follows its steps, and writes 12 as 1e+1.
_NUMBERS = ".6~g"
_HAS_INTERVAL = "isValid(datum.low)"

Data = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart on a page.

    Attributes:
        svg: The chart.
        caption: What its marks are.
    """

    svg: str
    caption: str


def drawn_rows(plot: Mapping[str, Any], rows: Sequence[ReproducedRow]) -> Data:
    """Returns the data of a chart: single numbers of the plotted metric, ours and the published one."""
    found = []
    for row in rows:
        if row.metric != plot["metric"] or row.baseline != plot.get("baseline", row.baseline):
            continue
        if len(row.ours) != 1 or not row.published:
            continue
        ends = [float(end) for end in row.published.split("-")] if row.published[0].isdigit() else []
        if not ends:
            continue
        low, high = row.interval or (None, None)
        found.append({
            "x": getattr(row, plot["x"]),
            "by": getattr(row, plot["by"]) if "by" in plot else "",
            "ours": row.ours[0],
            "low": low,
            "high": high,
            "published": ends[0],
            "published_to": ends[-1],
            "verdict": row.verdict,
        })  # fmt: skip
    return found


def series_data(series: ReproducedSeries) -> Data:
    """Returns the data of a series: our numbers with their intervals."""
    found: Data = []
    for point in series.points:
        low, high = point.interval or (None, None)
        x = float(point.x) if series.form == "curves" else point.x
        found.append({"x": x, "by": point.by, "ours": point.ours, "low": low, "high": high})
    return found


def mark_data(series: ReproducedSeries) -> Data:
    """Returns the data of the published numbers of a series."""
    is_curve = series.form == "curves"
    return [
        {"x": float(mark.x) if is_curve else mark.x, "published": mark.from_, "published_to": mark.to}
        for mark in series.marks
    ]


def plot(table: Mapping[str, Any], rows: Sequence[ReproducedRow]) -> Drawn | None:
    """Draws the published numbers of a figure beside ours; None if there is nothing to draw."""
    data = drawn_rows(table, rows)
    is_log = table.get("scale") == "log"
    shown = _with_ends([of for of in data if not is_log or min(of["ours"], of["published"]) > 0], is_log=is_log)
    if not shown:
        return None
    unit = next(row.unit for row in rows if row.metric == table["metric"])
    axes = _Axes(_titled(table["metric"].replace("_", " "), unit), table["x"], table.get("by", ""), is_log=is_log)
    chart = _bars(axes, shown, shown, table.get("reference"))
    return Drawn(_svg(chart), _caption(_bar_name(axes, table.get("reference")), data, shown, table.get("reference")))


def series_chart(series: ReproducedSeries) -> Drawn | None:
    """Draws our numbers over an axis with the published ones; None if there is nothing to draw."""
    data, is_log = series_data(series), series.scale == "log"
    shown = _with_ends([of for of in data if not is_log or of["ours"] > 0], is_log=is_log)
    marks = [of for of in mark_data(series) if not is_log or of["published"] > 0]
    if not shown:
        return None
    axes = _Axes(_titled(series.title, series.unit), series.x, series.by, is_log=is_log)
    if series.form == "bars":
        chart, name = _bars(axes, shown, marks, series.reference), _bar_name(axes, series.reference)
    else:
        chart, name = _curves(axes, shown, marks, series), "Curves"
    caption = _caption(name, data, shown, series.reference, has_marks=bool(marks), peak=series.peak)
    return Drawn(_svg(chart), caption)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Titles and scale of a chart.

    Attributes:
        y: Title of the vertical axis.
        x: Name of the horizontal axis.
        by: Name of what colours stand for; empty for one colour.
        is_log: Whether the vertical axis is logarithmic.
    """

    y: str
    x: str
    by: str
    is_log: bool


def _bars(axes: _Axes, data: Data, marks: Data, reference: float | None) -> altair.LayerChart:
    """Returns grouped bars; on a logarithmic axis they start at the reference, or are points without one."""
    import altair  # noqa: PLC0415 - slow to load

    groups, colours = _distinct(data, "x"), _distinct(data, "by")
    is_grouped = len(colours) > 1
    shortened = _shortened(groups)
    start = (reference if axes.is_log else 0.0) if reference is not None or not axes.is_log else None
    data = [{**of, "x": shortened[of["x"]], "start": start} for of in data]
    marks = [{**of, "x": shortened.get(of["x"], of["x"])} for of in marks]
    angle = _angle(list(shortened.values()))
    x = altair.X(
        "x:N", title=axes.x.replace("_", " "), sort=list(shortened.values()),
        axis=altair.Axis(labelAngle=angle, labelLimit=_LABEL_WIDTH_MAX), scale=altair.Scale(paddingInner=0.2),
    )  # fmt: skip
    offset = {"xOffset": altair.XOffset("by:N", sort=colours)} if is_grouped else {}
    base = altair.Chart(altair.Data(values=data)).encode(x=x, **offset)
    y = _y(axes, zero=not axes.is_log)
    colour = _colour(axes.by, colours)
    # A bar that starts at the least value of a logarithmic axis has no meaning: a point does.
    ours = base.mark_point(filled=True, size=60) if start is None else base.mark_bar().encode(y2="start:Q")
    intervals = base.transform_filter(_HAS_INTERVAL).mark_rule(color="black")
    layers = [ours.encode(y=y, color=colour), intervals.encode(y="low:Q", y2="high:Q")]
    # Marks that have the colours of bars are drawn in front of theirs, others in the middle of their group.
    has_colours = any("by" in of for of in marks)
    own = altair.Chart(altair.Data(values=marks)).encode(x=x, **(offset if has_colours else {}))
    layers += _published(own) if marks else []
    layers += _reference(reference) if reference is not None else []
    per_group = _BAR_WIDTH_GROUPED * len(colours) + _GROUP_SPACE if is_grouped else _BAR_WIDTH
    return altair.layer(*layers).properties(width=max(_WIDTH_MIN, per_group * len(groups)), height=_HEIGHT)


def _curves(axes: _Axes, data: Data, marks: Data, series: ReproducedSeries) -> altair.LayerChart:
    """Returns a line with points for each colour, and the published range of its peak as a band."""
    import altair  # noqa: PLC0415 - slow to load

    values = sorted({of["x"] for of in (*data, *marks)})
    lines = _distinct(data, "by")
    is_log = series.x_scale == "log" and values[0] > 0
    kind = {"type": "log", "base": 2} if is_log else {"zero": False}
    scale = altair.Scale(**kind, nice=False, padding=12)
    x = altair.X(
        "x:Q", title=axes.x.replace("_", " "), scale=scale,
        axis=altair.Axis(values=values, format=_NUMBERS, grid=False, labelOverlap="greedy"),
    )  # fmt: skip
    base = altair.Chart(altair.Data(values=data)).encode(x=x)
    y, colour = _y(axes, zero=not axes.is_log), _colour(axes.by, lines)
    shape = altair.Shape("by:N", title=axes.by, sort=lines, scale=altair.Scale(domain=lines, range=_shapes(lines)))
    shapes = {"shape": shape} if len(lines) > 1 else {}
    layers = []
    if series.peak:
        low, high = series.peak
        peak = altair.Chart(altair.Data(values=[{"x": low, "x2": high}]))
        if low < high:
            layers.append(peak.mark_rect(color=_PUBLISHED_COLOUR, opacity=0.12).encode(x=x, x2="x2:Q"))
        else:
            layers.append(peak.mark_rule(color=_PUBLISHED_COLOUR, opacity=0.2, strokeWidth=10).encode(x=x))
    connected = [of for of in data if sum(of["by"] == other["by"] for other in data) > 1]
    layers += [
        altair.Chart(altair.Data(values=connected)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        base.transform_filter(_HAS_INTERVAL).mark_rule().encode(y="low:Q", y2="high:Q", color=colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(y=y, color=colour, **shapes),
    ]
    layers += _published(altair.Chart(altair.Data(values=marks)).encode(x=x)) if marks else []
    layers += _reference(series.reference) if series.reference is not None else []
    return altair.layer(*layers).properties(width=_CURVE_WIDTH, height=_HEIGHT)


def _y(axes: _Axes, *, zero: bool) -> altair.Y:
    import altair  # noqa: PLC0415 - slow to load

    scale = altair.Scale(type="log", nice=False) if axes.is_log else altair.Scale(zero=zero)
    # Of a logarithmic axis, only as many labels as fit above each other.
    axis = altair.Axis(labelOverlap="greedy", format=_NUMBERS) if axes.is_log else altair.Axis()
    return altair.Y("ours:Q", title=axes.y, scale=scale, stack=None, axis=axis)


def _colour(title: str, names: Sequence[str]) -> Any:
    import altair  # noqa: PLC0415 - slow to load

    if len(names) == 1:
        return altair.value(_COLOURS[0])
    known = {"range": list(_COLOURS[: len(names)])} if len(names) <= len(_COLOURS) else {"scheme": "category20"}
    # Above the chart: a legend beside it would be outside of a narrow page.
    legend = altair.Legend(orient="top", columns=min(len(names), _LEGEND_COLUMNS_MAX), labelLimit=_LABEL_WIDTH_MAX)
    return altair.Color("by:N", title=title, sort=list(names), scale=altair.Scale(domain=list(names), **known),
                        legend=legend)  # fmt: skip


def _shapes(names: Sequence[str]) -> list[str]:
    return [_SHAPES[at % len(_SHAPES)] for at in range(len(names))]


def _published(base: altair.Chart) -> list[altair.Chart]:
    """Returns the layers of published numbers: a diamond, and a line along a range."""
    mark = {"shape": "diamond", "filled": True, "size": 46, "stroke": "white", "strokeWidth": 1, "opacity": 1}
    ranges = base.transform_filter("datum.published < datum.published_to")
    return [
        ranges.mark_rule(color=_PUBLISHED_COLOUR, strokeWidth=3).encode(y="published:Q", y2="published_to:Q"),
        base.mark_point(color=_PUBLISHED_COLOUR, **mark).encode(y="published:Q"),
    ]


def _reference(value: float) -> list[altair.Chart]:
    import altair  # noqa: PLC0415 - slow to load

    line = altair.Chart(altair.Data(values=[{"reference": value}]))
    return [line.mark_rule(color="#555555", strokeDash=[5, 3]).encode(y="reference:Q")]


def _caption(
    name: str, data: Data, shown: Data, reference: float | None, *, has_marks: bool = True,
    peak: Sequence[float] = (),
) -> str:  # fmt: skip
    """Returns what the marks are, and what is not drawn."""
    has_intervals = any(of["low"] is not None for of in shown)
    parts = [f"{name}: durasim{', with 95 % intervals' if has_intervals else ''}."]
    if has_marks:
        parts.append("Red diamonds: published; a red line is a published range.")
    if reference is not None:
        parts.append(f"Dashed line: the baseline, {reference:g}.")
    if peak:
        ends = f"from {peak[0]:g} to {peak[1]:g}" if peak[0] < peak[1] else f"at {peak[0]:g}"
        parts.append(f"Red band: the peak is published {ends}.")
    if left := [of for of in data if all((of["x"], of["by"]) != (other["x"], other["by"]) for other in shown)]:
        named = ", ".join(" ".join(filter(None, (str(of["x"]), of["by"]))) for of in left)
        parts.append(f"A logarithmic axis has no place for numbers that are not positive: {named}.")
    return " ".join(parts)


def _with_ends(data: Data, *, is_log: bool) -> Data:
    """Returns data whose intervals end at the least number if a logarithmic axis has no place for their end."""
    if not is_log or not data:
        return data
    least = min(of["ours"] for of in data)
    return [{**of, "low": least if of["low"] is not None and of["low"] <= 0 else of["low"]} for of in data]


def _bar_name(axes: _Axes, reference: float | None) -> str:
    return "Points" if axes.is_log and reference is None else "Bars"


def _titled(title: str, unit: str) -> str:
    return f"{title} ({unit})" if unit else title


def _svg(chart: altair.LayerChart) -> str:
    import vl_convert  # noqa: PLC0415 - slow to load

    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


def _distinct(data: Data, key: str) -> list[str]:
    return list(dict.fromkeys(str(of[key]) for of in data))


def _shortened(names: Sequence[str]) -> dict[str, str]:
    """Returns names without the words that all of them begin with: those of their suite."""
    words = zip(*(name.split("-")[:-1] for name in names), strict=False)
    same = list(takewhile(lambda of: len(set(of)) == 1, words)) if len(names) > 1 else []
    return {name: name.split("-", len(same))[-1] for name in names}


def _angle(labels: Sequence[str]) -> int:
    return 0 if max(map(len, labels)) <= _LABELS_STRAIGHT_MAX else -35
