"""Charts of results, as altair draws them: lines over the axis of a study, and bars.

Classes of results call these functions, so results are typed as Any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from durasim.documents.escaping import chart_rows, in_chart
from durasim.documents.metrics import metric_named
from durasim.errors import refusal

if TYPE_CHECKING:
    import altair

_WIDTH, _HEIGHT = 480, 300
_STEP = 48
"""Width of a stacked bar with its gap."""
_LOG_MIN = 8
"""Quotient of the largest and the smallest value from which an axis is logarithmic."""
_TICKS_MAX = 12
_SIZE_LABEL = (
    "datum.value % 1048576 == 0 ? datum.value / 1048576 + ' MiB' : "
    "datum.value % 1024 == 0 ? datum.value / 1024 + ' KiB' : datum.label"
)


def names_axis(name: str, key: str) -> bool:
    """Whether a name is that of an axis, or its last part."""
    return name in (key, key.rpartition(".")[2])


def default_x(values: Mapping[str, Iterable[Any]]) -> str | None:
    """Returns the axis that a plot has below its lines: the last numeric one with several values, else the last one.

    Args:
        values: The values of each axis.
    """
    varied = {key: several for key, of in values.items() if len(several := set(of)) > 1}
    numeric = [key for key, of in varied.items() if all(isinstance(value, int | float) for value in of)]
    return next(iter(reversed(numeric or list(varied))), None)


def sweep_chart(result: Any, metric: str | None, x: str | None, by: str | None) -> altair.Chart:
    """Returns the chart of a study; see `SweepResult.plot`."""
    points = [found.values for found in result.refined] or [point.values for point in result.points]
    values = {key: [of[key] for of in points if of[key] is not None] for key in (points[0] if points else ())}
    chosen_metric = metric or ("violations" if result.kind == "crash" else "throughput")
    chosen_x = default_x(values) if x is None else metric_named(x, values, "x")
    if chosen_x is None:
        raise refusal("x", "no axis of the study has several values")
    others = [key for key, of in values.items() if key != chosen_x and len(set(of)) > 1]
    lines = ("design" if "design" in others else next(iter(others), None)) if by is None else by
    return line_chart(result, chosen_metric, chosen_x, None if lines is None else metric_named(lines, values, "by"))


def line_chart(result: Any, metric: str, x: str, by: str | None = None) -> altair.Chart:
    """Returns the chart of a study: means over all other axes, with a point per value.

    Args:
        result: The result of the study.
        metric: The metric, or the begin of its name; the bisected axis for its value at the threshold.
        x: The key of the horizontal axis.
        by: The key with a line per value; None for one line.

    Raises:
        ConfigError: No point has the metric.
    """
    import altair  # noqa: PLC0415 - slow to load

    name, found = _values(result, metric)
    rows = [_row(values, y, x, by) for values, y in found if values[x] is not None and y is not None]
    if not rows:
        raise refusal("plot", f"no point has {name} and {x}")
    channels = {
        "x": altair.X("x", type=_kind(rows), title=in_chart(x), scale=_scale(rows), axis=_ticks(rows, x)),
        "y": altair.Y("mean(y)", type="quantitative", title=in_chart(name), scale=altair.Scale(zero=False)),
    }
    if by is not None:
        # In the order of the axis, not of the alphabet.
        order = list(dict.fromkeys(row["by"] for row in rows))
        channels["color"] = altair.Color("by", type="nominal", title=in_chart(by), sort=order)
    drawn = altair.Chart(altair.Data(values=rows), width=_WIDTH, height=_HEIGHT, title=in_chart(result.name))
    return drawn.mark_line(point=True).encode(**channels)


def bar_chart(
    rows: Sequence[tuple[str, str | None, float]], *, title: str, of: str, value: str, group: str = ""
) -> altair.Chart:
    """Returns a chart with a bar for each row: what it is of, its group or None, and its value.

    Args:
        rows: The rows; bars and groups have their order.
        title: Title of the chart.
        of: Title of the axis below the bars.
        value: Title of the vertical axis, with the unit.
        group: Title of the groups; bars of a group have one colour.

    Raises:
        ConfigError: There is no row.
    """
    import altair  # noqa: PLC0415 - slow to load

    if not rows:
        raise refusal("plot", f"no result has {value}")
    shown = chart_rows({"of": name, "group": of_group, "value": number} for name, of_group, number in rows)
    names = list(dict.fromkeys(row["of"] for row in shown))
    channels = {
        "x": altair.X("of", type="nominal", title=of, sort=names),
        "y": altair.Y("value", type="quantitative", title=in_chart(value)),
        "tooltip": [altair.Tooltip("of", type="nominal", title=of)],
    }
    if group:
        groups = list(dict.fromkeys(row["group"] for row in shown))
        channels["color"] = altair.Color("group", type="nominal", title=group, sort=groups)
        channels["xOffset"] = altair.XOffset("group", type="nominal", sort=groups)
        channels["tooltip"].append(altair.Tooltip("group", type="nominal", title=group))
    channels["tooltip"].append(altair.Tooltip("value", type="quantitative", title=in_chart(value)))
    drawn = altair.Chart(altair.Data(values=shown), height=_HEIGHT, title=in_chart(title))
    return drawn.mark_bar().encode(**channels)


def stacked_chart(rows: Sequence[tuple[str, str, str, float]], *, title: str, value: str, part: str) -> altair.Chart:
    """Returns a chart of stacked bars, side by side for each workload.

    Args:
        rows: Workload, bar, part of the bar and value; all have their order, the first part at the bottom.
        title: Title of the chart.
        value: Title of the vertical axis, with the unit.
        part: Title of the parts, which have a colour each.
    """
    import altair  # noqa: PLC0415 - slow to load

    parts = list(dict.fromkeys(row[2] for row in rows))
    named = ({"of": of, "bar": bar, "part": name, "value": number, "at": parts.index(name)}
             for of, bar, name, number in rows)  # fmt: skip
    shown = chart_rows(named)
    order = {key: list(dict.fromkeys(row[key] for row in shown)) for key in ("of", "bar", "part")}
    channels = {
        "x": altair.X("bar", type="nominal", title="design", sort=order["bar"]),
        "y": altair.Y("value", type="quantitative", title=in_chart(value)),
        "color": altair.Color(
            "part", type="nominal", title=in_chart(part), sort=order["part"], scale=altair.Scale(scheme="tableau20")
        ),
        "order": altair.Order("at", type="quantitative"),
        "tooltip": [
            altair.Tooltip("bar", type="nominal", title="design"),
            altair.Tooltip("part", type="nominal", title=in_chart(part)),
            altair.Tooltip("value", type="quantitative", title=in_chart(value), format=","),
        ],
    }
    if len(order["of"]) > 1:
        channels["column"] = altair.Column("of", type="nominal", title="workload", sort=order["of"])
    # A bar has the same width in each workload, and each workload its own height.
    drawn = altair.Chart(
        altair.Data(values=shown), width=altair.Step(_STEP), height=_HEIGHT, title=in_chart(title)
    ).mark_bar()
    return drawn.encode(**channels).resolve_scale(**({"y": "independent"} if "column" in channels else {}))


def _values(result: Any, named: str) -> tuple[str, list[tuple[Mapping[str, Any], Any]]]:
    """Returns the plotted metric with the values of axes and the metric at each point.

    The bisected axis as a metric is its value at which the threshold is reached.
    """
    if any(names_axis(named, found.axis) for found in result.refined):
        return result.refined[0].axis, [(found.values, found.at_or_beyond()) for found in result.refined]
    done = [point for point in result.points if point.error is None]
    if not done:
        raise refusal("plot", "no point has a result")
    metric = metric_named(named, done[0].metrics)
    return metric, [(point.values, point.metrics[metric]) for point in done]


def _row(values: Mapping[str, Any], y: Any, x: str, by: str | None) -> dict[str, Any]:
    (row,) = chart_rows([{"x": values[x], "y": y}])
    return row if by is None else row | {"by": "-" if values[by] is None else in_chart(str(values[by]))}


def _kind(rows: list[dict[str, Any]]) -> str:
    return "quantitative" if _is_numeric(rows) else "nominal"


def _is_numeric(rows: list[dict[str, Any]]) -> bool:
    return all(isinstance(row["x"], int | float) and not isinstance(row["x"], bool) for row in rows)


def _scale(rows: list[dict[str, Any]]) -> Any:
    import altair  # noqa: PLC0415 - slow to load

    if not _is_numeric(rows):
        return altair.Undefined
    values = [row["x"] for row in rows]
    is_log = min(values) > 0 and max(values) / min(values) >= _LOG_MIN
    return altair.Scale(type="log", base=2) if is_log else altair.Scale(zero=False)


def _ticks(rows: list[dict[str, Any]], key: str) -> Any:
    """Returns the horizontal axis: a tick per value if they are few, and sizes with their unit."""
    import altair  # noqa: PLC0415 - slow to load

    if not _is_numeric(rows):
        return altair.Undefined
    values = sorted({row["x"] for row in rows})
    shown = values if len(values) <= _TICKS_MAX else altair.Undefined
    label = _SIZE_LABEL if key.endswith("_bytes") else altair.Undefined
    return altair.Axis(values=shown, labelExpr=label)
