"""The history oracle on real runs: reports of operations during the run, compared with the recovered pool."""

import json

import pytest

from durasim import _core
from durasim.crashes.crash_request import CrashOptions, crash_request
from durasim.programs import toolchain
from durasim.runs.scenario import Scenario
from pairing import pairs

SMALL = {info.name: info.small for info in toolchain.workloads()}
# Under the control, objects are in ordinary memory and not in the pool.
WORKLOADS = [info.name for info in toolchain.workloads() if info.interface == "transactions"]
# The control passes only if words of different locks are on separate lines.
SAFE = {"false-sharing": {"shared-lines": "false"}}


def judge(design, workload, threads=1, *, points=60, domain=None, settings=(), ops=None, **workload_args):
    small = dict(SMALL[workload])
    small_ops = small.pop("ops")
    ops = ops or threads * small_ops
    arguments = {**small, **SAFE.get(workload, {}), **workload_args}
    scenario = Scenario(
        design=design,
        workload=workload,
        machine="tiny",
        threads=threads,
        ops=ops,
        settings=settings,
        domain=domain,
        control=design == "opt" or domain is not None,
        workload_args=tuple((name, str(value)) for name, value in arguments.items()),
    )
    result = json.loads(_core.crash(json.dumps(crash_request(scenario, CrashOptions(points, ("clean",)))), None))
    assert result["judged_by"]["guest"] == result["judged_by"]["history"] == result["trials"]
    # At some of the first events nothing has been stored yet.
    assert result["trials"] // 2 <= result["judged_by"]["bytes"] <= result["trials"]
    return result


def objections(result):
    """Violations reported by the history oracle, by crash."""
    messages = [failure["message"].split("; ") for failure in result["failures"]]
    return [part for parts in messages for part in parts if part.startswith("history: ")]


NO_OBJECTS = ("leaked", "allocated", "allocator", "memory is in use", "of the queue")


@pytest.mark.parametrize(
    ("workload", "threads"), pairs(WORKLOADS, (1, 4), keep=lambda workload, threads: threads == workload % 2)
)
def test_the_control_loses_what_was_acknowledged(workload, threads):
    result = judge("opt", workload, threads)
    assert any("is lost" in what or "from nowhere" in what for what in objections(result))
    # The history shows all findings of the program's own check, except losses of the allocator and labyrinth's queue,
    # which are no objects of the history.
    found = [failure for failure in result["failures"] if "guest" in failure["oracle"]]
    for failure in found:
        is_no_object = any(word in failure["message"] for word in NO_OBJECTS)
        assert "history" in failure["oracle"] or is_no_object, failure


@pytest.mark.parametrize(
    ("design", "options"),
    [
        ("swl-eadr", {"domain": "adr"}),
        ("swl-flush", {"no-flush": "true"}),
    ],
)
def test_software_that_does_not_write_back_is_caught(design, options):
    assert any("is lost" in what or "half of" in what for what in objections(judge(design, "array-swap", **options)))


@pytest.mark.parametrize("design", ["swl-flush", "swl-eadr"])
def test_line_granular_undo_overwrites_neighbouring_word(design):
    """The false-sharing control: undo of a transaction also reverts words of others."""

    def objections_with(granularity):
        arguments = {"populate": 24, "shared-lines": "true", "log-granularity": granularity}
        return objections(judge(design, "false-sharing", 4, points=150, ops=80, **arguments))

    assert any("is lost" in what or "half of" in what for what in objections_with("line"))
    assert objections_with("word") == []


def test_a_lock_that_is_released_before_the_commit_is_caught():
    """Figure 7 of LAD: the second of two transactions survives and the first is lost; never if the lock is held."""

    def released(when):
        settings = ("interconnect.path_jitter_cycles=20000", "pmem.controller.write_queue_entries=64")
        arguments = {"populate": 1, "release": when}
        return judge("lad", "critical-section", 2, points=1000, ops=64, settings=settings, **arguments)

    early = released("before-commit")
    assert all("survived in part" in what for what in objections(early))
    oracles = {tuple(sorted(failure["oracle"].split("+"))) for failure in early["failures"]}
    # The byte oracle considers overwritten data only of committing transactions; the second may be acknowledged.
    assert oracles == {("bytes", "guest", "history"), ("guest", "history")}
    late = released("after-commit")
    assert late["failures"] == []
    assert late["trials"] == late["points"] > 500


def test_aborted_attempts_are_forgotten():
    """Threads that share a line abort each other under hercules: an operation reports once per attempt."""
    assert judge("hercules", "false-sharing", 4, ops=80, **{"shared-lines": "true"})["failures"] == []


def test_a_program_that_does_not_dump_is_caught():
    scenario = Scenario(design="tc", workload="btree", machine="tiny", ops=4, workload_args=(("populate", "20"),))
    request = crash_request(scenario, CrashOptions(4, ("clean",)))
    plain = toolchain.build("btree", scenario.backend)
    request |= {"elf": str(plain), "check_args": [arg for arg in request["check_args"] if arg != "--dump"]}
    result = json.loads(_core.crash(json.dumps(request), None))
    assert result["violations"] == result["trials"] == 4
    assert all("wrote no dump" in what for what in objections(result))
    without = json.loads(_core.crash(json.dumps(request | {"history": False}), None))
    assert without["violations"] == 0
    assert "history" not in without["judged_by"]
