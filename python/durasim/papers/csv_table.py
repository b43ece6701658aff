"""Reads a recorded table: a CSV file with known columns."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from durasim.errors import host_io, refusal


def read_table(file: Path, columns: Sequence[str], field: str) -> list[dict[str, str]]:
    """Returns the rows of a file; `field` begins the sentence of a refusal.

    Raises:
        ConfigError: The file is no CSV file, or has other columns.
        HostIoError: It cannot be read.
    """
    try:
        with file.open(encoding="utf-8", newline="") as text:
            reader = csv.DictReader(text)
            rows = list(reader)
    except OSError as error:
        raise host_io(file, error) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise refusal(field, f"{file} is no CSV file: {error}") from None
    if tuple(reader.fieldnames or ()) != tuple(columns) or any(None in row.values() for row in rows):
        raise refusal(field, f"{file} does not have the columns {', '.join(columns)}")
    return rows
