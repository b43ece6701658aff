"""Programs for any RISC-V Linux system: outputs and exit codes equal those under qemu-riscv64 and are reproducible.

The expected output is in NAME.out next to the source of a program. If qemu-riscv64 is installed, it also runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import compiled
from durasim import _core

HERE = Path(__file__).resolve().parent
QEMU = shutil.which("qemu-riscv64-static") or shutil.which("qemu-riscv64")
# The toolchain compiles C++; these flags make it C. They come last, so they win.
C_FLAGS = ("-x", "c", "-std=gnu17")
# System calls that qemu 7.2 lists by number.
NEWER_CALLS = {
    "258": "riscv_hwprobe",
    "286": "preadv2",
    "287": "pwritev2",
    "293": "rseq",
    "435": "clone3",
    "441": "epoll_pwait2",
    "452": "fchmodat2",
}
# Called by calls_memory; qemu does not list it.
NOT_LISTED = {"riscv_flush_icache"}
LIMIT_INSTRUCTIONS = 200_000_000


@dataclass(frozen=True)
class Case:
    """A program, its arguments and its expected end."""

    name: str
    arguments: tuple[str, ...] = ()
    exit_code: int = 0
    qemu_exit_code: int | None = None
    qemu: bool = True

    def expected(self) -> str:
        return (HERE / f"{self.name}.out").read_text()


CASES = [
    Case("mutex_counter"),
    Case("conditions"),
    Case("lifetimes"),
    Case("thread_locals"),
    Case("barriers"),
    Case("timeouts"),
    Case("exit_group", exit_code=23),
    Case("files"),
    Case("futexes"),
    Case("calls_files"),
    Case("calls_memory"),
    Case("calls_process"),
    Case("calls_rest"),
    Case("probes"),
    Case("events"),
    Case("handlers"),
    Case("faults"),
    # A signal ends the program: a shell would show 128 + 15; a parent of qemu sees the signal itself.
    Case("system", exit_code=143, qemu_exit_code=-15),
    # Instructions that qemu 7.2 lacks.
    Case("extensions", qemu=False),
    # qemu 7.2 has no robust lists in user mode: there the next owner waits indefinitely.
    Case("robust", qemu=False),
]


@dataclass(frozen=True)
class Ending:
    exit_code: int
    stdout: str
    instructions: int


@pytest.fixture(scope="session")
def program() -> Callable[[str], Path]:
    """program(name) compiles a source of this folder."""

    def build(name: str) -> Path:
        (source,) = [path for path in HERE.glob(f"{name}.c*") if path.suffix in (".c", ".cpp")]
        return compiled.program(source)

    return build


def run(elf: Path, *arguments: str, **options: Any) -> Ending:
    """Runs a program, functionally by default."""
    request = {
        "machine": "hercules-tecs23-modern",
        "design": "opt",
        "elf": str(elf),
        "elf_name": elf.name,
        "args": list(arguments),
        "seed": 1,
        "workload": elf.name,
        "functional": True,
        "max_instructions": LIMIT_INSTRUCTIONS,
    }
    written: list[bytes] = []

    def take(stream: str, data: bytes) -> None:
        if stream == "stdout":
            written.append(data)

    result = json.loads(_core.run(json.dumps(request | options), take))
    return Ending(result["guest_exit_code"], b"".join(written).decode(), result["program"]["instructions"])


# Modes: functional, or threads that share the single core of a machine with caches and timing.
MODES = {
    "functional": {"functional": True},
    "hercules-tecs23-modern": {"functional": False},
    "tiny": {"functional": False, "machine": "tiny", "design": "hercules", "set": ["core.time_slice_cycles=20000"]},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_output_and_exit_code(case: Case, mode: str, program: Callable[[str], Path], tmp_path: Path) -> None:
    ending = run(program(case.name), *case.arguments, root=str(tmp_path), **MODES[mode])
    assert ending.stdout == case.expected()
    assert ending.exit_code == case.exit_code


@pytest.mark.parametrize("case", [case for case in CASES if case.qemu], ids=lambda case: case.name)
def test_qemu_agrees(case: Case, program: Callable[[str], Path], tmp_path: Path) -> None:
    if QEMU is None:
        pytest.skip("qemu-riscv64 is not installed")
    command = [QEMU, program(case.name), *case.arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == case.expected()
    assert done.returncode == (case.exit_code if case.qemu_exit_code is None else case.qemu_exit_code)


@pytest.fixture(scope="session")
def glibc_program() -> Callable[[str], Path]:
    """glibc_program(name) compiles with the other C library, or skips the test."""

    def build(name: str) -> Path:
        (source,) = [path for path in HERE.glob(f"{name}.c*") if path.suffix in (".c", ".cpp")]
        driver = "riscv64-linux-gnu-g++" if source.suffix == ".cpp" else "riscv64-linux-gnu-gcc"
        standard = "-std=c++20" if source.suffix == ".cpp" else "-std=gnu17"
        if shutil.which(driver) is None:
            pytest.skip(f"{driver} is not installed")
        return compiled.command(name, [driver, "-O2", "-static", "-pthread", standard, source, "-lm"], [source])

    return build


# Like qemu, durasim reports no robust lists, so glibc refuses to create such a mutex.
@pytest.mark.parametrize("mode", ["functional", "tiny"])
@pytest.mark.parametrize("case", [case for case in CASES if case.qemu], ids=lambda case: case.name)
def test_glibc_programs(case: Case, mode: str, glibc_program: Callable[[str], Path], tmp_path: Path) -> None:
    ending = run(glibc_program(case.name), *case.arguments, root=str(tmp_path), **MODES[mode])
    assert ending.stdout == case.expected()
    assert ending.exit_code == case.exit_code


def _handled() -> set[str]:
    """The names of the system calls that have a method in durasim."""
    source = HERE.parents[1] / "crates" / "kernel" / "src" / "syscalls" / "mod.rs"
    return set(re.findall(r"Sysno::([a-z0-9_]+)\b", source.read_text(encoding="utf-8"))) - {"new"}


def _made(elf: Path, folder: Path) -> set[str]:
    """The names of the system calls of a program, listed by qemu."""
    assert QEMU is not None
    arguments = ["pool", "4"] if elf.name == "private_pool" else []
    try:
        command = [QEMU, "-strace", elf, *arguments]
        traced = subprocess.run(command, cwd=folder, env={}, capture_output=True, timeout=20, check=False).stderr
    except subprocess.TimeoutExpired as endless:
        traced = endless.stderr or b""
    text = traced.decode(errors="replace")
    numbers = {NEWER_CALLS.get(number, number) for number in re.findall(r"Unknown syscall (\d+)", text)}
    return set(re.findall(r"^\d+ ([a-z0-9_]+)\(", text, re.MULTILINE)) | numbers


def test_every_system_call_is_made_by_a_program(program: Callable[[str], Path], tmp_path: Path) -> None:
    if QEMU is None:
        pytest.skip("qemu-riscv64, which lists system calls, is not installed")
    names = [*(case.name for case in CASES), "private_pool"]
    made = set().union(*(_made(program(name), tmp_path) for name in names))
    assert _handled() - made - NOT_LISTED == set()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["mutex_counter", "thread_locals", "timeouts"])
def test_threads_run_alike_every_time(name: str, mode: str, program: Callable[[str], Path]) -> None:
    assert run(program(name), **MODES[mode]) == run(program(name), **MODES[mode])


@pytest.mark.parametrize("mode", MODES)
def test_a_deadlock_is_reported_with_every_thread(mode: str, program: Callable[[str], Path]) -> None:
    with pytest.raises(_core.GuestFault) as failure:
        run(program("deadlock"), **MODES[mode])
    sentence = str(failure.value)
    assert "deadlock: every thread waits: " in sentence
    waits = sentence.split("every thread waits: ")[1].split(" (last", maxsplit=1)[0].split(", ")
    assert {wait.split(" at pc 0x")[0] for wait in waits} == {"thread 0", "thread 1", "thread 2"}
    assert all(" waits for the futex at 0x" in wait for wait in waits)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", ["1", "4"])
def test_private_pages_of_a_pool(threads: str, mode: str, program: Callable[[str], Path], tmp_path: Path) -> None:
    elf = program("private_pool")
    ending = run(elf, "/pmem/pool", threads, **MODES[mode])
    assert (ending.exit_code, ending.stdout) == (0, (HERE / f"private_pool-{threads}.out").read_text())
    if QEMU is not None:
        command = [QEMU, elf, str(tmp_path / "pool"), threads]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (0, ending.stdout)


def test_transactions_of_more_threads_than_a_design_has_numbers_for(program: Callable[[str], Path]) -> None:
    elf = program("transactions_of_threads")
    timed = {"functional": False, "machine": "tiny", "design": "lad"}
    assert run(elf, "256", **timed).stdout == "256 threads\n"
    with pytest.raises(_core.GuestFault, match="in thread 256, and the design serves threads 0 to 255"):
        run(elf, "257", **timed)
