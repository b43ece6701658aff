"""Unmodified third-party programs, built with either compiler: outputs and exit codes equal those under qemu-riscv64.

`make test-programs` runs this; it downloads sources and takes minutes, so `make test` does not. The outputs under qemu
7.2 are in expected/; with DURASIM_RECORD=1 and qemu-riscv64 installed they are written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import recipes

from durasim import _core

EXPECTED = Path(__file__).resolve().parent / "expected"
QEMU = shutil.which("qemu-riscv64") or shutil.which("qemu-riscv64-static")
RECORD = os.environ.get("DURASIM_RECORD") == "1"
FUNCTIONAL = {"functional": True, "machine": "hercules-tecs23-modern"}
TIMED = {
    "hercules-tecs23-modern": {"functional": False, "machine": "hercules-tecs23-modern"},
    "tiny": {"functional": False, "machine": "tiny", "design": "hercules", "set": ["core.time_slice_cycles=20000"]},
}


@dataclass(frozen=True)
class Case:
    """A program and its steps, which run one after the other in one folder."""

    name: str
    program: str
    steps: tuple[tuple[str, ...], ...]
    # Whether it also runs with caches, timing and a design.
    timed: bool = False


CASES = [
    Case("sqlite-wal", "sqlite_threads", (("data.db", "wal", "4", "600"),)),
    Case("sqlite-rollback", "sqlite_threads", (("data.db", "delete", "4", "600"),)),
    Case("sqlite-truncate", "sqlite_threads", (("data.db", "truncate", "2", "100"),)),
    Case("sqlite-wal-small", "sqlite_threads", (("data.db", "wal", "4", "30"),), timed=True),
    Case("sqlite-rollback-small", "sqlite_threads", (("data.db", "delete", "4", "30"),), timed=True),
    Case("sqlite-pmem-rollback", "sqlite_threads", (("/pmem/data.db", "persist", "4", "40"),), timed=True),
    Case("sqlite-pmem-wal", "sqlite_threads", (("/pmem/data.db", "wal", "4", "40"),), timed=True),
    Case("bzip2", "bzip2", (("-k", "-9", "text"), ("-t", "text.bz2"), ("-d", "-c", "text.bz2"), ("-t", "damaged.bz2"))),
    Case("bzip2-small", "bzip2", (("-1", "small"), ("-d", "small.bz2")), timed=True),
    Case(
        "xz",
        "xz",
        (("-k", "-T4", "--block-size=64KiB", "-3", "text"), ("-t", "text.xz"), ("-dc", "text.xz"), ("-l", "text.xz")),
    ),
    Case("xz-small", "xz", (("-T2", "--block-size=8KiB", "-0", "small"), ("-d", "small.xz")), timed=True),
    Case("zstd", "zstd_round_trip", (("1500000",),)),
    Case("zstd-small", "zstd_round_trip", (("4000",),), timed=True),
    Case("lz4", "lz4_round_trip", (("500000",),)),
    Case("lz4-small", "lz4_round_trip", (("6000",),), timed=True),
    Case("zlib", "zlib_files", (("400000",),)),
    Case("zlib-small", "zlib_files", (("20000",),), timed=True),
    Case("sort", "parallel_sort", (("200000", "4"),)),
    Case("sort-small", "parallel_sort", (("4000", "3"),), timed=True),
]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """program(name, compiler) gives the executable; "gnu" skips the test where that compiler is missing."""
    built: dict[tuple[str, str], Path] = {}
    folder = tmp_path_factory.mktemp("others")

    def build(name: str, compiler: str) -> Path:
        if compiler == "gnu" and shutil.which(recipes.GNU_CXX) is None:
            pytest.skip(f"{recipes.GNU_CXX} is not installed")
        if (name, compiler) not in built:
            recipes.download()
            (folder / compiler).mkdir(exist_ok=True)
            built[name, compiler] = recipes.compile_recipe(name, compiler, folder / compiler)
        return built[name, compiler]

    return build


def files_in(folder: Path) -> None:
    """Input files of the steps: text that compresses like prose, and a damaged file."""
    words = [b"persist", b"cache", b"line ", b"fence", b"the ", b"queue", b"of ", b"\n", b"0x", b"epoch "]
    seed, text = 5, bytearray()
    while len(text) < 400_000:
        seed = (seed * 1664525 + 1013904223) % 2**32
        text += words[(seed >> 24) % 10]
    (folder / "text").write_bytes(text)
    (folder / "small").write_bytes(text[:20_000])
    (folder / "damaged.bz2").write_bytes(b"BZh91AY&SY" + bytes(range(200)))


def protocol(case: Case, step: Callable[[tuple[str, ...]], tuple[int, bytes]], folder: Path) -> str:
    """Output of a case, its exit codes and the remaining files; long output as a checksum."""
    files_in(folder)
    lines = []
    for arguments in case.steps:
        exit_code, stdout = step(arguments)
        lines.append(f"$ {case.program} {' '.join(arguments)}")
        if len(stdout) > 4000:
            lines.append(f"{len(stdout)} bytes with SHA-256 {hashlib.sha256(stdout).hexdigest()}")
        else:
            lines.extend(stdout.decode().splitlines())
        lines.append(f"exit code {exit_code}")
    for path in sorted(folder.iterdir()):
        # The contents of databases depend on the order of threads.
        kept = "" if path.suffix == ".db" else f" {hashlib.sha256(path.read_bytes()).hexdigest()}"
        lines.append(f"left {path.name}{kept}")
    return "\n".join(lines) + "\n"


def under_durasim(elf: Path, case: Case, mode: dict[str, Any], folder: Path) -> str:
    def step(arguments: tuple[str, ...]) -> tuple[int, bytes]:
        request = {"design": "opt", "elf": str(elf), "elf_name": case.program, "args": list(arguments)}
        request |= {"seed": 1, "workload": case.name, "root": str(folder), "root_write": True} | mode
        written: list[bytes] = []
        take = lambda stream, data: written.append(data) if stream == "stdout" else None  # noqa: E731
        result = json.loads(_core.run(json.dumps(request), take))
        return result["guest_exit_code"], b"".join(written)

    return protocol(case, step, folder)


def under_qemu(elf: Path, case: Case, folder: Path) -> str:
    assert QEMU is not None

    def step(arguments: tuple[str, ...]) -> tuple[int, bytes]:
        # Files under /pmem/ are ordinary files elsewhere, and not left in the folder.
        (folder.parent / "pmem").mkdir(exist_ok=True)
        local = [word.replace("/pmem/", f"{folder.parent}/pmem/") for word in arguments]
        command = [QEMU, "-0", case.program, elf, *local]
        done = subprocess.run(command, cwd=folder, env={}, capture_output=True, timeout=600, check=False)
        return done.returncode, done.stdout

    return protocol(case, step, folder)


def expected(case: Case) -> str:
    return (EXPECTED / f"{case.name}.out").read_text(encoding="utf-8")


@pytest.mark.parametrize("compiler", recipes.COMPILERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_qemu_agrees(case: Case, compiler: str, program: Callable[..., Path], tmp_path: Path) -> None:
    if QEMU is None:
        pytest.skip("qemu-riscv64 is not installed")
    folder = tmp_path / "files"
    folder.mkdir()
    found = under_qemu(program(case.program, compiler), case, folder)
    if RECORD and compiler == "zig":
        EXPECTED.mkdir(exist_ok=True)
        (EXPECTED / f"{case.name}.out").write_text(found, encoding="utf-8")
    assert found == expected(case)


@pytest.mark.parametrize("compiler", recipes.COMPILERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_functional(case: Case, compiler: str, program: Callable[..., Path], tmp_path: Path) -> None:
    assert under_durasim(program(case.program, compiler), case, FUNCTIONAL, tmp_path) == expected(case)


@pytest.mark.parametrize("machine", TIMED)
@pytest.mark.parametrize("compiler", recipes.COMPILERS)
@pytest.mark.parametrize("case", [case for case in CASES if case.timed], ids=lambda case: case.name)
def test_timed(case: Case, compiler: str, machine: str, program: Callable[..., Path], tmp_path: Path) -> None:
    assert under_durasim(program(case.program, compiler), case, TIMED[machine], tmp_path) == expected(case)
