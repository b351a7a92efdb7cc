"""Minimisers of many rounds at once whose losses are quadratic, linear or norms, over polyhedra.

A proximal step on ½xᵀP x + ⟨q, x⟩ is a projection in the coordinates in which P + ρI is the identity, and the compiled
active-set method computes it for all rounds together. A few steps suffice: once a step no longer moves x, it has
minimised the loss itself. ‖H x − y‖ has the minimisers of its square. A round counts as solved only with a lower bound
of its optimum, from the multipliers (see `cocopt.hindsight`); the others are left to the search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array, all_finite, ignore_fp_warnings
from cocopt.constraints import Constraint
from cocopt.kernels.status import CONVERGED
from cocopt.losses import LeastSquares, Linear, Loss, Norm, Quadratic
from cocopt.sets.base import ConvexSet
from cocopt.threads import matvec
from cocopt.tolerances import FEASIBILITY, HINDSIGHT_GAP, SATISFIED

__all__ = ["Solved", "minimise_quadratics"]

MAX_STEPS = 6
MAX_ROWS = 128  # of a round, bounds included: those of all rounds are in memory at once
PROXIMAL_CURVATURE = 1e-6  # ρ, of the mean curvature
PROXIMAL_SLOPE = 1e-3  # ρ of a loss without curvature, of its slope over the diameter of K
VALUE_FLOOR = 1e-3  # of the loss at the start: takes the place of a smaller value as the unit of the gap


class Solved(NamedTuple):
    """What was found for N rounds."""

    done: NDArray[np.bool_]  #: (N,), whether the round is solved
    value: Array  #: (N,)
    point: Array  #: (N, n)


class _Rows(NamedTuple):
    """All rows A x ≤ b of K and of the rounds, (N, M, n) and (N, M); the first ones hold with equality."""

    A: Array
    b: Array
    equalities: int

    def select(self, chosen: NDArray[np.intp]) -> _Rows:
        return _Rows(self.A[chosen], self.b[chosen], self.equalities)


def minimise_quadratics(K: ConvexSet, loss: Loss | None, constraint: Constraint | None, count: int) -> Solved | None:
    """The minimisers of ``count`` rounds; None if losses, constraints or K are of another kind."""
    P = _hessians(loss, count)
    rows = None if P is None else _all_rows(K, constraint, count)
    if loss is None or P is None or rows is None or K.diameter == 0.0:
        return None
    start = K.project_unchecked(np.zeros(K.dim))
    found = Solved(np.zeros(count, dtype=bool), np.full(count, np.nan), np.tile(start, (count, 1)))
    if not all(map(all_finite, (P, *rows[:2]))):  # the search names what is not finite
        return found
    with ignore_fp_warnings():
        at_start, slope = loss.value_and_gradient_unchecked(found.point)
        unit = np.maximum(np.abs(at_start), 1e-6 * K.diameter * np.linalg.norm(slope, axis=-1))
        for _ in range(MAX_STEPS):
            todo = np.flatnonzero(~found.done)
            if not todo.size:
                break
            _step(K, loss, constraint, P, rows, unit, found, todo)
    return found


def _hessians(loss: Loss | None, count: int) -> Array | None:
    """The Hessian of each round's loss, or of half its square for a norm."""
    kind = type(loss)
    if isinstance(loss, Norm | LeastSquares) and kind in (Norm, LeastSquares):
        P = np.swapaxes(loss.H, -1, -2) @ loss.H
    elif isinstance(loss, Quadratic) and kind is Quadratic:
        P = loss.P
    elif isinstance(loss, Linear) and kind is Linear:
        P = np.zeros((loss.dim, loss.dim))
    else:
        return None
    return np.broadcast_to(P, (count, *P.shape[-2:]))


def _all_rows(K: ConvexSet, constraint: Constraint | None, count: int) -> _Rows | None:
    """The rows of K, of its bounds and of the rounds; None if they are not affine, or too many."""
    polyhedral = K.polyhedral()
    affine = (np.zeros((0, K.dim)), np.zeros(0)) if constraint is None else constraint.affine()
    if polyhedral is None or affine is None:
        return None
    eye, upper, lower = np.eye(K.dim), polyhedral.upper, polyhedral.lower
    above, below = np.isfinite(upper), np.isfinite(lower)
    A = np.concatenate([polyhedral.A, eye[above], -eye[below]])
    b = np.concatenate([polyhedral.b, upper[above], -lower[below]])
    if len(b) + affine[1].shape[-1] > MAX_ROWS:
        return None
    A = np.concatenate([np.broadcast_to(A, (count, *A.shape)), _repeated(affine[0], 2, count)], axis=1)
    b = np.concatenate([np.broadcast_to(b, (count, *b.shape)), _repeated(affine[1], 1, count)], axis=1)
    idle = b == np.inf  # a row 0 ≤ 0 instead, whose multiplier is 0 and with which one can compute
    return _Rows(np.where(idle[..., None], 0.0, A), np.where(idle, 0.0, b), polyhedral.equalities)


def _repeated(array: Array, axes: int, count: int) -> Array:
    return np.broadcast_to(array, (count, *array.shape[array.ndim - axes :]))


def _step(
    K: ConvexSet,
    loss: Loss,
    constraint: Constraint | None,
    P: Array,
    rows: _Rows,
    unit: Array,
    found: Solved,
    todo: NDArray[np.intp],
) -> None:
    """One proximal step for the rounds in ``todo``; updates what was found."""
    n = K.dim
    size = _squares_factor(loss, found.point)
    gradient = (loss.value_and_gradient_unchecked(found.point)[1] * size[:, None])[todo]
    A, b, equalities = rows.select(todo)
    rho = PROXIMAL_CURVATURE * np.trace(P[todo], axis1=-2, axis2=-1) / n
    rho = np.where(rho > 0.0, rho, PROXIMAL_SLOPE * np.linalg.norm(gradient, axis=-1) / K.diameter)
    hessian = P[todo] + np.where(rho > 0.0, rho, 1.0)[:, None, None] * np.eye(n)
    scale = np.trace(hessian, axis1=-2, axis2=-1)
    inverse = np.linalg.inv(np.linalg.cholesky(hessian / scale[:, None, None]))  # L⁻¹, with z = Lᵀx
    # the step as a projection of the displacement, so that its digits do not depend on where x is
    x = found.point[todo]
    normals = np.ascontiguousarray(A @ np.swapaxes(inverse, -1, -2))
    target = -matvec(inverse, gradient / scale[:, None])
    free, memory = np.full(n, np.inf), kernels.workspace_memory(b.shape[-1], n)
    bounds = np.full(b.shape[-1], np.inf)
    z, multipliers, status = kernels.box_rows(
        target, -free, free, normals, b - matvec(A, x), bounds, np.array(equalities), *memory
    )
    moved = x + matvec(np.swapaxes(inverse, -1, -2), z)
    polyhedral = K.polyhedral()
    assert polyhedral is not None  # see `_all_rows`
    usable = (status == CONVERGED) & np.isfinite(moved).all(axis=-1)
    found.point[todo[usable]] = np.clip(moved, polyhedral.lower, polyhedral.upper)[usable]
    value, slope = loss.value_and_gradient_unchecked(found.point)
    # multipliers of the loss itself, not of half its square
    nu = multipliers * (scale / np.maximum(_squares_factor(loss, found.point)[todo], 1e-300))[:, None]
    nu[:, equalities:] = np.maximum(nu[:, equalities:], 0.0)
    slack = np.abs(nu * (b - matvec(A, found.point[todo]))).sum(axis=-1)
    residual = np.linalg.norm(slope[todo] + matvec(np.swapaxes(A, -1, -2), nu), axis=-1)
    gap = slack + K.diameter * residual
    if loss.nonnegative:
        gap = np.fmin(gap, value[todo])
    allowed = HINDSIGHT_GAP * np.maximum(np.abs(value[todo]), VALUE_FLOOR * unit[todo])
    feasible = _is_feasible(K, constraint, found.point)[todo]
    found.done[todo] = usable & feasible & (gap <= allowed)
    found.value[todo] = value[todo]


def _squares_factor(loss: Loss, x: Array) -> Array:
    """‖H x − y‖ for a norm, by which its gradient becomes that of half its square; else 1."""
    if isinstance(loss, Norm):
        return loss.value_and_gradient_unchecked(x)[0]
    return np.ones(len(x))


def _is_feasible(K: ConvexSet, constraint: Constraint | None, x: Array) -> NDArray[np.bool_]:
    """Whether each point violates neither K nor its round's constraint by more than is promised."""
    feasible: NDArray[np.bool_] = K.violation_unchecked(x) <= SATISFIED * K.scale
    if constraint is not None:
        feasible &= (constraint.rows_unchecked(x) <= FEASIBILITY * constraint.magnitude(x)).all(axis=-1)
    return feasible
