"""`fsync` and its relatives on files under `/pmem/`: the kernel makes them durable, as of a DAX file system."""

from pathlib import Path

import pytest

import compiled
import durasim as ds

SOURCE = Path(__file__).with_name("file_sync.c")


def crash(design, domain, *words):
    return ds.crash(
        design=design, domain=domain, machine="tiny", elf=compiled.program(SOURCE), args=["run", *words],
        check_args=["check"], points="all", faults=("clean",),
    )  # fmt: skip


# The write queue is durable in the first domain, the medium alone in the second.
@pytest.mark.parametrize("domain", ["adr", "media"])
@pytest.mark.parametrize("call", ["msync", "fsync", "fdatasync", "sync", "pwrite"])
def test_what_a_call_has_synced_survives(call, domain):
    assert crash("opt", domain, call).violations == 0


def test_what_is_not_synced_is_lost():
    # The page of the counter alone is synced.
    assert crash("opt", "adr", "msync", "left-out").violations > 0


def test_a_call_takes_the_time_of_its_writes():
    def run(*words):
        return ds.run(design="opt", machine="tiny", elf=compiled.program(SOURCE), args=["run", *words])

    synced, begun = run("msync"), run("async")
    # Twelve calls, each waits for a line to be accepted; MS_ASYNC waits for nothing.
    assert synced.stats["cbo.cleans"].value == 12
    assert begun.stats["cbo.cleans"].value == 0
    assert synced.program.cycles - begun.program.cycles > 12 * 20
