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
from durasim.studies.metrics import metric_named
from durasim.studies.study import Study

if TYPE_CHECKING:
    import altair

FORMATS = (".svg", ".png", ".html")
_WIDTH, _HEIGHT = 480, 300
_LOG_MIN = 8
"""Quotient of the largest and the smallest value from which an axis is logarithmic."""


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
    return Plot(asked["metric"], metric_named(chosen_x, study.axes, "x"), of_lines, path)


def chart(result: SweepResult, plot: Plot) -> altair.Chart:
    """Returns the chart of a plot: means over all other axes, with a point per value.

    Raises:
        ConfigError: No point has the metric.
    """
    import altair  # noqa: PLC0415 - slow to load

    done = [point for point in result.points if point.error is None]
    if not done:
        raise refusal("plot", "no point has a result")
    metric = metric_named(plot.metric, done[0].metrics)
    rows = [_row(point.values, point.metrics[metric], plot) for point in done if point.values[plot.x] is not None]
    if not rows:
        raise refusal("x", f"no point has a value of {plot.x}")
    channels = {
        "x": altair.X("x", type=_kind(rows, "x"), title=plot.x, scale=_scale(rows, "x")),
        "y": altair.Y("mean(y)", type="quantitative", title=metric.replace("_", " "), scale=altair.Scale(zero=False)),
    }
    if plot.by is not None:
        channels["color"] = altair.Color("by", type="nominal", title=plot.by)
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
        data = vl_convert.vegalite_to_html(drawn, bundle=True).encode()
    try:
        replace_file(Path(plot.file), data)
    except OSError as error:
        raise host_io(plot.file, error) from None


def _row(values: Mapping[str, Any], y: Any, plot: Plot) -> dict[str, Any]:
    row = {"x": values[plot.x], "y": y}
    return row if plot.by is None else row | {"by": "-" if values[plot.by] is None else str(values[plot.by])}


def _kind(rows: list[dict[str, Any]], name: str) -> str:
    return "quantitative" if _is_numeric(rows, name) else "nominal"


def _is_numeric(rows: list[dict[str, Any]], name: str) -> bool:
    return all(isinstance(row[name], int | float) and not isinstance(row[name], bool) for row in rows)


def _scale(rows: list[dict[str, Any]], name: str) -> Any:
    import altair  # noqa: PLC0415 - slow to load

    if not _is_numeric(rows, name):
        return altair.Undefined
    values = [row[name] for row in rows]
    is_log = min(values) > 0 and max(values) / min(values) >= _LOG_MIN
    return altair.Scale(type="log", base=2) if is_log else altair.Scale(zero=False)
