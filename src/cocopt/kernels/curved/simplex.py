"""A norm ball and a simplex.

P_K(v) = max(v − τ, 0) with the τ that makes the entries add up, found by Newton's method on a convex piecewise linear
function, which cannot overshoot twice (Michelot 1986). Adding a number to all entries of v changes nothing, so the
path is v = c + t(z − max z), z = y − c: targets far from the simplex cost no digits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order
from cocopt.kernels.curved.path import MAX_STEPS, advance, begin, judge, multiplier_at, row_of, tangent_status
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED

__all__ = ["simplex_norm_ball"]


class Trial(NamedTuple):
    """One trial over a simplex: the target, the total, the center of the norm ball, and the largest y_j − c_j."""

    y: Any
    total: Any
    c: Any
    top: Any


class Ends(NamedTuple):
    """What is known before the search."""

    sum: Any  # Σ y_j
    lowest: Any  # min y_j
    top: Any  # max y_j − c_j
    away_sq: Any  # ‖y − c‖²
    c_sum: Any  # Σ c_j
    c_sq: Any  # ‖c‖²
    finite: Any  # Σ|y| + Σ|c|


@borrowing
def _ends(y, c):
    """All sums in one pass."""
    s, lowest, top, away_sq, c_sum, c_sq, finite = 0.0, np.inf, -np.inf, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - c[j]
        s += y[j]
        lowest = y[j] if y[j] < lowest else lowest
        top = z if z > top else top
        away_sq += z * z
        c_sum += c[j]
        c_sq += c[j] * c[j]
        finite += abs(y[j]) + abs(c[j])
    return Ends(s, lowest, top, away_sq, c_sum, c_sq, finite)


@borrowing
def _sums(trial, t, tau):
    """Over the support {v > τ}: its size, Σ(v − c) and Σc; Σz and Σz² of z = y − c − top; and Σc² of the others."""
    y, _, c, top = trial
    size, s, s_c, s_zz, off = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - c[j] - top
        inside = 1.0 if c[j] + t * z > tau else 0.0
        size += inside
        s += inside * z
        s_c += inside * c[j]
        s_zz += inside * z * z
        off += (1.0 - inside) * c[j] * c[j]
    return size, s, s_c, s_zz, off


@borrowing
def _highest(trial, t):
    """max v."""
    y, _, c, top = trial
    highest = -np.inf
    for j in range(y.shape[0]):
        v = c[j] + t * (y[j] - c[j] - top)
        highest = v if v > highest else highest
    return highest


class Model(NamedTuple):
    """P_K(v) at t, and its distance from the center."""

    tau: Any
    size: Any  # of the support
    d_sq: Any
    moving: Any  # the slope of d² in t²


@borrowing
def _model(trial, t, tau):
    """The projection of v at t, from a first guess of τ. The supports are nested: two of the same size are the same."""
    total = trial.total
    count, size, s, s_c, s_zz, off = -1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for step in range(trial.y.shape[0] + 100):
        size, s, s_c, s_zz, off = _sums(trial, t, tau)
        if size == 0.0:  # no entry exceeds τ: begin where the largest alone adds up to total
            tau = _highest(trial, t) - total
            continue
        before, tau = tau, (s_c + t * s - total) / size
        if size == count or (step > 1 and tau <= before):  # after the first step τ only grows, but for rounding
            break
        count = size
    # on the support x − c = t z − τ with τ = at_center + t·mean(z)
    size = max(size, 1.0)
    at_center, mean = (s_c - total) / size, s / size
    moving = max(s_zz - mean * s, 0.0)
    return Model(tau, size, size * at_center * at_center + t * t * moving + off, moving)


@in_order
def _store_uncorrected(trial, t, tau, x):
    """x = max(v − τ, 0)."""
    y, _, c, top = trial
    for j in range(x.shape[0]):
        v = c[j] + t * (y[j] - c[j] - top) - tau
        x[j] = v if v > 0.0 else 0.0


@borrowing
def _store(trial, t, tau, x):
    """x = max(v − τ, 0), corrected so that its sum is the total; returns (d, ‖x‖, the sum).

    The correction is spread over the support alone, as τ is.
    """
    c, s, size = trial.c, 0.0, 0.0
    _store_uncorrected(trial, t, tau, x)
    for j in range(x.shape[0]):
        s += x[j]
        size += 1.0 if x[j] > 0.0 else 0.0
    excess = (s - trial.total) / max(size, 1.0)
    for j in range(x.shape[0]):
        v = x[j] - excess if x[j] > 0.0 else 0.0
        x[j] = v if v > 0.0 else 0.0
    d_sq, x_sq, s = 0.0, 0.0, 0.0
    for j in range(x.shape[0]):
        d_sq += (x[j] - c[j]) * (x[j] - c[j])
        x_sq += x[j] * x[j]
        s += x[j]
    return np.sqrt(d_sq), np.sqrt(x_sq), s


# Its complexity exceeds the guide by little: the cases follow one another.
@borrowing
def _prox_of_trial(y, total, c, radius, max_multiplier, x):
    """One trial; returns (ν, status)."""
    n = x.shape[0]
    ends = _ends(y, c)
    if not (ends.finite < np.inf and radius > -np.inf and max_multiplier >= 0.0):
        for j in range(n):
            x[j] = np.nan
        return 0.0, NONFINITE
    trial = Trial(y, total, c, ends.top)
    row = row_of(n, 0.0 if radius == np.inf else radius, max_multiplier, max(np.sqrt(ends.c_sq), total))
    off = max_multiplier == 0.0 or radius == np.inf
    in_set = ends.lowest >= 0.0 and abs(ends.sum - total) <= rounding(n) * total
    if in_set and (off or np.sqrt(ends.away_sq) <= radius + row.tol):
        for j in range(n):
            x[j] = y[j]
        return 0.0, CONVERGED
    model = _model(trial, 1.0, (ends.sum - n * ends.top - total) / n)
    if off or np.sqrt(model.d_sq) <= radius + row.tol:
        _, _, s = _store(trial, 1.0, model.tau, x)
        return 0.0, CONVERGED if abs(s - total) <= 4.0 * rounding(n) * total else UNCONVERGED
    if not ends.away_sq < np.inf:
        return 0.0, NONFINITE  # squares overflow
    center = _model(trial, 0.0, (ends.c_sum - total) / n)
    nearest = np.sqrt(center.d_sq)
    if nearest >= row.radius - row.tol and max_multiplier == np.inf:
        nearest, x_norm, _ = _store(trial, 0.0, center.tau, x)
        return np.inf, tangent_status(radius, nearest, max(x_norm, np.sqrt(ends.c_sq)))
    interval = begin(row, nearest, np.sqrt(ends.away_sq))
    t = 1.0
    for _ in range(MAX_STEPS):
        t, interval, done = advance(row, interval, t, model.d_sq, model.moving)
        model = _model(trial, t, model.tau)
        if done:
            break
    d, _, s = _store(trial, t, model.tau, x)
    status = judge(row, t, d)
    return multiplier_at(row, t, d), status if abs(s - total) <= 4.0 * rounding(n) * total else UNCONVERGED


@guvectorize(
    ["float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(),(n),(),()->(n),(),()",
)
def simplex_norm_ball(y, total, center, radius, max_multiplier, x, nu, status):
    """K = {x ≥ 0, Σx = total}."""
    nu[0], status[0] = _prox_of_trial(y, total, center, radius, max_multiplier, x)
