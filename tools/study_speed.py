"""Measures a study of many points whose simulations take no time: what the study itself and its store cost.

    .venv/bin/python -m tools.study_speed --points 100000 --folder build

A synthetic executor answers each task at once with the result of one real run and a digest of its own. The study runs
three times: without a store, with a new store in the folder, and again with that store, which then has all points. The
difference of the first two times is the cost of the store.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.table import Table

from durasim import output
from durasim.cli import render
from durasim.cli.shell import Program
from durasim.documents.sweep import SweepResult
from durasim.store.database import Store
from durasim.studies.executor import Answer
from durasim.studies.study import study_of
from durasim.studies.study_run import StudyRun
from durasim.studies.tasks import simulate

IN_PROGRESS = 256
"""Tasks at a time, as of a cluster with as many cores."""
_MIB = 2**20


class Synthetic:
    """An executor that answers a task with the result of the first one, under another digest."""

    capacity = IN_PROGRESS

    def __init__(self) -> None:
        self.began_s: float | None = None
        """When the first task was submitted; None before that."""
        self._waiting: list[int] = []
        self._parts: tuple[str, str] | None = None

    def submit(self, number: int, task: str) -> None:
        """Notes a task. The first one is simulated."""
        if self._parts is None:
            answer = simulate(task)
            before, _, after = answer.partition(json.loads(answer)["document"]["digest"])
            self._parts = before, after
            self.began_s = time.monotonic()
        self._waiting.append(number)

    def answers(self) -> list[Answer]:
        """Returns the answers to all tasks."""
        assert self._parts is not None  # noqa: S101 - a task was submitted
        before, after = self._parts
        found = [Answer(number, f"{before}{number:032x}{after}") for number in self._waiting]
        self._waiting.clear()
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@dataclass(frozen=True)
class Timed:
    """A run of the study.

    Attributes:
        what: Which one.
        preparing_s: Seconds until its first task, in which all points are made, checked and hashed; for a study whose
            points are all stored, 0.
        running_s: The other seconds.
        cpu_s: Seconds of the processor of the whole.
        memory_bytes: Largest memory of this process up to its end.
    """

    what: str
    preparing_s: float
    running_s: float
    cpu_s: float
    memory_bytes: int


def timed(what: str, points: int, store: Store | None) -> tuple[Timed, SweepResult]:
    """Runs a study with this many points and returns its times and result."""
    axes = {"seed": {"from": 1, "to": points, "step": 1}}
    study = study_of(
        {
            "name": "synthetic", "designs": ["hercules"], "workloads": ["array-swap"], "machine": "tiny", "ops": 4,
            "args": {"populate": 8}, "axes": axes,
        }
    )  # fmt: skip
    executor = Synthetic()
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    result = StudyRun(study, store, lambda *_: None, yes=True).run(lambda: executor)
    ended_s, cpu_s = time.monotonic(), time.process_time() - began_cpu_s
    first_s = began_s if executor.began_s is None else executor.began_s
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Timed(what, first_s - began_s, ended_s - first_s, cpu_s, memory), result


def measure(points: int, folder: Path, say: Callable[[str], None]) -> tuple[list[Timed], int]:
    """Runs the study three times and returns the times, and the size of the store in bytes.

    Raises:
        RuntimeError: A run simulated or reused another number of points than it has to.
    """
    with tempfile.TemporaryDirectory(prefix="durasim-", dir=folder) as place:
        rows = []
        for what, has_store, simulated in (
            ("without a store", False, points), ("into a new store", True, points), ("all from the store", True, 0),
        ):  # fmt: skip
            if not has_store:
                row, result = timed(what, points, None)
            else:
                with Store(Path(place) / "store.sqlite") as store:
                    row, result = timed(what, points, store)
            if (result.simulated, result.reused) != (simulated, points - simulated):
                raise RuntimeError(f"{what}: {result.simulated} simulated, {result.reused} reused")
            rows.append(row)
            say(f"{what}: {row}")
        with Store(Path(place) / "store.sqlite") as store:
            return rows, store.size_bytes()


def report(rows: list[Timed], points: int, size_bytes: int) -> tuple[Table, str]:
    """Returns the table of the runs, and the sentence about the limit."""
    table = Table(title=f"{points:,} points, {IN_PROGRESS} at a time")
    for header in ("study", "preparing s", "running s", "CPU s", "points per s", "peak MiB"):
        table.add_column(header, justify="left" if header == "study" else "right")
    for row in rows:
        speed = points / (row.preparing_s + row.running_s)
        memory = f"{row.memory_bytes / _MIB:,.0f}"
        table.add_row(
            row.what, f"{row.preparing_s:.1f}", f"{row.running_s:.1f}", f"{row.cpu_s:.1f}", f"{speed:,.0f}", memory
        )
    plain, stored, _ = rows
    store_ms = 1000 * (stored.running_s - plain.running_s) / points
    whole_ms = 1000 * stored.running_s / points
    sentence = (
        f"A point costs the submitting process {whole_ms:.2f} ms while the study runs, {store_ms:.2f} ms of it in the "
        f"store, which has {size_bytes / points:,.0f} bytes for it: {1000 / whole_ms:,.0f} workers with points of a "
        "second are as many as it can keep busy."
    )
    return table, sentence


def main(
    points: Annotated[int, typer.Option("--points", metavar="N", min=2, help="Points of the study.")] = 100_000,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="DIR", help="Where the store is made (default: a temporary folder)."),
    ] = None,
) -> None:
    """Measure how many points per second a study and its store process."""
    place = Path(folder or tempfile.gettempdir())
    rows, size_bytes = measure(points, place, lambda what: print(what, file=sys.stderr))
    table, sentence = report(rows, points, size_bytes)
    render.show(table)
    output.write_stdout(f"{sentence}\n")


app = typer.Typer(cls=Program, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None)
app.command()(main)

if __name__ == "__main__":
    sys.exit(app(prog_name="python -m tools.study_speed"))
