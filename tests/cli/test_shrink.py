"""Minimized failures are small and of the original kind, and the printed command fails again."""

import itertools
import json
import shlex

import pytest

import durasim as ds
from durasim.crashes.shrink import CANDIDATES_MAX

LARGE = ["--workload", "array-swap", "--machine", "tiny", "--ops", "200", "--threads", "4", "--points", "60"]


def options_of(command):
    words = shlex.split(command)
    assert words[:2] == ["durasim", "crash"]
    return {name: value for name, value in itertools.pairwise(words) if name.startswith("--")}


def test_a_large_failure_becomes_a_small_command_that_fails_again(program, conforms, tmp_path):
    path = tmp_path / "verdict.json"
    result = program("crash", "--design", "opt", *LARGE, "--arg", "populate=100", "--shrink", "--json", path)
    assert result.returncode == 1, result.stderr
    document = json.loads(path.read_text())
    conforms("crash", document)
    shrunk = document["shrunk"]
    options = options_of(shrunk["command"])
    assert int(options["--ops"]) <= 4
    assert "--threads" not in options
    assert options["--replay"] == shrunk["id"]
    assert shrunk["oracle"] == document["failures"][0]["oracle"]
    assert 0 < shrunk["candidates"] <= CANDIDATES_MAX
    assert shrunk["command"] in result.stdout
    assert f"timeline of {shrunk['id']}" in result.stdout
    again = program(*shlex.split(shrunk["command"])[1:], "--json", "-")
    assert again.returncode == 1, again.stderr
    replayed = json.loads(again.stdout)
    conforms("crash", replayed)
    assert replayed["failures"][0]["message"] == shrunk["message"]
    assert replayed["timeline"] == shrunk["timeline"]


@pytest.mark.parametrize(
    ("design", "domain", "arguments", "faults", "needed"),
    [
        # The argument, the domain and the fault are necessary for the failure and remain.
        ("swl-flush", None, {"no-flush": True}, ("clean", "nested"), {"--arg": "no-flush=true"}),
        pytest.param(
            "swl-flush",
            None,
            {"no-fence": True},
            ("clean", "reorder", "torn"),
            {"--arg": "no-fence=true"},
            marks=pytest.mark.long,
        ),
        ("swl-eadr", "adr", {}, ("clean", "recrash"), {"--domain": "adr"}),
    ],
)
def test_what_a_failure_needs_stays(design, domain, arguments, faults, needed):
    def shrink():
        result = ds.crash(
            design=design, workload="array-swap", machine="tiny", ops=20, threads=2, points=60, faults=faults,
            domain=domain, control=True, seed=7, set=["llc.ways=4", "core.rob_entries=24"],
            workload_args={"populate": 12, **arguments}, shrink=True,
        )  # fmt: skip
        return result.to_dict()["shrunk"]

    shrunk = shrink()
    words = shlex.split(shrunk["command"])
    for name, value in needed.items():
        assert (name, value) in list(itertools.pairwise(words)), shrunk["command"]
    assert ("reorder" in faults) == (":reorder" in shrunk["id"])
    assert not any(setting in words for setting in ("llc.ways=4", "core.rob_entries=24", "--seed"))
    assert int(options_of(shrunk["command"])["--ops"]) <= 8


def test_nothing_is_reduced_where_nothing_fails(program):
    result = program(
        "crash", "--design", "tc", "--workload", "array-swap", "--machine", "tiny", "--ops", "4", "--points", "10",
        "--shrink", "--json", "-",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["shrunk"] is None


def test_a_replayed_failure_can_be_reduced():
    arguments = {
        "design": "opt",
        "workload": "array-swap",
        "machine": "tiny",
        "ops": 40,
        "workload_args": {"populate": 8},
    }
    failure = ds.crash(**arguments, points=40).failures[-1]
    shrunk, again = (ds.crash(**arguments, replay=failure.id, shrink=True).to_dict()["shrunk"] for _ in range(2))
    assert shrunk == again
    assert int(shrunk["id"][1:]) <= int(failure.id[1:])
    assert shrunk["oracle"] == failure.oracle
    assert shrunk["id"] == shrunk["timeline"]["id"]


def test_a_campaign_reduces_the_first_failure_of_each_design_and_workload(program, conforms, tmp_path):
    campaign = tmp_path / "campaign.toml"
    campaign.write_text("""
        name = "reduced"
        [[sweep]]
        designs = ["opt", "tc"]
        workloads = ["array-swap", "btree"]
        threads = [1, 2]
        ops = 8
        points = 30
        args = { populate = 12 }
    """)
    result = program("campaign", campaign, "--json", tmp_path / "campaign.json")
    assert result.returncode == 1, result.stderr
    document = json.loads((tmp_path / "campaign.json").read_text())
    conforms("campaign", document)
    reduced = {(shrunk["design"], shrunk["workload"]): shrunk for shrunk in document["shrunk"]}
    assert list(reduced) == [("opt", "array-swap"), ("opt", "btree")]
    for shrunk in reduced.values():
        assert shrunk["command"] in result.stdout
        assert options_of(shrunk["command"])["--ops"] == "1"
        again = program(*shlex.split(shrunk["command"])[1:])
        assert again.returncode == 1, again.stderr
        assert f"timeline of {shrunk['id']}" in again.stdout
