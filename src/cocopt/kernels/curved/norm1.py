"""A ball of the 1-norm and a box, or bounds and a sum.

argmin over lower ≤ x ≤ upper, Σ x_j = total of ½‖x − y‖² + ν(Σ |x_j − c_j| − r) has the coordinates
x_j = clip(c_j + soft(y_j − λ − c_j, ν)): soft(z, ν) = sign(z)·max(|z| − ν, 0), λ is the multiplier of the sum (0
without one). Σ x_j never increases with λ, and Σ |x_j − c_j| never increases with ν. Both are piecewise linear, so
Newton's method ends after finitely many steps; brackets keep it from going around in circles.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize
from cocopt.kernels.curved.multiplier import MAX_STEPS, advance_multiplier, whole
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip
from cocopt.tolerances import FEASIBILITY

__all__ = ["bounds_norm1"]

ENOUGH = 1e-13  # what sum and row may differ by, relative to their terms


class Point(NamedTuple):
    """What is known of x(λ, ν)."""

    sum: Any  # Σ x_j
    length: Any  # Σ |x_j − c_j|
    above: Any  # how many coordinates move, and are greater than c_j,
    below: Any  # or less


@borrowing
def _evaluate(y, lower, upper, c, shift, nu):
    """x(λ, ν), not stored."""
    total, length, above, below = 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - shift
        v = clip(c[j], z - nu, z + nu)
        x = clip(v, lower[j], upper[j])
        total += x
        length += abs(x - c[j])
        above += 1.0 if (x == v) & (v > c[j]) else 0.0
        below += 1.0 if (x == v) & (v < c[j]) else 0.0
    return Point(total, length, above, below)


@borrowing
def _meet_sum(y, lower, upper, c, total, shift, nu, tol):
    """(λ with Σ x_j = total, x there), beginning at the λ given; as it is without a sum."""
    low, high = -np.inf, np.inf
    point = Point(0.0, 0.0, 0.0, 0.0)
    for step in range(MAX_STEPS):
        point = _evaluate(y, lower, upper, c, shift, nu)
        excess = point.sum - total
        if not abs(excess) > tol:  # (NaN without a sum)
            break
        low, high = (shift, high) if excess > 0.0 else (low, shift)
        moving = point.above + point.below
        following = shift + excess / max(moving, 1.0)
        bracketed = low > -np.inf and high < np.inf
        if not bracketed and moving == 0.0:  # to where coordinates move again, in growing steps
            following = shift + excess * 2.0**step
        if bracketed and (not low < following < high or step % 8 == 7):
            following = 0.5 * (low + high)
        if not (low < following < high and abs(following) < np.inf):
            break
        shift = following
    return shift, point


@borrowing
def _sizes(y, lower, upper, c, total):
    """(the size of the target, that of the points near the center, whether all is finite)."""
    far, near, finite = 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        far = max(far, abs(y[j]))
        near += max(abs(c[j]), abs(clip(c[j], lower[j], upper[j])))
        finite += (y[j] - c[j]) * 0.0
    return far, max(near, 0.0 if np.isnan(total) else abs(total)), finite == 0.0


@borrowing
def _status(nu, most, excess, size, unit):
    """Whether ν and what the row exceeds 0 by satisfy the optimality conditions, or prove that the set is empty."""
    if abs(excess) <= ENOUGH * size or (nu == 0.0 and excess <= 0.0) or (nu == most and excess >= 0.0):
        return CONVERGED
    return INFEASIBLE if nu >= 4.0 * unit and excess > FEASIBILITY * size else UNCONVERGED


@borrowing
def _prox_of_trial(y, lower, upper, total, c, radius, most, x):
    """One trial; returns (ν, λ, status)."""
    n = x.shape[0]
    far, near, finite = _sizes(y, lower, upper, c, total)
    if not (finite and radius > -np.inf and most >= 0.0):
        for j in range(n):
            x[j] = np.nan
        return 0.0, 0.0, NONFINITE
    size = max(near, 0.0 if radius == np.inf else abs(radius))
    tol = rounding(n) * (size + n * far)
    unit = far + near
    point = Point(0.0, 0.0, 0.0, 0.0)
    shift, nu, bracket, over, excess = 0.0, 0.0, whole(min(most, 4.0 * unit)), False, 0.0
    for _ in range(MAX_STEPS):
        shift, point = _meet_sum(y, lower, upper, c, total, shift, nu, tol)
        excess = point.length - radius
        if over or (nu == 0.0 and excess <= 0.0):
            break
        moving, signs = point.above + point.below, point.above - point.below
        slope = moving if np.isnan(total) else moving - signs * signs / max(moving, 1.0)
        newton = nu + (excess / max(slope, 1e-300) if slope > 0.0 else 0.0)
        nu, bracket, over = advance_multiplier(bracket, nu, excess, newton, unit / n, tol)
    for j in range(n):
        z = y[j] - shift
        x[j] = clip(clip(c[j], z - nu, z + nu), lower[j], upper[j])
    met = np.isnan(total) or abs(point.sum - total) <= max(ENOUGH, 4.0 * rounding(n)) * size
    if not met:
        return nu, shift, UNCONVERGED
    if nu >= 4.0 * unit and excess > 0.0 and most < np.inf:
        nu = most  # from 4 units on x is the same for every ν
    return nu, shift, _status(nu, most, excess, size, unit)


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64, float64[::1], float64, float64, "
        "float64[::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(),(n),(),()->(n),(),(),()",
)
def bounds_norm1(y, lower, upper, total, center, radius, max_multiplier, x, nu, shift, status):
    """K = {lower ≤ x ≤ upper}, with Σ x_j = total unless that is NaN; ``shift`` is the multiplier of the sum."""
    nu[0], shift[0], status[0] = _prox_of_trial(y, lower, upper, total, center, radius, max_multiplier, x)
