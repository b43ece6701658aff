"""Effects of batches of runs on a number that a formula makes from several runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from durasim.papers.batches import Deviations
from durasim.papers.formulas import Formula
from durasim.papers.grids import Cell
from durasim.papers.selections import Found

_RELATIVE_STEP = 1e-4
"""Change of a number of a run with which the slope of a formula is found."""
_WITHOUT_SLOPE = frozenset({"argmax", "steps", "smallest_that_keeps"})
_DESIGN = "design"


def moved_by_batches(
    formula: Formula,
    cells: Found,
    batches: Sequence[Deviations],
    paths_of_cell: Callable[[Cell], Sequence[str]],
    evaluate: Callable[[Found], float],
) -> list[list[float]]:
    """Returns how much batches move the number of a formula, as series that are independent of each other.

    The formula is replaced by its slopes in the numbers of each run. Runs that differ in the design alone execute the
    same operations in the same order, so their batches are paired: what is equal in both moves no ratio of them.

    Args:
        formula: The formula.
        cells: The cells that it reads, with their numbers.
        batches: The deviations of each cell.
        paths_of_cell: Returns the paths that the formula reads of a cell.
        evaluate: Returns the number of the formula for these cells.

    Returns:
        The series; none if a run has no batches for what is read, or the formula has no slope.
    """
    if _WITHOUT_SLOPE & formula.functions():
        return []
    groups: dict[Any, list[float]] = {}
    for at, ((cell, _), of_run) in enumerate(zip(cells, batches, strict=True)):
        for path in paths_of_cell(cell):
            if path not in of_run:
                return []
            slope = _slope(cells, at, path, evaluate) if any(of_run[path]) else 0.0
            if not math.isfinite(slope):
                return []
            series = groups.setdefault(_group(cell, len(of_run[path])), [0.0] * len(of_run[path]))
            for batch, deviation in enumerate(of_run[path]):
                series[batch] += slope * deviation
    return list(groups.values())


def _group(cell: Cell, count: int) -> Any:
    """Returns what is equal for runs whose batches are paired."""
    others = frozenset((key, value) for key, value in cell.values.items() if key != _DESIGN)
    return cell.runs, others, count


def _slope(cells: Found, at: int, path: str, evaluate: Callable[[Found], float]) -> float:
    cell, numbers = cells[at]
    number = numbers[path] or 0.0
    step = _RELATIVE_STEP * abs(number)
    ends = []
    for changed in (number - step, number + step):
        found = list(cells)
        found[at] = cell, {**numbers, path: changed}
        ends.append(evaluate(found))
    return (ends[1] - ends[0]) / (2 * step)
