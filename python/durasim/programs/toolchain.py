"""Builds guest programs: static RV64GC Linux executables from C++20 sources.

The wheel carries compiled workloads (:mod:`durasim.programs.prebuilt`). All other programs, and those of a changed
workload, are compiled by the first available of: the command in the environment variable ``DURASIM_CXX``, the one in
the PyPI package ``ziglang``, and a system ``riscv64-linux-gnu-g++``. Results are cached in ``build/guest`` of the
checkout (in a user cache folder without a checkout) under a hash of all their inputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from durasim.errors import ToolchainError
from durasim.programs import kept_builds
from durasim.programs.prebuilt import prebuilt
from durasim.programs.workload_tables import (
    COMMANDS,
    Argument,
    BackendInfo,
    WorkloadInfo,
    backend_named,
    backends,
    broken_workloads,
    describe,
    extra_arguments,
    guest_folder,
    is_path,
    once,
    read_toml,
    state_of,
    workload_named,
    workloads,
)

# The lists of what can be built belong to the interface of this module.
__all__ = [
    "Argument",
    "BackendInfo",
    "Compiler",
    "ToolchainError",
    "WorkloadInfo",
    "arguments_header",
    "backends",
    "broken_workloads",
    "build",
    "build_all",
    "build_folder",
    "build_stamp",
    "compile_file",
    "compile_program",
    "compiler",
    "describe",
    "description_of_compiler",
    "flags_of_own_programs",
    "guest_folder",
    "read_toml",
    "workloads",
]

Progress = Callable[[str], None]

# Align each loop to a cache line. A front end accesses its L1I once more in every iteration of a small loop that
# crosses a line, and without alignment unrelated code would decide which loops do.
ALIGN_LOOPS = "-falign-loops=64"

# One set of flags for all programs: the C++ library is compiled once per set, which takes about a minute.
ZIG_TARGET = ("-target", "riscv64-linux-musl", "-mcpu=generic_rv64+m+a+f+d+c")
ZIG_FLAGS = (*ZIG_TARGET, "-static", "-O2", ALIGN_LOOPS, "-std=c++20", "-s")
GCC_FLAGS = ("-march=rv64gc", "-mabi=lp64d", "-static", "-O2", ALIGN_LOOPS, "-std=c++20", "-pthread", "-s")

_STRIP = "-s"
_DEBUG = "-g"

PARALLEL_BUILDS = 2


@dataclass(frozen=True)
class Compiler:
    """Command of the compiler; ``version`` is part of the hash of every build."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    version: str
    description: str
    is_zig: bool


def build_folder() -> Path:
    """Returns the folder of cached results and of the compiler's own cache."""
    checkout = guest_folder().parent
    if (checkout / "Cargo.toml").is_file():
        return checkout / "build"
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache_home) if cache_home else Path.home() / ".cache") / "durasim"


@cache
def compiler() -> Compiler:
    """Returns the compiler of guest programs. Raises ToolchainError if none is available."""
    chosen = os.environ.get("DURASIM_CXX")
    if chosen:
        command = shlex.split(chosen)
        if not command or shutil.which(command[0]) is None:
            raise ToolchainError(f"DURASIM_CXX names {chosen!r}, which is not an executable command")
        return Compiler(tuple(command), GCC_FLAGS, _version_of(command), f"{chosen} (from DURASIM_CXX)", False)
    if importlib.util.find_spec("ziglang") is not None:
        version = importlib.metadata.version("ziglang")
        return Compiler(
            (sys.executable, "-m", "ziglang", "c++"), ZIG_FLAGS, f"ziglang {version}", f"ziglang {version}", True
        )
    system = shutil.which("riscv64-linux-gnu-g++")
    if system is not None:
        return Compiler((system,), GCC_FLAGS, _version_of([system]), system, False)
    raise ToolchainError(
        "no compiler for guest programs is available: `pip install 'durasim[compiler]'` or install "
        "riscv64-linux-gnu-g++, or set DURASIM_CXX to a g++ for riscv64 Linux"
    )


def _compiler_of_workloads() -> Compiler:
    """Returns the compiler of the packed programs if there are any, else that of all others.

    A compiler that the user has chosen compiles the workloads too.
    """
    packed = prebuilt()
    if packed is None or os.environ.get("DURASIM_CXX"):
        return compiler()
    return Compiler((), **{name: tuple(of) if isinstance(of, list) else of for name, of in packed.compiler.items()})


def description_of_compiler() -> str:
    """Returns the name and version of the compiler of the workloads. Raises ToolchainError if there is none."""
    return _compiler_of_workloads().description


def arguments_header(workload: str, backend: str, *, history: bool = False, planted: bool = False) -> str:
    """Returns ``durasim_arguments.h``: the table of arguments for C++ (see guest/workloads/arguments.h)."""
    about = describe(workload, backend, history=history, planted=planted)
    work, back = workload_named(workload), backend_named(backend)
    extra = extra_arguments(history, planted)
    fields, rows = [], []
    for a in work.arguments + back.arguments + extra:
        field = a.name.replace("-", "_")
        if a.type == "u64":
            fields.append(f"    std::uint64_t {field} = {a.default}u;")
        elif a.type == "flag":
            fields.append(f"    bool {field} = false;")
        else:
            fields.append(f"    const char* {field} = {_c_string(str(a.default))};")
        names = (*a.commands, "dump") if history and a.commands == COMMANDS else a.commands
        commands = " | ".join("command_" + command.replace("-", "_") for command in names)
        choices = _c_string("|" + "|".join(a.choices) + "|") if a.choices else "nullptr"
        default = "off" if a.type == "flag" else str(a.default)
        rows.append(
            f"    {{{_c_string(a.name)}, ArgumentType::{a.type}, {commands}, offsetof(Arguments, {field}), "
            f"{a.minimum}u, {a.maximum}u, {choices}, {_c_string(default)}, {_c_string(a.help)}}},"
        )
    return "\n".join(
        [
            "// Generated from the argument tables beside the workload and its runtime.",
            *(f"#define DURASIM_{name} {value}" for name, value in work.constants.items()),
            "namespace durasim {",
            f"inline constexpr const char* program_name = {_c_string(work.name)};",
            f"inline constexpr const char* program_summary = {_c_string(work.description)};",
            f"inline constexpr const char* describe_json = {_c_string(json.dumps(about, ensure_ascii=False))};",
            "struct Arguments {",
            *fields,
            "};",
            "inline constexpr ArgumentInfo argument_table[] = {",
            *rows,
            "};",
            "}  // namespace durasim",
            "",
        ]
    )


def build(
    workload: str,
    backend: str,
    progress: Progress | None = None,
    *,
    history: bool = False,
    planted: bool = False,
    rehearsals: bool = False,
    flags: Sequence[str] = (),
) -> Path:
    """Builds a workload with a transaction runtime, unless it is cached, and returns the executable.

    With ``history`` it reports its operations and can dump its pool, see guest/include/durasim/history.h. With
    ``planted`` the runtime contains the faults of ``guest/runtimes/planted`` and takes the name of one; with
    ``rehearsals`` every transaction is aborted and retried once before it commits. ``durasim mutation`` uses both.
    ``flags`` are additional flags for the compiler, such as ``-I`` and ``-D``.

    Raises ToolchainError if a name is unknown, no compiler is available, or the compiler reports an error.
    """
    variant = (workload, backend, history, planted, rehearsals, tuple(flags))
    executable: Path = once(("program", *variant), lambda: _build_now(*variant, progress))
    return executable


def _build_now(
    workload: str,
    backend: str,
    history: bool,
    planted: bool,
    rehearsals: bool,
    flags: tuple[str, ...],
    progress: Progress | None,
) -> Path:
    work, back = workload_named(workload), backend_named(backend)
    if work.interface not in back.interfaces:
        raise ToolchainError(
            f"the workload {workload} uses the interface {work.interface}, which {backend} does not have"
        )
    variants = {"history": history, "planted": planted, "rehearsals": rehearsals}
    chosen = [name for name, is_chosen in variants.items() if is_chosen]
    defines = (f"-D{back.define}", *(f"-DDURASIM_{name.upper()}" for name in chosen))
    header = arguments_header(workload, backend, history=history, planted=planted)
    name = "-".join([work.name, back.name, *chosen])
    if flags or is_path(work.program):
        return _build_own(name, work.source, header, (*flags, *defines), progress)
    return _build(name, work.source, header, defines, progress)


def build_all(progress: Progress | None = None, only: Sequence[str] = ()) -> dict[tuple[str, str], Path]:
    """Builds every workload, or the given ones, with every runtime of its interface.

    Returns the executables by (workload, backend).
    """
    works = [work for work in workloads() if not only or work.name in only]
    pairs = [(work.name, back.name) for work in works for back in backends() if work.interface in back.interfaces]
    with ThreadPoolExecutor(max_workers=PARALLEL_BUILDS) as pool:
        programs = pool.map(lambda pair: build(pair[0], pair[1], progress), pairs)
        return dict(zip(pairs, programs, strict=True))


def compile_program(source: str | Path, output: str | Path, flags: Sequence[str] = ()) -> Path:
    """Compiles a C++20 source file of the user to a static RV64GC executable at ``output`` and returns that path.

    The headers of durasim are on the include path; a program that uses ``durasim/tx.h`` passes the define of a backend,
    for example ``-DDURASIM_BACKEND=markers``. Raises ToolchainError.
    """
    source, output = Path(source), Path(output)
    if not source.is_file():
        raise ToolchainError(f"the source file {source} does not exist")
    return compile_file(source, output, flags)


def compile_file(source: Path, output: Path, flags: Sequence[str] = ()) -> Path:
    """Compiles or links one file with the headers of durasim on the include path. Raises ToolchainError."""
    return _compile_own(source, output, (*_include_flags(), *flags))


_STAMP_HEADERS = ("tm.h", "thread.h", "memory.h", "timer.h")
# Names in the symbol table of an object.
_BEGINS_TRANSACTION = b"durasim_stamp_enter\0"
_STAMP_OWN_FUNCTIONS = ("thread_startup", "memory_init")


def build_stamp(sources: Sequence[str | Path], backend: str, output: str | Path, flags: Sequence[str] = ()) -> Path:
    """Builds C sources that use the macros of STAMP (``durasim/stamp/tm.h``) with a transaction runtime.

    ``flags`` are additional flags for the C compiler, such as ``-I`` and ``-D``. Returns ``output``, a static RV64GC
    executable. Raises ToolchainError if the runtime is unknown, a source is missing, the compiler reports an error, or
    no source has a transaction.
    """
    define = f"-D{backend_named(backend).define}"
    folder = guest_folder()
    headers = folder / "include" / "durasim" / "stamp"
    # A source in STAMP's lib/ finds the headers in its own folder first, independent of the include path. Include ours
    # before them, with their include guards defined. STM selects the parallel form of a program.
    included = [flag for name in _STAMP_HEADERS for flag in ("-include", str(headers / name))]
    of_c = (f"-I{headers}", *_include_flags(), define, "-DSTM", *included, *flags)
    with tempfile.TemporaryDirectory(prefix="durasim-") as place:
        objects = []
        for number, source in enumerate(map(Path, sources)):
            if source.suffix != ".c":
                raise ToolchainError(f"{source} is not a C source: its name does not end in .c")
            if not source.is_file():
                raise ToolchainError(f"the source file {source} does not exist")
            made = Path(place) / f"{number}-{source.stem}.o"
            objects.append(str(_compile_own(source, made, ("-x", "c", "-std=gnu17", "-c", *of_c))))
        if not any(_BEGINS_TRANSACTION in Path(each).read_bytes() for each in objects):
            raise ToolchainError("no source starts a transaction: TM_BEGIN of durasim/stamp/tm.h is never used")
        linked = (*_include_flags(), define, *objects, "-Wl,--wrap=free")
        try:
            return _compile_own(folder / "stamp" / "stamp.cpp", Path(output), linked)
        except ToolchainError as error:
            if any(f"symbol: {name}" in str(error) for name in _STAMP_OWN_FUNCTIONS):
                raise ToolchainError(
                    "a source defines the threads or the memory of STAMP, which durasim provides: "
                    "leave thread.c and memory.c out"
                ) from error
            raise


# Only the first compilation with an empty cache of the compiler is slow; two concurrent ones are not faster.
_first_build = threading.Lock()


def _build(name: str, source: Path, header: str, defines: tuple[str, ...], progress: Progress | None) -> Path:
    using = _compiler_of_workloads()
    program = build_folder() / "guest" / f"{name}-{_digest(source, header, using, defines)}"
    if program.is_file():
        return program
    packed = prebuilt()
    if packed is not None and (content := packed.program(program.name)) is not None:
        return _write_program(program, content)
    if not using.command and compiler().version != using.version:
        # The sources were changed: another compiler than that of the packed programs compiles them.
        using = compiler()
        program = program.with_name(f"{name}-{_digest(source, header, using, defines)}")
        if program.is_file():
            return program
    say = progress or (lambda _line: None)
    with _first_build:
        fresh = using.is_zig and not _zig_cache().is_dir()
        if fresh:
            say(f"compiling the C++ library of {using.description} once, which takes a minute or two")
            say(f"building {name}")
            _compile_with_header(source, program, header, defines)
    if not fresh:
        say(f"building {name}")
        _compile_with_header(source, program, header, defines)
    say(f"built {name}: {program.stat().st_size} bytes")
    return program


def _build_own(name: str, source: Path, header: str, flags: tuple[str, ...], progress: Progress | None) -> Path:
    """Builds a workload that may include files of the user; it is built again when one of these has changed."""
    key = _digest(source, f"{source.resolve()}\0{header}", compiler(), flags)
    base = build_folder() / "guest" / f"{name}-{key}"
    if (program := kept_builds.built_before(base)) is not None:
        return program
    if progress is not None:
        progress(f"building {name}")
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        with _first_build, tempfile.TemporaryDirectory(prefix=".durasim-", dir=base.parent) as folder:
            started_ns, built, listed = time.time_ns(), Path(folder) / name, Path(folder) / "included"
            _compile_with_header(source, built, header, ("-MMD", f"-MF{listed}", *flags))
            return kept_builds.keep(base, built, listed, started_ns)
    except OSError as error:
        raise ToolchainError(f"cannot write to {base.parent}: {error.strerror}") from error


def _write_program(program: Path, content: bytes) -> Path:
    """Writes a program to a temporary file and renames it, so that readers never see a partial one."""
    try:
        with _partial(program) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise ToolchainError(f"cannot write to {program.parent}: {error.strerror}") from error
    return program


def _compile_with_header(source: Path, program: Path, header: str, defines: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="durasim-") as folder:
        (Path(folder) / "durasim_arguments.h").write_text(header, encoding="utf-8")
        flags = (*_include_flags(), f"-I{folder}", *defines)
        try:
            _compile(source, program, (*_precompiled(), *flags))
        except ToolchainError:
            # The precompiled header may be outdated or not fit on the disk. Any other problem occurs again.
            _compile(source, program, flags)


def _precompiled() -> tuple[str, ...]:
    """Returns the flags for zig to use the precompiled headers of the C++ library; the program does not change."""
    using, package = compiler(), importlib.util.find_spec("ziglang")
    if not using.is_zig or package is None or package.origin is None:
        return ()
    headers = guest_folder() / "standard_headers.hpp"
    # The compiler refuses a precompiled header after a file was changed or moved.
    state = (using, package.origin, state_of(Path(package.origin)), headers, state_of(headers))
    made = build_folder() / "guest" / f"standard_headers-{hashlib.sha256(repr(state).encode()).hexdigest()[:16]}.pch"
    return ("-include-pch", str(made if made.is_file() else _compile(headers, made, ("-x", "c++-header"))))


def flags_of_own_programs() -> tuple[str, ...]:
    """Returns the flags for programs of the user: with debug information, from which `durasim crash` names lines."""
    return (*(flag for flag in compiler().flags if flag != _STRIP), _DEBUG)


def _compile_own(source: Path, output: Path, flags: tuple[str, ...]) -> Path:
    """Compiles a source of a program of the user, see `_compile`."""
    return _compile(source, output, flags, flags_of_own_programs())


def _compile(source: Path, output: Path, flags: tuple[str, ...], general: tuple[str, ...] | None = None) -> Path:
    """Compiles a source, so that readers never see a partial program. Returns the output.

    `general` are the flags for all sources, those of workloads if not given.
    """
    using = compiler()
    environment = dict(os.environ)
    if using.is_zig:
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(_zig_cache()))
        environment.setdefault("ZIG_LOCAL_CACHE_DIR", str(_zig_cache()))
    with _partial(output) as partial:
        command = [*using.command, *(general or using.flags), *flags, str(source), "-o", str(partial)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise ToolchainError(f"{using.description} could not compile {source}", done.stdout + done.stderr)
    return output


@contextlib.contextmanager
def _partial(output: Path) -> Iterator[Path]:
    """Gives a temporary file that becomes the executable `output` at the end, unless an error is raised."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    except OSError as error:
        raise ToolchainError(f"cannot write to {output.parent}: {error.strerror}") from error
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o755)
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)


def _include_flags() -> tuple[str, ...]:
    folder = guest_folder()
    return (f"-I{folder / 'include'}", f"-I{folder}")


def _zig_cache() -> Path:
    return build_folder() / "zig-cache"


def _digest(source: Path, header: str, using: Compiler, defines: tuple[str, ...]) -> str:
    """Returns a hash of all inputs of a build: sources, headers, flags, compiler."""
    folder = guest_folder()
    digest = hashlib.sha256()
    texts = [("version", using.version), ("flags", " ".join(using.flags + defines)), ("arguments", header)]
    for path in sorted([source, *folder.rglob("*.h")]):
        name = path.relative_to(folder) if path.is_relative_to(folder) else path.name
        texts.append((str(name), path.read_text(encoding="utf-8")))
    for name, text in texts:
        digest.update(f"{name}\0{len(text)}\0{text}\0".encode())
    return digest.hexdigest()[:16]


def _version_of(command: list[str]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise ToolchainError(f"{shlex.join(command)} --version fails", done.stdout + done.stderr)
    return done.stdout


def _c_string(text: str) -> str:
    """Returns a C string literal in plain ASCII."""

    def escape(char: str) -> str:
        if char in '"\\':
            return "\\" + char
        return char if " " <= char <= "~" else "".join(f"\\{byte:03o}" for byte in char.encode())

    escaped = "".join(map(escape, text))
    return f'"{escaped}"'
