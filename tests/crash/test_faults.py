"""Kinds of power failures: each occurs, durable designs survive it, and each has a failing control."""

import json

import pytest

import durasim as ds
from durasim import _core
from durasim.crashes.crash_request import CrashOptions, crash_request
from durasim.documents.described_crash import FAULTS
from durasim.programs import toolchain
from durasim.runs.scenario import Scenario
from pairing import rows_with

SMALL = {"workload": "array-swap", "machine": "tiny", "ops": 12, "points": 80}
DURABLE = rows_with("transactions", control=False)


def crash(design, *faults, **options):
    arguments = {"populate": 12, **options.pop("workload_args", {})}
    return ds.crash(design=design, faults=faults, **{**SMALL, "workload_args": arguments, **options})


@pytest.mark.long  # The faults of campaigns/quick.toml, tested for each design separately.
@pytest.mark.parametrize("workload", ["array-swap", "btree"])
@pytest.mark.parametrize("design", DURABLE)
def test_durable_designs_survive_everything_at_once(design, workload):
    result = crash(design, *FAULTS, workload=workload, threads=2)
    assert result.failures == ()
    assert result.nested_depth_max >= 1
    assert result.trials_by_fault["recrash"] > 0


def test_lines_are_torn_where_no_queue_keeps_them():
    result = crash("swl-flush", "torn", domain="media", variants=8)
    assert result.violations == 0
    assert result.trials_by_fault["torn"] > 100
    assert "torn" not in crash("swl-flush", "torn").trials_by_fault


def test_cleans_without_fences_are_reordered():
    with_fences = crash("swl-flush", "reorder")
    assert with_fences.violations == 0
    assert with_fences.trials_by_fault["reorder"] > 10
    without = {"workload_args": {"no-fence": True}}
    # A line evicted by the LLC has a shorter path than a clean, and may overtake it. Otherwise all arrive in order; if
    # the queue is never full, they are durable when the core continues.
    settings = ["interconnect.core_to_controller_cycles=0", "pmem.controller.write_queue_entries=256"]
    in_order = {"set": settings, "points": "all", **without}
    assert crash("swl-flush", "clean", **in_order).violations == 0, "the machine itself preserves their order"
    assert crash("swl-flush", "clean", **without).violations > 0
    assert crash("swl-flush", "reorder", **without).violations > 0
    # Total store order, and durable from the store buffer on: the log entry is always first.
    assert crash("swl-eadr", *FAULTS, **without).violations == 0


@pytest.mark.parametrize("design", ["hercules", "swl-eadr"])
def test_exhausted_energy_is_reported(design):
    result = crash(design, "energy", variants=4)
    assert result.violations == 0
    assert result.trials_by_fault["energy"] > 100
    assert 0 < result.losses_reported <= result.trials_by_fault["energy"]


def test_transaction_caches_need_no_energy():
    assert "energy" not in crash("tc", "energy").trials_by_fault


@pytest.mark.parametrize("design", ["hercules", "tc", "swl-flush"])
def test_recoveries_fail_up_to_three_times_in_a_row(design):
    settings = {"design.hercules.ewpq_entries": 2} if design == "hercules" else {}
    result = crash(design, "nested", ops=30, points=150, set=settings)
    assert result.violations == 0
    assert result.trials_by_fault["nested"] > 5
    assert result.nested_depth_max == 3


def test_recovery_fails_at_each_of_its_writes_if_all_points_are_wanted():
    settings = {"set": {"design.hercules.ewpq_entries": 2}, "workload_args": {"populate": 8}}
    every = crash("hercules", "nested", workload="btree", ops=4, points="all", **settings)
    drawn = crash("hercules", "nested", workload="btree", ops=4, points=every.points - 1, **settings)
    assert every.violations == drawn.violations == 0
    assert every.trials_by_fault["nested"] > drawn.trials_by_fault["nested"] + 20


def test_background_work_gets_more_crash_points():
    settings = {"design.hercules.ewpq_entries": 2, "design.hercules.migration_period_instructions": 1000}
    few, more = (
        crash("hercules", fault, workload="btree", ops=40, set=settings, workload_args={"populate": 40})
        for fault in ("clean", "background")
    )
    assert few.trials_by_fault["clean"] == 80
    assert more.trials_by_fault["clean"] > 80
    assert more.marks["migration_in_flight"] > few.marks["migration_in_flight"]


def test_work_between_two_crashes_is_judged():
    result = crash("hercules", "recrash", points=160)
    assert result.trials_by_fault["recrash"] > 10
    assert result.violations == 0
    # Each second crash is judged by the bytes, the history and the program, as the first ones are.
    assert result.judged_by["history"] == result.judged_by["guest"] == result.trials
    # A run that fails before its first store leaves no bytes to compare.
    assert result.trials - 5 < result.judged_by["bytes"] <= result.trials


def test_oracles_agree_on_what_is_lost():
    """The other two oracles detect every finding of the program's check in the control."""
    result = crash("opt", "clean", points="all")
    assert result.violations > 0
    for failure in result.failures:
        assert {"bytes", "history"} <= set(failure.oracle.split("+")), failure


@pytest.mark.parametrize("workload", ["array-swap", "btree"])
def test_a_program_that_knows_nothing_of_persistence_is_caught(workload):
    """The runtime `plain` marks no transactions: none is acknowledged, so only the program's own check can fail."""
    scenario = Scenario(design="opt", workload=workload, machine="tiny", ops=12, workload_args=(("populate", "12"),))
    request = crash_request(scenario, CrashOptions(60, ("clean",)))
    request |= {"elf": str(toolchain.build(workload, "plain", history=True)), "history": False}
    result = json.loads(_core.crash(json.dumps(request), None))
    assert result["violations"] > 0
    assert {failure["oracle"] for failure in result["failures"]} == {"guest"}
