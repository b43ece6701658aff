"""Recorded verdicts under other readings of papers, which pages of results show beside those of the scored runs.

`python -m tools.published NAME --readings` writes `experiments/NAME/recorded-readings.csv` with the results of a paper.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from durasim.documents.reproduction import ReadingResult
from durasim.papers.csv_table import read_table
from durasim.papers.recorded import recorded_file

COUNTS = {"reproduced": "reproduced", "direction": "direction holds", "differs": "differs", "uncertain": "uncertain"}
"""Counts of a reproduction by the words of their verdicts."""
COLUMNS = ("reading", "place", "sentence", *COUNTS, "changed", "gained", "lost")
_BETWEEN = "; "


def file_of(paper: str) -> Path:
    """Returns the file of the recorded readings of a paper."""
    return recorded_file(paper).with_name("recorded-readings.csv")


def text_of(readings: Sequence[ReadingResult]) -> str:
    """Returns the text of a file of recorded readings."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for of in readings:
        counts = (of.claims[name] for name in COUNTS)
        named = (_BETWEEN.join(numbers) for numbers in (of.gained, of.lost))
        writer.writerow((of.name, of.place, of.sentence, *counts, of.changed, *named))
    return text.getvalue()


def rows_of(paper: str) -> list[dict[str, str]]:
    """Returns the recorded readings of a paper; none if it has no file of them."""
    file = file_of(paper)
    return read_table(file, COLUMNS, "recorded") if file.exists() else []


def table(rows: Sequence[Mapping[str, str]], scored: Mapping[str, int]) -> str:
    """Returns readings as a part of a page: counts of verdicts, then the numbers that each gains and loses.

    Args:
        rows: The recorded readings.
        scored: The counts of the scored runs by the words of their verdicts.
    """
    if not rows:
        return "No reading is recorded."
    lines = [f"| reading | {' | '.join(COUNTS.values())} | gained | lost |", f"| --- |{' ---: |' * (len(COUNTS) + 2)}"]
    lines.append(f"| scored | {' | '.join(str(scored[verdict]) for verdict in COUNTS.values())} | | |")
    for row in rows:
        numbers = [row[name] for name in COUNTS] + [str(len(_numbers(row[name]))) for name in ("gained", "lost")]
        lines.append(f"| `{row['reading']}` | {' | '.join(numbers)} |")
    return "\n".join([*lines, "", *_changes(rows)])


def _changes(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for row in rows:
        named = [f"{words} {row[name]}." for name, words in (("gained", "It gains"), ("lost", "It loses")) if row[name]]
        changes = " ".join(named) or "It gains and loses nothing."
        yield f'- `{row["reading"]}` ({row["place"]}: "{row["sentence"]}"). {changes}'


def _numbers(text: str) -> list[str]:
    return text.split(_BETWEEN) if text else []
