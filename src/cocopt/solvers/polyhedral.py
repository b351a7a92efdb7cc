"""Projection of many points onto a polyhedron: the compiled kernel, then `solve_qp` for the points it left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.errors import SolverFailure
from cocopt.kernels.status import CONVERGED
from cocopt.solvers.qp import solve_qp
from cocopt.tolerances import SATISFIED

if TYPE_CHECKING:
    from cocopt.sets.base import Polyhedral

__all__ = ["project_polyhedral"]


def project_polyhedral(poly: Polyhedral, point: Array) -> Array:
    """P(point) onto a non-empty polyhedron, for points (..., n)."""
    lower, upper, A, b, equalities = poly
    if A.shape[0] == 0:
        return np.minimum(np.maximum(point, lower), upper)
    rows, rhs, target = map(np.ascontiguousarray, (A, b, point))
    memory = kernels.workspace_memory(*A.shape)
    x, _, status = kernels.box_rows(target, lower, upper, rows, rhs, np.full(b.size, np.inf), equalities, *memory)
    for index in map(tuple, np.argwhere(status != CONVERGED)):
        solution = solve_qp(lower, upper, rows, rhs, equalities, point[index])
        if solution.status != CONVERGED:  # the polyhedron may be too thin for every method: relaxed within the promise
            sizes = np.abs(rhs[(rhs != 0.0) & (rhs < np.inf)])
            relaxed = rhs + SATISFIED * (float(np.median(sizes)) if sizes.size else 1.0)
            relaxed[:equalities] = rhs[:equalities]
            solution = solve_qp(lower, upper, rows, relaxed, equalities, point[index])
        if solution.status != CONVERGED:
            raise SolverFailure(
                "the projection onto the polyhedron failed its optimality check; its data may be badly scaled"
            )
        x[index] = solution.point
    projections: Array = x
    return projections
