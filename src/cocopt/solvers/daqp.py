"""DAQP, a dual active-set solver for small dense quadratic programs (Arnström, Bemporad & Axehill 2022)."""

from __future__ import annotations

import numpy as np

from cocopt._arrays import Array
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers.solution import Solution

__all__ = ["project"]

TOLERANCE = 1e-10  # of the optimality conditions, in units of the distance that the projection bridges


def project(lower: Array, upper: Array, A: Array, b: Array, equalities: int, point: Array) -> Solution:
    """argmin of ½‖x − point‖² subject to lower ≤ x ≤ upper and A x ≤ b, the first ``equalities`` rows with equality.

    Rows are normalised and the problem is moved and scaled so that the target is 0 and the worst violation there is 1.
    If the point that DAQP returns fails the check, it is computed anew from the active set.
    """
    import daqp

    M, n = A.shape
    norms = np.linalg.norm(A, axis=1)
    use = (norms > 0) & (b < np.inf)
    multipliers = np.zeros(M)
    if (b[norms == 0] < 0).any():
        return Solution(point, multipliers, INFEASIBLE)
    rows, right = A[use] / norms[use, None], b[use] / norms[use]
    low, high, right = lower - point, upper - point, right - rows @ point
    equal = int(use[:equalities].sum())
    worst = max(low.max(), -high.min(), -right.min(initial=0.0), np.abs(right[:equal]).max(initial=0.0))
    if worst <= 0.0:
        return Solution(point, multipliers, CONVERGED)
    low, high, right = low / worst, high / worst, right / worst
    floor = np.full(right.size, -1e30)
    floor[:equal] = right[:equal]
    sense = np.zeros(n + right.size, dtype=np.int32)
    sense[n : n + equal] = 5
    bound_low = np.concatenate([np.maximum(low, -1e30), floor])
    bound_high = np.concatenate([np.minimum(high, 1e30), right])
    u, _, flag, info = daqp.solve(
        np.eye(n), np.zeros(n), rows, bound_high, bound_low, sense, primal_tol=1e-12, dual_tol=1e-12
    )
    if flag == -1:
        return Solution(point, multipliers, INFEASIBLE)
    if flag < 0:
        return Solution(point, multipliers, UNCONVERGED)
    for candidate, price in ((u, info["lam"]), _from_active_set(low, high, rows, right, info["lam"])):
        if _optimal(low, high, rows, right, equal, candidate, price):
            x = np.minimum(np.maximum(point + worst * candidate, lower), upper)
            multipliers[use] = np.abs(price[n:]) * worst / norms[use]
            return Solution(x, multipliers, CONVERGED)
    return Solution(point, multipliers, UNCONVERGED)


def _from_active_set(low: Array, high: Array, rows: Array, right: Array, price: Array) -> tuple[Array, Array]:
    """The point nearest to 0 on the bounds and rows with a positive price, and its multipliers."""
    n = low.size
    everything = np.concatenate([np.eye(n), rows])
    value = np.concatenate([np.where(price[:n] > 0, high, low), right])
    active = np.flatnonzero(price)
    if active.size == 0:
        return np.zeros(n), np.zeros_like(price)
    point = np.linalg.lstsq(everything[active], value[active], rcond=None)[0]
    lagrange = np.zeros_like(price)
    lagrange[active] = np.linalg.lstsq(everything[active].T, -point, rcond=None)[0]
    return point, lagrange


def _optimal(low: Array, high: Array, rows: Array, right: Array, equal: int, u: Array, price: Array) -> bool:
    """The optimality conditions of argmin ½‖u‖², with signed prices of the bounds, to TOLERANCE."""
    n = low.size
    bound, row = price[:n], price[n:]
    slack = right - rows @ u
    scale = max(1.0, float(np.abs(u).max()))
    tolerance = TOLERANCE * scale
    wrong_sign = max(-row[equal:].min(initial=0.0), 0.0)
    violated = max((low - u).max(), (u - high).max(), -slack.min(initial=0.0), np.abs(slack[:equal]).max(initial=0.0))
    stationary = float(np.abs(u + bound + rows.T @ row).max())
    with np.errstate(invalid="ignore"):
        gap = np.where(bound > 0, bound * (high - u), 0.0).sum() + np.where(bound < 0, bound * (low - u), 0.0).sum()
    gap += float((row * slack).sum())
    return bool(
        wrong_sign <= tolerance and violated <= tolerance and stationary <= tolerance and abs(gap) <= tolerance * scale
    )
