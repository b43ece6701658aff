"""The document of a study: its points with state, command, digest and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durasim.documents.document import Document

if TYPE_CHECKING:
    import polars

SCHEMA = "durasim-sweep/1"


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
        error: The reason if it failed.
    """

    key: str
    state: str
    seconds: float
    command: str
    digest: str | None
    values: Mapping[str, Any]
    metrics: Mapping[str, Any]
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
class SweepResult(Document):
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

    def frame(self) -> polars.DataFrame:
        """Returns a data frame with one row per point that did not fail: values of axes, metrics, digest."""
        import polars  # noqa: PLC0415 - polars takes a while to load

        rows = [{**of.metrics, **of.values, "digest": of.digest} for of in self.points if of.error is None]
        # Axes first; a metric of the same name is the value of the axis.
        names = dict.fromkeys([*self.axes, *(name for row in rows for name in row)])
        return polars.DataFrame([{name: row.get(name) for name in names} for row in rows], infer_schema_length=None)
