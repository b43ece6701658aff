"""Plots of studies, drawn by altair and converted without a network."""

from __future__ import annotations

import re
from dataclasses import dataclass

from durasim.documents.chart_files import check_chart_file, write_chart
from durasim.documents.charts import default_x, line_chart, names_axis
from durasim.documents.metrics import metric_named, metric_names
from durasim.documents.sweep import SweepResult
from durasim.errors import refusal
from durasim.studies.study import Study


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
    chosen_x = asked.get("x") or default_x({key: axis.values for key, axis in study.axes.items()})
    if chosen_x is None:
        raise refusal("x", "no axis of the study has several values")
    path = asked.get("file") or f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', study.name)}.svg"
    check_chart_file("plot_file", path)
    of_lines = None if "by" not in asked else metric_named(asked["by"], study.axes, "by")
    x_key = metric_named(chosen_x, study.axes, "x")
    bisected = None if study.refinement is None else study.refinement.axis
    if bisected is None or not names_axis(asked["metric"], bisected):
        return Plot(metric_named(asked["metric"], metric_names(study.kind)), x_key, of_lines, path)
    if bisected in (x_key, of_lines):
        raise refusal("x", f"{bisected} is the metric of the plot: choose another axis with --x")
    return Plot(bisected, x_key, of_lines, path)


def write(result: SweepResult, plot: Plot) -> None:
    """Writes a plot to its file, atomically.

    Raises:
        ConfigError: No point has the metric.
        HostIoError: The file cannot be written.
    """
    write_chart(line_chart(result, plot.metric, plot.x, plot.by).to_dict(), plot.file)
