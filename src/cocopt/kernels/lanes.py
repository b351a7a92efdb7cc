"""Eight trials in step: the active-set method as vector code.

The method of `cocopt.kernels.active_set`, for a box and rows. Each of eight lanes has a trial, and every step does the
same for all of them: find x(ν), see which rows it violates, let the worst one in where those that are in have settled,
and go along Newton's direction on these as far as the dual gains. No trial depends on its neighbours, to the bit.

What does not fit in, because it takes too many steps or rows, is far away, or has no solution, is to be left to the
method for one trial. So nothing here needs to succeed: a point is done on the same conditions as there, or never.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels._jit import in_order
from cocopt.kernels._vector import WIDTH, every, larger, load, root, save, size, smaller, some, spread, where
from cocopt.tolerances import FEASIBILITY, NEVER_BINDS

__all__ = ["SLOTS", "STEPS", "Lines", "along", "in_use", "lane_memory", "leave", "lines", "prepare", "rest", "step"]

SLOTS = 6  # rows that can be in at once
STEPS = 16  # after so many a trial is left to the method for one
TRIES = 6  # of the length of a step; what is left of it is for the next
POOR, FAIR = 1e-9, 0.1  # a pivot below the first counts as the second: of rows that depend any ascent will do

_kept = threading.local()


class Lines(NamedTuple):
    """Where in memory, whose lines have a number for each lane, something begins."""

    rows: int  # M·n lines: the normalised rows
    right: int  # M
    label: int  # M: what a kernel wants to know of its rows besides: their units, numbers or caps
    r: int  # M: ⟨row, x⟩ − right
    y: int  # n: the target
    z: int  # n: y − Σ ν_i row_i over the rows that are in
    x: int  # n: clip(z)
    free: int  # n: 1 where x = z
    a: int  # n: how z moves in a step
    held: int  # SLOTS·n: the rows that are in; zeros where a slot is empty
    held_right: int  # SLOTS
    held_r: int  # SLOTS
    which: int  # SLOTS: their numbers, −1 where a slot is empty
    nu: int  # SLOTS: their multipliers
    d: int  # SLOTS: how these move in a step
    factor: int  # SLOTS²: L D Lᵀ of the matrix of that step
    y_norm: int
    x_norm: int
    done: int  # 1 where x is the projection
    noise: int  # what counts as rounding there
    joins: int  # the row that joins, −1 for none; later in a step, who leaves
    used: int  # how many rows are
    trial: int  # whose lane it is, −1 for nobody's
    age: int  # its steps
    tries: int  # for those who solve a problem in several tries, each with more rows
    end: int


def _lines(M, n):
    """The lines for M rows of n coordinates."""
    r, p, s = M * n, 3 * M + M * n, 3 * M + M * n + (5 + SLOTS) * n
    e = s + SLOTS * (5 + SLOTS)
    return Lines(
        0, r, r + M, r + 2 * M,
        p, p + n, p + 2 * n, p + 3 * n, p + 4 * n, p + 5 * n,
        s, s + SLOTS, s + 2 * SLOTS, s + 3 * SLOTS, s + 4 * SLOTS, s + 5 * SLOTS,
        e, e + 1, e + 2, e + 3, e + 4, e + 5, e + 6, e + 7, e + 8, e + 9,
    )  # fmt: skip


lines = in_order(_lines)


def lane_memory(rows: int, dim: int) -> Array:
    """Memory for one call; a small one is kept for the thread."""
    memory: Array | None = getattr(_kept, "memory", None)
    size = _lines(rows, dim).end
    if memory is None or memory.shape[0] != size:
        memory = np.empty((size, WIDTH))
        if rows * dim <= 10_000:
            _kept.memory = memory
    return memory


@in_order
def empty(s, lane, memory, at):
    """The row in a slot of a lane leaves."""
    n = at.z - at.y
    memory[at.which + s, lane], memory[at.nu + s, lane], memory[at.held_right + s, lane] = -1.0, 0.0, 0.0
    for j in range(n):
        memory[at.held + s * n + j, lane] = 0.0


@in_order
def rest(lane, memory, at):
    """A lane gets a problem that is solved."""
    n = at.z - at.y
    memory[at.y_norm, lane] = 0.0
    for j in range(n):
        memory[at.y + j, lane] = 0.0
    for i in range(at.label - at.right):
        memory[at.right + i, lane] = NEVER_BINDS
        for j in range(n):
            memory[at.rows + i * n + j, lane] = 0.0


@in_order
def leave(lane, memory, at):
    """A lane becomes nobody's; until it is taken its last problem is solved again and again, for nobody."""
    memory[at.trial, lane], memory[at.age, lane], memory[at.tries, lane] = -1.0, 0.0, 0.0
    for s in range(SLOTS):
        if memory[at.which + s, lane] >= 0.0:
            empty(s, lane, memory, at)


@in_order
def residual(row, right, memory, at):
    """⟨row, x⟩ − right, of the row that begins at a line."""
    r = spread(0.0) - right
    for j in range(at.z - at.y):
        r = r + load(memory, row + j) * load(memory, at.x + j)
    return r


@in_order
def look(M, k, eps, lower, upper, memory, at):
    """Finds x(ν), who is done, and which of the first M rows joins where one is violated."""
    n = at.z - at.y
    zero, one, price, square = spread(0.0), spread(1.0), spread(0.0), spread(0.0)
    for s in range(k):
        price = price + load(memory, at.nu + s)
    for j in range(n):
        z = load(memory, at.y + j)
        for s in range(k):
            z = z - load(memory, at.nu + s) * load(memory, at.held + s * n + j)
        x = smaller(larger(z, spread(lower[j])), spread(upper[j]))
        save(memory, at.z + j, z)
        save(memory, at.x + j, x)
        save(memory, at.free + j, where(x == z, one, zero))
        square = square + x * x
    terms = load(memory, at.y_norm) + root(square)
    noise = (terms + price) * eps
    worst, joins = noise, spread(-1.0)
    for i in range(M):
        right = load(memory, at.right + i)
        r = residual(at.rows + i * n, right, memory, at)
        save(memory, at.r + i, r)
        excess = r - size(right) * eps
        worse = excess > worst
        worst, joins = where(worse, excess, worst), where(worse, spread(float(i)), joins)
    settled = zero == zero
    for s in range(k):
        right = load(memory, at.held_right + s)
        r = residual(at.held + s * n, right, memory, at)
        save(memory, at.held_r + s, r)
        settled = settled & (size(r) <= noise + size(right) * eps)
    done = settled & (joins < 0.0) & (noise <= terms * (0.25 * FEASIBILITY)) & (terms < NEVER_BINDS)
    save(memory, at.done, where(done, one, zero))
    save(memory, at.joins, where(settled, joins, spread(-1.0)))
    save(memory, at.x_norm, root(square))
    save(memory, at.noise, noise)


@in_order
def let_in(k, memory, at):
    """The rows that join get a slot each, if one is empty; returns how many slots are in use."""
    n = at.z - at.y
    for lane in range(WIDTH):
        i = int(memory[at.joins, lane])
        s = SLOTS if i < 0 else 0
        while s < SLOTS and memory[at.which + s, lane] >= 0.0:
            s += 1
        if s < SLOTS:
            if s == k:
                save(memory, at.held_r + s, spread(0.0))
                k += 1
            memory[at.which + s, lane], memory[at.held_right + s, lane], memory[at.held_r + s, lane] = (
                i,
                memory[at.right + i, lane],
                memory[at.r + i, lane],
            )
            for j in range(n):
                memory[at.held + s * n + j, lane] = memory[at.rows + i * n + j, lane]
    return k


@in_order
def newton(k, memory, at):
    """The direction d on the rows that are in: (A_F A_Fᵀ) d = r, F the coordinates between their bounds."""
    n = at.z - at.y
    for p in range(k):
        d = load(memory, at.held_r + p)
        for q in range(p + 1):
            entry = spread(0.0)
            for j in range(n):
                entry = entry + load(memory, at.held + p * n + j) * load(memory, at.free + j) * load(
                    memory, at.held + q * n + j
                )
            save(memory, at.factor + p * SLOTS + q, entry)
        pivot = load(memory, at.factor + p * SLOTS + p)
        for q in range(p):
            entry = load(memory, at.factor + p * SLOTS + q)
            for t in range(q):
                entry = entry - load(memory, at.factor + p * SLOTS + t) * load(
                    memory, at.factor + q * SLOTS + t
                ) * load(memory, at.factor + t * SLOTS + t)
            share = entry / load(memory, at.factor + q * SLOTS + q)
            save(memory, at.factor + p * SLOTS + q, share)
            pivot = pivot - share * entry
            d = d - share * load(memory, at.d + q)
        save(
            memory, at.factor + p * SLOTS + p, where(pivot > POOR, pivot, spread(FAIR))
        )  # (an empty slot has the pivot 0)
        save(memory, at.d + p, d)
    for t in range(k):
        p = k - 1 - t
        d = load(memory, at.d + p) / load(memory, at.factor + p * SLOTS + p)
        for q in range(p + 1, k):
            d = d - load(memory, at.factor + q * SLOTS + p) * load(memory, at.d + q)
        save(memory, at.d + p, d)


@in_order
def along(tries, start, tol, ceiling, alpha, done, lower, upper, memory, at):
    """(α, whether it is good enough): the root of h(α) = ⟨a, clip(z − α a)⟩ − b in [0, ceiling], or the ceiling.

    h never increases; ``start`` is h(0). Newton's method from a guess, inside a bracket.
    """
    n, zero = at.z - at.y, spread(0.0)
    low, high = zero, ceiling
    good = done
    for _ in range(tries):
        h, slope = start, zero
        for j in range(n):
            a = load(memory, at.a + j)
            z = load(memory, at.z + j) - alpha * a
            x = smaller(larger(z, spread(lower[j])), spread(upper[j]))
            h = h + a * (x - load(memory, at.x + j))
            free = where(x == z, a, zero)
            slope = slope + free * free
        above = h > 0.0
        good = (size(h) <= tol) | (above & (alpha >= ceiling)) | done
        if every(good):
            break
        low, high = where(above, alpha, low), where(above, high, alpha)
        guess = smaller(alpha + h / larger(slope, spread(1e-150)), alpha * 4.0)  # (h may be flat for a while)
        # (without a bracket the guess counts: if it is alpha itself, h is rounding)
        middle = where(high < NEVER_BINDS, (low + high) * 0.5, guess)
        middle = where(above & (guess >= ceiling), ceiling, middle)
        alpha = where(good, alpha, where((guess > low) & (guess < high), guess, middle))
    return alpha, good


@in_order
def advance(k, lower, upper, memory, at):
    """Goes along d, to where the dual gains no more or a multiplier is 0; rows with that multiplier leave."""
    n = at.z - at.y
    zero, one, never = spread(0.0), spread(1.0), spread(NEVER_BINDS)
    done = load(memory, at.done) > 0.0
    ceiling, rd, length = never, zero, zero
    for s in range(k):
        d = load(memory, at.d + s)
        rd, length = rd + d * load(memory, at.held_r + s), length + size(d)
        ceiling = smaller(ceiling, where(d < 0.0, load(memory, at.nu + s) / smaller(d, spread(-1e-150)) * -1.0, never))
    for j in range(n):
        a = zero
        for s in range(k):
            a = a + load(memory, at.d + s) * load(memory, at.held + s * n + j)
        save(memory, at.a + j, a)
    tol = length * load(memory, at.noise) * 0.25
    alpha, _ = along(TRIES, rd, tol, ceiling, smaller(one, ceiling), done, lower, upper, memory, at)
    alpha = where(done, zero, alpha)
    for s in range(k):
        d, nu = load(memory, at.d + s), load(memory, at.nu + s)
        leaves = (d < 0.0) & (alpha >= nu / smaller(d, spread(-1e-150)) * -1.0) & (load(memory, at.done) < 1.0)
        save(memory, at.nu + s, larger(nu + alpha * d, zero))
        if some(leaves):
            save(memory, at.joins, where(leaves, one, zero))
            for lane in range(WIDTH):
                if memory[at.joins, lane] > 0.0:
                    empty(s, lane, memory, at)


@in_order
def step(M, k, eps, lower, upper, memory, at):
    """One step of all lanes, of which at most k slots are in use; returns how many are afterwards."""
    look(M, k, eps, lower, upper, memory, at)
    k = let_in(k, memory, at)
    newton(k, memory, at)
    advance(k, lower, upper, memory, at)
    return k


@in_order
def in_use(k, memory, at):
    """How many of the first k slots are, the others having been left."""
    while k > 0 and not some(load(memory, at.which + k - 1) >= 0.0):
        k -= 1
    return k


@in_order
def prepare(memory, at):
    """Lanes that are nobody's."""
    for lane in range(WIDTH):
        for s in range(SLOTS):
            empty(s, lane, memory, at)
        rest(lane, memory, at)
        leave(lane, memory, at)
