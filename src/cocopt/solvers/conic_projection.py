"""Projection onto a set in conic form, by Clarabel and Newton's method; the optimality conditions are checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.solvers.cone_program import Candidate, candidates
from cocopt.solvers.far_targets import MAX_STEPS, is_far, is_unchanged, nearer_target
from cocopt.solvers.layout import layout
from cocopt.solvers.scaling import row_scaled
from cocopt.tolerances import FEASIBILITY, OPTIMALITY, POSITION

__all__ = ["deepest_point", "minimise_over_cones", "project_onto_cones", "relax"]

FIRST, CLOSE = 1e4, 10.0  # distances, in sizes, of the targets that take the place of one that is farther away
LINEAR = 1e-8  # residuals and gap of a linear program over cones, which have no curvature to bound the position
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

    x, found = start, None
    for distance in (FIRST, CLOSE):
        for _ in range(MAX_STEPS):
            previous = x
            found = solve(nearer_target(point, previous, size(previous), distance)[0], previous)
            if found is None:  # the set may be too small to be seen from there
                break
            x = found
            if not is_far(point, x, distance / 100.0 * size(x)) or is_unchanged(x, previous, size(x), UNCHANGED):
                break
    return found


def _project(
    cones: Cones, target: Array, unit: float, size: Callable[[Array], float], violation: Callable[[Array], float]
) -> Array | None:
    """The projection of a target about ``unit`` away, in numbers of order 1."""
    n = target.size
    scaled = row_scaled(cones, target, unit)
    P = np.concatenate([np.ones(n), np.zeros(scaled.matrix.width - n)])
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
    v, step, n = candidate.x, candidate.step, int(P.sum())
    stationarity, dual_outside, gap, _ = _residuals(P, np.zeros_like(P), scaled, v, candidate.z)
    stationarity, length = max(stationarity, dual_outside), max(1.0, float(np.abs(v[:n]).max()))
    if max(stationarity, gap / length) > OPTIMALITY * length:
        return np.inf
    return min(step, stationarity + float(np.sqrt(2.0 * gap)))


def _residuals(P: Array, q: Array, scaled: Cones, v: Array, z: Array) -> tuple[float, float, float, float]:
    """Of stationarity, of the dual cones, of complementarity and of the cones."""
    (values, columns, starts, _), (kinds, ends, _, _) = scaled.matrix, layout(scaled.cones)
    residuals = np.empty(4)
    kernels.cone_residuals(P, q, values, columns, starts, scaled.b, kinds, ends, v, z, np.empty_like(v), residuals)
    stationarity, dual_outside, gap, outside = residuals.tolist()
    return stationarity, dual_outside, abs(gap), outside


def deepest_point(cones: Cones, dim: int, scale: float) -> tuple[Array, float] | None:
    """(c, r) with the largest r for which the ball around c of radius r satisfies the cones.

    r is negative if no point satisfies them, and between −scale and scale; equations hold at c alone. (A lower bound if
    there are auxiliary variables.) None if the equations have no solution.
    """
    scaled = row_scaled(cones, np.zeros(dim), scale)
    column, width = _change_within(scaled, dim), scaled.matrix.width
    A = np.block([[scaled.A, column[:, None]], [np.zeros((2, width)), np.array([[1.0], [-1.0]])]])
    b = np.concatenate([scaled.b, [1.0, 1.0]])
    lifted = Cones(A, b, np.zeros((b.size, 0)), (*scaled.cones, ("nonneg", 2)), cones.aux + 1)
    cost = np.append(np.zeros(width), -1.0)
    with ignore_fp_warnings():
        for candidate in candidates(np.zeros(width + 1), cost, lifted):
            v = candidate.x
            if np.isfinite(v).all() and _residuals(np.zeros_like(cost), cost, lifted, v, candidate.z)[3] <= FEASIBILITY:
                return scale * v[:dim], scale * float(v[-1])
    return None


def relax(cones: Cones, dim: int, length: float) -> Cones:
    """The cones, satisfied by all points as near as ``length`` to one that satisfies them; equations stay the same."""
    return cones.replace(b=cones.b + length * _change_within(cones, dim)) if length > 0.0 else cones


def _change_within(cones: Cones, dim: int) -> Array:
    """By how much the slack of each inequality, or the first entry of each cone, must grow to allow x to move by 1."""
    A, column, at = cones.A[:, :dim], np.zeros(len(cones.b)), 0
    for kind, count in cones.cones:
        rows = A[at : at + count]
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
    scaled = row_scaled(cones, center, scale)
    q = np.concatenate([cost, np.zeros(scaled.matrix.width - n)])
    with ignore_fp_warnings():
        for v, z, _, _, _ in candidates(np.zeros(q.size), q, scaled):
            if np.isfinite(v).all() and np.isfinite(z).all():
                gap = abs(float(q @ v + scaled.b @ z))
                if max(gap, *_residuals(np.zeros_like(q), q, scaled, v, z)) <= LINEAR:
                    return center + scale * v[:n]
    return None
