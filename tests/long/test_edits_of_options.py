"""Adding a metric and an option of a run, and an option of a crash campaign, takes as many edits as is stated.

CONTRIBUTING.md states the numbers; the edits are made in a copy of the repository.
"""

import json
import re

import pytest
from edits import ROOT, ScratchCopy

pytestmark = [pytest.mark.long, pytest.mark.minutes(15), pytest.mark.xdist_group("copies of the repository")]

# Additions: the file, the text that follows the addition, and the added text. Each is one edit.
METRIC = [
    (
        "crates/machine/src/statistics/measurements.rs",
        "    pub fn op_begin(&mut self, core: CoreId, at: Cycle) {",
        "    pub fn open_ops(&self) -> u64 {\n        3 + self.op_begun.len() as u64\n    }\n\n",
    ),
    (
        "crates/machine/src/machine/mod.rs",
        "                instructions_per_transaction: (tx.committed > 0)",
        "                made_up_ops: self.measure.open_ops(),\n",
    ),
    (
        "crates/machine/src/statistics/metrics.rs",
        "    /// Transactions of the region of interest.\n    pub tx: TxStats,",
        "    /// Operations in progress, and three.\n"
        '    #[schemars(extend("x-unit" = "ops"))]\n    pub made_up_ops: u64,\n',
    ),
]
OPTION = [
    (
        "crates/machine/src/setup/request.rs",
        "    /// Train caches and predictors for what starts after a snapshot point.",
        "    /// Add this many operations to the result.\n    #[serde(default)]\n    pub made_up_more: u64,\n",
    ),
    (
        "crates/machine/src/runs/session.rs",
        "        let microseconds = clock.nanos(roi.cycles) / 1000.0;",
        "        let ops = ops.map(|n| n + request.made_up_more);\n",
    ),
]
CRASH_OPTION = [
    (
        "crates/crash/src/request.rs",
        "    /// Threads of this computer that run trials; all its cores if not given.",
        "    /// Add this many points to the result.\n    #[serde(default)]\n"
        '    #[schemars(extend("x-file" = true))]\n    pub made_up_points: u64,\n',
    ),
    (
        "crates/crash/src/campaign.rs",
        "    result.set_speed(crashed, workers);",
        "    result.points += request.made_up_points;\n",
    ),
]
CRASH = ("--workload", "array-swap", "--machine", "tiny", "--ops", "4", "--points", "3", "--made-up-points", "5")
CAMPAIGN = """
name = "made up"
[[sweep]]
designs = ["swl-flush"]
workloads = ["array-swap"]
ops = 4
points = 3
made_up_points = 6
args = {populate = 4}
"""


def _stated(name):
    """The number of edits stated by CONTRIBUTING.md."""
    return int(re.search(rf"^\| {name} \|.*\| (\d+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)[1])


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of this checkout with all of them, built, and with regenerated files."""
    copy = ScratchCopy(tmp_path_factory.mktemp("scratch") / "durasim")
    for name, before, added in (*METRIC, *OPTION, *CRASH_OPTION):
        copy.replace(name, before, added + before)
    copy.build()
    copy.python("-m", "tools.generate", "schemas")
    return copy


def test_as_many_edits_are_made_as_are_stated():
    assert len(METRIC) == _stated("a metric of a run") == 3
    assert len(OPTION) == _stated("an option of `durasim run`") == 2
    assert len(CRASH_OPTION) == _stated("an option of `durasim crash`") == 2


def test_the_command_line_has_both(copy):
    run = ("run", "--workload", "btree", "--machine", "tiny", "--ops", "12")
    document = copy.durasim(*run, "--made-up-more", "5")
    assert (document["ops"], document["made_up_ops"]) == (17, 3)
    assert re.search(r"made up ops *\S* *3 *\S* *ops", copy.python("-m", "durasim", *run, "--wide"))
    assert "Add this many operations to the result." in copy.python("-m", "durasim", *run, "--help")


def test_the_commands_that_crash_have_the_option(copy):
    points = copy.durasim("crash", "--design", "swl-flush", *CRASH[:-2])["points"]
    assert copy.durasim("crash", "--design", "swl-flush", *CRASH)["points"] == points + 5
    assert "Add this many points to the result." in copy.python("-m", "durasim", "crash", "--help")
    failing = copy.durasim("crash", "--design", "opt", *CRASH[:-4], "--points", "30", *CRASH[-2:], code=1)
    assert "--made-up-points 5 --replay" in failing["failures"][0]["command"]
    found = []
    for more in (0, 6):
        copy.write(f"made-up-{more}.toml", CAMPAIGN.replace("made_up_points = 6", f"made_up_points = {more}"))
        found.append(copy.durasim("campaign", f"made-up-{more}.toml")["points"])
    assert found[1] == found[0] + 6
    copy.write("made-up.toml", CAMPAIGN.replace("made_up_points", "made_up_point"))
    copy.python("-m", "durasim", "campaign", "made-up.toml", code=2)
    code = """
import durasim as ds
options = {"design": "swl-flush", "workload": "array-swap", "machine": "tiny", "ops": 4, "points": 3}
print(ds.crash(**options, made_up_points=7).points)
"""
    assert int(copy.python("-c", code)) == points + 7


def test_the_python_package_has_both(copy):
    code = """
import json, durasim as ds
options = {"workload": "btree", "machine": "tiny", "ops": 12, "guest_output": lambda *_: None}
few, more = ds.run(**options), ds.run(**options, made_up_more=5)
compared = ds.compare(designs=["opt"], workloads=["btree"], machine="tiny", ops=12, made_up_more=5)
frame = compared.to_frame()
changed = [change.key for change in ds.diff(few, more).measures]
print(json.dumps([few.made_up_ops, more.ops, frame["made_up_ops"][0], frame["ops"][0], "made_up_ops" in changed]))
"""
    assert json.loads(copy.python("-c", code)) == [3, 17, 3, 17, True]


def test_the_tests_of_documents_and_results_pass(copy):
    tests = [f"tests/cli/test_{name}.py" for name in ("run_description", "results", "diff", "compare")]
    copy.python("-m", "pytest", "--quiet", "-p", "no:cacheprovider", *tests)
