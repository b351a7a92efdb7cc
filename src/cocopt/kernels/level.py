"""The level of a sum cap: argmin over x in K of ½‖x − y‖² + price · max_i (g_i(x))^+, from projections.

That is the projection onto {x in K, g(x) ≤ t} for the best t ≥ 0. φ(t) = min of ½‖x − y‖² + price·t over that set is
convex and piecewise quadratic, with slope price − Σ_i ν_i.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import njit
from cocopt.kernels.active_set import hinge_prox_box
from cocopt.kernels.ball_prox import hinge_prox_ball
from cocopt.kernels.status import CONVERGED, INFEASIBLE, TOUCHING, UNCONVERGED
from cocopt.kernels.vectors import dot

__all__ = ["hinge_prox_ball_sum", "hinge_prox_box_sum"]


@njit
def _distance(x, y):
    """½‖x − y‖²."""
    total = 0.0
    for j in range(x.shape[0]):
        total += (x[j] - y[j]) ** 2
    return 0.5 * total


@njit
def _shift(b, t, own, shifted):
    """b + t, K's own rows apart, which have units of their own; returns the size of what is finite in the others."""
    size = 0.0
    for i in range(b.shape[0]):
        shifted[i] = b[i]
        if i >= own:
            shifted[i] += t
            size = abs(b[i]) if abs(b[i]) < np.inf and abs(b[i]) > size else size
    return size


def _best_level(solve):
    """The hinge prox with the sum of all but the first ``own`` multipliers capped, from the projection ``solve``.

    The best t is inside a quadratic piece of φ, where the chord of the slopes finds it, or at a kink, where the
    tangents of both ends of the bracket meet: steps of both kinds alternate. x(t) is continuous, so a narrow bracket
    is as good as the minimum.
    """

    @njit
    def level(where, own, y, constraint, price, memory, x, nu):
        """The prox of y in x, its multipliers in ν; returns a status."""
        A, b, cap = constraint
        M = b.shape[0]
        shifted = np.empty(M)
        low, slope_low, value_low = 0.0, -np.inf, np.inf
        high, slope_high, value_high, width = np.inf, price, np.inf, 0.0
        t, step, last = 0.0, 0, False
        while step < 200:
            size = _shift(b, t, own, shifted)
            status = solve(where, y, (A, shifted, cap), memory, x, nu)  # (once in the code: it is long to compile)
            undecided = status == UNCONVERGED and high - low <= 100.0 * width  # the end of the bracket is as good then
            apart = status in (INFEASIBLE, TOUCHING) or (undecided and not last)
            if last or not (apart or status == CONVERGED):
                return status
            total, value = np.sum(nu[own:]), _distance(x, y) + price * (t if t < np.inf else 0.0)
            if t == 0.0:
                if status == CONVERGED:
                    if total <= price:
                        return status
                    slope_low, value_low = price - total, value
                t = np.inf  # next, K alone
                continue
            if t == np.inf:
                if apart:
                    return UNCONVERGED
                high = 0.0
                for i in range(own, M):
                    high = max(high, dot(A[i], x) - b[i])
                if high == 0.0 or price == 0.0:  # nothing is violated there, or violation costs nothing
                    return status
                value_high, width = value + price * high, 1e-13 * (size + high)
            elif apart:  # t is too small
                low = t
            elif abs(price - total) <= 1e-13 * price:
                return status
            elif total > price:
                low, slope_low, value_low = t, price - total, value
            else:
                high, slope_high, value_high = t, price - total, value
            step += 1
            last = high - low <= width
            t = high if last else 0.5 * (low + high)
            if slope_low > -np.inf and not last:
                if step % 2:
                    meet = slope_high * low - slope_low * high
                else:
                    meet = value_low - value_high + slope_high * high - slope_low * low
                meet /= max(slope_high - slope_low, 1e-300)
                t = meet if low < meet < high else t
        return UNCONVERGED

    return level


hinge_prox_box_sum, hinge_prox_ball_sum = _best_level(hinge_prox_box), _best_level(hinge_prox_ball)
