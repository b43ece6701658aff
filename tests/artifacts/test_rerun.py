"""`durasim rerun`: all points of an unpacked artifact again, PASS or the differences, refusals."""

import hashlib
import json
import re
import shutil
import subprocess

import jsonschema
import pytest
from packing import PACKAGE, Author, unpacked

import durasim as ds
from durasim.artifacts import rerun
from durasim.artifacts.rerun import deviations_of
from studies.in_process import InProcess


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    of = Author(tmp_path_factory.mktemp("author"))
    of.sweep()
    assert of.artifact("study.toml").returncode == 0
    of.unpacked = unpacked(of.study / "small-study-artifact.tar.gz", tmp_path_factory.mktemp("unpacked"))
    return of


@pytest.fixture
def folder(author, tmp_path):
    """A copy of the unpacked artifact."""
    return shutil.copytree(author.unpacked, tmp_path / "artifact")


def change(folder, name, edit):
    """Changes a JSON file of an artifact, and its line in the manifest."""
    path, manifest = folder / name, folder / "MANIFEST.sha256"
    document = json.loads(path.read_text())
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(document)
    path.write_text(json.dumps(document))
    manifest.write_text(manifest.read_text().replace(before, hashlib.sha256(path.read_bytes()).hexdigest()))


def test_all_points_are_simulated_again_and_equal(author, folder, tmp_path):
    done = author.run("rerun", folder, "--json", tmp_path / "rerun.json")
    assert (done.returncode, done.stdout) == (0, "PASS: equal results: 2 of 2\n")
    document = json.loads((tmp_path / "rerun.json").read_text())
    schema = json.loads((PACKAGE / "schemas" / "rerun.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert [point["state"] for point in document["points"]] == ["equal", "equal"]
    assert ds.load(tmp_path / "rerun.json").passes


def test_the_study_of_the_artifact_is_answered_by_the_new_results(author, folder):
    assert author.run("rerun", folder).returncode == 0
    done = author.run("sweep", "study.toml", "--store", "rerun/results.sqlite", cwd=folder)
    assert "0 simulated, 2 from the store, 0 failed" in done.stdout


def test_crash_campaigns_are_packed_and_equal_too(author, tmp_path):
    study = author.study / "crashes.toml"
    study.write_text(
        'name = "crashes"\nkind = "crash"\ndesigns = ["hercules"]\nworkloads = ["btree"]\nmachine = "tiny"\nops = 3\n'
        'args = { populate = 4 }\ncrash = { points = 3, faults = ["clean"] }\n'
    )
    assert author.run("sweep", study, "--store", author.store).returncode == 0
    path = tmp_path / "crashes.tar.gz"
    assert author.artifact(study, "--output", path).returncode == 0
    folder = unpacked(path, tmp_path / "unpacked")
    assert re.search(r"\| btree \| hercules \| \d+ \| \d+ \| 0 \|", (folder / "README.md").read_text())
    assert author.run("rerun", folder).stdout == "PASS: equal results: 1 of 1\n"
    change(folder, "results/1.json", lambda document: document.update(trials_per_s_per_core=1.0, violations=7))
    assert author.run("rerun", folder, "--json", tmp_path / "rerun.json").returncode == 1
    (point,) = json.loads((tmp_path / "rerun.json").read_text())["points"]
    assert point["differences"] == [{"place": "violations", "expected": 7, "found": 0}]


def test_points_that_start_from_a_shared_snapshot_are_packed_with_it(author, tmp_path):
    study = author.study / "shared.toml"
    study.write_text(author.file.read_text() + "shared_population = true\n")
    assert author.run("sweep", study, "--store", author.store).returncode == 0
    path = tmp_path / "shared.tar.gz"
    assert author.artifact(study, "--output", path).returncode == 0
    folder = unpacked(path, tmp_path / "unpacked")
    described = json.loads((folder / "points.json").read_text())
    (snapshot,) = {point["request"]["from"] for point in described["points"]}
    assert (folder / snapshot).stat().st_size > 0
    assert author.run("rerun", folder).stdout == "PASS: equal results: 2 of 2\n"


def test_a_difference_is_listed_and_the_exit_code_is_one(author, folder, tmp_path):
    cycles = json.loads((folder / "results/2.json").read_text())["roi"]["cycles"]
    change(folder, "results/2.json", lambda document: document["roi"].update(cycles=cycles + 1))
    done = author.run("rerun", folder, "--json", tmp_path / "rerun.json")
    assert done.returncode == 1
    assert "FAIL: equal results: 1 of 2; different: 1; failed: 0" in done.stdout
    assert all(
        word in done.stdout for word in ("results/2.json", "hercules", "roi.cycles", str(cycles), str(cycles + 1))
    )
    points = json.loads((tmp_path / "rerun.json").read_text())["points"]
    assert points[1]["differences"] == [{"place": "roi.cycles", "expected": cycles + 1, "found": cycles}]


def test_times_and_memory_of_the_host_are_not_compared(author, folder):
    host = {"seconds": 1e6, "mips": 1e-3, "peak_rss_bytes": 1}
    change(folder, "results/1.json", lambda document: document.update(host=host))
    assert author.run("rerun", folder).returncode == 0


def test_values_that_one_document_lacks_differ():
    found = [
        of.to_dict() for of in deviations_of({"a": 1, "b": {"c": [1, {}]}}, {"a": 1, "b": {"c": [2, {}]}, "d": None})
    ]
    assert found == [
        {"place": "b.c[0]", "expected": 1, "found": 2}, {"place": "d", "expected": None, "found": None},
    ]  # fmt: skip


def test_an_interrupted_rerun_continues(folder):
    first = InProcess(lose=lambda number, _: number == 1)
    stopped = rerun.rerun(folder, lambda: first, lambda *_: None)
    assert [point.state for point in stopped.points] == ["equal", "failed"]
    assert "--jobs" in stopped.points[1].error
    assert not stopped.passes
    second = InProcess()
    assert rerun.rerun(folder, lambda: second, lambda *_: None).passes
    assert second.simulated == [1]


def test_a_point_that_the_machine_refuses_fails(author, folder):
    change(folder, "points.json", lambda of: of["points"][0]["request"]["set"].append("llc.ways=0"))
    done = author.run("rerun", folder)
    assert done.returncode == 1
    assert "failed: llc.ways" in done.stdout
    assert "FAIL: equal results: 1 of 2; different: 0; failed: 1" in done.stdout


def first(of):
    return of["points"][0]["request"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda of: of.update(build="0" * 32), ["is of build 0000", "run.sh"]),
        (lambda of: of.update(schema="durasim-artifact/9"), ["points.json", "durasim-artifact/1"]),
        (lambda of: of["points"].clear(), ["points"]),
        (lambda of: first(of).update(elf="/bin/true"), ["'/bin/true' is not in the folder of the artifact"]),
        (lambda of: first(of).update(elf="../prog"), ["'../prog' is not in the folder"]),
        (lambda of: of["points"][0].update(result="../x.json"), ["'../x.json' is not in the folder"]),
        (lambda of: first(of).update(pool="pool"), ["would write to this computer (pool)"]),
        (lambda of: first(of).update(root_write=True), ["would write to this computer (root_write)"]),
    ],
)
def test_a_wrong_description_is_refused(author, folder, edit, words):
    change(folder, "points.json", edit)
    done = author.run("rerun", folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    for word in words:
        assert word in done.stderr


def test_a_changed_or_missing_file_and_another_folder_are_refused(author, folder, tmp_path):
    (folder / "study.toml").write_text("changed")
    done = author.run("rerun", folder)
    assert done.returncode == 2
    assert "study.toml is not the file that was packed" in done.stderr
    (folder / "study.toml").unlink()
    assert author.run("rerun", folder).returncode == 4
    done = author.run("rerun", tmp_path)
    assert done.returncode == 4
    assert "MANIFEST.sha256" in done.stderr
    (tmp_path / "MANIFEST.sha256").touch()
    done = author.run("rerun", tmp_path)
    assert done.returncode == 2
    assert "is no artifact of durasim" in done.stderr


@pytest.mark.parametrize(
    ("python", "code", "words"),
    [("/bin/false", 4, "is not Python"), ("missing-interpreter", 4, "is not Python")],
)
def test_the_script_names_what_is_missing(folder, python, code, words):
    done = subprocess.run(
        ["./run.sh"], cwd=folder, env={"PATH": "/usr/bin:/bin", "PYTHON": python}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert words in done.stderr
    (folder / "study.toml").write_text("changed")
    done = subprocess.run(
        ["./run.sh"], cwd=folder, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "is damaged or changed" in done.stderr) == (2, True)
