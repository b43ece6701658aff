"""Programs with several threads, and cache-block operations, compared with gem5's O3 model.

`mc KERNEL THREADS COUNT [SIZE]` prints the cycles between two barriers as its first thread sees them (`rdcycle`); the
machine has a core for each thread. Only these cycles are compared. A row that differs from gem5 by more than
`DIFFERENCE_PERCENT_MAX` belongs to an entry of `REASONS`, which README.md explains.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rich.table import Table

import durasim
from durasim.cli import render

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "gem5_mc.csv"
# The cycles of all rows here; the tests hold them to a run.
RECORDED = HERE / "durasim_mc.csv"
RECORDED_COLUMNS = ("machine", "args", "region_cycles")
ELF = "mc.rv64"
STARTUP = "none"
DIFFERENCE_PERCENT_MAX = 10
# gem5's machines: our file, and the differences from it.
MACHINES = {
    "A": ("gem5-a.toml", ()),
    "B": ("gem5-b.toml", ()),
    # Stores leave the store queue without waiting for their lines.
    "A-rvwmo": ("gem5-a.toml", ("core.pipelined_stores=true", "core.ownership_prefetch=true")),
}
# A with another core's caches responding 30 cycles later, the latency of a look-up of the last level.
SNOOP = "A-snoop30"
# As in gem5, a line that moves between cores takes no look-up of the last level. The kernels that move lines have no
# other data there.
DIRECT = ("llc.latency_cycles=1",)
# Reasons in README.md for rows that may differ: patterns of their machine and arguments; the first match applies.
REASONS: dict[str, tuple[str, ...]] = {
    "no queue": ("* flush-reread *", "A-rvwmo flush-batch *", "A-rvwmo clean-batch 4 *"),
    "cleans take the permission": (
        "A-rvwmo clean-alone *", "A-rvwmo clean-batch *", "* clean-fence *", "* clean-reread *", "* clean-pairs *",
        "* clean-other-each *",
    ),
    "cleans in order": (
        "* clean-alone *", "* clean-clean *", "* clean-batch *", "* flush-batch *", "[AB] clean-other *",
    ),
    "direct transfers": (
        "* false-sharing [24] *", "* amo-shared *", "* pingpong *", "* pingpong-relaxed *", "* barrier *", "* hand-*",
        "* shared-sum [24] * 524288", "* read-mostly *", "* spinlock [24] *", "A-rvwmo clean-other *",
    ),
    "loads by 16 bytes": ("* spinlock 1 *",),
    "LR and SC": ("* cas-shared *",),
    "one port": ("* private-sum 4 * 524288",),
    "open": ("* store-batch *", "* false-sharing 1 *", "* private-sum * 131072", "* shared-sum 1 * 131072"),
}  # fmt: skip
WORD_BYTES = 8
READ_MOSTLY_LINES = 64


@dataclass(frozen=True, slots=True)
class Reference:
    """Results of gem5 for one command line on one machine."""

    machine: str
    args: str
    cycles: int
    # Cycles on A-snoop30, if it ran there.
    cycles_snoop: int | None

    @property
    def kernel(self) -> str:
        """The first argument."""
        return self.args.split()[0]

    @property
    def threads(self) -> int:
        """Threads, and cores."""
        return int(self.args.split()[1])

    @property
    def operations(self) -> int:
        """Number of sequential operations: those of one thread, or of all threads if they alternate."""
        _, threads, count, *size = self.args.split()
        turns = int(count) * int(threads)
        size = int(size[0]) if size else 1
        if self.kernel in ("amo-shared", "cas-shared", "spinlock", "pingpong", "pingpong-relaxed", "hand-none"):
            return turns
        if self.kernel.startswith("hand-"):
            return turns * size
        if self.kernel in ("private-sum", "private-fill", "shared-sum"):
            return int(count) * size // WORD_BYTES
        if self.kernel.endswith("-batch") or self.kernel.startswith("clean-other"):
            return int(count) * size
        return int(count) * (READ_MOSTLY_LINES if self.kernel == "read-mostly" else 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One command line on durasim and on gem5."""

    gem5: Reference
    cycles: int
    # Cycles without a look-up of the last level for moved lines; only for kernels that move lines.
    cycles_direct: int | None = None

    @property
    def differences_percent(self) -> list[float]:
        """Excess cycles over gem5, and over gem5's variant with a latency of snoops, in percent."""
        there = [self.gem5.cycles] + ([self.gem5.cycles_snoop] if self.gem5.cycles_snoop else [])
        return [100 * (self.cycles / cycles - 1) for cycles in there]

    @property
    def difference_percent(self) -> float:
        """The smaller of the differences."""
        return min(self.differences_percent, key=abs)

    @property
    def difference_direct_percent(self) -> float | None:
        """Excess cycles over gem5 if lines also move directly here, in percent."""
        return 100 * (self.cycles_direct / self.gem5.cycles - 1) if self.cycles_direct else None

    @property
    def is_close(self) -> bool:
        """Whether it is close to gem5."""
        return abs(self.difference_percent) <= DIFFERENCE_PERCENT_MAX


def references(path: Path = REFERENCE, kernels: Sequence[str] = ()) -> list[Reference]:
    """Reads the reference: all rows except start-up, or those of some kernels. Rows of A-snoop30 are merged into A."""
    with path.open(newline="") as file:
        rows = {(row["machine"], row["args"]): int(row["region_cycles"]) for row in csv.DictReader(file)}
    found = [
        Reference(machine, args, cycles, rows.get((SNOOP, args)) if machine == "A" else None)
        for (machine, args), cycles in rows.items()
        if machine in MACHINES
    ]
    return [r for r in found if r.kernel != STARTUP and (not kernels or r.kernel in kernels)]


def measure(reference: Reference, settings: Sequence[str] = ()) -> Row:
    """Runs a command line on durasim."""
    moves_lines = reason(reference) == "direct transfers" and reference.threads > 1
    direct = _region_cycles(reference, [*settings, *DIRECT]) if moves_lines else None
    return Row(reference, _region_cycles(reference, settings), direct)


def _region_cycles(reference: Reference, settings: Sequence[str]) -> int:
    written = bytearray()
    file, of_machine = MACHINES[reference.machine]
    with contextlib.chdir(HERE):
        durasim.run(
            design="opt",
            machine=os.fspath(HERE / "machines" / file),
            elf=ELF,
            args=reference.args.split(),
            set=[f"cores={reference.threads}", *of_machine, *settings],
            guest_output=lambda _stream, data: written.extend(data),
        )
    return int(written)


def measure_all(rows: Sequence[Reference], settings: Sequence[str] = ()) -> list[Row]:
    """Runs all rows on all processors; returns the results in order."""
    with ProcessPoolExecutor() as pool, render.progress_bar() as bar:
        task = bar.add_task("running", total=len(rows))
        futures = [pool.submit(measure, row, settings) for row in rows]
        for future in futures:
            future.add_done_callback(lambda _: bar.advance(task))
        return [future.result() for future in futures]


def record(rows: Sequence[Row]) -> None:
    """Writes the cycles of all rows here."""
    with RECORDED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(RECORDED_COLUMNS)
        writer.writerows((row.gem5.machine, row.gem5.args, row.cycles) for row in rows)


def recorded() -> list[Row]:
    """Reads the recorded rows."""
    with RECORDED.open(newline="") as file:
        cycles = {(row["machine"], row["args"]): int(row["region_cycles"]) for row in csv.DictReader(file)}
    return [Row(reference, cycles[reference.machine, reference.args]) for reference in references()]


def table(rows: Sequence[Row]) -> Table:
    """Cycles of each operation."""
    shown = Table(title="cycles per operation, several cores and cache-block operations")
    names = ("machine", "kernel", "threads", "gem5", "A-snoop30", "durasim", "difference", "direct", "reason")
    for name in names:
        shown.add_column(name, justify="left" if name in ("machine", "kernel", "reason") else "right")
    for row in rows:
        g = row.gem5
        kernel, threads, *numbers = g.args.split()
        snoop = f"{g.cycles_snoop / g.operations:.1f}" if g.cycles_snoop else ""
        shown.add_row(
            g.machine, " ".join([kernel, *numbers]), threads, f"{g.cycles / g.operations:.1f}", snoop,
            f"{row.cycles / g.operations:.1f}", f"{row.difference_percent:+.1f} %",
            "" if row.difference_direct_percent is None else f"{row.difference_direct_percent:+.1f} %",
            "" if row.is_close else reason(g) or "?",
        )  # fmt: skip
    return shown


def summary(rows: Sequence[Row]) -> str:
    """Machine-readable summary: rows close to gem5, rows with a known reason to differ, rows without one."""
    close = sum(row.is_close for row in rows)
    unexplained = sum(not row.is_close and reason(row.gem5) is None for row in rows)
    explained = len(rows) - close - unexplained
    return f"multicore_rows={len(rows)} close={close} explained={explained} unexplained={unexplained}"


def reason(reference: Reference) -> str | None:
    """The reason in README.md for the difference of a row."""
    row = f"{reference.machine} {reference.args}"
    matches = (name for name, patterns in REASONS.items() if any(fnmatchcase(row, p) for p in patterns))
    return next(matches, None)
