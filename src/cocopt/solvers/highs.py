"""HiGHS (through scipy), for the linear programs that decide whether a polyhedron is empty."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from cocopt.arrays import Array
from cocopt.errors import SolverFailure

__all__ = ["least_violation"]

INSIDE = 1e-9  # a row violated by less than this share of its terms counts as satisfied
WIDE = 1e3  # by this factor numbers may differ and still be in the same units


def least_violation(
    lower: Array, upper: Array, A: Array, b: Array, equalities: int, rows: Array, right: Array, unit: Array
) -> tuple[float, Array]:
    """The least t for which some x in {lower ≤ x ≤ upper, A x ≤ b} has rows·x ≤ right + t·unit, and such an x."""
    use = right < np.inf
    if not use.any():
        return -np.inf, np.clip(np.zeros(lower.size), lower, upper)
    scale, own = _scale(rows)[use], _scale(A)
    rows, right, unit = scale[:, None] * rows[use], scale * right[use], scale * unit[use]
    A, b = own[:, None] * A, own * b
    # HiGHS has absolute tolerances: lengths in units of the largest, or of a middling one should that be much less; t
    # in units of the flattest row, or of the steepest. Of the points in the polyhedron the best counts.
    given = np.abs(np.concatenate([lower, upper, b, right]))
    given = given[(given > 0.0) & (given < 1e20)]
    lengths = _units(float(given.max()), float(np.median(given))) if given.size else (1.0,)
    best, found, message = (np.inf, np.inf), None, ""
    for length, step in product(lengths, _units(float(unit.max()), float(unit.min()))):
        places = lower / length, upper / length, A, b / length
        result = _solve(*places, equalities, rows, right / length, unit / step)
        if result.status == 3:  # unbounded: the rows can be satisfied with any margin
            return -np.inf, np.clip(np.zeros(lower.size), lower, upper)
        message = result.message
        if result.x is not None:
            x = np.clip(length * result.x[:-1], lower, upper)
            judged = _outside(A, b, equalities, x), float(((rows @ x - right) / unit).max())
            if judged < best:
                best, found = judged, x
    if found is None:
        raise SolverFailure(f"HiGHS could not find the least violation: {message}")
    return best[1], found


def _outside(A: Array, b: Array, equalities: int, x: Array) -> float:
    """By which share of its terms x violates A x ≤ b most; 0 if that is little."""
    A, b = A[b < np.inf], b[b < np.inf]
    excess, terms = A @ x - b, np.abs(A) @ np.abs(x) + np.abs(b)
    excess[:equalities] = np.abs(excess[:equalities])
    share = float(np.max(excess / np.maximum(terms, 1e-300), initial=0.0))
    return share if share > INSIDE else 0.0


def _units(largest: float, other: float) -> tuple[float, ...]:
    """The largest, and the other one if it is much less."""
    return (largest,) if largest <= WIDE * other else (largest, other)


def _solve(
    lower: Array, upper: Array, A: Array, b: Array, equalities: int, rows: Array, right: Array, unit: Array
) -> Any:
    """The linear program in these units."""
    from scipy.optimize import linprog

    keep = b < np.inf
    keep[:equalities] = False
    size = np.maximum(unit, 1.0)
    flat = np.hstack([rows / size[:, None], -(unit / size)[:, None]])
    for presolve in (True, False):  # which fails now and then
        result = linprog(
            np.append(np.zeros(lower.size), 1.0),
            A_ub=np.concatenate([flat, np.hstack([A[keep], np.zeros((keep.sum(), 1))])]),
            b_ub=np.concatenate([right / size, b[keep]]),
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
    return result


def _scale(rows: Array) -> Array:
    """What makes the largest entry of each row 1; 1 for a row of zeros."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    return 1.0 / np.where(largest > 0.0, largest, 1.0)
