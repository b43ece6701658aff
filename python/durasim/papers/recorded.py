"""Recorded results of papers, with which `durasim reproduce --fail-on-change` compares."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from durasim.documents.reproduction import ReproducedRow
from durasim.papers.csv_table import read_table
from durasim.papers.paper_files import papers_folder
from durasim.papers.verdicts import Published

COLUMNS = (
    "figure", "metric", "design", "workload", "baseline", "published", "unit", "ours", "values", "interval", "class",
    "verdict", "reason", "command",
)  # fmt: skip
_KEY = ("figure", "metric", "design", "workload", "baseline", "published")


def recorded_file(paper: str) -> Path:
    """Returns the file of the recorded results of a paper."""
    return papers_folder() / paper / "recorded.csv"


def recorded_rows(paper: str) -> list[dict[str, str]]:
    """Reads the recorded results of a paper.

    Raises:
        ConfigError: The file is damaged.
        HostIoError: There is none.
    """
    return read_table(recorded_file(paper), COLUMNS, "recorded")


def text_of(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the text of a file of recorded results."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def place_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the place of a recorded result: figure, metric, design, workload, baseline and published value."""
    return tuple(row[name] for name in _KEY)


def place_of_published(published: Published) -> tuple[str, ...]:
    """Returns the place of a published number; see `place_of`."""
    return (*published.key, published.baseline, published.value)


def as_recorded(row: ReproducedRow) -> dict[str, str]:
    """Returns a row as it is recorded."""
    of = {name: getattr(row, name) for name in _KEY} | {"unit": row.unit, "ours": row.text, "class": row.class_}
    values, interval = (" ".join(f"{value:.6g}" for value in numbers) for numbers in (row.ours, row.interval))
    return of | {
        "values": values,
        "interval": interval,
        "verdict": row.verdict,
        "reason": row.note,
        "command": row.command,
    }


def text_of_rows(rows: Sequence[ReproducedRow]) -> str:
    """Returns the file of results that are these."""
    return text_of([as_recorded(row) for row in rows])


def changes(known: Sequence[Mapping[str, str]], rows: Sequence[ReproducedRow]) -> list[str]:
    """Returns a sentence for each number whose verdict or class differs from the recorded one, or that is not recorded.

    Args:
        known: The recorded results of the paper.
        rows: The numbers of the paper.
    """
    places = {place_of(row): row for row in known}
    found = []
    for row in rows:
        place = tuple(str(getattr(row, name)) for name in _KEY)
        named = ", ".join(part for part in place[:4] if part)
        before = places.get(place)
        if before is None:
            found.append(f"{named}: {row.verdict} ({row.text}), not recorded")
        elif (before["verdict"], before["class"]) != (row.verdict, row.class_):
            recorded = f"{before['verdict']} ({before['ours']}), {before['class']}"
            found.append(f"{named}: {row.verdict} ({row.text}), {row.class_}; recorded {recorded}")
    return found


def changes_of(known: Mapping[str, Sequence[Mapping[str, str]]], rows: Sequence[ReproducedRow]) -> list[str]:
    """Returns the changes of several papers.

    Args:
        known: The recorded results by the name of their paper.
        rows: The numbers of all papers.
    """
    return [change for name, of in known.items() for change in changes(of, [row for row in rows if row.paper == name])]
