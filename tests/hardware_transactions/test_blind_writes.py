"""Transactions that write shared words without reading them are replayed in the order of their commits."""

from __future__ import annotations

import pytest

import durasim as ds

# The store buffer holds all stores of a transaction.
SETTINGS = {
    "core.store_queue_entries": 64,
    "core.rob_entries": 128,
    "l1d.size_bytes": 32768,
    "l2.size_bytes": 65536,
    "llc.size_bytes": 1048576,
}
DESIGNS = ["spht-eadr", pytest.param("spht-eadr-flush", marks=pytest.mark.long), "spht", "nv-htm"]


def violations(design: str, clock: str) -> int:
    return ds.crash(
        design=design,
        workload="blind-writes",
        machine="tiny",
        threads=4,
        ops=400,
        points=200,
        set=SETTINGS,
        workload_args={"populate": 2, "own-writes": 24, "commit-clock": clock},
    ).violations


@pytest.mark.parametrize("design", DESIGNS)
def test_blind_writes_are_replayed_in_the_order_of_commits(design: str) -> None:
    assert violations(design, "after-stores") == 0


@pytest.mark.parametrize("design", DESIGNS)
def test_the_published_order_of_steps_is_caught(design: str) -> None:
    """The clock is read while stores wait in the store buffer: recovery leaves the older write."""
    assert violations(design, "published") > 0


def test_a_design_that_does_not_isolate_takes_a_lock() -> None:
    report = ds.crash(
        design="swl-flush",
        workload="blind-writes",
        machine="tiny",
        threads=2,
        ops=40,
        points=60,
        workload_args={"populate": 2, "own-writes": 4},
    )
    assert report.violations == 0
