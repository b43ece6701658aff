"""Recorded numbers over axes of runs, which the charts of the pages of results draw.

`python -m tools.published NAME` writes `experiments/NAME/recorded-series.csv` with the results of the paper.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from durasim.documents.reproduction import ReproducedSeries, SeriesPoint
from durasim.papers.csv_table import read_table
from durasim.papers.evaluation import series_of_points
from durasim.papers.paper_files import Figure, paper_named
from durasim.papers.recorded import recorded_file

COLUMNS = ("figure", "title", "x", "by", "ours", "interval")


def file_of(paper: str) -> Path:
    """Returns the file of the recorded series of a paper."""
    return recorded_file(paper).with_name("recorded-series.csv")


def text_of(series: Sequence[ReproducedSeries]) -> str:
    """Returns the text of a file of recorded series."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for of in series:
        for point in of.points:
            numbers = (f"{point.ours:.6g}", " ".join(f"{end:.6g}" for end in point.interval))
            writer.writerow((of.figure, of.title, point.x, point.by, *numbers))
    return text.getvalue()


def recorded(paper: str) -> Iterator[tuple[Figure, ReproducedSeries]]:
    """Yields the recorded series of a paper, each with its figure; none if the paper has no file of them."""
    file = file_of(paper)
    rows = read_table(file, COLUMNS, "recorded") if file.exists() else []
    points: dict[tuple[str, str], list[SeriesPoint]] = {}
    for row in rows:
        interval = tuple(map(float, row["interval"].split()))
        point = SeriesPoint(row["x"], row["by"], float(row["ours"]), interval)
        points.setdefault((row["figure"], row["title"]), []).append(point)
    for figure in paper_named(paper).figures if rows else ():
        for series in figure.series:
            found = points.get((figure.file.removesuffix(".toml"), series.drawn["title"]), [])
            yield figure, series_of_points(paper, figure, series, tuple(found))
