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
from durasim.errors import unknown_name
from durasim.papers.cells import Cells
from durasim.papers.chance import PERMUTATIONS, Permutations, chance_of
from durasim.papers.evaluation import Evidence, row_of, series_row, verdict_of
from durasim.papers.grids import Cell, Grid, grid_of
from durasim.papers.paper_files import Claim, Figure, Paper, Reading
from durasim.papers.selections import Found, groups_of, is_read, number_at, paths_of
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
from durasim.store.database import Store
from durasim.studies.executor import Executor
from durasim.studies.study_run import Progress, StudyRun

Counts = Callable[[Mapping[str, Any]], Cells]


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
                claims=tuple(claim.under.get(reading.name, claim) for claim in figure.claims),
                series=(),
            )
            for figure in self.figures
        )
        return Chosen(self.paper, figures)

    def grids(self, scale: str, *, with_readings: bool) -> list[Grid]:
        """Returns the runs that the published numbers need, and if asked for those of each other reading."""
        others = [self.under(reading) for reading in self.paper.readings if with_readings]
        return [of.grid(scale) for of in (self, *others)]

    def grid(self, scale: str) -> Grid:
        """Returns the runs that the published numbers need.

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

        return grid_of(self.paper.name, list(needed.values()), scale, reads)


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


def _with_claims_of(place: str, figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Returns the figures that have published numbers of another place, with these alone and not drawn."""
    claims = {
        of.file: tuple(c for c in of.claims if c.published.figure.casefold() == place.casefold()) for of in figures
    }
    return tuple(replace(of, claims=claims[of.file], plot={}, series=()) for of in figures if claims[of.file])


def reproduce(
    chosen: Sequence[Chosen], scale: str, *, store: Store | None, executor: Callable[[], Executor], counts: Counts,
    progress: Progress, yes: bool = False, with_readings: bool = False, permutations: int = PERMUTATIONS,
) -> Reproduction:  # fmt: skip
    """Runs what the figures need and compares their published numbers with ours.

    Args:
        chosen: The figures of each paper.
        scale: `quick` or `paper`.
        store: The store of results; None keeps nothing.
        executor: Starts the workers.
        counts: Returns numbers that no run gives.
        progress: Called with the points done and the total of a paper.
        yes: Permits more than 10,000 runs.
        with_readings: Whether to run the other readings of the papers as well.
        permutations: Number of permutations of design labels that show what chance gives.

    Raises:
        ConfigError: A run is refused before any is simulated.
        HostIoError: The store cannot be written.
        ToolchainError: A guest program cannot be built.
    """
    began, rows, points = time.monotonic(), list[ReproducedRow](), dict[str, ReproducedPoint]()
    readings, by_chance, series = list[ReadingResult](), list[Permutations](), list[ReproducedSeries]()

    def measured(of: Chosen, grid: Grid, *, is_scored: bool) -> list[ReproducedRow]:
        evidence, run = _evidence(of, grid, store, executor, counts, progress, yes)
        if is_scored:
            by_chance.append(Permutations([claim for _, claim in of.claims()], evidence, permutations, seed=1))
            drawn = [(figure, each) for figure in of.figures for each in figure.series]
            series.extend(series_row(of.paper.name, figure, each, evidence) for figure, each in drawn)
        for point in run:
            # A run of several papers or readings is counted where it was simulated.
            points.setdefault(point.key, point)
        return [row_of(of.paper.name, figure, claim, evidence) for figure, claim in of.claims()]

    # What is refused is refused before anything is simulated.
    grids = [(of, of.grids(scale, with_readings=with_readings)) for of in chosen]
    for of, (plain, *changed) in grids:
        found = measured(of, plain, is_scored=True)
        rows += found
        for reading, grid in zip(of.paper.readings, changed, strict=False):
            other = measured(of.under(reading), grid, is_scored=False)
            readings.append(_compared(of.paper.name, reading, found, other))
    return Reproduction(
        schema=SCHEMA,
        durasim_version=_core.__version__,
        build=_core.__build__,
        papers=tuple(of.paper.name for of in chosen),
        scale=scale,
        wall_s=round(time.monotonic() - began, 3),
        claims=counted(rows),
        bands=banded([claim.published for of in chosen for _, claim in of.claims()], rows),
        chance=chance_of(by_chance),
        rows=tuple(rows),
        series=tuple(series),
        points=tuple(points.values()),
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


def _evidence(
    of: Chosen, grid: Grid, store: Store | None, executor: Callable[[], Executor], counts: Counts,
    progress: Progress, yes: bool,
) -> tuple[Evidence, list[ReproducedPoint]]:  # fmt: skip
    read = [claim.selections for _, claim in of.claims()]
    read += [series.selections for figure in of.figures for series in figure.series]
    paths = paths_of(selection for selections in read for selection in selections.values())
    seen: dict[int, dict[str, float | None]] = {}

    def see(number: int, document: Mapping[str, Any]) -> None:
        seen[number] = {path: number_at(document, path) for path in paths}

    if not grid.distinct:
        return Evidence([], [], counts, []), []
    result = StudyRun(grid, store, progress, yes=yes, see=see).run(executor)
    cells: Found = []
    failed, sources = [], []
    for number, (point, labels) in enumerate(zip(result.points, grid.cells, strict=True)):
        if number in seen:
            cells += [(cell, seen[number]) for cell in labels]
            sources += [(point.key, point.command)] * len(labels)
        else:
            failed += labels
    points = [
        ReproducedPoint(point.key, point.state, point.seconds, point.command, point.digest, point.error)
        for point in result.points
    ]
    return Evidence(cells, failed, counts, sources), points
