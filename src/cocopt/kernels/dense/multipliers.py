"""The step of the multipliers: the maximum of a concave quadratic within bounds, by an active-set method.

max over d of ⟨ρ, d⟩ − ½dᵀS d with lo ≤ d ≤ hi and ⟨weight, d⟩ ≤ room. It begins at d = 0, moves the multipliers that
are between their bounds, holds one that meets its bound, and releases the one at a bound that gains most. The factor
T Tᵀ of S on those that move is in the order in which they were released, so that it grows by one row at a time.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing

__all__ = ["best_step"]

MIN_PIVOT = 1e-12  # a smaller one, of a diagonal of ones: the row depends on those before it
GAIN = 1e-13  # a multiplier is released if its slope exceeds this share of the terms that make it up
TOO_LONG = 1e4  # a step so many times as long as the steepest slope is one along rows that nearly depend on others
MOVES, AT_LOW, AT_HIGH = 0.0, 1.0, 2.0
NOTHING, SUM = -1, -2  # what ends a step, if not a multiplier


@borrowing
def factorise_moving(work, first, count, sum_binds):
    """The rows of T from ``first`` on; whether some row depends on those before it. 1/T_aa is in ``pivots``.

    If the sum binds, a multiple of weight weightᵀ is added to S: that changes no step along which the sum stays, and
    there may be one row more than S has dimensions.
    """
    S, order, weight = work.S, work.order, work.weight
    square, dependent = 0.0, False
    for a in range(count if sum_binds else 0):
        square += weight[order[a]] * weight[order[a]]
    more = 1.0 / square if square > 0.0 else 0.0
    for a in range(count):
        if a >= first:
            i, row = order[a], work.T[a]
            pivot = S[i, i] + more * weight[i] * weight[i]
            for b in range(a):
                j, other = order[b], work.T[b]
                entry = S[i, j] + more * weight[i] * weight[j]
                for k in range(b):
                    entry -= row[k] * other[k]
                row[b] = entry * work.pivots[b]
                pivot -= row[b] * row[b]
            work.pivots[a] = 1.0 / np.sqrt(max(pivot, MIN_PIVOT))
        dependent = dependent or work.pivots[a] * work.pivots[a] > 0.5 / MIN_PIVOT
    return dependent


@borrowing
def solve_moving(work, count, z):
    """z = (T Tᵀ)⁻¹ z."""
    for a in range(count):
        row, total = work.T[a], z[a]
        for b in range(a):
            total -= row[b] * z[b]
        z[a] = total * work.pivots[a]
    for a in range(count - 1, -1, -1):
        row, t = work.T[a], z[a] * work.pivots[a]
        z[a] = t
        for b in range(a):
            z[b] -= t * row[b]


@borrowing
def keep_sum(work, count):
    """Subtracts from p what changes the sum; returns its multiplier, 0 if the sum is to decrease (p stays)."""
    for a in range(count):
        work.ones[a] = work.weight[work.order[a]]
    solve_moving(work, count, work.ones)
    along, across = 0.0, 0.0
    for a in range(count):
        along += work.weight[work.order[a]] * work.p[a]
        across += work.weight[work.order[a]] * work.ones[a]
    if not across > 0.0 or along <= 0.0:
        return 0.0
    for a in range(count):
        work.p[a] -= along / across * work.ones[a]
    return along / across


@borrowing
def move_to_bound(work, rows, count, left, sum_binds):
    """d += p as far as the bounds and what is ``left`` of the sum allow; returns what ended it, and Δsum.

    A multiplier that meets its bound is named by its place in the order.
    """
    d, p, order, slope = work.d, work.p, work.order, work.slope
    length, ended, along = 1.0, NOTHING, 0.0
    for a in range(count):
        i = order[a]
        along += work.weight[i] * p[a]
        if p[a] < 0.0 and d[i] + length * p[a] < work.lo[i]:
            length, ended = max((work.lo[i] - d[i]) / p[a], 0.0), a
        elif p[a] > 0.0 and d[i] + length * p[a] > work.hi[i]:
            length, ended = max((work.hi[i] - d[i]) / p[a], 0.0), a
    if not sum_binds and along > 0.0 and length * along > left:
        length, ended = max(left, 0.0) / along, SUM
    for a in range(count):
        i, t = order[a], length * p[a]
        d[i] += t
        row = work.S[i]
        for j in range(rows):
            slope[j] -= t * row[j]
    if ended >= 0:
        i, low = order[ended], p[ended] < 0.0
        d[i], work.state[i] = work.lo[i] if low else work.hi[i], AT_LOW if low else AT_HIGH
    return ended, length * along


@borrowing
def release(work, rows, count, threshold):
    """Puts the multiplier at a bound that gains most behind those that move; False if none gains."""
    most, found = GAIN, NOTHING
    for i in range(rows):
        slope = work.slope[i] - threshold * work.weight[i]
        gain = slope if work.state[i] == AT_LOW else -slope
        if work.state[i] == MOVES or not work.lo[i] < work.hi[i] or not gain > 0.0:
            continue
        size = abs(work.rho[i])
        for j in range(rows):
            size += abs(work.S[i, j] * work.d[j])
        if gain > most * size:
            most, found = gain / size, i
    if found >= 0:
        work.state[found] = MOVES
        work.order[count] = found
    return found >= 0


@borrowing
def best_step(work, rows, room):
    """The step in d.

    Returns (whether rows that depend on one another moved last, without an end, whether the step is out of proportion
    to the slopes, the multiplier of the sum).
    """
    state, order, count = work.state, work.order, 0
    for i in range(rows):
        work.d[i], work.slope[i] = 0.0, work.rho[i]
        state[i] = AT_LOW if work.lo[i] == 0.0 else AT_HIGH if work.hi[i] == 0.0 else MOVES
        order[count] = i
        count += 1 if state[i] == MOVES else 0
    sum_binds, used, dependent, threshold, known = room <= 0.0, 0.0, False, 0.0, 0
    for _ in range(6 * rows + 12):
        dependent = factorise_moving(work, known, count, sum_binds)
        for a in range(count):
            work.p[a] = work.slope[order[a]]
        solve_moving(work, count, work.p)
        threshold, known = 0.0, count
        if sum_binds:
            threshold, known = keep_sum(work, count), 0
            sum_binds = threshold > 0.0
        ended, change = move_to_bound(work, rows, count, room - used, sum_binds)
        used += change
        if ended == SUM:
            sum_binds, known = True, 0
        elif ended >= 0:
            count, known = count - 1, min(known, ended)
            for a in range(ended, count):
                order[a] = order[a + 1]
        elif release(work, rows, count, threshold):
            count += 1
        else:
            break
    longest, steepest = 0.0, 0.0
    for i in range(rows):
        longest, steepest = max(longest, abs(work.d[i])), max(steepest, abs(work.rho[i]))
    too_long = longest > TOO_LONG * steepest
    return dependent and too_long, too_long, threshold
