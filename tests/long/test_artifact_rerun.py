"""The artifact of a study with the true wheels, unpacked and run in an empty environment without network."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.minutes(3), pytest.mark.xdist_group("artifact")]
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The artifact, made by an author with a marked home, and the unpacked folder."""
    wheels = sorted((ROOT / "dist").glob("durasim-*.whl"))
    assert len(wheels) == 1, "make wheel builds it"
    folder = tmp_path_factory.mktemp("artifact")
    home = folder / "marked-home"
    home.mkdir()
    (home / "study.toml").write_text(STUDY)
    shutil.copy(ROOT / "machines" / "tiny.toml", home / "own-machine.toml")
    environment = {
        **os.environ, "HOME": str(home), "USER": MARKS[0], "LOGNAME": MARKS[0], "MARKED": MARKS[2],
    }  # fmt: skip
    for words in (["sweep", home / "study.toml"], ["artifact", home / "study.toml", "--wheel", wheels[0]]):
        command = [sys.executable, "-m", "durasim", *words, "--store", home / "results.sqlite"]
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with tarfile.open(home / "sizes-artifact.tar.gz") as archive:
        archive.extractall(folder / "unpacked", filter="data")
    return folder / "unpacked" / "sizes-artifact"


@pytest.fixture(scope="module")
def run(made):
    """Runs the script of the artifact without any variable of the environment and without network."""
    if subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this computer does not permit a user namespace without network (unshare --map-root-user --net)")

    def start(*words):
        command = ["env", "-i", f"PATH=/usr/bin:/bin:{Path(sys.executable).parent}", f"PYTHON={sys.executable}"]
        return subprocess.run(
            [*WITHOUT_NETWORK, *command, "./run.sh", *words], cwd=made, capture_output=True, text=True, check=False
        )

    return start


def test_there_is_no_network(run):  # noqa: ARG001 - skips where a network cannot be excluded
    script = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    done = subprocess.run([*WITHOUT_NETWORK, sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in done.stderr


def test_it_passes_and_a_changed_result_fails(made, run):
    done = run("--json", "rerun.json")
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
    assert "damaged or changed" in run().stderr
    listed = [line for line in (made / "MANIFEST.sha256").read_text().splitlines() if "results/1.json" not in line]
    (made / "MANIFEST.sha256").write_text("\n".join(listed) + "\n")
    done = run()
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
