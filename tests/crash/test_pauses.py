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


PLACES = {"place_pauses.percent": 30, "place_pauses.cycles_max": 3000}


@pytest.mark.parametrize(
    ("design", "workload"), [("htm-sgl", "array-swap"), ("swl-flush", "array-swap"), ("p-inspect", "object-sharing")]
)
def test_a_core_stands_still_at_places_where_threads_race(design: str, workload: str) -> None:
    options = {"design": design, "workload": workload, "machine": "tiny", "ops": 40, "threads": 2}
    plain, paused, again = ds.run(**options), ds.run(**options, set=PLACES), ds.run(**options, set=PLACES)
    assert paused.guest_exit_code == 0
    assert paused.roi.cycles > plain.roi.cycles + 20_000
    assert paused.digest == again.digest


@pytest.mark.parametrize(("name", "value", "limit"), [("percent", 101, 100), ("cycles_max", 0, 1_000_000_000)])
def test_shares_and_lengths_at_places_out_of_range_are_refused(name: str, value: int, limit: int) -> None:
    with pytest.raises(ds.ConfigError, match=f"place_pauses.{name}.*{value} is not between 1 and {limit}"):
        run(**PLACES | {f"place_pauses.{name}": value})
