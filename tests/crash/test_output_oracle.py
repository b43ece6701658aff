"""The oracle `output`: what the check prints is compared with what it prints after whole operations."""

import shlex
from pathlib import Path

import pytest

import command_line
import compiled
import durasim as ds

SOURCE = Path(__file__).with_name("printed.c")
KINDS = ["markers", "lines", "pmemcheck"]


@pytest.fixture(scope="session")
def elf():
    return compiled.program(SOURCE)


def crash(elf, kind, mistake="none", **options):
    settings = {"points": 60, "faults": ("clean", "reorder", "nested"), "oracles": ("output",)} | options
    return ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", kind, mistake], check_args=["check"], **settings
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_program_has_no_violation(elf, kind):
    result = crash(elf, kind)
    assert result.violations == 0
    assert result.judged_by["output"] == result.trials > 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_is_not_cleaned_is_seen(elf, kind):
    # A clean alone leaves the order of record and count open: cleans are not reordered here.
    result = crash(elf, kind, "record-not-cleaned", faults=("clean",))
    assert result.violations > 0
    assert {failure.oracle for failure in result.failures} == {"output"}
    assert result.disagreements == 0, "exit code and output are one answer"
    assert "record 0: 0' in place of 'record 0: 100'" in result.failures[0].message
    (cause,) = result.causes["found"]
    assert cause["stores"][0]["at"]["line"] == line_of("number].value = ")
    assert (cause["missing"], cause["confirmed"]) == ("no-clean", True)


# Work of the C library between the operations evicts the line of the count where lines are printed.
@pytest.mark.parametrize("kind", ["markers", "pmemcheck"])
def test_an_operation_that_has_ended_has_to_be_there(elf, kind):
    result = crash(elf, kind, "count-not-cleaned")
    assert result.violations > 0
    assert any("something else than after operation 0" in failure.message for failure in result.failures)
    assert crash(elf, kind, "count-not-cleaned", oracles=None).violations == 0, "the list itself is consistent"


def test_half_of_an_operation_is_no_contents(elf):
    result = crash(elf, "markers", "sum-apart")
    message = result.failures[0].message
    found = "line 1: '0 records, sum 100' in place of"
    assert message == (
        "output: the check prints something else than before the run and when operation 0 begins "
        f"({found} '0 records, sum 0'), or after operation 0 ({found} '1 records, sum 100')"
    )


def test_work_after_a_crash_is_judged_by_its_own_operations(elf):
    result = crash(elf, "markers", faults=("clean", "recrash"), again_args=["run", "markers", "none"])
    assert result.violations == 0
    assert result.trials_by_fault["recrash"] > 0
    wrong = crash(elf, "markers", faults=("clean", "recrash"), again_args=["run", "markers", "record-not-cleaned"])
    assert {failure.id.count("+") for failure in wrong.failures} == {1}


def test_a_failure_is_replayed_with_its_oracle(elf):
    result = crash(elf, "markers", "count-not-cleaned")
    command = result.failures[0].command
    assert " --oracle output " in command
    again = command_line.run(*shlex.split(command)[1:])
    assert again.returncode == 1
    assert "the check prints something else" in again.stdout


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("nothing", "the program neither marks operations (durasim_op_begin, durasim_op_end) nor prints lines"),
        ("threads", "more than one thread has operations"),
    ],
)
def test_what_has_no_order_of_operations_is_refused(elf, kind, sentence):
    with pytest.raises(ds.DurasimError, match="--oracle output: ") as refused:
        crash(elf, kind)
    assert sentence in str(refused.value)


def test_a_workload_and_an_unknown_oracle_are_refused():
    with pytest.raises(ds.ConfigError, match="oracle: requires --elf"):
        ds.crash(design="opt", machine="tiny", workload="queue", oracles=("output",))
    with pytest.raises(ds.ConfigError, match=r"oracle: 'bytes' is unknown \(allowed: output\)"):
        ds.crash(design="opt", machine="tiny", elf=SOURCE, check_args=["check"], oracles=("bytes",))


def line_of(text):
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, words in enumerate(lines, 1) if text in words]
    return line
