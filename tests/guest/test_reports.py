"""Reports of workloads about their transactions, and their dumps (guest/include/durasim/history.h)."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
from guest_programs import BACKENDS, ROOT, WORKLOADS, NativeBuild, execute, pairs

MAGIC = b"durasim-dump/1\n"
MARKERS = {
    name: int(number)
    for name, number in re.findall(
        r"#define DURASIM_MARKER_(\w+) (\d+)", (ROOT / "guest/include/durasim/encodings.h").read_text()
    )
}


def dump(command: list[str | Path]) -> tuple[dict[int, int], bytes]:
    """Runs a program that dumps; returns its objects and the output after them."""
    written = subprocess.run([str(part) for part in command], capture_output=True, check=True, timeout=300).stdout
    assert written.startswith(MAGIC)
    (count,) = struct.unpack_from("<Q", written, len(MAGIC))
    begin = len(MAGIC) + 8
    words = struct.unpack_from(f"<{2 * count}Q", written, begin)
    pairs = list(zip(words[::2], words[1::2], strict=True))
    assert len(dict(pairs)) == count, "an object occurs twice"
    rest = written[begin + 16 * count :]
    assert rest.startswith(b"\n")
    return {key: version for key, version in pairs if version != 0}, rest[1:]


def replay(report: Path) -> tuple[dict[int, int], int]:
    """The objects after all transactions, and their number; each transaction must read the previous results."""
    state: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    pending: dict[str, list[tuple[int, int, int]]] = {}
    parts: dict[str, list[int]] = {}
    commits = 0
    for line in report.read_text().splitlines():
        thread, marker, argument = line.split()
        number, value = int(marker), int(argument)
        if number == MARKERS["TX_BEGIN"]:
            pending[thread] = []
        elif number in (MARKERS["OP_OBJECT"], MARKERS["OP_OLD"]):
            parts.setdefault(thread, []).append(value)
        elif number == MARKERS["OP_NEW"]:
            key, old = parts.pop(thread)
            pending[thread].append((key, old, value))
        elif number == MARKERS["TX_COMMIT"]:
            commits += 1
            for key, old, new in pending.pop(thread):
                assert state.get(key, 0) == old
                # An object may be removed and inserted again with another version.
                if new not in (old, 0):
                    assert (key, new) not in seen, "a version comes again"
                    seen.add((key, new))
                state[key] = new
    return {key: version for key, version in state.items() if version != 0}, commits


# A program without persistence reports nothing.
REPORTING = [backend for backend in BACKENDS if backend != "plain"]


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.long), 3])
@pytest.mark.parametrize(("workload", "backend"), pairs(REPORTING, "markers"))
def test_reports_lead_to_the_dump(
    native: NativeBuild, tmp_path: Path, workload: str, backend: str, threads: int
) -> None:
    program, pool = native(workload, backend, hooks="history", history=True), ["--pool-path", tmp_path / "pool"]
    sizes = ["--populate", "50", "--ops", "400", "--threads", threads, "--pool-bytes", str(16 << 20)]
    words = ["--shared-lines", "false"] if workload == "false-sharing" else []
    outcome = execute([program, "run", *pool, *sizes, *words], DURASIM_TEST_REPORT=tmp_path / "report")
    assert outcome.code == 0, outcome
    state, commits = replay(tmp_path / "report")
    assert commits >= 1 + 50 + 400
    for command, said in (
        (["dump"], b""),
        (["check", "--dump"], b"operations=450 consistent\n"),
        (["recover-and-check", "--dump"], b"operations=450 consistent\n"),
    ):
        dumped, rest = dump([program, *command, *pool])
        assert dumped == state
        assert rest.endswith(said) and (said or not rest)
    # A queue returns its inputs; threads without locks have a word each.
    assert len(state) > {"queue": 20, "unlocked": 5}.get(workload, 50)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_an_empty_pool_has_no_objects(native: NativeBuild, tmp_path: Path, workload: str) -> None:
    program = native(workload, "markers", hooks="history", history=True)
    assert dump([program, "check", "--dump", "--pool-path", tmp_path / "none"])[0] == {}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_torn_pool_is_dumped_and_then_refused(native: NativeBuild, tmp_path: Path, workload: str) -> None:
    """For all contents of the pool, the dump terminates and the check reports the problem."""
    program, pool = native(workload, "markers", hooks="history", history=True), tmp_path / "pool"
    arguments = ["--pool-path", pool]
    assert execute([program, "run", *arguments, "--populate", "40", "--ops", "40"]).code == 0
    whole = pool.read_bytes()
    for first in range(4096, min(len(whole), 16384), 1024):
        for filling in (b"\0", b"\xff", whole[first + 1 : first + 9]):
            torn = bytearray(whole)
            torn[first : first + 512] = (filling * 512)[:512]
            pool.write_bytes(torn)
            done = subprocess.run(
                [program, "check", "--dump", *arguments], capture_output=True, timeout=60, check=False
            )
            assert done.returncode in (0, 1), (first, filling, done)
            assert MAGIC in done.stdout


def test_ordinary_builds_have_none_of_it(native: NativeBuild, tmp_path: Path) -> None:
    program = native("btree", "markers", history=False)
    assert execute([program, "dump"]).code == 2
    assert "no argument" in execute([program, "check", "--dump"]).text
    hooked = native("btree", "markers", hooks="history", history=False)
    report = tmp_path / "report"
    assert execute([hooked, "run", "--pool-path", tmp_path / "pool"], DURASIM_TEST_REPORT=report).code == 0
    numbers = {int(line.split()[1]) for line in report.read_text().splitlines()}
    assert numbers and numbers.isdisjoint({MARKERS["OP_OBJECT"], MARKERS["OP_OLD"], MARKERS["OP_NEW"]})
