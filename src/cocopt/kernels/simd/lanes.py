"""The workspace of the SIMD kernels: eight lanes, each the place of one trial.

Every quantity is a table of vectors, one number per lane, so that one `load` of `cocopt.kernels.simd.vector` reads it
for all of them. Flags and indices are stored as numbers.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels._jit import in_order
from cocopt.kernels.simd.vector import WIDTH, table
from cocopt.tolerances import NEVER_BINDS

__all__ = [
    "SLOTS",
    "Lanes",
    "clear_slot",
    "free_all_lanes",
    "free_lane",
    "lane_memory",
    "lanes",
    "load_trivial_problem",
]

SLOTS = 6  # rows that can be active at once
KEPT_SIZE = 10_000  # rows times dimensions up to which the memory is kept for the next call

_kept = threading.local()


class Lanes(NamedTuple):
    """The memory of eight lanes as named tables of vectors, for problems with M rows in n dimensions."""

    size: Any  # M
    dim: Any  # n
    # the problem of each lane
    rows: Any  # (M, n): the rows, of length 1
    rhs: Any  # (M)
    row_scale: Any  # (M): what a row was multiplied by to have length 1; set and used by the kernels that need it
    row_index: Any  # (M): the number that a row has among those of the caller; likewise
    row_count: Any  # (): how many rows are in use; likewise
    max_multiplier: Any  # (): the bound of the multiplier; likewise
    target: Any  # (n): the point y that is projected
    target_norm: Any  # ()
    # whose it is, and how long it has taken
    trial: Any  # (): the number of the trial, −1 where the lane is free
    iterations: Any  # (): of the active-set method
    attempts: Any  # (): how often its result was searched for violated rows of the caller
    # the active set: the rows that bind, each in a slot; an empty slot has the index −1, the multiplier 0, a row of 0
    active_rows: Any  # (SLOTS, n)
    active_rhs: Any  # (SLOTS)
    active_index: Any  # (SLOTS): which of the M rows it is
    active_residual: Any  # (SLOTS): ⟨row, x⟩ − rhs
    nu: Any  # (SLOTS): the multipliers ν
    # the point that answers ν
    z: Any  # (n): y − Σ ν_i row_i over the active rows
    x: Any  # (n): clip(z)
    free: Any  # (n): 1 where x = z
    x_norm: Any  # ()
    residual: Any  # (M): ⟨row, x⟩ − rhs
    noise: Any  # (): a residual below this counts as rounding
    done: Any  # (): 1 where x is the projection
    entering: Any  # (): which of the M rows is to become active, −1 for none
    # one step of Newton's method
    factor: Any  # (SLOTS, SLOTS): L below the diagonal and D on it, where L D Lᵀ is the matrix of the step
    nu_step: Any  # (SLOTS): the direction d of ν
    z_step: Any  # (n): z changes by −α·z_step in a step of length α
    leaving: Any  # (): 1 where a row ceases to be active


def _lay_out(memory, M, n):
    """The tables one behind the other, and the number of lines that they take."""
    end = 0
    rows, end = table(memory, end, n), end + M * n
    rhs, end = table(memory, end, 1), end + M
    row_scale, end = table(memory, end, 1), end + M
    row_index, end = table(memory, end, 1), end + M
    row_count, end = table(memory, end, 1), end + 1
    max_multiplier, end = table(memory, end, 1), end + 1
    target, end = table(memory, end, 1), end + n
    target_norm, end = table(memory, end, 1), end + 1
    trial, end = table(memory, end, 1), end + 1
    iterations, end = table(memory, end, 1), end + 1
    attempts, end = table(memory, end, 1), end + 1
    active_rows, end = table(memory, end, n), end + SLOTS * n
    active_rhs, end = table(memory, end, 1), end + SLOTS
    active_index, end = table(memory, end, 1), end + SLOTS
    active_residual, end = table(memory, end, 1), end + SLOTS
    nu, end = table(memory, end, 1), end + SLOTS
    z, end = table(memory, end, 1), end + n
    x, end = table(memory, end, 1), end + n
    free, end = table(memory, end, 1), end + n
    x_norm, end = table(memory, end, 1), end + 1
    residual, end = table(memory, end, 1), end + M
    noise, end = table(memory, end, 1), end + 1
    done, end = table(memory, end, 1), end + 1
    entering, end = table(memory, end, 1), end + 1
    factor, end = table(memory, end, SLOTS), end + SLOTS * SLOTS
    nu_step, end = table(memory, end, 1), end + SLOTS
    z_step, end = table(memory, end, 1), end + n
    leaving, end = table(memory, end, 1), end + 1
    tables = Lanes(
        M, n,
        rows, rhs, row_scale, row_index, row_count, max_multiplier, target, target_norm,
        trial, iterations, attempts,
        active_rows, active_rhs, active_index, active_residual, nu,
        z, x, free, x_norm, residual, noise, done, entering,
        factor, nu_step, z_step, leaving,
    )  # fmt: skip
    return tables, end


_compiled_layout = in_order(_lay_out)


@in_order
def lanes(memory, M, n):
    """The workspace in memory from `lane_memory`, for M rows in n dimensions."""
    return _compiled_layout(memory, M, n)[0]


@cache
def _lines(rows: int, dim: int) -> int:
    """How many lines of WIDTH numbers the workspace takes."""
    lines: int = _lay_out(None, rows, dim)[1]
    return lines


def lane_memory(rows: int, dim: int) -> Array:
    """Memory for one call, whatever it holds; a small one is kept for the thread."""
    memory: Array | None = getattr(_kept, "memory", None)
    lines = _lines(rows, dim)
    if memory is None or memory.shape[0] != lines:
        memory = np.empty((lines, WIDTH))
        if rows * dim <= KEPT_SIZE:
            _kept.memory = memory
    return memory


@in_order
def clear_slot(w, slot, lane):
    """Makes a slot of the active set empty."""
    w.active_index[slot, lane], w.nu[slot, lane], w.active_rhs[slot, lane] = -1.0, 0.0, 0.0
    for j in range(w.dim):
        w.active_rows[slot, j, lane] = 0.0


@in_order
def load_trivial_problem(w, lane):
    """Gives a lane a problem that is solved already, so that its numbers stay finite."""
    w.target_norm[lane] = 0.0
    for j in range(w.dim):
        w.target[j, lane] = 0.0
    for i in range(w.size):
        w.rhs[i, lane] = NEVER_BINDS
        for j in range(w.dim):
            w.rows[i, j, lane] = 0.0


@in_order
def free_lane(w, lane):
    """Makes a lane free for another trial; until then its last problem is iterated on, and the result not used."""
    w.trial[lane], w.iterations[lane], w.attempts[lane] = -1.0, 0.0, 0.0
    for slot in range(SLOTS):
        if w.active_index[slot, lane] >= 0.0:
            clear_slot(w, slot, lane)


@in_order
def free_all_lanes(w):
    """The state in which the iteration begins."""
    for lane in range(WIDTH):
        for slot in range(SLOTS):
            clear_slot(w, slot, lane)
        load_trivial_problem(w, lane)
        free_lane(w, lane)
        w.row_count[lane] = 0.0
