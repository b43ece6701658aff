"""The validation of `make validate`: programs on two machines, compared with gem5's O3 model.

A row of the reference is a machine and a program with its arguments. The machine files in `machines/` describe gem5's
machines; the programs are the files that gem5 ran. Rows of `none` (only start-up) are excluded. Programs with several
threads and cache-block operations are in `multicore.py`.
"""

from __future__ import annotations

import contextlib
import csv
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import multicore
import typer
from rich.table import Table

import durasim
from durasim import output
from durasim.cli import render
from durasim.cli.shell import Program
from durasim.errors import refusal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REFERENCE = HERE / "gem5.csv"
REPORT = ROOT / "target" / "validate.csv"
# The cycles of all programs here, which TRUST.md compares with gem5's. The tests hold them to a run.
RECORDED = HERE / "durasim.csv"
RECORDED_COLUMNS = ("machine", "args", "cycles", "ipc")
STARTUP = "none"
MACHINES = ("A", "B")
# Kernels with accurate misses below the L1D: all of these are bound by memory.
MEMORY_BOUND = ("chase-4m", "chase-32m", "stream", "stores", "gups", "matmul")

app = typer.Typer(cls=Program, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class Reference:
    """Results of gem5 for one program on one machine."""

    machine: str
    elf: str
    args: str
    instructions: int
    cycles: int
    ipc: float
    l1d_misses: int
    l2_misses: int
    l3_misses: int
    mispredicts: int

    @property
    def kernel(self) -> str:
        """The first argument."""
        return self.args.split()[0]


@dataclass(frozen=True, slots=True)
class Row:
    """One program on one machine, on durasim and on gem5."""

    gem5: Reference
    instructions: int
    cycles: int
    l1d_misses: int
    l2_misses: int
    llc_misses: int
    mispredictions: int

    @property
    def ipc(self) -> float:
        """Instructions per cycle of the whole program."""
        return self.instructions / self.cycles

    @property
    def ipc_error_percent(self) -> float:
        """Excess of the IPC over gem5's, in percent."""
        return 100 * (self.ipc / self.gem5.ipc - 1)


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Ratio of the cycles of a program on the first machine to those on the second."""

    args: str
    here: float
    gem5: float

    @property
    def error_percent(self) -> float:
        """Excess over gem5's, in percent. The clocks of the machines are equal in both."""
        return 100 * (self.here / self.gem5 - 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """The verdict over all rows."""

    ipc_error_mean_percent: float
    ipc_error_max_percent: float
    speedup_error_max_percent: float
    programs: int

    def line(self) -> str:
        """The last line of `make validate`."""
        return (
            f"ipc_error_mean_percent={self.ipc_error_mean_percent:.2f} "
            f"ipc_error_max_percent={self.ipc_error_max_percent:.2f} "
            f"speedup_error_max_percent={self.speedup_error_max_percent:.2f} programs={self.programs}"
        )


def references(path: Path = REFERENCE, kernels: Sequence[str] = ()) -> list[Reference]:
    """Reads the reference: all rows except start-up, or those of some kernels."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [
        Reference(
            machine=row["machine"], elf=row["elf"], args=row["args"], ipc=float(row["ipc"]),
            **{name: int(row[name]) for name in (
                "instructions", "cycles", "l1d_misses", "l2_misses", "l3_misses", "mispredicts"
            )},
        )
        for row in rows
    ]  # fmt: skip
    return [r for r in found if r.kernel != STARTUP and (not kernels or r.kernel in kernels)]


def measure(reference: Reference, folder: Path = HERE, settings: Sequence[str] = ()) -> Row:
    """Runs a program of the reference on durasim. The program sees its path, which is short as under gem5."""
    with contextlib.chdir(folder):
        result = durasim.run(
            design="opt",
            machine=os.fspath(HERE / "machines" / f"gem5-{reference.machine.lower()}.toml"),
            elf=reference.elf,
            args=reference.args.split(),
            set=list(settings),
            guest_output=output.discard,
        )
    stats = result.stats
    return Row(
        gem5=reference, instructions=result.program.instructions, cycles=result.program.cycles,
        l1d_misses=int(stats["l1d.misses"].value), l2_misses=int(stats["l2.misses"].value),
        llc_misses=int(stats["llc.misses"].value), mispredictions=int(stats["core.mispredictions"].value),
    )  # fmt: skip


def measure_all(rows: Sequence[Reference], folder: Path = HERE, settings: Sequence[str] = ()) -> list[Row]:
    """Runs all rows on all processors, the longest first; returns the results in order."""
    order = sorted(range(len(rows)), key=lambda i: -rows[i].instructions)
    with ProcessPoolExecutor() as pool, render.progress_bar() as bar:
        task = bar.add_task("running", total=len(rows))
        futures = {i: pool.submit(measure, rows[i], folder, settings) for i in order}
        for future in futures.values():
            future.add_done_callback(lambda _: bar.advance(task))
        return [futures[i].result() for i in range(len(rows))]


def ipc_errors() -> dict[str, dict[str, float]]:
    """By how many percent the recorded IPC is larger than gem5's, by program and machine."""
    there = {(row.machine, row.args): row.ipc for row in references()}
    found: dict[str, dict[str, float]] = {}
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            of_gem5 = there[row["machine"], row["args"]]
            found.setdefault(row["args"], {})[row["machine"]] = 100 * (float(row["ipc"]) / of_gem5 - 1)
    return found


def record(rows: Sequence[Row]) -> None:
    """Writes what the programs take here."""
    with RECORDED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(RECORDED_COLUMNS)
        writer.writerows((row.gem5.machine, row.gem5.args, row.cycles, f"{row.ipc:.6f}") for row in rows)


def speed_ups(rows: Sequence[Row]) -> list[SpeedUp]:
    """The programs that ran on both machines."""
    first, second = ({r.gem5.args: r for r in rows if r.gem5.machine == machine} for machine in MACHINES)
    both = [args for args in first if args in second]
    return [SpeedUp(a, first[a].cycles / second[a].cycles, first[a].gem5.cycles / second[a].gem5.cycles) for a in both]


def summary(rows: Sequence[Row]) -> Summary:
    """Condenses the rows."""
    errors = [abs(row.ipc_error_percent) for row in rows]
    ups = [abs(up.error_percent) for up in speed_ups(rows)]
    return Summary(statistics.mean(errors), max(errors), max(ups, default=0.0), len({row.gem5.args for row in rows}))


@app.callback(invoke_without_command=True)
def validate(
    reference: Annotated[Path, typer.Option("--reference", help="Results of gem5.")] = REFERENCE,
    kernel: Annotated[list[str] | None, typer.Option("--kernel", help="Only this kernel; may be repeated.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="Override of both machines.")] = None,
    is_recorded: Annotated[
        bool, typer.Option("--record", help="Write the results to tests/timing/durasim.csv and durasim_mc.csv.")
    ] = False,
) -> None:
    """Run the programs of the reference on gem5's machines and print both results."""
    if is_recorded and (kernel or settings or reference != REFERENCE):
        raise refusal("--record", "records all programs of gem5.csv as they are; leave the other options out")
    rows = references(reference, kernel or ())
    shared = multicore.references(kernels=kernel or ())
    if not rows and not shared:
        raise refusal("--kernel", f"no row of {reference} or {multicore.REFERENCE} is of {', '.join(kernel or ())}")
    if shared:
        results = multicore.measure_all(shared, settings or ())
        render.show(multicore.table(results))
        output.write_stdout(multicore.summary(results) + "\n")
        if is_recorded:
            multicore.record(results)
    if rows:
        of_one_core = _validate_one_core(rows, reference.parent, settings or ())
        if is_recorded:
            record(of_one_core)


def _validate_one_core(rows: Sequence[Reference], folder: Path, settings: Sequence[str]) -> list[Row]:
    results = measure_all(rows, folder, settings)
    render.show(_table(results))
    render.show(_speed_up_table(speed_ups(results)))
    REPORT.parent.mkdir(exist_ok=True)
    with REPORT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("machine", "args", "instructions", "cycles", "ipc", "gem5_ipc"))
        writer.writerows(
            (r.gem5.machine, r.gem5.args, r.instructions, r.cycles, f"{r.ipc:.6f}", r.gem5.ipc) for r in results
        )
    output.write_stdout(summary(results).line() + "\n")
    return results


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title="durasim / gem5 (error), one core, no cache-block operations")
    table.add_column("machine")
    table.add_column("kernel")
    for name in ("instructions", "IPC", "L1D misses", "L2 misses", "LLC misses", "mispredictions"):
        table.add_column(name, justify="right")
    for row in rows:
        g = row.gem5
        table.add_row(
            g.machine, g.args, f"{row.instructions:,} ({row.instructions - g.instructions:+})",
            f"{row.ipc:.3f} / {g.ipc:.3f} ({row.ipc_error_percent:+.1f} %)",
            _pair(row.l1d_misses, g.l1d_misses), _pair(row.l2_misses, g.l2_misses),
            _pair(row.llc_misses, g.l3_misses), _pair(row.mispredictions, g.mispredicts),
        )  # fmt: skip
    return table


def _pair(here: int, gem5: int) -> str:
    return f"{here:,} / {gem5:,} ({100 * (here / gem5 - 1):+.1f} %)"


def _speed_up_table(ups: Sequence[SpeedUp]) -> Table:
    table = Table(title="cycles on A / cycles on B")
    for name in ("kernel", "durasim", "gem5", "error"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    for up in ups:
        table.add_row(up.args, f"{up.here:.3f}", f"{up.gem5:.3f}", f"{up.error_percent:+.1f} %")
    return table


if __name__ == "__main__":
    sys.exit(app(prog_name="validation"))
