"""Gives the charts of the pages of results: recorded numbers beside published ones, drawn as `durasim reproduce` does.

Nothing is run. Charts are those of the tables `[plot]` of the files of figures; those over axes of runs (`[[series]]`)
need the runs, and are in the pages of `durasim reproduce NAME --report DIR` alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from durasim.documents.reproduction import ReproducedRow
from durasim.papers import charts
from durasim.papers.paper_files import Claim, Figure, paper_named, paper_names
from durasim.papers.recorded import place_of, place_of_published, recorded_rows
from durasim.papers.rows import published_row

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "figures"


def part(name: str) -> str:
    """Returns the charts of a paper as a part of its page, each with its caption."""
    texts = []
    for figure, drawn in _drawn(name):
        title = f"{figure.place}: {figure.title}"
        texts.append(f"![{title}]({FOLDER}/{file_of(name, figure)})\n\n**{title}.** {drawn.caption}")
    return "\n\n".join(texts)


def files() -> dict[Path, str]:
    """Returns the text of each chart by its file."""
    folder = ROOT / "docs" / "results" / FOLDER
    return {
        folder / file_of(name, figure): f"{drawn.svg}\n" for name in paper_names() for figure, drawn in _drawn(name)
    }


def file_of(name: str, figure: Figure) -> str:
    """Returns the name of the file of a chart."""
    return f"{name}-{figure.file.removesuffix('.toml')}.svg"


@cache
def _drawn(name: str) -> tuple[tuple[Figure, charts.Drawn], ...]:
    return tuple(_charts(name))


def _charts(name: str) -> Iterator[tuple[Figure, charts.Drawn]]:
    known = {place_of(row): row for row in recorded_rows(name)}
    for figure in paper_named(name).figures:
        rows = [_row(name, claim, known[place_of_published(claim.published)]) for claim in figure.claims]
        drawn = charts.plot(figure.plot, rows) if figure.plot else None
        if drawn is not None:
            yield figure, drawn


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
