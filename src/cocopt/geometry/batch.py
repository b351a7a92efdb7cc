"""The first methods of the ladder, which take all trials at once: the compiled kernels, and DAQP for many rows."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, all_finite
from cocopt.geometry.problem import Request
from cocopt.kernels import contiguous
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.simplex import Simplex

__all__ = ["MAX_DENSE_DIM", "Batch", "joined", "kernel_rows", "solve_batch"]

MAX_KERNEL_ROWS = 4000  # up to here DAQP is no faster, but where about n rows bind and n is about 30 (by a quarter)
MAX_DENSE_DIM = 2000  # in more dimensions the solvers' dense n × n matrices are too large; other methods take over
SIMD_MAX_SIZE = 100  # product of rows and dimension up to which eight trials at once are faster than one by one
MIN_SIMD_TRIALS = 6  # from so many trials on they are

_UNBOUNDED_SUM = np.array([np.inf])
_NO_EQUALITIES = np.array(0)  # an array, since turning a number into one costs as much as a projection

MAX_KEPT_SIZE = 10_000  # entries of the rows of a polyhedron that may be kept alive from one call to the next
_last_contiguous: Polyhedral | None = None

Batch = tuple[Array, Array, Any, str]  # points, multipliers of the rows, statuses, method


def solve_batch(request: Request) -> Batch | None:
    """The answer for all trials if the rows are affine and few; None if another method is needed."""
    K, constraint, point, max_multiplier, max_multiplier_sum, *_ = request
    affine = constraint.affine()
    if affine is None:
        return None
    A, b = affine
    if A.shape[-2] == 1 and max_multiplier_sum is not None:  # of a single row the sum is its own multiplier
        max_multiplier, max_multiplier_sum = np.asarray(max_multiplier_sum)[..., None], None
    point = contiguous(point)
    if type(K) is Ball:
        if A.shape[-2] == 1:
            return _solve_one_row(K, None, A, b, point, max_multiplier)
        return _solve_ball(K, A, b, point, max_multiplier, max_multiplier_sum)
    polyhedral = K.polyhedral()
    if polyhedral is None:
        return None
    own = polyhedral.b.size
    if A.shape[-2] == 1 and (own == 0 or type(K) is Simplex):
        return _solve_one_row(K, polyhedral, A, b, point, max_multiplier)
    if own + A.shape[-2] > kernel_rows(K):
        daqp_applies = max_multiplier is None and max_multiplier_sum is None and K.dim <= MAX_DENSE_DIM
        return _solve_daqp(*joined(polyhedral, A, b), own, point) if daqp_applies else None
    if own == 0:
        found = _solve_box(polyhedral, A, b, point, max_multiplier, max_multiplier_sum)
        if found is not None:
            return found
    if max_multiplier_sum is None:
        return _solve_polyhedron(polyhedral, A, b, point, max_multiplier)
    return _solve_polyhedron_sum(polyhedral, A, b, point, max_multiplier_sum)


def _solve_one_row(
    K: ConvexSet, polyhedral: Polyhedral | None, A: Array, b: Array, point: Array, max_multiplier: Array | None
) -> Batch:
    """A single row over a ball, a simplex, or bounds alone."""
    bound = None if max_multiplier is None else max_multiplier[..., 0]
    row = contiguous(A)[..., 0, :], b[..., 0], np.inf if bound is None else bound
    if isinstance(K, Ball):
        x, nu, status = kernels.ball_halfspace(point, K.center, K.radius, *row)
    elif isinstance(K, Simplex):
        x, nu, status = kernels.simplex_halfspace(point, K.total, *row)
    else:
        assert polyhedral is not None
        shape = _simd_shape(A, point)
        if shape is not None:
            return _solve_box_simd(polyhedral, A, b, point, bound, shape)
        x, nu, status = kernels.box_halfspace(point, polyhedral.lower, polyhedral.upper, *row)
    return x, nu[..., None], status, "kernel"


def _solve_ball(
    K: Ball, A: Array, b: Array, point: Array, max_multiplier: Array | None, max_multiplier_sum: Array | None
) -> Batch | None:
    """Several rows over a ball; None if there are too many."""
    M = A.shape[-2]
    if kernel_rows(K) < M:
        return None
    rows, memory = (contiguous(A), contiguous(b)), kernels.workspace_memory(M, K.dim)
    if max_multiplier_sum is None:
        bounds = _row_bounds(max_multiplier, M)
        return *kernels.ball_rows(point, K.center, K.radius, *rows, bounds, *memory), "kernel"
    return *kernels.ball_rows_sum(
        point, K.center, K.radius, *rows, max_multiplier_sum, _unbounded(M), *memory
    ), "kernel"


def _solve_box(
    box: Polyhedral, A: Array, b: Array, point: Array, max_multiplier: Array | None, max_multiplier_sum: Array | None
) -> Batch | None:
    """Several rows over bounds alone; None if the multipliers' sum is bounded and there are not many trials."""
    M, n = A.shape[-2:]
    shape = _simd_shape(A, point) if max_multiplier is None else None
    if shape is not None:
        return _solve_box_simd(box, A, b, point, max_multiplier_sum, shape)
    if max_multiplier_sum is not None:
        return None
    bounds, memory = _row_bounds(max_multiplier, M), kernels.workspace_memory(M, n)
    rows = contiguous(A), contiguous(b)
    return *kernels.box_rows(point, box.lower, box.upper, *rows, bounds, _NO_EQUALITIES, *memory), "kernel"


def _solve_polyhedron(polyhedral: Polyhedral, A: Array, b: Array, point: Array, max_multiplier: Array | None) -> Batch:
    """Several rows over a polyhedron, their multipliers bounded one by one."""
    M, n = A.shape[-2:]
    own, equalities = _contiguous_parts(polyhedral), _as_array(polyhedral.equalities)
    rows, memory = (contiguous(A), contiguous(b)), kernels.workspace_memory(polyhedral.b.size + M, n)
    bounds = _row_bounds(max_multiplier, M)
    return *kernels.polyhedron_rows(point, *own, equalities, *rows, bounds, *memory), "kernel"


def _contiguous_parts(polyhedral: Polyhedral) -> tuple[Array, Array, Array, Array]:
    """Bounds, rows and right-hand sides with contiguous memory.

    What was contiguous in the last call need not be asked again, which would take a twentieth of a small projection: a
    set hands out the same tuple in every round.
    """
    global _last_contiguous
    lower, upper, A, b, _ = polyhedral
    if polyhedral is _last_contiguous:
        return lower, upper, A, b
    parts = contiguous(lower), contiguous(upper), contiguous(A), contiguous(b)
    if A.size <= MAX_KEPT_SIZE and parts[0] is lower and parts[1] is upper and parts[2] is A and parts[3] is b:
        _last_contiguous = polyhedral
    return parts


def _solve_polyhedron_sum(polyhedral: Polyhedral, A: Array, b: Array, point: Array, max_multiplier_sum: Array) -> Batch:
    """Several rows over a polyhedron, the sum of their multipliers bounded."""
    own = polyhedral.b.size
    lower, upper, A, b, equalities = joined(polyhedral, A, b)
    M, n = A.shape[-2:]
    bounds, memory = (max_multiplier_sum, _unbounded(M)), kernels.workspace_memory(M, n)
    rows = contiguous(A), contiguous(b)
    x, nu, status = kernels.box_rows_sum(point, lower, upper, *rows, *bounds, own, equalities, *memory)
    return x, nu[..., own:], status, "kernel"


def _simd_shape(A: Array, point: Array) -> tuple[int, ...] | None:
    """The trials' shape if eight at once are the faster way; None if there are only a few, or large ones."""
    M, n = A.shape[-2:]
    if M * n > SIMD_MAX_SIZE or (point.ndim == 1 and A.ndim == 2):
        return None
    shape = point.shape[:-1]
    if shape != A.shape[:-2]:
        shape = np.broadcast_shapes(shape, A.shape[:-2])
    return shape if prod(shape) >= MIN_SIMD_TRIALS else None


def _solve_box_simd(
    box: Polyhedral, A: Array, b: Array, point: Array, max_multiplier_sum: Array | None, shape: tuple[int, ...]
) -> Batch:
    """Rows over bounds alone, eight trials at a time."""
    M, n = A.shape[-2:]
    bound = _UNBOUNDED_SUM if max_multiplier_sum is None else _one_axis(max_multiplier_sum[..., None], shape, 1)[:, 0]
    targets = _one_axis(point if point.shape[:-1] == shape else np.broadcast_to(point, (*shape, n)), shape, 1)
    rows, rhs = _one_axis(A, shape, 2), _one_axis(b, shape, 1)
    memory = kernels.lane_memory(M, n)
    if M == 1:
        x, nu, status = kernels.box_halfspace_simd(targets, box.lower, box.upper, rows[:, 0], rhs[:, 0], bound, memory)
    else:
        memories = *kernels.workspace_memory(M, n), memory
        x, nu, status = kernels.box_rows_simd(targets, box.lower, box.upper, rows, rhs, bound, _unbounded(M), *memories)
    return x.reshape(*shape, n), nu.reshape(*shape, M), status.reshape(shape), "kernel"


def _one_axis(array: Array, shape: tuple[int, ...], axes: int) -> Array:
    """With one axis before the last ``axes``: the trials, or 1 if all have the same."""
    own, rest = array.shape[:-axes], array.shape[-axes:]
    if own != shape and prod(own) > 1:
        array = np.broadcast_to(array, shape + rest)
    return contiguous(array.reshape(-1, *rest))


def kernel_rows(K: ConvexSet) -> int:
    """Up to how many rows, K's own included, the kernels are used."""
    return max(MAX_KERNEL_ROWS, K.dim // 2)


def joined(polyhedral: Polyhedral, A: Array, b: Array) -> tuple[Array, Array, Array, Array, int]:
    """K's own rows before those of the constraint."""
    lower, upper, own, rhs, equalities = polyhedral
    if own.shape[0]:
        A = np.concatenate([np.broadcast_to(own, (*A.shape[:-2], *own.shape)), A], axis=-2)
        b = np.concatenate([np.broadcast_to(rhs, (*b.shape[:-1], rhs.size)), b], axis=-1)
    return lower, upper, A, b, equalities


def _row_bounds(max_multiplier: Array | None, M: int) -> Array:
    """The upper bounds of the multipliers of all rows."""
    if max_multiplier is None:
        return _unbounded(M)
    return contiguous(np.broadcast_to(max_multiplier, (*max_multiplier.shape[:-1], M)))


@cache
def _as_array(count: int) -> Any:
    return np.array(count)


@cache
def _unbounded(M: int) -> Array:
    return np.full(M, np.inf)


def _solve_daqp(
    lower: Array, upper: Array, A: Array, b: Array, equalities: Any, own: int, point: Array
) -> Batch | None:
    """All trials by DAQP; None if the data are not finite."""
    from cocopt.solvers import daqp

    M, n = A.shape[-2:]
    shape = np.broadcast_shapes(A.shape[:-2], point.shape[:-1])
    rows = np.broadcast_to(A, (*shape, M, n)).reshape(-1, M, n)
    rhs = np.broadcast_to(b, (*shape, M)).reshape(-1, M)
    targets = np.broadcast_to(point, (*shape, n)).reshape(-1, n)
    if not (all_finite(rows) and all_finite(targets)) or (np.isnan(rhs) | (rhs == -np.inf)).any():
        return None
    x, nu, status = daqp.project(lower, upper, rows, rhs, int(equalities), targets)
    return x.reshape(*shape, n), nu[:, own:].reshape(*shape, M - own), status.reshape(shape), "daqp"
