"""The 95 % intervals of numbers over seeds, on synthetic series whose true mean is known.

Each run is a stationary autoregressive series of first order, x[t] = mean + phi * (x[t-1] - mean) + noise: 120 values
with normal noise of deviation 1 around a mean of 10, as operations of a run that depend on those before them. The
number of a run is the mean of its series; runs of different seeds are independent.
"""

import random
from statistics import fmean

import pytest

from durasim.papers.evaluation import Evidence, interval_of
from durasim.papers.formulas import formula_of
from durasim.papers.grids import Cell

MEAN, LENGTH, SERIES = 10.0, 120, 1000
SELECTION = {"of": {"runs": "main", "metric": "number"}}


def run(phi: float, drawn: random.Random) -> float:
    at = drawn.gauss(0, 1 / (1 - phi**2) ** 0.5)
    values = []
    for _ in range(LENGTH):
        at = phi * at + drawn.gauss(0, 1)
        values.append(at)
    return MEAN + fmean(values)


@pytest.mark.parametrize(("phi", "seeds"), [(0.0, 3), (0.8, 3), (0.8, 5)])
def test_intervals_contain_the_true_mean_in_92_to_97_percent_of_series(phi: float, seeds: int):
    drawn = random.Random(f"{phi} {seeds}")  # noqa: S311 - a reproducible draw
    formula = formula_of("mean(of)", ["of"])
    contained = 0
    for _ in range(SERIES):
        cells = [(Cell("main", {"seed": seed}), {"number": run(phi, drawn)}) for seed in range(seeds)]
        low, high = interval_of(formula, SELECTION, Evidence(cells, [], lambda _: None, []))
        contained += low <= MEAN <= high
    assert 0.92 * SERIES <= contained <= 0.97 * SERIES


def test_one_seed_has_no_interval():
    cells = [(Cell("main", {"seed": 1}), {"number": 1.0})]
    assert interval_of(formula_of("mean(of)", ["of"]), SELECTION, Evidence(cells, [], lambda _: None, [])) == ()


def test_a_formula_with_a_mean_over_seeds_has_an_interval():
    numbers = {(1, 1): 1.0, (1, 2): 2.0, (2, 1): 4.0, (2, 2): 6.0}
    cells = [
        (Cell("main", {"threads": threads, "seed": seed}), {"number": of}) for (threads, seed), of in numbers.items()
    ]
    formula = formula_of("max(mean(of, 'seed'))", ["of"])
    low, high = interval_of(formula, SELECTION, Evidence(cells, [], lambda _: None, []))
    assert (low + high) / 2 == pytest.approx(5.0)
    assert high - low == pytest.approx(2 * 12.706)
