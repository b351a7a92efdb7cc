"""The rows that a point violates most."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import guvectorize, inlined, njit
from cocopt.kernels.persistent.lists import (
    BLOCK,
    copy_row,
    covering_list,
    evaluate_group,
    first_block,
    make_lists,
    pad_group,
)
from cocopt.kernels.persistent.rows import Rows
from cocopt.kernels.simd.vector import WIDTH, any_lane, store, table
from cocopt.kernels.vectors import norm

__all__ = ["MostViolated", "find_violated", "search"]


class MostViolated(NamedTuple):
    """The most violated rows that were found, the most violated one first."""

    index: Any  # in the store; −1 behind the last
    excess: Any  # by how much, beyond rounding


@inlined
def keep_most_violated(i, excess, found):
    """Inserts row i, which is violated more than the last one."""
    index, most = found
    p = index.shape[0] - 1
    while p > 0 and excess > most[p - 1]:
        index[p], most[p] = index[p - 1], most[p - 1]
        p -= 1
    index[p], most[p] = i, excess


@inlined
def search_block(blocks, block, count, x, tolerance, memory, found):
    """Searches the first ``count`` rows of a block for those that x violates most."""
    noise, eps = tolerance
    n, last, values = x.shape[0], found.index.shape[0] - 1, table(memory, 0, 1)
    for group in range((count + WIDTH - 1) // WIDTH):
        residual = evaluate_group(blocks, block, group, x)
        if any_lane(residual > noise):
            store(residual, values, 0)
            for p in range(WIDTH):
                column = group * WIDTH + p
                excess = values[0, p] - noise - eps * abs(blocks[block, n, column])
                if excess > found.excess[last]:
                    keep_most_violated(int(blocks[block, n + 1, column]), excess, found)


@njit
def search(level, x, rows, lists, tolerance, memory, found):
    """Finds the rows that x violates most, by more than noise + eps·|rhs|, in a list that covers x, or in the store.

    By the same sums wherever it searches: what is found must not depend on the lists.
    """
    for f in range(found.index.shape[0]):
        found.index[f], found.excess[f] = -1, 0.0
    if level < lists.size.shape[0]:
        first, size = first_block(level, lists), lists.size[level]
        for b in range(0, size, BLOCK):
            search_block(lists.blocks, first + b // BLOCK, min(BLOCK, size - b), x, tolerance, memory, found)
        lists.evaluated[level] += size
    else:
        block = np.empty((1, x.shape[0] + 2, BLOCK))
        for b in range(0, rows.size, BLOCK):
            count = min(BLOCK, rows.size - b)
            for p in range(count):
                copy_row(b + p, rows, block[0], p)
            pad_group(block[0], count)
            search_block(block, 0, count, x, tolerance, memory, found)
        lists.evaluated[level - 1] += rows.size


@guvectorize(
    [
        "float64[::1], boolean, float64, float64[:,::1], float64[::1], int64, "
        "float64[:,:,::1], float64[:,::1], int64[:,::1], float64[:,::1], int64[::1], int64[::1]"
    ],
    "(n),(),(),(c,n),(c),(),(q,e,b),(e,a),(h,l),(u,v),(g)->(g)",
)
def find_violated(x, active, share, unit, rhs, size, blocks, balls, counts, memory, like, found):
    """The rows that x violates most, by more than this share of their terms, as many as ``like`` has; −1 for none."""
    rows, lists = Rows(unit, rhs, size), make_lists(blocks, balls, counts)
    most_violated = MostViolated(found, np.empty(found.shape[0]))
    if active:
        tolerance = (share * norm(x), share)
        search(covering_list(x, rows, lists, memory), x, rows, lists, tolerance, memory, most_violated)
    else:
        for f in range(found.shape[0]):
            found[f] = -1
