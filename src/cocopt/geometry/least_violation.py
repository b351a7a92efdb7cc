"""The least violation of a constraint over K, which decides whether K ∩ {g ≤ 0} is empty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.constraints import Constraint, Stack
from cocopt.geometry.conic import stacked_cones
from cocopt.geometry.derived import CuttingPlanes, SetDistance
from cocopt.geometry.problem import Request
from cocopt.geometry.scaled import row_scaled, size_of
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.solvers.cone_program import candidates

__all__ = ["LeastViolation", "least_violation"]

MAX_BOXES = 8  # boxes around a set that is known by its projection alone, each larger than the last
BOX_GROWTH = 100.0


class LeastViolation(NamedTuple):
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, and such an x."""

    value: float
    point: Array


def least_violation(request: Request, unit: Array) -> LeastViolation | None:
    """The least violation of one trial's rows, in these units; None if it was not found.

    By a linear program if K and the constraint are polyhedral, by a cone program if they have a conic form, and by
    cutting planes otherwise.
    """
    K, constraint, point, *_ = request
    polyhedral, affine, sparse = K.polyhedral(), constraint.affine(), constraint.sparse_rows()
    if polyhedral is not None and (affine is not None or sparse is not None):
        from cocopt.solvers import highs

        A, b = affine if sparse is None else (sparse.matrix(), sparse.b)  # type: ignore[misc]  # one of them is there
        return LeastViolation(*highs.least_violation(polyhedral, A, b, unit))
    if K.conic and constraint.conic:
        return _by_cones(K, constraint, unit, point)
    if K.conic:
        return _by_cuts(request, K, unit)
    return _by_cuts_in_boxes(request, unit)


def _by_cones(K: ConvexSet, constraint: Constraint, unit: Array, point: Array) -> LeastViolation | None:
    """By a cone program in x and t; rows with unit 0 are not relaxed. None if there is no conic form."""
    n, start = K.dim, K.project_unchecked(point)
    cones = stacked_cones(K, constraint, start)
    if cones is None:
        return None
    relaxed = unit > 0

    def violation(x: Array) -> float:
        return float(np.max(constraint.rows_unchecked(x)[relaxed] / unit[relaxed]))

    length = size_of(K, start)
    step = max(abs(violation(start)), 1e-300)
    b = cones.b - cones.A[:, :n] @ start
    cones = row_scaled(cones._replace(A=cones.A * length, b=b))
    lifted = cones._replace(A=np.hstack([cones.A, -(cones.E @ unit[:, None]) * step]))
    size = lifted.A.shape[1]
    v = next(candidates(np.zeros(size), np.append(np.zeros(size - 1), 1.0), lifted)).x
    x = K.project_unchecked(start + length * v[:n]) if np.isfinite(v).all() else start
    return LeastViolation(violation(x), x)


def _by_cuts_in_boxes(request: Request, unit: Array) -> LeastViolation | None:
    """For a set that is known by its projection alone: it is cut out of a box by its supporting halfspaces.

    The box grows for as long as the result touches it.
    """
    K, constraint, point, *_ = request
    center = K.project_unchecked(point)
    radius = min(K.diameter, 10.0 * max(float(np.abs(center).max()), float(np.abs(center - point).max()), 1e-300))
    whole = request._replace(constraint=Stack([constraint, SetDistance(K)]), point=center)
    for _ in range(MAX_BOXES):
        found = _by_cuts(whole, Box(center - radius, center + radius), np.append(unit, 0.0))
        if found is None or radius >= K.diameter or np.abs(found.point - center).max() < 0.99 * radius:
            return found
        radius *= BOX_GROWTH
    return None


def _by_cuts(request: Request, outer: ConvexSet, unit: Array) -> LeastViolation | None:
    """Kelley's method for min of max_i g_i/unit_i over the outer set; rows with unit 0 hold K and are not relaxed."""
    K, constraint = request.K, request.constraint
    relaxed = unit > 0
    model = CuttingPlanes(constraint, K.dim)
    x = outer.project_unchecked(request.point)
    best = LeastViolation(np.inf, K.project_unchecked(x))
    for _ in range(request.cuts):
        rows, inside = constraint.rows(x), K.project_unchecked(x)
        value = float((constraint.rows(inside)[relaxed] / unit[relaxed]).max())
        if value < best.value:
            best = LeastViolation(value, inside)
        model.add(x, rows, constraint.jacobian(x), relaxed | (rows > 0))
        lower = _by_cones(outer, model, unit, outer.project_unchecked(best.point))
        if lower is None:
            return None
        if best.value - lower.value <= request.tol * max(1.0, abs(best.value)):
            break
        x = lower.point
    return best
