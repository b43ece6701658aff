"""Programs whose recovery, check or rerun does not terminate after a crash, and partial writes of the medium."""

import shlex
from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds

CASES = Path(__file__).resolve().parents[1] / "cases"
LIMIT = 1_000_000
"""Instruction limit: these programs take some thousand without a power failure."""


def built(case):
    return compiled.program(CASES / case, ["-w", f"-I{CASES / 'common'}"])


@pytest.fixture(scope="session")
def lock():
    """A lock next to its data: power may fail while the lock is persisted as taken."""
    return built("03-stuck-lock/lock.c")


@pytest.fixture(scope="session")
def torn():
    """Contents and a valid flag on one line."""
    return built("01-same-line-order/repro/torn.c")


def crash(elf, run, check, **options):
    options = {"design": "opt", "domain": "adr", "machine": "tiny", **options}
    return ds.crash(elf=elf, args=shlex.split(run), check_args=shlex.split(check), **options)


def test_a_check_that_does_not_end_is_a_verdict_of_its_own(lock):
    result = crash(lock, "run keep 8", "check keep", points="all", faults=["clean"], recovery_limit=LIMIT)
    assert result.hangs == result.violations > 20
    assert {failure.oracle for failure in result.failures} == {"termination"}
    messages = {failure.message for failure in result.failures}
    assert len(messages) == 1, messages
    text = messages.pop()
    assert "the check does not end" in text
    assert f"after {LIMIT} instructions; {result.failures[0].id} is at pc 0x" in text
    assert text.endswith(f"after {10 * LIMIT} instructions")
    assert f"--recovery-limit {LIMIT}" in result.failures[0].command
    assert result.limits["check_instructions"] == LIMIT
    again = crash(lock, "run keep 8", "check keep", points="all", faults=["clean"], recovery_limit=LIMIT)
    assert [vars_of(failure) for failure in again.failures] == [vars_of(failure) for failure in result.failures]


def vars_of(failure):
    return failure.id, failure.oracle, failure.message, failure.command


def test_without_an_option_the_limit_follows_from_what_is_taken_without_a_crash(lock):
    result = crash(lock, "run reinit 8", "check reinit", points=3, faults=["clean"])
    assert result.violations == result.hangs == 0
    assert result.limits["check_instructions"] == result.limits["work_instructions"] == 10_000_000
    assert result.limits["memory_bytes"] == 64 << 20


def test_work_between_two_crashes_that_does_not_end_is_a_verdict(lock):
    options = {"again_args": ["run", "keep", "2"], "recovery_limit": LIMIT}
    found = crash(lock, "run keep 8", "check reinit", replay="e3+e1", **options)
    assert [failure.oracle for failure in found.failures] == ["termination"]
    assert "the further work does not end" in found.failures[0].message
    # The check takes the lock of the pool and keeps it.
    recovery = crash(lock, "run keep 8", "check keep", design="swl-flush", replay="e3/g1", recovery_limit=LIMIT)
    assert [failure.oracle for failure in recovery.failures] == ["termination"]


def test_a_limit_that_is_too_small_is_no_verdict(lock):
    result = crash(lock, "run reinit 8", "check reinit", points=3, faults=["clean"], recovery_limit=3_000)
    assert result.violations == 0, "the trials end with ten times the limit"
    refused = ["crash", "--design", "opt", "--machine", "tiny", "--elf", lock]
    refused += ["--check", "check reinit", "--recovery-limit", "0", "--", "run", "reinit", "8"]
    done = command_line.run(*refused)
    assert done.returncode == 2
    assert "recovery-limit: 0 is not between 1 and" in done.stderr


@pytest.mark.parametrize("run", ["run", "run beside"])
def test_power_may_fail_at_any_moment_of_a_medium_write(torn, run):
    result = crash(torn, run, "check", domain="media", points="all", faults=["torn"], variants=64)
    assert result.violations > 0
    assert all(":torn." in failure.id for failure in result.failures)
    assert result.events_by_kind["media_write_start"] == result.events_by_kind["media_write"] > 0
    without = crash(torn, run, "check", domain="media", points="all", faults=["clean"])
    assert without.violations == 0


def test_where_queues_survive_the_begin_of_a_medium_write_is_no_event(torn):
    result = crash(torn, "run beside", "check", points="all", faults=["torn"])
    assert (result.violations, result.events_by_kind["media_write_start"]) == (0, 0)
    assert dict(result.trials_by_fault) == {"clean": result.trials}
