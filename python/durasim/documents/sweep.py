"""The document of a study: its points with state, command, digest and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim.documents.causes import first_cause
from durasim.documents.document import Document
from durasim.documents.presentation import Presented, Summary
from durasim.documents.results import CrashFailure

if TYPE_CHECKING:
    import altair
    import polars

SCHEMA = "durasim-sweep/2"


@dataclass(frozen=True, slots=True)
class PointResult(Document):
    """The result of a point of a study.

    Attributes:
        key: Hash of all that its simulation reads: its name in the store.
        state: `simulated`, `reused` from the store, or `failed`.
        seconds: Host time of its simulation; that of the stored one if it was reused.
        command: The command that repeats it alone.
        digest: Equal for equal results; None if it failed.
        values: The value of each axis; None for a parameter of another design.
        metrics: Metrics by name, which ends with the unit; empty if it failed.
        failures: The first failing trials of a crash campaign; empty for a run.
        causes: The causes of the violations of a program that is crashed, see schemas/causes.json; None for a run, a
            workload, and without violations.
        error: The reason if it failed.
    """

    key: str
    state: str
    seconds: float
    command: str
    digest: str | None
    values: Mapping[str, Any]
    metrics: Mapping[str, Any]
    failures: tuple[CrashFailure, ...]
    causes: Mapping[str, Any] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Refined(Document):
    """The result of a bisection: two values of an axis that enclose the one at which a metric crosses a threshold.

    Attributes:
        values: The values of the other axes.
        axis: The bisected axis.
        threshold: The threshold, in the unit of the metric.
        low: The lower value; None if the metric is beyond the threshold at no or all values.
        high: The upper value; None likewise.
        metric_low: The metric at `low`; at the first value of the axis if `low` is None.
        metric_high: The metric at `high`; at the last value of the axis if `high` is None.
    """

    values: Mapping[str, Any]
    axis: str
    threshold: float
    low: int | float | None
    high: int | float | None
    metric_low: float
    metric_high: float

    def at_or_beyond(self) -> int | float | None:
        """Returns the enclosing value with the metric at or above the threshold; None if it is not enclosed."""
        return self.low if self.metric_low >= self.threshold else self.high


@dataclass(frozen=True, slots=True)
class SweepResult(Presented, Document):
    """The document of `durasim sweep`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        name: Name of the study.
        kind: `run` or `crash`.
        axes: Keys of the axes.
        points: The points in order.
        simulated: Number of points that were simulated.
        reused: Number of points that were in the store.
        failed: Number of points that failed.
        notes: Sentences about keys that changed no result.
        refined: Results of a bisection, one for each combination of the other axes.
    """

    schema: str
    durasim_version: str
    name: str
    kind: str
    axes: tuple[str, ...]
    points: tuple[PointResult, ...]
    simulated: int
    reused: int
    failed: int
    notes: tuple[str, ...]
    refined: tuple[Refined, ...]

    def summary(self) -> Summary:
        """Returns the main metrics of each point that did not fail, and the reasons of those that did."""
        from durasim.documents import summaries  # noqa: PLC0415 - keeps the start-up of commands short

        axes, metrics = summaries.shown_axes(self), summaries.POINT_METRICS[self.kind]
        rows = summaries.point_rows(self, axes, metrics)
        notes = [f"failed: {point.error} ({point.command})" for point in self.points if point.error is not None]
        notes += [f"{where}: {cause}" for where, cause in summaries.first_causes(self)]
        notes += [f"note: {note}" for note in self.notes]
        headers = (*axes, *metrics.values(), "state")
        return Summary(summaries.sweep_title(self), headers, rows, len(metrics) + 1, notes)

    def plot(self, metric: str | None = None, *, x: str | None = None, by: str | None = None) -> altair.Chart:
        """Returns a chart of a metric over an axis: means over all other axes, with a point per value.

        Args:
            metric: A metric, or the begin of its name; the bisected axis for its value at the threshold. Throughput,
                or violations of a study of crashes, if None.
            x: The key of the horizontal axis; the last numeric axis with several values if None.
            by: The key with a line per value; the design or another axis with several values if None.

        Raises:
            ConfigError: The metric or a key is unknown, no point has the metric, or no axis has several values.
        """
        from durasim.documents.charts import sweep_chart  # noqa: PLC0415 - keeps the start-up of commands short

        return sweep_chart(self, metric, x, by)

    def to_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row per point that did not fail: values of axes, metrics, digest.

        A study of crashes also has the number of causes of violations (`causes`) and the place of the first one.
        """
        import polars  # noqa: PLC0415 - polars takes a while to load

        rows = [
            {**of.metrics, **of.values, **self._cause_columns(of), "digest": of.digest}
            for of in self.points
            if of.error is None
        ]
        # Axes first; a metric of the same name is the value of the axis.
        names = dict.fromkeys([*self.axes, *(name for row in rows for name in row)])
        return polars.DataFrame([{name: row.get(name) for name in names} for row in rows], infer_schema_length=None)

    def _cause_columns(self, point: PointResult) -> dict[str, object]:
        if self.kind != "crash":
            return {}
        found = () if point.causes is None else point.causes["found"]
        return {"causes": len(found), "first_cause": first_cause(point.causes)}

    def failures_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row per listed failure of each point, with the values of the axes."""
        import polars  # noqa: PLC0415 - polars takes a while to load

        rows = [{**of.values, **failure.to_dict()} for of in self.points for failure in of.failures]
        return polars.DataFrame(rows, infer_schema_length=None)

    def causes_frame(self) -> polars.DataFrame:
        """Returns a polars data frame with one row per cause of violations of each point: axes, place, missing step."""
        from durasim.documents.frame import causes_frame  # noqa: PLC0415 - polars takes a while to load

        return causes_frame((of.values, of.causes, of.command) for of in self.points)
