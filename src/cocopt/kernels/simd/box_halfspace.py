"""Hinge prox over a box with a single row for many trials, eight at a time (see `cocopt.kernels.halfspace`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, in_order
from cocopt.kernels.box_row import box_row_prox
from cocopt.kernels.line import Line
from cocopt.kernels.rounding import rounding
from cocopt.kernels.simd.active_set import line_search
from cocopt.kernels.simd.lanes import lanes
from cocopt.kernels.simd.vector import WIDTH, absolute, broadcast, load, maximum, minimum, sqrt, store, where
from cocopt.kernels.status import CONVERGED, NONFINITE
from cocopt.tolerances import FAR_TARGET, TINY

__all__ = ["box_halfspace_simd"]

MAX_LENGTHS = 12  # values of the multiplier that are tried; what is not found then is left to the method for one trial


@in_order
def load_trial(w, lane, y, a, b, max_multiplier):
    """Loads a trial into a lane, or zeros if its numbers are not finite; returns whether they are.

    The target goes to ``z`` and the row, as it is, to ``z_step``, where the line search takes them from.
    """
    total = 0.0
    for j in range(y.shape[0]):
        w.z[j, lane], w.z_step[j, lane] = y[j], a[j]
        total += y[j] * y[j] + a[j] * a[j]
    w.rhs[0, lane], w.max_multiplier[lane] = b, max_multiplier
    finite = total < np.inf and b > -np.inf
    if not finite:  # (vector code would warn of it)
        w.rhs[0, lane] = 0.0
        for j in range(y.shape[0]):
            w.z[j, lane], w.z_step[j, lane] = 0.0, 0.0
    return finite


@in_order
def prox_of_lanes(w, eps, box):
    """x and ν of all lanes, and which are done."""
    lower, upper = box
    zero, one = broadcast(0.0), broadcast(1.0)
    rhs, max_multiplier = load(w.rhs, 0), load(w.max_multiplier)
    inner, slope, a_sq, x_sq, y_sq = zero, zero, zero, zero, zero
    for j in range(w.dim):
        z, a = load(w.z, j), load(w.z_step, j)
        x = minimum(maximum(z, broadcast(lower[j])), broadcast(upper[j]))
        store(x, w.x, j)
        inner, a_sq, x_sq, y_sq = inner + a * x, a_sq + a * a, x_sq + x * x, y_sq + z * z
        free = where(x == z, a, zero)
        slope = slope + free * free
    h = inner - rhs
    satisfied = (h <= absolute(rhs) * eps) | (h * h <= a_sq * x_sq * (eps * eps))
    tol = (sqrt(a_sq * (x_sq + y_sq)) + absolute(rhs)) * eps
    guess = where(slope > 0.0, h / maximum(slope, broadcast(TINY)), h / maximum(a_sq, broadcast(TINY)))
    guess = where(satisfied, zero, minimum(guess, max_multiplier))
    nu, found = line_search(w, box, h, tol, max_multiplier, guess, satisfied, MAX_LENGTHS)
    square = zero
    for j in range(w.dim):
        x = load(w.z, j) - nu * load(w.z_step, j)
        x = minimum(maximum(x, broadcast(lower[j])), broadcast(upper[j]))
        store(x, w.x, j)
        square = square + x * x
    near = satisfied | ((y_sq <= square * (FAR_TARGET * FAR_TARGET)) & (square < np.inf))
    store(where(found & near, one, zero), w.done)
    store(nu, w.nu, 0)


@guvectorize(
    [
        "float64[:,::1], float64[::1], float64[::1], float64[:,::1], float64[::1], float64[::1], float64[:,::1], "
        "float64[:,::1], float64[::1], int64[::1]"
    ],
    "(t,n),(n),(n),(p,n),(p),(q),(v,e)->(t,n),(t),(t)",
)
def box_halfspace_simd(y, lower, upper, a, b, max_multiplier, memory, x, nu, status):
    """As `box_halfspace` for t trials, which may share (a, b) or max_multiplier; ``memory`` is that of one row."""
    trials, n = y.shape
    w, eps = lanes(memory, 1, n), rounding(n)
    shared_row, shared_bound = a.shape[0] == 1, max_multiplier.shape[0] == 1
    for first in range(0, trials, WIDTH):
        count = min(WIDTH, trials - first)
        for lane in range(WIDTH):
            t = first + min(lane, count - 1)  # (lanes that are left over repeat the last trial)
            i, bound = 0 if shared_row else t, max_multiplier[0 if shared_bound else t]
            w.trial[lane] = t if load_trial(w, lane, y[t], a[i], b[i], bound) else -1.0
        prox_of_lanes(w, eps, (lower, upper))
        for lane in range(count):
            t = first + lane
            i, bound = 0 if shared_row else t, max_multiplier[0 if shared_bound else t]
            nu[t], status[t] = w.nu[0, lane], CONVERGED
            for j in range(n):
                x[t, j] = w.x[j, lane]
            if w.trial[lane] < 0.0:
                status[t] = NONFINITE
            elif w.done[lane] == 0.0:
                nu[t], status[t] = box_row_prox(Line(y[t], lower, upper, a[i], b[i]), bound, x[t])
