"""The store: rights, journals, versions, damage, full disks, and several studies at once."""

import json
import random
import sqlite3
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import jsonschema
import polars
import pytest
from in_process import InProcess, sweep

import command_line
import durasim as ds
from durasim.documents.toml_files import schema_named
from durasim.store import database, journal
from durasim.store.database import Store, digest_of
from durasim.store.location import default_path

REQUEST = {"design": "tc", "workload": "btree", "machine": "tiny"}
LATENCIES = {"axes": {"llc.latency_cycles": [20, 30, 40]}}


def document(number=0, size=10):
    return {"digest": f"{number:032x}", "host": {"seconds": 1.0}, "text": random.Random(number).randbytes(size).hex()}  # noqa: S311


def filled(path, count=3, size=10):
    with Store(path) as store:
        for number in range(count):
            store.put(f"key{number}", "run", REQUEST, document(number, size), seconds=1.0, study="filled")
    return path


def results(*words, code=0):
    ran = command_line.run("results", *words)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout if code < 2 else ran.stderr


def test_the_default_store_is_in_the_data_folder_of_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_path() == tmp_path / "data" / "durasim" / "results.sqlite"
    filled(default_path())
    assert stat.S_IMODE(default_path().parent.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in default_path().parent.iterdir())
    assert "key2" in results("list")


def test_a_document_is_stored_once_and_returned_unchanged(tmp_path):
    with Store(filled(tmp_path / "s.sqlite", size=5000)) as store:
        assert store.get("key1") == document(1, 5000)
        assert store.get("key9") is None
        assert not store.put("key1", "run", REQUEST, document(2), seconds=1.0)
        assert (store.count(), store.get("key1")) == (3, document(1, 5000))
        assert store.request("key1") == REQUEST


def test_a_network_file_system_gets_a_rollback_journal(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    line = "36 35 98:0 / {} rw,noatime master:1 - {} /dev/root rw\n"
    shared = tmp_path / "a share"
    (shared / "below").mkdir(parents=True)
    escaped = str(shared).replace(" ", "\\040")
    for system, expected in (("nfs4", "delete"), ("fuse.sshfs", "delete"), ("ext4", "wal"), ("overlay", "wal")):
        mounts.write_text(line.format("/", "ext4") + line.format(escaped, system))
        assert journal.journal_for(shared / "below", str(mounts)) == expected
        assert journal.journal_for(tmp_path, str(mounts)) == "wal"
    assert journal.journal_for(shared, str(tmp_path / "none")) == "delete"
    path = filled(tmp_path / "s.sqlite")
    for expected in ("delete", "wal"):
        monkeypatch.setattr(database, "journal_for", lambda _, expected=expected: expected)
        with Store(path) as store:
            assert store.count() == 3
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == (expected,)


def test_a_store_of_a_newer_version_and_other_databases_are_refused(tmp_path):
    newer, other, text = (tmp_path / name for name in ("newer.sqlite", "other.sqlite", "text.sqlite"))
    with sqlite3.connect(filled(newer)) as connection:
        connection.execute("PRAGMA user_version = 7")
    sentence = results("list", "--store", newer, code=2)
    assert "has version 7, and this durasim reads up to version 2: use a newer durasim, or another --store" in sentence
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE result (key TEXT)")
    assert "is a database of another program" in results("list", "--store", other, code=2)
    text.write_text("no database, " * 100)
    assert "is no store of results, or its first page is destroyed" in results("list", "--store", text, code=4)
    assert "there is no store of results" in results("list", "--store", tmp_path / "none", code=4)


def test_a_file_of_verdicts_becomes_a_store(tmp_path):
    path = tmp_path / "verdicts.sqlite"
    verdict = {"violations": 0, "host": {"seconds": 1.0}, "trials_per_s_per_core": 9.0}
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE verdict (key TEXT PRIMARY KEY, request TEXT, document TEXT)")
        rows = [("a", json.dumps(REQUEST), json.dumps(verdict)), ("b", json.dumps(REQUEST), '{"error": "refused"}')]
        connection.executemany("INSERT INTO verdict VALUES (?, ?, ?)", rows)
    with Store(path) as store:
        assert [(entry.key, entry.kind, entry.design) for entry in store.entries()] == [
            ("a", "crash", "tc"), ("b", "crash", "tc"),
        ]  # fmt: skip
        assert (store.get("a"), store.get("b")) == (verdict, {"error": "refused"})
        assert store.problems() == []
        assert store.find("a").digest == digest_of("crash", verdict) == digest_of("crash", verdict | {"host": {}})
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_damaged_page_is_reported_and_whole_results_are_salvaged(tmp_path):
    path, new = filled(tmp_path / "s.sqlite", 60, 2000), tmp_path / "new.sqlite"
    data = bytearray(path.read_bytes())
    # A page of the table in the middle of the file.
    page = len(data) // 4096 // 2
    data[page * 4096 : (page + 1) * 4096] = b"\xff" * 4096
    path.write_bytes(bytes(data))
    output = results("check", "--store", path, "--salvage", new, code=1)
    assert "results copied to" in output
    assert "no damage" in results("check", "--store", new)
    with Store(new) as store:
        assert 40 < store.count() < 60
        assert all(store.get(entry.key) == document(int(entry.key[3:]), 2000) for entry in store.entries())


def test_a_changed_document_is_reported_with_the_way_to_salvage(tmp_path):
    path = filled(tmp_path / "s.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE result SET document = ? WHERE key = 'key1'", (zlib.compress(b"{}"),))
    sentence = results("show", "key1", "--store", path, code=4)
    assert "the store is damaged (result key1: its checksum is wrong): `durasim results check --store" in sentence
    assert "--salvage NEW.sqlite` copies all whole results" in sentence
    assert "result key1: its checksum is wrong" in results("check", "--store", path, code=1)


def test_decompression_is_bounded(tmp_path, monkeypatch):
    path = filled(tmp_path / "s.sqlite", 1, 2000)
    monkeypatch.setattr(database, "_DOCUMENT_BYTES_MAX", 1000)
    with Store(path) as store, pytest.raises(ds.HostIoError, match="cut off, or larger than 1000 bytes"):
        store.get("key0")


def test_a_full_disk_keeps_what_was_stored(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store._connection.execute(f"PRAGMA max_page_count = {4 + store._value('PRAGMA page_count')}")
        stored = 0
        with pytest.raises(ds.HostIoError, match="the disk is full; all results stored before are kept"):
            for number in range(100):
                store.put(f"key{number}", "run", REQUEST, document(number, 1000), seconds=1.0)
                stored += 1
    with Store(path) as store:
        assert 0 < stored == store.count()
        assert store.problems() == []


def test_two_studies_at_once_store_each_point_once(tmp_path):
    path, others = tmp_path / "s.sqlite", []

    class Interrupted(InProcess):
        """Another study of the same points runs while this one waits for its first answer."""

        def answers(self):
            if not others:
                others.append(sweep(path, **LATENCIES))
            return super().answers()

    result = sweep(path, Interrupted(capacity=2), **LATENCIES)
    (other,) = others
    assert (other.simulated, result.simulated, result.reused) == (3, 2, 1)
    assert [point.digest for point in result.points] == [point.digest for point in other.points]
    with Store(path) as store:
        assert (store.count(), store.problems()) == (3, [])


@pytest.mark.long
def test_several_processes_create_and_fill_one_store(tmp_path):
    path = tmp_path / "new" / "s.sqlite"
    code = f"""
from durasim.store.database import Store
for number in range(100):
    with Store({str(path)!r}) as store:
        document = {{"digest": str(number), "host": {{}}}}
        store.put(f"key{{number}}", "run", {REQUEST!r}, document, seconds=1.0)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(6)]
    assert [process.wait() for process in processes] == [0] * 6
    with Store(path) as store:
        assert (store.count(), store.problems()) == (100, [])


def test_results_are_listed_shown_compared_and_exported(tmp_path):
    path = tmp_path / "s.sqlite"
    result = sweep(path, **LATENCIES)
    sweep(path, kind="crash", crash={"points": 3}, name="crashes")
    file = tmp_path / "list.json"
    results("list", "--store", path, "--json", file)
    listed = json.loads(file.read_text())
    jsonschema.Draft202012Validator(schema_named("results")).validate(listed)
    assert ds.load(file).to_dict() == listed
    assert [(of["kind"], of["study"]) for of in listed["results"]] == [("run", "small")] * 3 + [("crash", "crashes")]
    assert "1 results" in results("list", "--store", path, "--kind", "crash")
    first, second, _ = (point.key for point in result.points)
    shown = json.loads(results("show", first[:8], "--store", path, "--json", "-"))
    assert shown["digest"] == result.points[0].digest
    assert "persist events" in results("show", listed["results"][-1]["key"], "--store", path)
    assert "llc.latency_cycles" in results("diff", first, second, "--store", path)
    assert "a: " in results("diff", listed["results"][-1]["key"], first, "--store", path, code=2)
    frames = []
    for suffix, read in ((".parquet", polars.read_parquet), (".csv", polars.read_csv), (".jsonl", polars.read_ndjson)):
        file = tmp_path / f"export{suffix}"
        assert "3 results" in results("export", file, "--store", path)
        frames.append(read(file))
        units = json.loads(Path(f"{file}.units.json").read_text())
        assert units.items() >= {
            "throughput_ops_per_us": "ops/us", "llc.latency_cycles": "cycles", "latency_p99_ns": "ns",
            "pmem_write_total_bytes": "bytes", "tx_committed": "count", "host_mips": "MIPS",
        }.items()  # fmt: skip
        assert units.keys() <= set(frames[-1].columns)
    assert [frame["llc.latency_cycles"].to_list() for frame in frames] == [[20, 30, 40]] * 3
    speeds = [point.metrics["throughput_ops_per_us"] for point in result.points]
    assert all(frame["throughput_ops_per_us"].to_list() == speeds for frame in frames)
    assert "1 results" in results("export", tmp_path / "c.csv", "--store", path, "--kind", "crash")


def test_results_are_pruned_by_all_given_conditions(tmp_path):
    path = filled(tmp_path / "s.sqlite", 30, 3000)
    size = path.stat().st_size
    for words, number in ((("--study", "none"), 0), (("--older-than", "1"), 0), (("--other-builds",), 0)):
        assert f"{number} of 30 results removed" in results("prune", "--store", path, *words)
    assert "30 of 30 results would be removed" in results("prune", "--store", path, "--study", "filled", "--dry-run")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE result SET created_s = 0, build = 'another' WHERE number <= 20")
    words = ("--older-than", "1", "--other-builds", "--study", "filled")
    assert "20 of 30 results removed" in results("prune", "--store", path, *words)
    assert path.stat().st_size < size / 2
    assert "no damage" in results("check", "--store", path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "x"), "key: no result has a key that begins with 'x'"),
        (("show", "key"), "key: several results have a key that begins with 'key'"),
        (("export", "out.txt"), "file: 'out.txt' ends with none of .parquet, .csv, .jsonl"),
        (("export", "out.csv", "--study", "none"), "has no such result"),
        (("export", "out.csv", "--kind", "walk"), "kind: unknown name 'walk'"),
        (("prune",), "prune: give --study, --older-than or --other-builds"),
    ],
)
def test_wrong_arguments_are_refused_with_one_sentence(tmp_path, words, sentence):
    message = results(*words, "--store", filled(tmp_path / "s.sqlite"), code=2)
    assert sentence in message
    assert message.count("\n") == 1


def test_results_that_come_together_are_synced_at_once_and_an_exception_loses_none(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store, Store(path) as other:
        with pytest.raises(KeyboardInterrupt), store.together():
            for number in range(3):
                store.put(f"key{number}", "run", REQUEST, document(number), seconds=1.0)
            assert (store.count(), other.count()) == (3, 0)
            raise KeyboardInterrupt
        assert other.count() == 3
        full = f"PRAGMA max_page_count = {4 + store._value('PRAGMA page_count')}"
        store._connection.execute(full)
        with pytest.raises(ds.HostIoError, match="the disk is full"), store.together():
            for number in range(3, 100):
                store.put(f"key{number}", "run", REQUEST, document(number, 1000), seconds=1.0)
        assert other.count() >= 3 and other.problems() == []
