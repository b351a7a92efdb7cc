"""Projection onto a polyhedron and the few of many rows that bind.

The rows are normalised and far more than bind at the solution. The dual active-set method of `cocopt.kernels.rows`
works on a working set of them; whenever it is done, the most violated of the other rows joins. Each joins with a strict
gain of the dual, so this ends, and it ends at the projection onto all rows.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.halfspace import rounding
from cocopt.kernels.rows import IN, OUT, dot, lay_out, maximise
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED

__all__ = ["box_many_rows", "repeats", "tighten"]

SAFE = 1e-13  # by this share of its terms a row's bound on the box is taken wider, for rounding
MARGIN = 1e-9  # a row must be slack by this share of its terms to be forgotten
FAR = 1e4  # a target this much longer than its projection costs digits that the promise of 1e-9 needs
JOINS = 1000  # rows that may join the working set in one projection


@njit
def worst(unit, right, x, noise, eps):
    """The row that x violates most, beyond rounding; −1 if there is none."""
    found, most = -1, 0.0
    for i in range(right.shape[0]):
        excess = dot(unit[i], x) - right[i]
        excess -= noise + eps * abs(right[i])
        if excess > most:
            found, most = i, excess
    return found


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], "
        "int64[::1], float64[:,::1], float64[:,::1], float64[::1], int64[::1], int64[::1]"
    ],
    "(n),(n),(n),(p,n),(p),(),(h,n),(h),(w),(s,n),(t,m)->(n),(w),()",
)
def box_many_rows(y, lower, upper, own, own_right, equalities, unit, right, warm, wide, tall, x, active, status):
    """K = {lower ≤ x ≤ upper, own·x ≤ own_right, the first ``equalities`` rows with equality}, and unit·x ≤ right.

    All rows have length 1. ``warm`` are the rows to start with and ``active`` those that bind, −1 for none; ``wide``
    and ``tall`` are the `scratch` of p + w rows. If more than w rows have to be held at once the status is UNCONVERGED.
    """
    n, p, w = y.shape[0], own.shape[0], warm.shape[0]
    m = p + w
    rows, lines, factor, columns, vectors = lay_out(wide, tall)
    bound, caps, nu, state, r, d, order = (
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6],
    )  # fmt: skip
    which = np.empty(m, dtype=np.int64)
    target = np.empty(n)
    y_norm = np.sqrt(dot(y, y))
    for i in range(w):
        active[i] = -1
    for j in range(n):
        x[j] = target[j] = y[j]
    if not y_norm < np.inf:
        status[0] = NONFINITE
        return
    eps = rounding(n)
    k = p
    for i in range(p):
        bound[i] = own_right[i]
        which[i] = -1
        for j in range(n):
            rows[i, j] = columns[j, i] = own[i, j]
    for i in range(w):
        if warm[i] >= 0:
            which[k], bound[k] = warm[i], right[warm[i]]
            for j in range(n):
                rows[k, j] = columns[j, k] = unit[warm[i], j]
            k += 1
    for i in range(m):
        caps[i] = np.inf
    for again in range(2):
        for i in range(k):
            nu[i] = 0.0
            state[i] = IN if i < equalities else OUT
        for _ in range(JOINS):
            status[0] = maximise(
                target, lower, upper, rows[:k], columns, bound[:k], caps[:k], equalities, nu[:k], state[:k], x,
                lines[0], lines[1], lines[2], r[:k], d[:k], order[:k], factor, y_norm,
            )  # fmt: skip
            if status[0] != CONVERGED:
                return
            noise = y_norm + np.sqrt(dot(x, x))
            for i in range(k):
                noise += abs(nu[i])
            joins = worst(unit, right, x, noise * eps, eps)
            if joins < 0:
                break
            status[0] = UNCONVERGED
            if k == m:  # those that do not bind leave
                k = p
                for i in range(p, m):
                    if state[i] == IN:
                        which[k], bound[k], nu[k], state[k] = which[i], bound[i], nu[i], state[i]
                        for j in range(n):
                            rows[k, j] = columns[j, k] = rows[i, j]
                        k += 1
                if k == m:
                    return
            which[k], bound[k], nu[k], state[k] = joins, right[joins], 0.0, OUT
            for j in range(n):
                rows[k, j] = columns[j, k] = unit[joins, j]
            k += 1
        if status[0] != CONVERGED:
            return
        if again == 0:
            held = 0
            for i in range(p, k):
                if state[i] == IN:
                    active[held] = which[i]
                    held += 1
        x_norm = np.sqrt(dot(x, x))
        if y_norm <= FAR * x_norm:
            return
        # y − Aᵀν has lost digits that x can have: project the result, which is near, once more
        for j in range(n):
            target[j] = x[j]
        y_norm = x_norm


@guvectorize(
    ["float64[:,::1], float64[::1], float64[::1], float64, boolean[::1]"],
    "(h,n),(h),(n),()->()",
)
def repeats(unit, right, row, bound, found):
    """Whether the row ⟨row, x⟩ ≤ bound repeats one of the others, or is looser than it."""
    found[0] = False
    for i in range(right.shape[0]):
        if unit[i, 0] == row[0] and right[i] <= bound:
            same = True
            for j in range(row.shape[0]):
                same = same and unit[i, j] == row[j]
            if same:
                found[0] = True
                return


@guvectorize(
    ["float64[:,::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1]"],
    "(h,n),(h),(n),(n)->(n),(n),(h)",
)
def tighten(unit, right, lower, upper, low, high, useful):
    """The box lower ≤ x ≤ upper with each side moved in as far as some row, over the box, allows.

    A row is not ``useful`` if it is slack all over the new box, by more than rounding. Idle rows have right = +inf.
    """
    n = lower.shape[0]
    for j in range(n):
        low[j], high[j] = lower[j], upper[j]
    for i in range(right.shape[0]):
        if right[i] == np.inf:
            continue
        least, terms = 0.0, abs(right[i])
        for j in range(n):
            a = unit[i, j]
            if a != 0.0:
                part = a * (low[j] if a > 0.0 else high[j])
                least += part
                terms += abs(part)
        room = right[i] - least + SAFE * terms  # what the coordinates have in common above their best
        if not terms < np.inf or room < 0.0:
            continue  # an open box; or, which is for the projection to find out, an empty one
        for j in range(n):
            a = unit[i, j]
            if a > 0.0:
                high[j] = min(high[j], low[j] + room / a)
            elif a < 0.0:
                low[j] = max(low[j], high[j] + room / a)
    size = 0.0
    for j in range(n):
        size = max(size, max(abs(low[j]), abs(high[j])))
    for i in range(right.shape[0]):
        most = 0.0
        for j in range(n):
            a = unit[i, j]
            if a != 0.0:
                most += a * (high[j] if a > 0.0 else low[j])
        useful[i] = right[i] < np.inf and not most <= right[i] - MARGIN * (size + abs(right[i]))
