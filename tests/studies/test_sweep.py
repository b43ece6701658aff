"""Studies: points, the store, killed processes, and the document."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import jsonschema
import pytest
from in_process import SMALL, InProcess, sweep

import command_line
import durasim as ds
import schemas
from durasim.documents.toml_files import schema_named
from durasim.studies.tasks import simulate, task_text

STUDY = """
name = "killed"
designs = ["tc", "hercules"]
workloads = ["array-swap"]
machine = "tiny"
ops = 4
args = { populate = 8 }
[axes]
"llc.size_bytes" = ["4KiB", "8KiB"]
"pmem.controller.write_queue_entries" = { from = 2, to = 8, factor = 2 }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def count(store):
    try:
        with sqlite3.connect(store) as connection:
            return connection.execute("SELECT count(*) FROM result").fetchone()[0]
    except sqlite3.Error:
        return 0


def digests(result):
    return {point.key: point.digest for point in result.points}


def test_points_are_combinations_in_order_and_stored_once(tmp_path):
    axes = {"llc.size_bytes": ["4KiB", "8KiB"], "seed": {"from": 1, "to": 3, "step": 2}}
    executor = InProcess()
    result = sweep(tmp_path / "s.sqlite", executor, axes=axes, designs=["opt", "hercules"])
    assert [tuple(point.values.values())[1:] for point in result.points] == [
        (design, "tiny", size, seed) for design in ("opt", "hercules") for size in (4096, 8192) for seed in (1, 3)
    ]
    assert (result.simulated, result.reused, result.failed, len(executor.simulated)) == (8, 0, 0, 8)
    frame = result.to_frame()
    assert frame.columns[:5] == ["workload", "design", "machine", "llc.size_bytes", "seed"]
    assert frame["throughput_ops_per_us"].min() > 0
    again = sweep(tmp_path / "s.sqlite", executor, axes=axes, designs=["opt", "hercules"])
    assert (again.simulated, again.reused, len(executor.simulated)) == (0, 8, 8)
    assert digests(again) == digests(result)


def test_a_point_is_what_its_command_simulates(tmp_path):
    (point,) = sweep(threads=[2], axes={"arg.populate": [9]}, args=None, set={"llc.ways": 4}).points
    words = point.command.split()
    assert words[:2] == ["durasim", "run"]
    path = tmp_path / "run.json"
    assert command_line.run(*words[1:], "--json", path).returncode == 0
    assert json.loads(path.read_text())["digest"] == point.digest


def test_a_parameter_of_one_design_makes_no_points_of_others():
    result = sweep(designs=["opt", "hercules"], axes={"design.hercules.ewpq_entries": [2, 4]})
    assert [tuple(point.values.values())[1::2] for point in result.points] == [
        ("opt", None), ("hercules", 2), ("hercules", 4),
    ]  # fmt: skip


def test_a_point_whose_worker_is_killed_is_tried_again_alone_and_others_go_on():
    executor = InProcess(capacity=3, lose=lambda number, _: number == 1)
    result = sweep(executor=executor, axes={"seed": [1, 2, 3, 4]})
    assert [point.state for point in result.points] == ["simulated", "failed", "simulated", "simulated"]
    assert result.points[1].error == "its worker process was killed 3 times"
    assert sorted(executor.simulated) == [0, 2, 3]
    once = InProcess(capacity=3, lose=lambda number, attempt: number == 1 and attempt == 1)
    assert sweep(executor=once, axes={"seed": [1, 2, 3, 4]}).failed == 0
    assert sorted(once.simulated) == [0, 1, 2, 3]


def test_a_refused_point_is_listed_with_its_command_and_the_exit_code_is_one(tmp_path, file):
    file.write_text(STUDY.replace("{ from = 2, to = 8, factor = 2 }", "[0, 4]"))
    path = tmp_path / "out.json"
    ran = command_line.run("sweep", file, "--no-store", "--jobs", 1, "--json", path)
    assert ran.returncode == 1
    document = json.loads(path.read_text())
    assert (document["simulated"], document["failed"]) == (4, 4)
    failed = [point for point in document["points"] if point["state"] == "failed"]
    assert all("write_queue_entries" in point["error"] for point in failed)
    assert "failed points" in ran.stdout
    schemas.validate("sweep", document)
    assert ds.load(path).to_dict() == document


def run_and_kill(words, is_due):
    """Runs a command and kills it when `is_due()`, if it has not ended."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    while not is_due() and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_killed_study_resumes_with_equal_digests(tmp_path, file):
    store, path = tmp_path / "killed.sqlite", tmp_path / "out.json"
    words = ["sweep", str(file), "--store", str(store), "--jobs", "1", "--json", str(path)]
    run_and_kill([sys.executable, "-m", "durasim", *words], lambda: count(store) >= 3)
    stored = count(store)
    assert 3 <= stored < 12
    assert command_line.run(*words).returncode == 0
    document = json.loads(path.read_text())
    assert (document["reused"], document["simulated"]) == (stored, 12 - stored)
    axes = tomllib.loads(STUDY)["axes"]
    undisturbed = sweep(designs=["tc", "hercules"], axes=axes, name="other")
    assert {point["key"]: point["digest"] for point in document["points"]} == digests(undisturbed)
    assert count(store) == 12


@pytest.mark.long
def test_a_study_killed_twenty_times_simulates_no_stored_point_twice(tmp_path, file):
    file.write_text(STUDY.replace("ops = 4", "ops = 400").replace("{ from = 2, to = 8, factor = 2 }", "[2, 4, 6, 8]"))
    file.write_text(
        file.read_text().replace('"llc.size_bytes" = ["4KiB", "8KiB"]', '"llc.latency_cycles" = [20, 24, 28, 32, 36]')
    )
    store, path = tmp_path / "killed.sqlite", tmp_path / "out.json"
    words = [sys.executable, "-m", "durasim", "sweep", str(file), "--store", str(store)]
    undisturbed = ds.sweep(file, store=tmp_path / "other.sqlite")
    assert len(undisturbed.points) == 40
    draws, first_s = random.Random(1), 1.0  # noqa: S311 - moments of a test
    for _ in range(20):
        before = set(rows(store))
        end_s = time.monotonic() + first_s + 2 * draws.random()
        run_and_kill(words, lambda end_s=end_s: time.monotonic() > end_s)
        # No stored row is replaced: a second simulation of its point would have another time.
        assert before <= set(rows(store))
    stored = count(store)
    subprocess.run([*words, "--json", str(path)], check=True, stdout=subprocess.DEVNULL)
    document = json.loads(path.read_text())
    assert (document["reused"], document["simulated"]) == (stored, 40 - stored)
    assert {point["key"]: point["digest"] for point in document["points"]} == digests(undisturbed)


def rows(store):
    if not count(store):
        return []
    with sqlite3.connect(store) as connection:
        return connection.execute("SELECT key, seconds, digest FROM result").fetchall()


def test_a_plan_counts_points_time_and_memory_and_simulates_nothing(tmp_path, file):
    store, path = tmp_path / "s.sqlite", tmp_path / "plan.json"
    ran = command_line.run("sweep", file, "--plan", "--store", store, "--json", path)
    assert "12 points, 12 to simulate, less than a minute" in " ".join(ran.stdout.split())
    plan = json.loads(path.read_text())
    assert plan["to_simulate"] == len(plan["points"]) == 12
    assert 0 < plan["minutes"] < 1
    assert plan["memory_bytes"] > 2**20
    jsonschema.Draft202012Validator(schema_named("sweep-plan")).validate(plan)
    assert ds.load(path).to_dict() == plan
    assert count(store) == 0
    ran = command_line.run("sweep", file, "--plan", "--store", store, "--plot", "ipc")
    assert (ran.returncode, "plot: requires results" in ran.stderr) == (2, True)


def test_the_keys_of_a_study_are_arguments_of_the_api():
    (point,) = ds.sweep(**SMALL, store=False, jobs=1).points
    assert point.digest == sweep().points[0].digest
    with pytest.raises(ds.ConfigError, match="study: give either"):
        ds.sweep("study.toml", name="x")
    with pytest.raises(ds.ConfigError, match="study: give either"):
        ds.sweep()


LONG = """
name = "long"
designs = ["hercules"]
workloads = ["btree"]
machine = "tiny"
[axes]
"llc.latency_cycles" = { from = 10, to = 40, step = 10 }
"""


def workers_of(pid):
    """The worker processes of a study, listed by the kernel."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


def start_long_study(tmp_path, ops):
    file = tmp_path / "long.toml"
    file.write_text(f"ops = {ops}\n{LONG}")
    words = ["sweep", file, "--store", tmp_path / "long.sqlite", "--jobs", "2", "--json", tmp_path / "long.json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "durasim", *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(workers_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@pytest.mark.long
def test_the_points_of_a_killed_worker_process_are_simulated_by_another(tmp_path):
    process = start_long_study(tmp_path, 1000)
    time.sleep(2)
    os.kill(workers_of(process.pid)[-1], signal.SIGKILL)
    _, complaint = process.communicate(timeout=300)
    assert process.returncode == 0, complaint
    document = json.loads((tmp_path / "long.json").read_text())
    assert (document["simulated"], document["failed"], count(tmp_path / "long.sqlite")) == (4, 0, 4)


@pytest.mark.long
def test_an_interrupted_study_says_what_is_kept_and_takes_its_workers_with_it(tmp_path):
    process = start_long_study(tmp_path, 100_000_000)
    workers = workers_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    kept = f"0 of 4 points were done, and their results are kept in {tmp_path / 'long.sqlite'}"
    assert complaint == f"durasim: interrupted; {kept}: the same command resumes the study\n"
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_of_another_build_simulates_nothing():
    task = json.loads(task_text("run", {"design": "tc"}))
    answer = json.loads(simulate(json.dumps(task | {"build": "another"})))
    assert "document" not in answer
    assert answer["error"].startswith("the worker has another build of durasim")
    refused = json.loads(simulate(json.dumps(task)))
    assert "missing field" in refused["error"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("factor = 2", "factr = 2", "axes.pmem.controller.write_queue_entries: "),
        ('"llc.size_bytes" = ["4KiB", "8KiB"]', "seed = { from = 1, to = 100000, step = 1 }", "add --yes to simulate"),
        ("name", "nam", "study: "),
        ("[axes]", "[axes", "is not TOML"),
        ('"tiny"', '"tinny"', "machine: unknown name 'tinny'"),
    ],
)
def test_a_wrong_study_file_is_refused_with_one_sentence(tmp_path, file, old, new, sentence):
    file.write_text(STUDY.replace(old, new))
    for words in ((), ("--plan",)):
        ran = command_line.run("sweep", file, "--store", tmp_path / "s.sqlite", *words)
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1), ran.stderr
        assert sentence in ran.stderr
    ran = command_line.run("sweep", tmp_path / "none.toml")
    assert (ran.returncode, "none.toml: No such file" in ran.stderr) == (4, True)
