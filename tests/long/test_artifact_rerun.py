"""Artifacts of a study and of a paper's figure with the true wheels, run in an empty environment without network."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.minutes(5), pytest.mark.xdist_group("artifact")]
MARKS = ("marked-person", "marked-home", "marked-value-of-a-variable")
STUDY = """
# By marked-person, with marked-value-of-a-variable.
name = "sizes"
designs = ["opt", "hercules"]
workloads = ["btree"]
machine = "own-machine.toml"
ops = 20
args = { populate = 20 }
"""
WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net")


class Author:
    """A person with a marked home, who simulates, and packs artifacts."""

    def __init__(self, folder):
        """`folder` gets the home and the unpacked artifacts."""
        (self.wheel,) = sorted((ROOT / "dist").glob("durasim-*.whl")) or pytest.fail("make wheel builds it")
        self.folder, self.home = folder, folder / "marked-home"
        self.home.mkdir()
        (self.home / "study.toml").write_text(STUDY)
        shutil.copy(ROOT / "machines" / "tiny.toml", self.home / "own-machine.toml")
        marked = {"HOME": str(self.home), "USER": MARKS[0], "LOGNAME": MARKS[0], "MARKED": MARKS[2]}
        self.environment = os.environ | marked

    def artifact(self, command, *subject):
        """Simulates the subject with a command, and returns the folder of its unpacked artifact."""
        file, store = self.home / f"{command}.tar.gz", self.home / f"{command}.sqlite"
        for words in ([command, *subject], ["artifact", *subject, "--wheel", self.wheel, "--output", file]):
            line = [sys.executable, "-m", "durasim", *words, "--store", store]
            done = subprocess.run(
                line, cwd=self.home, env=self.environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        with tarfile.open(file) as archive:
            archive.extractall(self.folder / command, filter="data")
        (top,) = (self.folder / command).iterdir()
        return top


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    return Author(tmp_path_factory.mktemp("artifact"))


@pytest.fixture(scope="module")
def made(author):
    """The unpacked artifact of the study."""
    return author.artifact("sweep", author.home / "study.toml")


@pytest.fixture(scope="module")
def run():
    """Runs the script of an artifact without any variable of the environment and without network."""
    if subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this computer does not permit a user namespace without network (unshare --map-root-user --net)")

    def start(folder, *words):
        command = ["env", "-i", f"PATH=/usr/bin:/bin:{Path(sys.executable).parent}", f"PYTHON={sys.executable}"]
        return subprocess.run(
            [*WITHOUT_NETWORK, *command, "./run.sh", *words], cwd=folder, capture_output=True, text=True, check=False
        )

    return start


def test_there_is_no_network(run):  # noqa: ARG001 - skips where a network cannot be excluded
    script = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    done = subprocess.run([*WITHOUT_NETWORK, sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in done.stderr


def test_it_passes_and_a_changed_result_fails(made, run):
    done = run(made, "--json", "rerun.json")
    assert done.returncode == 0, done.stderr
    assert "PASS: equal results: 2 of 2" in done.stdout
    document = json.loads((made / "rerun.json").read_text())
    assert [point["state"] for point in document["points"]] == ["equal", "equal"]
    # The packed programs are those of the wheel: the study itself is answered by the new results, without a compiler.
    command = ["env", "-i", "PATH=/usr/bin:/bin", f"XDG_CACHE_HOME={made / 'cache'}", "venv/bin/durasim", "sweep"]
    swept = subprocess.run(
        [*WITHOUT_NETWORK, *command, "study.toml", "--store", "rerun/results.sqlite"],
        cwd=made, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "0 simulated, 2 from the store, 0 failed" in swept.stdout, swept.stderr
    result = made / "results" / "1.json"
    changed = json.loads(result.read_text())
    changed["roi"]["cycles"] += 1
    result.write_text(json.dumps(changed))
    assert "damaged or changed" in run(made).stderr
    listed = [line for line in (made / "MANIFEST.sha256").read_text().splitlines() if "results/1.json" not in line]
    (made / "MANIFEST.sha256").write_text("\n".join(listed) + "\n")
    done = run(made)
    assert (done.returncode, "roi.cycles" in done.stdout) == (1, True), done.stderr
    assert "FAIL: equal results: 1 of 2; different: 1; failed: 0" in done.stdout


def test_only_what_runs_is_installed_and_nothing_private_is_packed(made):
    names = {path.name.partition("-")[0] for path in (made / "wheels").iterdir()}
    assert {"durasim", "polars", "typer", "rich"} <= names
    assert not names & {"pytest", "ruff", "maturin", "hypothesis", "ziglang", "dask", "pandas"}
    packed = [line.split("  ")[1] for line in (made / "MANIFEST.sha256").read_text().splitlines()]
    own = [made / name for name in packed if not name.startswith("wheels/")]
    assert own
    for path in own:
        for mark in (*MARKS, str(ROOT)):
            assert mark.encode() not in path.read_bytes(), path


def test_a_figure_of_a_paper_passes_with_its_numbers(author, run):
    folder = author.artifact("reproduce", "hercules", "--figure", "figure-9a")
    numbers = (folder / "results" / "numbers.csv").read_text()
    assert "Fig9a" in numbers
    done = run(folder, "--json", "rerun.json")
    assert done.returncode == 0, done.stderr
    points = json.loads((folder / "rerun.json").read_text())["points"]
    assert f"PASS: equal results: {len(points)} of {len(points)}" in done.stdout
    # The new results answer the paper's figure: its numbers are those of the artifact, without a simulation.
    command = ["env", "-i", "PATH=/usr/bin:/bin", f"XDG_CACHE_HOME={folder / 'cache'}", "venv/bin/durasim", "reproduce"]
    words = ["hercules", "--figure", "figure-9a", "--store", "rerun/results.sqlite", "--json", "again.json"]
    again = subprocess.run(
        [*WITHOUT_NETWORK, *command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    document = json.loads((folder / "again.json").read_text())
    assert {of["state"] for of in document["points"]} == {"reused"}
