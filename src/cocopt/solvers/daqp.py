"""DAQP, a dual active-set solver for small dense quadratic programs (Arnström, Bemporad & Axehill 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers.far_targets import MAX_STEPS, is_far, is_unchanged, nearer_target
from cocopt.solvers.optimality import is_least_norm_point
from cocopt.solvers.solution import Solution
from cocopt.threads import matvec
from cocopt.tolerances import FEASIBILITY, ROUNDING, SATISFIED

__all__ = ["project", "solve"]

UNCHANGED = 1e-10  # a projection from far away that moves by less than this share of its size is final
INFINITY = 1e30  # DAQP's infinity
NEGLIGIBLE = 1e-3  # a length below this share of every number in the data may be 0 but for rounding
EQUALITY = 5  # DAQP's flag of a row that holds with equality and is never released


def solve(lower: Array, upper: Array, A: Array, b: Array, equalities: int, point: Array) -> Solution:
    """As `project`, for a single point (n,), rows (M, n) and right-hand sides (M,)."""
    x, nu, status = project(lower, upper, A[None], b[None], equalities, point[None])
    return Solution(x[0], nu[0], int(status[0]))


def project(lower: Array, upper: Array, A: Array, b: Array, equalities: int, point: Array) -> tuple[Array, Array, Any]:
    """argmin of ½‖x − point‖² subject to lower ≤ x ≤ upper and A x ≤ b, the first ``equalities`` rows with equality.

    For points (B, n), rows (B, M, n) and right-hand sides (B, M), one call of DAQP each; returns (points, multipliers
    of the rows, statuses). The optimality conditions of every point are checked.

    From a target that is far away, or if it violates a row by more than it need, x is the start for a nearer one.
    """
    norms = np.linalg.norm(A, axis=-1)
    idle = (norms == 0) | (b == np.inf)
    lengths = np.where(idle, 1.0, norms)
    rows = np.where(idle, 0.0, 1.0)[..., None] * A / lengths[..., None]
    rhs = np.where(idle, INFINITY, b / lengths)
    x, multipliers, status = _project_once(lower, upper, rows, rhs, equalities, point)
    least = _smallest_size(lower, upper, rhs)
    size = np.maximum(np.abs(x).max(axis=-1), least)
    inexact = _violates(x, size, rows, rhs, equalities, SATISFIED) & (status == CONVERGED)
    todo = np.flatnonzero(inexact | (is_far(point, x, size) & (status != UNCONVERGED)))
    last = np.abs(point - x).max(axis=-1)
    for step in range(MAX_STEPS if todo.size else 0):
        previous, size, converged = x[todo], size[todo], status[todo] == CONVERGED
        target, tau = nearer_target(point[todo], previous, size, last=last[todo])
        last[todo] = np.abs(target - previous).max(axis=-1)
        x[todo], near, status[todo] = _project_once(lower, upper, rows[todo], rhs[todo], equalities, target)
        size = np.maximum(np.abs(x).max(axis=-1), least)
        # a target that is still far away, in a longer sequence of nearer ones, decides nothing
        arrived = ~is_far(target, x[todo], size[todo])
        unchanged = is_unchanged(x[todo], previous, size[todo], UNCHANGED) & arrived
        # the multipliers, unlike the point, have more digits from far away, if it is the same point
        keep = (converged & unchanged & (step == 0))[:, None] | (tau == 0)
        multipliers[todo] = np.where(keep, multipliers[todo], near / np.maximum(tau, 1e-300))
        todo = todo[((status[todo] == CONVERGED) & ~unchanged) | ((status[todo] == INFEASIBLE) & ~arrived)]
        if not todo.size:
            break
    status[todo] = UNCONVERGED  # these still move, or are still far away
    violated = _violates(x, size, rows, rhs, equalities, FEASIBILITY)
    status[violated & (status == CONVERGED)] = UNCONVERGED
    inside = _is_inside(lower, upper, rows, rhs, equalities, point)
    x[inside], multipliers[inside], status[inside] = point[inside], 0.0, CONVERGED
    status[((norms == 0) & (b < 0)).any(axis=-1)] = INFEASIBLE
    return x, np.abs(multipliers) / lengths, status


def _smallest_size(lower: Array, upper: Array, rhs: Array) -> Array:
    """A length (B,) that is negligible beside all bounds and right-hand sides; beside 1 if there are none but 0."""
    bounds = np.broadcast_to(np.concatenate([lower, upper]), (len(rhs), 2 * lower.size))
    sizes = np.abs(np.concatenate([rhs, bounds], axis=-1))
    least = sizes.min(axis=-1, initial=INFINITY, where=(sizes > 0.0) & (sizes < INFINITY))
    return NEGLIGIBLE * np.where(least < INFINITY, least, 1.0)


def _is_inside(lower: Array, upper: Array, rows: Array, rhs: Array, equalities: int, point: Array) -> Any:  # bool (B,)
    """Whether points satisfy everything, equations up to rounding."""
    excess = np.where(rhs < INFINITY, matvec(rows, point) - rhs, -1.0)
    terms = matvec(np.abs(rows[:, :equalities]), np.abs(point)) + np.abs(rhs[:, :equalities])
    excess[:, :equalities] = np.abs(excess[:, :equalities]) - ROUNDING * np.sqrt(point.shape[-1]) * terms
    return (excess <= 0.0).all(axis=-1) & ((lower <= point) & (point <= upper)).all(axis=-1)


def _violates(x: Array, size: Array, rows: Array, rhs: Array, equalities: int, tolerance: float) -> Any:  # bool (B,)
    """Whether points of these sizes violate a row by more than the tolerance, in units of its terms."""
    violation = matvec(rows, x) - rhs
    violation[:, :equalities] = np.abs(violation[:, :equalities])
    used = rhs < INFINITY
    return (used & (violation > tolerance * np.maximum(size[:, None], np.abs(rhs)))).any(axis=-1)


def _project_once(
    lower: Array, upper: Array, rows: Array, rhs: Array, equalities: int, point: Array
) -> tuple[Array, Array, Any]:
    """As `project`, for rows of length 1 (or 0, with a right-hand side of INFINITY), whatever the distance.

    Each problem is moved and scaled so that the target is 0 and the worst violation there is 1. A point that fails the
    check of its optimality conditions is computed again from its active set.
    """
    import daqp

    B, M, n = rows.shape
    rhs = np.where(rhs == INFINITY, INFINITY, rhs - matvec(rows, point))
    low, high = lower - point, upper - point
    equal = rhs[:, :equalities]
    worst = np.maximum(np.maximum(low.max(axis=-1), -high.min(axis=-1)), -rhs.min(axis=-1))
    worst = np.maximum(worst, np.abs(np.where(equal == INFINITY, 0.0, equal)).max(axis=-1, initial=0.0))
    inside = worst <= 0.0
    unit = np.where(inside, 1.0, worst)[:, None]
    top = np.minimum(np.concatenate([high, rhs], axis=-1) / unit, INFINITY)
    bottom = np.full((B, n + M), -INFINITY)
    bottom[:, :n] = np.maximum(low / unit, -INFINITY)
    bottom[:, n : n + equalities] = top[:, n : n + equalities]
    sense = np.zeros(n + M, dtype=np.int32)
    sense[n : n + equalities] = EQUALITY
    eye, zero, minimise = np.eye(n), np.zeros(n), daqp.solve
    u, multipliers, status = np.zeros((B, n)), np.zeros((B, n + M)), np.full(B, UNCONVERGED)
    for k in range(B):
        if inside[k]:
            continue
        u[k], _, flag, info = minimise(eye, zero, rows[k], top[k], bottom[k], sense, primal_tol=1e-12, dual_tol=1e-12)
        if flag == -1:
            status[k] = INFEASIBLE
        else:
            multipliers[k] = info["lam"]
    good = is_least_norm_point(bottom, top, rows, equalities, u, multipliers) & (status != INFEASIBLE)
    for k in np.flatnonzero(~good & (status != INFEASIBLE)).tolist():
        u[k], multipliers[k] = _from_active_set(bottom[k], top[k], rows[k], multipliers[k])
        one = [k]
        good[k] = is_least_norm_point(bottom[one], top[one], rows[one], equalities, u[one], multipliers[one])[0]
    status[good | inside] = CONVERGED
    return np.minimum(np.maximum(point + unit * u, lower), upper), multipliers[:, n:] * unit, status


def _from_active_set(bottom: Array, top: Array, rows: Array, multipliers: Array) -> tuple[Array, Array]:
    """The point of least norm on the bounds and rows whose multipliers are not 0, and its multipliers."""
    active = np.flatnonzero(multipliers)
    normals = np.concatenate([np.eye(rows.shape[1]), rows])[active]
    point = np.linalg.lstsq(normals, np.where(multipliers > 0, top, bottom)[active], rcond=None)[0]
    exact = np.zeros_like(multipliers)
    exact[active] = np.linalg.lstsq(normals.T, -point, rcond=None)[0]
    return point, exact
