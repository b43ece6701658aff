"""Intervals of 95 %: from independent samples, and from batches of runs that depend on those before them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

# Quantiles of Student's t distribution for a two-sided 95 % interval, by degrees of freedom.
_T_QUANTILES = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 12: 2.179,
    15: 2.131, 20: 2.086, 25: 2.060, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980,
}  # fmt: skip
_LARGEST_CORRELATION = 0.95
"""A series of 63 batches cannot show a larger one."""


def of_samples(samples: Sequence[float]) -> tuple[float, ...]:
    """Returns the ends of the interval of the mean of independent samples; none with fewer than two."""
    if len(samples) < 2 or not all(map(math.isfinite, samples)):  # noqa: PLR2004 - a deviation needs two
        return ()
    half = _quantile(len(samples) - 1) * stdev(samples) / len(samples) ** 0.5
    return fmean(samples) - half, fmean(samples) + half


def of_batches(number: float, series: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Returns the ends of the interval of a number whose error is the sum of the means of independent series.

    Batches depend on those before them. The variance of the mean of each series is therefore that of an autoregressive
    process of first order with its correlation, and its degrees of freedom are those of as many independent batches as
    have this variance (the correction of Skart, Tafazzoli, Wilson, Lada and Steiger, 2011). Welch and Satterthwaite's
    formula gives the degrees of freedom of the sum.

    Args:
        number: The number.
        series: For each group of runs the deviations of its batches, in their order.

    Returns:
        The ends; none if the number does not depend on batches.
    """
    parts = [_variance(of) for of in series]
    variance = math.fsum(of for of, _ in parts)
    if not math.isfinite(number) or not variance > 0:
        return ()
    freedom = variance**2 / math.fsum(of**2 / degrees for of, degrees in parts)
    half = _quantile(freedom) * variance**0.5
    return number - half, number + half


def _variance(series: Sequence[float]) -> tuple[float, float]:
    """Returns the variance of the mean of a series, and its degrees of freedom."""
    count, mean = len(series), fmean(series)
    moved = [of - mean for of in series]
    squares = math.fsum(of * of for of in moved)
    if squares == 0:
        return 0.0, 1.0
    found = math.fsum(a * b for a, b in pairwise(moved)) / squares
    # The estimate is too low by (1 + 4 r) / n in short series (Kendall, 1954). A negative one would shorten intervals.
    correlation = min(max(found + (1 + 4 * found) / count, 0.0), _LARGEST_CORRELATION)
    factor = (1 + correlation) / (1 - correlation)
    return squares / (count - 1) / count * factor, max(count / factor - 1, 1.0)


def _quantile(degrees: float) -> float:
    """Returns the quantile for these degrees of freedom, or for the next lower ones in the table."""
    return _T_QUANTILES[max(of for of in _T_QUANTILES if of <= max(degrees, 1))]
