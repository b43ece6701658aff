"""The recorded sensitivity experiment, `experiments/sensitivity.csv`: one build for the whole table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from durasim.documents.sensitivity import Sensitivity, SensitivityRow
from durasim.errors import refusal
from durasim.papers.csv_table import read_table
from durasim.papers.paper_files import papers_folder
from durasim.papers.sensitivity_file import places
from durasim.papers.sensitivity_study import planned, with_ratios

COLUMNS = (
    "build", "key", "paper", "workload", "setting", "design", "throughput_ops_per_us", "pmem_write_bytes", "error",
    "command",
)  # fmt: skip


def sensitivity_table() -> Path:
    """Returns the file of the recorded experiment."""
    return papers_folder() / "sensitivity.csv"


def text_of(document: Sensitivity) -> str:
    """Returns the text of a file of recorded results."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in document.rows:
        throughput = "" if row.throughput_ops_per_us is None else f"{row.throughput_ops_per_us:.6g}"
        written = "" if row.pmem_write_bytes is None else str(row.pmem_write_bytes)
        writer.writerow((
            document.build, row.key, row.paper, row.workload, row.setting, row.design, throughput, written,
            row.error or "", row.command,
        ))  # fmt: skip
    return text.getvalue()


def recorded_rows(file: Path) -> list[SensitivityRow]:
    """Reads recorded results; none if there is no file.

    Raises:
        ConfigError: The file is damaged, or its rows are of several builds.
        HostIoError: It cannot be read.
    """
    if not file.exists():
        return []
    rows = read_table(file, COLUMNS, "sensitivity")
    builds = dict.fromkeys(row["build"] for row in rows)
    if len(builds) > 1:
        problem = f"has rows of the builds {', '.join(builds)}: measure all with one, by `durasim sensitivity`"
        raise refusal("sensitivity", f"{file} {problem}")
    try:
        return with_ratios([_row(row) for row in rows])
    except ValueError as error:
        raise refusal("sensitivity", f"{file} has a cell that is no number: {error}") from None


def _row(row: dict[str, str]) -> SensitivityRow:
    throughput, written = row["throughput_ops_per_us"], row["pmem_write_bytes"]
    return SensitivityRow(
        row["key"], row["paper"], row["workload"], row["setting"], row["design"],
        float(throughput) if throughput else None, int(written) if written else None, None, None,
        row["error"] or None, row["command"],
    )  # fmt: skip


@cache
def recorded() -> Sequence[SensitivityRow]:
    """Returns the recorded results of the package; none if nothing is recorded."""
    return tuple(recorded_rows(sensitivity_table()))


def complete_rows(paper: str) -> list[SensitivityRow]:
    """Returns the recorded results on the machine of a paper; none if a run of the experiment is missing there.

    A range over some of the assumptions would look as if the others changed nothing.
    """
    rows = [row for row in recorded() if row.paper == paper]
    if not rows:
        return []
    needed = {(run.key, run.workload, run.setting, run.design) for run in planned(places(paper))}
    return rows if needed <= {(row.key, row.workload, row.setting, row.design) for row in rows} else []
