"""Bugs of published persistent-memory software, by mechanism: caught, with the line of the store; done right, clean."""

from pathlib import Path

import pytest

import compiled
import durasim as ds

SOURCE = Path(__file__).with_name("bugs.c")
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
# The faults and the domain under which each shows.
BUGS = {
    "lock-persisted": (("clean",), "adr"),
    "merged-ranges": (("clean",), "adr"),
    "stale-log": (("clean", "recrash"), "adr"),
    "recovery-without-fences": (("clean", "nested"), "adr"),
    "dirty-read": (("clean",), "adr"),
    "truncated-log": (("clean",), "adr"),
    "root-missing": (("clean",), "adr"),
    "sixteen-bytes": (("clean",), "eadr"),
    "short-checksum": (("clean", "reorder"), "adr"),
    "two-writers": (("clean",), "adr"),
}


@pytest.fixture(scope="session")
def elf():
    return compiled.program(SOURCE)


def crash(elf, bug, *words):
    faults, domain = BUGS[bug]
    return ds.crash(
        design="opt", machine="tiny", elf=elf, args=["run", bug, *words], check_args=["check", bug, *words],
        domain=domain, faults=faults, points="all", variants=8,
    )  # fmt: skip


def line_of(mark):
    (line,) = [number for number, text in enumerate(LINES, 1) if f"/* {mark} */" in text]
    return line


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug != "stale-log"])
def test_a_bug_is_caught_and_its_store_named(elf, bug):
    result = crash(elf, bug)
    assert result.violations > 0
    lines = [store["at"]["line"] for cause in result.causes["found"] for store in cause["stores"]]
    assert line_of(bug) in lines


def test_a_stale_log_shows_after_two_crashes_alone(elf):
    result = crash(elf, "stale-log")
    assert result.violations > 0
    assert {"+" in failure.id for failure in result.failures} == {True}


@pytest.mark.parametrize("bug", BUGS)
def test_the_same_work_done_right_survives(elf, bug):
    assert crash(elf, bug, "right").failures == ()
