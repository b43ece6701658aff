"""Savings of SPHT and NV-HTM: flushes of the marker by group commit, and stores and flushes by backward replay."""

from __future__ import annotations

import pytest
from htm_runs import ROOMY

import durasim as ds

OPS = 400


def run(design: str, workload: str, *, threads: int = 1, **arguments: int | str) -> ds.RunResult:
    """Runs a workload on `tiny` with volatile caches that hold its transactions."""
    return ds.run(
        design=design,
        workload=workload,
        machine="tiny",
        domain="adr",
        ops=OPS,
        threads=threads,
        set=ROOMY | {"cores": 8},
        workload_args={name.replace("_", "-"): value for name, value in arguments.items()},
        guest_output=lambda *_: None,
    )


def cleans(design: str, threads: int) -> int:
    """Lines cleaned by transactions of eight stores; the logs have space for all, so no replay occurs meanwhile."""
    result = run(design, "private-words", threads=threads, populate=64, writes=7, reads=0, log_bytes=1 << 20)
    assert result.tx.htm_committed == OPS
    assert result.replay is not None
    assert result.replay.transactions == 0
    return int(result.stats["core.cache_block_operations"].value)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_that_commit_together_flush_the_marker_once(threads: int) -> None:
    """NV-HTM cleans the lines of a log and a commit mark for each transaction, SPHT those lines and the marker."""
    lines = cleans("nv-htm", threads) - OPS
    flushes = cleans("spht", threads) - lines
    # Once for each transaction of a single thread.
    assert OPS / threads <= flushes < 1.25 * OPS / threads


@pytest.mark.parametrize(
    ("design", "forward", "backward"),
    [("nv-htm", {"replay": "forward"}, {}), ("spht", {}, {"replay": "backward"})],
)
def test_backward_replay_stores_each_word_of_a_batch_once(
    design: str, forward: dict[str, str], backward: dict[str, str]
) -> None:
    """All transactions store to 16 shared words; forward replay executes and flushes each of these stores."""
    both = [
        run(design, "array-swap", populate=2, element_bytes=64, log_bytes=8192, **more) for more in (forward, backward)
    ]
    for result in both:
        assert result.replay is not None
        assert result.replay.transactions > 0.9 * OPS
        assert result.replay.lag_max > 8
    for key in ("core.pmem_stores", "core.cache_block_operations", "pmem.writes"):
        every, newest = (int(result.stats[key].value) for result in both)
        assert every - newest > 12 * OPS, key
