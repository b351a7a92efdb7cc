"""A norm ball and a ball, in closed form."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order
from cocopt.kernels.curved.path import MAX_STEPS, advance, begin, judge, row_of
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.tolerances import FEASIBILITY

__all__ = ["ball_norm_ball"]


class Trial(NamedTuple):
    """One trial over a ball: the target, the ball, and the row ‖x − c‖ ≤ r."""

    y: Any
    center: Any
    radius: Any
    c: Any
    r: Any


class Products(NamedTuple):
    """Sums over the coordinates, with k the center of K, z = y − k and e = c − k."""

    z_sq: Any  # ‖z‖²
    e_sq: Any  # ‖e‖²
    ez: Any  # ⟨e, z⟩
    away_sq: Any  # ‖y − c‖²
    k_sq: Any  # ‖k‖²
    c_sq: Any  # ‖c‖²


@borrowing
def _products(trial):
    """All sums in one pass."""
    y, k, _, c, _ = trial
    z_sq, e_sq, ez, away_sq, k_sq, c_sq = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z, e, away = y[j] - k[j], c[j] - k[j], y[j] - c[j]
        z_sq += z * z
        e_sq += e * e
        ez += e * z
        away_sq += away * away
        k_sq += k[j] * k[j]
        c_sq += c[j] * c[j]
    return Products(z_sq, e_sq, ez, away_sq, k_sq, c_sq)


@borrowing
def _distances(trial, x):
    """How far x is from k and from c."""
    _, k, _, c, _ = trial
    from_k, from_c = 0.0, 0.0
    for j in range(x.shape[0]):
        from_k += (x[j] - k[j]) * (x[j] - k[j])
        from_c += (x[j] - c[j]) * (x[j] - c[j])
    return np.sqrt(from_k), np.sqrt(from_c)


@in_order
def _combine(trial, along_e, along_z, x):
    """x = k + along_e·e + along_z·z; returns its distances from k and from c."""
    y, k, _, c, _ = trial
    for j in range(x.shape[0]):
        x[j] = k[j] + along_e * (c[j] - k[j]) + along_z * (y[j] - k[j])
    return _distances(trial, x)


@in_order
def _shrink(trial, center, factor, x):
    """x = center + factor·(y − center), y itself if the factor is 1; returns its distances from k and from c."""
    y = trial.y
    for j in range(x.shape[0]):
        x[j] = y[j] if factor == 1.0 else center[j] + factor * (y[j] - center[j])
    return _distances(trial, x)


@borrowing
def _split(trial, products):
    """(a, ‖d‖) of z = a·e + d with ⟨e, d⟩ = 0; d is split once more, which restores digits that cancelled."""
    y, k, _, c, _ = trial
    a = products.ez / max(products.e_sq, 1e-300)
    ed, d_sq = 0.0, 0.0
    for j in range(y.shape[0]):
        e = c[j] - k[j]
        ed += e * (y[j] - k[j] - a * e)
    a += ed / max(products.e_sq, 1e-300)
    for j in range(y.shape[0]):
        d = y[j] - k[j] - a * (c[j] - k[j])
        d_sq += d * d
    return a, np.sqrt(d_sq)


@borrowing
def _project_onto_both(trial, products, tol, x):
    """x on both spheres, where they meet in the sphere around k + foot·e of radius rim. Returns (ν, status)."""
    R, r, D = trial.radius, trial.r, np.sqrt(products.e_sq)
    a, d_norm = _split(trial, products)
    foot = 0.5 * (1.0 + (R - r) * (R + r) / max(products.e_sq, 1e-300))
    height = foot * D
    rim = np.sqrt(max((R - height) * (R + height), 0.0))
    stretch = rim / max(d_norm, 1e-300)
    from_k, from_c = _combine(trial, foot - stretch * a, stretch, x)
    nu = r * (foot * d_norm / max(rim, 1e-300) - a)
    solved = abs(from_k - R) <= tol and abs(from_c - r) <= tol and nu >= 0.0
    return nu, CONVERGED if solved and rim > 0.0 and d_norm > 0.0 else UNCONVERGED


@borrowing
def _prox_on_sphere(trial, products, row, x):
    """x with the multiplier of the row at its bound, on the sphere of K; returns the status.

    x(t) = P_K(c + t(y − c)), whose distance from c follows from the products.
    """
    R, D = trial.radius, np.sqrt(products.e_sq)
    reach = np.sqrt(products.away_sq)
    inner = products.ez - products.e_sq  # ⟨e, y − c⟩
    interval = begin(row, max(D - R, 0.0), reach)
    t, shrink = 1.0, 1.0
    for _ in range(MAX_STEPS):
        # c + t(y − c) − k = e + t(y − c)
        length = np.sqrt(max(products.e_sq + t * (2.0 * inner + t * products.away_sq), 0.0))
        shrink = 1.0 if length <= R else R / length
        gap = 1.0 - shrink
        # x − c = shrink·t(y − c) − gap·e
        d_sq = shrink * t * (shrink * t * products.away_sq - 2.0 * gap * inner) + gap * gap * products.e_sq
        slope = shrink * (shrink * t * products.away_sq - gap * inner)  # of d²/2 in t, but for the change of shrink
        if shrink < 1.0:
            turn = -shrink * (inner + t * products.away_sq) / (length * length)  # d shrink/dt
            slope += turn * (length * length * shrink - products.e_sq - t * inner)
        t, interval, done = advance(row, interval, t, max(d_sq, 0.0), max(slope, 0.0) / max(t, 1e-300))
        if done:
            break
    length = np.sqrt(max(products.e_sq + t * (2.0 * inner + t * products.away_sq), 0.0))
    shrink = 1.0 if length <= R else R / length
    from_k, from_c = _combine(trial, shrink * (1.0 - t), shrink * t, x)
    tol = 16.0 * row.tol
    return judge(row, t, from_c) if from_k <= R + tol else UNCONVERGED


@borrowing
def _prox(trial, products, row, x):
    """x with the multiplier of the row at its bound; returns the status."""
    away = np.sqrt(products.away_sq)
    t = max(1.0 - row.max_multiplier / max(away, 1e-300), 0.0)
    from_k, _ = _shrink(trial, trial.c, t, x)
    if from_k <= trial.radius + row.tol:
        return CONVERGED
    return _prox_on_sphere(trial, products, row, x)


# Its complexity exceeds the guide: the cases follow one another.
@borrowing
def _prox_of_trial(trial, max_multiplier, x):
    """One trial: inside, on one sphere, or on both. Returns (ν, status)."""
    R, r = trial.radius, trial.r
    products = _products(trial)
    if not (products.z_sq + products.e_sq < np.inf and r > -np.inf and max_multiplier >= 0.0):
        for j in range(x.shape[0]):
            x[j] = np.nan
        return 0.0, NONFINITE
    D, z_norm, away = np.sqrt(products.e_sq), np.sqrt(products.z_sq), np.sqrt(products.away_sq)
    size = max(np.sqrt(max(products.k_sq, products.c_sq)), R)
    row = row_of(x.shape[0], 0.0 if r == np.inf else r, max_multiplier, size)
    tol = row.tol
    _, from_c = _shrink(trial, trial.center, 1.0 if z_norm <= R + tol else R / z_norm, x)
    if from_c <= r + tol or max_multiplier == 0.0:
        return 0.0, CONVERGED
    if (max_multiplier == np.inf and r - tol <= D - R) or r <= 0.0:  # they touch, or are apart
        if max_multiplier < np.inf:
            return max_multiplier, _prox(trial, products, row, x)
        shrink = 1.0 if D <= R else R / D
        _, from_c = _combine(trial, shrink, 0.0, x)
        empty = from_c - r > FEASIBILITY * max(size, abs(r))
        return np.inf, INFEASIBLE if empty else CONVERGED
    from_k, _ = _shrink(trial, trial.c, r / max(away, 1e-300), x)
    if from_k <= R + tol:
        nu, status = away - r, CONVERGED
    elif r - tol <= D - R:
        nu, status = np.inf, CONVERGED
    else:
        nu, status = _project_onto_both(trial, products, 16.0 * tol, x)
    if nu > max_multiplier:
        return max_multiplier, _prox(trial, products, row, x)
    return nu, status


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def ball_norm_ball(y, center, radius, c, r, max_multiplier, x, nu, status):
    """K = {‖x − center‖ ≤ radius}, the row ‖x − c‖ ≤ r."""
    nu[0], status[0] = _prox_of_trial(Trial(y, center, radius, c, r), max_multiplier, x)
