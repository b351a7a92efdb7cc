"""The hinge prox: a projection that may give up on a constraint when holding it costs more than a given price."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cocopt._arrays import Array, ArrayLike, _describe, as_floats, as_points, positive_int, require_finite, scalar
from cocopt.constraints import Affine, Constraint
from cocopt.errors import InvalidInput
from cocopt.geometry.batch import Batch, solve_batch
from cocopt.geometry.project import Projection, _check, descend, trials
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.sets.base import ConvexSet

__all__ = ["hinge_prox", "solve_hinge_prox"]


def hinge_prox(
    K: ConvexSet,
    constraint: Constraint,
    point: ArrayLike,
    *,
    weight: ArrayLike,
    linear: ArrayLike | None = None,
    rho: float = 0.5,
    cap: Literal["each", "sum"] = "each",
    cuts: int = 500,
    tol: float = 1e-7,
) -> Array:
    """argmin over x in K of ⟨linear, x⟩ + penalty(x) + rho‖x − point‖².

    The penalty is Σ_i weight_i g_i^+(x) with ``cap="each"``: row i has a multiplier 0 ≤ ν_i ≤ weight_i; or
    weight·max_i g_i^+(x) with ``cap="sum"``: Σ_i ν_i ≤ weight. An infinite weight makes it the projection of point −
    linear/(2 rho) onto K ∩ {g ≤ 0}.

    Parameters
    ----------
    K : ConvexSet
    constraint : Constraint
    point : array (..., n)
    weight : float, (M,) or (..., M) for "each"; float or (...) for "sum"
        Non-negative, may be inf.
    linear : array (..., n), optional
    rho : float
        Positive.
    cap : "each" or "sum"
    cuts, tol : int, float
        For black boxes: the largest number of cutting planes a trial, and the error of the penalty's model that is
        accepted.

    Examples
    --------
    A price of 0.2 moves the point by 0.2; the constraint would ask for 0.5, which a price of 1 pays in full.

    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> K, g = Box(0.0, 2.0, dim=2), constraints.Affine([1.0, 0.0], 1.0)
    >>> cocopt.hinge_prox(K, g, [1.5, 1.0], weight=0.2)
    array([1.3, 1. ])
    >>> cocopt.hinge_prox(K, g, [1.5, 1.0], weight=1.0)
    array([1., 1.])
    """
    _check(K, constraint)
    if constraint is None:
        raise InvalidInput("constraint: expected a constraint such as constraints.Affine, got None")
    if cap not in ("each", "sum"):
        raise InvalidInput(f'cap: expected "each" or "sum", got {_describe(cap)}')
    double = 2.0 * scalar("rho", rho, positive=True)
    positive_int("cuts", cuts)
    scalar("tol", tol, positive=True)
    target = require_finite("point", as_points("point", point, K.dim))
    if linear is not None:
        target = target - require_finite("linear", as_points("linear", linear, K.dim)) / double
    price = require_finite("weight", as_floats("weight", weight), infinities=True) / double
    if (price < 0).any():
        raise InvalidInput(f"weight: expected non-negative numbers, got {float(price.min()) * double}")
    shape = trials(constraint, target)
    wanted = (*shape, constraint.row_count) if cap == "each" else shape
    try:
        np.broadcast_to(price, wanted)
    except ValueError:
        raise InvalidInput(f"weight: expected a shape that broadcasts to {wanted}, got {price.shape}") from None
    return solve_hinge_prox(K, constraint, target, price, cap, cuts, tol).point


def solve_hinge_prox(
    K: ConvexSet, constraint: Constraint, target: Array, price: Array, cap: str, cuts: int = 500, tol: float = 1e-7
) -> Projection:
    """argmin over x in K of ½‖x − target‖² + penalty(x), on checked arguments."""
    if constraint.row_count == 1 or cap == "each":
        price = np.asarray(price)[..., None] if cap == "sum" else np.atleast_1d(price)
        return descend(K, constraint, target, price, None, "raise", cuts, tol)
    found = solve_batch(K, constraint, target, None)
    if found is None:
        return descend(K, constraint, target, None, price, "raise", cuts, tol)
    return _sum_capped(K, constraint, target, price, found)


def _sum_capped(K: ConvexSet, constraint: Constraint, target: Array, price: Array, found: Batch) -> Projection:
    """The sum cap over a kernel: the projection onto {g ≤ t} for the best t ≥ 0.

    ``found`` is the projection onto {g ≤ 0}; where its multipliers add up to no more than the price, t = 0 is best.
    """
    x, nu, status, _ = found
    if (status == NONFINITE).any():
        require_finite("point", target)
        constraint._blame(target)
    price = np.broadcast_to(price, status.shape)
    over = (nu.sum(axis=-1) > price) | (status != CONVERGED)
    if not over.any():
        return Projection(x, "kernel", np.ones(status.shape, dtype=bool)[()], np.zeros(status.shape)[()], nu)
    affine = constraint.affine()
    assert affine is not None
    A = np.broadcast_to(affine[0], (*status.shape, *affine[0].shape[-2:]))[over]
    b = np.broadcast_to(affine[1], (*status.shape, affine[1].shape[-1]))[over]
    y = np.broadcast_to(target, x.shape)[over]
    settled, x_over, nu_over = _search(K, A, b, y, price[over])
    x, nu = np.array(x), np.array(nu)
    x[over], nu[over] = x_over, nu_over
    for k in np.flatnonzero(~settled):  # what the kernel could not do goes down the ladder
        index = tuple(np.argwhere(over)[k])
        x[index] = descend(K, Affine(A[k], b[k]), y[k], None, price[index], "raise", 1, 1.0).point
    return Projection(x, "kernel", np.ones(status.shape, dtype=bool)[()], np.zeros(status.shape)[()], nu)


def _search(K: ConvexSet, A: Array, b: Array, y: Array, price: Array) -> tuple[Any, Array, Array]:
    """The best t > 0 for each trial; returns (settled, points, multipliers).

    φ(t) = min over x in K with g(x) ≤ t of ½‖x − y‖² + price·t is convex, piecewise quadratic, with slope price − Σ_i
    ν_i. The minimum is inside a quadratic piece, where the chord of the slopes finds it, or at a kink, where the
    tangents of both ends of the bracket meet: steps of both kinds alternate. x(t) is continuous, so a narrow bracket
    is as good as the minimum.
    """
    foot = K._project(y)
    low, high = np.zeros(len(b)), (np.matvec(A, foot) - b).max(axis=-1)
    x, nu = np.array(foot), np.zeros_like(b)
    settled = (high <= 0) | (price == 0)  # nothing is violated at the foot, or violation costs nothing
    slope_low, slope_high = np.full(len(b), -np.inf), price.copy()
    value_low, value_high = np.full(len(b), np.inf), 0.5 * np.vecdot(foot - y, foot - y) + price * high
    width = 1e-13 * (np.abs(b).max(axis=-1, where=np.isfinite(b), initial=0.0) + np.abs(high))
    lost = np.zeros_like(settled)
    for step in range(200):
        go = np.flatnonzero(~settled & ~lost)
        if go.size == 0:
            break
        lo, hi, s_lo, s_hi = low[go], high[go], slope_low[go], slope_high[go]
        with np.errstate(invalid="ignore", divide="ignore"):
            if step == 0:
                t = lo
            elif step % 2:
                t = (s_hi * lo - s_lo * hi) / (s_hi - s_lo)
            else:
                t = (value_low[go] - value_high[go] + s_hi * hi - s_lo * lo) / (s_hi - s_lo)
        t = np.where((t > lo) & (t < hi) | (step == 0), t, 0.5 * (lo + hi))
        found = solve_batch(K, Affine(A[go], b[go] + t[:, None]), y[go], None)
        assert found is not None
        points, multipliers, status, _ = found
        ok = status == CONVERGED  # else no point satisfies g ≤ t: t is too small
        lost[go] = status == UNCONVERGED
        slope = np.where(ok, price[go] - multipliers.sum(axis=-1), -np.inf)
        value = np.where(ok, 0.5 * np.vecdot(points - y[go], points - y[go]) + price[go] * t, np.inf)
        left = slope < 0
        x[go[ok]], nu[go[ok]] = points[ok], multipliers[ok]  # x(t) of the last t that has one
        low[go], high[go] = np.where(left, t, lo), np.where(left, hi, t)
        slope_low[go], slope_high[go] = np.where(left, slope, s_lo), np.where(left, s_hi, slope)
        value_low[go], value_high[go] = np.where(left, value, value_low[go]), np.where(left, value_high[go], value)
        narrow = high[go] - low[go] <= width[go]
        settled[go] = (narrow & ~lost[go]) | (ok & (np.abs(slope) <= 1e-13 * price[go]))
    return settled, x, nu
