"""Where to cut next: Newton's method on the smooth pieces that cuts reveal.

Cuts whose slopes are nearly the same come from one smooth piece of a row, and the differences of their slopes tell its
curvature. With it the binding pieces become quadratic models; one step of sequential quadratic programming foretells
the projection. Nothing here is trusted: a wrong guess costs a cut, which is as valid as any other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, all_finite
from cocopt.constraints import Affine, Constraint
from cocopt.errors import SolverFailure
from cocopt.geometry.batch import joined
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.problem import Problem
from cocopt.kernels.status import CONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.solvers import daqp

if TYPE_CHECKING:
    from cocopt.geometry.cuts import Cuts

__all__ = ["Guess", "beside", "foretell"]

#: the projection onto K and affine rows, and the rows' multipliers; None if they have no common point
Door = Callable[[ConvexSet, Constraint, Array], tuple[Array, Array] | None]

SMALL = 200  # in more dimensions n × n matrices cost more than they save
NEAR = 0.25  # slopes that differ by less than this share are taken to be of the same piece


class Guess(NamedTuple):
    """A point z, and the binding pieces there: their rows and slopes."""

    z: Array
    owner: NDArray[np.int64]
    slopes: Array


def foretell(K: ConvexSet, model: Cuts, past: Cuts, nu: Array, point: Array, x: Array) -> Guess | None:
    """The projection of the point as the cuts' curvature lets one expect it.

    x is the projection onto K and the cuts of the model, nu are their multipliers; ``past`` holds all cuts that were
    ever taken. With H_c the curvature of piece c and the metric B = I + Σ ν_c H_c, this is the argmin of
    ½ (z − x)ᵀB(z − x) + ⟨x − point, z − x⟩ over K, the binding pieces linearised at x, and the cuts that do not bind.
    None if no curvature is known yet.
    """
    if x.size > SMALL or not nu.any():
        return None
    A, right, owner, origin = model.A.copy(), model.b.copy(), model.owner, model.origin
    B, keep = np.eye(x.size), np.ones(right.size, dtype=bool)
    force = nu * np.linalg.norm(A, axis=1)
    left = force > 1e-3 * force.sum()  # the others' multipliers may be a solver's rounding
    away = np.linalg.norm(origin - x, axis=1)
    while left.any():
        k = int(np.argmin(np.where(left, away, np.inf)))
        mates = keep & _of_piece(model, owner[k], model.A[k])
        alike = _of_piece(past, owner[k], model.A[k])
        H = _curvature(past.origin[alike] - origin[k], past.A[alike] - model.A[k], float(np.linalg.norm(model.A[k])))
        step = x - origin[k]
        value = model.A[k] @ x - model.b[k] + 0.5 * step @ H @ step
        B += nu[mates].sum() * H
        A[k] += H @ step
        right[k] = A[k] @ x - value
        keep &= ~mates
        keep[k] = True
        left &= ~mates
    if not (all_finite(B) and all_finite(A) and all_finite(right)):
        return None
    values, vectors = np.linalg.eigh(0.5 * (B + B.T))
    if values[-1] <= 1.0 + 1e-6:
        return None
    values = np.maximum(values, 1.0)  # what convexity asks for
    target = x + vectors @ ((vectors.T @ (point - x)) / values)
    found = _nearest(K, A[keep], right[keep], target, vectors / np.sqrt(values))
    if found is None:
        return None
    binding = np.flatnonzero(keep)[found[1] > 0.0]
    return Guess(K.project_unchecked(found[0]), owner[binding], A[binding])


def beside(guess: Guess, K: ConvexSet, h: float, project: Door) -> list[tuple[Array, NDArray[np.int64]]]:
    """Points of K, each with the rows to cut there, which tell of every binding piece.

    That is z itself, but at a kink a subgradient would tell of one piece alone: rows with several pieces are cut at
    the nearest points where each of them is the largest, by as much as it rises in a distance of h.
    """
    rows, counts = np.unique(guess.owner, return_counts=True)
    points = [(guess.z, rows[counts == 1])] if (counts == 1).any() else []
    for row in rows[counts > 1]:
        slopes = guess.slopes[guess.owner == row]
        for k, slope in enumerate(slopes):
            below = np.delete(slopes, k, axis=0) - slope
            with contextlib.suppress(SolverFailure):  # then its cut is left out
                found = project(K, Affine(below, below @ guess.z - h * float(np.linalg.norm(slope))), guess.z)
                if found is not None:
                    points.append((found[0], np.array([row])))
    return points


def _nearest(K: ConvexSet, A: Array, b: Array, target: Array, metric: Array) -> tuple[Array, Array] | None:
    """The point target + S u of K with A x ≤ b whose u is the shortest, S the metric; and the rows' multipliers."""
    polyhedral, M, n = K.polyhedral(), b.size, target.size
    if polyhedral is not None:
        lower, upper, rows, right, equalities = joined(polyhedral, A, b)
        low, high, eye, own = np.isfinite(lower), np.isfinite(upper), np.eye(n), polyhedral.b.size
        rows = np.concatenate([rows, eye[high], -eye[low]])
        right = np.concatenate([right, upper[high], -lower[low]])
        free = np.full(n, np.inf)
        u, nu, status = daqp.project(
            -free, free, (rows @ metric)[None], (right - rows @ target)[None], equalities, np.zeros((1, n))
        )
        return (target + metric @ u[0], nu[0, own : own + M]) if status[0] == CONVERGED else None
    solution = solve_conic(Problem(K, Affine(A, b), target, np.full(M, np.inf)), metric)
    return None if solution is None or solution.status != CONVERGED else (solution.point, solution.multipliers)


def _of_piece(cuts: Cuts, row: Any, slope: Array) -> NDArray[np.bool_]:
    """The cuts that are taken to be of the same smooth piece."""
    near = np.linalg.norm(cuts.A - slope, axis=1) <= NEAR * float(np.linalg.norm(slope))
    alike: NDArray[np.bool_] = near & (cuts.owner == row)
    return alike


def _curvature(steps: Array, changes: Array, slope: float) -> Array:
    """A symmetric H with H·step = change of the slope, by rank-one updates, the shortest steps last.

    (The symmetric rank-one formula, Conn, Gould & Toint 1991.) Changes that may be rounding, or all but orthogonal to
    their step, say nothing.
    """
    n = steps.shape[1]
    H = np.zeros((n, n))
    lengths = np.linalg.norm(steps, axis=1)
    for k in np.argsort(-lengths):
        rest = changes[k] - H @ steps[k]
        along, left = float(rest @ steps[k]), float(np.linalg.norm(rest))
        if left > 1e-12 * slope and abs(along) > 1e-6 * lengths[k] * left:
            H += np.outer(rest, rest) / along
    return H
