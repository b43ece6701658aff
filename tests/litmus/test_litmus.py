"""Litmus tests: visibility of stores between threads on several cores, and correct atomics.

A functional run interleaves threads and shows that the programs themselves are correct. Store buffers and caches exist
only in timed runs with several cores."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from memory_model import outcomes

import compiled
from durasim import _core
from durasim.programs import toolchain

# The product of its cases runs in make test-all.
pytestmark = pytest.mark.drawn(3)

HERE = Path(__file__).resolve().parent
QEMU = shutil.which("qemu-riscv64-static") or shutil.which("qemu-riscv64")
LIMIT_INSTRUCTIONS = 500_000_000

# Number of cores of the timed runs; their tests are skipped with one core.
SEVERAL_CORES = True
CORES = 4

Program = Callable[..., Path]
Run = Callable[..., str]


@pytest.fixture(scope="session")
def program() -> Program:
    """program(name) compiles a source of this folder for RISC-V, program(name, host=True) for the host."""

    def build(name: str, host: bool = False) -> Path:
        source = HERE / f"{name}.cpp"
        if not host:
            return compiled.program(source)
        include = toolchain.guest_folder() / "include"
        command = ["g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{include}", source]
        return compiled.command(f"{name}-host", command, [source])

    return build


def simulate(elf: Path, *arguments: object, **options: object) -> str:
    """Returns the output of a program in the simulator."""
    request = {
        "machine": "hercules-tecs23-modern",
        "design": "opt",
        "elf": str(elf),
        "elf_name": elf.name,
        "args": [str(argument) for argument in arguments],
        "seed": 1,
        "workload": elf.name,
        "max_instructions": LIMIT_INSTRUCTIONS,
    }
    written: list[bytes] = []
    result = json.loads(_core.run(json.dumps(request | options), lambda _stream, data: written.append(data)))
    text = b"".join(written).decode()
    assert result["guest_exit_code"] == 0, text
    return text


def execute(*command: object) -> str:
    """Returns the output of a program on the host."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["functional", "qemu", "host"])
def run(request: pytest.FixtureRequest, program: Program) -> Run:
    """run(name, arguments...) returns the output of a program without a model of timing."""
    if request.param == "functional":
        return lambda name, *arguments: simulate(program(name), *arguments, functional=True)
    if request.param == "qemu":
        if QEMU is None:
            pytest.skip("qemu-riscv64 is not installed")
        return lambda name, *arguments: execute(QEMU, program(name), *arguments)
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ for the host")
    return lambda name, *arguments: execute(program(name, host=True), *arguments)


@pytest.fixture(params=["tiny", "hercules-tecs23-modern", "two-threads-per-core"])
def timed(request: pytest.FixtureRequest, program: Program) -> Run:
    """timed(name, arguments...) returns the output of a program on a machine with several cores."""
    if not SEVERAL_CORES:
        pytest.skip("machines have one core")
    machine = {"machine": request.param, "set": [f"cores={CORES}"]}
    if request.param == "two-threads-per-core":
        machine = {"machine": "tiny", "set": [f"cores={CORES // 2}", "threads_per_core=2"]}
    return lambda name, *arguments: simulate(program(name), *arguments, **machine)


@dataclass
class Shape:
    """A shape described by the program, and its results."""

    program: str
    allowed: set[str]
    relaxed: set[str]
    histogram: dict[str, int] = field(default_factory=dict)
    forbidden: int = -1
    observed: int = -1


def shapes_of(listed: str, printed: str = "") -> dict[str, Shape]:
    """Parses the output of `shapes --list` and `shapes`."""
    found = {}
    for line in listed.splitlines():
        name, program_text, allowed, relaxed = re.fullmatch(r"(\S+): (.*); allowed (.*); relaxed ?(.*)", line).groups()
        found[name] = Shape(program_text, set(allowed.split()), set(relaxed.split()))
    for line in printed.splitlines():
        name, _, counts = line.partition(": ")
        for word in counts.split():
            key, _, count = word.rpartition("=")
            if key in ("forbidden", "observed"):
                setattr(found[name], key, int(count))
            else:
                found[name].histogram[key] = int(count)
    return found


SHAPES = {"SB", "MP", "LB", "R", "S", "2+2W", "WRC", "IRIW"}
COHERENCE = {"CoRR", "CoWW", "CoRW", "CoWR"}


def test_the_expected_results_are_those_of_total_store_order(program: Program) -> None:
    """Also, a fence between the accesses restores sequential consistency for every shape."""
    shapes = shapes_of(simulate(program("shapes"), "--list", functional=True))
    assert set(shapes) == SHAPES | {f"{name}+fences" for name in SHAPES} | COHERENCE
    for name, shape in shapes.items():
        buffered, sequential = (outcomes(shape.program, buffered=buffered) for buffered in (True, False))
        assert shape.allowed == buffered, name
        assert shape.relaxed == buffered - sequential, name
        assert bool(shape.relaxed) == (name in ("SB", "R")), name


def check_shape(name: str, shape: Shape, iterations: int) -> None:
    """No result violates total store order, and the counts of the program are correct."""
    assert sum(shape.histogram.values()) == iterations, name
    assert set(shape.histogram) <= shape.allowed, (name, shape.histogram)
    assert shape.forbidden == 0, name
    assert shape.observed == sum(shape.histogram.get(result, 0) for result in shape.relaxed), name


def test_shapes(run: Run) -> None:
    shapes = shapes_of(run("shapes", "--list"), run("shapes", 200))
    for name, shape in shapes.items():
        check_shape(name, shape, 200)


def test_a_forbidden_result_is_noticed(program: Program) -> None:
    listed = simulate(program("shapes"), "--list", functional=True)
    check_shape("MP", shapes_of(listed, "MP: 0,0=3 1,1=1 forbidden=0 observed=0")["MP"], 4)
    with pytest.raises(AssertionError):
        check_shape("MP", shapes_of(listed, "MP: 0,0=3 1,0=1 forbidden=1 observed=0")["MP"], 4)


def test_functional_runs_are_sequentially_consistent(program: Program) -> None:
    printed = simulate(program("shapes"), 200, 3, "SB", "R", functional=True)
    assert printed.count("observed=0") == 2
    assert simulate(program("shapes"), 200, 3, "SB", "R", functional=True) == printed


def test_shapes_on_several_cores(timed: Run) -> None:
    """Stores wait in buffers while later loads execute, and there is no other reordering."""
    iterations = 150
    shapes = shapes_of(timed("shapes", "--list"), timed("shapes", iterations))
    for name, shape in shapes.items():
        check_shape(name, shape, iterations)
    assert shapes["SB"].observed > 0
    # Threads overlap: each may be the first.
    for name in ("SB", "MP", "R", "S", "2+2W", "IRIW", "CoRR"):
        assert len(shapes[name].histogram) > 1, (name, shapes[name].histogram)


def check_counters(printed: str, expected: int) -> None:
    ways = ("amoadd", "lr-sc", "spin-lock", "ticket-lock")
    assert printed == "".join(f"{way}: total={expected} expected={expected}\n" for way in ways)


@pytest.mark.parametrize("threads", [1, 4])
def test_counters(run: Run, threads: int) -> None:
    check_counters(run("counters", 500, threads), 500 * threads)


@pytest.mark.parametrize("threads", [2, CORES])
def test_counters_on_several_cores(timed: Run, threads: int) -> None:
    check_counters(timed("counters", 500, threads), 500 * threads)


def check_atomicity(printed: str, reads: int) -> int:
    """Returns the number of times a reader saw a new value."""
    found = re.fullmatch(r"atomicity: reads=(\d+) torn=0 changes=(\d+) order=0\n", printed)
    assert found is not None, printed
    assert int(found[1]) == reads
    return int(found[2])


def test_atomicity(run: Run) -> None:
    assert check_atomicity(run("atomicity", 2000), 6000) > 0


def test_atomicity_on_several_cores(timed: Run) -> None:
    assert check_atomicity(timed("atomicity", 2000, CORES), 2000 * (CORES - 1)) > 100


def test_futex_passing(run: Run) -> None:
    assert run("futex_passing", 300) == "futex-passing: messages=300 wrong=0\n"


def test_futex_passing_on_several_cores(timed: Run) -> None:
    assert timed("futex_passing", 300) == "futex-passing: messages=300 wrong=0\n"


def check_ping_pong(printed: str, rounds: int) -> int:
    """Returns the cycles of all rounds."""
    found = re.fullmatch(rf"ping-pong: rounds={rounds} last={2 * rounds} cycles=(\d+)\n", printed)
    assert found is not None, printed
    return int(found[1])


def test_ping_pong(run: Run) -> None:
    assert check_ping_pong(run("ping_pong", 100), 100) > 0


def test_ping_pong_on_several_cores(timed: Run) -> None:
    """Every round trip takes equal time."""
    short, long = (check_ping_pong(timed("ping_pong", rounds), rounds) / rounds for rounds in (200, 1000))
    assert long == pytest.approx(short, rel=0.25)


def test_timed_runs_repeat(timed: Run) -> None:
    assert timed("shapes", 100, 7, "SB", "IRIW") == timed("shapes", 100, 7, "SB", "IRIW")
