"""Recorded results of papers, with which `durasim reproduce --fail-on-change` compares."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from durasim.documents.reproduction import ReproducedRow
from durasim.errors import host_io, refusal
from durasim.papers.paper_files import papers_folder
from durasim.papers.verdicts import Published

COLUMNS = (
    "figure", "metric", "design", "workload", "baseline", "published", "unit", "ours", "values", "class", "verdict",
    "reason", "command",
)  # fmt: skip
_KEY = ("figure", "metric", "design", "workload", "baseline", "published")


def recorded_file(paper: str) -> Path:
    """Returns the file of the recorded results of a paper."""
    return papers_folder() / paper / "recorded.csv"


def recorded_rows(paper: str) -> list[dict[str, str]]:
    """Reads the recorded results of a paper.

    Raises:
        HostIoError: There are none.
    """
    file = recorded_file(paper)
    try:
        with file.open(encoding="utf-8", newline="") as text:
            return list(csv.DictReader(text))
    except OSError as error:
        raise host_io(file, error) from None


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
    values = " ".join(f"{value:.6g}" for value in row.ours)
    return of | {"values": values, "verdict": row.verdict, "reason": row.note, "command": row.command}


def changes(paper: str, rows: Sequence[ReproducedRow]) -> list[str]:
    """Returns a sentence for each number whose verdict differs from the recorded one.

    Raises:
        ConfigError: A number has no recorded result.
        HostIoError: The paper has no recorded results.
    """
    known = {place_of(row): row for row in recorded_rows(paper)}
    found = []
    for row in rows:
        place = tuple(str(getattr(row, name)) for name in _KEY)
        named = ", ".join(part for part in place[:4] if part)
        if place not in known:
            raise refusal("fail_on_change", f"{named} of {paper} has no recorded result")
        before = known[place]
        if before["verdict"] != row.verdict:
            found.append(f"{named}: {row.verdict} ({row.text}), recorded {before['verdict']} ({before['ours']})")
    return found
