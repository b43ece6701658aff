"""Adding a design, a machine, a workload and a counter takes edits of as many files as CONTRIBUTING.md states."""

import json

import made_up
import pytest
from edits import ScratchCopy, stated_files

pytestmark = [pytest.mark.long, pytest.mark.minutes(15), pytest.mark.xdist_group("copies of the repository")]
TINY = ("--machine", "tiny", "--ops", "12", "--arg", "populate=12")


def _add_design(copy):
    copy.write("crates/designs/src/made_up.rs", made_up.DESIGN)
    copy.write("docs/designs/made-up.md", made_up.PAGE)
    copy.replace("crates/designs/src/lib.rs", "mod opt;\n", "mod made_up;\nmod opt;\n")
    copy.replace("crates/designs/src/lib.rs", "    opt::VARIANT,\n", "    opt::VARIANT,\n    made_up::VARIANT,\n")
    plan = '    ("opt", &small_runs::DEFAULT),\n'
    copy.replace("crates/test_plans/src/lib.rs", plan, plan + plan.replace("opt", "made-up"))


def _add_counter(copy):
    counted = 'fn stats(&self, stats: &mut Stats) {\n        stats.count("made-up.lives", 9, "Lives of a cat");\n    }'
    copy.replace("crates/designs/src/made_up.rs", "fn stats(&self, _: &mut Stats) {}", counted)


def _add_machine(copy):
    copy.write("machines/made-up.toml", copy.read("machines/tiny.toml").replace('name = "tiny"', 'name = "made-up"'))
    line = '    ("{0}", include_str!("../../../../machines/{0}.toml")),\n'
    presets, tiny = "crates/machine/src/setup/presets.rs", line.format("tiny")
    copy.replace(presets, tiny, tiny + line.format("made-up"))


def _add_workload(copy):
    source = copy.read("guest/workloads/sps.cpp").replace("durasim-workload: sps", "durasim-workload: made-up", 1)
    copy.write("guest/workloads/made-up.cpp", source)
    copy.write("guest/workloads/made-up.toml", copy.read("guest/workloads/sps.toml"))


ADDED = {
    "a design": _add_design,
    "a counter of a design": _add_counter,
    "a machine": _add_machine,
    "a workload": _add_workload,
}


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """The copy with all additions, built, and the files edited for each."""
    copy, edited = ScratchCopy(tmp_path_factory.mktemp("scratch") / "durasim"), {}
    for name, add in ADDED.items():
        add(copy)
        edited[name] = copy.edited()
        copy.keep()
    copy.build()
    copy.python("-m", "tools.generate", "documents")
    copy.keep()
    return copy, edited


@pytest.fixture(scope="module")
def copy(edited):
    return edited[0]


@pytest.mark.parametrize("name", ADDED)
def test_as_many_files_are_edited_as_is_stated(edited, name):
    assert len(edited[1][name]) == stated_files()[name], edited[1][name]


def test_everything_added_is_listed(copy):
    assert "made-up" in [row["name"] for row in copy.durasim("designs")]
    assert "made-up" in [row["name"] for row in copy.durasim("machines")]
    assert "made-up" in [row["name"] for row in copy.durasim("workloads")]
    assert "| [`made-up`](designs/made-up.md) |" in copy.read("docs/designs.md")
    assert "| `made-up` | A machine for crash checking" in copy.read("docs/machines.md")
    assert "| `made-up` | an array of pairs" in copy.read("docs/workloads.md")


def test_the_design_runs_and_counts(copy):
    result = copy.durasim("run", "--design", "made-up", "--workload", "btree", *TINY)
    assert result["tx"]["committed"] >= 12
    assert result["stats"]["made-up"]["lives"]["value"] == 9
    workload = copy.durasim("run", "--workload", "made-up", "--machine", "made-up", "--ops", "12")
    assert (workload["workload"], workload["machine"], workload["ops"]) == ("made-up", "made-up", 12)


def test_the_design_survives_crashes_and_the_control_does_not(copy):
    points = ("--workload", "btree", *TINY, "--points", "80")
    assert copy.durasim("crash", "--design", "made-up", *points)["violations"] == 0
    assert copy.durasim("crash", "--design", "opt", *points, code=1)["violations"] > 0


def test_its_campaigns_are_those_of_any_design(copy):
    """The test plan determines the campaigns for planted faults."""
    code = (
        "from durasim.crashes.test_plans import plan_of as of; "
        "from durasim.crashes.mutants import first_objection as run; "
        "print([run('made-up', None, campaign) for campaign in of('made-up').campaigns])"
    )
    assert copy.python("-c", code).strip() == str([None] * 5)


def test_new_cases_are_recorded_and_no_other_changes(copy):
    names = ("golden.json", "digests.json")
    before = {name: json.loads(copy.read(f"tests/conformance/{name}")) for name in names}
    copy.python("-m", "tools.generate", "recorded", "--missing")
    for name in names:
        recorded = json.loads(copy.read(f"tests/conformance/{name}"))
        assert before[name].items() <= recorded.items()
        assert any(case.startswith("made-up ") for case in recorded)
    assert "lives" in json.loads(copy.read("tests/conformance/golden.json"))["made-up btree"]["made-up"]


# `make generate` also measures its assumptions; with the build of the copy that takes over 15 minutes.
MEASURED = (
    "tests/architecture/test_deviations.py::test_an_assumption_about_controllers_stands_at_every_design_that_it_affects",
    "tests/architecture/test_generated.py::test_assumptions_are_measured_as_they_are_described",
)


def test_the_tests_of_the_architecture_pass(copy):
    left_out = (word for name in MEASURED for word in ("--deselect", name))
    copy.python("-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests/architecture", *left_out)
