"""Programs compiled by tests: each once for all test processes, cached in build/tests for the next run."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from durasim.programs import toolchain

FOLDER = Path(__file__).resolve().parents[1] / "build" / "tests"
HEADERS = (".h", ".hpp")


@cache
def _guest_sources() -> bytes:
    """Returns a hash of all files that a guest program may include or be linked with."""
    guest = toolchain.guest_folder()
    digest = hashlib.sha256()
    for path in sorted(path for path in guest.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(guest)}\0".encode() + path.read_bytes())
    return digest.digest()


@cache
def version(command: str) -> str:
    return subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout


def once(name: str, compilers: Iterable[str], sources: Sequence[Path], flags: Sequence[str], build: Callable) -> Path:
    """Returns the executable `name` built by `build(path)`, unless it is cached.

    Args:
        name: The name of the file, visible to the program.
        compilers: Versions of the compilers.
        sources: The compiled files. The hash also includes headers next to them and all sources of guest programs.
        flags: The flags of the compiler.
        build: Writes the executable to the given path.
    """
    read = {path for source in sources for path in source.parent.iterdir() if path.suffix in HEADERS} | set(sources)
    parts = [*compilers, *flags, *(f"{path.name}\0{path.read_text(encoding='utf-8')}" for path in sorted(read))]
    digest = hashlib.sha256(_guest_sources() + "\0".join(parts).encode()).hexdigest()[:16]
    folder = FOLDER / digest
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.is_file():
            partial = folder / f"{name}.partial"
            build(partial)
            partial.replace(program)
    return program


def _guest_compiler() -> str:
    using = toolchain.compiler()
    return f"{using.version} {' '.join(toolchain.flags_of_own_programs())}"


def program(source: Path, flags: Sequence[str] = (), *, name: str | None = None) -> Path:
    """Compiles a source file for the simulated machine with `toolchain.compile_program`."""
    of_c = ("-x", "c", "-std=gnu17") if source.suffix == ".c" else ()
    all_flags = (*of_c, *flags)
    return once(
        name or source.stem,
        [_guest_compiler()],
        [source],
        all_flags,
        lambda output: toolchain.compile_program(source, output, all_flags),
    )


def stamp(source: Path, backend: str) -> Path:
    """Compiles a C program with the macros of STAMP for the simulated machine with `toolchain.build_stamp`."""
    return once(
        f"{source.stem}-{backend}",
        [_guest_compiler()],
        [source],
        ["stamp", backend],
        lambda output: toolchain.build_stamp([source], backend, output),
    )


def command(name: str, command_line: Sequence[str | Path], sources: Sequence[Path]) -> Path:
    """Compiles with a compiler of the host; the command line must not contain `-o`."""
    words = [str(word) for word in command_line]
    return once(
        name,
        [version(words[0])],
        sources,
        words,
        lambda output: subprocess.run([*words, "-o", str(output)], check=True, timeout=300),
    )
