"""Lists of the rows that can be violated near a point.

A list has copies of the rows whose slack at an *anchor* is less than its *radius*. A row of length 1 with more slack
cannot be violated within that radius. So within a list's ball no row can be violated that is in the next list (for the
last list, in the store) but not in the list itself, and where a list and all the next ones cover a point, none but its
own rows can be violated there. Each list has four times the capacity of the one before. While a point stays in the ball
of the first list, only that one is searched; when it leaves, a new one is made from the second, and so on.

A list is made of blocks, whose columns are rows: the normal and, below it, the right-hand side and the index in the
store. They are evaluated in groups of WIDTH. Lists are changed in place. A list takes note of rows that are new in the
store only when it is used.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import guvectorize, in_order, inlined, njit
from cocopt.kernels.persistent.rows import Rows
from cocopt.kernels.simd.vector import WIDTH, broadcast, load, sqrt, store, table
from cocopt.kernels.vectors import dot
from cocopt.tolerances import NEVER_BINDS

__all__ = [
    "BLOCK",
    "GROUPS",
    "MAX_LISTS",
    "Lists",
    "copy_row",
    "covering_list",
    "evaluate_group",
    "first_block",
    "lists_of_trial",
    "pad_group",
    "rebuild_lists",
    "recenter_lists",
]

BLOCK = 64  # rows in a block
GROUPS = BLOCK // WIDTH  # in a block
MAX_LISTS = WIDTH  # so that one vector has a number for each list
RADII = 16  # tried for a list, each half or twice the last, or between two


class Lists(NamedTuple):
    """The lists of one trial."""

    blocks: Any  # (blocks of all lists, n + 2, BLOCK)
    balls: Any  # (n + 2, MAX_LISTS): a column is a list's anchor, its radius, and the radius that it had last
    size: Any  # (lists): rows in each list
    known: Any  # (lists): so many rows of the store, the first ones, each list takes into account
    evaluated: Any  # (lists): rows evaluated so far when each list was searched or made; for tests and benchmarks
    first_size: Any  # blocks of the first list


@inlined
def make_lists(blocks, balls, counts):
    """The lists from the arrays of one trial; ``counts`` has the lines size, known and evaluated."""
    return Lists(
        blocks, balls, counts[0], counts[1], counts[2], 3 * blocks.shape[0] // ((1 << 2 * counts.shape[1]) - 1)
    )


@inlined
def lists_of_trial(all_lists, t):
    """The lists of trial t."""
    blocks, balls, counts = all_lists
    return make_lists(blocks[t], balls[t], counts[t])


@inlined
def first_block(level, lists):
    """The position of the first block of a list, behind those of the lists before it."""
    return lists.first_size * ((1 << 2 * level) - 1) // 3


@inlined
def copy_row(i, rows, block, column):
    """Copies row i of the store to a column of a block."""
    unit, rhs, _ = rows
    n = unit.shape[1]
    block[n, column], block[n + 1, column] = rhs[i], i
    for j in range(n):
        block[j, column] = unit[i, j]


@inlined
def pad_group(block, count):
    """Makes the columns behind the first ``count`` of a block, in the same group, rows that never bind."""
    n = block.shape[0] - 2
    while count % WIDTH != 0:
        block[n, count] = NEVER_BINDS
        for j in range(n):
            block[j, count] = 0.0
        count += 1


@in_order
def evaluate_group(blocks, block, group, x):
    """⟨row, x⟩ − rhs of the rows of a group; the same for a row in whatever list it is, since no sum is reordered."""
    n = x.shape[0]
    lines = table(blocks, block * (n + 2) * GROUPS + group, GROUPS)
    total = broadcast(0.0) - load(lines, n, 0)
    for j in range(n):
        total = total + load(lines, j, 0) * x[j]
    return total


@inlined
def add_new_rows(level, rows, lists):
    """Adds the rows that are new in the store to a list; False if it has no room for them, and is void then."""
    unit, rhs, size = rows
    blocks, balls, list_size, known, _, _ = lists
    n, first, end = unit.shape[1], first_block(level, lists), first_block(level + 1, lists)
    for i in range(known[level], size):
        slack = rhs[i]
        for j in range(n):
            slack -= unit[i, j] * balls[j, level]
        if slack < balls[n, level]:
            block, column = first + list_size[level] // BLOCK, list_size[level] % BLOCK
            if block == end:
                balls[n, level] = -np.inf
                return False
            copy_row(i, rows, blocks[block], column)
            if column % WIDTH == 0:
                pad_group(blocks[block], column + 1)
            list_size[level] += 1
    known[level] = size
    return True


@inlined
def covering_list(x, rows, lists, memory):
    """The first list that has all rows that x can violate; if none has, the number of lists, for the store."""
    count = lists.size.shape[0]
    balls, margin = table(lists.balls, 0, 1), table(memory, 0, 1)
    square = broadcast(0.0)
    for j in range(x.shape[0]):
        difference = load(balls, j) - x[j]
        square = square + difference * difference
    store(load(balls, x.shape[0]) - sqrt(square), margin, 0)
    level = count
    while level > 0 and margin[0, level - 1] >= 0.0:
        level -= 1
    while level < count and not add_new_rows(level, rows, lists):
        level += 1
    return level


@njit
def mark_nearby(count, excess, radius, marks):
    """marks = 1 for rows with less slack, −excess, than the radius, 0 for others; returns how many have."""
    marked = 0
    for i in range(count):
        marks[i] = 1 if excess[i] > -radius else 0
        marked += marks[i]
    return marked


@njit
def choose_radius(count, excess, last_radius, capacity, marks):
    """A radius, and marks of the rows within it: between a quarter and three quarters of the capacity, if possible.

    Fewer if there are not as many, or if no such radius was found; none, and −inf, if more have no slack at all.
    """
    radius, low, high = np.inf, -np.inf, np.inf
    if 4 * count > 3 * capacity:
        radius = last_radius
        if radius == 0.0:
            radius = np.mean(np.abs(excess[:count]))
    marked = mark_nearby(count, excess, radius, marks)
    for _ in range(RADII):
        if 4 * marked > 3 * capacity:
            high = radius
        elif 4 * marked < min(capacity, count):
            low = radius
        else:
            return radius
        radius = 2.0 * low if high == np.inf else 0.5 * (max(low, 0.0) + high)
        marked = mark_nearby(count, excess, radius, marks)
    mark_nearby(count, excess, low, marks)
    return low


@inlined
def copy_marked(level, count, from_store, marks, chosen, rows, lists):
    """Copies the marked ones of ``count`` rows of the next list, or of the store, to a list; ``chosen`` is memory."""
    blocks, n = lists.blocks, rows.unit.shape[1]
    flat = blocks.reshape(-1)
    first, source = first_block(level, lists), first_block(level + 1, lists)
    copied = 0
    for b in range(0, count, BLOCK):  # (no branches: which rows are near cannot be predicted)
        position = b if from_store else (source + b // BLOCK) * (n + 2) * BLOCK
        for i in range(min(BLOCK, count - b)):
            chosen[copied] = position + i
            copied += marks[b + i]
    for b in range(0, copied, BLOCK):
        block, columns = blocks[first + b // BLOCK], min(BLOCK, copied - b)
        if from_store:
            for c in range(columns):
                copy_row(chosen[b + c], rows, block, c)
        else:
            for j in range(n + 2):
                for c in range(columns):
                    block[j, c] = flat[chosen[b + c] + j * BLOCK]
        pad_group(block, columns)
    lists.size[level], lists.known[level] = copied, rows.size


@inlined
def build_list(level, x, rows, lists, memory):
    """Makes a list around x from the next one, which covers x. Those before it must not be used until made anew."""
    unit, rhs, count = rows
    balls, n, from_store = lists.balls, x.shape[0], level + 1 == lists.size.shape[0]
    first, source = first_block(level, lists), first_block(level + 1, lists)
    if from_store:
        memory = np.empty((2, count))
        for i in range(count):
            memory[0, i] = dot(unit[i], x) - rhs[i]
    else:
        count = lists.size[level + 1]
        lines = table(memory, 0, 1)
        for g in range((count + WIDTH - 1) // WIDTH):
            store(evaluate_group(lists.blocks, source + g // GROUPS, g % GROUPS, x), lines, g)
    lists.evaluated[level] += count
    excess, marks = memory[0], memory[1].view(np.int64)
    radius = choose_radius(count, excess, balls[n + 1, level], (source - first) * BLOCK, marks)
    if radius < np.inf:
        balls[n + 1, level] = max(radius, 0.0)
    copy_marked(level, count, from_store, marks, excess.view(np.int64), rows, lists)
    for j in range(n):
        balls[j, level] = x[j]
    balls[n, level] = radius if radius > 0.0 else -np.inf


@njit
def rebuild_lists(level, x, rows, lists, memory):
    """Makes the lists before this one, which covers x, anew around x; returns the first that covers x."""
    for first in range(level - 1, -1, -1):
        build_list(first, x, rows, lists, memory)
        if lists.balls[x.shape[0], first] < 0.0:
            break
        level = first
    return level


@guvectorize(
    [
        "float64[::1], float64[:,::1], float64[::1], int64, "
        "float64[:,:,::1], float64[:,::1], int64[:,::1], float64[:,::1], int64[::1]"
    ],
    "(n),(c,n),(c),(),(q,e,b),(e,a),(h,l),(u,v)->()",
)
def recenter_lists(x, unit, rhs, size, blocks, balls, counts, memory, covering):
    """Makes those lists anew around x that do not cover it; returns the first that does."""
    rows, lists = Rows(unit, rhs, size), make_lists(blocks, balls, counts)
    covering[0] = rebuild_lists(covering_list(x, rows, lists, memory), x, rows, lists, memory)
