"""Gives the charts of the pages of results: recorded numbers beside published ones, drawn as `durasim reproduce` does.

Nothing is run. Charts are those of the tables `[plot]` of the files of figures, and those over axes of runs
(`[[series]]`) of papers whose numbers over axes are recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from durasim.documents.reproduction import ReproducedRow, ReproducedSeries
from durasim.papers import charts
from durasim.papers.paper_files import Claim, Figure, paper_named, paper_names
from durasim.papers.recorded import place_of, place_of_published, recorded_rows
from durasim.papers.rows import published_row
from tools import recorded_series

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "figures"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a page.

    Attributes:
        name: Name of its file.
        title: What it shows.
        drawn: The chart and its caption.
    """

    name: str
    title: str
    drawn: charts.Drawn


def part(name: str) -> str:
    """Returns the charts of a paper as a part of its page, each with its caption."""
    texts = (f"![{of.title}]({FOLDER}/{of.name})\n\n**{of.title}.** {of.drawn.caption}" for of in _drawn(name))
    return "\n\n".join(texts)


def files() -> dict[Path, str]:
    """Returns the text of each chart by its file."""
    folder = ROOT / "docs" / "results" / FOLDER
    return {folder / of.name: f"{of.drawn.svg}\n" for name in paper_names() for of in _drawn(name)}


@cache
def _drawn(name: str) -> tuple[Chart, ...]:
    known = {place_of(row): row for row in recorded_rows(name)}
    over_axes = defaultdict(list)
    for figure, series in recorded_series.recorded(name):
        over_axes[figure.file].append(series)
    return tuple(
        chart for figure in paper_named(name).figures for chart in _charts(name, figure, known, over_axes[figure.file])
    )


def _charts(
    name: str,
    figure: Figure,
    known: Mapping[tuple[str, ...], Mapping[str, str]],
    over_axes: Sequence[ReproducedSeries],
) -> Iterator[Chart]:
    """Yields the charts of a figure: published numbers beside ours, then our numbers over axes of runs."""
    file, title = f"{name}-{figure.file.removesuffix('.toml')}", f"{figure.place}: {figure.title}"
    rows = [_row(name, claim, known[place_of_published(claim.published)]) for claim in figure.claims]
    drawn = charts.plot(figure.plot, rows) if figure.plot else None
    if drawn is not None:
        yield Chart(f"{file}.svg", title, drawn)
    for place, series in enumerate(over_axes, 1):
        if (of := charts.series_chart(series)) is not None:
            yield Chart(f"{file}-series-{place}.svg", f"{figure.place}: {series.title}", of)


def _row(name: str, claim: Claim, recorded: Mapping[str, str]) -> ReproducedRow:
    """Returns a recorded result as a row of a reproduction, without its runs."""
    ours, interval = (tuple(map(float, recorded[column].split())) for column in ("values", "interval"))
    return replace(
        published_row(name, claim.published),
        ours=ours,
        interval=interval,
        text=recorded["ours"],
        class_=recorded["class"],
        verdict=recorded["verdict"],
        note=recorded["reason"],
        command=recorded["command"],
    )
