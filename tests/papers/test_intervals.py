"""The 95 % intervals of numbers over seeds and over batches, on synthetic series whose true mean is known.

Over seeds, each run is a stationary autoregressive series of first order, x[t] = mean + phi * (x[t-1] - mean) + noise:
120 values with normal noise of deviation 1 around a mean of 10, as operations of a run that depend on those before
them. The number of a run is the mean of its series; runs of different seeds are independent.

Over batches, there is one run, whose operations take times of one of these models:

- `series`: the same series, for several phi and lengths;
- `skewed`: x[t] = phi * x[t-1] + noise, where the noise is 0 in a share phi of the operations, else exponential.
  Times are skewed: their distribution is exponential, with mean 1 and correlation phi.

The number is the throughput of the run, operations by the sum of their times, or the ratio of the throughputs of two
runs, where one has in addition independent times of its own.
"""

import itertools
import random
from collections.abc import Callable
from statistics import fmean

import pytest

from durasim.papers.batches import deviations
from durasim.papers.evaluation import BATCHES, SEEDS, Evidence, interval_of
from durasim.papers.formulas import formula_of
from durasim.papers.grids import Cell

MEAN, LENGTH, SERIES = 10.0, 120, 1000
SELECTION = {"of": {"runs": "main", "metric": "number"}}
THROUGHPUT = "throughput_ops_per_us"


def series(phi: float, length: int, drawn: random.Random) -> list[float]:
    at = drawn.gauss(0, 1 / (1 - phi**2) ** 0.5)
    values = []
    for _ in range(length):
        at = phi * at + drawn.gauss(0, 1)
        values.append(MEAN + at)
    return values


def skewed(phi: float, length: int, drawn: random.Random) -> list[float]:
    at = drawn.expovariate(1)
    values = []
    for _ in range(length):
        at = phi * at + (0 if drawn.random() < phi else drawn.expovariate(1))
        values.append(at)
    return values


def run(times: list[float]) -> dict:
    """A document of a run of operations with these times, with batches as the simulator makes them."""
    width = 1
    while len(times) // width >= 64:
        width *= 2
    ends = range(width, len(times) + 1, width)
    at = list(itertools.accumulate(times))
    counters = {"ops": list(ends), "roi.cycles": [at[end - 1] for end in ends]}
    return {THROUGHPUT: len(times) / at[-1], "batches": {"ops": width, "count": len(ends), "counters": counters}}


def evidence(documents: dict[str, dict]) -> Evidence:
    cells = [(Cell("main", {"design": name}), {THROUGHPUT: of[THROUGHPUT]}) for name, of in documents.items()]
    return Evidence(cells, [], lambda _: None, [], batches=[deviations(of, [THROUGHPUT]) for of in documents.values()])


@pytest.mark.parametrize(("model", "phi", "length"), [(series, 0.5, 600), (series, 0.95, 1000), (skewed, 0.8, 1500)])
def test_intervals_of_batches_contain_the_true_throughput_in_92_to_97_percent_of_series(
    model: Callable[..., list[float]], phi: float, length: int
):
    drawn = random.Random(f"{phi} {length}")  # noqa: S311 - a reproducible draw
    selections = {"of": {"runs": "main", "metric": THROUGHPUT}}
    formula, true = formula_of("of", ["of"]), 1 / (MEAN if model is series else 1.0)
    contained = 0
    for _ in range(SERIES):
        (low, high), source = interval_of(formula, selections, evidence({"opt": run(model(phi, length, drawn))}))
        assert source == BATCHES
        contained += low <= true <= high
    assert 0.92 * SERIES <= contained <= 0.97 * SERIES


def test_intervals_of_batches_contain_the_true_ratio_of_two_runs_of_the_same_operations():
    drawn = random.Random(1)  # noqa: S311 - a reproducible draw
    selections = {name: {"runs": "main", "metric": THROUGHPUT, "design": name} for name in ("opt", "tc")}
    formula, contained, widths = formula_of("tc / opt", ["opt", "tc"]), 0, []
    for _ in range(SERIES):
        common = series(0.8, 400, drawn)
        slower = [time + 2 + drawn.gauss(0, 0.5) for time in common]
        (low, high), _ = interval_of(formula, selections, evidence({"opt": run(common), "tc": run(slower)}))
        contained += low <= MEAN / (MEAN + 2) <= high
        widths.append(high - low)
    assert 0.92 * SERIES <= contained <= 0.97 * SERIES
    # As independent runs, each with a standard deviation of its mean of 0.25, they would give 0.06.
    assert fmean(widths) < 0.02


def number_of_run(phi: float, drawn: random.Random) -> float:
    return fmean(series(phi, LENGTH, drawn))


@pytest.mark.parametrize(("phi", "seeds"), [(0.0, 3), (0.8, 3), (0.8, 5)])
def test_intervals_contain_the_true_mean_in_92_to_97_percent_of_series(phi: float, seeds: int):
    drawn = random.Random(f"{phi} {seeds}")  # noqa: S311 - a reproducible draw
    formula = formula_of("mean(of)", ["of"])
    contained = 0
    for _ in range(SERIES):
        cells = [(Cell("main", {"seed": seed}), {"number": number_of_run(phi, drawn)}) for seed in range(seeds)]
        (low, high), source = interval_of(formula, SELECTION, Evidence(cells, [], lambda _: None, []))
        assert source == SEEDS
        contained += low <= MEAN <= high
    assert 0.92 * SERIES <= contained <= 0.97 * SERIES


def test_one_seed_without_batches_has_no_interval():
    cells = [(Cell("main", {"seed": 1}), {"number": 1.0})]
    assert interval_of(formula_of("mean(of)", ["of"]), SELECTION, Evidence(cells, [], lambda _: None, [])) == ((), "")


def test_a_formula_that_takes_the_mean_over_seeds_has_an_interval():
    formula = formula_of("max(mean(of, 'seed'))", ["of"])
    numbers = {(1, 8): 2.0, (1, 12): 5.0, (2, 8): 4.0, (2, 12): 6.0}
    cells = [
        (Cell("main", {"seed": seed, "threads": threads}), {"number": of}) for (seed, threads), of in numbers.items()
    ]
    (low, high), _ = interval_of(formula, SELECTION, Evidence(cells, [], lambda _: None, []))
    # The largest of each seed are 5 and 6; Student's quantile of one degree of freedom is 12.706.
    assert (low, high) == pytest.approx((5.5 - 12.706 * 0.5, 5.5 + 12.706 * 0.5))
