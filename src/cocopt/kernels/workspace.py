"""The memory that an active-set method works in, as named views; one trial uses it at a time."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels._jit import inlined

__all__ = ["ACTIVE", "AT_BOUND", "INACTIVE", "Workspace", "workspace_memory", "workspace_views"]

# The state of a row by its multiplier: 0; strictly between its bounds (any, for an equality); max_multiplier.
INACTIVE, ACTIVE, AT_BOUND = 0.0, 1.0, 2.0

_VECTORS_BY_DIM = 3  # of the workspace's vectors have one entry per coordinate
_VECTORS_BY_ROW = 10  # have one entry per row
_KEPT_SIZE = 10_000  # product of rows and dimension up to which a thread keeps its workspace for the next call


class Workspace(NamedTuple):
    """Views of one workspace for up to M rows in n dimensions."""

    rows: Any  # (M, n): the rows, normalised
    z: Any  # (n): y − Aᵀν, of which x(ν) is the projection onto the bounds
    direction: Any  # (n): z changes by −α·direction in a step of length α
    free: Any  # (n): 1 where x is strictly between its bounds, 0 elsewhere, −1 where not computed yet
    factor: Any  # (M, M): L D Lᵀ of the Newton matrix of the active rows
    columns: Any  # (n, M): the transpose of ``rows``, for many rows
    rhs: Any  # (M): right-hand sides of the normalised rows
    max_multiplier: Any  # (M): upper bounds of the multipliers of the normalised rows
    norms: Any  # (M): lengths of the rows as given
    row_state: Any  # (M): INACTIVE, ACTIVE or AT_BOUND
    residual: Any  # (M): A x − rhs
    newton_step: Any  # (M): the multipliers of the active rows change by α·newton_step, in the order of ``active``
    active: Any  # (M): the active rows, as integers
    multiplier: Any  # (M): multipliers, for callers whose own array has not one entry per row
    unscaled_max_multiplier: Any  # (M): for callers that scale ``max_multiplier``
    row_index: Any  # (M): the caller's numbers of the rows, as integers


_thread = threading.local()


def workspace_memory(rows: int, dim: int) -> tuple[Array, Array]:
    """Memory for `workspace_views`: vectors by coordinate and vectors by row. A thread keeps a small one."""
    memory: tuple[Array, Array] | None = getattr(_thread, "memory", None)
    if memory is None or memory[0].shape != (rows + _VECTORS_BY_DIM, dim):
        memory = np.empty((rows + _VECTORS_BY_DIM, dim)), np.empty((rows + dim + _VECTORS_BY_ROW, rows))
        if rows * dim <= _KEPT_SIZE:
            _thread.memory = memory
    return memory


@inlined
def workspace_views(dim_memory, row_memory):
    """The named views of what `workspace_memory` returned."""
    M, n = row_memory.shape[1], dim_memory.shape[1]
    v = row_memory[M + n :]
    return Workspace(
        dim_memory[:M], dim_memory[M], dim_memory[M + 1], dim_memory[M + 2],
        row_memory[:M], row_memory[M : M + n],
        v[0], v[1], v[2], v[3], v[4], v[5], v[6].view(np.int64), v[7], v[8], v[9].view(np.int64),
    )  # fmt: skip
