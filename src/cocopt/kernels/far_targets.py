"""Targets that are far away: x is the projection of y if and only if it is that of x + τ (y − x), τ in [0, 1].

From far away x comes with an error of the rounding of y, and may violate rows by as much. It is the start for a nearer
target, whose projection comes with more digits, and so on until the target is near. No stage makes the error larger,
since projections never increase distances.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, in_order, njit
from cocopt.kernels.vectors import distance
from cocopt.tolerances import FAR_TARGET, NEVER_BINDS

__all__ = ["MAX_STAGES", "is_lost", "is_near", "move_target_closer", "next_length", "smallest_size"]

MAX_STAGES = 40  # from the largest numbers whose squares are finite to the smallest, NEARER by NEARER
NEARER = 1e-8  # a stage comes nearer by this factor at most: the rounding of y shall not change its direction much
LOST = 1e13  # sizes away from which rounding is nearly as large as the size
NEGLIGIBLE = 1e-3  # a length below this share of every number in the data may be 0 but for rounding


@in_order
def _point_between(x, y, tau, target):
    """target = x + τ (y − x)."""
    for j in range(x.shape[0]):
        target[j] = x[j] + tau * (y[j] - x[j])


@njit
def move_target_closer(y, x, length, target):
    """target = x + τ (y − x), so that it is ``length`` away from x; returns τ.

    x stays its projection for every τ from 0 to 1 (its hinge prox, if max_multiplier is multiplied by τ), and comes
    with more digits if τ (y − x) is short.
    """
    tau = min(1.0, length / max(distance(x, y), 1e-300))
    _point_between(x, y, tau, target)
    return tau


@borrowing
def _smaller(values, count, size):
    """The smallest of ``size`` and the magnitudes of the first values, but for 0 and what never binds."""
    for i in range(count):
        magnitude = abs(values[i])
        size = magnitude if 0.0 < magnitude < min(size, NEVER_BINDS) else size
    return size


@njit
def smallest_size(lower, upper, rhs, count):
    """A length that is negligible beside all bounds and right-hand sides; of a cone, which has none, beside 1."""
    n = lower.shape[0]
    size = _smaller(rhs, count, _smaller(upper, n, _smaller(lower, n, np.inf)))
    return NEGLIGIBLE * (size if size < np.inf else 1.0)


@borrowing
def is_near(target_norm, x_norm, smallest):
    """Whether x has all the digits that it can have; a point shorter than ``smallest`` is 0 but for rounding."""
    return target_norm <= FAR_TARGET * max(x_norm, smallest)


@borrowing
def is_lost(target_norm, x_norm, smallest):
    """Whether the rounding of the target is about as large as x: any point of K is as good a start as its own."""
    return target_norm > LOST * max(x_norm, smallest)


@borrowing
def next_length(target_norm, x_norm, smallest):
    """How far from x the next target is."""
    return max(x_norm, smallest, NEARER * target_norm)
