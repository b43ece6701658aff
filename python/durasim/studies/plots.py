"""Plots of studies, drawn by altair and converted without a network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durasim.documents.sweep import SweepResult
from durasim.errors import host_io, refusal
from durasim.output import replace_file
from durasim.studies.metrics import metric_named, metric_names
from durasim.studies.study import Study

if TYPE_CHECKING:
    import altair

FORMATS = (".svg", ".png", ".html")
_WIDTH, _HEIGHT = 480, 300
_LOG_MIN = 8
"""Quotient of the largest and the smallest value from which an axis is logarithmic."""
_LESS = "\ue000"
"""A character for private use, in place of < until the page is written."""
_TICKS_MAX = 12
_SIZE_LABEL = (
    "datum.value % 1048576 == 0 ? datum.value / 1048576 + ' MiB' : "
    "datum.value % 1024 == 0 ? datum.value / 1024 + ' KiB' : datum.label"
)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of a study.

    Attributes:
        metric: The metric, or the begin of its name.
        x: The key of the horizontal axis.
        by: The key with a line per value; None for one line.
        file: The file to write.
    """

    metric: str
    x: str
    by: str | None
    file: str


def plot_of(
    study: Study, *, metric: str | None, x: str | None = None, by: str | None = None, file: str | None = None
) -> Plot | None:
    """Returns the plot that options and the study file ask for, or None.

    Raises:
        ConfigError: An option has no effect, a key is no axis, or the kind of file is unknown.
    """
    asked = dict(study.tables.get("plot", {}))
    asked |= {name: value for name, value in (("metric", metric), ("x", x), ("by", by), ("file", file)) if value}
    if "metric" not in asked:
        for name, value in (("x", x), ("by", by), ("plot_file", file)):
            if value is not None:
                raise refusal(name, "requires --plot METRIC")
        return None
    varied = [key for key, axis in study.axes.items() if len(axis.values) > 1]
    numeric = [key for key in varied if all(isinstance(value, int | float) for value in study.axes[key].values)]
    chosen_x = asked.get("x") or next(iter(reversed(numeric or varied)), None)
    if chosen_x is None:
        raise refusal("x", "no axis of the study has several values")
    path = asked.get("file") or f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', study.name)}.svg"
    if Path(path).suffix not in FORMATS:
        raise refusal("plot_file", f"'{path}' ends with none of {', '.join(FORMATS)}")
    of_lines = None if "by" not in asked else metric_named(asked["by"], study.axes, "by")
    x_key = metric_named(chosen_x, study.axes, "x")
    bisected = None if study.refinement is None else study.refinement.axis
    if bisected is None or not _names_axis(asked["metric"], bisected):
        return Plot(metric_named(asked["metric"], metric_names(study.kind)), x_key, of_lines, path)
    if bisected in (x_key, of_lines):
        raise refusal("x", f"{bisected} is the metric of the plot: choose another axis with --x")
    return Plot(bisected, x_key, of_lines, path)


def _names_axis(name: str, key: str) -> bool:
    return name in (key, key.rpartition(".")[2])


def chart(result: SweepResult, plot: Plot) -> altair.Chart:
    """Returns the chart of a plot: means over all other axes, with a point per value.

    Raises:
        ConfigError: No point has the metric.
    """
    import altair  # noqa: PLC0415 - slow to load

    metric, found = _values(result, plot)
    rows = [_row(values, y, plot) for values, y in found if values[plot.x] is not None and y is not None]
    if not rows:
        raise refusal("plot", f"no point has {metric} and {plot.x}")
    channels = {
        "x": altair.X("x", type=_kind(rows), title=plot.x, scale=_scale(rows), axis=_ticks(rows, plot.x)),
        "y": altair.Y("mean(y)", type="quantitative", title=metric, scale=altair.Scale(zero=False)),
    }
    if plot.by is not None:
        # In the order of the axis, not of the alphabet.
        order = list(dict.fromkeys(row["by"] for row in rows))
        channels["color"] = altair.Color("by", type="nominal", title=plot.by, sort=order)
    data = altair.Data(values=rows)
    drawn = altair.Chart(data, width=_WIDTH, height=_HEIGHT, title=result.name)
    return drawn.mark_line(point=True).encode(**channels)


def write(result: SweepResult, plot: Plot) -> None:
    """Writes a plot to its file, atomically.

    Raises:
        ConfigError: No point has the metric.
        HostIoError: The file cannot be written.
    """
    import vl_convert  # noqa: PLC0415 - slow to load

    drawn = chart(result, plot).to_dict()
    suffix = Path(plot.file).suffix
    if suffix == ".svg":
        data = vl_convert.vegalite_to_svg(drawn).encode()
    elif suffix == ".png":
        data = vl_convert.vegalite_to_png(drawn, scale=2)
    else:
        # The page has the chart in a script, which a name with </script> must not end.
        page = vl_convert.vegalite_to_html(_replaced(drawn, "<", _LESS), bundle=True)
        data = page.replace(_LESS, "\\u003c").encode()
    try:
        replace_file(Path(plot.file), data)
    except OSError as error:
        raise host_io(plot.file, error) from None


def _replaced(value: Any, text: str, by: str) -> Any:
    """Returns a chart with a text replaced in all its strings."""
    if isinstance(value, dict):
        return {name: _replaced(item, text, by) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, text, by) for item in value]
    return value.replace(text, by) if isinstance(value, str) else value


def _values(result: SweepResult, plot: Plot) -> tuple[str, list[tuple[Mapping[str, Any], Any]]]:
    """Returns the plotted metric with the values of axes and the metric at each point.

    The bisected axis as a metric is its value at which the threshold is reached.
    """
    if any(_names_axis(plot.metric, found.axis) for found in result.refined):
        return result.refined[0].axis, [(found.values, found.at_or_beyond()) for found in result.refined]
    done = [point for point in result.points if point.error is None]
    if not done:
        raise refusal("plot", "no point has a result")
    metric = metric_named(plot.metric, done[0].metrics)
    return metric, [(point.values, point.metrics[metric]) for point in done]


def _row(values: Mapping[str, Any], y: Any, plot: Plot) -> dict[str, Any]:
    row = {"x": values[plot.x], "y": y}
    return row if plot.by is None else row | {"by": "-" if values[plot.by] is None else str(values[plot.by])}


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
