"""Projection onto a polyhedron given by bounds and rows: the compiled kernel, then DAQP for the trials it left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cocopt.arrays import Array
from cocopt.errors import SolverFailure
from cocopt.kernels.status import CONVERGED
from cocopt.solvers import daqp

if TYPE_CHECKING:
    from cocopt.sets.base import Polyhedral

__all__ = ["kernel", "project_polyhedral"]


def kernel(
    lower: Array, upper: Array, A: Array, b: Array, cap: Array, equalities: int, point: Array
) -> tuple[Array, Array, Array]:
    """(points, multipliers, statuses) of `cocopt.kernels.rows.box_rows`, for arrays of any memory layout."""
    from cocopt.kernels.rows import box_rows
    from cocopt.kernels.workspace import workspace_memory

    contiguous = np.ascontiguousarray
    memory = workspace_memory(*A.shape[-2:])
    x, nu, status = box_rows(
        contiguous(point), lower, upper, contiguous(A), contiguous(b), contiguous(cap), equalities, *memory
    )
    return x, nu, status


def project_polyhedral(poly: Polyhedral, point: Array) -> Array:
    """P(point) onto a non-empty polyhedron, for points (..., n)."""
    lower, upper, A, b, equalities = poly
    if A.shape[0] == 0:
        return np.minimum(np.maximum(point, lower), upper)
    cap = np.full(A.shape[0], np.inf)
    x, _, status = kernel(lower, upper, A, b, cap, equalities, point)
    if not status.any():
        return x
    left = status != CONVERGED
    rows, right = (np.broadcast_to(array, (int(left.sum()), *array.shape)) for array in (A, b))
    x[left], _, settled = daqp.project(lower, upper, rows, right, equalities, point[left])
    if settled.any():
        raise SolverFailure(
            "the projection onto the polyhedron failed its optimality check; its data may be badly scaled"
        )
    return x
