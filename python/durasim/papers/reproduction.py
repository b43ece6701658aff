"""Reproduction: runs what the figures of papers need, and compares their published numbers with ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from durasim import _core
from durasim.documents.reproduction import (
    SCHEMA,
    ReadingResult,
    ReadNumber,
    ReproducedPoint,
    ReproducedRow,
    ReproducedSeries,
    Reproduction,
)
from durasim.documents.sweep import PointResult, SweepResult
from durasim.errors import refusal, unknown_name
from durasim.papers.batches import Deviations, deviations
from durasim.papers.cells import Cells
from durasim.papers.chance import PERMUTATIONS, Permutations, chance_of
from durasim.papers.evaluation import Evidence, row_of, series_row, verdict_of
from durasim.papers.grids import UNPUBLISHED, Cell, Grid, grid_of, numbers_in, union_of, without_repeated
from durasim.papers.paper_files import Claim, Figure, Paper, Reading
from durasim.papers.robustness import effects_of, with_sensitivity
from durasim.papers.selections import Found, groups_of, is_read, number_at, paths_of
from durasim.papers.sensitivity_table import complete_rows
from durasim.papers.verdicts import (
    BANDS,
    DIFFERS,
    DIRECTION,
    NOT_COMPARABLE,
    REPRODUCED,
    SCORING,
    UNCERTAIN,
    VERDICTS,
    WITHIN,
    Published,
)
from durasim.studies.study import Study
from durasim.studies.study_run import See

Counts = Callable[[Mapping[str, Any]], Cells]
Run = Callable[[Study, See], SweepResult]
"""Runs all points of a study, and calls its second argument with the number and the document of each."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Figures of a paper to reproduce.

    Attributes:
        paper: The paper.
        figures: Its figures.
    """

    paper: Paper
    figures: tuple[Figure, ...]

    def claims(self) -> list[tuple[Figure, Claim]]:
        """Returns all published numbers with their figures."""
        return [(figure, claim) for figure in self.figures for claim in figure.claims]

    def under(self, reading: Reading) -> Chosen:
        """Returns the figures with the runs and formulas of another reading; nothing is drawn."""
        figures = tuple(
            replace(
                figure,
                runs=reading.changed(figure.runs),
                claims=tuple(
                    replace(of, selections=reading.selected(of.selections))
                    for of in (claim.under.get(reading.name, claim) for claim in figure.claims)
                ),
                series=(),
            )
            for figure in self.figures
        )
        return Chosen(self.paper, figures)

    def grids(self, scale: str, *, with_readings: bool, seeds: int = 1) -> list[Grid]:
        """Returns the runs that the published numbers need, and if asked for those of each other reading."""
        others = [self.under(reading) for reading in self.paper.readings if with_readings]
        return [of.grid(scale, seeds) for of in (self, *others)]

    def planned_grids(self, scale: str, *, with_readings: bool, seeds: int = 1) -> list[Grid]:
        """Returns the runs that the published numbers need, and those that each other reading adds, by its name."""
        grids = without_repeated(self.grids(scale, with_readings=with_readings, seeds=seeds))
        names = ("", *(f", reading {reading.name}" for reading in self.paper.readings))
        return [replace(grid, name=f"{grid.name}{of}") for grid, of in zip(grids, names, strict=False)]

    def grid(self, scale: str, seeds: int = 1) -> Grid:
        """Returns the runs that the published numbers need, with that many seeds or more.

        At scale `paper` they are also those that series need; at scale `quick` series show the runs that score.
        """
        needed: dict[str, Mapping[str, Any]] = {}
        selections = [(figure, of) for figure, claim in self.claims() for of in claim.selections.values()]
        if scale == "paper":
            drawn = [(figure, series) for figure in self.figures for series in figure.series]
            selections += [(figure, of) for figure, series in drawn for of in series.selections.values()]
        for figure, selection in selections:
            needed |= {name: figure.runs[name] for name in groups_of(selection)}

        def reads(cell: Cell) -> bool:
            return any(is_read(selection, cell) for _, selection in selections)

        return grid_of(self.paper.name, list(needed.values()), scale, reads, seeds)


def with_readings(chosen: Sequence[Chosen], names: Sequence[str]) -> list[Chosen]:
    """Returns the chosen figures with the readings of these names alone.

    Raises:
        ConfigError: No chosen paper has such a reading.
    """
    known = tuple(reading.name for of in chosen for reading in of.paper.readings)
    for name in names:
        if name not in known:
            raise unknown_name("reading", name, known)

    def kept(paper: Paper) -> Paper:
        return replace(paper, readings=tuple(reading for reading in paper.readings if reading.name in names))

    return [replace(of, paper=kept(of.paper)) for of in chosen]


def chosen_figures(papers: Sequence[Paper], place: str | None) -> list[Chosen]:
    """Returns all figures of papers, or those with this name in the paper or of this file.

    Raises:
        ConfigError: No paper has this figure.
    """
    if place is None:
        return [Chosen(paper, paper.figures) for paper in papers]
    wanted = place.casefold()
    by_name = [(of, tuple(f for f in of.figures if wanted in map(str.casefold, f.names))) for of in papers]
    found = [Chosen(of, figures) for of, figures in by_name if figures]
    # The file of a figure may have numbers of the text about it.
    found = found or [Chosen(of, figures) for of in papers if (figures := _with_claims_of(place, of.figures))]
    if not found:
        places = {claim.published.figure for of in papers for figure in of.figures for claim in figure.claims}
        raise unknown_name("figure", place, places.union(*(figure.names for of in papers for figure in of.figures)))
    return found


def at_scale(chosen: Sequence[Chosen], scale: str) -> list[Chosen]:
    """Returns figures without the measurements that a scale does not have: those of runs with unpublished sizes.

    Raises:
        ConfigError: No number is left that has runs.
    """
    if scale != "paper":
        return list(chosen)
    found, reasons = [], dict[str, None]()
    for of in chosen:
        figures = []
        for figure in of.figures:
            unknown = {id(claim): _unpublished(figure, claim.selections) for claim in figure.claims}
            reasons |= {f"{of.paper.name}: {why}": None for why in unknown.values() if why}
            claims = tuple(
                Claim(claim.published, None, {}, f"no run of the published size: {why}") if why else claim
                for claim in figure.claims
                for why in (unknown[id(claim)],)
            )
            drawn = tuple(of for of in figure.series if _unpublished(figure, of.selections) is None)
            figures.append(replace(figure, claims=claims, series=drawn))
        found.append(replace(of, figures=tuple(figures)))
    has_runs = any(groups_of(read) for of in found for _, claim in of.claims() for read in claim.selections.values())
    if reasons and not has_runs:
        raise refusal("scale", f"paper: {'; '.join(reasons)}")
    return found


def _unpublished(figure: Figure, selections: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Returns what the paper does not state of the sizes of runs that are selected; None if it states all."""
    read = [figure.runs[name] for of in selections.values() for name in groups_of(of)]
    return next((table[UNPUBLISHED] for table in read if UNPUBLISHED in table), None)


def _with_claims_of(place: str, figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Returns the figures that have published numbers of another place, with these alone and not drawn."""
    claims = {
        of.file: tuple(c for c in of.claims if c.published.figure.casefold() == place.casefold()) for of in figures
    }
    return tuple(replace(of, claims=claims[of.file], plot={}, series=()) for of in figures if claims[of.file])


def reproduce(
    chosen: Sequence[Chosen], scale: str, *, run: Run, counts: Counts, with_readings: bool = False, seeds: int = 1,
    permutations: int = PERMUTATIONS,
) -> Reproduction:  # fmt: skip
    """Runs what the figures need and compares their published numbers with ours.

    Args:
        chosen: The figures of each paper.
        scale: `quick` or `paper`.
        run: Runs all points of a study, and calls its second argument with the documents.
        counts: Returns numbers that no run gives.
        with_readings: Whether to run the other readings of the papers as well.
        seeds: Least number of seeds of each run.
        permutations: Number of permutations of design labels that show what chance gives.

    Raises:
        ConfigError: A run is refused before any is simulated.
        HostIoError: The store cannot be written.
        ToolchainError: A guest program cannot be built.
    """
    began, rows, series = time.monotonic(), list[ReproducedRow](), list[ReproducedSeries]()
    readings, by_chance = list[ReadingResult](), list[Permutations]()
    # What is refused is refused before anything is simulated.
    grids = [(of, of.grids(scale, with_readings=with_readings, seeds=seeds)) for of in chosen]
    results = _Results([grid for _, found in grids for grid in found], chosen, run)

    def measured(of: Chosen, evidence: Evidence) -> list[ReproducedRow]:
        return [row_of(of.paper.name, figure, claim, evidence) for figure, claim in of.claims()]

    def varied(of: Chosen, evidence: Evidence) -> list[ReproducedRow]:
        effects = effects_of(of.paper.name, complete_rows(of.paper.name))
        claims = [claim for _, claim in of.claims()]
        pairs = zip(measured(of, evidence), claims, strict=True)
        return [with_sensitivity(row, claim, evidence, effects) for row, claim in pairs]

    for of, (plain, *changed) in grids:
        evidence = results.evidence(plain, counts)
        by_chance.append(Permutations([claim for _, claim in of.claims()], evidence, permutations, seed=1))
        drawn = [(figure, each) for figure in of.figures for each in figure.series]
        series += [series_row(of.paper.name, figure, each, evidence) for figure, each in drawn]
        found, others = varied(of, evidence), dict[str, list[ReproducedRow]]()
        for reading, grid in zip(of.paper.readings, changed, strict=False):
            others[reading.name] = measured(of.under(reading), results.evidence(grid, counts))
            readings.append(_compared(of.paper.name, reading, found, others[reading.name]))
        rows += [
            replace(row, readings={name: read[at].verdict for name, read in others.items()})
            for at, row in enumerate(found)
        ]
    return Reproduction(
        schema=SCHEMA,
        durasim_version=_core.__version__,
        build=_core.__build__,
        papers=tuple(of.paper.name for of in chosen),
        scale=scale,
        seeds=seeds,
        wall_s=round(time.monotonic() - began, 3),
        claims=counted(rows),
        bands=banded([claim.published for of in chosen for _, claim in of.claims()], rows),
        chance=chance_of(by_chance),
        rows=tuple(rows),
        series=tuple(series),
        points=tuple(results.points.values()),
        readings=tuple(readings),
    )


def _compared(
    paper: str, reading: Reading, rows: Sequence[ReproducedRow], other: Sequence[ReproducedRow]
) -> ReadingResult:
    """Returns the verdicts that a reading gains and loses."""
    both = [(old, new) for old, new in zip(rows, other, strict=True) if old.error is None and new.error is None]
    pairs = [(before, after) for before, after in both if before.verdict != after.verdict]
    return ReadingResult(
        paper=paper,
        name=reading.name,
        place=reading.place,
        sentence=reading.sentence,
        gained=tuple(_named(after) for _, after in pairs if after.verdict == REPRODUCED),
        lost=tuple(_named(before) for before, _ in pairs if before.verdict == REPRODUCED),
        changed=len(pairs),
        numbers=tuple(
            ReadNumber(
                number=_named(old),
                published=f"{old.published} {old.unit}".strip(),
                scored=old.text,
                scored_verdict=old.verdict,
                other=new.text,
                other_verdict=new.verdict,
            )
            for old, new in both
            if (old.text, old.verdict) != (new.text, new.verdict)
        ),
        claims=counted(other),
    )


def _named(row: ReproducedRow) -> str:
    parts = (row.figure, row.metric, row.design, row.workload, row.baseline and f"over {row.baseline}")
    return ", ".join(part for part in parts if part) + ("" if row.class_ in SCORING else f" ({row.class_})")


def banded(published: Sequence[Published], rows: Sequence[ReproducedRow]) -> dict[str, dict[str, int]]:
    """Counts the numbers that score by their verdict for several widths of the band.

    Args:
        published: The published numbers.
        rows: Ours beside them, in the same order.

    Returns:
        The counts by the width in percent.
    """
    names = {REPRODUCED: "reproduced", DIRECTION: "direction", DIFFERS: "differs", UNCERTAIN: "uncertain"}
    scored = [(of, row) for of, row in zip(published, rows, strict=True) if row.class_ in SCORING and row.ours]
    found = {}
    for within in sorted((WITHIN, *BANDS)):
        all_verdicts = [verdict_of(of, row.ours, row.interval, within) for of, row in scored]
        found[f"{100 * within:g}"] = {name: all_verdicts.count(verdict) for verdict, name in names.items()}
    return found


def counted(rows: Sequence[ReproducedRow]) -> dict[str, int]:
    """Counts rows: by verdict if they score, else by class; `not_comparable` before either."""
    keys = {NOT_COMPARABLE: "not_comparable", "direction holds": "direction"}
    names = [keys.get(name, name) for name in VERDICTS]
    found = dict.fromkeys(["total", "scored", *names, "null", "repeat", "arithmetic", "input"], 0)
    for row in rows:
        is_scored = row.class_ in SCORING and row.verdict != NOT_COMPARABLE
        by_verdict = row.class_ in SCORING or row.verdict == NOT_COMPARABLE
        found["total"] += 1
        found["scored"] += is_scored
        found[keys.get(row.verdict, row.verdict) if by_verdict else row.class_] += 1
    return found


class _Results:
    """The results of the runs of several grids. A run that several need is simulated once, for one study of all."""

    def __init__(self, grids: Sequence[Grid], chosen: Sequence[Chosen], run: Run) -> None:
        """Runs what the grids need."""
        under = [of.under(reading) for of in chosen for reading in of.paper.readings]
        read = [claim.selections for of in (*chosen, *under) for _, claim in of.claims()]
        read += [series.selections for of in chosen for figure in of.figures for series in figure.series]
        paths = paths_of(selection for selections in read for selection in selections.values())
        self._union = union_of(chosen[0].paper.name if len(chosen) == 1 else "papers", grids)
        self._seen: dict[int, dict[str, float | None]] = {}
        self._batches: dict[int, Deviations] = {}
        self._results: Sequence[PointResult] = ()

        def see(number: int, document: Mapping[str, Any]) -> None:
            self._seen[number] = {path: number_at(document, path) for path in paths}
            self._batches[number] = deviations(document, paths)

        if self._union.distinct:
            self._results = run(self._union, see).points

    @property
    def points(self) -> dict[str, ReproducedPoint]:
        """The runs by their key."""
        return {
            of.key: ReproducedPoint(of.key, of.state, of.seconds, of.command, of.digest, of.error)
            for of in self._results
        }

    def evidence(self, grid: Grid, counts: Counts) -> Evidence:
        """Returns what the runs of a grid give."""
        cells: Found = []
        failed, sources, batches = [], [], []
        for number, labels in zip(numbers_in(self._union, grid), grid.cells, strict=True):
            if number in self._seen:
                point = self._results[number]
                cells += [(cell, self._seen[number]) for cell in labels]
                sources += [(point.key, point.command)] * len(labels)
                batches += [self._batches[number]] * len(labels)
            else:
                failed += labels
        return Evidence(cells, failed, counts, sources, grid.repeated, batches)
