"""Figures with 95 % intervals from trials on the same data: differences, ratios of means and of spreads, growth.

A difference has the interval of Student's t. The other figures are functions of means; theirs is by the jackknife
(Efron and Stein 1981): with θ the figure of all n trials and θ_k that of all but trial k,

    θ ± t_{n−1} · √( (n−1)/n · Σ_k (θ_k − mean of θ_k)² ).

Ratios are treated as logarithms. Trials stay paired: leaving one out leaves it out of both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.algorithms.facts import Rate
from cocopt.arrays import Array
from cocopt.experiments.results import interval

__all__ = [
    "Estimate",
    "gap_ratio",
    "growth_exponent",
    "mean_ratio",
    "paired_difference",
    "promised_exponent",
    "spread_ratio",
]


class Estimate(NamedTuple):
    """A figure and its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float


def paired_difference(one: Array, other: Array) -> Estimate:
    """The mean of one − other, trial by trial.

    >>> import numpy as np
    >>> from cocopt.experiments.verdicts.estimates import paired_difference
    >>> paired_difference(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0])).value
    2.0
    """
    return Estimate(*interval(np.asarray(one) - np.asarray(other)))


def mean_ratio(one: Array, other: Array) -> Estimate:
    """The mean of one over the mean of the other.

    >>> import numpy as np
    >>> from cocopt.experiments.verdicts.estimates import mean_ratio
    >>> round(mean_ratio(np.array([2.0, 4.0]), np.array([1.0, 2.0])).value, 12)
    2.0
    """
    (whole, without), (other_whole, other_without) = _log_means(one), _log_means(other)
    return _exponential(_jackknife(whole - other_whole, without - other_without))


def gap_ratio(one: tuple[Array, Array], other: tuple[Array, Array]) -> Estimate:
    """How much smaller the ratio of the first pair's means is than that of the other pair's: their quotient."""
    whole, without = np.zeros(()), np.zeros(len(one[0]))
    for values, sign in zip((*one, *other), (1.0, -1.0, -1.0, 1.0), strict=True):
        part, parts_without = _log_means(values)
        whole, without = whole + sign * part, without + sign * parts_without
    return _exponential(_jackknife(whole, without))


def spread_ratio(one: Array, other: Array) -> Estimate:
    """The standard deviation of one over that of the other.

    >>> import numpy as np
    >>> from cocopt.experiments.verdicts.estimates import spread_ratio
    >>> round(spread_ratio(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])).value, 12)
    0.5
    """
    (whole, without), (other_whole, other_without) = _log_deviations(one), _log_deviations(other)
    return _exponential(_jackknife(whole - other_whole, without - other_without))


def growth_exponent(rounds: Array, values: Array) -> Estimate:
    """The slope of log(mean over the trials) against log(rounds), by least squares.

    Parameters
    ----------
    rounds : array (k,)
    values : array (trials, k)

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.experiments.verdicts.estimates import growth_exponent
    >>> rounds = np.array([10.0, 20.0, 40.0])
    >>> round(growth_exponent(rounds, np.array([rounds**0.5, 3 * rounds**0.5])).value, 12)
    0.5
    """
    weights = _slope_weights(rounds)
    whole, without = _log_means(values)
    return _jackknife(whole @ weights, without @ weights)


def promised_exponent(rounds: Array, rate: Rate) -> float:
    """The slope that the same fit finds for T^p (1 + ln T)^q, the form of the theorems' bounds.

    >>> from cocopt.algorithms.facts import Rate
    >>> from cocopt.experiments.verdicts.estimates import promised_exponent
    >>> round(promised_exponent([100, 1000], Rate(0.5)), 12), round(promised_exponent([100, 1000], Rate(0, 1)), 3)
    (0.5, 0.149)
    """
    T = np.asarray(rounds, dtype=np.float64)
    curve = T**rate.power * (1.0 + np.log(T)) ** rate.logs
    return float(np.log(curve) @ _slope_weights(T))


def _slope_weights(rounds: Array) -> Array:
    """The weights with which values at these rounds sum up to their slope against log(rounds), by least squares."""
    x = np.log(np.asarray(rounds, dtype=np.float64))
    return np.asarray((x - x.mean()) / ((x - x.mean()) ** 2).sum())


def _log_means(values: Array) -> tuple[Array, Array]:
    """Of all trials, and of all but each."""
    values = np.asarray(values, dtype=np.float64)
    count = len(values)
    with np.errstate(invalid="ignore", divide="ignore"):  # where a mean is not positive there is no figure
        return np.log(values.mean(axis=0)), np.log((values.sum(axis=0) - values) / (count - 1))


def _log_deviations(values: Array) -> tuple[Array, Array]:
    """Of all trials, and of all but each."""
    values = np.asarray(values, dtype=np.float64)
    count = len(values)
    if count < 3:
        return np.array(np.nan), np.full(count, np.nan)
    deviations = values - values.mean()
    total = (deviations**2).sum()
    # without trial k the sum of squares around the mean falls by n/(n−1) times its squared deviation
    left = np.maximum(total - deviations**2 * count / (count - 1), 0.0)
    with np.errstate(divide="ignore"):
        return 0.5 * np.log(total / (count - 1)), 0.5 * np.log(left / (count - 2))


def _jackknife(whole: Array | float, without: Array) -> Estimate:
    from scipy.special import stdtrit

    count = len(without)
    value = float(whole)
    if count < 2:
        return Estimate(value, np.nan, np.nan)
    with np.errstate(invalid="ignore"):
        error = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    half = float(stdtrit(count - 1, 0.975) * error)
    return Estimate(value, value - half, value + half)


def _exponential(estimate: Estimate) -> Estimate:
    return Estimate(*np.exp(estimate).tolist())
