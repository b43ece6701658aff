"""Every option has an effect: it changes the simulation, or is refused where it would not."""

import dataclasses
import json

import pytest

import durasim as ds
from durasim import _core, output
from durasim.crashes.crash_request import CrashOptions
from durasim.runs.scenario import Scenario

BASE = {"design": "tc", "workload": "array-swap", "machine": "tiny", "ops": 8, "threads": 2}
ARGUMENTS = (("populate", "8"), ("warm-ops", "4"))
# For each field of a scenario: another value, and the other options that it needs to have an effect.
CHANGED = {
    "design": ("kiln", {}),
    "workload": ("btree", {"workload_args": (("populate", "8"),)}),
    "machine": ("tc-dac17", {}),
    "ops": (9, {}),
    "threads": (1, {}),
    "seed": (2, {}),
    "settings": (("design.tc.entries=4",), {}),
    "domain": ("adr", {"control": True}),
    "workload_args": ((("populate", "9"),), {}),
    "max_instructions": (50, {}),
    "functional": (True, {}),
    "fast_forward": ("roi", {}),
    "warm": (False, {"fast_forward": "roi"}),
    "stop_after_roi": (True, {}),
}
# Files, which other tests cover; external programs; --control, which only permits.
ELSEWHERE = {
    "root",
    "root_write",
    "persistence_report",
    "batches",
    "pool",
    "max_memory_mib",
    "snapshot_at",
    "snapshot",
    "from_",
    "elf",
    "args",
    "env",
    "control",
    "scale",
    "macros",
    "include_folders",
}


def _outcome(fields):
    scenario = Scenario(**{**BASE, "workload_args": ARGUMENTS, **fields})
    try:
        document = json.loads(_core.run(json.dumps(scenario.request()), output.discard, None, None))
    except ds.DurasimError as error:
        return str(error)
    return {name: document[name] for name in ("digest", "roi", "stats", "guest_exit_code")}


def test_every_option_of_a_run_is_looked_at():
    assert {field.name for field in dataclasses.fields(Scenario)} == CHANGED.keys() | ELSEWHERE


@pytest.mark.parametrize("name", CHANGED)
def test_an_option_changes_the_run(name):
    value, beside = CHANGED[name]
    assert _outcome(beside) != _outcome(beside | {name: value})


@pytest.mark.parametrize("workload", [workload.name for workload in ds.workloads()])
def test_arguments_are_taken_by_the_commands_that_they_name(workload):
    """The listed arguments of a workload for `run` reach the command line of the program."""
    info = next(found for found in ds.workloads() if found.name == workload)
    design = next(row["name"] for row in ds.designs() if info.interface in row["interfaces"])
    for argument in info.arguments:
        if argument.name in ("ops", "seed", "threads") or not set(argument.commands) & {"run"}:
            continue
        value = "true" if argument.type == "flag" else str(argument.default)
        scenario = Scenario(design=design, workload=workload, workload_args=((argument.name, value),), control=True)
        assert f"--{argument.name}" in scenario.guest_command("run", 1)


def test_every_option_of_crash_is_looked_at():
    tried = {field.name for field in dataclasses.fields(CrashOptions)}
    known = {"points", "faults", "variants", "replay", "workers", "recovery_limit"}
    known |= {"check_args", "again_args", "oracles", "persistency_model", "check_output"}
    assert tried == known, "refuse a new option in cli/crash_commands.py where it has no effect"
