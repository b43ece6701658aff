"""Evaluation: from the numbers of runs to rows that compare published numbers with ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from durasim.documents.reproduction import ReproducedRow, ReproducedSeries, SeriesMark, SeriesPoint
from durasim.errors import ConfigError, refusal
from durasim.papers import verdicts
from durasim.papers.cells import Cells
from durasim.papers.grids import Cell
from durasim.papers.paper_files import Claim, Figure, Formula, Measure
from durasim.papers.selections import Found, is_read, select
from durasim.papers.series import Series

_SEED = "seed"
_PROBES = 200
"""Steps in which the verdict is examined over an interval."""
# Quantiles of Student's t distribution for a two-sided 95 % interval, by degrees of freedom.
_T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Results of runs and counts, for formulas.

    Attributes:
        cells: The cells of runs with their numbers.
        failed: The cells of runs that failed.
        counts: Numbers that no run gives: sizes and energies of designs, lines that transactions write.
        sources: Key and command of the run of each cell, in the order of the cells.
    """

    cells: Found
    failed: Sequence[Cell]
    counts: Callable[[Mapping[str, Any]], Cells]
    sources: Sequence[tuple[str, str]]


def row_of(paper: str, figure: Figure, claim: Claim, evidence: Evidence) -> ReproducedRow:
    """Returns a published number beside ours; its `error` says why it could not be measured."""
    published = claim.published
    numbers: tuple[float, ...] = ()
    interval: tuple[float, ...] = ()
    note, error = claim.note, None
    if claim.measure is not None:
        try:
            numbers, interval, beside = _measured(claim.measure, claim.selections, evidence)
            verdicts.check_count(published, numbers)
        except ConfigError as refused:
            where = ", ".join(part for part in (published.metric, published.design, published.workload) if part)
            error = f"{paper}/{figure.file}, {where}: {refused.field}: {refused.problem}"
            numbers, interval, beside = (), (), [f"not measured: {error}"]
        if not all(map(math.isfinite, numbers)):
            numbers, interval, beside = (), (), ["a program does not have what is counted", *beside]
        note = "; ".join(part for part in (*beside, note) if part)
    sources = _sources(claim, evidence)
    more = f" (and {len(sources) - 1} more)" if len(sources) > 1 else ""
    return ReproducedRow(
        paper=paper,
        figure=published.figure,
        metric=published.metric,
        design=published.design,
        workload=published.workload,
        baseline=published.baseline,
        published=published.value,
        unit=published.unit,
        relation=published.relation,
        ours=numbers,
        interval=interval,
        text=_text(numbers, claim.measure.digits) if claim.measure is not None else "",
        class_=verdicts.class_of(published),
        verdict=verdict_of(published, numbers, interval),
        null_verdict=verdicts.null_verdict(published),
        note=note,
        error=error,
        command=f"{sources[0][1]}{more}" if sources else "",
        runs=tuple(key for key, _ in sources),
    )


def verdict_of(
    published: verdicts.Published, numbers: Sequence[float], interval: Sequence[float], within: float = verdicts.WITHIN
) -> str:
    """Returns the verdict of our numbers, with another band if asked: `uncertain` if it differs within the interval."""
    found = verdicts.verdict(published, numbers, within)
    if found == verdicts.NOT_COMPARABLE or not interval:
        return found
    # A verdict may change and change back within the interval, as around the published number.
    low, high = interval
    steps = (low + (high - low) * step / _PROBES for step in range(_PROBES + 1))
    inside = [end for end in verdicts.bounds_of(published) if low <= end <= high]
    probed = {verdicts.verdict(published, [number], within) for number in (*steps, *inside)}
    return found if probed == {found} else verdicts.UNCERTAIN


def numbers_of(formula: Formula, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence) -> tuple[float, ...]:
    """Returns the numbers of a formula, in the unit of the paper.

    Raises:
        ConfigError: A run that it reads failed, or does not have what it reads.
    """
    read = {name: selections[name] for name in formula.names()}
    return formula.numbers(_values(formula, read, evidence))


def interval_of(formula: Formula, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence) -> tuple[float, ...]:
    """Returns the ends of the 95 % interval of a formula with one number over the seeds of its runs.

    It is that of Student's t of the mean: each seed is an independent run, whatever the operations of a run depend on.

    Returns:
        The ends; empty if the values share fewer than two seeds.

    Raises:
        ConfigError: A run that it reads failed, or does not have what it reads.
    """
    return _interval(formula, _values(formula, {name: selections[name] for name in formula.names()}, evidence))


def series_row(paper: str, figure: Figure, series: Series, evidence: Evidence) -> ReproducedSeries:
    """Returns our numbers over an axis; its `error` says why there are none."""
    drawn, points, error = series.drawn, tuple[SeriesPoint, ...](), None
    try:
        points = _points(series, evidence)
    except ConfigError as refused:
        error = f"{paper}/{figure.file}, {drawn['title']}: {refused.field}: {refused.problem}"
    return ReproducedSeries(
        paper=paper,
        figure=figure.file.removesuffix(".toml"),
        title=drawn["title"],
        form=drawn["form"],
        unit=drawn.get("unit", ""),
        x=drawn["x"],
        by=drawn.get("by", ""),
        scale=drawn.get("scale", "linear"),
        x_scale=drawn.get("x_scale", "linear"),
        reference=drawn.get("reference"),
        points=points,
        marks=tuple(SeriesMark(mark.x, *mark.ends) for mark in series.marks),
        peak=series.peak,
        error=error,
    )


def _points(series: Series, evidence: Evidence) -> tuple[SeriesPoint, ...]:
    """Returns the mean over seeds of each number that was measured, with its interval."""
    cells = series.formula.cells(_values(series.formula, series.selections, evidence))
    x, by = series.drawn["x"], series.drawn.get("by")
    if x not in cells.axes:
        raise refusal("series.x", f"its numbers do not differ along '{x}', but along {', '.join(cells.axes) or 'none'}")
    if others := [axis for axis in cells.axes if axis not in (x, by, _SEED)]:
        raise refusal("series", f"its numbers also differ along {', '.join(others)}")
    samples: dict[tuple[str, str], list[float]] = {}
    for place, number in cells.numbers.items():
        at = dict(zip(cells.axes, place, strict=True))
        label = str(at[x]), str(at.get(by, "")) if by else ""
        samples.setdefault(label, []).append(number)
    return tuple(
        SeriesPoint(_label(series, of_x), _label(series, of_by), fmean(of), _interval_of_mean(of))
        for (of_x, of_by), of in samples.items()
        if all(map(math.isfinite, of))
    )


def _label(series: Series, value: str) -> str:
    return series.labels.get(value, value)


def _values(formula: Formula, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence) -> dict[str, Cells]:
    """Returns the values of selections whose runs did not fail; a failed run that the formula reads is refused."""
    failed = {name: sum(is_read(of, cell) for cell in evidence.failed) for name, of in selections.items()}
    if count := max((failed[name] for name in formula.names()), default=0):
        raise refusal("runs", f"{count} of its runs failed")
    return {
        name: select(selection, evidence.cells) if "runs" in selection else evidence.counts(selection)
        for name, selection in selections.items()
        if not failed[name]
    }


def _measured(
    measure: Measure, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[tuple[float, ...], tuple[float, ...], list[str]]:
    """Returns the numbers of a claim, the interval over seeds, and the formulas beside it as texts."""
    values = _values(measure.formula, selections, evidence)
    numbers = measure.formula.numbers(values)
    beside = [
        f"{label}: {_text(formula.numbers(values), measure.digits)}"
        for label, formula in measure.beside.items()
        if all(name in values for name in formula.names())
    ]
    return numbers, _interval(measure.formula, values) if len(numbers) == 1 else (), beside


def _interval(formula: Formula, values: Mapping[str, Cells]) -> tuple[float, ...]:
    """Returns the 95 % interval of the mean over seeds, by Student's t; empty if the values share fewer than two."""
    read = {name: values[name] for name in formula.names()}
    seeded = [cells for cells in read.values() if _SEED in cells.axes]
    of_each = [{place[cells.axes.index(_SEED)] for place in cells.numbers} for cells in seeded]
    seeds = sorted(set.intersection(*of_each)) if of_each else []
    samples = [formula.numbers({name: _of_seed(cells, seed) for name, cells in read.items()})[0] for seed in seeds]
    return _interval_of_mean(samples)


def _interval_of_mean(samples: Sequence[float]) -> tuple[float, ...]:
    if len(samples) < 2 or not all(map(math.isfinite, samples)):  # noqa: PLR2004 - a deviation needs two
        return ()
    degrees = len(samples) - 1
    half = _T_QUANTILES[min(degrees, len(_T_QUANTILES)) - 1] * stdev(samples) / len(samples) ** 0.5
    return fmean(samples) - half, fmean(samples) + half


def _of_seed(cells: Cells, seed: Any) -> Cells:
    if _SEED not in cells.axes:
        return cells
    at = cells.axes.index(_SEED)
    kept = {place[:at] + place[at + 1 :]: number for place, number in cells.numbers.items() if place[at] == seed}
    # A mean over seeds is then that of one.
    return Cells(tuple(axis for axis in cells.axes if axis != _SEED), kept, cells.fixed | {_SEED})


def _sources(claim: Claim, evidence: Evidence) -> list[tuple[str, str]]:
    """Returns key and command of the runs that a claim reads, each once."""
    found: dict[tuple[str, str], None] = {}
    for (cell, _), source in zip(evidence.cells, evidence.sources, strict=True):
        if any(is_read(selection, cell) for selection in claim.selections.values()):
            found[source] = None
    return list(found)


def _text(numbers: Sequence[float], digits: int) -> str:
    return ", ".join("-" if math.isnan(number) else f"{number:.{digits}f}" for number in numbers)
