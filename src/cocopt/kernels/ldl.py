"""The factor L D Lᵀ of the Newton matrix A_F A_Fᵀ of the active rows, F the coordinates strictly between their bounds.

``factor`` holds 1/D on its diagonal and (L D)ᵀ above; what is below is not used. All inner loops run along rows of
``factor`` and are short, so that two columns are eliminated at once.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, in_order, njit
from cocopt.kernels.vectors import dot

__all__ = ["factorise", "remove_from_factor", "solve_factored", "update_factor"]

MIN_PIVOT = 1e-13  # below this, for normalised rows, a row counts as dependent on those before it
MIN_UPDATED_PIVOT = 1e-9  # a smaller pivot is not updated but computed anew,
MIN_PIVOT_RATIO = 1e-3  # and so is one that an update would reduce to less than this share


@in_order
def eliminate(factor, v, first, count):
    """v = L⁻¹ v, where v is 0 before ``first``; four columns at once, so that v is read and written less often."""
    whole = count - (count - first) % 4
    for q in range(first, whole, 4):
        f_1, f_2, f_3, f_4 = factor[q], factor[q + 1], factor[q + 2], factor[q + 3]
        v_1 = v[q] * f_1[q]
        v[q + 1] -= f_1[q + 1] * v_1
        v_2 = v[q + 1] * f_2[q + 1]
        v[q + 2] -= f_1[q + 2] * v_1 + f_2[q + 2] * v_2
        v_3 = v[q + 2] * f_3[q + 2]
        v[q + 3] -= f_1[q + 3] * v_1 + f_2[q + 3] * v_2 + f_3[q + 3] * v_3
        v_4 = v[q + 3] * f_4[q + 3]
        for s in range(q + 4, count):
            v[s] -= (f_1[s] * v_1 + f_2[s] * v_2) + (f_3[s] * v_3 + f_4[s] * v_4)
    for q in range(whole, count):
        v_1 = v[q] * factor[q, q]
        for s in range(q + 1, count):
            v[s] -= factor[q, s] * v_1


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
        eliminate(factor, column, np.int64(0), p)
        dependent = False
        for q in range(p):
            pivot -= column[q] * column[q] * factor[q, q]
            dependent = dependent or factor[q, q] == 1.0 / MIN_PIVOT
        for q in range(p):
            factor[q, p] = column[q]
        factor[p, p] = 1.0 / max(pivot, MIN_PIVOT)
        if pivot <= MIN_PIVOT and dependent:
            factor[p, p] = 0.0


@borrowing
def solve_factored(work, first, count):
    """The Newton step d on the ``count`` active rows: (A_F A_Fᵀ) d = r, where r counts as 0 before ``first``."""
    factor, active, d = work.factor, work.active, work.newton_step
    for p in range(count):
        d[p] = work.residual[active[p]] if p >= first else 0.0
    while first < count and d[first] == 0.0:
        first += 1
    eliminate(factor, d, first, count)
    for p in range(first, count):
        d[p] *= factor[p, p]
    end = count % 4
    for p in range(count - 1, end - 1, -4):
        f_4, f_3, f_2, f_1 = factor[p], factor[p - 1], factor[p - 2], factor[p - 3]
        s_4, s_3, s_2, s_1 = 0.0, 0.0, 0.0, 0.0
        for s in range(p + 1, count):
            s_4 += f_4[s] * d[s]
            s_3 += f_3[s] * d[s]
            s_2 += f_2[s] * d[s]
            s_1 += f_1[s] * d[s]
        d[p] -= f_4[p] * s_4
        d[p - 1] -= f_3[p - 1] * (s_3 + f_3[p] * d[p])
        d[p - 2] -= f_2[p - 2] * (s_2 + f_2[p] * d[p] + f_2[p - 1] * d[p - 1])
        d[p - 3] -= f_1[p - 3] * (s_1 + f_1[p] * d[p] + f_1[p - 1] * d[p - 1] + f_1[p - 2] * d[p - 2])
    for p in range(end - 1, -1, -1):
        total = 0.0
        for s in range(p + 1, count):
            total += factor[p, s] * d[s]
        d[p] -= factor[p, p] * total


class Pivot(NamedTuple):
    """How a rank-one update changes one row of the factor."""

    accurate: Any
    pivot: Any
    beta: Any
    weight: Any  # that of the update of the rows below


@borrowing
def update_pivot(inverse, w_p, weight, last):
    """The `Pivot` of a row; a dependent row can be updated only if it is the last one."""
    dependent = not 0.0 < inverse < 1.0 / MIN_PIVOT
    before = 0.0 if dependent else 1.0 / inverse
    pivot = before + weight * w_p * w_p
    accurate = (last or not dependent) and pivot > max(MIN_UPDATED_PIVOT, MIN_PIVOT_RATIO * before)
    unit = 1.0 / (pivot if accurate else 1.0)
    return Pivot(accurate, pivot, weight * w_p * unit, weight * before * unit)


@in_order
def update_two_rows(upper, lower, w, start, count, inverse_1, w_1, of_1, inverse_2, w_2, of_2):
    """Updates what is right of the diagonal in two rows of the factor, from ``start`` on, and w.

    More parameters than the guide allows: three numbers of each row, beside what is updated.
    """
    for s in range(start, count):
        entry_1, entry_2 = upper[s] * inverse_1, lower[s] * inverse_2
        w_s = w[s] - w_1 * entry_1
        upper[s] = (entry_1 + of_1.beta * w_s) * of_1.pivot
        w_s -= w_2 * entry_2
        lower[s] = (entry_2 + of_2.beta * w_s) * of_2.pivot
        w[s] = w_s


@njit
def update_factor(factor, count, first, weight, w):
    """Adds weight·w wᵀ to the factorised matrix of ``count`` rows, in the rows from ``first`` on.

    Method C1 of Gill, Golub, Murray & Saunders (1974), two rows at once. Returns the first row where that would be
    inaccurate, from which on the factor is invalid, else ``count``; ``w`` is overwritten.
    """
    whole = count - (count - first) % 2
    for p in range(first, whole, 2):
        upper, lower = factor[p], factor[p + 1]
        inverse_1, w_1, inverse_2 = upper[p], w[p], lower[p + 1]
        of_1 = update_pivot(inverse_1, w_1, weight, False)
        entry = upper[p + 1] * inverse_1
        w_2 = w[p + 1] - w_1 * entry
        of_2 = update_pivot(inverse_2, w_2, of_1.weight, p + 2 == count)
        if not (of_1.accurate and of_2.accurate):
            return p
        upper[p + 1] = (entry + of_1.beta * w_2) * of_1.pivot
        update_two_rows(upper, lower, w, p + 2, count, inverse_1, w_1, of_1, inverse_2, w_2, of_2)
        upper[p], lower[p + 1] = 1.0 / of_1.pivot, 1.0 / of_2.pivot
        weight = of_2.weight
    if whole < count:
        of_1 = update_pivot(factor[whole, whole], w[whole], weight, True)
        if not of_1.accurate:
            return whole
        factor[whole, whole] = 1.0 / of_1.pivot
    return count


@njit
def remove_from_factor(factor, count, removed, w):
    """Takes one of ``count`` rows out of the factor; returns of how many of the others it is valid. Overwrites w."""
    inverse = factor[removed, removed]
    if not 0.0 < inverse < 1.0 / MIN_PIVOT:
        return removed
    for p in range(removed + 1, count):
        w[p - 1] = factor[removed, p] * inverse
    for q in range(removed):
        row = factor[q]
        for p in range(removed + 1, count):
            row[p - 1] = row[p]
    for q in range(removed + 1, count):
        above, row = factor[q - 1], factor[q]
        for p in range(q, count):
            above[p - 1] = row[p]
    return update_factor(factor, count - 1, removed, 1.0 / inverse, w)
