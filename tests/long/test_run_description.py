"""A metric and an option of a run are added to a copy of the repository, by as many edits as CONTRIBUTING.md states."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 1800

# What is added: the file, the text before which it stands, and the text. Each is one edit.
METRIC = [
    (
        "crates/machine/src/measure.rs",
        "    pub fn op_begin(&mut self, core: CoreId, at: Cycle) {",
        "    pub fn open_ops(&self) -> u64 {\n        3 + self.op_begun.len() as u64\n    }\n\n",
    ),
    (
        "crates/machine/src/machine.rs",
        "                tx: self.system.tx_stats(),",
        "                made_up_ops: self.measure.open_ops(),\n",
    ),
    (
        "crates/machine/src/result.rs",
        "    /// Transactions of the region of interest.\n    pub tx: TxStats,",
        "    /// Operations under way, and three.\n"
        '    #[schemars(extend("x-unit" = "ops"))]\n    pub made_up_ops: u64,\n',
    ),
]
OPTION = [
    (
        "crates/machine/src/request.rs",
        "    /// Train caches and predictors for what starts behind a mark.",
        "    /// Say that so many more operations were run.\n    #[serde(default)]\n    pub made_up_more: u64,\n",
    ),
    (
        "crates/machine/src/session.rs",
        "        let microseconds = clock.nanos(roi.cycles) / 1000.0;",
        "        let ops = ops.map(|n| n + request.made_up_more);\n",
    ),
]


def _stated(name):
    """The number of edits that CONTRIBUTING.md states."""
    return int(re.search(rf"^\| {name} \|.*\| (\d+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)[1])


def _run(folder, *command):
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    environment = os.environ | {"PYTHONPATH": str(folder / "python"), "CARGO_TARGET_DIR": target}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of this checkout with both, built, and with what is generated from them."""
    folder = tmp_path_factory.mktemp("scratch") / "durasim"
    for name in _run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            # Not with its time: cargo compares it with that of what was built from another copy.
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(ROOT / "build" / "guest", folder / "build" / "guest")
    for name, before, added in (*METRIC, *OPTION):
        text = (folder / name).read_text()
        assert text.count(before) == 1, f"{name} has {text.count(before)} places with {before!r}"
        (folder / name).write_text(text.replace(before, added + before))
    command = ("cargo", "build", "--package", "durasim-py", "--locked", "--offline", "--message-format", "json")
    messages = [json.loads(line) for line in _run(folder, *command).splitlines()]
    built = [m for m in messages if m["reason"] == "compiler-artifact" and m["target"]["name"] == "_core"]
    shutil.copyfile(built[0]["filenames"][0], folder / "python/durasim/_core.abi3.so")
    _run(folder, sys.executable, "tools/generate_schemas.py")
    return folder


def test_as_many_edits_are_made_as_are_stated():
    assert len(METRIC) == _stated("a metric of a run") == 3
    assert len(OPTION) == _stated("an option of `durasim run`") == 2


def test_the_command_line_has_both(copy):
    run = (sys.executable, "-m", "durasim", "run", "--workload", "btree", "--machine", "tiny", "--ops", "12")
    document = json.loads(_run(copy, *run, "--made-up-more", "5", "--json", "-"))
    assert document["ops"] == 17
    assert document["made_up_ops"] == 3
    assert re.search(r"made up ops *\S* *3 *\S* *ops", _run(copy, *run))
    assert "Say that so many more operations were run." in _run(copy, *run, "--help")


def test_the_python_package_has_both(copy):
    code = """
import json, durasim as ds
options = {"workload": "btree", "machine": "tiny", "ops": 12, "guest_output": lambda *_: None}
few, more = ds.run(**options), ds.run(**options, made_up_more=5)
frame = ds.compare(designs=["opt"], workloads=["btree"], machine="tiny", ops=12, made_up_more=5)
changed = [change.key for change in ds.diff(few, more).measures]
print(json.dumps([few.made_up_ops, more.ops, frame["made_up_ops"][0], frame["ops"][0], "made_up_ops" in changed]))
"""
    assert json.loads(_run(copy, sys.executable, "-c", code)) == [3, 17, 3, 17, True]


def test_the_tests_of_documents_and_results_pass(copy):
    _run(
        copy, sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests/cli/test_run_description.py",
        "tests/cli/test_results.py", "tests/cli/test_diff.py", "tests/cli/test_compare.py",
    )  # fmt: skip
