"""`durasim crash`: verdicts, replay and the documents."""

import json
import re
import shlex

import pytest
from typer.testing import CliRunner

import durasim as ds
from durasim import cli
from durasim.cli import crash_commands, render
from durasim.crashes import crash_request
from durasim.documents.described_crash import CrashOptions
from durasim.programs import toolchain
from durasim.runs.scenario import Scenario
from pairing import rows_with

SMALL = ["--workload", "btree", "--machine", "tiny", "--ops", "12", "--arg", "populate=12"]
DURABLE = rows_with("transactions", control=False)


# tests/conformance/test_pairs.py covers the product of designs and workloads; here one design of each runtime.
FIRST_OF_BACKEND = {row["backend"]: row["name"] for row in reversed(ds.designs()) if row["name"] in DURABLE}


@pytest.mark.parametrize("design", sorted(FIRST_OF_BACKEND.values()))
def test_designs_keep_their_promise(program, conforms, design):
    result = program("crash", "--design", design, *SMALL, "--points", "60", "--json", "-")
    assert result.returncode == 0, result.stdout + result.stderr
    document = json.loads(result.stdout)
    conforms("crash", document)
    assert document["violations"] == 0
    assert document["failures"] == []
    assert document["trials"] >= 60
    assert sum(document["events_by_kind"].values()) == document["points"]


def test_opt_is_caught_and_its_failure_replays(program, conforms, tmp_path):
    path = tmp_path / "verdict.json"
    result = program("crash", "--design", "opt", *SMALL, "--points", "60", "--json", path)
    assert result.returncode == 1, result.stderr
    document = json.loads(path.read_text())
    conforms("crash", document)
    assert document["violations"] > 0
    failure = document["failures"][0]
    assert failure["command"] in result.stdout.replace("\n", " ")
    words = shlex.split(failure["command"])
    assert words[:2] == ["durasim", "crash"]
    again = program(*words[1:], "--json", "-")
    assert again.returncode == 1, again.stderr
    replayed = json.loads(again.stdout)
    assert replayed["trials"] == 1
    assert replayed["failures"][0]["id"] == failure["id"]
    assert replayed["failures"][0]["message"] == failure["message"]


def test_software_logging_without_flushes_is_caught_under_adr(program):
    result = program("crash", "--design", "swl-eadr", "--domain", "adr", "--control", *SMALL, "--points", "60")
    assert result.returncode == 1, result.stderr
    assert "violation" in result.stdout


def test_campaigns_are_reproducible():
    first, second = (
        ds.crash(
            design="tc", workload="btree", machine="tiny", ops=8, points=20, workload_args={"populate": 8}
        ).to_dict()
        for _ in range(2)
    )
    cost = {"host": None, "trials_per_s_per_core": None}
    assert {**first, **cost} == {**second, **cost}


def test_progress_is_reported_and_can_end_the_campaign():
    reported = []

    def progress(done, total):
        reported.append((done, total))
        return done < 5

    result = ds.crash(
        design="hercules", workload="btree", machine="tiny", ops=60, points=2000, workload_args={"populate": 8},
        progress=progress,
    )  # fmt: skip
    assert reported
    assert reported == sorted(reported)
    assert result.trials < 2000


def test_all_points_are_announced_with_about_how_long_they_take(program):
    tiny = ["--workload", "array-swap", "--machine", "tiny", "--ops", "4", "--arg", "populate=4", "--json", "-"]
    result = program("crash", "--design", "tc", *tiny, "--points", "all")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    announced = rf"durasim: {document['points']:,} persist events to crash at, about (a second|\d+ \w+)\n"
    assert re.fullmatch(announced, result.stderr)
    assert program("crash", "--design", "tc", *tiny, "--points", "5").stderr == ""


def test_a_power_failure_is_none_of_the_planted_faults(refused):
    refused(["crash", "--design", "tc", *SMALL, "--fault", "freed-at-issue"], 2, "fault", "clean", "recrash")
    refused(["crash", "--design", "tc", *SMALL, "--fault", "twice"], 2, "fault", "recrash")


def test_the_progress_separates_the_runs_before_the_first_crash_from_the_crashes(monkeypatch):
    """A workload may populate for minutes before the first crash."""
    bar = render.progress_bar()
    before, after = [], []
    make, change = bar.add_task, bar.update

    def add_task(description, **options):
        before.append(description)
        return make(description, **options)

    def update(task, **options):
        after.append((options["description"], options["total"]))
        change(task, **options)

    bar.add_task, bar.update = add_task, update
    monkeypatch.setattr(render, "progress_bar", lambda: bar)
    scenario = Scenario(design="tc", workload="array-swap", machine="tiny", ops=4, workload_args=(("populate", "4"),))
    crash_commands._crash_one(scenario, CrashOptions(5, ("clean",)), shrink=False)
    assert before == ["running tc up to the first crash"]
    assert set(after) == {("crashing tc", 5)}


def test_a_campaign_is_checked_once_and_builds_one_program(monkeypatch):
    calls = []

    def counted(owner, name):
        called = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **named: (calls.append(name), called(*given, **named))[1])

    counted(toolchain, "build")
    counted(Scenario, "check")
    counted(crash_request, "check_options")
    command = ["crash", "--design", "tc", "--workload", "array-swap", "--machine", "tiny", "--ops", "4"]
    done = CliRunner().invoke(cli.app, [*command, "--arg", "populate=4", "--points", "all"])
    assert done.exit_code == 0, done.output
    assert sorted(calls) == ["build", "check", "check_options"]
