"""The first methods of the ladder, which take all trials at once: the compiled kernels, and DAQP for many rows."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, all_finite
from cocopt.constraints import Constraint
from cocopt.kernels import core
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.box import Box
from cocopt.sets.simplex import Simplex

__all__ = ["DENSE", "Batch", "joined", "kernel_rows", "solve_batch"]

KERNEL_ROWS = 128  # more rows go to DAQP; with fewer it is the faster one only if nearly all bind (`make bench`)
ALONE = 1000  # rows, where there is no DAQP: an interior-point method takes ten to a thousand times as long
DENSE = 2000  # in more dimensions the solvers' dense n × n matrices are too large, and methods without them take over
IN_STEP = 100  # up to this product of rows and dimensions eight trials in step are faster than one after another
A_FEW = 6  # trials, from which on they are

_NO_PRICE = np.array([np.inf])
_NO_EQUALITIES = np.array(0)  # an array, since turning a number into one costs as much as a projection

Batch = tuple[Array, Array, Any, str]  # points, multipliers of the rows, statuses, method


def solve_batch(
    K: ConvexSet, constraint: Constraint, point: Array, cap: Array | None, total: Array | None = None
) -> Batch | None:
    """The hinge prox of all trials, with a cap for each row or one for their sum; None if another method is needed.

    Without caps it is the projection. A single row has a cap of its own.
    """
    affine = constraint.affine()
    if affine is None:
        return None
    A, b = affine
    M = A.shape[-2]
    point = core(point)
    if M == 1:
        row, right = core(A)[..., 0, :], b[..., 0]
        single = np.inf if cap is None else cap[..., 0]
        if type(K) is Box:
            found = _in_step(K, A, b, point, None if cap is None else cap[..., 0])
            if found is not None:
                return found
            x, nu, status = kernels.box_halfspace(point, K.lower, K.upper, row, right, single)
            return x, nu[..., None], status, "kernel"
        if type(K) is Ball:
            x, nu, status = kernels.ball_halfspace(point, K.center, K.radius, row, right, single)
            return x, nu[..., None], status, "kernel"
        if type(K) is Simplex:
            x, nu, status = kernels.simplex_halfspace(point, K.total, row, right, single)
            return x, nu[..., None], status, "kernel"
    if type(K) is Ball:
        if kernel_rows(K) < M:
            return None
        caps, memory = _caps(cap, M), kernels.workspace_memory(M, K.dim)
        if total is not None:
            return *kernels.ball_rows_sum(point, K.center, K.radius, core(A), core(b), total, caps, *memory), "kernel"
        return *kernels.ball_rows(point, K.center, K.radius, core(A), core(b), caps, *memory), "kernel"
    if type(K) is Box and cap is None:
        found = _in_step(K, A, b, point, total)
        if found is not None:
            return found
    if type(K) is Box and M <= KERNEL_ROWS and total is None:
        caps, memory = _caps(cap, M), kernels.workspace_memory(M, K.dim)
        return *kernels.box_rows(point, K.lower, K.upper, core(A), core(b), caps, _NO_EQUALITIES, *memory), "kernel"
    polyhedral = K.polyhedral()
    if polyhedral is None:
        return None
    own = polyhedral.b.size
    projects = cap is None and total is None
    if own + M > kernel_rows(K, projects):
        return _by_daqp(*joined(polyhedral, A, b), own, point) if projects and K.dim <= DENSE else None
    memory = kernels.workspace_memory(own + M, K.dim)
    if total is None:
        where = tuple(map(core, polyhedral[:4]))
        caps = _caps(cap, M)
        return *kernels.polyhedron_rows(point, *where, polyhedral.equalities, core(A), core(b), caps, *memory), "kernel"
    lower, upper, A, b, equalities = joined(polyhedral, A, b)
    caps = _uncapped(own + M)
    x, nu, status = kernels.box_rows_sum(point, lower, upper, core(A), core(b), total, caps, own, equalities, *memory)
    return x, nu[..., own:], status, "kernel"


def _in_step(K: Box, A: Array, b: Array, point: Array, total: Array | None) -> Batch | None:
    """The hinge prox of many trials, eight at a time; None if there are only a few, or large ones."""
    M, n = A.shape[-2:]
    if M * n > IN_STEP or (point.ndim == 1 and A.ndim == 2):
        return None
    shape = point.shape[:-1]
    if shape != A.shape[:-2]:
        shape = np.broadcast_shapes(shape, A.shape[:-2])
    if prod(shape) < A_FEW:
        return None
    price = _NO_PRICE if total is None else _flat(total[..., None], shape, 1)[:, 0]
    targets = _flat(point if point.shape[:-1] == shape else np.broadcast_to(point, (*shape, n)), shape, 1)
    rows, right = _flat(A, shape, 2), _flat(b, shape, 1)
    memory = kernels.lane_memory(M, n)
    if M == 1:
        x, nu, status = kernels.box_halfspace_simd(targets, K.lower, K.upper, rows[:, 0], right[:, 0], price, memory)
    else:
        memories = *kernels.workspace_memory(M, n), memory
        x, nu, status = kernels.box_rows_simd(targets, K.lower, K.upper, rows, right, price, _uncapped(M), *memories)
    return x.reshape(*shape, n), nu.reshape(*shape, M), status.reshape(shape), "kernel"


def _flat(array: Array, shape: tuple[int, ...], axes: int) -> Array:
    """With one leading axis: the trials, or 1 if all have the same."""
    own, rest = array.shape[:-axes], array.shape[-axes:]
    if own != shape and prod(own) > 1:
        array = np.broadcast_to(array, shape + rest)
    return core(array.reshape(-1, *rest))


def kernel_rows(K: ConvexSet, projects: bool = True) -> int:
    """Up to how many rows, K's own included, the kernels are used, for projections or with caps."""
    return max(KERNEL_ROWS if projects and type(K) is not Ball and K.dim <= DENSE else ALONE, K.dim // 2)


def joined(polyhedral: Polyhedral, A: Array, b: Array) -> tuple[Array, Array, Array, Array, int]:
    """K's own rows before those of the constraint."""
    lower, upper, own, right, equalities = polyhedral
    if own.shape[0]:
        A = np.concatenate([np.broadcast_to(own, (*A.shape[:-2], *own.shape)), A], axis=-2)
        b = np.concatenate([np.broadcast_to(right, (*b.shape[:-1], right.size)), b], axis=-1)
    return lower, upper, A, b, equalities


def _caps(cap: Array | None, M: int) -> Array:
    """The caps of all rows."""
    return _uncapped(M) if cap is None else core(np.broadcast_to(cap, (*cap.shape[:-1], M)))


@cache
def _uncapped(M: int) -> Array:
    return np.full(M, np.inf)


def _by_daqp(lower: Array, upper: Array, A: Array, b: Array, equalities: Any, own: int, point: Array) -> Batch | None:
    """All trials by DAQP; None if the data are not finite."""
    from cocopt.solvers import daqp

    M, n = A.shape[-2:]
    shape = np.broadcast_shapes(A.shape[:-2], point.shape[:-1])
    rows = np.broadcast_to(A, (*shape, M, n)).reshape(-1, M, n)
    right = np.broadcast_to(b, (*shape, M)).reshape(-1, M)
    targets = np.broadcast_to(point, (*shape, n)).reshape(-1, n)
    if not (all_finite(rows) and all_finite(targets)) or (np.isnan(right) | (right == -np.inf)).any():
        return None
    x, nu, status = daqp.project(lower, upper, rows, right, int(equalities), targets)
    return x.reshape(*shape, n), nu[:, own:].reshape(*shape, M - own), status.reshape(shape), "daqp"
