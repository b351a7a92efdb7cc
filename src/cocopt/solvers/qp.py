"""Quadratic programs: the projection onto a polyhedron, by DAQP, then Clarabel, with checked optimality conditions."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers import daqp
from cocopt.solvers.cone_program import candidates
from cocopt.solvers.optimality import is_least_norm_point
from cocopt.solvers.solution import Solution
from cocopt.tolerances import FEASIBILITY

__all__ = ["solve_qp"]

INFINITY = 1e30  # a bound that is switched off, finite so that one can compute with it


def solve_qp(lower: Array, upper: Array, A: Array, b: Array, equalities: int, point: Array) -> Solution:
    """argmin of ½‖x − point‖² subject to lower ≤ x ≤ upper and A x ≤ b, the first ``equalities`` rows with equality.

    For a point (n,), rows (M, n) and right-hand sides (M,); b_i = +inf switches row i off. DAQP first; Clarabel if the
    check of DAQP's result fails. The multipliers are those of the rows, ≥ 0 (for equations their absolute value). The
    status is CONVERGED if the optimality conditions hold, INFEASIBLE if they do not and a solver reports that no point
    satisfies the rows, which is not checked.

    A general objective ½ zᵀLLᵀz − cᵀz is a projection in the variable x = Lᵀz, of the point L⁻¹c.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.solvers.qp import solve_qp
    >>> lower, upper, A, b = np.zeros(2), np.ones(2), np.ones((1, 2)), np.ones(1)
    >>> solve_qp(lower, upper, A, b, 0, np.array([1.0, 0.5]))
    Solution(point=array([0.75, 0.25]), multipliers=array([0.25]), status=0, cuts=0)
    """
    solution = daqp.solve(lower, upper, A, b, equalities, point)
    if solution.status == CONVERGED:
        return solution
    second = _by_clarabel(lower, upper, A, b, equalities, point)
    return second if second.status in (CONVERGED, INFEASIBLE) else solution


def _by_clarabel(lower: Array, upper: Array, A: Array, b: Array, equalities: int, point: Array) -> Solution:
    """As `solve_qp`, moved and scaled so that the target is 0 and the worst violation there is 1."""
    n, unknown, norms = point.size, np.full(b.size, np.nan), np.linalg.norm(A, axis=1)
    if ((norms == 0) & (b < 0)).any():
        return Solution(point, unknown, INFEASIBLE)
    used = (norms > 0) & (b < np.inf)
    rows, rhs, equalities = A[used] / norms[used, None], b[used] / norms[used], int(used[:equalities].sum())
    top, bottom = np.concatenate([upper - point, rhs - rows @ point]), np.full(n + rhs.size, -np.inf)
    bottom[:n], bottom[n : n + equalities] = lower - point, top[n : n + equalities]
    worst = max(float((-top).max()), float(bottom.max()))
    unit = worst if worst > 0.0 else 1.0
    bottom, top = np.maximum(bottom / unit, -INFINITY), np.minimum(top / unit, INFINITY)
    cones, sides = _as_cones(bottom, top, rows, equalities)
    status = UNCONVERGED
    with ignore_fp_warnings():  # the multipliers that prove infeasibility may be of any length
        for candidate in candidates(np.ones(n), np.zeros(n), cones):
            multipliers = candidate.z @ sides
            x = np.clip(point + unit * candidate.x, lower, upper)
            violation, size = rows @ x - rhs, np.maximum(float(np.abs(x).max()), np.abs(rhs))
            violation[:equalities] = np.abs(violation[:equalities])
            optimal = is_least_norm_point(
                bottom[None], top[None], rows[None], equalities, candidate.x[None], multipliers[None]
            )
            if optimal[0] and (violation <= FEASIBILITY * size).all():
                of_rows = np.zeros(b.size)
                of_rows[used] = np.abs(unit * multipliers[n:]) / norms[used]
                return Solution(x, of_rows, CONVERGED)
            status = INFEASIBLE if candidate.infeasible else status
    return Solution(point, unknown, status)


def _as_cones(bottom: Array, top: Array, rows: Array, equalities: int) -> tuple[Cones, Array]:
    """bottom ≤ [u; rows·u] ≤ top in conic form, and a matrix S: the duals z have the signed multipliers Sᵀz."""
    n = rows.shape[1]
    every = np.arange(top.size)
    equal = (n <= every) & (every < n + equalities)
    above, below = ~equal & (top < INFINITY), ~equal & (bottom > -INFINITY)
    eye = np.eye(top.size)
    sides = np.vstack([eye[equal], eye[above], -eye[below]])
    kinds = (("zero", equalities), ("nonneg", len(sides) - equalities))
    return Cones(
        sides @ np.vstack([np.eye(n), rows]),
        np.concatenate([top[equal], top[above], -bottom[below]]),
        np.zeros((len(sides), 0)),
        tuple((kind, size) for kind, size in kinds if size),
    ), sides
