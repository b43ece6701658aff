"""The benchmark of `make bench`: simulation speed next to other programs, and host cost of a simulation.

The costs are instructions and memory of the host, the growth of time with operations and cores, the time of forks,
and speed, memory and crash trials of every design. The last line of the output is JSON with the speeds.

The other programs are an emulator and another simulator. All programs alternate, repetition by repetition, so that a
busy moment of the computer does not affect only one of them; the table shows the median. Speed is simulated
instructions per second of wall time. The start-up of the emulator is measured separately and subtracted. rvsim runs
its default machine, a 4-wide out-of-order core, on bare metal, with the same kernel compiled for it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import durasim
from durasim import _core, api, output
from durasim.cli import options, render
from durasim.cli.shell import Program
from durasim.documents.results import RunResult
from durasim.errors import host_io, refusal
from durasim.programs import toolchain
from durasim.runs.scenario import DEFAULT_MACHINE, Scenario, machine_rows
from tools import bench_designs, growth

WORKLOADS = ("btree", "array-swap")
DESIGNS = ("opt", "hercules")
# Speed by the permitted skew between cores.
THREADS = 4
SKEW_CYCLES = (10, 100, 1000)
# Items inserted before a fast-forward ends: about 200 million instructions.
FUNCTIONAL_POPULATE = {"btree": 100_000, "array-swap": 500_000}
KERNEL = "bare-kernel"
# rvsim needs some seconds for this many; durasim and the emulator repeat the measurement often enough.
KERNEL_INSERTS = 10_000
_QEMU_NAMES = ("qemu-riscv64", "qemu-riscv64-static")
_EMULATOR = "qemu-riscv64"
_OTHER = "rvsim"

# Forks of a machine with a thread on each core: items inserted before, instructions between two forks, and the goal.
FORKS = (("tiny", 200, 1_000, 50.0), (DEFAULT_MACHINE, 8_000, 20_000, 5_000.0))
FORKED_DESIGN = "hercules"
FORK_COUNT = 60
# Kinds of a contender's speed.
DETAILED, SEVERAL_CORES, FUNCTIONAL = "detailed", "several cores", "functional"

app = typer.Typer(cls=Program, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None)


@dataclass(slots=True)
class Contender:
    """One program under one simulator: `measure` runs it once and returns million instructions per second."""

    program: str
    simulator: str
    measure: Callable[[], float]
    mips: list[float] = field(default_factory=list)
    design: str = ""
    # The kind of its speed, if it is that of a design without skew.
    kind: str | None = None

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.mips)


@dataclass(frozen=True, slots=True)
class Forks:
    """Copy-on-write forks of one machine. The first fork marks all large structures as shared."""

    machine: str
    cores: int
    llc_lines: int
    microseconds: list[float]
    goal_microseconds: float

    @property
    def median(self) -> float:
        """The median of all forks."""
        return statistics.median(self.microseconds)


@app.callback(invoke_without_command=True)
def bench(
    repetitions: Annotated[int, typer.Option("--repetitions", min=1, help="Repetitions of every program.")] = 3,
    ops: Annotated[int, typer.Option("--ops", min=1, help="Operations of the workloads.")] = 20_000,
    populate: Annotated[int, typer.Option("--populate", min=1, help="Items inserted before them.")] = 20_000,
    growth_ops: Annotated[
        int, typer.Option("--growth-ops", min=growth.OPERATIONS[0], help="Largest run of the series of operations.")
    ] = growth.OPERATIONS[-1],
    json: options.JsonFile = None,
) -> None:
    """Measure simulated MIPS next to qemu-riscv64 and rvsim, if installed."""
    if json is not None:
        output.check_writable(json)
    with tempfile.TemporaryDirectory() as folder:
        contenders = _contenders(Path(folder), ops, populate)
        with render.progress_bar() as bar:
            task = bar.add_task("measuring", total=repetitions * len(contenders))
            for _ in range(repetitions):
                for contender in contenders:
                    contender.mips.append(contender.measure())
                    bar.advance(task)
            forks = [_forks(*parameters) for parameters in FORKS]
    costs = dict(bench_designs.measured(repetitions))
    start_ms = bench_designs.start_ms(repetitions)
    operations, cores, memory = growth.with_operations(growth_ops), growth.with_cores(), growth.with_memory()
    counted = growth.host_instructions(WORKLOADS, DESIGNS)
    document = _document(contenders, forks, repetitions, ops, populate)
    document["designs"] = {design: asdict(cost) for design, cost in costs.items()}
    document["start_ms"] = start_ms
    document["growth"] = {
        "operations": [asdict(cost) for cost in operations], "cores": [asdict(cost) for cost in cores],
        "memory": asdict(memory), "host_instructions": [asdict(count) for count in counted],
    }  # fmt: skip
    if json is not None:
        output.write_json(json, document)
    if json != output.STANDARD_OUTPUT:
        render.show(_table(contenders))
        render.show(_forks_table(forks))
        render.show(growth.growth_table("array-swap by operations, opt, one core", operations))
        render.show(growth.growth_table("array-swap by cores, opt, a thread on each", cores))
        render.show(_costs_table(memory, counted))
        render.show(bench_designs.design_table(costs))
        output.write_stdout(dumps(_line(contenders, costs, cores, start_ms)) + "\n")


def _forks(machine: str, populate: int, between: int, goal_microseconds: float) -> Forks:
    cores = machine_rows()[machine]["cores"]
    # Populates functionally, which also fills the caches.
    scenario = Scenario(
        design=FORKED_DESIGN, workload="array-swap", machine=machine, ops=1_000 * cores, threads=cores, fast_forward=0,
        workload_args=(("populate", str(populate)), ("element-bytes", "4096")),
    )  # fmt: skip
    microseconds, llc_lines = _core.time_forks(dumps(scenario.request()), 0, FORK_COUNT, between)
    return Forks(machine, cores, llc_lines, microseconds, goal_microseconds)


def _forks_table(forks: list[Forks]) -> Table:
    table = Table(title=f"forks of a machine with {FORKED_DESIGN}, microseconds")
    table.add_column("machine")
    for name in ("cores", "lines in\nthe LLC", "first", "median", "largest", "goal"):
        table.add_column(name, justify="right")
    for fork in forks:
        times = (fork.microseconds[0], fork.median, max(fork.microseconds), fork.goal_microseconds)
        table.add_row(fork.machine, str(fork.cores), f"{fork.llc_lines:,}", *(f"{time:,.0f}" for time in times))
    return table


def _contenders(folder: Path, ops: int, populate: int) -> list[Contender]:
    qemu = next(filter(None, map(shutil.which, _QEMU_NAMES)), None)
    contenders = []
    for workload in WORKLOADS:
        arguments = (("populate", str(populate)),)
        last: dict[str, RunResult] = {}
        for design in DESIGNS:
            scenario = Scenario(design=design, workload=workload, ops=ops, workload_args=arguments)
            simulate = _simulate(scenario, last)
            contenders.append(Contender(workload, design, simulate, design=design, kind=DETAILED))
        if qemu is not None:
            pool = folder / f"{workload}.pool"
            scenario = Scenario(workload=workload, ops=ops, workload_args=(*arguments, ("pool-path", str(pool))))
            elf = os.fspath(toolchain.build(workload, scenario.backend))
            command = [qemu, elf, *scenario.guest_command("run", ops)]
            emulate = _emulate(command, [qemu, elf, "--help"], last, pool)
            contenders.append(Contender(workload, _EMULATOR, emulate))
        for design, skew in [(design, 0) for design in DESIGNS] + [("opt", skew) for skew in SKEW_CYCLES]:
            settings = (f"cores={THREADS}", f"skew_cycles={skew}")
            scenario = Scenario(
                design=design, workload=workload, ops=ops, threads=THREADS, workload_args=arguments, settings=settings
            )
            name = f"{design}, {THREADS} cores" + (f", skew {skew}" if skew else "")
            kind = None if skew else SEVERAL_CORES
            contenders.append(Contender(workload, name, _simulate(scenario, {}), design=design, kind=kind))
        for design, warm in [(design, False) for design in DESIGNS] + [("opt", True)]:
            # One operation after the start of the region, and no check: nearly all is executed functionally.
            more = (("populate", str(FUNCTIONAL_POPULATE[workload])), ("no-check", "true"))
            scenario = Scenario(
                design=design, workload=workload, ops=1, workload_args=more, fast_forward="roi", warm=warm
            )
            name = f"{design}, fast-forward" + (", warm" if warm else "")
            kind = None if warm else FUNCTIONAL
            contenders.append(Contender(workload, name, _fast_forward(scenario), design=design, kind=kind))
    linux, bare = _build_kernel(folder, "linux"), _build_kernel(folder, "bare")
    last = {}
    simulate = _simulate(Scenario(elf=os.fspath(linux)), last)
    contenders.append(Contender(KERNEL, "opt", simulate, design="opt", kind=DETAILED))
    if qemu is not None:
        # The kernel cannot run idle: a workload that only prints its help measures the start-up.
        idle = [qemu, os.fspath(toolchain.build(WORKLOADS[0], "markers")), "--help"]
        contenders.append(Contender(KERNEL, _EMULATOR, _emulate([qemu, os.fspath(linux)], idle, last, None)))
    try:
        import rvsim  # noqa: PLC0415 - an optional package, needed only here
    except ImportError:
        return contenders
    contenders.append(Contender(KERNEL, _OTHER, lambda: _other_mips(rvsim, bare)))
    return contenders


def _simulate(scenario: Scenario, last: dict[str, RunResult]) -> Callable[[], float]:
    def measure() -> float:
        result = api.run_scenario(scenario, output.discard)
        if result.guest_exit_code != 0:
            raise refusal("bench", f"{result.workload} under {result.design} exited with {result.guest_exit_code}")
        last[result.workload] = result
        return result.host.mips

    return measure


def _fast_forward(scenario: Scenario) -> Callable[[], float]:
    def measure() -> float:
        begin = time.perf_counter()
        result = api.run_scenario(scenario, output.discard)
        seconds = time.perf_counter() - begin
        # `host` counts the detailed part after the mark.
        detailed = result.host.mips * 1e6 * result.host.seconds
        return (result.program.instructions - detailed) / (seconds - result.host.seconds) / 1e6

    return measure


def _emulate(
    command: list[str], start: list[str], last: dict[str, RunResult], pool: Path | None
) -> Callable[[], float]:
    def measure() -> float:
        if pool is not None:
            pool.unlink(missing_ok=True)
        seconds = _seconds_of(command) - _seconds_of(start)
        # Same file and arguments, so the instruction count of the simulator applies.
        (result,) = last.values()
        return result.program.instructions / max(seconds, 1e-3) / 1e6

    return measure


def _seconds_of(command: list[str]) -> float:
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise host_io(command[0], error) from None
    if done.returncode != 0:
        raise refusal("bench", f"{' '.join(command)} exited with {done.returncode}: {done.stderr.strip()}")
    return time.perf_counter() - begin


def _other_mips(rvsim: Any, bare: Path) -> float:
    result = rvsim.Environment(os.fspath(bare), rvsim.Config(uart_quiet=True)).run(quiet=False)
    if result.exit_code != 0:
        raise refusal("bench", f"the kernel under rvsim exited with {result.exit_code}")
    return result.stats["instructions_retired"] / result.wall_time_sec / 1e6


def _build_kernel(folder: Path, system: str) -> Path:
    sources = toolchain.guest_folder() / "bench"
    elf = folder / f"kernel-{system}"
    inserts = f"-DINSERTS={KERNEL_INSERTS}"
    if system == "linux":
        return toolchain.compile_program(sources / "kernel.cpp", elf, [inserts])
    command = [sys.executable, "-m", "ziglang", "c++", "-target", "riscv64-freestanding-none"]
    command += ["-mcpu=generic_rv64+m+a+f+d+c", "-mcmodel=medany", "-std=c++20", "-O2", "-ffreestanding", "-nostdlib"]
    command += ["-static", inserts, "-T", os.fspath(sources / "bare.ld"), os.fspath(sources / "start.S")]
    command += [os.fspath(sources / "kernel.cpp"), "-o", os.fspath(elf)]
    cache = str(toolchain.build_folder() / "zig-cache")
    environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise toolchain.ToolchainError("the bare-metal kernel does not compile", done.stderr)
    return elf


def _table(contenders: list[Contender]) -> Table:
    table = Table(title=f"simulated MIPS on {DEFAULT_MACHINE}, median")
    for name in ("program", "under"):
        table.add_column(name)
    for name in ("MIPS", f"slower than\n{_EMULATOR}", f"faster than\n{_OTHER}"):
        table.add_column(name, justify="right")
    for contender in contenders:
        emulator, other = (_reference(contenders, contender.program, name) for name in (_EMULATOR, _OTHER))
        slower = f"{emulator / contender.median:.1f} x" if emulator and contender.simulator != _EMULATOR else ""
        faster = f"{contender.median / other:.1f} x" if other and contender.simulator not in (_EMULATOR, _OTHER) else ""
        table.add_row(contender.program, contender.simulator, f"{contender.median:,.2f}", slower, faster)
    return table


def _reference(contenders: list[Contender], program: str, simulator: str) -> float | None:
    found = [c.median for c in contenders if c.program == program and c.simulator == simulator]
    return found[0] if found else None


def _costs_table(memory: growth.MemoryCost, counted: list[growth.HostInstructions]) -> Table:
    table = Table(title="host cost of a detailed simulation", show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    for simulated, peak in zip(memory.simulated_bytes, memory.peak_rss_bytes, strict=True):
        table.add_row(f"peak memory, {simulated >> 20} MiB simulated", f"{peak / 2**20:.0f} MiB")
    table.add_row("host bytes per simulated byte, between the two", f"{memory.host_bytes_per_simulated_byte:.2f}")
    for count in counted:
        what = f"host instructions per instruction, {count.workload} under {count.design}"
        table.add_row(what, f"{count.per_instruction:.0f}")
    return table


def _line(
    contenders: list[Contender],
    costs: dict[str, bench_designs.DesignCost],
    cores: list[growth.Cost],
    start_ms: dict[str, float],
) -> dict[str, Any]:
    """Returns speeds and costs by design and workload, and ratios: emulator to durasim, and durasim to rvsim."""
    functional: dict[str, float] = {}
    ratios: dict[str, dict[str, dict[str, float]]] = {"ratio_qemu": {}, "ratio_rvsim": {}}
    for contender in contenders:
        mips = contender.median
        if contender.kind == FUNCTIONAL:
            functional.setdefault(contender.program, round(mips, 1))
        if contender.kind != DETAILED:
            continue
        emulator, other = (_reference(contenders, contender.program, name) for name in (_EMULATOR, _OTHER))
        for name, ratio in (("ratio_qemu", emulator and emulator / mips), ("ratio_rvsim", other and mips / other)):
            if ratio:
                ratios[name].setdefault(contender.program, {})[contender.design] = round(ratio, 2)
    return {
        "mips": {design: {name: round(mips, 2) for name, mips in cost.mips.items()} for design, cost in costs.items()},
        "mips_cores": {n: round(cost.mips, 2) for n, cost in zip(growth.CORES, cores, strict=True)},
        "mips_functional": functional,
        "start_ms": {name: round(ms) for name, ms in start_ms.items()},
        "bytes_per_op": {design: round(cost.bytes_per_op, 1) for design, cost in costs.items()},
        "trials_per_s_per_core": {design: round(cost.trials_per_s_per_core) for design, cost in costs.items()},
        **ratios,
    }


def _document(
    contenders: list[Contender], forks: list[Forks], repetitions: int, ops: int, populate: int
) -> dict[str, Any]:
    return {
        "schema": "durasim-bench/3",
        "durasim_version": durasim.__version__,
        "machine": DEFAULT_MACHINE,
        "repetitions": repetitions,
        "ops": ops,
        "populate": populate,
        "speeds": [
            {"program": c.program, "under": c.simulator, "mips_median": c.median, "mips": c.mips} for c in contenders
        ],
        "forks": [asdict(fork) | {"microseconds_median": fork.median} for fork in forks],
    }


if __name__ == "__main__":
    sys.exit(app(prog_name="python -m tools.bench"))
