"""HiGHS (through scipy), for the linear programs that decide whether a polyhedron is empty."""

from __future__ import annotations

import numpy as np

from cocopt._arrays import Array
from cocopt.errors import SolverFailure

__all__ = ["least_violation"]


def least_violation(
    lower: Array, upper: Array, A: Array, b: Array, equalities: int, rows: Array, right: Array, unit: Array
) -> tuple[float, Array]:
    """The least t for which some x in {lower ≤ x ≤ upper, A x ≤ b} has rows·x ≤ right + t·unit, and such an x."""
    from scipy.optimize import linprog

    use = right < np.inf
    n = lower.size
    scale, own = _scale(rows), _scale(A)
    rows, right, unit, A, b = scale[:, None] * rows, scale * right, scale * unit, own[:, None] * A, own * b
    # HiGHS has absolute tolerances: lengths in units of the largest one given
    given = np.concatenate([lower, upper, b, right])
    length = float(np.abs(given[np.isfinite(given) & (np.abs(given) < 1e20)]).max(initial=0.0)) or 1.0
    true_lower, true_upper, true_right = lower, upper, right
    lower, upper, b, right = lower / length, upper / length, b / length, right / length
    keep = b < np.inf
    keep[:equalities] = False
    upper_rows = np.concatenate(
        [np.hstack([rows[use], -unit[use, None] / unit.max()]), np.hstack([A[keep], np.zeros((keep.sum(), 1))])]
    )
    for presolve in (True, False):  # which fails now and then
        result = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=upper_rows,
            b_ub=np.concatenate([right[use], b[keep]]),
            A_eq=np.hstack([A[:equalities], np.zeros((equalities, 1))]) if equalities else None,
            b_eq=b[:equalities] if equalities else None,
            bounds=[*zip(lower, upper, strict=True), (None, None)],
            method="highs",
            options={
                "presolve": presolve, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10
            },
        )  # fmt: skip
        if result.status in (0, 3):
            break
    if result.status == 3:  # unbounded: the rows can be satisfied with any margin
        return -np.inf, np.clip(np.zeros(n), true_lower, true_upper)
    if result.x is None:
        raise SolverFailure(f"HiGHS could not find the least violation: {result.message}")
    x = np.clip(length * result.x[:n], true_lower, true_upper)
    return float(((rows[use] @ x - true_right[use]) / unit[use]).max()), x


def _scale(rows: Array) -> Array:
    """What makes the largest entry of each row 1; 1 for a row of zeros."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    return 1.0 / np.where(largest > 0.0, largest, 1.0)
