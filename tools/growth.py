"""Host cost of a simulation, and its growth with operations, cores and memory.

Each measurement is a separate process, `durasim run --json -`, so that none inherits the memory of another.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.table import Table

from durasim.documents.results import RunResult
from durasim.errors import refusal

OPERATIONS = (100_000, 1_000_000, 10_000_000)
CORES = (1, 2, 4, 8, 16)
# Operations per thread in measurements over cores.
OPERATIONS_PER_CORE = 2_000
# The shortest operation: a swap of two small elements.
SHORT_OPERATIONS = ("--workload", "array-swap", "--arg", "element-bytes=64", "--arg", "populate=1000")
# Elements of one page each, to touch many pages.
PAGES = (4_096, 16_384)
PAGE_BYTES = 4096
# Operations of two runs; the difference of their host instructions excludes start-up.
COUNTED_OPERATIONS = (200, 600)
_COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")


@dataclass(frozen=True, slots=True)
class Cost:
    """Host cost of one run."""

    what: str
    instructions: int
    seconds: float

    @property
    def ns_per_instruction(self) -> float:
        """Host time per simulated instruction, over all cores."""
        return 1e9 * self.seconds / self.instructions

    @property
    def mips(self) -> float:
        """Million simulated instructions per second of the host, over all cores."""
        return self.instructions / self.seconds / 1e6


@dataclass(frozen=True, slots=True)
class MemoryCost:
    """Peak resident memory of two runs, with little and with much simulated memory."""

    simulated_bytes: tuple[int, int]
    peak_rss_bytes: tuple[int, int]

    @property
    def host_bytes_per_simulated_byte(self) -> float:
        """The slope between the two."""
        (little, much), (small, large) = self.simulated_bytes, self.peak_rss_bytes
        return (large - small) / (much - little)


@dataclass(frozen=True, slots=True)
class HostInstructions:
    """Host instructions per simulated instruction: unlike time, not disturbed by other programs."""

    workload: str
    design: str
    per_instruction: float


def with_operations(ops_max: int) -> list[Cost]:
    """Runs one program with increasing operations, up to `ops_max`."""
    sizes = [ops for ops in OPERATIONS if ops <= ops_max]
    return [_cost(f"{ops:,} operations", [*SHORT_OPERATIONS, "--ops", str(ops)]) for ops in sizes]


def with_cores() -> list[Cost]:
    """Runs with an increasing number of cores, one thread on each."""
    return [
        _cost(
            f"{cores} {'core' if cores == 1 else 'cores'}",
            f"--workload array-swap --set cores={cores} --threads {cores}".split()
            + f"--ops {cores * OPERATIONS_PER_CORE} --arg populate={cores * 1000}".split(),
        )
        for cores in CORES
    ]


def with_memory() -> MemoryCost:
    """Runs a program with an increasing number of touched pages."""
    arguments = ["--workload", "array-swap", "--ops", "100", "--arg", f"element-bytes={PAGE_BYTES}"]
    peaks = [_run([*arguments, "--arg", f"populate={pages}"]).host.peak_rss_bytes for pages in PAGES]
    little, much = (pages * PAGE_BYTES for pages in PAGES)
    return MemoryCost((little, much), (peaks[0], peaks[1]))


def peak_rss_bytes(arguments: list[str]) -> int:
    """Returns the peak resident memory of a run with these arguments."""
    return _run(arguments).host.peak_rss_bytes


def host_instructions(workloads: Sequence[str], designs: Sequence[str]) -> list[HostInstructions]:
    """Counts under valgrind; returns nothing if valgrind is not installed."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return []
    count = [valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    found = []
    for workload in workloads:
        for design in designs:
            runs = []
            for ops in COUNTED_OPERATIONS:
                command = _command(
                    ["--workload", workload, "--design", design, "--ops", str(ops), "--arg", "populate=200"]
                )
                done = _finish([*count, *command])
                counted = _COUNTED.search(done.stderr)
                if counted is None:
                    raise refusal("bench", "valgrind counted no instructions")
                simulated = RunResult.from_dict(json.loads(done.stdout)).program.instructions
                runs.append((int(counted[1].replace(",", "")), simulated))
            (host, simulated), (more_host, more_simulated) = runs
            ratio = (more_host - host) / (more_simulated - simulated)
            found.append(HostInstructions(workload, design, ratio))
    return found


def growth_table(title: str, costs: Sequence[Cost]) -> Table:
    """Returns a table that shows whether the time per instruction stays constant."""
    table = Table(title=title)
    for name in ("", "instructions", "seconds", "ns per\ninstruction", "times the\nrow above"):
        table.add_column(name, justify="right" if name else "left")
    ratios = ["", *(f"{b.ns_per_instruction / a.ns_per_instruction:.2f}" for a, b in pairwise(costs))]
    for cost, ratio in zip(costs, ratios, strict=True):
        table.add_row(
            cost.what, f"{cost.instructions:,}", f"{cost.seconds:.2f}", f"{cost.ns_per_instruction:.1f}", ratio
        )
    return table


def _cost(what: str, arguments: list[str]) -> Cost:
    result = _run(arguments)
    return Cost(what, result.program.instructions, result.host.seconds)


def _run(arguments: list[str]) -> RunResult:
    return RunResult.from_dict(json.loads(_finish(_command(arguments)).stdout))


def _command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "durasim", "run", *arguments, "--json", "-"]


def _finish(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise refusal("bench", f"{' '.join(command)} exits with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done
