"""Which attempts count as one of the ten that a transaction has before it takes the global lock."""

from __future__ import annotations

import pytest

import durasim as ds

DESIGNS = ("htm-sgl", "spht", "nv-htm", "spht-eadr", "spht-eadr-flush")
# Threads that conflict so often that the lock is taken again and again.
THREADS, OPS = 16, 400


def run(design: str, *, is_uncounted: bool) -> ds.RunResult:
    return ds.run(
        design=design,
        workload="btree",
        machine="spht-eadr-2022",
        domain="eadr",
        threads=THREADS,
        ops=OPS,
        workload_args={"populate": 40, "lock-aborts-uncounted": is_uncounted},
        guest_output=lambda *_: None,
        fast_forward="roi",
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_attempts_that_the_lock_ends_may_go_uncounted(design: str) -> None:
    """Fewer transactions run out of attempts then; those that take the lock have still lost ten by themselves."""
    counted, uncounted = run(design, is_uncounted=False).tx, run(design, is_uncounted=True).tx
    for tx in (counted, uncounted):
        assert tx.htm_committed is not None
        assert tx.sgl_committed is not None
        assert tx.aborted_by is not None
        assert tx.htm_committed + tx.sgl_committed == tx.committed == OPS
        assert sum(tx.aborted_by.to_dict().values()) >= 10 * tx.sgl_committed > 0
    assert uncounted.sgl_committed < counted.sgl_committed
