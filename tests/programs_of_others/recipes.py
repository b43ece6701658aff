"""Download and compilation of third-party programs. Their sources are never stored in this repository.

`cargo vendor` downloads the packages that sources/Cargo.toml names and holds them to the checksums of its Cargo.lock.
Only the C sources in them are used; no build script of a package runs.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from durasim.programs import toolchain

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
DRIVERS = HERE / "drivers"
DOWNLOADED = HERE.parents[1] / "build" / "sources-of-others"
C = ("-x", "c", "-std=gnu17", "-pthread", "-w")
GNU_C, GNU_CXX = "riscv64-linux-gnu-gcc", "riscv64-linux-gnu-g++"
COMPILERS = ("zig", "gnu")


@dataclass(frozen=True)
class Recipe:
    """A program: its main source (a pattern), additional sources, folders of headers and definitions.

    Patterns start with the name of a package, or are drivers in the folder drivers/.
    """

    main: str
    sources: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    but: tuple[str, ...] = ()


XZ = "lzma-sys-*/xz-5.2/src"
LZMA_PARTS = ("common", "lzma", "lz", "check", "delta", "rangecoder", "simple")

RECIPES = {
    "sqlite_threads": Recipe(
        main="sqlite_threads.c",
        sources=("libsqlite3-sys-*/sqlite3/sqlite3.c",),
        headers=("libsqlite3-sys-*/sqlite3",),
        defines=("SQLITE_THREADSAFE=2", "SQLITE_OMIT_LOAD_EXTENSION"),
    ),
    # The tool itself, with its own main.
    "bzip2": Recipe(
        main="bzip2-sys-*/bzip2-*/bzip2.c",
        sources=tuple(
            f"bzip2-sys-*/bzip2-*/{part}.c"
            for part in ("blocksort", "bzlib", "compress", "crctable", "decompress", "huffman", "randtable")
        ),
        defines=("_FILE_OFFSET_BITS=64",),
    ),
    # The tool itself, with worker threads.
    "xz": Recipe(
        main=f"{XZ}/xz/main.c",
        sources=(
            f"{XZ}/xz/*.c",
            *(f"{XZ}/liblzma/{part}/*.c" for part in LZMA_PARTS),
            *(f"{XZ}/common/tuklib_{part}.c" for part in ("cpucores", "physmem", "open_stdxxx", "progname", "exit")),
            *(f"{XZ}/common/tuklib_{part}.c" for part in ("mbstr_width", "mbstr_fw")),
        ),
        headers=(
            f"{XZ}/common",
            f"{XZ}/liblzma/api",
            *(f"{XZ}/liblzma/{part}" for part in LZMA_PARTS),
            "lzma-sys-*",
        ),
        defines=(
            "HAVE_CONFIG_H",
            "HAVE_ENCODERS",
            "HAVE_DECODERS",
            "_GNU_SOURCE",
            "TUKLIB_SYMBOL_PREFIX=lzma_",
            "TUKLIB_CPUCORES_SYSCONF",
            "TUKLIB_PHYSMEM_SYSCONF",
            "ASSUME_RAM=128",
            'LOCALEDIR="/"',
            'PACKAGE_NAME="XZ Utils"',
            'PACKAGE_BUGREPORT="nobody"',
            'PACKAGE_URL="nowhere"',
            "HAVE_CLOCK_GETTIME",
            "HAVE_DECL_CLOCK_MONOTONIC",
            "HAVE_FUTIMENS",
            "HAVE_DECL_PROGRAM_INVOCATION_NAME",
        ),
        but=("*_tablegen.c", "*_small.c", "*/xz/main.c"),
    ),
    "zstd_round_trip": Recipe(
        main="zstd_round_trip.c",
        sources=tuple(
            f"zstd-sys-*/zstd/lib/{part}/*.c" for part in ("common", "compress", "decompress", "dictBuilder")
        ),
        headers=("zstd-sys-*/zstd/lib",),
        defines=("ZSTD_MULTITHREAD", "ZSTD_DISABLE_ASM"),
    ),
    "lz4_round_trip": Recipe(
        main="lz4_round_trip.c",
        sources=tuple(f"lz4-sys-*/liblz4/lib/{part}.c" for part in ("lz4", "lz4hc", "lz4frame", "xxhash")),
        headers=("lz4-sys-*/liblz4/lib",),
    ),
    "zlib_files": Recipe(
        main="zlib_files.c",
        sources=("libz-sys-*/src/zlib/*.c",),
        headers=("libz-sys-*/src/zlib",),
        defines=("HAVE_UNISTD_H",),
    ),
    "parallel_sort": Recipe(main="parallel_sort.cpp"),
}


def download() -> None:
    """Downloads missing packages to build/. Raises subprocess.CalledProcessError without a network."""
    stamp = DOWNLOADED / ".lock"
    wanted = (SOURCES / "Cargo.lock").read_bytes()
    if stamp.is_file() and stamp.read_bytes() == wanted:
        return
    shutil.rmtree(DOWNLOADED, ignore_errors=True)
    command = ["cargo", "vendor", "--quiet", "--locked", "--versioned-dirs", DOWNLOADED]
    subprocess.run(command, cwd=SOURCES, check=True, stdout=subprocess.DEVNULL)
    stamp.write_bytes(wanted)


def _files(pattern: str) -> list[Path]:
    folder = DOWNLOADED if "/" in pattern or pattern.endswith("*") else DRIVERS
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(f"nothing in {folder} is called {pattern}")
    return found


def compile_recipe(name: str, compiler: str, folder: Path) -> Path:
    """Compiles the program `name` with "zig" or "gnu" into `folder` and returns the executable."""
    recipe = RECIPES[name]
    (main,) = _files(recipe.main)
    sources = [file for pattern in recipe.sources for file in _files(pattern)]
    sources = [file for file in sources if not any(file.match(pattern) for pattern in recipe.but)]
    cxx = main.suffix == ".cpp"
    headers = [folder for pattern in recipe.headers for folder in _files(pattern)]
    flags = [
        *(() if cxx else C),
        *(f"-D{define}" for define in recipe.defines),
        *(f"-I{folder}" for folder in (*headers, DRIVERS)),
        *map(str, sources),
    ]
    output = folder / name
    if compiler == "zig":
        return toolchain.compile_program(main, output, flags)
    standard = ("-std=c++20",) if cxx else ()
    driver = GNU_CXX if cxx else GNU_C
    subprocess.run([driver, "-O2", "-static", "-pthread", *standard, *flags, main, "-o", output, "-lm"], check=True)
    return output
