"""DAQP, a dual active-set solver for small dense quadratic programs (Arnström, Bemporad & Axehill 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers.nearer import STEPS, is_far, nearer, stays

__all__ = ["project"]

TOLERANCE = 1e-10  # of the optimality conditions, in units of the distance that the projection bridges
SETTLED = 1e-10  # a projection from far away that moves by less than this share of its size stays
NONE = 1e30  # DAQP's infinity


def project(lower: Array, upper: Array, A: Array, b: Array, equalities: int, point: Array) -> tuple[Array, Array, Any]:
    """argmin of ½‖x − point‖² subject to lower ≤ x ≤ upper and A x ≤ b, the first ``equalities`` rows with equality.

    For points (B, n), rows (B, M, n) and right-hand sides (B, M), one call of DAQP each; returns (points, multipliers
    of the rows, statuses).

    From a target that is far away, or if it violates a row by more than it need, x is the start for a nearer one.
    """
    norms = np.linalg.norm(A, axis=-1)
    idle = (norms == 0) | (b == np.inf)
    lengths = np.where(idle, 1.0, norms)
    rows = np.where(idle, 0.0, 1.0)[..., None] * A / lengths[..., None]
    right = np.where(idle, NONE, b / lengths)
    x, price, status = _solve(lower, upper, rows, right, equalities, point)
    size = np.abs(x).max(axis=-1)
    missed = np.where(idle, -np.inf, np.matvec(rows, x) - right)
    missed[:, :equalities] = np.abs(missed[:, :equalities])
    terms = np.maximum(size[:, None], np.where(idle, 0.0, np.abs(right)))
    coarse = (missed > 1e-10 * terms).any(axis=-1) & (status == CONVERGED)
    todo = np.flatnonzero(coarse | (is_far(point, x, size) & (status != UNCONVERGED)))
    for step in range(STEPS if todo.size else 0):
        old, size, settled = x[todo], np.abs(x[todo]).max(axis=-1), status[todo] == CONVERGED
        target, tau = nearer(point[todo], old, size)
        x[todo], near, status[todo] = _solve(lower, upper, rows[todo], right[todo], equalities, target)
        still = stays(point[todo], x[todo], old, np.abs(x[todo]).max(axis=-1), SETTLED)
        # the multipliers, unlike the point, are sharper from afar, if it is the same point
        keep = (settled & still & (step == 0))[:, None] | (tau == 0)
        price[todo] = np.where(keep, price[todo], near / np.maximum(tau, 1e-300))
        todo = todo[(status[todo] == CONVERGED) & ~still]
        if not todo.size:
            break
    status[todo] = UNCONVERGED  # still on the way
    status[((norms == 0) & (b < 0)).any(axis=-1)] = INFEASIBLE
    return x, np.abs(price) / lengths, status


def _solve(
    lower: Array, upper: Array, rows: Array, right: Array, equalities: int, point: Array
) -> tuple[Array, Array, Any]:
    """As `project`, for rows of length 1 (or 0, with a right side of NONE), in one go.

    Each problem is moved and scaled so that the target is 0 and the worst violation there is 1. A point that fails the
    check of its optimality conditions is computed anew from its active set.
    """
    import daqp

    B, M, n = rows.shape
    right = np.where(right == NONE, NONE, right - np.matvec(rows, point))
    low, high = lower - point, upper - point
    exact = right[:, :equalities]
    worst = np.maximum(np.maximum(low.max(axis=-1), -high.min(axis=-1)), -right.min(axis=-1))
    worst = np.maximum(worst, np.abs(np.where(exact == NONE, 0.0, exact)).max(axis=-1, initial=0.0))
    inside = worst <= 0.0
    unit = np.where(inside, 1.0, worst)[:, None]
    top = np.minimum(np.concatenate([high, right], axis=-1) / unit, NONE)
    bottom = np.full((B, n + M), -NONE)
    bottom[:, :n] = np.maximum(low / unit, -NONE)
    bottom[:, n : n + equalities] = top[:, n : n + equalities]
    sense = np.zeros(n + M, dtype=np.int32)
    sense[n : n + equalities] = 5
    eye, zero, solve = np.eye(n), np.zeros(n), daqp.solve
    u, price, status = np.zeros((B, n)), np.zeros((B, n + M)), np.full(B, UNCONVERGED)
    for k in range(B):
        if inside[k]:
            continue
        u[k], _, flag, info = solve(eye, zero, rows[k], top[k], bottom[k], sense, primal_tol=1e-12, dual_tol=1e-12)
        if flag == -1:
            status[k] = INFEASIBLE
        else:
            price[k] = info["lam"]
    good = _optimal(bottom, top, rows, equalities, u, price) & (status != INFEASIBLE)
    for k in np.flatnonzero(~good & (status != INFEASIBLE)).tolist():
        u[k], price[k] = _from_active_set(bottom[k], top[k], rows[k], price[k])
        good[k] = _optimal(bottom[[k]], top[[k]], rows[[k]], equalities, u[[k]], price[[k]])[0]
    status[good | inside] = CONVERGED
    return np.minimum(np.maximum(point + unit * u, lower), upper), price[:, n:] * unit, status


def _from_active_set(bottom: Array, top: Array, rows: Array, price: Array) -> tuple[Array, Array]:
    """The point nearest to 0 on the bounds and rows that have a price, and its multipliers."""
    active = np.flatnonzero(price)
    gradients = np.concatenate([np.eye(rows.shape[1]), rows])[active]
    point = np.linalg.lstsq(gradients, np.where(price > 0, top, bottom)[active], rcond=None)[0]
    lagrange = np.zeros_like(price)
    lagrange[active] = np.linalg.lstsq(gradients.T, -point, rcond=None)[0]
    return point, lagrange


def _optimal(bottom: Array, top: Array, rows: Array, equalities: int, u: Array, price: Array) -> Any:
    """Whether each u minimises ½‖u‖² between bottom and top, its multipliers being signed prices, to TOLERANCE."""
    n = u.shape[-1]
    values = np.concatenate([u, np.matvec(rows, u)], axis=-1)
    scale = np.maximum(1.0, np.abs(u).max(axis=-1))
    violated = np.maximum((bottom - values).max(axis=-1), (values - top).max(axis=-1))
    stationary = np.abs(u + price[:, :n] + np.vecmat(price[:, n:], rows)).max(axis=-1)
    wrong_sign = np.maximum(-price[:, n + equalities :], 0.0).max(axis=-1, initial=0.0)
    slack = np.where(price > 0, top - values, bottom - values)
    gap = np.abs(np.where(price == 0, 0.0, price * slack).sum(axis=-1)) / scale
    return np.maximum.reduce([violated, stationary, wrong_sign, gap]) <= TOLERANCE * scale
