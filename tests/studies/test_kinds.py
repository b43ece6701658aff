"""Studies of crashes and of own programs, seeds, and notes about keys without effect."""

import json
from pathlib import Path

import pytest
from in_process import sweep

import command_line
import compiled
import durasim as ds

ROOT = Path(__file__).resolve().parents[2]
BANK = ROOT / "guest" / "examples" / "stamp" / "bank.c"
CRASH = {"kind": "crash", "crash": {"points": 8, "faults": ["clean"]}}


def test_a_crash_study_has_the_verdicts_of_single_crashes(tmp_path):
    store = tmp_path / "s.sqlite"
    result = sweep(store, designs=["opt", "tc"], axes={"crash.variants": [1, 2]}, **CRASH)
    found = {(point.values["design"], point.metrics["violations"] > 0) for point in result.points}
    assert found == {("opt", True), ("tc", False)}
    assert set(result.to_frame()["trials"]) == {point.metrics["trials"] for point in result.points}
    path = tmp_path / "crash.json"
    words = result.points[-1].command.split()
    assert words[1:4] == ["crash", "--design", "tc"]
    assert command_line.run(*words[1:], "--reuse", "--store", store, "--json", path).returncode == 0
    # The command was answered by the store: its time is that of the study.
    alone = json.loads(path.read_text())
    assert alone["host"]["seconds"] == result.points[-1].metrics["host_seconds"]
    assert alone["trials"] == result.points[-1].metrics["trials"]
    again = sweep(store, designs=["opt", "tc"], axes={"crash.variants": [1, 2]}, **CRASH)
    assert (again.reused, [point.digest for point in again.points]) == (4, [point.digest for point in result.points])


def test_a_crash_study_that_finds_violations_ends_with_exit_code_one(tmp_path):
    file = tmp_path / "crash.toml"
    text = 'name = "c"\nkind = "crash"\ndesigns = ["DESIGN"]\nworkloads = ["array-swap"]\nmachine = "tiny"\nops = 4\n'
    text += "args = { populate = 8 }\ncrash = { points = 8 }\n"
    for design, code in (("opt", 1), ("tc", 0)):
        file.write_text(text.replace("DESIGN", design))
        ran = command_line.run("sweep", file, "--store", tmp_path / "s.sqlite", "--jobs", 1)
        assert ran.returncode == code, ran.stderr
        assert "violations" in ran.stdout


@pytest.fixture(scope="module")
def bank():
    return compiled.stamp(BANK, "undo-flush")


def program_study(bank, **changed):
    args = ["run", "-n", "{transfers}", "-t", "2", "-a", "4"]
    keys = {"designs": ["swl-flush"], "workloads": None, "args": None, "ops": None}
    keys |= {"programs": [{"name": "bank", "elf": bank.name, "args": args, "env": ["A=b"]}]}
    return sweep(folder=bank.parent, **(keys | {"axes": {"arg.transfers": [4, 8]}} | changed))


def test_own_programs_are_swept_over_their_arguments(bank, tmp_path):
    result = program_study(bank, path=tmp_path / "s.sqlite")
    assert [tuple(point.values.values()) for point in result.points] == [
        ("bank", "swl-flush", "tiny", transfers) for transfers in (4, 8)
    ]
    few, many = (point.metrics["tx_committed"] for point in result.points)
    assert 0 < few < many
    assert result.points[0].command.endswith("--env A=b -- run -n 4 -t 2 -a 4")
    other = [{"name": "bank", "elf": bank.name, "args": ["run", "-n", "{transfers}", "-t", "2", "-a", "4"]}]
    assert program_study(bank, path=tmp_path / "s.sqlite", programs=other).reused == 0


def test_own_programs_are_crashed(bank):
    result = program_study(bank, kind="crash", crash={"points": 6, "check_args": ["check"], "faults": ["clean"]})
    assert [point.metrics["violations"] for point in result.points] == [0, 0]
    assert "--check check" in result.points[0].command


def test_an_argument_that_no_word_contains_is_refused(bank):
    with pytest.raises(ds.ConfigError, match=r"axes.arg.tranfers: no argument of bank contains {tranfers}"):
        program_study(bank, axes={"arg.tranfers": [4], "arg.transfers": [4]})


def test_seeds_repeat_points():
    result = sweep(seeds=3, workloads=["btree"], args={"populate": 20})
    assert [point.values["seed"] for point in result.points] == [1, 2, 3]
    assert len({point.digest for point in result.points}) == 3


def test_a_key_that_changes_no_result_is_noted_with_the_counters_of_its_structure():
    axes = {"design.hercules.ewpq_entries": [16, 64], "llc.latency_cycles": [30, 60]}
    result = sweep(machine="hercules-tecs23-modern", axes=axes)
    (note,) = result.notes
    assert note.startswith("design.hercules.ewpq_entries: no result depends on it; hercules.ewpq_")
    assert "is 0 at every point" in note
    small = sweep(machine="tiny", workloads=["btree"], args={"populate": 400}, ops=10, axes={
        "design.hercules.ewpq_entries": [2, 64],
    })  # fmt: skip
    assert small.notes == ()
