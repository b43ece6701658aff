"""`--reuse` answers a repeated run or crash from the store, and never one that writes files of the host."""

import json

import pytest

import command_line
import durasim as ds
from durasim.store.database import Store

RUN = ("run", "--workload", "array-swap", "--machine", "tiny", "--ops", "4", "--arg", "populate=8")
CRASH = ("crash", "--design", "tc", *RUN[1:], "--points", "5")


@pytest.fixture
def document(program, tmp_path):
    """Runs a command with a store and returns its document and whether it was simulated."""

    def of(*words, store="s.sqlite"):
        path = tmp_path / "out.json"
        ran = program(*words[:1], "--reuse", "--store", tmp_path / store, "--json", path, *words[1:])
        assert ran.returncode == 0, ran.stderr
        found = json.loads(path.read_text())
        # No two simulations take the same time.
        is_new = found["host"]["seconds"] not in seen
        seen.add(found["host"]["seconds"])
        return found, is_new

    seen = set()
    return of


@pytest.mark.parametrize("words", [RUN, CRASH])
def test_a_repeated_command_is_answered_from_the_store(document, words):
    first, is_new = document(*words)
    assert is_new
    assert document(*words) == (first, False)
    assert document(*words, "--seed", "2")[1]


def test_a_program_is_simulated_again_if_a_byte_of_it_or_of_its_environment_changes(document, hello):
    words = ("run", "--machine", "tiny", "--elf", hello)
    assert [document(*words)[1], document(*words)[1]] == [True, False]
    assert [document(*words, "--env", "A=b")[1], document(*words, "--env", "A=b")[1]] == [True, False]
    assert document(*words, "--env", "A=c")[1]
    hello.write_bytes(hello.read_bytes().replace(b"hello out", b"hello oUt"))
    assert document(*words)[1]


def test_runs_that_write_are_simulated_each_time(document, tmp_path, hello):
    pool = tmp_path / "pool.bin"
    assert [document(*RUN, "--pool", pool)[1] for _ in range(2)] == [True, True]
    assert [document(*RUN, "--snapshot-at", "0", "--snapshot", tmp_path / "s")[1] for _ in range(2)] == [True, True]
    words = ("run", "--machine", "tiny", "--root", tmp_path / "files", "--elf", hello)
    (tmp_path / "files").mkdir()
    assert [document(*words, "--root-write")[1] for _ in range(2)] == [True, True]
    assert [document(*words)[1] for _ in range(2)] == [True, False], "without --root-write nothing is written"


def test_a_snapshot_is_read(document, tmp_path):
    snapshot = tmp_path / "a.snapshot"
    document(*RUN, "--snapshot-at", "0", "--snapshot", snapshot)
    words = (*RUN, "--from", snapshot)
    assert [document(*words)[1], document(*words)[1]] == [True, False]
    document(*RUN, "--snapshot-at", "0", "--snapshot", snapshot, "--seed", "2")
    assert document(*words, "--seed", "2")[1]


def test_a_store_requires_reuse(refused, tmp_path):
    for words in (RUN, CRASH):
        refused((*words, "--store", tmp_path / "s.sqlite"), 2, "store: requires --reuse")


def test_a_comparison_simulates_only_what_is_not_stored(program, tmp_path):
    words = ("compare", "--workloads", "array-swap", "--machine", "tiny", "--ops", "4", "--arg", "populate=8")

    def compared(designs, *more):
        ran = program(*words, "--designs", designs, "--json", tmp_path / "out.json", *more)
        assert ran.returncode == 0, ran.stderr
        return json.loads((tmp_path / "out.json").read_text()), ran.stderr

    few, said = compared("opt,tc")
    assert "store" not in said
    again, said = compared("opt,tc")
    assert (again, "2 of 2 results are from the store" in said) == (few, True)
    more, said = compared("opt,tc,hercules")
    assert (more["runs"][:2], "2 of 3 results are from the store" in said) == (few["runs"], True)
    new, said = compared("opt,tc", "--no-store")
    assert [run["digest"] for run in new["runs"]] == [run["digest"] for run in few["runs"]]
    assert (new["runs"] != few["runs"], "store" in said) == (True, False)
    # A single run of a comparison is the run that `durasim run` stores.
    ran = program("run", "--design", "tc", "--workload", *words[2:], "--reuse", "--json", "-")
    assert json.loads(ran.stdout) == few["runs"][1]


def test_a_comparison_without_a_place_for_results_is_made_and_says_so(program, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/nothing")
    words = ("--designs", "opt", "--workloads", "array-swap", "--machine", "tiny", "--ops", "4", "--arg", "populate=8")
    ran = program("compare", *words)
    assert ran.returncode == 0
    assert "array-swap" in ran.stdout
    assert "warning: results are not kept" in ran.stderr and "--store FILE" in ran.stderr
    # A place that the user names is not left out.
    assert program("compare", *words, "--store", "/proc/nothing/s.sqlite").returncode == 4


def test_runs_at_a_smaller_scale_are_stored_with_the_snapshot_that_they_share(tmp_path):
    """The first run of a program makes the snapshot, and its key stands for it in the keys of the others."""
    options = {"workloads": ["hercules-beyond-array-swap"], "scale": "quick", "ops": 60, "jobs": 2}
    options |= {"workload_args": {"warm-ops": 10, "populate": 400}}
    store = tmp_path / "s.sqlite"

    def compared(*designs, **more):
        return {run.design: run for run in ds.compare(designs=designs, **options | {"store": store} | more).runs}

    few = compared("opt", "hercules")
    (snapshot,) = tmp_path.glob("s.sqlite.snapshots/*")
    assert compared("opt", "hercules") == few
    # A further design starts from the snapshot; when it is lost, the first run makes it again, with equal bytes.
    more = compared("opt", "hercules", "tc")
    assert {"opt": more["opt"], "hercules": more["hercules"]} == few
    data = snapshot.read_bytes()
    snapshot.unlink()
    last = compared("opt", "hercules", "tc", "kiln")
    assert (last["hercules"], last["tc"]) == (few["hercules"], more["tc"])
    assert (last["opt"].digest, last["opt"] == few["opt"]) == (few["opt"].digest, False)
    assert snapshot.read_bytes() == data
    new = compared("opt", "hercules", "tc", "kiln", store=False)
    assert {name: run.digest for name, run in new.items()} == {name: run.digest for name, run in last.items()}
    # Another first run makes another snapshot.
    assert compared("hercules", "opt", "tc")["tc"] != more["tc"]
    # Stored commands make their runs alone.
    with Store(store) as opened:
        commands = {entry.design: entry.command for entry in reversed(opened.entries())}
    for design in ("opt", "tc"):
        ran = command_line.run(*commands[design].split()[1:], "--json", tmp_path / "run.json")
        assert ran.returncode == 0, ran.stderr
        assert json.loads((tmp_path / "run.json").read_text())["digest"] == last[design].digest
