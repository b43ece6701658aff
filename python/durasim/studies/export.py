"""Export of stored results as tables: Parquet, CSV or JSON lines, with the units of the columns in a side file."""

from __future__ import annotations

import dataclasses
import io
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durasim import output
from durasim.documents.causes import first_cause
from durasim.documents.escaping import csv_text
from durasim.documents.metrics import crash_metrics, run_metrics, unit_of
from durasim.documents.results import CrashResult, RunResult
from durasim.errors import host_io, refusal
from durasim.store.database import Entry, Store

if TYPE_CHECKING:
    import polars

FORMATS = (".parquet", ".csv", ".jsonl")
_OF_RESULT = ("domain", "seed", "threads", "ops")


def check_name(path: str) -> None:
    """Refuses a file whose name has none of the known endings.

    Raises:
        ConfigError: The ending is another.
    """
    if Path(path).suffix not in FORMATS:
        raise refusal("file", f"'{path}' ends with none of {', '.join(FORMATS)}")


def export_frame(store: Store, entries: Sequence[Entry]) -> polars.DataFrame:
    """Returns a row for each result: the entry, seed, threads, parameters that were set, arguments, metrics.

    Parameters and arguments have the names of the axes of a study.

    Raises:
        HostIoError: A result is damaged.
    """
    import polars  # noqa: PLC0415 - polars takes a while to load

    rows = [_row(store, entry) for entry in entries]
    # Columns that only some rows have come before the metrics, as in a study.
    names = dict.fromkeys(name for part in range(2) for row in rows for name in row[part])
    flat = [row[0] | row[1] for row in rows]
    return polars.DataFrame([{name: row.get(name) for name in names} for row in flat], infer_schema_length=None)


def _row(store: Store, entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    document = store.get(entry.key) or {}
    described = dataclasses.asdict(entry)
    if "error" in document:
        return described | {"error": document["error"]}, {}
    described |= {name: document[name] for name in _OF_RESULT}
    described |= dict(map(_parameter, document["provenance"]["set"]))
    described |= {f"arg.{name}": value for name, value in document["provenance"]["workload_args"].items()}
    if entry.kind == "run":
        return described, run_metrics(RunResult.from_dict(document))
    failures = [failure | {"command": ""} for failure in document["failures"]]
    metrics = crash_metrics(CrashResult.from_dict({"shrunk": None, **document, "failures": failures}))
    return described, metrics | {"first_cause": first_cause(document["causes"])}


def _parameter(setting: str) -> tuple[str, Any]:
    """Returns name and value of a parameter set as `path.to.key=value`."""
    name, _, text = setting.partition("=")
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        # A text without quotes.
        return name, text


def write_frame(frame: polars.DataFrame, path: str) -> str:
    """Writes a table and the units of its columns, each atomically, and returns the path of the side file.

    Raises:
        HostIoError: A file cannot be written.
    """
    data = io.BytesIO()
    suffix = Path(path).suffix
    if suffix == ".parquet":
        frame.write_parquet(data)
    elif suffix == ".csv":
        data.write(csv_text(frame).encode())
    else:
        frame.write_ndjson(data)
    units: Mapping[str, str] = {name: unit for name in frame.columns if (unit := unit_of(name))}
    side = f"{path}.units.json"
    try:
        output.replace_file(Path(path), data.getvalue())
        output.replace_file(Path(side), (json.dumps(units, indent=2) + "\n").encode())
    except OSError as error:
        raise host_io(path, error) from None
    return side
