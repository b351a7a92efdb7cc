"""A norm ball and a box."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order
from cocopt.kernels.curved.path import MAX_STEPS, advance, begin, judge, multiplier_at, row_of, tangent_status
from cocopt.kernels.status import CONVERGED, NONFINITE
from cocopt.kernels.vectors import clip, distance

__all__ = ["box_norm_ball"]


class Ends(NamedTuple):
    """What is known before the search."""

    last: Any  # the squared distance from c of P_K(y),
    moving: Any  # its slope in t²
    first: Any  # and that of P_K(c)
    c_sq: Any  # ‖c‖²
    x_sq: Any  # ‖P_K(c)‖²
    z_sq: Any  # ‖y − c‖²
    total: Any  # Σ|y| + Σ|c|


@borrowing
def _ends(y, lower, upper, c):
    """What is known before the search, in one pass."""
    last, moving, first, c_sq, x_sq, z_sq, total = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - c[j]
        x = clip(y[j], lower[j], upper[j])
        free = z if x == y[j] else 0.0
        last += (x - c[j]) * (x - c[j])
        moving += free * free
        x = clip(c[j], lower[j], upper[j])
        first += (x - c[j]) * (x - c[j])
        x_sq += x * x
        c_sq += c[j] * c[j]
        z_sq += z * z
        total += abs(y[j]) + abs(c[j])
    return Ends(last, moving, first, c_sq, x_sq, z_sq, total)


@borrowing
def _model(y, lower, upper, c, t):
    """d² and its slope in t², which the free coordinates make."""
    d_sq, moving = 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - c[j]
        v = c[j] + t * z
        x = clip(v, lower[j], upper[j])
        free = z if x == v else 0.0
        d_sq += (x - c[j]) * (x - c[j])
        moving += free * free
    return d_sq, moving


@in_order
def _store(y, lower, upper, c, t, x):
    """x = P_K(c + t(y − c)); returns its distance from c."""
    for j in range(y.shape[0]):
        x[j] = clip(c[j] + t * (y[j] - c[j]), lower[j], upper[j])
    return distance(x, c)


@borrowing
def _prox_of_trial(y, lower, upper, c, radius, max_multiplier, x):
    """One trial; returns (ν, status)."""
    ends = _ends(y, lower, upper, c)
    if not (ends.total < np.inf and radius > -np.inf and max_multiplier >= 0.0):
        for j in range(x.shape[0]):
            x[j] = np.nan
        return 0.0, NONFINITE
    size, nearest = np.sqrt(max(ends.c_sq, ends.x_sq)), np.sqrt(ends.first)
    row = row_of(x.shape[0], 0.0 if radius == np.inf else radius, max_multiplier, size)
    if radius == np.inf or np.sqrt(ends.last) <= radius + row.tol or max_multiplier == 0.0:
        for j in range(x.shape[0]):
            x[j] = clip(y[j], lower[j], upper[j])
        return 0.0, CONVERGED
    if not ends.z_sq < np.inf:
        return 0.0, NONFINITE  # squares overflow
    if nearest >= row.radius - row.tol and max_multiplier == np.inf:
        _store(c, lower, upper, c, 0.0, x)
        return np.inf, tangent_status(radius, nearest, size)
    interval, t, d_sq, moving = begin(row, nearest, np.sqrt(ends.z_sq)), 1.0, ends.last, ends.moving
    for _ in range(MAX_STEPS):
        t, interval, done = advance(row, interval, t, d_sq, moving)
        if done:
            break
        d_sq, moving = _model(y, lower, upper, c, t)
    d = _store(y, lower, upper, c, t, x)
    return multiplier_at(row, t, d), judge(row, t, d)


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[::1], float64, float64, "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(n),(),()->(n),(),()",
)
def box_norm_ball(y, lower, upper, center, radius, max_multiplier, x, nu, status):
    """K = {lower ≤ x ≤ upper}."""
    nu[0], status[0] = _prox_of_trial(y, lower, upper, center, radius, max_multiplier, x)
