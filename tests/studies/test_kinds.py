"""Studies of crashes and of own programs, seeds, and notes about keys without effect."""

import json
import tomllib
from pathlib import Path

import pytest
from in_process import sweep

import command_line
import compiled
import durasim as ds
import schemas

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


PROGRAM_STUDY = """
name = "programs"
kind = "crash"
designs = ["opt"]
machine = "tiny"
crash = { points = 20, faults = ["clean", "reorder"] }
seeds = 2
[[programs]]
name = "wrong"
elf = "causes"
args = ["run", "{mistake}", "{threads}", "{seed}"]
check = "check {mistake} {threads} {seed}"
[[programs]]
name = "right"
elf = "causes"
args = ["run", "{mistake}", "right"]
check = "check {mistake} right"
again = "run {mistake} right"
[axes]
"arg.mistake" = ["missing-clean", "missing-fence"]
"""
CAUSES = Path(__file__).resolve().parents[1] / "crash" / "causes.c"


def test_a_study_crashes_programs_with_checks_and_keeps_their_failures_and_causes(tmp_path):
    (tmp_path / "causes").symlink_to(compiled.program(CAUSES))
    study, store = tmp_path / "study.toml", tmp_path / "s.sqlite"
    study.write_text(PROGRAM_STUDY)
    keys = {"workloads": None, "ops": None, "args": None} | tomllib.loads(PROGRAM_STUDY)
    result = sweep(store, folder=str(tmp_path), **keys)
    by_program = {name: [of for of in result.points if of.values["program"] == name] for name in ("wrong", "right")}
    assert all(of.metrics["violations"] == 0 and of.causes is None and not of.failures for of in by_program["right"])
    lines = CAUSES.read_text().splitlines()
    for point in by_program["wrong"]:
        mistake, seed = point.values["arg.mistake"], point.values["seed"]
        (line,) = [number for number, text in enumerate(lines, 1) if f"/* {mistake} */" in text]
        assert {cause["stores"][0]["at"]["line"] for cause in point.causes["found"]} == {line}
        assert f"--check 'check {mistake} 1 {seed}'" in point.command
        assert point.command.endswith(f"-- run {mistake} 1 {seed}")
        assert point.failures[0].command.endswith(f"-- run {mistake} 1 {seed}")
    frame = result.to_frame()
    assert set(frame.filter(frame["program"] == "wrong")["causes"]) == {1}
    assert set(frame.filter(frame["program"] == "right")["first_cause"]) == {None}
    causes = result.causes_frame()
    assert (causes.height, set(causes["function"])) == (4, {"missing_clean", "missing_fence"})
    assert set(causes["seed"]) == {1, 2}
    assert result.failures_frame().height == sum(len(point.failures) for point in result.points)
    again = sweep(store, folder=str(tmp_path), **keys)
    assert (again.reused, [of.causes for of in again.points]) == (8, [of.causes for of in result.points])
    schemas.validate("sweep", json.loads(result.to_json()))
    shown = command_line.run("sweep", study, "--store", store, "--jobs", 1)
    assert shown.returncode == 1
    assert "causes of violations" in shown.stdout
    assert "no-clean" in shown.stdout
    assert "  e" in shown.stdout and "--replay e" in shown.stdout
    planned = command_line.run("sweep", study, "--plan", "--store", store)
    assert "8 points, 0 to simulate" in " ".join(planned.stdout.split())
    exported = tmp_path / "crashes.csv"
    command_line.run("results", "export", exported, "--store", store, "--kind", "crash")
    assert "in missing_fence" in exported.read_text()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "run", "crash": None}, r'programs.check: applies only to a study of kind = "crash"'),
        ({"crash": {"check_args": ["check"]}}, "programs.check: crash.check_args gives it for all programs"),
        ({"threads": [1, 2]}, "threads: no argument of bank contains {threads}"),
    ],
)
def test_keys_of_checks_without_effect_are_refused(changed, words):
    programs = [{"name": "bank", "elf": "bank", "args": ["run", "-n", "{transfers}"], "check": "check"}]
    given = {"kind": "crash", "programs": programs} | changed
    with pytest.raises(ds.ConfigError, match=words):
        program_study(Path("bank"), **{name: value for name, value in given.items() if value is not None})


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
