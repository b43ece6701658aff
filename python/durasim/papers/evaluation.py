"""Evaluation: from the numbers of runs to rows that compare published numbers with ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from durasim.documents.reproduction import ReproducedRow, ReproducedSeries, SeriesMark, SeriesPoint
from durasim.errors import ConfigError, refusal
from durasim.papers import intervals, verdicts
from durasim.papers.batches import Deviations
from durasim.papers.cells import Cells
from durasim.papers.grids import Cell
from durasim.papers.paper_files import Claim, Figure, Formula, Measure
from durasim.papers.rows import published_row
from durasim.papers.selections import Found, groups_of, is_read, select
from durasim.papers.series import Series
from durasim.papers.slopes import moved_by_batches

_SEED = "seed"
_PROBES = 200
"""Steps in which the verdict is examined over an interval."""
SEEDS, BATCHES = "seeds", "batches"
"""Sources of intervals."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Results of runs and counts, for formulas.

    Attributes:
        cells: The cells of runs with their numbers.
        failed: The cells of runs that failed.
        counts: Numbers that no run gives: sizes and energies of designs, lines that transactions write.
        sources: Key and command of the run of each cell, in the order of the cells.
        repeated: Names of the tables of runs whose files have no seeds: formulas get the mean over their seeds.
        batches: For each of the cells how much the batches of its run move its numbers; empty without batches.
    """

    cells: Found
    failed: Sequence[Cell]
    counts: Callable[[Mapping[str, Any]], Cells]
    sources: Sequence[tuple[str, str]]
    repeated: frozenset[str] = frozenset()
    batches: Sequence[Deviations] = ()


def row_of(paper: str, figure: Figure, claim: Claim, evidence: Evidence) -> ReproducedRow:
    """Returns a published number beside ours; its `error` says why it could not be measured."""
    published = claim.published
    numbers: tuple[float, ...] = ()
    interval: tuple[float, ...] = ()
    interval_from, note, error = "", claim.note, None
    if claim.measure is not None:
        try:
            numbers, (interval, interval_from), beside = _measured(claim.measure, claim.selections, evidence)
            verdicts.check_count(published, numbers)
        except ConfigError as refused:
            where = ", ".join(part for part in (published.metric, published.design, published.workload) if part)
            error = f"{paper}/{figure.file}, {where}: {refused.field}: {refused.problem}"
            numbers, interval, interval_from, beside = (), (), "", [f"not measured: {error}"]
        if not all(map(math.isfinite, numbers)):
            numbers, interval, interval_from = (), (), ""
            beside = ["a program does not have what is counted", *beside]
        note = "; ".join(part for part in (*beside, note) if part)
    sources = _sources(claim, evidence)
    more = f" (and {len(sources) - 1} more)" if len(sources) > 1 else ""
    return replace(
        published_row(paper, published),
        ours=numbers,
        interval=interval,
        interval_from=interval_from,
        text=_text(numbers, claim.measure.digits) if claim.measure is not None else "",
        verdict=verdict_of(published, numbers, interval),
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
    values = _values(formula, _read(formula, selections), evidence)
    return formula.numbers(_over_seeds(values, selections, evidence))


def interval_of(
    formula: Formula, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[tuple[float, ...], str]:
    """Returns the ends of the 95 % interval of a formula with one number, and what it is from.

    With several seeds it is that of Student's t of the mean over them: each seed is an independent run, whatever the
    operations of a run depend on. With one seed it is that of the batches of operations of the runs.

    Returns:
        The ends, and `seeds` or `batches`; empty if the values share fewer than two seeds and a run has no batches, or
        none of what is read.

    Raises:
        ConfigError: A run that it reads failed, or does not have what it reads.
    """
    return _interval(formula, _values(formula, _read(formula, selections), evidence), selections, evidence)


def series_row(paper: str, figure: Figure, series: Series, evidence: Evidence) -> ReproducedSeries:
    """Returns our numbers over an axis; its `error` says why there are none."""
    try:
        return series_of_points(paper, figure, series, _points(series, evidence))
    except ConfigError as refused:
        error = f"{paper}/{figure.file}, {series.drawn['title']}: {refused.field}: {refused.problem}"
        return series_of_points(paper, figure, series, (), error)


def series_of_points(
    paper: str, figure: Figure, series: Series, points: tuple[SeriesPoint, ...], error: str | None = None
) -> ReproducedSeries:
    """Returns numbers over an axis as the file of their figure draws them."""
    drawn = series.drawn
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
        SeriesPoint(_label(series, of_x), _label(series, of_by), fmean(of), intervals.of_samples(of))
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


def _over_seeds(
    values: Mapping[str, Cells], selections: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> dict[str, Cells]:
    """Returns values with those of repeated runs as means over the seeds, which formulas of these runs do not know."""
    return {
        name: cells.reduced(fmean, _SEED)
        if _SEED in cells.axes and evidence.repeated.issuperset(groups_of(selections[name]))
        else cells
        for name, cells in values.items()
    }


def _measured(
    measure: Measure, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], str], list[str]]:
    """Returns the numbers of a claim, their interval and what it is from, and the formulas beside it as texts."""
    values = _values(measure.formula, selections, evidence)
    shown = _over_seeds(values, selections, evidence)
    numbers = measure.formula.numbers(shown)
    beside = [
        f"{label}: {_text(formula.numbers(shown), measure.digits)}"
        for label, formula in measure.beside.items()
        if all(name in values for name in formula.names())
    ]
    if len(numbers) != 1:
        return numbers, ((), ""), beside
    return numbers, _interval(measure.formula, values, selections, evidence), beside


def _read(formula: Formula, selections: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {name: selections[name] for name in formula.names()}


def _interval(
    formula: Formula, values: Mapping[str, Cells], selections: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[tuple[float, ...], str]:
    """Returns the interval over the seeds that the values share, or over batches if they share fewer than two."""
    read = {name: values[name] for name in formula.names()}
    seeded = [cells for cells in read.values() if _SEED in cells.axes]
    of_each = [{place[cells.axes.index(_SEED)] for place in cells.numbers} for cells in seeded]
    seeds = sorted(set.intersection(*of_each)) if of_each else []
    samples = [formula.numbers({name: _of_seed(cells, seed) for name, cells in read.items()})[0] for seed in seeds]
    if found := intervals.of_samples(samples):
        return found, SEEDS
    found = _interval_of_batches(formula, _read(formula, selections), evidence) if evidence.batches else ()
    return found, BATCHES if found else ""


def _interval_of_batches(
    formula: Formula, read: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[float, ...]:
    def paths_of_cell(cell: Cell) -> list[str]:
        return list(dict.fromkeys(of["metric"] for of in read.values() if is_read(of, cell)))

    def evaluate(cells: Found) -> float:
        return numbers_of(formula, read, replace(evidence, cells=cells, batches=()))[0]

    kept = [at for at, (cell, _) in enumerate(evidence.cells) if paths_of_cell(cell)]
    cells = [evidence.cells[at] for at in kept]
    series = moved_by_batches(formula, cells, [evidence.batches[at] for at in kept], paths_of_cell, evaluate)
    return intervals.of_batches(evaluate(cells), series) if series else ()


def _of_seed(cells: Cells, seed: Any) -> Cells:
    if _SEED not in cells.axes:
        return cells
    at = cells.axes.index(_SEED)
    kept = {place[:at] + place[at + 1 :]: number for place, number in cells.numbers.items() if place[at] == seed}
    # A formula may still take the mean over the seeds, as over each axis with one value.
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
