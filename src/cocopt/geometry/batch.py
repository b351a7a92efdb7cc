"""The first rungs of the ladder, which take all trials at once: the compiled kernels, and DAQP for many rows."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np

from cocopt import kernels
from cocopt._arrays import Array
from cocopt._terms import finite
from cocopt.constraints import Constraint
from cocopt.kernels import core
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.box import Box
from cocopt.sets.simplex import Simplex

__all__ = ["DENSE", "Batch", "joined", "kernel_rows", "solve_batch"]

KERNEL_ROWS = 128  # with more rows DAQP is faster than the kernel (measured: `make bench`)
DENSE = 2000  # in more dimensions the solvers' dense n × n matrices are too large, and rungs without them take over

_NONE = np.array(0)  # an array, since turning a number into one costs as much as a projection

Batch = tuple[Array, Array, Any, str]  # points, multipliers of the rows, statuses, rung


def solve_batch(
    K: ConvexSet, constraint: Constraint, point: Array, cap: Array | None, total: Array | None = None
) -> Batch | None:
    """The hinge prox of all trials, with a cap for each row or one for their sum; None if another rung is needed.

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
            x, nu, status = kernels.box_halfspace(point, K.lower, K.upper, row, right, single)
            return x, nu[..., None], status, "kernel"
        if type(K) is Ball:
            x, nu, status = kernels.ball_halfspace(point, K.center, K.radius, row, right, single)
            return x, nu[..., None], status, "kernel"
        if type(K) is Simplex:
            x, nu, status = kernels.simplex_halfspace(point, K.total, row, right, single)
            return x, nu[..., None], status, "kernel"
    equalities: Any = _NONE
    own = 0
    if type(K) is Box:
        lower, upper = K.lower, K.upper
    elif type(K) is Ball:
        if M > KERNEL_ROWS:
            return None
        caps, memory = _caps(cap, M, 0), kernels.scratch(M, K.dim)
        if total is not None:
            return *kernels.ball_rows_sum(point, K.center, K.radius, core(A), core(b), total, caps, *memory), "kernel"
        return *kernels.ball_rows(point, K.center, K.radius, core(A), core(b), caps, *memory), "kernel"
    else:
        polyhedral = K.polyhedral()
        if polyhedral is None:
            return None
        own = polyhedral.b.size
        lower, upper, A, b, equalities = joined(polyhedral, A, b, _room((*A.shape[:-2], M + own, K.dim)))
    rows = M + own
    if rows > KERNEL_ROWS and rows > kernel_rows(K):
        if cap is not None or total is not None or K.dim > DENSE:
            return None
        return _by_daqp(lower, upper, A, b, equalities, own, point)
    caps, memory = _caps(cap, M, own), kernels.scratch(rows, K.dim)
    A, b = core(A), core(b)
    if total is None:
        x, nu, status = kernels.box_rows(point, lower, upper, A, b, caps, equalities, *memory)
    else:
        x, nu, status = kernels.box_rows_sum(point, lower, upper, A, b, total, caps, own, equalities, *memory)
    return x, nu[..., own:] if own else nu, status, "kernel"


def kernel_rows(K: ConvexSet) -> int:
    """Up to how many rows, K's own included, the kernels are used."""
    return max(KERNEL_ROWS, K.dim // 2)


_kept = threading.local()


def _room(shape: tuple[int, ...]) -> Array:
    """An array to be used at once; one that is large, but not huge, is kept for the thread, as new pages are slow."""
    room: Array | None = getattr(_kept, "room", None)
    if room is None or room.shape != shape:
        room = np.empty(shape)
        if 16_384 <= room.size <= 2_000_000:
            _kept.room = room
    return room


def joined(
    polyhedral: Polyhedral, A: Array, b: Array, room: Array | None = None
) -> tuple[Array, Array, Array, Array, int]:
    """K's own rows before those of the constraint; A goes to ``room`` if that is given."""
    lower, upper, own, right, equalities = polyhedral
    if own.shape[0]:
        A = np.concatenate([np.broadcast_to(own, (*A.shape[:-2], *own.shape)), A], axis=-2, out=room)
        b = np.concatenate([np.broadcast_to(right, (*b.shape[:-1], right.size)), b], axis=-1)
    return lower, upper, A, b, equalities


def _caps(cap: Array | None, M: int, own: int) -> Array:
    """The caps of all rows; K's own, which come first, have none."""
    if cap is None:
        return _uncapped(M + own)
    each = np.broadcast_to(cap, (*cap.shape[:-1], M))
    return core(np.concatenate([np.full((*each.shape[:-1], own), np.inf), each], axis=-1) if own else each)


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
    if not (finite(rows) and finite(targets)) or (np.isnan(right) | (right == -np.inf)).any():
        return None
    x, nu, status = daqp.project(lower, upper, rows, right, int(equalities), targets)
    return x.reshape(*shape, n), nu[:, own:].reshape(*shape, M - own), status.reshape(shape), "daqp"
