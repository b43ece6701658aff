"""Numbers of the runs of a grid, labelled by the values of its axes, with arithmetic that pairs equal labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from durasim.errors import refusal
from durasim.studies.axes import Value

Place = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """Numbers by the values of axes.

    Attributes:
        axes: Keys of the axes along which the numbers differ; none for a single number.
        numbers: A number by its value of each axis, in the order of the axes.
        fixed: Keys of axes that have one value for all numbers.
    """

    axes: tuple[str, ...]
    numbers: Mapping[Place, float]
    fixed: frozenset[str] = field(default=frozenset(), compare=False)

    @staticmethod
    def of(number: float) -> Cells:
        """Returns a single number."""
        return Cells((), {(): number})

    def without_constant_axes(self) -> Cells:
        """Returns equal numbers without axes that have one value, so that grids of different axes can be paired."""
        kept = [at for at in range(len(self.axes)) if len({place[at] for place in self.numbers}) > 1]
        numbers = {tuple(place[at] for at in kept): number for place, number in self.numbers.items()}
        return Cells(
            tuple(self.axes[at] for at in kept), numbers, frozenset(self.axes) - {self.axes[at] for at in kept}
        )

    def each(self, function: Callable[[float], float]) -> Cells:
        """Returns the function of each number."""
        return Cells(self.axes, {place: function(number) for place, number in self.numbers.items()}, self.fixed)

    def paired(self, other: Cells, function: Callable[[float, float], float]) -> Cells:
        """Returns the function of each pair of numbers with equal values of the common axes.

        Raises:
            ConfigError: A number of `self` has no partner.
        """
        common = [axis for axis in self.axes if axis in other.axes]
        ours = [self.axes.index(axis) for axis in common]
        theirs = [other.axes.index(axis) for axis in common]
        more = [at for at in range(len(other.axes)) if at not in theirs]
        partners: dict[Place, list[tuple[Place, float]]] = {}
        for place, number in other.numbers.items():
            added = tuple(place[at] for at in more)
            partners.setdefault(tuple(place[at] for at in theirs), []).append((added, number))
        found = {}
        for place, number in self.numbers.items():
            label = tuple(place[at] for at in ours)
            if label not in partners:
                named = ", ".join(f"{axis} {value}" for axis, value in zip(common, label, strict=True))
                raise refusal("formula", f"no run to compare with that of {named}")
            for added, partner in partners[label]:
                found[place + added] = function(number, partner)
        axes = self.axes + tuple(other.axes[at] for at in more)
        return Cells(axes, found, (self.fixed | other.fixed) - set(axes))

    def along(self, axis: str) -> dict[Place, dict[Value, float]]:
        """Returns the numbers along an axis, by the values of the others.

        Raises:
            ConfigError: The numbers do not differ along the axis.
        """
        if axis not in self.axes:
            raise refusal("formula", f"its values have no axis {axis}, but {', '.join(self.axes) or 'none'}")
        at = self.axes.index(axis)
        found: dict[Place, dict[Value, float]] = {}
        for place, number in self.numbers.items():
            found.setdefault(place[:at] + place[at + 1 :], {})[place[at]] = number
        return found

    def reduced(self, function: Callable[[Sequence[float]], float], axis: str | None = None) -> Cells:
        """Returns the function of all numbers, or of those along an axis; NaN if one of them is NaN.

        Raises:
            ConfigError: The runs have no such axis.
        """

        def checked(numbers: Sequence[float]) -> float:
            return math.nan if any(map(math.isnan, numbers)) else function(numbers)

        if axis is None:
            return Cells.of(checked(list(self.numbers.values())))
        if axis in self.fixed:
            # Along an axis with one value each number is reduced alone.
            return self.each(lambda number: checked([number]))
        others = tuple(other for other in self.axes if other != axis)
        found = {place: checked(list(of.values())) for place, of in self.along(axis).items()}
        return Cells(others, found, self.fixed | {axis})

    def where_largest(self, axis: str) -> Cells:
        """Returns the values of an axis at which the number is largest; several if it is equal there."""
        found = {}
        for place, of in self._numeric(axis).items():
            largest = max(of.values())
            for value, number in of.items():
                if number == largest:
                    found[self._placed(place, axis, value)] = float(value)
        return Cells(self.axes, found, self.fixed)

    def steps(self, axis: str) -> Cells:
        """Returns each number relative to the one before it along an axis."""
        found = {}
        for place, of in self.along(axis).items():
            for (_, before), (value, number) in pairwise(of.items()):
                found[self._placed(place, axis, value)] = quotient(number, before)
        return Cells(self.axes, found, self.fixed)

    def smallest_that_keeps(self, axis: str, share: float) -> Cells:
        """Returns the smallest value of an axis down to which numbers are at least a share of that at the largest."""
        others = tuple(other for other in self.axes if other != axis)
        found = {}
        for place, of in self._numeric(axis).items():
            values = sorted(of, key=float, reverse=True)
            kept = values[0]
            for value in values[1:]:
                if of[value] < share * of[values[0]]:
                    break
                kept = value
            found[place] = float(kept)
        return Cells(others, found, self.fixed | {axis})

    def _numeric(self, axis: str) -> dict[Place, dict[Value, float]]:
        """Returns the numbers along an axis whose values are numbers.

        Raises:
            ConfigError: A value of the axis is no number, or a number along it is NaN.
        """
        found = self.along(axis)
        for of in found.values():
            if texts := [value for value in of if isinstance(value, str)]:
                raise refusal("formula", f"the value '{texts[0]}' of {axis} is no number")
            if any(map(math.isnan, of.values())):
                raise refusal("formula", f"a program does not have what is counted along {axis}")
        return found

    def _placed(self, place: Place, axis: str, value: Value) -> Place:
        at = self.axes.index(axis)
        return (*place[:at], value, *place[at:])


def quotient(ours: float, theirs: float) -> float:
    """Returns the quotient; NaN if a program has none of what is counted, so that the number is not comparable."""
    return ours / theirs if theirs else math.nan


def geomean(numbers: Iterable[float]) -> float:
    """Returns the geometric mean; NaN if a number is 0 or below."""
    found = list(numbers)
    return math.exp(math.fsum(map(math.log, found)) / len(found)) if all(n > 0 for n in found) else math.nan
