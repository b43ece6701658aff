"""Speed, memory and crash trials of every design for `make bench`; the slowest one sets the pace of a comparison."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table

from durasim import api, output
from durasim.errors import refusal
from durasim.runs.scenario import Scenario, design_variants, workload_info, workloads_of
from tools import growth

# Each design runs the first three of these that it has a runtime for.
WORKLOADS = ("btree", "array-swap", "queue", "pinspect-arraylist", "pinspect-hashmap", "pinspect-btree")
WORKLOADS_PER_DESIGN = 3
OPS = 6_000
# Operations of two runs whose peak memory is compared.
MEMORY_OPS = (10_000, 100_000)
CRASH_POINTS = 1_000
STARTS = {"version": ["--version"], "run": ["run", "--workload", "array-swap", "--ops", "10", "--arg", "populate=10"]}


@dataclass(frozen=True, slots=True)
class DesignCost:
    """Costs of a design.

    Attributes:
        mips: For each workload the largest of the measured speeds, in million instructions per second.
        bytes_per_op: Growth of peak host memory with operations.
        trials_per_s_per_core: Crash trials per second and core of the host, on the machine `tiny`.
    """

    mips: dict[str, float]
    bytes_per_op: float
    trials_per_s_per_core: float


def measured(repetitions: int) -> Iterator[tuple[str, DesignCost]]:
    """Measures each design in turn, one thread, with the defaults of its workloads."""
    for design in design_variants():
        offered = {info.name for info in workloads_of(design)}
        workloads = [name for name in WORKLOADS if name in offered][:WORKLOADS_PER_DESIGN]
        mips = {workload: max(_mips(design, workload) for _ in range(repetitions)) for workload in workloads}
        yield design, DesignCost(mips, _bytes_per_op(design, workloads[1]), _trials_per_s(design, workloads[0]))


def start_ms(repetitions: int) -> dict[str, float]:
    """Returns the median time of commands that do next to nothing, in milliseconds of the host."""
    return {name: statistics.median(_command_ms(words) for _ in range(repetitions)) for name, words in STARTS.items()}


def design_table(costs: dict[str, DesignCost]) -> Table:
    """Returns a table with a row per design."""
    table = Table(title=f"every design: MIPS (best), {OPS:,} operations, one thread")
    table.add_column("design")
    for name in ("workloads", "MIPS", "bytes of the host\nper operation", "crash trials per\nsecond and core"):
        table.add_column(name, justify="left" if name == "workloads" else "right")
    for design, cost in costs.items():
        speeds = " / ".join(f"{mips:.1f}" for mips in cost.mips.values())
        trials = f"{cost.trials_per_s_per_core:,.0f}"
        table.add_row(design, " / ".join(cost.mips), speeds, f"{cost.bytes_per_op:,.0f}", trials)
    return table


def _mips(design: str, workload: str) -> float:
    result = api.run_scenario(Scenario(design=design, workload=workload, ops=OPS), output.discard)
    if result.guest_exit_code != 0:
        raise refusal("bench", f"{workload} under {design} exited with {result.guest_exit_code}")
    return result.host.mips


def _bytes_per_op(design: str, workload: str) -> float:
    peaks = [growth.peak_rss_bytes(["--design", design, "--workload", workload, "--ops", str(n)]) for n in MEMORY_OPS]
    return (peaks[1] - peaks[0]) / (MEMORY_OPS[1] - MEMORY_OPS[0])


def _trials_per_s(design: str, workload: str) -> float:
    small = dict(workload_info(workload).small)
    ops = int(small.pop("ops"))
    result = api.crash(
        design=design, workload=workload, machine="tiny", ops=ops, workload_args=small, points=CRASH_POINTS
    )
    return result.trials_per_s_per_core


def _command_ms(words: list[str]) -> float:
    command = [sys.executable, "-m", "durasim", *words]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise refusal("bench", f"{' '.join(command)} exits with {done.returncode}: {done.stderr.strip()[-500:]}")
    return 1e3 * (time.perf_counter() - begin)
