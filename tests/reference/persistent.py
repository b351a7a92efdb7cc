"""Naive references for persistent intersections and Switch, obviously right; nothing here imports cocopt."""

from __future__ import annotations

import warnings

import cvxpy as cp
import daqp
import numpy as np

from reference.least_squares import nnls


def from_scratch(lower, upper, A, b, y, equation=None):
    """argmin ‖x − y‖ over lower ≤ x ≤ upper, A x ≤ b (and Σ x = equation): one program in units of its distance."""
    n = y.size
    norms = np.linalg.norm(A, axis=1)
    A, b = A / norms[:, None], b / norms
    sense = np.zeros(n + b.size, dtype=np.int32)
    below_rows = np.full(b.size, -1e30)
    if equation is not None:
        A, b = np.vstack([np.ones(n), A]), np.append(equation, b)
        sense, below_rows = np.insert(sense, n, 5), np.append(0.0, below_rows)
    low, high, rhs = lower - y, upper - y, b - A @ y
    unit = max(low.max(), -high.min(), -rhs.min())
    if unit <= 0:
        return y
    if equation is not None:
        below_rows[0] = rhs[0] / unit
    above = np.minimum(np.concatenate([high, rhs]) / unit, 1e30)
    below = np.concatenate([np.maximum(low / unit, -1e30), below_rows])
    u, _, flag, _ = daqp.solve(np.eye(n), np.zeros(n), A, above, below, sense, primal_tol=1e-13, dual_tol=1e-13)
    assert flag == 1
    return np.clip(y + unit * u, lower, upper)


def gap(x, y, A, b, normals):
    """By how much, as a length, x fails to be the projection of y: y − x must lie in the cone of the normals at x.

    ``normals`` are those of the set at x; rows count as binding within 1e-9.
    """
    norms = np.linalg.norm(A, axis=1)
    binding = (b - A @ x) / norms <= 1e-9
    cone = np.vstack([A[binding] / norms[binding, None], normals])
    if len(cone) == 0:
        return float(np.linalg.norm(y - x))
    return float(nnls(cone.T, y - x)[1])


def project_onto(x, members, target):
    """argmin ‖x − target‖ over CVXPY constraints; None if there is no such point."""
    x.value = target
    if all(np.max(member.violation()) <= 1e-9 for member in members):
        return target  # an interior-point method would stay √tolerance away
    program = cp.Problem(cp.Minimize(cp.sum_squares(x - target)), members)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it stops short of these tolerances, and says so
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return None if program.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE) else x.value


def switch(member, project, rounds, x, *, horizon, lipschitz, diameter, threshold=None, on_empty="raise", rows="all"):
    """Switch, line by line: the points x_1, x_2, … and the phase of each round.

    ``member(z)`` are CVXPY's constraints for z in K, ``project`` is P_K; a round is (gradient of f_t, A_t, b_t).
    """
    T, G, D = horizon, lipschitz, diameter
    limit = np.sqrt(T) * np.log(T) if threshold is None else threshold
    z = cp.Variable(x.size)
    kept = member(z)
    second, ccv1, queue, squares = False, 0.0, 0.0, 0.0
    points, phases = [x], []
    for t, (gradient, A, b) in enumerate(rounds, 1):
        slope, values = gradient(x), A @ x - b
        worst = int(np.argmax(values))
        violation = max(0.0, values[worst])
        if not second:
            y = project_onto(z, kept, x - D / (G * np.sqrt(t)) * slope)
            kept = [*kept, A @ z <= b] if rows == "all" else [*kept, A[worst] @ z <= b[worst]]
            following = project_onto(z, kept, y)
            if following is None:
                if on_empty == "raise":
                    return points, phases
                second = True
        phases.append(2 if second else 1)
        if second:
            queue += violation / (2 * G * D)
            weight = np.exp(queue / (2 * np.sqrt(T))) / (2 * np.sqrt(T))
            n = slope / (2 * G * D) + (weight / (2 * G * D) * A[worst] if violation > 0 else 0.0)
            squares += n @ n
            following = project(x - (np.sqrt(2) * D / (2 * np.sqrt(squares)) * n if squares > 0 else 0.0))
        ccv1 += violation
        second = second or ccv1 > limit
        x = following
        points.append(x)
    return points, phases
