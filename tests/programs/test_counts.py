"""Programs with one thread that read no clock execute exactly as many instructions as under qemu-riscv64.

counts.csv holds what qemu 7.2 executes, counted by

    taskset -c 0 qemu-riscv64 -singlestep -d nochain,exec -D /dev/fd/3 PROGRAM ARGUMENTS 3>&1 >/dev/null |
    grep -c ^Trace

which is what tools/qemu_instructions.py does. A program sees its path, its environment (here none), the number of cores
(one), its user and whether its output is a pipe; all of this is the same on both sides. Where qemu 7.2 is installed,
programs are counted live, too, also those of riscv64-linux-gnu-gcc, whose counts depend on its version.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compiled
from durasim import _core
from durasim.programs import toolchain

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
C_FLAGS = ("-x", "c", "-std=gnu17")
# qemu places some mappings of an allocator at random; one in eight runs therefore differs by a few instructions.
TRIES = 6
# Longer runs of the kernels are compared with recorded counts and not counted again by qemu.
LIVE_INSTRUCTIONS_MAX = 3_000_000
GNU = "riscv64-linux-gnu-gcc"


def _tool() -> Any:
    spec = importlib.util.spec_from_file_location("qemu_instructions", ROOT / "tools" / "qemu_instructions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


qemu_instructions = _tool()


def _qemu() -> str:
    """qemu 7.2, or the test is skipped: later versions place mappings elsewhere."""
    qemu = qemu_instructions.find_qemu()
    if qemu is None or shutil.which("taskset") is None:
        pytest.skip("qemu-riscv64 or taskset is not installed")
    if qemu_instructions.version(qemu) != (7, 2):
        pytest.skip("the qemu that is installed is not 7.2")
    return str(qemu)


with (HERE / "counts.csv").open(encoding="utf-8") as table:
    RECORDED = {(row["program"], row["arguments"]): int(row["instructions"]) for row in csv.DictReader(table)}
OWN = {row: count for row, count in RECORDED.items() if row[0] != "kernels.rv64"}


@pytest.fixture(scope="session")
def program() -> Callable[[str, str], Path]:
    """program(name, compiler) returns an executable of that name; "musl" means the compiler of guest programs."""

    def build(name: str, compiler: str) -> Path:
        if name == "kernels.rv64":
            return ROOT / "tests" / "timing" / name
        (source,) = HERE.glob(f"{name}.[cS]*")
        if compiler == "musl":
            return compiled.program(source, ("-x", "assembler-with-cpp", "-nostdlib") if source.suffix == ".S" else ())
        driver = "riscv64-linux-gnu-g++" if source.suffix == ".cpp" else GNU
        language = ("-std=c++20",) if source.suffix == ".cpp" else ()
        return compiled.command(name, [driver, "-O2", "-static", *language, source, "-lm"], [source])

    return build


def ours(elf: Path, arguments: str, root: Path, *, functional: bool) -> tuple[int, bytes, int]:
    """Instructions, output and exit code of a program started as ./NAME in its folder."""
    request = {
        "machine": "hercules-tecs23-modern",
        "design": "opt",
        # The number of files open in qemu under the command that recorded the counts.
        "set": ["cores=1"],
        "elf": str(elf),
        "elf_name": f"./{elf.name}",
        "exe_link": str(elf.resolve()),
        "args": arguments.split(),
        "root": str(root),
        "seed": 1,
        "workload": elf.name,
        "functional": functional,
    }
    written: list[bytes] = []
    result = json.loads(
        _core.run(json.dumps(request), lambda to, data: written.append(data) if to == "stdout" else None)
    )
    return result["program"]["instructions"], b"".join(written), result["guest_exit_code"]


@pytest.mark.parametrize(("name", "arguments"), OWN)
def test_counts_are_those_recorded(name: str, arguments: str, program: Callable[..., Path], tmp_path: Path) -> None:
    if not toolchain.compiler().is_zig and name != "known_length":
        pytest.skip("the counts were recorded with the compiler of the package ziglang")
    elf = program(name, "musl")
    assert ours(elf, arguments, tmp_path, functional=True)[0] == OWN[name, arguments]
    assert ours(elf, arguments, tmp_path, functional=False)[0] == OWN[name, arguments]


def test_a_known_length_is_counted() -> None:
    assert RECORDED["known_length", ""] == 1 + 1_000 * 3 + 10


def _live(elf: Path, arguments: str, root: Path) -> None:
    qemu = _qemu()
    mine = ours(elf, arguments, root, functional=True)
    seen = []
    for _ in range(TRIES):
        theirs = qemu_instructions.count(qemu, f"./{elf.name}", arguments.split(), elf.parent)
        assert (theirs.stdout, theirs.exit_code) == mine[1:]
        seen.append(theirs.instructions)
        if theirs.instructions == mine[0]:
            return
    assert mine[0] in seen


@pytest.mark.parametrize(
    ("name", "arguments"), [row for row, count in RECORDED.items() if count <= LIVE_INSTRUCTIONS_MAX]
)
def test_qemu_counts_the_same(name: str, arguments: str, program: Callable[..., Path], tmp_path: Path) -> None:
    _live(program(name, "musl"), arguments, tmp_path)


@pytest.mark.parametrize(("name", "arguments"), [row for row in OWN if row[0] != "known_length"])
def test_qemu_counts_the_same_with_glibc(
    name: str, arguments: str, program: Callable[..., Path], tmp_path: Path
) -> None:
    if shutil.which(GNU) is None or shutil.which("riscv64-linux-gnu-g++") is None:
        pytest.skip("riscv64-linux-gnu-gcc is not installed")
    _live(program(name, "glibc"), arguments, tmp_path)
