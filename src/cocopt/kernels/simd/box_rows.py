"""Projection onto a box and a few rows for many trials, eight at a time; a lane that is done takes the next trial."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, in_order
from cocopt.kernels.level import hinge_prox_box_sum
from cocopt.kernels.rounding import rounding
from cocopt.kernels.simd.active_set import MAX_ITERATIONS, iterate, slots_in_use
from cocopt.kernels.simd.lanes import SLOTS, free_all_lanes, free_lane, lanes, load_trivial_problem
from cocopt.kernels.simd.vector import WIDTH
from cocopt.kernels.status import CONVERGED, UNCONVERGED
from cocopt.tolerances import FAR_TARGET, FEASIBILITY, NEVER_BINDS

__all__ = ["box_rows_simd"]

SMALLEST_SQUARE, LARGEST_SQUARE = 1e-300, 1e300  # of the length of a row that is normalised here


@in_order
def load_trial(w, lane, y, A, b):
    """Loads a trial into a lane; False if it is not for this method (a row of zeros, numbers that are not finite)."""
    M, n = A.shape
    square, fits = 0.0, True
    for j in range(n):
        square += y[j] * y[j]
        w.target[j, lane] = y[j]
    for i in range(M):
        length = 0.0
        for j in range(n):
            length += A[i, j] * A[i, j]
        number = length == length and b[i] == b[i]  # (NaN is kept from what would warn of it)
        length = min(max(length, SMALLEST_SQUARE), LARGEST_SQUARE) if number else 0.0
        scale = 1.0 / np.sqrt(length) if number else 0.0
        rhs = b[i] * scale if number and b[i] != np.inf else NEVER_BINDS
        fits = fits and SMALLEST_SQUARE < length < LARGEST_SQUARE and abs(rhs) <= NEVER_BINDS
        w.rhs[i, lane], w.row_scale[i, lane] = rhs, scale
        for j in range(n):
            w.rows[i, j, lane] = A[i, j] * scale
    w.target_norm[lane] = np.sqrt(square)
    return fits and square < np.inf


@in_order
def accept(w, lane, max_multiplier_sum, x, nu):
    """Writes x and ν of a lane that is done; False if the method for one trial has to find them.

    That is so if Σν exceeds its bound, or if the target is so far away that x can have more digits.
    """
    total = 0.0
    for i in range(nu.shape[0]):
        nu[i] = 0.0
    for slot in range(SLOTS):
        if w.active_index[slot, lane] >= 0.0:
            i = int(w.active_index[slot, lane])
            nu[i] = w.nu[slot, lane] * w.row_scale[i, lane]
            total += nu[i]
    for j in range(x.shape[0]):
        x[j] = w.x[j, lane]
    x_norm = w.x_norm[lane]
    near = w.target_norm[lane] <= FAR_TARGET * x_norm and w.noise[lane] <= 0.5 * FEASIBILITY * x_norm
    return total <= max_multiplier_sum and (near or total == 0.0)


@in_order
def own(values, t):
    """Trial t's part of an argument that all trials may share."""
    return values[t if values.shape[0] > 1 else 0]


@guvectorize(
    [
        "float64[:,::1], float64[::1], float64[::1], float64[:,:,::1], float64[:,::1], float64[::1], float64[::1], "
        "float64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], int64[::1]"
    ],
    "(t,n),(n),(n),(p,m,n),(p,m),(q),(m),(w,n),(u,m),(v,e)->(t,n),(t,m),(t)",
)
def box_rows_simd(
    y, lower, upper, A, b, max_multiplier_sum, max_multiplier, dim_memory, row_memory, memory, x, nu, status
):
    """As `box_rows`, or with a finite max_multiplier_sum as `box_rows_sum`, for t trials, which may share (A, b) or it.

    ``max_multiplier`` is infinite, ``dim_memory`` and ``row_memory`` come from `workspace_memory`, ``memory`` from
    `lane_memory`.
    """
    T, M = nu.shape
    w, eps, box = lanes(memory, M, y.shape[1]), rounding(y.shape[1]), (lower, upper)
    free_all_lanes(w)
    next_trial, k, busy = 0, np.int64(0), True
    while busy:
        busy = False
        for lane in range(WIDTH):
            while w.trial[lane] < 0.0 and next_trial < T:
                status[next_trial] = UNCONVERGED
                if load_trial(w, lane, y[next_trial], own(A, next_trial), own(b, next_trial)):
                    w.trial[lane] = next_trial
                else:
                    load_trivial_problem(w, lane)
                next_trial += 1
            busy = busy or w.trial[lane] >= 0.0
        k = iterate(w, M, k, eps, box)
        for lane in range(WIDTH):
            t, done = int(w.trial[lane]), w.done[lane] > 0.0
            w.iterations[lane] += 1.0
            if t >= 0 and (done or w.iterations[lane] > MAX_ITERATIONS):
                if done and accept(w, lane, own(max_multiplier_sum, t), x[t], nu[t]):
                    status[t] = CONVERGED
                free_lane(w, lane)
        k = slots_in_use(w, k)
    bounds, workspace = (lower, upper, 0), (dim_memory, row_memory)
    for t in range(T):
        if status[t] == UNCONVERGED:
            rows, most = (own(A, t), own(b, t), max_multiplier), own(max_multiplier_sum, t)
            status[t] = hinge_prox_box_sum(bounds, 0, y[t], rows, most, workspace, x[t], nu[t])
