"""Evaluation: from the numbers of runs to rows that compare published numbers with ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from durasim.documents.reproduction import ReproducedRow
from durasim.errors import ConfigError, refusal
from durasim.papers import verdicts
from durasim.papers.cells import Cells
from durasim.papers.grids import Cell
from durasim.papers.paper_files import Claim, Figure, Formula, Measure
from durasim.papers.selections import Found, is_read, select

_SEED = "seed"
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
    """Returns a published number beside ours.

    Raises:
        ConfigError: The formula cannot be evaluated; the sentence names the file and the published number.
    """
    published = claim.published
    numbers: tuple[float, ...] = ()
    interval: tuple[float, ...] = ()
    note, sources = claim.note, list[tuple[str, str]]()
    failed = sum(any(is_read(of, cell) for of in claim.selections.values()) for cell in evidence.failed)
    if failed:
        note = f"not measured: {failed} of its runs failed"
    elif claim.measure is not None:
        try:
            numbers, interval, beside = _measured(claim.measure, claim.selections, evidence)
        except ConfigError as error:
            where = ", ".join(part for part in (published.metric, published.design, published.workload) if part)
            raise refusal(error.field, f"{paper}/{figure.file}, {where}: {error.problem}") from None
        if any(map(math.isnan, numbers)):
            numbers, beside = (), ["a program does not have what is counted", *beside]
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
        note=note,
        command=f"{sources[0][1]}{more}" if sources else "",
        runs=tuple(key for key, _ in sources),
    )


def verdict_of(published: verdicts.Published, numbers: Sequence[float], interval: Sequence[float]) -> str:
    """Returns the verdict of our numbers: `uncertain` if it is not the same over the whole interval."""
    found = verdicts.verdict(published, numbers)
    if found != verdicts.NOT_COMPARABLE and interval:
        ends = {verdicts.verdict(published, [end]) for end in interval}
        # Numbers around the published one are reproduced; both ends may differ in opposite directions.
        within = [end for end in published.ends if interval[0] <= end <= interval[1]] if published.is_number else []
        if ends | {verdicts.verdict(published, [number]) for number in within} != {found}:
            return verdicts.UNCERTAIN
    return found


def _measured(
    measure: Measure, selections: Mapping[str, Mapping[str, Any]], evidence: Evidence
) -> tuple[tuple[float, ...], tuple[float, ...], list[str]]:
    """Returns the numbers of a claim, the interval over seeds, and the formulas beside it as texts."""
    values = {
        name: select(selection, evidence.cells) if "runs" in selection else evidence.counts(selection)
        for name, selection in selections.items()
    }
    numbers = measure.formula.numbers(values)
    beside = [f"{label}: {_text(formula.numbers(values), measure.digits)}" for label, formula in measure.beside.items()]
    return numbers, _interval(measure.formula, values) if len(numbers) == 1 else (), beside


def _interval(formula: Formula, values: Mapping[str, Cells]) -> tuple[float, ...]:
    """Returns the 95 % interval of the mean over seeds, by Student's t; empty if the values have no seeds."""
    read = {name: values[name] for name in formula.names()}
    seeded = [cells for cells in read.values() if _SEED in cells.axes]
    if not seeded:
        return ()
    seeds = dict.fromkeys(place[cells.axes.index(_SEED)] for cells in seeded for place in cells.numbers)
    samples = [formula.numbers({name: _of_seed(cells, seed) for name, cells in read.items()})[0] for seed in seeds]
    if any(math.isnan(sample) for sample in samples):
        return ()
    degrees = len(samples) - 1
    half = _T_QUANTILES[min(degrees, len(_T_QUANTILES)) - 1] * stdev(samples) / len(samples) ** 0.5
    return fmean(samples) - half, fmean(samples) + half


def _of_seed(cells: Cells, seed: Any) -> Cells:
    if _SEED not in cells.axes:
        return cells
    at = cells.axes.index(_SEED)
    kept = {place[:at] + place[at + 1 :]: number for place, number in cells.numbers.items() if place[at] == seed}
    return Cells(tuple(axis for axis in cells.axes if axis != _SEED), kept)


def _sources(claim: Claim, evidence: Evidence) -> list[tuple[str, str]]:
    """Returns key and command of the runs that a claim reads, each once."""
    found: dict[tuple[str, str], None] = {}
    for (cell, _), source in zip(evidence.cells, evidence.sources, strict=True):
        if any(is_read(selection, cell) for selection in claim.selections.values()):
            found[source] = None
    return list(found)


def _text(numbers: Sequence[float], digits: int) -> str:
    return ", ".join("-" if math.isnan(number) else f"{number:.{digits}f}" for number in numbers)
