"""A whole round of one stream in one call: the loss, the rows, the step, the projection and the ledger's sums.

A call of a kernel from Python costs about a microsecond, as much as the arithmetic of a small round; the ordinary way
needs five, and as many array operations. What does not go in the usual way (a status other than CONVERGED) changes
nothing: the caller then plays the round in the ordinary way, which decides about errors.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numba
import numpy as np

from cocopt.kernels._jit import borrowing, expanded, inlined
from cocopt.kernels.ledger_terms import add_terms
from cocopt.kernels.status import CONVERGED, NONFINITE
from cocopt.kernels.stream.layout import (
    ADAPTIVE,
    CARRY,
    GRADIENT_SQ,
    GRADIENTS,
    KIND,
    NUMBERS,
    ONE_ROW,
    PARAMETER,
    SET_VECTORS,
    SIZE,
    STATUS,
    STEP,
    VALUE,
    VECTORS,
    VIOLATION,
)
from cocopt.kernels.stream.losses import value_and_gradient
from cocopt.kernels.vectors import dot

__all__ = ["LAYOUT", "SIGNATURE", "round_over", "without_mean"]

SIGNATURE = [
    "float64[::1], float64[:,::1], float64[::1], float64[:,::1], float64[::1], float64[::1], float64[::1], "
    "float64[::1], float64[::1], float64[::1]"
]
LAYOUT = "(n),(p,n),(q),(m,n),(m),(w),(s)->(n),(m),(s)"

_strict = numba.njit(cache=False, fastmath=False, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_strict
def adaptive_step(numbers, gradient_sq):
    """length/√(Σ‖∇f_s‖²), this round's included: the arithmetic of `CompensatedSum` and `steps.Adaptive`."""
    old = numbers[GRADIENTS]
    total = old + gradient_sq
    part = total - old
    carry = numbers[CARRY] + ((old - (total - part)) + (gradient_sq - part))
    value = total + carry
    return numbers[ADAPTIVE] / np.sqrt(value) if value > 0.0 else 0.0


@borrowing
def find_step(numbers, gradient_sq):
    """η_t; 0 if it is not a step of the usual kind: positive, finite and at most the last one."""
    step = numbers[STEP]
    if numbers[ADAPTIVE] > 0.0:
        own = adaptive_step(numbers, gradient_sq)
        return own if own <= step else 0.0
    return step


@borrowing
def evaluate_rows(A, b, x, rows):
    """A x − b in ``rows``; returns the place of the largest one, the first on ties, −1 if one is not finite."""
    worst, total = 0, 0.0
    for i in range(b.shape[0]):
        rows[i] = dot(A[i], x) - b[i]
        total += rows[i]
        if rows[i] > rows[worst]:
            worst = i
    return worst if abs(total) < np.inf else -1


@inlined
def vectors_of(memory, n):
    """The vectors that follow the numbers, and where the next begin."""
    end = NUMBERS + (SET_VECTORS + VECTORS) * n
    return memory[NUMBERS:end].reshape((SET_VECTORS + VECTORS, n)), end


@inlined
def workspace_of(memory, start, count, n):
    """What an active-set method needs for ``count`` rows: a workspace, multipliers without bounds, room for them."""
    middle = start + (count + 3) * n
    end = middle + (count + n + 10) * count
    workspace = memory[start:middle].reshape((count + 3, n)), memory[middle:end].reshape((count + n + 10, count))
    bounds, nu = memory[end : end + count], memory[end + count : end + 2 * count]
    for i in range(count):
        bounds[i] = np.inf
    return workspace, bounds, nu


@borrowing
def whole(gradient):
    """The gradient as it is: K is full-dimensional."""


@borrowing
def without_mean(gradient):
    """Leaves the part of the gradient along the affine hull of a simplex."""
    mean = 0.0
    for j in range(gradient.shape[0]):
        mean += gradient[j]
    mean /= gradient.shape[0]
    for j in range(gradient.shape[0]):
        gradient[j] -= mean


def round_over(project_row, project_rows, own, keep_along_hull=whole):
    """The round over a set K that has ``own`` rows of its own; what counts of a gradient is its part along K's hull.

    ``project_row(K, target, a, b, x)`` and ``project_rows(K, target, A, b, work, x)`` project onto K and the rows, and
    return a status. K is (lower bounds or center, upper bounds, ones, [radius or total]).
    """

    @expanded
    def play(x, H, y, A, b, memory, sums, x_next, rows, sums_next):
        """Exceeds the guide of 8 parameters, which are those of the kernel."""
        n, m = A.shape[1], A.shape[0]
        vectors, start = vectors_of(memory, n)
        K = (vectors[0], vectors[1], vectors[2:3], memory[SIZE : SIZE + 1])
        gradient, target = vectors[SET_VECTORS], vectors[SET_VECTORS + 1]
        memory[STATUS] = NONFINITE
        value = value_and_gradient(int(memory[KIND]), H, y, memory[PARAMETER], x, gradient)
        keep_along_hull(gradient)
        gradient_sq = dot(gradient, gradient)
        worst = evaluate_rows(A, b, x, rows)
        step = find_step(memory, gradient_sq)
        if not abs(value) + gradient_sq < np.inf or worst < 0 or step <= 0.0:
            return
        for j in range(n):
            target[j] = x[j] - step * gradient[j]
        if m == 1 or memory[ONE_ROW] > 0.0:
            status = project_row(K, target, A[worst], b[worst], x_next)
        else:
            work = workspace_of(memory, start, own + m, n)
            status = project_rows(K, target, A, b, work, x_next)
        memory[STATUS] = status
        if status == CONVERGED:
            for i in range(sums.shape[0]):
                sums_next[i] = sums[i]
            memory[STEP], memory[VALUE], memory[GRADIENT_SQ] = step, value, gradient_sq
            memory[VIOLATION] = add_terms(rows, value, 0.0, 0.0, sums_next)

    return play
