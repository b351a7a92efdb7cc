"""The step of the multipliers: the maximum of a concave quadratic within bounds, by an active-set method.

max over d of ⟨ρ, d⟩ − ½dᵀS d with lo ≤ d ≤ hi and ⟨weight, d⟩ ≤ room. It begins at d = 0, moves the multipliers that
are between their bounds, holds one that meets its bound, and releases the one at a bound that gains most.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import borrowing

__all__ = ["best_step"]

MIN_PIVOT = 1e-12  # a smaller one, of a diagonal of ones: the row depends on those before it
GAIN = 1e-13  # a multiplier is released if its slope exceeds this share of the terms that make it up
MOVES, AT_LOW, AT_HIGH = 0.0, 1.0, 2.0
NOTHING, SUM = -1, -2  # what ends a step, if not a multiplier


@borrowing
def solve_moving(work, count, sum_binds):
    """p = S⁻¹p and ones = S⁻¹weight on the multipliers that move; whether some row depends on others.

    If the sum binds, a multiple of weight weightᵀ is added to S: that changes no step along which the sum stays, and
    there may be one row more than S has dimensions.
    """
    S, T, state, p, ones, weight = work.S, work.T, work.state, work.p, work.ones, work.weight
    square = 0.0
    for i in range(count):
        square += weight[i] * weight[i] if state[i] == MOVES else 0.0
    more = 1.0 / square if sum_binds and square > 0.0 else 0.0
    dependent = False
    for i in range(count):
        ones[i] = weight[i]
        if state[i] != MOVES:
            p[i], ones[i] = 0.0, 0.0
            continue
        pivot = S[i, i] + more * weight[i] * weight[i]
        for j in range(i):
            if state[j] == MOVES:
                entry = S[i, j] + more * weight[i] * weight[j]
                for k in range(j):
                    if state[k] == MOVES:
                        entry -= T[i, k] * T[j, k] * T[k, k]
                T[i, j] = entry / T[j, j]
                pivot -= T[i, j] * entry
                p[i] -= T[i, j] * p[j]
                ones[i] -= T[i, j] * ones[j]
        dependent = dependent or not pivot > MIN_PIVOT
        T[i, i] = max(pivot, MIN_PIVOT)
    for i in range(count - 1, -1, -1):
        if state[i] == MOVES:
            p[i] /= T[i, i]
            ones[i] /= T[i, i]
            for j in range(i + 1, count):
                if state[j] == MOVES:
                    p[i] -= T[j, i] * p[j]
                    ones[i] -= T[j, i] * ones[j]
    return dependent


@borrowing
def slope_at(work, count, i, threshold):
    """The slope of the objective along multiplier i, and the size of its terms."""
    slope = work.rho[i] - threshold * work.weight[i]
    size = abs(work.rho[i])
    for j in range(count):
        slope -= work.S[i, j] * work.d[j]
        size += abs(work.S[i, j] * work.d[j])
    return slope, size


@borrowing
def keep_sum(work, count):
    """Subtracts from p what changes the sum; returns its multiplier, 0 if the sum is to decrease (p stays)."""
    along, across = 0.0, 0.0
    for i in range(count):
        along += work.weight[i] * work.p[i]
        across += work.weight[i] * work.ones[i]
    if not across > 0.0 or along <= 0.0:
        return 0.0
    for i in range(count):
        work.p[i] -= along / across * work.ones[i]
    return along / across


@borrowing
def move_to_bound(work, count, left, sum_binds):
    """d += p as far as the bounds and what is ``left`` of the sum allow; returns what ended it, and Δsum."""
    d, p, state = work.d, work.p, work.state
    length, ended, along = 1.0, NOTHING, 0.0
    for i in range(count):
        if state[i] != MOVES:
            continue
        along += work.weight[i] * p[i]
        if p[i] < 0.0 and d[i] + length * p[i] < work.lo[i]:
            length, ended = max((work.lo[i] - d[i]) / p[i], 0.0), i
        elif p[i] > 0.0 and d[i] + length * p[i] > work.hi[i]:
            length, ended = max((work.hi[i] - d[i]) / p[i], 0.0), i
    if not sum_binds and along > 0.0 and length * along > left:
        length, ended = max(left, 0.0) / along, SUM
    for i in range(count):
        d[i] += length * p[i] if state[i] == MOVES else 0.0
    if ended >= 0:
        low = p[ended] < 0.0
        d[ended], state[ended] = work.lo[ended] if low else work.hi[ended], AT_LOW if low else AT_HIGH
    return ended, length * along


@borrowing
def release(work, count, threshold):
    """Releases the multiplier at a bound that gains most; False if none gains."""
    most, found = GAIN, NOTHING
    for i in range(count):
        if work.state[i] == MOVES or not work.lo[i] < work.hi[i]:
            continue
        slope, size = slope_at(work, count, i, threshold)
        gain = slope if work.state[i] == AT_LOW else -slope
        if gain > most * size:
            most, found = gain / size, i
    if found >= 0:
        work.state[found] = MOVES
    return found >= 0


@borrowing
def best_step(work, count, room):
    """The step in d; returns (whether rows that depend on one another moved last, the multiplier of the sum)."""
    state = work.state
    for i in range(count):
        work.d[i] = 0.0
        state[i] = AT_LOW if work.lo[i] == 0.0 else AT_HIGH if work.hi[i] == 0.0 else MOVES
    sum_binds, used, dependent, threshold = room <= 0.0, 0.0, False, 0.0
    for _ in range(6 * count + 12):
        for i in range(count):
            work.p[i], _size = slope_at(work, count, i, 0.0)
        dependent = solve_moving(work, count, sum_binds)
        threshold = 0.0
        if sum_binds:
            threshold = keep_sum(work, count)
            sum_binds = threshold > 0.0
        ended, change = move_to_bound(work, count, room - used, sum_binds)
        used += change
        if ended == SUM:
            sum_binds = True
        elif ended == NOTHING and not release(work, count, threshold):
            break
    return dependent, threshold
