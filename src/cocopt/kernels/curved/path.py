"""The search along the path that leads from a target to the center of a norm ball.

argmin over x in K of ½‖x − y‖² + (μ/2)(‖x − c‖² − r²) is x(t) = P_K(c + t(y − c)) with t = 1/(1 + μ): the projections
of the points between the target (t = 1) and the center (t = 0). d(t) = ‖x(t) − c‖ never decreases with t, and the
multiplier ν(t) = d(t)(1 − t)/t of the row ‖x − c‖ ≤ r never increases. The projection is x(t) with d(t) = r; the hinge
prox is x(t) with the largest t at which d(t) = r or ν(t) = max_multiplier.

While x(t) stays on one face of a polyhedron, d² = fixed + t²·moving, where √fixed is the distance of c from the face's
plane: that is the model of d from which the next t is found. A far target makes t small and costs no digits.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, in_order
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.kernels.vectors import distance
from cocopt.tolerances import FEASIBILITY, POSITION, ROUNDING

__all__ = [
    "MAX_STEPS",
    "Interval",
    "Row",
    "advance",
    "begin",
    "between",
    "judge",
    "multiplier_at",
    "recoverable",
    "resolves",
    "row_of",
    "tangent_status",
]

MAX_STEPS = 100  # of the search; ten are many


class Row(NamedTuple):
    """The row ‖x − center‖ ≤ radius, without its center."""

    radius: Any  # 0 if the one given is negative: then, too, x comes as near to the center as the multiplier allows
    missed: Any  # whether it is negative, so that no x satisfies the row
    max_multiplier: Any
    tol: Any  # what rounding may do to a distance from the center


class Interval(NamedTuple):
    """Where the solution is searched for."""

    low: Any
    high: Any
    steps: Any  # taken so far


@borrowing
def row_of(n, radius, max_multiplier, scale):
    """The row, where the center and the points near the solution are of the size ``scale``."""
    return Row(max(radius, 0.0), radius < 0.0, max_multiplier, 4.0 * rounding(n) * max(scale, abs(radius)))


@borrowing
def t_at_radius(row, t, d, moving):
    """The t at which the model's distance is the radius; 0 if it is more than that at every t."""
    if not moving > 0.0:
        return 0.0
    return np.sqrt(max(t * t + (row.radius - d) * (row.radius + d) / moving, 0.0))


@borrowing
def t_at_max_multiplier(row, fixed, moving):
    """The t at which the model's multiplier is the largest allowed; 0 if it is less than that at every t.

    With the distance ρ = d(t) that is t = ρ/(ρ + w), w the bound, and fixed/ρ² + moving/(ρ + w)² = 1. Minus the left
    side is increasing and concave, so Newton's method climbs to the root from where one of the terms alone is 1.
    """
    w = row.max_multiplier
    rho = max(np.sqrt(fixed), np.sqrt(moving) - w)
    if not rho > 0.0:
        return 0.0
    for _ in range(50):
        one, other = fixed / (rho * rho), moving / ((rho + w) * (rho + w))
        excess = one + other - 1.0
        if not excess > ROUNDING:
            break
        rho += 0.5 * excess / max(one / rho + other / (rho + w), 1e-300)
    return rho / (rho + w)


@borrowing
def begin(row, nearest, reach):
    """The first interval, if K's distance from the center is ``nearest`` and ‖y − c‖ = ``reach``.

    d(t) ≤ nearest + t·reach and ν(t) ≥ nearest·(1 − t)/t.
    """
    low = max(row.radius - nearest, 0.0) / max(reach, 1e-300)
    if nearest > 0.0 and row.max_multiplier < np.inf:
        low = max(low, nearest / (nearest + row.max_multiplier))
    return Interval(min(low, 1.0), 1.0, 0)


# Its complexity exceeds the guide by little: two conditions end the search, and each has its rounding.
@borrowing
def advance(row, interval, t, d_sq, moving):
    """(the next t, the interval, whether the search is over) from d² and its slope in t².

    It is over where d is the radius to rounding, or where the multiplier is at its bound and the next step would move x
    by rounding alone.
    """
    low, high, steps = interval
    d = np.sqrt(d_sq)
    excess = d - row.radius
    following = t_at_radius(row, t, d, moving)
    room = np.inf  # positive if the multiplier is below its bound; in units of a distance
    if row.max_multiplier < np.inf:
        room = t * row.max_multiplier - (1.0 - t) * d
        following = max(following, t_at_max_multiplier(row, max(d_sq - t * t * moving, 0.0), moving))
    if t == 0.0:  # x is the center, where any multiplier up to √moving will do
        room = 0.0 if row.max_multiplier >= np.sqrt(moving) else -np.inf
    still = abs(following - t) * np.sqrt(moving) <= row.tol + 4.0 * ROUNDING * t * np.sqrt(moving)
    solved = (abs(excess) <= row.tol and room >= 0.0) or (abs(room) <= row.tol and excess >= -row.tol and still)
    low, high = (low, t) if excess > 0.0 and room > 0.0 else (t, high)
    if solved:
        return (following if low <= following <= high else t), Interval(low, high, steps), True
    if following <= low and steps == 0 and (low > 0.0 or row.radius == 0.0):
        return low, Interval(low, high, 1), False  # from there the steps never pass the root if the center is in K
    allowed = low < following < high or (following == low == row.radius == 0.0 and t > 0.0)
    if not allowed or (steps > 10 and steps % 3 == 0):
        following = np.sqrt(low * high) if high > 4.0 * low > 0.0 else 0.5 * (low + high)
        allowed = low < following < high
    return (following if allowed else t), Interval(low, high, steps + 1), not allowed


@in_order
def between(c, y, t, target):
    """target = c + t(y − c), y itself for t = 1."""
    for j in range(y.shape[0]):
        target[j] = c[j] + t * (y[j] - c[j]) if t < 1.0 else y[j]


@borrowing
def multiplier_at(row, t, d):
    """ν(t), no more than its bound."""
    return row.max_multiplier if row.missed else min(d * (1.0 - t) / max(t, 1e-300), row.max_multiplier)


@borrowing
def tangent_status(radius, nearest, size):
    """The status where d(0) = nearest is no less than the radius, so that P_K(center) is the only candidate."""
    return INFEASIBLE if nearest - radius > FEASIBILITY * max(size, abs(radius)) else CONVERGED


@borrowing
def resolves(length, size):
    """Whether points so far away, rounded, still tell positions apart as finely as is promised at the given size."""
    return 0.25 * ROUNDING * length <= POSITION * size  # ROUNDING is that of some four operations


@borrowing
def recoverable(y, x, size):
    """Whether x, found from a far target, has digits enough to begin the same problem from a nearer one."""
    return rounding(x.shape[0]) * distance(x, y) <= POSITION * size


@borrowing
def judge(row, t, d):
    """The status of x(t), whose distance from the center was computed anew: d = radius, or ν = max_multiplier.

    Next to the center rounding decides what ν is, and another method is asked.
    """
    excess, tol = d - row.radius, 16.0 * row.tol
    if abs(excess) <= tol:
        return CONVERGED
    known = row.max_multiplier < np.inf and abs(t * row.max_multiplier - (1.0 - t) * d) <= tol and d > 1000.0 * tol
    return CONVERGED if known and excess >= -tol else UNCONVERGED
