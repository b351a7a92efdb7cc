"""A box and a quadratic row without mixed terms.

g(x) = ½ Σ p_j x_j² + ⟨q, x⟩ + r with p ≥ 0. The minimiser over the box of ½‖x − y‖² + ν g(x) is
x(ν) = clip((y − ν q)/(1 + ν p)), and g(x(ν)) never increases with ν.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize
from cocopt.kernels.curved.multiplier import MAX_STEPS, advance_multiplier, whole
from cocopt.kernels.curved.path import recoverable, resolves
from cocopt.kernels.far_targets import move_target_closer
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip, norm
from cocopt.tolerances import FEASIBILITY

__all__ = ["box_quadratic"]


class Trial(NamedTuple):
    """The data of one trial, and the norms of the row's coefficients."""

    y: Any
    lower: Any
    upper: Any
    p: Any
    q: Any
    r: Any
    p_norm: Any
    q_norm: Any


@borrowing
def _magnitude(trial, x_sq):
    """The size of the row's terms at a point, from its squared norm."""
    size = np.sqrt(x_sq)
    return (0.5 * trial.p_norm * size + trial.q_norm) * size + abs(trial.r)


@borrowing
def _coefficients(y, p, q):
    """‖p‖², ‖q‖², the smallest p, and a sum that is not finite if some number is not."""
    p_sq, q_sq, least, total = 0.0, 0.0, np.inf, 0.0
    for j in range(y.shape[0]):
        p_sq += p[j] * p[j]
        q_sq += q[j] * q[j]
        least = p[j] if p[j] < least else least
        total += abs(y[j]) + abs(p[j]) + abs(q[j])
    return p_sq, q_sq, least, total


@borrowing
def _value(trial, x):
    """g(x) and ‖x‖²."""
    p, q, g, x_sq = trial.p, trial.q, trial.r, 0.0
    for j in range(x.shape[0]):
        g += (0.5 * p[j] * x[j] + q[j]) * x[j]
        x_sq += x[j] * x[j]
    return g, x_sq


@borrowing
def _least(trial, x):
    """The minimiser of g over the box, of several the one nearest to y, in x; returns g and ‖x‖² there.

    g is −inf if the box is open in a direction in which g falls without end; then x is of no use.
    """
    y, lower, upper, p, q, _, _, _ = trial
    for j in range(x.shape[0]):
        flat = lower[j] if q[j] > 0.0 else upper[j] if q[j] < 0.0 else clip(y[j], lower[j], upper[j])
        x[j] = clip(-q[j] / p[j], lower[j], upper[j]) if p[j] > 0.0 else flat
        if abs(x[j]) == np.inf:
            return -np.inf, 0.0
    return _value(trial, x)


class Model(NamedTuple):
    """g near x(ν)."""

    g: Any
    slope: Any  # −dg/dν
    above: Any  # how far g exceeds its least value over the coordinates that are free; inf if it has none
    gradient_sq: Any  # Σ (p_j x_j + q_j)²/(1 + ν p_j) over all coordinates
    x_sq: Any  # ‖x‖²


@borrowing
def _model(trial, nu):
    """g at x(ν), and how it changes while no coordinate changes between free and bounded."""
    y, lower, upper, p, q, r, _, _ = trial
    g, slope, above, linear, gradient_sq, x_sq = r, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        shrink = 1.0 / (1.0 + nu * p[j])
        z = (y[j] - nu * q[j]) * shrink
        x = clip(z, lower[j], upper[j])
        half = 0.5 * p[j] * x
        full = half + half + q[j]
        g += (half + q[j]) * x
        x_sq += x * x
        change = full * full * shrink
        gradient_sq += change
        free = change if x == z else 0.0
        slope += free
        above += free * (1.0 + nu * p[j]) / (p[j] if p[j] > 0.0 else 1.0)
        linear += free if p[j] == 0.0 else 0.0
    return Model(g, slope, 0.5 * above if linear == 0.0 else np.inf, gradient_sq, x_sq)


@borrowing
def _newton(model, nu):
    """The next ν by Newton's method on (g − its least value over the free coordinates)^(−1/2); inf if g is flat.

    That is affine in ν if all p are the same, and plain Newton's method if all are 0.
    """
    if not model.slope > 0.0:
        return np.inf
    step = model.g / max(model.slope, 1e-300)
    if model.above < np.inf:
        target = model.above - model.g
        if not target > 0.0:
            return np.inf
        ratio = model.above / target
        step *= 2.0 * ratio / (np.sqrt(ratio) + 1.0)
    return nu + step


@borrowing
def _store(trial, nu, x):
    """x = x(ν); returns g and ‖x‖²."""
    y, lower, upper, p, q, _, _, _ = trial
    for j in range(x.shape[0]):
        x[j] = clip((y[j] - nu * q[j]) / (1.0 + nu * p[j]), lower[j], upper[j])
    return _value(trial, x)


@borrowing
def _size_of_parts(trial, nu, x):
    """The length of what the free coordinates are differences of."""
    y, lower, upper, p, q, _, _, _ = trial
    parts = 0.0
    for j in range(x.shape[0]):
        part = (abs(y[j]) + nu * abs(q[j])) / (1.0 + nu * p[j])
        parts += part * part if lower[j] < x[j] < upper[j] else 0.0
    return np.sqrt(parts)


@borrowing
def _search(trial, max_multiplier, eps):
    """ν with g(x(ν)) = 0 to rounding, or the bound if g is positive there."""
    nu, bracket = 0.0, whole(max_multiplier)
    for _ in range(MAX_STEPS):
        model = _model(trial, nu)
        unit, tol = model.g / max(model.gradient_sq, 1e-300), eps * _magnitude(trial, model.x_sq)
        nu, bracket, over = advance_multiplier(bracket, nu, model.g, _newton(model, nu), unit, tol)
        if over:
            break
    return nu


@borrowing
def _prox_of_trial(trial, max_multiplier, least_p, total, x):
    """One trial; returns (ν, status)."""
    r = trial.r
    if not (total < np.inf and r < np.inf and max_multiplier >= 0.0):
        for j in range(x.shape[0]):
            x[j] = np.nan
        return 0.0, NONFINITE
    if least_p < 0.0:
        return 0.0, UNCONVERGED  # not convex, which the next method reports
    eps = 4.0 * rounding(x.shape[0])
    if r == -np.inf or max_multiplier == 0.0:
        for j in range(x.shape[0]):
            x[j] = clip(trial.y[j], trial.lower[j], trial.upper[j])
        return 0.0, CONVERGED
    g, x_sq = _store(trial, 0.0, x)
    if not x_sq < np.inf:
        return 0.0, NONFINITE
    if g <= eps * _magnitude(trial, x_sq):
        return 0.0, CONVERGED
    if max_multiplier == np.inf:
        g, x_sq = _least(trial, x)
        size = _magnitude(trial, x_sq)
        if g >= -eps * size:
            return np.inf, INFEASIBLE if g > FEASIBILITY * size else CONVERGED
    nu = _search(trial, max_multiplier, eps)
    g, x_sq = _store(trial, nu, x)
    tol = 16.0 * eps * _magnitude(trial, x_sq)
    solved = abs(g) <= tol or (nu == max_multiplier < np.inf and g >= -tol)
    return nu, CONVERGED if solved and resolves(_size_of_parts(trial, nu, x), np.sqrt(x_sq)) else UNCONVERGED


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64, float64, "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(n),(n),(),()->(n),(),()",
)
def box_quadratic(y, lower, upper, p, q, r, max_multiplier, x, nu, status):
    """K = {lower ≤ x ≤ upper}, p the diagonal of the quadratic row's matrix."""
    p_sq, q_sq, least_p, total = _coefficients(y, p, q)
    target, tau = y, 1.0
    for _ in range(2):
        trial = Trial(target, lower, upper, p, q, r, np.sqrt(p_sq), np.sqrt(q_sq))
        multiplier, status[0] = _prox_of_trial(trial, max_multiplier * tau, least_p, total, x)
        nu[0] = multiplier / tau
        if status[0] != UNCONVERGED or least_p < 0.0 or not recoverable(y, x, norm(x)):
            return
        # a far target costs digits where p = 0; what was found is the projection of a nearer one
        target = np.empty_like(y)
        tau = move_target_closer(y, x, norm(x), target)
