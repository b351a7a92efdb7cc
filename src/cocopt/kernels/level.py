"""Hinge prox with a bound on the sum of the multipliers, from projections.

argmin over x in K of ½‖x − y‖² + w · max_i (g_i(x))^+, where w = max_multiplier_sum, is the projection onto
{x in K, g(x) ≤ t} for the best level t ≥ 0. φ(t) = min of ½‖x − y‖² + w·t over that set is convex and piecewise
quadratic, with slope w − Σ_i ν_i.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, njit
from cocopt.kernels.active_set import hinge_prox_box
from cocopt.kernels.ball_prox import hinge_prox_ball
from cocopt.kernels.status import CONVERGED, INFEASIBLE, TOUCHING, UNCONVERGED
from cocopt.kernels.vectors import dot

__all__ = ["hinge_prox_ball_sum", "hinge_prox_box_sum"]

MAX_STEPS = 200
SLOPE_TOL = 1e-13  # relative to max_multiplier_sum
WIDTH_TOL = 1e-13  # of the bracket, relative to the right-hand sides


class Levels(NamedTuple):
    """A bracket of the best level, with the slope and the value of φ at its ends."""

    low: Any
    low_slope: Any  # −inf where it is not known, since the set is empty there
    low_value: Any
    high: Any
    high_slope: Any
    high_value: Any


@borrowing
def half_square_distance(x, y):
    """½‖x − y‖²."""
    total = 0.0
    for j in range(x.shape[0]):
        total += (x[j] - y[j]) ** 2
    return 0.5 * total


@borrowing
def shift_rhs(b, t, own, shifted):
    """b + t, but for K's own rows, which have other units."""
    for i in range(b.shape[0]):
        shifted[i] = b[i] + t if i >= own else b[i]


@borrowing
def largest_rhs(b, own):
    """The largest |b_i| among the finite ones, without K's own rows."""
    size = 0.0
    for i in range(own, b.shape[0]):
        size = abs(b[i]) if size < abs(b[i]) < np.inf else size
    return size


@borrowing
def largest_violation(constraint, own, x):
    """max(0, max_i ⟨a_i, x⟩ − b_i) over the rows that are not K's own."""
    A, b, _ = constraint
    worst = 0.0
    for i in range(own, b.shape[0]):
        worst = max(worst, dot(A[i], x) - b[i])
    return worst


@borrowing
def next_level(levels, step):
    """Where the chord of the slopes, or in turn the tangents of both ends, have the minimum; else the middle."""
    low, low_slope, low_value, high, high_slope, high_value = levels
    t = 0.5 * (low + high)
    if low_slope > -np.inf:
        if step % 2:
            meet = high_slope * low - low_slope * high
        else:
            meet = low_value - high_value + high_slope * high - low_slope * low
        meet /= max(high_slope - low_slope, 1e-300)
        t = meet if low < meet < high else t
    return t


def _at_best_level(solve):
    """The hinge prox with the sum of all but the first ``own`` multipliers bounded, from the projection ``solve``.

    Without a bound, max_multiplier_sum = inf, it is that projection.

    The best t is inside a quadratic piece of φ, where the chord of the slopes finds it, or at a kink, where the
    tangents of both ends of the bracket meet: steps of both kinds alternate. x(t) is continuous, so a narrow bracket
    is as good as the minimum.
    """

    # Exceeds the guide of complexity 20 by one: the two kinds of steps share their bracket.
    @njit
    def hinge_prox_sum(K, own, y, constraint, max_multiplier_sum, memory, x, nu):
        """The prox of y in x, its multipliers in ν; returns a status.

        The search stands in one loop, since ``solve`` takes long to compile and must stand in the code once.
        """
        A, b, max_multiplier = constraint
        shifted, w = np.empty(b.shape[0]), max_multiplier_sum
        levels, width = Levels(0.0, -np.inf, np.inf, np.inf, w, np.inf), 0.0
        t, step, last = 0.0, 0, False
        while step < MAX_STEPS:
            shift_rhs(b, t, own, shifted)
            status = solve(K, y, (A, shifted, max_multiplier), memory, x, nu)
            # the end of a narrow bracket is as good as a level at which nothing could be decided
            undecided = status == UNCONVERGED and levels.high - levels.low <= 100.0 * width
            empty = status in (INFEASIBLE, TOUCHING) or (undecided and not last)
            if last or w == np.inf or not (empty or status == CONVERGED):
                return status
            slope = w - np.sum(nu[own:])
            value = half_square_distance(x, y) + w * (t if t < np.inf else 0.0)
            if t == 0.0:
                if status == CONVERGED:
                    if slope >= 0.0:
                        return status
                    levels = Levels(0.0, slope, value, np.inf, w, np.inf)
                t = np.inf  # next, K alone
                continue
            if t == np.inf:
                if empty:
                    return UNCONVERGED
                worst = largest_violation(constraint, own, x)
                if worst == 0.0 or w == 0.0:  # nothing is violated there, or violation costs nothing
                    return status
                levels = Levels(0.0, levels.low_slope, levels.low_value, worst, w, value + w * worst)
                width = WIDTH_TOL * (largest_rhs(b, own) + worst)
            elif empty:
                levels = Levels(
                    t, levels.low_slope, levels.low_value, levels.high, levels.high_slope, levels.high_value
                )
            elif abs(slope) <= SLOPE_TOL * w:
                return status
            elif slope < 0.0:
                levels = Levels(t, slope, value, levels.high, levels.high_slope, levels.high_value)
            else:
                levels = Levels(levels.low, levels.low_slope, levels.low_value, t, slope, value)
            step += 1
            last = levels.high - levels.low <= width
            t = levels.high if last else next_level(levels, step)
        return UNCONVERGED

    return hinge_prox_sum


hinge_prox_box_sum, hinge_prox_ball_sum = _at_best_level(hinge_prox_box), _at_best_level(hinge_prox_ball)
