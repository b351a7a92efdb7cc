"""Projection onto a polyhedron and the few of very many rows that bind, and the lists that say where to look for them.

The rows of a trial are normalised and stand in a store, the first ``size`` of it. A *list* has copies of those that
matter around an anchor: within its radius no other row of the store can be violated. A *short list* has those of the
list that matter around an anchor of its own, within a smaller radius. While a point stays within the latter only the
short list is looked through; when it leaves, a new one is made from the list, and seldom a new list from all rows.

A store is the tuple (unit, right, size), its lists are the tuple (rows, columns, few, short, around, counts) and are
changed in place. ``rows`` are the places in the store of the rows in the list, ``columns`` their normals and,
below, their right sides; ``few`` and ``short`` are the same for the short list. Both have the order of the store. A
line of ``around`` is a list's anchor, then its radius, then (for the short one) the radius that is usual. ``counts``:
how many rows each has, how many of the store they know, and how many were looked at to make lists, and short lists.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, inlined
from cocopt.kernels.active_set import IN, OUT, by_columns, distance, dot, lay_out, maximise, nearer
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED

__all__ = ["append", "box_many_rows", "compact", "relist", "tighten", "violated"]

SAFE = 1e-13  # by this share of its terms a row's bound on the box is taken wider, for rounding
MARGIN = 1e-9  # a row must be slack by this share of its terms to be forgotten
JOINS = 1000  # how often rows may join the working set in one projection
AT_ONCE = 4  # how many may join at a time
FRESH = 8  # of that many newest rows those that the target violates join at once
LISTS = 2  # lists that are made in one projection
FAR = 1000.0  # as for other kernels, but not for three digits: in a set that shrinks nearly every target is far
CHUNK = 64  # rows of the store that are looked through at a time
KNOWN, LOOKED, LISTED = 2, 3, 4  # places in ``counts``
SHARE = 8  # the radius of a list is chosen by one of so many rows


@inlined
def put(i, store, rows, columns, count):
    """Puts row i of the store behind the others of a list."""
    unit, right, _ = store
    n = unit.shape[1]
    rows[count], columns[n, count] = i, right[i]
    for j in range(n):
        columns[j, count] = unit[i, j]


@inlined
def enlist(x, store, lists):
    """Makes a list around x of about half the rows that it has room for; the short list is void then."""
    unit, right, size = store
    rows, columns, _, _, around, counts = lists
    n, room = x.shape[0], rows.shape[0]
    half = room // 2
    slack = np.empty(size)
    for i in range(size):
        slack[i] = right[i] - dot(unit[i], x)
    radius, count = np.inf, 0
    if size > half:
        some = slack[::SHARE]
        place = half * some.shape[0] // size
        radius = np.partition(some, place)[place]
        for i in range(size):
            count += slack[i] < radius
        if count > room:  # those few misled
            radius = np.partition(slack, half)[half]
    count = 0
    for i in range(size):
        if slack[i] < radius:
            put(i, store, rows, columns, count)
            count += 1
    for j in range(n):
        around[0, j] = x[j]
    around[0, n], around[1, n] = radius, -np.inf
    counts[0], counts[LOOKED] = count, counts[LOOKED] + size


@inlined
def shorten(x, lists):
    """Makes a short list around x, which the list reaches.

    The radius is the usual one, unless too many rows have less slack; if few have, the usual one grows.
    """
    rows, columns, few, short, around, counts = lists
    n, size = x.shape[0], counts[0]
    wanted = min(n + int(2.0 * np.sqrt(size)), few.shape[0] // 2)
    excess = np.empty(size)
    by_columns(columns, columns[n], size, x, excess)
    reach, usual = around[0, n] - distance(x, around[0, :n]), around[1, n + 1]
    radius, count = min(reach, usual), 0
    for i in range(size):
        count += excess[i] > -radius
    if 2 * count > 3 * wanted or (usual == np.inf and size > wanted):
        usual = -np.partition(excess, size - wanted)[size - wanted]
        around[1, n + 1] = usual if usual > 0.0 else np.inf
        radius = min(reach, usual)
    elif 2 * count < wanted and radius == usual:
        around[1, n + 1] = 1.25 * usual
    count = 0
    for i in range(size):  # (no branches: which rows are near cannot be predicted)
        few[count] = i
        count += excess[i] > -radius
    for j in range(n + 1):
        for c in range(count):
            short[j, c] = columns[j, few[c]]
    for c in range(count):
        few[c] = rows[few[c]]
    for j in range(n):
        around[1, j] = x[j]
    around[1, n] = radius
    counts[1], counts[LISTED] = count, counts[LISTED] + size


@inlined
def reaches(around, x):
    """Whether x is within the radius of a list."""
    n = x.shape[0]
    return distance(x, around[:n]) <= around[n]


@inlined
def approach(x, store, lists):
    """Makes what new lists it takes to reach x."""
    around = lists[4]
    if not reaches(around[1], x):
        if not reaches(around[0], x):
            enlist(x, store, lists)
        if reaches(around[0], x):  # unless more rows are violated than it has room for
            shorten(x, lists)


@inlined
def learn(store, lists):
    """Tells the lists about the rows that are new in the store; one that has no room for them gets the radius −inf."""
    unit, right, size = store
    rows, columns, few, short, around, counts = lists
    n = unit.shape[1]
    for i in range(counts[KNOWN], size):
        if right[i] - dot(unit[i], around[0, :n]) < around[0, n]:
            if counts[0] == rows.shape[0]:
                around[0, n] = around[1, n] = -np.inf
                break
            put(i, store, rows, columns, counts[0])
            counts[0] += 1
        if right[i] - dot(unit[i], around[1, :n]) < around[1, n]:
            if counts[1] == few.shape[0]:
                around[1, n] = -np.inf
            else:
                put(i, store, few, short, counts[1])
                counts[1] += 1
    counts[KNOWN] = size


@inlined
def join(i, excess, found, most):
    """Puts row i among the most violated, the most violated one first."""
    p = found.shape[0] - 1
    while p > 0 and excess > most[p - 1]:
        found[p], most[p] = found[p - 1], most[p - 1]
        p -= 1
    found[p], most[p] = i, excess


@inlined
def look_through(rows, columns, count, x, noise, eps, found, most):
    """The rows of a list that x violates most, beyond rounding, join those found."""
    last = found.shape[0] - 1
    excess, right = np.empty(count), columns[x.shape[0]]
    by_columns(columns, right, count, x, excess)
    for p in range(count):
        if excess[p] > noise:
            own = excess[p] - noise - eps * abs(right[p])
            if own > most[last]:
                join(rows[p], own, found, most)


@inlined
def search(x, store, lists, noise, eps, found, most):
    """The rows that x violates most, beyond rounding; −1 for none.

    By the same sums wherever it looks: what is found must not depend on the lists.
    """
    unit, _, size = store
    rows, columns, few, short, around, counts = lists
    for p in range(found.shape[0]):
        found[p], most[p] = -1, 0.0
    near = reaches(around[1], x)
    if near or reaches(around[0], x):
        if near:
            rows, columns = few, short
        look_through(rows, columns, counts[1 if near else 0], x, noise, eps, found, most)
    else:
        places, some = np.empty(CHUNK, dtype=np.int64), np.empty((unit.shape[1] + 1, CHUNK))
        for first in range(0, size, CHUNK):
            count = min(CHUNK, size - first)
            for p in range(count):
                put(first + p, store, places, some, p)
            look_through(places, some, count, x, noise, eps, found, most)


@guvectorize(
    [
        "float64[::1], boolean, float64[::1], float64[::1], float64[:,::1], float64[::1], int64, "
        "float64[:,::1], float64[::1], int64, "
        "int64[::1], float64[:,::1], int64[::1], float64[:,::1], float64[:,::1], int64[::1], "
        "int64[::1], float64[:,::1], float64[:,::1], float64[::1], int64[::1], int64[::1]"
    ],
    "(n),(),(n),(n),(p,n),(p),(),(c,n),(c),(),(k),(e,k),(f),(e,f),(b,a),(h),(w),(s,n),(t,m)->(n),(w),()",
)
def box_many_rows(
    y, active, lower, upper, own, own_right, equalities,
    unit, right, size, rows, columns, few, short, around, counts, warm, wide, tall,
    x, bound, status,
):  # fmt: skip
    """K = {lower ≤ x ≤ upper, own·x ≤ own_right, the first ``equalities`` rows with equality}, and unit·x ≤ right.

    The dual active-set method of `cocopt.kernels.rows` works on a working set, at first the rows ``warm``; whenever it
    is done, the most violated of the others join. Each time the dual gains, so this ends, and it ends at the projection
    onto all rows. ``bound`` are those that bind, −1 for none. ``wide`` and ``tall`` are the `scratch` of p + w rows; if
    more than w have to be held at once the status is UNCONVERGED. A trial that is not ``active`` gets y back.
    """
    n, p, w = y.shape[0], own.shape[0], warm.shape[0]
    m = p + w
    store, lists = (unit, right, size), (rows, columns, few, short, around, counts)
    learn(store, lists)
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
    held, _, _, lines, vectors = lay_out(wide, tall)
    rights, caps, nu, state = vectors[0], vectors[1], vectors[2], vectors[3]
    which, target = vectors[7].view(np.int64), y
    found, most = bound[:AT_ONCE], vectors[4][:AT_ONCE]  # what these are for comes at another time
    eps = rounding(n)
    k = p
    for i in range(p):
        rights[i], which[i] = own_right[i], -1
        for j in range(n):
            held[i, j] = lines[j, i] = own[i, j]
    for i in range(w + FRESH):
        joins = warm[i] if i < w else size - 1 - (i - w)
        new = joins >= 0 and k < m and (i < w or dot(unit[joins], y) > right[joins])
        for q in range(p, k if i >= w else p):
            new = new and which[q] != joins
        if new:
            which[k], rights[k] = joins, right[joins]
            for j in range(n):
                held[k, j] = lines[j, k] = unit[joins, j]
            k += 1
    for i in range(m):
        caps[i] = np.inf
    for i in range(k):
        nu[i] = 0.0
        state[i] = IN if i < equalities else OUT
    for again in range(2):
        for attempt in range(JOINS):
            status[0] = maximise(target, y_norm, lower, upper, k, equalities, False, wide, tall, nu, x)
            if status[0] != CONVERGED:
                return
            noise = y_norm + np.sqrt(dot(x, x))
            for i in range(k):
                noise += abs(nu[i])
            if attempt < LISTS:
                approach(x, store, lists)
            search(x, store, lists, noise * eps, eps, found, most)
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
                                held[k, j] = lines[j, k] = held[i, j]
                            k += 1
                    if k == m:
                        status[0] = UNCONVERGED
                        return
                which[k], rights[k], nu[k], state[k] = found[f], right[found[f]], 0.0, OUT
                for j in range(n):
                    held[k, j] = lines[j, k] = unit[found[f], j]
                k += 1
                joined += 1
            if joined == 0:
                break
            status[0] = UNCONVERGED
        if status[0] != CONVERGED:
            return
        x_norm = np.sqrt(dot(x, x))
        if again == 1 or y_norm <= FAR * x_norm or x_norm == 0.0:
            break
        # y − Aᵀν has lost digits that x can have: go on from a target that is near
        target = np.empty(n)
        tau = nearer(y, x, x_norm, target)
        y_norm = np.sqrt(dot(target, target))
        for i in range(k):
            nu[i] *= tau
    binding = 0
    for i in range(p, k):
        if state[i] == IN:
            bound[binding] = which[i]
            binding += 1
    for i in range(binding, AT_ONCE):
        bound[i] = -1


@guvectorize(
    [
        "float64[::1], boolean, float64, float64[:,::1], float64[::1], int64, int64[::1], float64[:,::1], "
        "int64[::1], float64[:,::1], float64[:,::1], int64[::1], int64[::1], int64[::1]"
    ],
    "(n),(),(),(c,n),(c),(),(k),(e,k),(f),(e,f),(b,a),(h),(g)->(g)",
)
def violated(x, active, share, unit, right, size, rows, columns, few, short, around, counts, like, found):
    """The rows that x violates most, by more than this share of their terms, as many as ``like`` has; −1 for none.

    The lists must know all rows.
    """
    for f in range(found.shape[0]):
        found[f] = -1
    if not active:
        return
    most = np.empty(found.shape[0])
    noise = share * np.sqrt(dot(x, x))
    store, lists = (unit, right, size), (rows, columns, few, short, around, counts)
    search(x, store, lists, noise, share, found, most)


@guvectorize(
    [
        "float64[::1], float64[:,::1], float64[::1], int64, int64[::1], float64[:,::1], "
        "int64[::1], float64[:,::1], float64[:,::1], int64[::1], int64[::1]"
    ],
    "(n),(c,n),(c),(),(k),(e,k),(f),(e,f),(b,a),(h)->()",
)
def relist(x, unit, right, size, rows, columns, few, short, around, counts, listed):
    """Tells the lists about new rows and makes them anew if they do not reach x; returns how many rows are listed."""
    store, lists = (unit, right, size), (rows, columns, few, short, around, counts)
    learn(store, lists)
    approach(x, store, lists)
    listed[0] = counts[0]


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
