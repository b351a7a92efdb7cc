"""Which rows are redundant over an outer box, and a store without them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit

__all__ = ["find_redundant", "keep_rows"]

SAFE = 1e-13  # by this share of its terms a row's bound on the box is taken wider, for rounding
LEAST = 1e-150  # coordinates of a normal below this bound nothing
MARGIN = 1e-9  # a row must be slack by this share of its terms to count as redundant


@njit
def tighten_box(unit, rhs, size, low, high):
    """Moves each side of the box low ≤ x ≤ high in as far as some row, over the box, allows."""
    n = low.shape[0]
    for i in range(size):
        least, terms = 0.0, abs(rhs[i])
        for j in range(n):
            a = unit[i, j]
            if a != 0.0:
                part = a * (low[j] if a > 0.0 else high[j])
                least += part
                terms += abs(part)
        room = rhs[i] - least + SAFE * terms  # what the coordinates have in common above their best
        if not terms < np.inf or room < 0.0:
            continue  # an open box; or, which is for the projection to find out, an empty one
        for j in range(n):
            a = unit[i, j]
            side = room / max(abs(a), LEAST)  # (no division by 0, even in vain)
            if a > LEAST:
                high[j] = min(high[j], low[j] + side)
            elif a < -LEAST:
                low[j] = max(low[j], high[j] - side)


@njit
def mark_slack(unit, rhs, size, low, high, place):
    """place = −1 for rows that are slack all over the box, by more than rounding, 0 for others."""
    n, extent = low.shape[0], 0.0
    for j in range(n):
        extent = max(extent, max(abs(low[j]), abs(high[j])))
    for i in range(size):
        most = 0.0
        for j in range(n):
            a = unit[i, j]
            if a != 0.0:
                most += a * (high[j] if a > 0.0 else low[j])
        place[i] = -1 if most < rhs[i] - MARGIN * (extent + abs(rhs[i])) else 0


@njit
def mark_repeated(unit, rhs, size, place):
    """place = −1 for rows that are no tighter than another with the same normal."""
    n = unit.shape[1]
    key = np.empty(size)  # the same for rows with the same normal, and for hardly any others
    weight = np.cos(1.0 + np.arange(n))
    for i in range(size):
        key[i] = 0.0
        for j in range(n):
            key[i] += unit[i, j] * weight[j]
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
                place[k if rhs[i] <= rhs[k] else i] = -1


@guvectorize(
    ["float64[:,::1], float64[::1], int64, float64[::1], float64[::1], float64[::1], float64[::1], int64[::1]"],
    "(c,n),(c),(),(n),(n)->(n),(n),(c)",
)
def find_redundant(unit, rhs, size, lower, upper, low, high, place):
    """The box lower ≤ x ≤ upper with each side moved in as far as some row, over the box, allows.

    ``place`` is the index of a row once those are left out that are slack all over the new box, by more than rounding,
    or no tighter than another with the same normal; −1 for these.
    """
    for j in range(lower.shape[0]):
        low[j], high[j] = lower[j], upper[j]
    tighten_box(unit, rhs, size, low, high)
    mark_slack(unit, rhs, size, low, high, place)
    mark_repeated(unit, rhs, size, place)
    count = 0
    for i in range(rhs.shape[0]):
        if i < size and place[i] >= 0:
            place[i] = count
            count += 1
        else:
            place[i] = -1


@guvectorize(
    [
        "float64[:,::1], float64[::1], float64[::1], int64[::1], int64[::1], "
        "float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(c,n),(c),(c),(c),(q)->(q,n),(q),(q),()",
)
def keep_rows(unit, rhs, norm, place, like, kept_unit, kept_rhs, kept_norm, size):
    """The rows that have a place, in it, in a store as long as ``like``, zeros behind them."""
    kept_unit[:], kept_rhs[:], kept_norm[:], size[0] = 0.0, 0.0, 0.0, 0
    for i in range(place.shape[0]):
        k = place[i]
        if k >= 0:
            for j in range(unit.shape[1]):
                kept_unit[k, j] = unit[i, j]
            kept_rhs[k], kept_norm[k] = rhs[i], norm[i]
            size[0] = k + 1
