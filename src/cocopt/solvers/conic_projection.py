"""Projection onto a set in conic form, by Clarabel and Newton's method; the optimality conditions are checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones, distance_outside, row_scaled
from cocopt.solvers.cone_program import Candidate, candidates
from cocopt.solvers.far_targets import MAX_STEPS, is_far, is_unchanged, nearer_target
from cocopt.tolerances import FEASIBILITY, OPTIMALITY, POSITION

__all__ = ["deepest_point", "minimise_over_cones", "project_onto_cones", "relax"]

FIRST, CLOSE = 1e4, 10.0  # distances, in sizes, of the targets that take the place of one that is farther away
UNCHANGED = 0.01 * POSITION  # a projection that moves by less, in units of its size, is final


def project_onto_cones(
    cones: Cones, point: Array, start: Array, scale: float, violation: Callable[[Array], float]
) -> Array | None:
    """argmin of ‖x − point‖ over {x : there is u with b − A [x; u] in cones}; None if no x passes its check.

    ``start`` is a point near the set, ``scale`` a typical length of its data; ``violation`` says how far x is outside.
    A target that is far away is approached from nearer ones (`cocopt.solvers.far_targets`).
    """

    def size(x: Array) -> float:
        return max(float(np.abs(x).max()), scale)

    def solve(target: Array, x: Array) -> Array | None:
        return _project(cones, target, max(float(np.abs(target - x).max()), 1e-6 * size(x)), size, violation)

    x: Array | None = start
    for distance in (FIRST, CLOSE):
        for _ in range(MAX_STEPS):
            assert x is not None
            previous = x
            x = solve(nearer_target(point, previous, size(previous), distance)[0], previous)
            if x is None:
                return None
            if not is_far(point, x, distance / 100.0 * size(x)) or is_unchanged(x, previous, size(x), UNCHANGED):
                break
    return x


def _project(
    cones: Cones, target: Array, unit: float, size: Callable[[Array], float], violation: Callable[[Array], float]
) -> Array | None:
    """The projection of a target about ``unit`` away, in numbers of order 1."""
    n = target.size
    scaled = row_scaled(cones._replace(b=(cones.b - cones.A[:, :n] @ target) / unit))
    P = np.concatenate([np.ones(n), np.zeros(scaled.A.shape[1] - n)])
    best, least = None, np.inf
    with ignore_fp_warnings():
        for candidate in candidates(P, np.zeros(P.size), scaled):
            x = target + unit * candidate.x[:n]
            if not np.isfinite(x).all():
                continue
            error = _error(P, scaled, candidate) * unit / size(x)
            if error < least and violation(x) <= FEASIBILITY * size(x):
                best, least = x, error
            if least <= POSITION:
                break
    return best


def _error(P: Array, scaled: Cones, candidate: Candidate) -> float:
    """A bound of the error of the position: Newton's next step, or what strong convexity gives; inf if not optimal."""
    v, z, _, step, _ = candidate
    n, slack = int(P.sum()), scaled.b - scaled.A @ v
    stationarity = max(float(np.abs(P * v + scaled.A.T @ z).max()), distance_outside(scaled, z, dual=True))
    gap, length = abs(float(slack @ z)), max(1.0, float(np.abs(v[:n]).max()))
    if max(stationarity, gap / length) > OPTIMALITY * length:
        return np.inf
    return min(step, stationarity + float(np.sqrt(2.0 * gap)))


def deepest_point(cones: Cones, dim: int, scale: float) -> tuple[Array, float] | None:
    """(c, r) with the largest r for which the ball around c of radius r satisfies the cones, r ≥ −scale if there is none.

    r is negative if no point satisfies them, and at most ``scale``; equations hold at c alone. (A lower bound if there
    are auxiliary variables.) None if the equations have no solution.
    """
    scaled = row_scaled(cones._replace(A=cones.A * scale, b=cones.b))
    column, width = _change_within(scaled, dim), scaled.A.shape[1]
    A = np.block([[scaled.A, column[:, None]], [np.zeros((2, width)), np.array([[1.0], [-1.0]])]])
    b = np.concatenate([scaled.b, [1.0, 1.0]])
    lifted = Cones(A, b, np.zeros((b.size, 0)), (*scaled.cones, ("nonneg", 2)), cones.aux + 1)
    cost = np.append(np.zeros(width), -1.0)
    with ignore_fp_warnings():
        for candidate in candidates(np.zeros(width + 1), cost, lifted):
            v = candidate.x
            if np.isfinite(v).all() and distance_outside(lifted, b - A @ v) <= FEASIBILITY:
                return scale * v[:dim], scale * float(v[-1])
    return None


def relax(cones: Cones, dim: int, length: float) -> Cones:
    """The cones, satisfied by every point as near as ``length`` to one that satisfies them; equations stay as they are."""
    return cones._replace(b=cones.b + length * _change_within(cones, dim)) if length > 0.0 else cones


def _change_within(cones: Cones, dim: int) -> Array:
    """By how much the slack of each inequality, or the first entry of each cone, must grow to allow x to move by 1."""
    column, at = np.zeros(len(cones.b)), 0
    for kind, count in cones.cones:
        rows = cones.A[at : at + count, :dim]
        if kind == "nonneg":
            column[at : at + count] = np.linalg.norm(rows, axis=1)
        elif kind == "soc":
            column[at] = np.linalg.norm(rows[0]) + np.linalg.norm(rows[1:], 2)
        at += count * (count + 1) // 2 if kind == "psd" else count
    return column


def minimise_over_cones(cones: Cones, direction: Array, center: Array, scale: float) -> Array | None:
    """argmin of ⟨direction, x⟩ over a bounded set in conic form; None if no x passes the check of its optimality.

    ``center`` is a point of the set.
    """
    n, cost = direction.size, direction / float(np.abs(direction).max())
    scaled = row_scaled(cones._replace(A=cones.A * scale, b=cones.b - cones.A[:, :n] @ center))
    q = np.concatenate([cost, np.zeros(scaled.A.shape[1] - n)])
    with ignore_fp_warnings():
        for v, z, _, _, _ in candidates(np.zeros(q.size), q, scaled):
            if not (np.isfinite(v).all() and np.isfinite(z).all()):
                continue
            stationarity = max(float(np.abs(q + scaled.A.T @ z).max()), distance_outside(scaled, z, dual=True))
            gap, outside = abs(float(q @ v + scaled.b @ z)), distance_outside(scaled, scaled.b - scaled.A @ v)
            if max(stationarity, gap, outside) <= 1e-8:
                return center + scale * v[:n]
    return None
