"""A norm ball and a ball: the projection in closed form, the hinge prox by a search in one number."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order
from cocopt.kernels.curved.path import MAX_STEPS, judge, row_of
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.tolerances import FEASIBILITY

__all__ = ["ball_norm_ball"]

TINY = 1e-290  # a smaller square has lost digits


class Trial(NamedTuple):
    """One trial over a ball: the target, the ball, and the row ‖x − c‖ ≤ r."""

    y: Any
    center: Any
    radius: Any
    c: Any
    r: Any


class Plane(NamedTuple):
    """The plane through k, c and y, with k the center of K, e = c − k and y − k = a·e + d, where ⟨e, d⟩ = 0."""

    a: Any
    across: Any  # ‖d‖
    D: Any  # ‖e‖
    z: Any  # ‖y − k‖
    away: Any  # ‖y − c‖
    size: Any  # of the numbers that make up x


@borrowing
def _plane(trial):
    """Two passes over the coordinates; d is split once more, which restores digits that cancelled."""
    y, k, R, c, _ = trial
    z_sq, e_sq, ez, away_sq, k_sq, c_sq = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z, e, away = y[j] - k[j], c[j] - k[j], y[j] - c[j]
        z_sq += z * z
        e_sq += e * e
        ez += e * z
        away_sq += away * away
        k_sq += k[j] * k[j]
        c_sq += c[j] * c[j]
    inverse = 1.0 / e_sq if e_sq > TINY else 0.0
    a, ed, d_sq = ez * inverse, 0.0, 0.0
    for j in range(y.shape[0]):
        e = c[j] - k[j]
        d = y[j] - k[j] - a * e
        ed += e * d
        d_sq += d * d
    more = ed * inverse
    across = np.sqrt(max(d_sq - ed * more, 0.0))
    size = max(np.sqrt(max(k_sq, c_sq)), R)
    return Plane(a + more, across, np.sqrt(e_sq), np.sqrt(z_sq), np.sqrt(away_sq), size)


@borrowing
def _length(plane, along_e, along_d):
    """‖along_e·e + along_d·d‖."""
    u, v = along_e * plane.D, along_d * plane.across
    return np.sqrt(u * u + v * v)


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
def _project_onto_both(trial, plane, tol, x):
    """x on both spheres, where they meet in the sphere around k + foot·e of radius rim. Returns (ν, status)."""
    R, r, D = trial.radius, trial.r, plane.D
    foot = 0.5 * (1.0 + (R - r) * (R + r) / max(D * D, 1e-300))
    height = foot * D
    rim = np.sqrt(max((R - height) * (R + height), 0.0))
    stretch = rim / max(plane.across, 1e-300)
    from_k, from_c = _combine(trial, foot - stretch * plane.a, stretch, x)
    nu = r * (foot * plane.across / max(rim, 1e-300) - plane.a)
    solved = abs(from_k - R) <= tol and abs(from_c - r) <= tol and nu >= 0.0
    return nu, CONVERGED if solved and rim > 0.0 and plane.across > 0.0 else UNCONVERGED


@borrowing
def _binds(trial, plane, w):
    """Whether the multiplier of the row, r > 0, exceeds w: the path is still outside the row where ν = w if d = r."""
    R, mu = trial.radius, w / trial.r
    length = _length(plane, plane.a + mu, 1.0)
    if length <= (1.0 + mu) * R:
        return plane.away > (1.0 + mu) * trial.r
    shrink = R / length
    return _length(plane, shrink * (plane.a + mu) - 1.0, shrink) > trial.r


@borrowing
def _prox_on_sphere(trial, plane, row, farthest, x):
    """x with the multiplier of the row at its bound w, on the sphere of K; returns the status.

    x(μ) = P_K(c + t(y − c)) with t = 1/(1 + μ) is searched for the root of μρ(μ) = w. On the sphere x is
    k + R(z + μe)/‖z + μe‖, and Halley's method is used within the interval that is left, since all derivatives of its
    distance ρ from c have closed forms. ρ is at most ``farthest``. Where x(μ) is inside K the interval is halved.
    """
    R, D, w = trial.radius, plane.D, row.max_multiplier
    low, high = w / farthest, w / max(row.radius, abs(D - R), 1e-300)
    mu, t, shrink = low, 1.0, 0.0
    for _ in range(MAX_STEPS):
        along, t = plane.a + mu, 1.0 / (1.0 + mu)
        inverse = 1.0 / _length(plane, along, 1.0)
        on_sphere = R * inverse <= t
        shrink = R * inverse if on_sphere else t
        rho = _length(plane, shrink * along - 1.0, shrink)
        turn = plane.across * D * inverse  # dx/dμ has the length turn·shrink
        fall = -turn * turn * shrink  # half the derivative of ρ²; `bend` is half the second one
        bend = -3.0 * fall * along * D * D * inverse * inverse
        error, square = mu * rho - w, rho * rho
        slope = square + mu * fall  # ρ times the derivative of μρ
        second = 2.0 * fall + mu * (bend - fall * fall / max(square, 1e-300))  # ρ times the second one
        step = 2.0 * error * slope * rho / (2.0 * slope * slope - error * rho * second)
        if on_sphere and abs(error) * t <= row.tol and abs(step) * turn * shrink <= row.tol:
            break
        low, high = (mu, high) if error < 0.0 else (low, mu)
        following = mu - step
        if not (low < following < high and on_sphere):
            following = np.sqrt(low) * np.sqrt(high)
            if not low < following < high:
                break
        mu = following
    from_k, from_c = _combine(trial, shrink * mu, shrink, x)
    return judge(row, t, from_c) if from_k <= R + 16.0 * row.tol else UNCONVERGED


@borrowing
def _prox(trial, plane, row, farthest, x):
    """x with the multiplier of the row at its bound, where K's point nearest to the target is ``farthest`` from c."""
    t = max(1.0 - row.max_multiplier / max(plane.away, 1e-300), 0.0)
    if _length(plane, 1.0 + t * (plane.a - 1.0), t) <= trial.radius + row.tol:
        from_k, _ = _shrink(trial, trial.c, t, x)
        return CONVERGED if from_k <= trial.radius + 16.0 * row.tol else UNCONVERGED
    return _prox_on_sphere(trial, plane, row, farthest, x)


@borrowing
def _project(trial, plane, row, x):
    """The projection of a target that is outside the row or K: onto one sphere, or onto both. Returns (ν, status)."""
    R, r, tol = trial.radius, trial.r, row.tol
    if r - tol <= plane.D - R or r <= 0.0:  # they touch, or are apart
        shrink = 1.0 if plane.D <= R else R / plane.D
        _, from_c = _combine(trial, shrink, 0.0, x)
        empty = from_c - r > FEASIBILITY * max(plane.size, abs(r))
        return np.inf, INFEASIBLE if empty else CONVERGED
    t = r / max(plane.away, 1e-300)
    if _length(plane, 1.0 + t * (plane.a - 1.0), t) > R + tol:
        return _project_onto_both(trial, plane, 16.0 * tol, x)
    from_k, _ = _shrink(trial, trial.c, t, x)
    return plane.away - r, CONVERGED if from_k <= R + 16.0 * tol else UNCONVERGED


@borrowing
def _prox_of_trial(trial, w, x):
    """One trial, the multiplier at most w: inside, on one sphere, or on both. Returns (ν, status)."""
    R, r = trial.radius, trial.r
    plane = _plane(trial)
    if not (plane.z + plane.D < np.inf and r > -np.inf and w >= 0.0):
        for j in range(x.shape[0]):
            x[j] = np.nan
        return 0.0, NONFINITE
    row = row_of(x.shape[0], 0.0 if r == np.inf else r, w, plane.size)
    factor = 1.0 if plane.z <= R + row.tol else R / plane.z
    farthest = plane.away if factor == 1.0 else _length(plane, factor * plane.a - 1.0, factor)
    if farthest <= r + row.tol or w == 0.0:
        _, from_c = _shrink(trial, trial.center, factor, x)
        return 0.0, CONVERGED if from_c <= r + 16.0 * row.tol or w == 0.0 else UNCONVERGED
    if w == np.inf or not (r <= 0.0 or _binds(trial, plane, w)):
        nu, status = _project(trial, plane, row, x)
        if nu <= w:
            return nu, status
    return w, _prox(trial, plane, row, farthest, x)


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def ball_norm_ball(y, center, radius, c, r, max_multiplier, x, nu, status):
    """K = {‖x − center‖ ≤ radius}, the row ‖x − c‖ ≤ r."""
    nu[0], status[0] = _prox_of_trial(Trial(y, center, radius, c, r), max_multiplier, x)
