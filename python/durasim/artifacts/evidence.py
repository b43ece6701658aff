"""Evidence of an artifact: stored points of a study or of figures of papers, and the numbers that follow from them."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from durasim.artifacts.packed import shown
from durasim.documents.escaping import csv_text
from durasim.documents.reproduction import Reproduction
from durasim.documents.summaries import (
    POINT_METRICS,
    axis_value,
    enclosed,
    has_several_values,
    number,
    point_rows,
    shown_axes,
)
from durasim.documents.sweep import SweepResult
from durasim.errors import refusal
from durasim.papers import recorded
from durasim.papers.counts import count_of
from durasim.papers.reproduction import Chosen, reproduce
from durasim.store.database import Store
from durasim.studies.pareto import COLUMN, frame_of
from durasim.studies.prepared import Prepared
from durasim.studies.study import Study
from durasim.studies.study_run import StudyRun


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers that the points give.

    Attributes:
        title: Its title.
        headers: Headers with units.
        rows: The rows.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point with its stored document.

    Attributes:
        prepared: The point, its request and its key.
        document: The document of its simulation.
    """

    prepared: Prepared
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The points of a study or of figures, and the numbers that follow from them.

    Attributes:
        name: Name of the study or of the papers.
        title: Words that describe it.
        metrics: Names of the numbers, with units.
        points: The points, each once.
        tables: The numbers.
        csv: All numbers as a CSV file.
    """

    name: str
    title: str
    metrics: Sequence[str]
    points: Sequence[StoredPoint]
    tables: Sequence[Table]
    csv: str


def of_study(study: Study, store: Store, command: str) -> Evidence:
    """Returns the evidence of a study: its points with their main metrics, and bisected values.

    Args:
        study: The study.
        store: The store of results.
        command: The command that simulates what is not stored.

    Raises:
        ConfigError: A point is not in the store.
        ToolchainError: A guest program cannot be built.
    """
    points, result = _stored(study, store, command)
    # Values of axes may be paths of machine files and sources.
    named = [
        dataclasses.replace(point, values={key: shown(value) for key, value in point.values.items()})
        for point in result.points
    ]
    plain, metrics = dataclasses.replace(result, points=tuple(named)), POINT_METRICS[study.kind]
    axes, frame = shown_axes(plain), frame_of(study, plain)
    headers, rows = [*axes, *metrics.values()], [list(row[:-1]) for row in point_rows(plain, axes, metrics)]
    if COLUMN in frame.columns:
        headers.append("on frontier")
        for row, mark in zip(rows, frame[COLUMN], strict=True):
            row.append("yes" if mark else "no")
    tables = [Table("Points of the study", headers, rows)]
    if plain.refined:
        tables.append(_refined(plain))
    return Evidence(study.name, f"the study {study.name}", list(metrics.values()), points, tables, csv_text(frame))


def _refined(result: SweepResult) -> Table:
    first = result.refined[0]
    others = [key for key in first.values if key in ("design", "workload") or has_several_values(result, key)]
    headers = [*others, "below", "at or above", "metric below", "metric at or above", "threshold"]
    rows = [
        [*(axis_value(of.values[key]) for key in others), *enclosed(of), number(of.threshold)] for of in result.refined
    ]
    return Table(f"Values of {first.axis} that enclose the threshold", headers, rows)


def of_papers(chosen: Sequence[Chosen], scale: str, store: Store, command: str) -> Evidence:
    """Returns the evidence of figures of papers: their runs, and the published numbers beside durasim's.

    Args:
        chosen: The figures of each paper.
        scale: `quick` or `paper`.
        store: The store of results.
        command: The command that simulates what is not stored.

    Raises:
        ConfigError: A run is not in the store.
        ToolchainError: A guest program cannot be built.
    """
    points: dict[str, StoredPoint] = {}
    for of in chosen:
        grid = of.grid(scale)
        if grid.distinct:
            for point in _stored(grid, store, command)[0]:
                points.setdefault(point.prepared.key, point)
    if not points:
        raise refusal("figure", "no run is needed for these numbers: there is nothing to pack")
    document = reproduce(
        chosen, scale, counts=count_of, permutations=0,
        run=lambda study, see: StudyRun(study, store, lambda *_: None, yes=True, see=see).run(
            _refusing(lambda: "runs are", command)
        ),
    )  # fmt: skip
    titles = " and ".join(f'"{of.paper.title}"' for of in chosen)
    return Evidence(
        name="-".join(document.papers) if len(chosen) == 1 else "papers",
        title=f"published numbers of {titles}",
        metrics=list(dict.fromkeys(f"{row.metric} ({row.unit})" if row.unit else row.metric for row in document.rows)),
        points=list(points.values()),
        tables=[_numbers(of, document) for of in chosen],
        csv=recorded.text_of([recorded.as_recorded(row) for row in document.rows]),
    )


def _numbers(of: Chosen, document: Reproduction) -> Table:
    headers = ("figure", "metric", "design", "baseline", "workload", "published", "durasim", "verdict")
    rows = [
        (
            row.figure, row.metric, row.design, row.baseline, row.workload, f"{row.published} {row.unit}".strip(),
            row.text, row.verdict,
        )
        for row in document.rows
        if row.paper == of.paper.name
    ]  # fmt: skip
    return Table(f"{of.paper.citation}: published numbers beside durasim's", headers, rows)


def _stored(study: Study, store: Store, command: str) -> tuple[list[StoredPoint], SweepResult]:
    """Returns the points of a study with their documents, and its result; refuses it if one is not stored."""
    seen: dict[int, Mapping[str, Any]] = {}
    run = StudyRun(study, store, lambda *_: None, yes=True, see=seen.__setitem__)

    def missing() -> str:
        return f"{run.unanswered} of {len(run.prepared)} points are" if run.unanswered else "populations are"

    result = run.run(_refusing(missing, command))
    return [StoredPoint(run.prepared[at], seen[at]) for at in range(len(run.prepared))], result


def _refusing(missing: Callable[[], str], command: str) -> Callable[[], NoReturn]:
    """Returns a start of workers that refuses: an artifact has stored results alone."""

    def refuse() -> NoReturn:
        raise refusal("store", f"{missing()} not in the store: run `{command}` first")

    return refuse


def command_line(*words: str | None) -> str:
    """Returns a command line without the words that are None."""
    return shlex.join(word for word in words if word is not None)
