"""Replays: an id names one failure for ever, and its timeline names the lines, stores and copies that are to blame."""

import json
import shlex
import subprocess
import sys

import pytest

import durasim as ds
from durasim import _core, timeline
from durasim.campaign import CrashOptions, crash_request, finish_crash
from durasim.scenario import Scenario

REPLAYS = 20

# Controls that fail, with the kind of failure that is looked for in their ids.
CASES = {
    "clean": ("opt", {}, "array-swap", {}, ("clean",), ""),
    "torn": ("opt", {"domain": "media"}, "array-swap", {}, ("torn",), ":torn"),
    "reorder": ("swl-flush", {}, "array-swap", {"no-fence": "true"}, ("reorder",), ":reorder"),
    "energy": ("opt", {"domain": "eadr"}, "array-swap", {}, ("energy",), ":energy"),
    "program's recovery": ("swl-flush", {}, "array-swap", {"no-flush": "true"}, ("nested",), "/g"),
    "twice": ("swl-eadr", {"domain": "adr"}, "array-swap", {}, ("twice",), "+e"),
}


def scenario_of(design, fields, workload, arguments):
    arguments = {"populate": "20", **arguments}
    return Scenario(
        design=design, workload=workload, machine="tiny", ops=12, control=True,
        workload_args=tuple(arguments.items()), **fields,
    )  # fmt: skip


def crash(scenario, options):
    return finish_crash(json.loads(_core.crash(json.dumps(crash_request(scenario, options)), None)), scenario)


def failure_of(scenario, faults, sign):
    """Finds a failure whose id has this sign."""
    request = crash_request(scenario, CrashOptions("all", faults))
    found = finish_crash(json.loads(_core.crash(json.dumps(request), None)), scenario)
    signed = [failure for failure in found.failures if sign in failure.id]
    assert signed, (found.trials_by_fault, [failure.id for failure in found.failures])
    return signed[0]


@pytest.mark.parametrize("name", CASES)
def test_a_failure_replays_the_same_way_every_time(name, conforms):
    *run, faults, sign = CASES[name]
    scenario = scenario_of(*run)
    failure = failure_of(scenario, faults, sign)
    first = None
    for _ in range(REPLAYS):
        result = crash(scenario, CrashOptions(replay=failure.id))
        assert result.failures == (failure,)
        told = result.to_dict()
        conforms("crash", told)
        first = first or told["timeline"]
        assert told["timeline"] == first
    assert {o["oracle"] for o in first["objections"]} == set(failure.oracle.split("+"))
    shown = timeline.timeline_text(first).plain
    assert failure.id in shown
    assert all(len(line) <= timeline.WIDTH for line in shown.splitlines()), shown
