"""The report of a reproduction: one page a paper and one for all, each complete in itself, without a network."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from durasim.documents.reproduction import ReproducedRow, ReproducedSeries, Reproduction
from durasim.errors import host_io
from durasim.output import replace_file
from durasim.papers import charts
from durasim.papers.paper_files import Figure, Paper
from durasim.papers.reproduction import Chosen, counted


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuses a folder that cannot be written, before anything is simulated.

    Raises:
        HostIoError: It cannot be created or written.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise host_io(place, error) from None


def write_report(folder: str | os.PathLike[str], chosen: Sequence[Chosen], document: Reproduction) -> list[Path]:
    """Writes `PAPER.html` for each paper, `index.html` if there are several, and the document as `reproduction.json`.

    Raises:
        HostIoError: A file cannot be written.
    """
    place, written = Path(folder), []
    parts = [(of, [row for row in document.rows if row.paper == of.paper.name]) for of in chosen]
    pages = {f"{of.paper.name}.html": [(of, rows)] for of, rows in parts}
    if len(parts) > 1:
        pages["index.html"] = parts
    texts = {name: _page(shown, document) for name, shown in pages.items()}
    texts["reproduction.json"] = document.to_json()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            replace_file(place / name, text.encode())
            written.append(place / name)
    except OSError as error:
        raise host_io(place, error) from None
    return written


def _page(parts: Sequence[tuple[Chosen, list[ReproducedRow]]], document: Reproduction) -> str:
    import jinja2  # noqa: PLC0415 - keeps the start-up of other commands short

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("durasim", "papers"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    title = parts[0][0].paper.title if len(parts) == 1 else "Published numbers beside durasim's"
    commands = {point.key: point.command for point in document.points}
    papers = [_paper(of.paper, of.figures, rows, document.series, commands) for of, rows in parts]
    names = {of.paper.name for of, _ in parts}
    used = {key for _, rows in parts for row in rows for key in row.runs}
    return environment.get_template("report.html").render(
        title=title,
        document=document,
        papers=papers,
        runs=len(used),
        failed=[point for point in document.points if point.error is not None],
        readings=[reading for reading in document.readings if reading.paper in names],
    )


def _paper(
    paper: Paper, figures: Sequence[Figure], rows: Sequence[ReproducedRow], series: Sequence[ReproducedSeries],
    commands: Mapping[str, str],
) -> dict[str, Any]:  # fmt: skip
    shown, start = [], 0
    for figure in figures:
        own = rows[start : start + len(figure.claims)]
        start += len(figure.claims)
        over_axes = [of for of in series if (of.paper, f"{of.figure}.toml") == (paper.name, figure.file)]
        drawn = [charts.plot(figure.plot, own)] if figure.plot else []
        drawn += [charts.series_chart(of) for of in over_axes]
        keys = dict.fromkeys(key for row in own for key in row.runs)
        shown.append({
            "place": figure.place, "title": figure.title, "rows": own, "commands": [commands[key] for key in keys],
            "charts": [_on_page(chart) for chart in drawn if chart is not None],
            "not_drawn": [of.error for of in over_axes if of.error is not None],
        })  # fmt: skip
    return {
        "name": paper.name, "title": paper.title, "citation": paper.citation, "claims": counted(rows), "figures": shown
    }  # fmt: skip


def _on_page(chart: charts.Drawn) -> dict[str, Any]:
    import markupsafe  # noqa: PLC0415 - with jinja2

    # The text of the SVG is vl-convert's, which escapes the names in it.
    return {"svg": markupsafe.Markup(chart.svg), "caption": chart.caption}  # noqa: S704 - see above
