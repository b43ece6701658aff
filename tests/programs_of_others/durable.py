"""Durable programs of others: no crash harms them, and without a flush or fence durasim names a line of its function.

`make test-programs` runs this. It downloads the sources of PMDK and LMDB from Debian's archive and holds them to the
hashes below; none of their code is in this repository. The programs in drivers/durable include them. A flush or fence
is named by the function that it is in, the function that it calls, and its number there. The hash of the tree draws one
of each program; with --all, each of them is removed in turn.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipes import DRIVERS, C

import durasim as ds
from durasim.documents.causes import cause_lines
from durasim.programs import toolchain

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "durable-of-others"
DEBIAN = os.environ.get("DEBIAN_ARCHIVE", "http://deb.debian.org/debian").rstrip("/")
TIMEOUT_S = 60
ALL_ORDERS = ("clean", "reorder", "evict")


@dataclass(frozen=True)
class Archive:
    """Sources as their authors have released them, in Debian's archive."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Call:
    """A call in a source: the number of those of `name` in a function, from 1."""

    function: str
    name: str
    number: int = 1


@dataclass(frozen=True)
class Fix:
    """A repair of a call: a word among its arguments takes the place of another.

    Without it stores of the function `blamed` are lost.
    """

    call: Call
    wrong: str
    right: str
    blamed: str


@dataclass(frozen=True)
class Upstream:
    """A program.

    Attributes:
        name: Its driver in drivers/durable, without the suffix.
        archive: The name of its sources in `ARCHIVES`.
        source: The file that the driver includes.
        headers: Folders of headers in the archive.
        others: Further sources in the archive.
        places: Its flushes and fences whose removal loses stores of their own function.
        faults: The power failures that it is made for.
        points: The number of persist events at which power fails.
        fix: The repair without which it is wrong as released, if it is.
        flags: Further flags of the compiler.
    """

    name: str
    archive: str
    source: str
    headers: tuple[str, ...]
    places: tuple[Call, ...]
    others: tuple[str, ...] = ()
    faults: tuple[str, ...] = ALL_ORDERS
    points: int = 300
    fix: Fix | None = None
    flags: tuple[str, ...] = ()


ARCHIVES = {
    "pmdk": Archive(
        "pool/main/p/pmdk/pmdk_1.13.1.orig.tar.gz",
        "d5e5eded825cd6d742ec836352001e8cb262e428926e767f55498f16c2d977e1",
    ),
    "lmdb": Archive(
        "pool/main/l/lmdb/lmdb_0.9.31.orig.tar.gz",
        "d35d4f6f46313d62fd342c9dcbf574432919ce5e802d2b6cbe2ebd549821e5c4",
    ),
}
PROGRAMS = (
    Upstream(
        "redo",
        "pmdk",
        "src/examples/libpmem2/redo/redo.c",
        headers=("src/include",),
        places=(
            Call("redo_apply", "Flush"),
            Call("redo_apply", "Drain"),
            Call("redo_commit", "Persist", 2),
            Call("list_add", "Flush"),
        ),
        # The address of the pointer is flushed in place of the log.
        fix=Fix(Call("redo_commit", "Persist", 1), "&redo", "redo", blamed="redo_add"),
    ),
    Upstream(
        "list",
        "pmdk",
        "src/examples/pmreorder/pmreorder_list.c",
        headers=("src/include",),
        places=(
            Call("list_insert_consistent", "pmem_persist", 1),
            Call("list_insert_consistent", "pmem_persist", 2),
        ),
    ),
    Upstream(
        "log",
        "pmdk",
        "src/examples/libpmem2/log/log.c",
        headers=("src/include", "src/examples"),
        places=(
            Call("log_header_update", "ctx->persist_fn"),
            Call("log_appendv", "ctx->persist_fn"),
            Call("log_rewind", "ctx->persist_fn"),
        ),
    ),
    Upstream(
        "pmemlog",
        "pmdk",
        "src/libpmemlog/log.c",
        headers=("src/include", "src/core", "src/common", "src/libpmem", "src/libpmem2", "src/libpmemlog"),
        others=("src/core/os_thread_posix.c",),
        places=(Call("log_persist", "pmem_persist"), Call("pmemlog_rewind", "pmem_persist")),
        flags=("-ffunction-sections", "-Wl,--gc-sections"),
    ),
    Upstream(
        "lmdb",
        "lmdb",
        "libraries/liblmdb/mdb.c",
        headers=("libraries/liblmdb",),
        others=("libraries/liblmdb/midl.c",),
        places=(Call("mdb_env_write_meta", "MDB_MSYNC"),),
        # It relies on pages of the medium that are written whole.
        faults=("clean",),
        points=100,
    ),
)


def unpacked(name: str) -> Path:
    """Downloads sources, unless they are there, and returns their folder.

    Raises:
        OSError: The archive cannot be reached.
    """
    archive, folder = ARCHIVES[name], FOLDER / "sources" / name
    if (folder / ".complete").is_file():
        return folder
    with urllib.request.urlopen(f"{DEBIAN}/{archive.path}", timeout=TIMEOUT_S) as answer:  # noqa: S310 - a fixed address
        data = answer.read()
    found = hashlib.sha256(data).hexdigest()
    if found != archive.sha256:
        sys.exit(f"{archive.path} has the hash {found} in place of {archive.sha256}")
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / Path(archive.path).name
    packed.write_bytes(data)
    with tarfile.open(packed) as members:
        members.extractall(folder, filter="data")
    (folder / ".complete").touch()
    return folder


def _top(folder: Path) -> Path:
    """Returns the one folder that an archive has at its top."""
    (top,) = (path for path in folder.iterdir() if path.is_dir())
    return top


def _place_of(text: str, call: Call) -> tuple[int, int]:
    """Returns begin and end of a call in a source in which each function begins in the first column."""
    begin = re.search(rf"^{call.function}\(", text, re.MULTILINE)
    if begin is None:
        raise LookupError(f"no function {call.function}")
    end = text.index("\n}\n", begin.start())
    found = list(re.compile(rf"(?<!\w){re.escape(call.name)}\(").finditer(text, begin.end(), end))[call.number - 1]
    start, at, depth = found.start(), found.end(), 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return start, at


def without(text: str, call: Call) -> str:
    """Returns a source with 0 in place of a call. Lines keep their numbers."""
    start, end = _place_of(text, call)
    return text[:start] + "(0)" + "\n" * text.count("\n", start, end) + text[end:]


def fixed(text: str, fix: Fix | None) -> str:
    """Returns a source with the repair of a call."""
    if fix is None:
        return text
    start, end = _place_of(text, fix.call)
    return text[:start] + text[start:end].replace(fix.wrong, fix.right, 1) + text[end:]


def crashed(program: Upstream, case: str, text: str) -> ds.CrashResult:
    """Compiles a program with this text of its source, and crashes it."""
    top, folder = _top(unpacked(program.archive)), FOLDER / program.name / case
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / Path(program.source).name
    source.write_text(text, encoding="utf-8")
    drivers = DRIVERS / "durable"
    headers = [top / name for name in program.headers]
    # The folder of the original has the headers that it includes by their names alone.
    headers.append((top / program.source).parent)
    others = [top / name for name in program.others]
    if program.archive == "pmdk":
        others.append(drivers / "pmem.c")
    # Return addresses stay in their register, where causes look for callers.
    flags = [
        *C,
        "-fomit-frame-pointer",
        *program.flags,
        f'-DUPSTREAM="{source}"',
        *(f"-I{header}" for header in headers),
        *map(str, others),
    ]
    elf = toolchain.compile_program(drivers / f"{program.name}.c", folder / program.name, flags)
    return ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run"], check_args=["check"], oracles=["output"],
        faults=program.faults, points=program.points, variants=4,
    )  # fmt: skip


def blamed_functions(result: ds.CrashResult) -> set[str]:
    """Returns the functions with a lost store, those into which they are inlined, and their callers."""
    found = (result.causes or {"found": []})["found"]
    stores = [store for cause in found for store in cause["stores"]]
    frames = [frame for store in stores for frame in (store["at"], *store["inlined_into"], *store["callers"])]
    return {frame["function"] for frame in frames if frame.get("function")}


def _tree() -> str:
    command = ["git", "rev-parse", "HEAD^{tree}"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _shown(result: ds.CrashResult) -> str:
    return f"{result.trials} crashes, {result.violations} violations"


def _wrong(program: Upstream, what: str, function: str, case: str, text: str) -> bool:
    """Crashes a wrong program, prints the causes, and returns whether a store of this function is blamed."""
    result = crashed(program, case, text)
    is_blamed = result.violations > 0 and function in blamed_functions(result)
    print(f"{program.name} {what}: {_shown(result)}, {'' if is_blamed else 'NOT '}blamed on {function}")
    for line in cause_lines(result.causes) if result.causes is not None else ():
        print(f"    {line}")
    return is_blamed


def tried(program: Upstream, every: bool) -> Iterator[bool]:
    """Yields whether each case of a program ends as it has to."""
    released = (_top(unpacked(program.archive)) / program.source).read_text(encoding="utf-8")
    if program.fix is not None:
        yield _wrong(program, "as released", program.fix.blamed, "released", released)
    right = fixed(released, program.fix)
    result = crashed(program, "right", right)
    print(f"{program.name}{' repaired' if program.fix else ''}: {_shown(result)}")
    for failure in result.failures[:1]:
        print(f"    {failure.message}")
    yield result.trials > 0 and result.violations == 0
    chosen = random.Random(f"{_tree()} {program.name}").choice(program.places)  # noqa: S311 - a draw for tests
    for number, call in enumerate(program.places):
        if every or call == chosen:
            what = f"without {call.name} {call.number} of {call.function}"
            yield _wrong(program, what, call.function, f"without-{number}", without(right, call))


def main() -> None:
    """Crashes the programs, and prints the verdicts."""
    parser = argparse.ArgumentParser(description="Crash durable programs of others, whole and with a flush removed.")
    parser.add_argument("--all", action="store_true", help="remove every flush and fence in turn, not a drawn one")
    parser.add_argument("--only", choices=[program.name for program in PROGRAMS], help="this program alone")
    given = parser.parse_args()
    ended: list[bool] = []
    for program in PROGRAMS:
        if given.only in (None, program.name):
            try:
                unpacked(program.archive)
            except urllib.error.HTTPError as error:
                sys.exit(f"{DEBIAN} has {ARCHIVES[program.archive].path} no more ({error}): name another version")
            except OSError as error:
                print(f"durable programs of others are not tried: {DEBIAN} cannot be reached ({error})")
                return
            ended += tried(program, given.all)
    print(f"{sum(ended)} of {len(ended)} cases end as they have to")
    sys.exit(0 if all(ended) else 1)


if __name__ == "__main__":
    main()
