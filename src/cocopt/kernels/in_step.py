"""Projection onto a box and a few rows for many trials, eight at a time and in step (see `cocopt.kernels.lanes`).

A lane whose trial is done takes the next one; what does not fit in is left to the method for one trial.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, in_order
from cocopt.kernels._vector import WIDTH
from cocopt.kernels.active_set import hinge_prox_box
from cocopt.kernels.lanes import SLOTS, STEPS, in_use, leave, lines, prepare, rest, step
from cocopt.kernels.level import hinge_prox_box_sum
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, UNCONVERGED
from cocopt.tolerances import FAR_TARGET, NEVER_BINDS

__all__ = ["box_rows_in_step"]


@in_order
def take(lane, t, y, A, b, memory, at):
    """A lane takes a trial; False if its numbers are not for it (a row of zeros; infinite ones)."""
    M, n = A.shape[1:]
    own = t if A.shape[0] > 1 else 0
    square, fits = 0.0, True
    for j in range(n):
        square += y[t, j] * y[t, j]
        memory[at.y + j, lane] = y[t, j]
    for i in range(M):
        length = 0.0
        for j in range(n):
            length += A[own, i, j] * A[own, i, j]
        known = length == length and b[own, i] == b[own, i]  # (NaN is kept from what would warn of it)
        length = min(max(length, 1e-300), 1e300) if known else 0.0
        unit = 1.0 / np.sqrt(length) if known else 0.0
        right = b[own, i] * unit if known and b[own, i] != np.inf else NEVER_BINDS
        fits = fits and 1e-300 < length < 1e300 and abs(right) <= NEVER_BINDS
        memory[at.right + i, lane], memory[at.label + i, lane] = right, unit
        for j in range(n):
            memory[at.rows + i * n + j, lane] = A[own, i, j] * unit
    memory[at.y_norm, lane] = np.sqrt(square)
    return fits and square < np.inf


@in_order
def accept(lane, t, price, memory, at, x, nu):
    """Writes x and ν of a lane that is done; False if they are not for it to find.

    That is if Σν exceeds the price, or if the target is so far away that x can have more digits.
    """
    total = 0.0
    for i in range(nu.shape[1]):
        nu[t, i] = 0.0
    for s in range(SLOTS):
        if memory[at.which + s, lane] >= 0.0:
            i = int(memory[at.which + s, lane])
            nu[t, i] = memory[at.nu + s, lane] * memory[at.label + i, lane]
            total += nu[t, i]
    for j in range(x.shape[1]):
        x[t, j] = memory[at.x + j, lane]
    x_norm = memory[at.x_norm, lane]
    return total <= price and (total == 0.0 or x_norm == 0.0 or memory[at.y_norm, lane] <= FAR_TARGET * x_norm)


@guvectorize(
    [
        "float64[:,::1], float64[::1], float64[::1], float64[:,:,::1], float64[:,::1], float64[::1], float64[::1], "
        "float64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], int64[::1]"
    ],
    "(t,n),(n),(n),(p,m,n),(p,m),(q),(m),(w,n),(u,m),(v,e)->(t,n),(t,m),(t)",
)
def box_rows_in_step(y, lower, upper, A, b, price, cap, dim_memory, row_memory, memory, x, nu, status):
    """As `box_rows`, or with a finite price as `box_rows_sum`, for t trials, which may share (A, b) or the price.

    ``cap`` is infinite, ``dim_memory`` and ``row_memory`` come from `workspace_memory`, ``memory`` from `lane_memory`.
    """
    T, M = nu.shape
    each, each_price = A.shape[0] > 1, price.shape[0] > 1
    at, eps = lines(M, y.shape[1]), rounding(y.shape[1])
    prepare(memory, at)
    waiting, k, busy = 0, 0, True
    while busy:
        busy = False
        for lane in range(WIDTH):
            while memory[at.trial, lane] < 0.0 and waiting < T:
                status[waiting] = UNCONVERGED
                if take(lane, waiting, y, A, b, memory, at):
                    memory[at.trial, lane] = waiting
                else:
                    rest(lane, memory, at)
                waiting += 1
            busy = busy or memory[at.trial, lane] >= 0.0
        k = step(M, k, eps, lower, upper, memory, at)
        for lane in range(WIDTH):
            t, done = int(memory[at.trial, lane]), memory[at.done, lane] > 0.0
            memory[at.age, lane] += 1.0
            if t >= 0 and (done or memory[at.age, lane] > STEPS):
                if done and accept(lane, t, price[t if each_price else 0], memory, at, x, nu):
                    status[t] = CONVERGED
                leave(lane, memory, at)
        k = in_use(k, memory, at)
    memories = (dim_memory, row_memory)
    for t in range(T):
        if status[t] == UNCONVERGED:
            rows, right, most = A[t if each else 0], b[t if each else 0], price[t if each_price else 0]
            if most == np.inf:
                status[t] = hinge_prox_box((lower, upper, 0), y[t], (rows, right, cap), memories, x[t], nu[t])
            else:
                status[t] = hinge_prox_box_sum(
                    (lower, upper, 0), 0, y[t], (rows, right, cap), most, memories, x[t], nu[t]
                )
