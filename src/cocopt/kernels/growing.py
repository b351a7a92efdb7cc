"""Projection onto a polyhedron and the few of very many rows that bind, and the lists that say where to look for them.

The rows of a trial are normalised and stand in a store, the first ``size`` of it. A *list* names those that matter
around an anchor, with their slacks there: within ``radius`` of the anchor no other row can be violated, and a listed
one only where the way from the anchor is longer than its slack. Rows from the ``listed``-th on are newer than the list.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.active_set import IN, OUT, dot, lay_out, maximise
from cocopt.kernels.rounding import FAR, rounding
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED

__all__ = ["append", "box_many_rows", "compact", "relist", "tighten", "violated"]

SAFE = 1e-13  # by this share of its terms a row's bound on the box is taken wider, for rounding
MARGIN = 1e-9  # a row must be slack by this share of its terms to be forgotten
JOINS = 1000  # how often rows may join the working set in one projection
AT_ONCE = 4  # how many may join at a time
FRESH = 8  # that many new rows join at once
LISTS = 2  # lists that are made in one projection


@njit
def distance(x, y):
    total = 0.0
    for j in range(x.shape[0]):
        total += (x[j] - y[j]) ** 2
    return np.sqrt(total)


@njit
def enlist(x, unit, right, size, index, slack, anchor):
    """Makes a list around x of half the rows that it could hold; returns (how many, radius)."""
    half = index.shape[0] // 2
    every = np.empty(size)
    for i in range(size):
        every[i] = right[i] - dot(unit[i], x)
    radius = np.partition(every, half)[half] if size > half else np.inf
    count = 0
    for i in range(size):
        if every[i] < radius:
            index[count], slack[count] = i, every[i]
            count += 1
    for j in range(x.shape[0]):
        anchor[j] = x[j]
    return count, radius


@njit
def continued(unit, right, size, index, slack, count, listed, anchor, radius, index_, slack_, anchor_):
    """The list (index_, slack_, anchor_) with the new rows; returns (how many, radius), −inf if it cannot hold them."""
    room = index_.shape[0]
    for j in range(anchor.shape[0]):
        anchor_[j] = anchor[j]
    if count > room:
        return 0, -np.inf
    for p in range(count):
        index_[p], slack_[p] = index[p], slack[p]
    for i in range(listed, size):
        own = right[i] - dot(unit[i], anchor)
        if own < radius:
            if count == room:
                return 0, -np.inf
            index_[count], slack_[count] = i, own
            count += 1
    return count, radius


@njit
def join(i, excess, found, most):
    """Puts row i among the most violated, the most violated one first."""
    p = found.shape[0] - 1
    while p > 0 and excess > most[p - 1]:
        found[p], most[p] = found[p - 1], most[p - 1]
        p -= 1
    found[p], most[p] = i, excess


@njit
def search(x, unit, right, size, index, slack, count, way, radius, noise, eps, found, most):
    """The rows that x violates most, beyond rounding; −1 for none."""
    last = found.shape[0] - 1
    for p in range(found.shape[0]):
        found[p], most[p] = -1, 0.0
    if way <= radius:
        for p in range(count):
            if slack[p] < way:
                i = index[p]
                excess = dot(unit[i], x) - right[i] - noise - eps * abs(right[i])
                if excess > most[last]:
                    join(i, excess, found, most)
        return
    for i in range(size):
        excess = dot(unit[i], x) - right[i] - noise - eps * abs(right[i])
        if excess > most[last]:
            join(i, excess, found, most)


@guvectorize(
    [
        "float64[::1], boolean, float64[::1], float64[::1], float64[:,::1], float64[::1], int64, "
        "float64[:,::1], float64[::1], int64, int64[::1], float64[::1], int64, int64, float64[::1], float64, "
        "int64[::1], int64[::1], float64[:,::1], float64[:,::1], "
        "float64[::1], int64[::1], int64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], "
        "int64[::1]"
    ],
    "(n),(),(n),(n),(p,n),(p),(),(c,n),(c),(),(k),(k),(),(),(n),(),(w),(q),(s,n),(t,m)"
    "->(n),(w),(),(q),(q),(),(n),(),()",
)
def box_many_rows(
    y, active, lower, upper, own, own_right, equalities,
    unit, right, size, index, slack, count, listed, anchor, radius, warm, like, wide, tall,
    x, bound, status, index_, slack_, count_, anchor_, radius_, looks,
):  # fmt: skip
    """K = {lower ≤ x ≤ upper, own·x ≤ own_right, the first ``equalities`` rows with equality}, and unit·x ≤ right.

    The dual active-set method of `cocopt.kernels.rows` works on a working set, at first the rows ``warm``; whenever it
    is done, the most violated of the others join. Each time the dual gains, so this ends, and it ends at the projection
    onto all rows. ``bound`` are those that bind, −1 for none. The new list is as long as ``like``; ``looks`` counts how
    often all rows were looked at. ``wide`` and ``tall`` are the `scratch` of p + w rows; if more than w have to be held
    at once the status is UNCONVERGED. A trial that is not ``active`` gets y back.
    """
    n, p, w = y.shape[0], own.shape[0], warm.shape[0]
    m = p + w
    count_[0], radius_[0] = continued(
        unit, right, size, index, slack, count, listed, anchor, radius, index_, slack_, anchor_
    )
    looks[0] = 0
    for i in range(w):
        bound[i] = -1
    for j in range(n):
        x[j] = y[j]
    status[0] = CONVERGED
    if not active:
        return
    y_norm = np.sqrt(dot(y, y))
    if not y_norm < np.inf:
        status[0] = NONFINITE
        return
    rows, _, _, columns, vectors = lay_out(wide, tall)
    rights, caps, nu, state = vectors[0], vectors[1], vectors[2], vectors[3]
    which, target = np.empty(m, dtype=np.int64), y
    found, most = np.empty(AT_ONCE, dtype=np.int64), np.empty(AT_ONCE)
    eps = rounding(n)
    k = p
    for i in range(p):
        rights[i], which[i] = own_right[i], -1
        for j in range(n):
            rows[i, j] = columns[j, i] = own[i, j]
    fresh = size - listed if size - listed <= FRESH else 0
    for i in range(w + fresh):
        joins = warm[i] if i < w else listed + i - w
        if joins >= 0 and k < m:
            which[k], rights[k] = joins, right[joins]
            for j in range(n):
                rows[k, j] = columns[j, k] = unit[joins, j]
            k += 1
    for i in range(m):
        caps[i] = np.inf
    for again in range(2):
        for i in range(k):
            nu[i] = 0.0
            state[i] = IN if i < equalities else OUT
        for _ in range(JOINS):
            status[0] = maximise(target, y_norm, lower, upper, k, equalities, False, wide, tall, nu, x)
            if status[0] != CONVERGED:
                return
            noise = y_norm + np.sqrt(dot(x, x))
            for i in range(k):
                noise += abs(nu[i])
            way = distance(x, anchor_)
            if way > radius_[0] and looks[0] < LISTS:
                count_[0], radius_[0] = enlist(x, unit, right, size, index_, slack_, anchor_)
                looks[0] += 1
                way = 0.0
            search(x, unit, right, size, index_, slack_, count_[0], way, radius_[0], noise * eps, eps, found, most)
            joined = 0
            for f in range(AT_ONCE):
                new = found[f] >= 0
                for i in range(p, k):
                    new = new and which[i] != found[f]
                if not new:
                    continue
                if k == m:  # those that do not bind leave
                    k = p
                    for i in range(p, m):
                        if state[i] == IN or i >= m - joined:
                            which[k], rights[k], nu[k], state[k] = which[i], rights[i], nu[i], state[i]
                            for j in range(n):
                                rows[k, j] = columns[j, k] = rows[i, j]
                            k += 1
                    if k == m:
                        status[0] = UNCONVERGED
                        return
                which[k], rights[k], nu[k], state[k] = found[f], right[found[f]], 0.0, OUT
                for j in range(n):
                    rows[k, j] = columns[j, k] = unit[found[f], j]
                k += 1
                joined += 1
            if joined == 0:
                break
            status[0] = UNCONVERGED
        if status[0] != CONVERGED:
            return
        if again == 0:
            held = 0
            for i in range(p, k):
                if state[i] == IN:
                    bound[held] = which[i]
                    held += 1
        x_norm = np.sqrt(dot(x, x))
        if y_norm <= FAR * x_norm:
            return
        # y − Aᵀν has lost digits that x can have: project the result, which is near, once more
        target = np.copy(x)
        y_norm = x_norm


@guvectorize(
    [
        "float64[::1], boolean, float64, float64[:,::1], float64[::1], int64, int64[::1], float64[::1], int64, "
        "float64[::1], float64, int64[::1], int64[::1]"
    ],
    "(n),(),(),(c,n),(c),(),(k),(k),(),(n),(),(f)->(f)",
)
def violated(x, active, share, unit, right, size, index, slack, count, anchor, radius, like, found):
    """The rows that x violates most, by more than this share of their terms, as many as ``like`` has; −1 for none.

    The list must know all rows.
    """
    for f in range(found.shape[0]):
        found[f] = -1
    if not active:
        return
    most = np.empty(found.shape[0])
    way = distance(x, anchor)
    noise = share * np.sqrt(dot(x, x))
    search(x, unit, right, size, index, slack, count, way, radius, noise, share, found, most)


@guvectorize(
    [
        "float64[::1], float64[:,::1], float64[::1], int64, int64[::1], float64[::1], int64, int64, float64[::1], "
        "float64, int64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(c,n),(c),(),(k),(k),(),(),(n),(),(q)->(q),(q),(),(n),(),()",
)
def relist(
    x, unit, right, size, index, slack, count, listed, anchor, radius, like,
    index_, slack_, count_, anchor_, radius_, looks,
):  # fmt: skip
    """The list with the new rows, around x if x is outside the old one."""
    count_[0], radius_[0] = continued(
        unit, right, size, index, slack, count, listed, anchor, radius, index_, slack_, anchor_
    )
    looks[0] = 0
    if distance(x, anchor_) > radius_[0]:
        count_[0], radius_[0] = enlist(x, unit, right, size, index_, slack_, anchor_)
        looks[0] = 1


@guvectorize(
    ["float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], float64[::1], int64[::1]"],
    "(m,n),(m),(),(c,n),(c),(c)->()",
)
def append(A, b, size, unit, right, norm, grown):
    """Writes ⟨A_i, x⟩ ≤ b_i, normalised, into the store (unit, right, norm) behind its first ``size`` rows.

    Rows with b = +inf are left out; a row of zeros stays as it is. Returns the new size, −1 if a length is not finite.
    """
    k = size
    for i in range(b.shape[0]):
        if b[i] == np.inf:
            continue
        length = np.sqrt(dot(A[i], A[i]))
        if not length < np.inf:
            grown[0] = -1
            return
        length = length if length > 0.0 else 1.0
        for j in range(A.shape[1]):
            unit[k, j] = A[i, j] / length
        right[k], norm[k] = b[i] / length, length
        k += 1
    grown[0] = k


@guvectorize(
    ["float64[:,::1], float64[::1], int64, float64[::1], float64[::1], float64[::1], float64[::1], int64[::1]"],
    "(c,n),(c),(),(n),(n)->(n),(n),(c)",
)
def tighten(unit, right, size, lower, upper, low, high, place):
    """The box lower ≤ x ≤ upper with each side moved in as far as some row, over the box, allows.

    ``place`` is where a row stands once those are left out that are slack all over the new box, by more than rounding,
    or no tighter than another with the same normal; −1 for these.
    """
    n = lower.shape[0]
    for j in range(n):
        low[j], high[j] = lower[j], upper[j]
    for i in range(size):
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
    extent = 0.0
    for j in range(n):
        extent = max(extent, max(abs(low[j]), abs(high[j])))
    key = np.empty(size)  # the same for rows with the same normal, and for hardly any others
    weight = np.cos(1.0 + np.arange(n))
    for i in range(size):
        most = key[i] = 0.0
        for j in range(n):
            a = unit[i, j]
            key[i] += a * weight[j]
            if a != 0.0:
                most += a * (high[j] if a > 0.0 else low[j])
        place[i] = -1 if most <= right[i] - MARGIN * (extent + abs(right[i])) else 0
    order = np.argsort(key)
    for s in range(size):
        i = order[s]
        for u in range(s + 1, size):
            k = order[u]
            if key[k] != key[i] or place[i] < 0:
                break
            same = place[k] >= 0
            for j in range(n):
                same = same and unit[i, j] == unit[k, j]
            if same:
                place[k if right[i] <= right[k] else i] = -1
    last = 0
    for i in range(right.shape[0]):
        if i < size and place[i] >= 0:
            place[i] = last
            last += 1
        else:
            place[i] = -1


@guvectorize(
    [
        "float64[:,::1], float64[::1], float64[::1], int64[::1], int64[::1], "
        "float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(c,n),(c),(c),(c),(q)->(q,n),(q),(q),()",
)
def compact(unit, right, norm, place, like, unit_, right_, norm_, size):
    """The rows that have a place, in it, in a store as long as ``like``, zeros behind them."""
    unit_[:], right_[:], norm_[:], size[0] = 0.0, 0.0, 0.0, 0
    for i in range(place.shape[0]):
        k = place[i]
        if k >= 0:
            for j in range(unit.shape[1]):
                unit_[k, j] = unit[i, j]
            right_[k], norm_[k] = right[i], norm[i]
            size[0] = k + 1
