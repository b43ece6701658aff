"""Campaigns: files, controls, marks, persistent verdicts, and the final document."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import command_line
import durasim as ds
import schemas
from durasim.crashes.campaign_file import read
from durasim.crashes.campaign_run import ordered

ROOT = Path(__file__).resolve().parents[2]
SWEEP = """
[[sweep]]
designs = ["tc", "swl-eadr"]
workloads = ["array-swap"]
threads = [1, 2]
seeds = 3
ops = 6
points = 20
args = { populate = 6 }
"""
CONTROL = """
[[control]]
name = "opt"
why = "Nothing makes its stores durable."
expects = "violation"
design = "opt"
workload = "array-swap"
ops = 6
points = 20
"""


@pytest.fixture
def file(tmp_path):
    def write(text, head='name = "test"\n'):
        path = tmp_path / "campaign.toml"
        path.write_text(head + text)
        return str(path)

    return write


def conforms(document):
    schemas.validate("campaign", document)


def test_the_quick_campaign_passes():
    document = ds.campaign("quick")
    conforms(document)
    assert document["failed_checks"] == []
    assert document["violations"] == document["disagreements"] == 0
    assert document["trials"] > 3000
    assert document["nested_depth_max"] == 3
    assert {"clean", "energy", "nested", "reorder", "torn", "recrash"} <= set(document["trials_by_fault"])
    rows = {row["design"] for row in document["results"]}
    assert rows == {row["name"] for row in ds.designs() if not row["control"]}
    assert [c["name"] for c in document["controls"] if c["found"] != c["expects"]] == []


def test_sizes_of_workloads_come_from_their_tables(file):
    """Arguments of a sweep for one workload override those for all, which override the workload's [small]."""
    sweep = """
[[sweep]]
designs = ["tc"]
workloads = ["all-hercules-beyond", "btree"]
small = true
args = { populate = 7 }
workload_args = { btree = { node-bytes = 128 } }
"""
    units = {unit.scenario.workload: unit.scenario for unit in read(file(sweep)).units()}
    assert units.keys() == {"btree"} | {m.info.name for m in ds.suite_members() if m.suite == "hercules-beyond"}
    assert dict(units["hercules-beyond-btree"].workload_args) == {"populate": "7", "node-bytes": "64"}
    assert dict(units["btree"].workload_args) == {"populate": "7", "node-bytes": "128"}
    assert units["btree"].ops == 24


def test_controls_of_several_campaigns_lie_in_one_file(file, tmp_path):
    (tmp_path / "shared.toml").write_text(CONTROL)
    path = file(SWEEP, 'name = "test"\ncontrols = ["shared.toml"]\n')
    assert [unit.control.name for unit in read(path).units() if unit.control is not None] == ["opt"]
    (tmp_path / "shared.toml").write_text(SWEEP)
    with pytest.raises(ds.ConfigError, match=r"shared\.toml"):
        read(path)
    (tmp_path / "shared.toml").unlink()
    with pytest.raises(ds.HostIoError, match=r"shared\.toml"):
        read(path)


def test_a_control_that_passes_makes_it_fail(file):
    document = ds.campaign(file(SWEEP + CONTROL.replace('"violation"', '"survival"')))
    assert len(document["failed_checks"]) == 1
    assert "control opt: survival expected, violation found" in document["failed_checks"][0]


def test_violations_make_it_fail(file):
    sweep = SWEEP.replace('["tc", "swl-eadr"]', '["opt"]')
    document = ds.campaign(file(sweep))
    conforms(document)
    assert document["violations"] > 0
    assert "violations" in document["failed_checks"][0]
    assert all("durasim crash --design opt" in failure["command"] for failure in document["failures"])


def test_marks_that_are_never_hit_make_a_long_campaign_fail(file):
    document = ds.campaign(file(SWEEP, head='name = "test"\nmarks = true\n'))
    assert "tc/tc_full" not in document["marks_missed"] or document["marks"]["tc/tc_full"] == 0
    missed = [reason for reason in document["failed_checks"] if reason.startswith("never hit: ")]
    assert [f"never hit: {mark}" for mark in document["marks_missed"]] == missed
    # Two threads on four cores never lose a core.
    hercules = SWEEP.replace('["tc", "swl-eadr"]', '["hercules"]')
    document = ds.campaign(file(hercules, head='name = "test"\nmarks = true\n'))
    assert "hercules/transaction_off_its_core" in document["marks_missed"]


def test_completed_runs_are_not_repeated(file, tmp_path):
    path, kept = file(SWEEP + CONTROL), tmp_path / "kept.sqlite"
    first = ds.campaign(path, store=kept)
    second = ds.campaign(path, store=kept)
    assert first["units_resumed"] == 0
    assert second["units_resumed"] == second["units"] == first["units"] == 13
    cost = ("units_resumed", "wall_s", "trials_per_s_per_core")
    assert {k: v for k, v in second.items() if k not in cost} == {k: v for k, v in first.items() if k not in cost}


def test_a_campaign_goes_on_after_kill_9(file, tmp_path):
    path, kept = file(SWEEP + CONTROL), tmp_path / "kept.sqlite"
    command = [sys.executable, "-m", "durasim", "campaign", path, "--store", str(kept)]

    def verdicts():
        if not kept.exists():
            return {}
        with sqlite3.connect(kept) as connection:
            return dict(connection.execute("SELECT key, document FROM result").fetchall())

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while len(verdicts_or_none(verdicts)) < 3 and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    before = verdicts()
    assert len(before) >= 3
    document = ds.campaign(path, store=kept)
    assert document["units_resumed"] == len(before)
    assert document["units"] == 13
    after = verdicts()
    assert len(after) == 13
    assert before.items() <= after.items()


def verdicts_or_none(read):
    try:
        return read()
    except sqlite3.OperationalError:  # the file has no table yet, or is being written
        return {}


def test_time_decides_how_many_rounds_there_are(file):
    document = ds.campaign(file(SWEEP + CONTROL), seconds=0.001)
    assert document["units"] == 1, "controls are always run"
    one = SWEEP.replace('"tc", "swl-eadr"', '"tc"').replace("threads = [1, 2]\nseeds = 3\n", "")
    assert ds.campaign(file(one))["units"] == 1
    document = ds.campaign(file(one), seconds=3)
    assert document["units"] > 1, "seeds go on"
    assert document["failed_checks"] == []


def test_a_short_time_tries_runs_of_every_sweep(file):
    many = SWEEP.replace('"tc", "swl-eadr"', '"tc"').replace("seeds = 3", "seeds = 20")
    campaign = read(file(many + many.replace('"tc"', '"hoop"') + CONTROL))
    in_file = campaign.units()
    drawn = ordered(in_file, 0, 1000.0)
    assert drawn[0].control is not None
    assert {unit.scenario.design for unit in drawn[1:9]} == {"tc", "hoop"}
    assert sorted(map(repr, drawn)) == sorted(map(repr, in_file))
    assert drawn == ordered(in_file, 0, 1000.0), "equal rounds have an equal order"
    assert ordered(in_file, 0, None) == in_file


def test_arguments_are_drawn_for_the_runs_that_have_them(file):
    drawn = """
[sweep.draw_args]
attempts = [1, 3]
element-bytes = { from = 64, to = 67 }
"""
    sweep = SWEEP.replace('"tc", "swl-eadr"', '"htm-sgl", "swl-eadr"').replace(
        '["array-swap"]', '["array-swap", "queue"]'
    )
    path = file(sweep.replace("seeds = 3", "seeds = 12") + drawn)
    runs = {}
    for unit in read(path).units():
        runs.setdefault((unit.scenario.design, unit.scenario.workload), []).append(dict(unit.scenario.workload_args))
    assert all(set(args) == {"populate"} for args in runs["swl-eadr", "queue"])
    assert {args["attempts"] for args in runs["htm-sgl", "queue"]} == {"1", "3"}
    assert {args["element-bytes"] for args in runs["swl-eadr", "array-swap"]} == {"64", "65", "66", "67"}
    assert [unit.request() for unit in read(path).units()[:2]] == [unit.request() for unit in read(path).units()[:2]]
    with pytest.raises(ds.ConfigError, match=r"unknown name 'atempts' .did you mean 'attempts'"):
        read(file(sweep + drawn.replace("attempts", "atempts"))).units()
    with pytest.raises(ds.ConfigError, match="draw_args: element-bytes: a range from 4 to 1 is empty"):
        read(file(sweep + drawn.replace("from = 64, to = 67", "from = 4, to = 1")))


def test_trials_decide_how_many_rounds_there_are(file, tmp_path):
    one = SWEEP.replace('"tc", "swl-eadr"', '"tc"').replace("threads = [1, 2]\nseeds = 3\n", "")
    once = ds.campaign(file(one))["trials"]
    wanted = 3 * once + 1
    path, reported = file(one + CONTROL, f'name = "test"\ntrials = {wanted}\n'), []
    document = ds.campaign(path, progress=lambda *said: reported.append(said), store=tmp_path / "kept.sqlite")
    conforms(document)
    assert document["failed_checks"] == []
    assert document["trials"] >= wanted
    rounds = document["units"] - 1
    assert document["trials"] - document["trials"] // rounds < wanted, "no round more than it takes"
    assert reported[-1][:2] == (wanted, wanted)
    assert reported[0][0] < wanted
    # What there is to judge does not depend on how fast that goes.
    again = ds.campaign(path, store=tmp_path / "kept.sqlite")
    assert again["units_resumed"] == again["units"] == document["units"]
    # Time may end it earlier.
    short = ds.campaign(file(one, 'name = "test"\ntrials = 1000000000\n'), seconds=1)
    assert 0 < short["trials"] < 1_000_000_000


def test_trials_of_runs_that_fail_by_themselves_are_not_waited_for(file):
    refused = SWEEP.replace("populate = 6", "populate = 100000000")
    document = ds.campaign(file(refused, 'name = "test"\ntrials = 1000\n'))
    assert document["trials"] == 0
    assert document["units"] == 12
    assert len(document["failed_checks"]) == 12


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("[[sweep]]\n", "sweep.0", "designs"),
        (SWEEP.replace("points = 20", "points = 0"), "sweep.0.points", "0"),
        (SWEEP + "[[sweeps]]\n", "campaign", "sweeps"),
        (SWEEP.replace("seeds = 3", "faults = ['rust']"), "sweep.0.faults.0", "rust"),
        (SWEEP.replace("seeds = 3", "variants = 5000"), "sweep.0.variants", "1024"),
        (SWEEP.replace("points = 20", f"points = {10**20}"), "points", str(10**15)),
        (SWEEP.replace('"tc"', '"tcc"') + "[sweep.draw_args]\nupdate-percent = [1]\n", "design", "did you mean 'tc'"),
        (SWEEP.replace('"tc"', '"tcc"').replace("seeds = 3", "overflow = true"), "design", "did you mean 'tc'"),
        (SWEEP + "[sweep.draw_args]\nops = [1]\n", "draw_args", "unknown name 'ops'"),
        (SWEEP + "[sweep.draw_args]\npopulate = [1]\n", "draw_args", "drawn and given"),
        (SWEEP + "[sweep.draw_args]\nelement-bytes = [64, 'many']\n", "arg element-bytes", "many"),
        (SWEEP.replace('"tc"', '"tcc"'), "design", "did you mean 'tc'"),
        (SWEEP.replace('["array-swap"]', '["arrayswap"]'), "workload", "array-swap"),
        ("[[sweep", "campaign", "not TOML"),
    ],
)
def test_a_wrong_file_is_refused(file, text, field, words):
    with pytest.raises(ds.ConfigError) as refused:
        ds.campaign(file(text))
    assert refused.value.field == field
    assert words in str(refused.value)


def test_a_store_that_is_none_is_refused(file, tmp_path):
    path = tmp_path / "kept.sqlite"
    shutil.copy(__file__, path)
    with pytest.raises(ds.HostIoError, match="is no store of results"):
        ds.campaign(file(SWEEP), store=path)
    with pytest.raises(ds.HostIoError):
        ds.campaign(file(SWEEP), store="/proc/none/kept.sqlite")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("crash", "--campaign", "x.toml", "--seconds", "3"), "to its own command: `durasim campaign FILE.toml`"),
        (("crash", "--campaign=x.toml"), "durasim campaign"),
        (("crash", "--workload", "btree"), "design: "),
        (("campaign",), "FILE.toml"),
        (("campaign", "x.toml", "--seconds", "0"), "seconds: 0 is not above 0"),
        (("campaign", "x.toml", "--design", "tc"), "design: "),
    ],
)
def test_what_is_no_campaign_is_refused(words, said):
    result = command_line.run(*words)
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
