"""Batches of operations of a run: how much each of them moves the numbers of the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from durasim.papers.selections import number_at

LEAST = 8
"""Fewer batches say too little about how they vary."""
_RATIOS = {
    "throughput_ops_per_us": ("ops", "roi.cycles"),
    "roi.ipc": ("roi.instructions", "roi.cycles"),
    "instructions_per_transaction": ("roi.instructions", "tx.committed"),
    "accesses_per_tx.reads": ("media_reads", "tx.committed"),
    "accesses_per_tx.writes": ("media_writes", "tx.committed"),
}
"""Counters whose ratio a number of the document is; every other one is a counter, a rate of the operations."""
_CONSTANT = "configuration."

Deviations = Mapping[str, Sequence[float]]
"""For each path how much each batch moves the number there, times the number of batches: their mean is near 0, and the
number varies as their mean does. A path that cannot be divided into batches, such as a percentile, is missing."""


def deviations(document: Mapping[str, Any], paths: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Returns how much the batches of a run move the numbers of its document.

    The deviation of a batch is that of the jackknife: the number of all batches minus that without this one, times the
    number of the others. It holds for counters and for ratios of them.

    Args:
        document: The document of a run.
        paths: Paths of numbers in it; `*` stands for all names at its place.

    Returns:
        The deviations by path; none if the run has no batches, or fewer than `LEAST`.
    """
    batches = document.get("batches")
    if batches is None or batches["count"] < LEAST:
        return {}
    found = {}
    for path in paths:
        number = number_at(document, path)
        if number is None:
            continue
        if number == 0 or path.startswith(_CONSTANT):
            found[path] = (0.0,) * batches["count"]
            continue
        above, below = (_steps(batches, of) for of in _RATIOS.get(path, (path, "ops")))
        if above is not None and below is not None and (moved := _jackknife(above, below)) is not None:
            found[path] = tuple(number * of for of in moved)
    return found


def _steps(batches: Mapping[str, Any], path: str) -> list[float] | None:
    """Returns what a counter, or the sum of several, counted in each batch; None if there is no such counter."""
    columns = [column for name, column in batches["counters"].items() if _is_of(name, path)]
    if not columns:
        return None
    ends = [sum(values) for values in zip(*columns, strict=True)]
    return [after - before for before, after in pairwise([0, *ends])]


def _is_of(name: str, path: str) -> bool:
    if "*" not in path:
        return name == path
    parts, wanted = name.split("."), path.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _jackknife(above: Sequence[float], below: Sequence[float]) -> list[float] | None:
    """Returns the relative deviations of the ratio of two sums; None if the ratio has no size."""
    all_above, all_below = sum(above), sum(below)
    if all_above == 0 or all_below == 0 or any(all_below == of for of in below):
        return None
    ratio = all_above / all_below
    without = ((all_above - a) / (all_below - b) for a, b in zip(above, below, strict=True))
    return [(len(above) - 1) * (1 - of / ratio) for of in without]
