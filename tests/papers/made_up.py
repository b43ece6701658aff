"""Made-up documents of reproductions, to draw what no paper has."""

import math
import random

from durasim.documents.reproduction import (
    SCHEMA,
    Chance,
    ReproducedPoint,
    ReproducedRow,
    ReproducedSeries,
    Reproduction,
    SeriesMark,
    SeriesPoint,
)
from durasim.papers.cells import Cells
from durasim.papers.evaluation import Evidence, row_of, series_row
from durasim.papers.paper_files import paper_named
from durasim.papers.reproduction import Chosen, banded, counted
from durasim.papers.selections import paths_of

KEY = "0" * 32


def row(design="Ours", baseline="Other", ours=(2.0,), published="3", **changed):
    """A published number beside ours."""
    of = {
        "paper": "made-up", "figure": "Fig1", "metric": "bytes_ratio", "design": design, "workload": "all",
        "baseline": baseline, "published": published, "unit": "x", "relation": "factor", "ours": ours,
        "interval": (), "interval_from": "", "sensitivity_range": (), "robust": None,
        "readings": {},
        "text": "2.0", "class_": "measured", "verdict": "differs", "null_verdict": "differs", "note": "", "error": None,
        "command": "durasim run", "runs": (),
    }  # fmt: skip
    return ReproducedRow(**(of | changed))


def series(form="bars", points=(), **changed):
    """Our numbers over an axis; points are (x, by, ours) or (x, by, ours, low, high)."""
    of = {
        "paper": "made-up", "figure": "figure-1", "title": "throughput", "form": form, "unit": "x",
        "x": "workload" if form == "bars" else "threads", "by": "design", "scale": "linear", "x_scale": "linear",
        "reference": None, "marks": (), "peak": (), "error": None,
        "points": tuple(SeriesPoint(x, by, ours, tuple(ends)) for x, by, ours, *ends in points),
    }  # fmt: skip
    return ReproducedSeries(**(of | changed))


def marks(*places):
    """Published numbers: (x, from, to)."""
    return tuple(SeriesMark(*place) for place in places)


def evidence_of(chosen, numbers):
    """Evidence with made-up numbers for all runs of some figures.

    Args:
        chosen: The figures.
        numbers: Returns the numbers of a cell by path, from the cell and the paths.
    """
    read = [claim.selections for _, claim in chosen.claims()]
    read += [each.selections for figure in chosen.figures for each in figure.series]
    paths = paths_of(selection for selections in read for selection in selections.values())
    cells = [(cell, numbers(cell, paths)) for labels in chosen.grid("quick").cells for cell in labels]
    return Evidence(cells, [], lambda _: Cells.of(4.0), [(KEY, "durasim run --design opt")] * len(cells))


def reproduction(names):
    """The figures of these papers, and a document with drawn numbers for all of their runs."""
    papers = [paper_named(name) for name in names]
    chosen = [Chosen(paper, paper.figures) for paper in papers]
    return chosen, reproduction_of(chosen)


def reproduction_of(chosen, readings=()):
    """A document of figures with drawn numbers."""
    rows, over_axes = [], []
    for of in chosen:
        evidence = evidence_of(of, _drawn)
        rows += [row_of(of.paper.name, figure, claim, evidence) for figure, claim in of.claims()]
        drawn = [(figure, each) for figure in of.figures for each in figure.series]
        over_axes += [series_row(of.paper.name, figure, each, evidence) for figure, each in drawn]
    return Reproduction(
        schema=SCHEMA, durasim_version="0.0", build="0" * 16, papers=tuple(of.paper.name for of in chosen),
        scale="quick", seeds=1, wall_s=1.0, claims=counted(rows),
        bands=banded([claim.published for of in chosen for _, claim in of.claims()], rows),
        chance=Chance(0, 0, 0, 0.0, (0, 0), 0.0), rows=tuple(rows), series=tuple(over_axes),
        points=(ReproducedPoint(KEY, "simulated", 1.0, "durasim run --design opt", "0" * 32, None),),
        readings=tuple(readings),
    )  # fmt: skip


def _drawn(cell, paths):
    """Numbers that grow with the threads and differ by design, more in bytes than in other quantities."""
    of_design = random.Random(str(cell.values.get("design"))).uniform(-1, 1)  # noqa: S311 - reproducible numbers
    of_cell = random.Random(str((cell.runs, sorted((key, str(value)) for key, value in cell.values.items()))))  # noqa: S311
    threads = float(cell.values.get("threads") or 1) ** 0.7
    return {
        path: threads * math.exp(of_design * (4 if "bytes" in path else 1) + of_cell.gauss(0, 0.1)) for path in paths
    }
