"""Where to cut next: Newton's method on the smooth pieces that cuts reveal.

Cuts whose slopes are nearly the same come from one smooth piece of a row, and the differences of their slopes give its
curvature. With it the binding pieces become quadratic models; one step of sequential quadratic programming predicts
the projection. Nothing depends on the prediction: a wrong one costs a cut, which is as valid as any other.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, all_finite
from cocopt.constraints import Affine, Constraint, Stack
from cocopt.errors import SolverFailure
from cocopt.geometry.batch import joined
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.derived import CuttingPlanes
from cocopt.geometry.problem import Request
from cocopt.geometry.rows import project_onto_cuts
from cocopt.kernels.status import CONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.solvers import daqp

__all__ = ["Guess", "cut_points", "predict_projection"]

MAX_DIM = 200  # in more dimensions n × n matrices cost more than they save
SAME_PIECE = 0.25  # slopes that differ by less than this share are taken to be of the same piece
MAX_SECANTS = 60  # of a piece, the nearest cuts from which its curvature is taken
NEGLIGIBLE = 1e-3  # a multiplier that exerts a smaller share of all force may be a solver's rounding


class Guess(NamedTuple):
    """A point z, and the binding pieces there: their rows and slopes."""

    z: Array
    owner: NDArray[np.int64]
    slopes: Array


def predict_projection(
    K: ConvexSet, fixed: Constraint | None, model: CuttingPlanes, past: CuttingPlanes, nu: Array, point: Array, x: Array
) -> Guess | None:
    """The projection of the point that the curvature of the cuts predicts.

    x is the projection onto K and the cuts of the model, nu are their multipliers; ``past`` holds all cuts that were
    ever taken. With H_c the curvature of piece c and the metric B = I + Σ ν_c H_c, this is the argmin of
    ½ (z − x)ᵀB(z − x) + ⟨x − point, z − x⟩ over K, the binding pieces linearised at x, and the cuts that do not bind.
    None if no curvature is known yet.
    """
    if x.size > MAX_DIM or not nu.any():
        return None
    A, rhs, owner, origin = model.A.copy(), model.b.copy(), model.owner, model.origin
    B, keep = np.eye(x.size), np.ones(rhs.size, dtype=bool)
    force = nu * np.linalg.norm(A, axis=1)
    left = force > NEGLIGIBLE * force.sum()
    distance = np.linalg.norm(origin - x, axis=1)
    in_model, in_past = _same_pieces(model, model), _same_pieces(model, past)
    while left.any():
        k = int(np.argmin(np.where(left, distance, np.inf)))
        same_piece = keep & in_model[k]
        alike = np.flatnonzero(in_past[k])
        if alike.size > MAX_SECANTS:
            alike = alike[np.argsort(np.linalg.norm(past.origin[alike] - origin[k], axis=1))[:MAX_SECANTS]]
        H = _curvature(past.origin[alike] - origin[k], past.A[alike] - model.A[k], float(np.linalg.norm(model.A[k])))
        step = x - origin[k]
        value = model.A[k] @ x - model.b[k] + 0.5 * step @ H @ step
        B += nu[same_piece].sum() * H
        A[k] += H @ step
        rhs[k] = A[k] @ x - value
        keep &= ~same_piece
        keep[k] = True
        left &= ~same_piece
    if not (all_finite(B) and all_finite(A) and all_finite(rhs)):
        return None
    values, vectors = np.linalg.eigh(0.5 * (B + B.T))
    if values[-1] <= 1.0 + 1e-6:
        return None
    values = np.maximum(values, 1.0)  # as convexity implies
    target = x + vectors @ ((vectors.T @ (point - x)) / values)
    found = _project_in_metric(K, fixed, A[keep], rhs[keep], target, vectors / np.sqrt(values))
    if found is None:
        return None
    binding = np.flatnonzero(keep)[found[1] > 0.0]
    return Guess(K.project_unchecked(found[0]), owner[binding], A[binding])


def cut_points(guess: Guess, K: ConvexSet, fixed: Constraint | None, h: float) -> list[tuple[Array, NDArray[np.int64]]]:
    """Points of K, each with the rows to cut there, so that every binding piece gets a cut.

    That is z itself, but at a kink a subgradient belongs to one piece alone: rows with several pieces are cut at the
    nearest points where each of them is the largest, by as much as it rises in a distance of h.
    """
    rows, counts = np.unique(guess.owner, return_counts=True)
    points = [(guess.z, rows[counts == 1])] if (counts == 1).any() else []
    for row in rows[counts > 1]:
        slopes = guess.slopes[guess.owner == row]
        for k, slope in enumerate(slopes):
            lower = np.delete(slopes, k, axis=0) - slope
            with contextlib.suppress(SolverFailure):  # then its cut is left out
                found = project_onto_cuts(K, fixed, lower, lower @ guess.z - h * float(np.linalg.norm(slope)), guess.z)
                if found is not None:
                    points.append((found[0], np.array([row])))
    return points


def _project_in_metric(
    K: ConvexSet, fixed: Constraint | None, A: Array, b: Array, target: Array, metric: Array
) -> tuple[Array, Array] | None:
    """The point target + S u of K with A x ≤ b whose u is the shortest, S the metric; and the rows' multipliers."""
    polyhedral, M, n = K.polyhedral(), b.size, target.size
    affine = None if fixed is None else fixed.affine()
    if polyhedral is None or (fixed is not None and affine is None):
        cuts = Affine(A, b)
        solution = solve_conic(Request(K, cuts if fixed is None else Stack([cuts, fixed]), target), metric)
        return (solution.point, solution.multipliers[:M]) if solution.status == CONVERGED else None
    if affine is not None:
        A, b = np.concatenate([A, affine[0]]), np.concatenate([b, affine[1]])
    lower, upper, rows, rhs, equalities = joined(polyhedral, A, b)
    low, high, eye, own = np.isfinite(lower), np.isfinite(upper), np.eye(n), polyhedral.b.size
    rows = np.concatenate([rows, eye[high], -eye[low]])
    rhs = np.concatenate([rhs, upper[high], -lower[low]])
    free = np.full(n, np.inf)
    solution = daqp.solve(-free, free, rows @ metric, rhs - rows @ target, equalities, np.zeros(n))
    if solution.status != CONVERGED:
        return None
    return target + metric @ solution.point, solution.multipliers[own : own + M]


def _same_pieces(cuts: CuttingPlanes, others: CuttingPlanes) -> NDArray[np.bool_]:
    """Which of the others are taken to be of the same smooth piece as each of the cuts."""
    squares, other_squares = np.vecdot(cuts.A, cuts.A), np.vecdot(others.A, others.A)
    apart = squares[:, None] + other_squares - 2.0 * cuts.A @ others.A.T
    alike: NDArray[np.bool_] = (apart <= SAME_PIECE**2 * squares[:, None]) & (cuts.owner[:, None] == others.owner)
    return alike


def _curvature(steps: Array, changes: Array, slope: float) -> Array:
    """A symmetric H with H·step = change of the slope, by rank-one updates, the shortest steps last.

    (The symmetric rank-one formula, Conn, Gould & Toint 1991.) Changes that may be rounding, or nearly orthogonal to
    their step, are left out.
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
