"""Programs with their own recovery: it is crashed under every design, and verdicts report what was tested."""

from pathlib import Path

import pytest

import compiled
import durasim as ds
from durasim.cli import render

CASES = Path(__file__).resolve().parents[1] / "cases"
TINY = {"design": "opt", "domain": "adr", "machine": "tiny", "points": "all"}


@pytest.fixture(scope="session")
def built():
    """built(source) builds a program of tests/cases."""

    def build(source):
        return compiled.program(CASES / source, ["-pthread", "-w", f"-I{CASES / 'common'}"])

    return build


def crash(program, run, check, **options):
    return ds.crash(**{**TINY, "elf": program, "args": run.split(), "check_args": check.split(), **options})


@pytest.mark.parametrize("design", ["opt", "swl-flush"])
def test_the_recovery_of_a_program_is_crashed_under_every_design(built, design):
    recovery = built("06-recovery-unfenced/recovery.c")
    result = crash(recovery, "run noclean 3", "check noclean", faults=["nested"], design=design)
    assert result.violations > 0
    assert all("/g" in failure.id for failure in result.failures)
    assert result.not_tried == {}
    replayed = crash(recovery, "run noclean 3", "check noclean", design=design, replay=result.failures[0].id)
    assert replayed.failures[0].message == result.failures[0].message


def test_a_recovery_that_is_right_survives_all_faults(built):
    recovery = built("06-recovery-unfenced/recovery.c")
    result = crash(recovery, "run fixed 3", "check fixed", again_args=["run", "fixed", "2"])
    assert result.failures == ()
    # Without --fault all are tested, also at later power failures.
    assert {"nested", "nested+reorder", "recrash", "recrash+reorder", "reorder"} < result.trials_by_fault.keys()
    assert result.not_tried.keys() == {"background", "energy", "torn"}
    torn = crash(recovery, "run fixed 1", "check fixed", again_args=["run", "fixed", "1"], domain="media")
    assert torn.failures == ()
    assert {"nested+torn", "recrash+torn"} & torn.trials_by_fault.keys()


def test_a_recovery_without_cleans_is_caught_when_the_program_runs_on(built):
    recovery = built("06-recovery-unfenced/recovery.c")
    again = {"again_args": ["run", "noclean", "2"], "faults": ["recrash"]}
    result = crash(recovery, "run noclean 3", "check noclean", **again)
    assert any("+e" in failure.id for failure in result.failures)


@pytest.mark.parametrize("design", ["opt", "swl-flush"])
def test_a_missing_fence_in_a_recovery_is_found_by_a_later_reorder(built, design):
    unfenced = built("06-recovery-unfenced/repro/nofence.c")
    assert crash(unfenced, "run", "check", faults=["nested"], design=design).violations == 0
    result = crash(unfenced, "run", "check", faults=["nested", "reorder"], design=design)
    assert result.violations > 0
    assert all("/g" in failure.id and ":reorder." in failure.id for failure in result.failures)
    command = result.failures[0].command
    assert command.endswith("-- run") and f"--replay {result.failures[0].id}" in command


def test_bytes_are_compared_after_the_recovery_of_the_program(built):
    own_log = built("16-own-log/own_log.c")
    for run, judges in (("run declared 4", {"bytes", "guest"}), ("run 4", {"guest"})):
        result = crash(own_log, run, "check")
        assert result.failures == ()
        assert result.judged_by.keys() == judges


@pytest.mark.parametrize("run", ["run declared 4", "run 4"])
def test_a_log_that_is_not_cleaned_before_the_data_is_caught(built, run):
    assert crash(built("16-own-log/uncleaned_log.c"), run, "check", faults=["clean"]).violations > 0


def test_an_oracle_without_declared_data_does_not_disagree(built):
    ranges = built("04-merged-range/ranges.c")
    result = crash(ranges, "run bug 4", "check", set={"l1d.replacement": "random"})
    assert result.violations > 0
    assert result.disagreements == 0
    assert "bytes" not in result.judged_by


@pytest.mark.parametrize(("kind", "reason"), [("wild", "0x8"), ("illegal", "illegal instruction")])
def test_a_fault_of_the_check_has_its_pc_and_reason(built, kind, reason):
    faulting = built("17-faulting-recovery/faulting.c")
    result = crash(faulting, "run", f"check {kind}", faults=["nested"])
    assert result.violations > 0
    for failure in result.failures:
        assert "guest fault at pc 0x" in failure.message and "pc 0x0:" not in failure.message
        assert reason in failure.message


def test_the_verdict_says_what_was_not_tried(built):
    own_log = built("16-own-log/own_log.c")
    text = render.crash_text(crash(own_log, "run 2", "check", faults=["nested", "torn"])).plain
    assert ": all recoveries correct; not applicable: torn\n" in text
    assert "\n  torn: " in text
    assert "\n  never at risk: " in text
    # Its crash points precede the first write to the pool, so that recovery writes nothing.
    unfenced = built("06-recovery-unfenced/repro/nofence.c")
    text = render.crash_text(crash(unfenced, "run", "run", faults=["background"])).plain
    assert "not applicable: background" in text


def test_failures_with_one_message_are_one_line(built):
    result = crash(built("06-recovery-unfenced/repro/nofence.c"), "run", "check", faults=["nested", "reorder"])
    (alike,) = {failure.alike for failure in result.failures}
    assert alike == result.violations == len(result.failures) > 1
    text = render.crash_text(result).plain
    assert text.count("the word is 1") == 1
    assert f"[{alike} times]" in text
