"""Pauses of cores, with which campaigns delay a thread between two instructions."""

from __future__ import annotations

import pytest

import durasim as ds

PAUSES = {"pauses.interval_cycles": 2000, "pauses.cycles_max": 20000}


def run(seed: int = 1, **settings: int) -> ds.RunResult:
    return ds.run(design="htm-sgl", workload="array-swap", machine="tiny", ops=200, threads=2, seed=seed, set=settings)


def test_a_paused_run_takes_longer_and_does_the_same() -> None:
    plain, paused = run(), run(**PAUSES)
    assert paused.guest_exit_code == 0
    assert paused.tx.committed == plain.tx.committed
    assert paused.roi.cycles > plain.roi.cycles + 20000


def test_the_seed_decides_their_times() -> None:
    assert run(**PAUSES).digest == run(**PAUSES).digest
    assert run(**PAUSES).roi.cycles != run(seed=2, **PAUSES).roi.cycles


@pytest.mark.parametrize("name", PAUSES)
@pytest.mark.parametrize("value", [0, 1_000_000_001])
def test_lengths_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(ds.ConfigError, match=f"{name}.*{value} is not between 1 and 1000000000"):
        run(**PAUSES | {name: value})
