"""The factor L D Lᵀ of the Newton matrix A_F A_Fᵀ of the active rows, F the coordinates strictly between their bounds.

``factor`` holds 1/D on its diagonal and (L D)ᵀ above; what is below is not used. All inner loops run along rows of
``factor`` and are short, so that two columns are eliminated at once.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, njit
from cocopt.kernels.vectors import dot

__all__ = ["factorise", "remove_from_factor", "solve_factored", "update_factor"]

MIN_PIVOT = 1e-13  # below this, for normalised rows, a row counts as dependent on those before it
MIN_UPDATED_PIVOT = 1e-9  # a smaller pivot is not updated but computed anew,
MIN_PIVOT_RATIO = 1e-3  # and so is one that an update would reduce to less than this share


@borrowing
def factorise(work, first, count):
    """Extends the factor of the first ``first`` active rows to the first ``count``.

    Pivots are no smaller than MIN_PIVOT, so that dependent rows yield a direction along their dependence. Of several
    rows that depend on others only the first moves, as together they would overflow.
    """
    rows, free, factor, active, column = work.rows, work.free, work.factor, work.active, work.newton_step
    masked = work.direction
    n = rows.shape[1]
    for p in range(first, count):
        row = rows[active[p]]
        for j in range(n):
            masked[j] = row[j] * free[j]
        pivot = dot(masked, row)
        for q in range(p):
            column[q] = dot(masked, rows[active[q]])
        for q in range(0, p, 2):
            entry = column[q] * factor[q, q]
            pivot -= column[q] * entry
            factor[q, p] = column[q]
            if q + 1 < p:
                column[q + 1] -= factor[q, q + 1] * entry
                next_entry = column[q + 1] * factor[q + 1, q + 1]
                pivot -= column[q + 1] * next_entry
                factor[q + 1, p] = column[q + 1]
                for s in range(q + 2, p):
                    column[s] -= factor[q, s] * entry + factor[q + 1, s] * next_entry
        factor[p, p] = 1.0 / max(pivot, MIN_PIVOT)
        if pivot <= MIN_PIVOT:
            for q in range(p):
                if factor[q, q] == 1.0 / MIN_PIVOT:
                    factor[p, p] = 0.0


@borrowing
def solve_factored(work, first, count):
    """The Newton step d on the ``count`` active rows: (A_F A_Fᵀ) d = r, where r counts as 0 before ``first``."""
    factor, active, d = work.factor, work.active, work.newton_step
    for p in range(count):
        d[p] = work.residual[active[p]] if p >= first else 0.0
    for p in range(first, count, 2):
        d[p] *= factor[p, p]
        if p + 1 < count:
            d[p + 1] = (d[p + 1] - factor[p, p + 1] * d[p]) * factor[p + 1, p + 1]
            for s in range(p + 2, count):
                d[s] -= factor[p, s] * d[p] + factor[p + 1, s] * d[p + 1]
    for p in range(count - 1, -1, -2):
        row, last = factor[p], p == 0
        above = factor[p - 1] if not last else row
        total, total_above = 0.0, 0.0
        for s in range(p + 1, count):
            total += row[s] * d[s]
            total_above += above[s] * d[s]
        d[p] -= row[p] * total
        if not last:
            d[p - 1] -= above[p - 1] * (total_above + above[p] * d[p])


@njit
def update_factor(factor, count, first, move_up, weight, w):
    """Adds weight·w wᵀ to the factorised matrix of ``count`` rows, in the rows from ``first`` on.

    Moves these ``move_up`` places up. Method C1 of Gill, Golub, Murray & Saunders (1974). Returns the first row where
    that would be inaccurate, from which on the factor is invalid, else ``count``; ``w`` is overwritten.
    """
    for p in range(first, count):
        inverse, w_p = factor[p, p], w[p]
        dependent = not 0.0 < inverse < 1.0 / MIN_PIVOT
        old_pivot = 0.0 if dependent else 1.0 / inverse
        pivot = old_pivot + weight * w_p * w_p
        if (dependent and p < count - 1) or not pivot > max(MIN_UPDATED_PIVOT, MIN_PIVOT_RATIO * old_pivot):
            return p
        beta = weight * w_p / pivot
        weight *= old_pivot / pivot
        for s in range(p + 1, count):
            entry = factor[p, s] * inverse
            w[s] -= w_p * entry
            entry += beta * w[s]
            factor[p - move_up, s - move_up] = entry * pivot
        factor[p - move_up, p - move_up] = 1.0 / pivot
    return count


@njit
def remove_from_factor(factor, count, removed, w):
    """Takes one of ``count`` rows out of the factor; returns of how many of the others it is valid. Overwrites w."""
    if not 0.0 < factor[removed, removed] < 1.0 / MIN_PIVOT:
        return removed
    for p in range(removed + 1, count):
        w[p] = factor[removed, p] * factor[removed, removed]
    for q in range(removed):
        for p in range(removed + 1, count):
            factor[q, p - 1] = factor[q, p]
    return update_factor(factor, count, removed + 1, np.int64(1), 1.0 / factor[removed, removed], w) - 1
