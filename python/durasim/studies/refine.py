"""Bisection of an axis: encloses the value at which a metric crosses a threshold, for all other values at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from durasim.documents.sweep import PointResult, Refined
from durasim.studies.study import Point, Study

_HALVINGS_MAX = 64
"""Bisections of one axis; floating-point numbers have no more halves."""


class Bisections:
    """The bisections of a study: one for each combination of the other axes."""

    def __init__(self, study: Study) -> None:
        assert study.refinement is not None  # noqa: S101 - checked by the caller
        self._study, self._asked = study, study.refinement
        self._axis = study.axes[self._asked.axis]
        self._rounds = 0

    def next_points(self, results: Sequence[PointResult]) -> list[Point]:
        """Returns the points to simulate next; none if the threshold is enclosed everywhere, or nowhere."""
        self._rounds += 1
        if self._rounds > _HALVINGS_MAX:
            return []
        found = []
        for group in self._groups(results):
            enclosed = self._enclosed(group)
            if enclosed is None:
                continue
            low, high = (result.values[self._axis.key] for result in enclosed)
            middle = self._axis.between(low, high)
            if high - low > self._asked.tolerance and low < middle < high:
                found.append(self._study.point({**self._plain(group[0]), self._axis.key: middle}))
        return found

    def place(self, result: PointResult) -> tuple[float, ...]:
        """Returns the place of a point in the order of the axes, with those of the bisected axis by value."""
        places = []
        for key, axis in self._study.axes.items():
            value = result.values[key]
            places.append(-1 if value is None else value if key == self._axis.key else axis.values.index(value))
        return tuple(places)

    def refined(self, results: Sequence[PointResult]) -> Iterator[Refined]:
        """Yields the result of each bisection."""
        for group in self._groups(results):
            enclosed = self._enclosed(group)
            first, last = enclosed or (group[0], group[-1])
            yield Refined(
                values={key: value for key, value in group[0].values.items() if key != self._axis.key},
                axis=self._axis.key,
                threshold=self._threshold(group),
                low=first.values[self._axis.key] if enclosed else None,
                high=last.values[self._axis.key] if enclosed else None,
                metric_low=self._metric(first),
                metric_high=self._metric(last),
            )

    def _groups(self, results: Sequence[PointResult]) -> list[list[PointResult]]:
        """Returns the points of each bisection by the value of its axis, if all of them have the metric."""
        found: dict[str, list[PointResult]] = {}
        for result in results:
            if result.values[self._axis.key] is not None:
                others = [value for key, value in result.values.items() if key != self._axis.key]
                found.setdefault(json.dumps(others), []).append(result)
        groups = [sorted(group, key=lambda of: of.values[self._axis.key]) for group in found.values()]
        return [group for group in groups if len(group) > 1 and all(map(self._has_metric, group))]

    def _enclosed(self, group: list[PointResult]) -> tuple[PointResult, PointResult] | None:
        """Returns the first two neighbours on both sides of the threshold; None if all are on one side."""
        threshold = self._threshold(group)
        beyond = [self._metric(result) >= threshold for result in group]
        for number in range(len(group) - 1):
            if beyond[number] != beyond[number + 1]:
                return group[number], group[number + 1]
        return None

    def _threshold(self, group: list[PointResult]) -> float:
        if self._asked.of is None:
            return self._asked.threshold
        return self._asked.threshold * self._metric(group[0] if self._asked.of == "first" else group[-1])

    def _metric(self, result: PointResult) -> float:
        return float(result.metrics[self._asked.metric])

    def _has_metric(self, result: PointResult) -> bool:
        return result.error is None and result.metrics[self._asked.metric] is not None

    def _plain(self, result: PointResult) -> dict[str, Any]:
        """Returns the values of a point; a parameter of another design takes any value of its axis."""
        return {
            key: self._study.axes[key].values[0] if value is None else value for key, value in result.values.items()
        }
