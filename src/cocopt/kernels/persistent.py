"""Projection onto a polyhedron and the few of very many rows that bind, and the lists that say where to look for them.

The rows of a trial are normalised and stand in a store, the first ``size`` of it. *Lists* have copies of those that
matter around an anchor: within a list's radius no row can be violated that is in the list behind it (for the last one,
in the store) but not in the list itself, since its slack at the anchor is larger. So where a list and all behind it
reach, none but its own rows can. Each has four times the room of the one before. While a point stays where the first
one reaches, only that is looked through; when it leaves, a new one is made from the second, and so on.

A store is the tuple (unit, right, size), its lists are the tuple (blocks, around, counts) and are changed in place. A
list is some blocks, whose columns are rows: a normal and, below, the right side and the place in the store; they are
looked at in groups of WIDTH. A column of ``around`` is a list's anchor, its radius, and the radius that is usual;
``counts`` are how many rows each list has and how many of the store it knows: of new ones it learns when it is looked
at.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, in_order, inlined, njit
from cocopt.kernels._vector import WIDTH, load, root, save, some, spread
from cocopt.kernels.active_set import DualProblem, dot, maximise_dual, move_target_closer, store_columns
from cocopt.kernels.lanes import SLOTS, STEPS, in_use, lane_memory, leave, lines, prepare, step
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.kernels.workspace import ACTIVE, INACTIVE, workspace_memory, workspace_views
from cocopt.tolerances import NEVER_BINDS

__all__ = [
    "BLOCK",
    "ROWS",
    "WIDTH",
    "append",
    "box_many_rows",
    "compact",
    "lane_memory",
    "relist",
    "tighten",
    "violated",
    "workspace_memory",
]

SAFE = 1e-13  # by this share of its terms a row's bound on the box is taken wider, for rounding
LEAST = 1e-150  # coordinates of a normal below this bound nothing
MARGIN = 1e-9  # a row must be slack by this share of its terms to be forgotten
JOINS = 1000  # how often rows may join the working set in one projection
AT_ONCE = 4  # how many may join at a time
FRESH = 4  # of that many newest rows those that the target violates join at once
RECENT = 4  # rows that the next projection starts with, if no more bind
LISTS = 2  # attempts in which lists are made
FAR = 1000.0  # as for other kernels, but not for three digits: in a set that shrinks nearly every target is far
ROWS = 16  # rows that a trial has room for where several go in step
IN_STEP, SHORT = 8, 16  # trials from which on they do, dimensions up to which
BLOCK = 64  # rows in a block of a list
GROUPS = BLOCK // WIDTH  # of rows that are looked at together
GUESSES = 16  # of the radius of a list, each half or twice the last, or between two


@inlined
def start(level, lists):
    """The place of the first block of a list, behind those of the lists before it."""
    return lists[3] * ((1 << 2 * level) - 1) // 3


@inlined
def all_lists(blocks, around, counts):
    """The lists as a tuple, with the number of blocks of the first."""
    return blocks, around, counts, 3 * blocks.shape[0] // ((1 << 2 * counts.shape[1]) - 1)


@inlined
def put(i, store, block, place):
    """Puts row i of the store in a place of a block."""
    unit, right, _ = store
    n = unit.shape[1]
    block[n, place], block[n + 1, place] = right[i], i
    for j in range(n):
        block[j, place] = unit[i, j]


@in_order
def excess(blocks, block, group, x):
    """⟨row, x⟩ − right of the rows of a group; the same for a row wherever it stands."""
    n = x.shape[0]
    line = block * (n + 2) * GROUPS + group
    total = spread(0.0) - load(blocks, line + n * GROUPS)
    for j in range(n):
        total = total + load(blocks, line + j * GROUPS) * x[j]
    return total


@inlined
def close(block, count):
    """Makes the places behind the first ``count`` of a block, in the same group, those of rows that never bind."""
    n = block.shape[0] - 2
    while count % WIDTH != 0:
        block[n, count] = NEVER_BINDS
        for j in range(n):
            block[j, count] = 0.0
        count += 1


@inlined
def learn(level, store, lists):
    """Tells a list about the rows that are new in the store; False if it has no room for them, and is void then."""
    unit, right, size = store
    blocks, around, counts, _ = lists
    n, first, behind = unit.shape[1], start(level, lists), start(level + 1, lists)
    for i in range(counts[1, level], size):
        slack = right[i]
        for j in range(n):
            slack -= unit[i, j] * around[j, level]
        if slack < around[n, level]:
            block, place = first + counts[0, level] // BLOCK, counts[0, level] % BLOCK
            if block == behind:
                around[n, level] = -np.inf
                return False
            put(i, store, blocks[block], place)
            if place % WIDTH == 0:
                close(blocks[block], place + 1)
            counts[0, level] += 1
    counts[1, level] = size
    return True


@inlined
def serving(x, store, lists, work):
    """The first list that has all rows that x can violate; if none has, the number of lists, for the store."""
    _, around, counts, _ = lists
    square = spread(0.0)
    for j in range(x.shape[0]):
        apart = load(around, j) - x[j]
        square = square + apart * apart
    save(work, 0, load(around, x.shape[0]) - root(square))
    level = counts.shape[1]
    while level > 0 and work[0, level - 1] >= 0.0:
        level -= 1
    while level < counts.shape[1] and not learn(level, store, lists):
        level += 1
    return level


@njit
def mark(size, excess, radius, marks):
    """marks = 1 for rows with less slack, −excess, than the radius, 0 for others; returns how many have."""
    count = 0
    for i in range(size):
        marks[i] = 1 if excess[i] > -radius else 0
        count += marks[i]
    return count


@inlined
def fill(level, x, store, lists, work):
    """Makes a list around x from the one behind it, which serves x. Those before it must not be used until made anew.

    It gets between a quarter and three quarters of the rows that it has room for, fewer if there are not as many or if
    no radius was found that leaves so many; it is void if more have no slack at all.
    """
    unit, right, size = store
    blocks, around, counts, _ = lists
    n, from_store, flat = x.shape[0], level + 1 == counts.shape[1], blocks.reshape(-1)
    first, behind = start(level, lists), start(level + 1, lists)
    room = (behind - first) * BLOCK
    if from_store:
        work = np.empty((2, size))
        slack = work[0]
        for i in range(size):
            slack[i] = dot(unit[i], x) - right[i]
    else:
        size, slack = counts[0, level + 1], work[0]
        for g in range((size + WIDTH - 1) // WIDTH):
            save(work, g, excess(blocks, behind + g // GROUPS, g % GROUPS, x))
    marks, radius, low, high = work[1].view(np.int64), np.inf, -np.inf, np.inf
    if 4 * size > 3 * room:
        radius = around[n + 1, level]
        if radius == 0.0:
            radius = np.mean(np.abs(slack[:size]))
    count = mark(size, slack, radius, marks)
    for _ in range(GUESSES):
        if 4 * count > 3 * room:
            high = radius
        elif 4 * count < min(room, size):
            low = radius
        else:
            break
        radius = 2.0 * low if high == np.inf else 0.5 * (max(low, 0.0) + high)
        count = mark(size, slack, radius, marks)
    else:
        radius = low
        mark(size, slack, radius, marks)
    if radius < np.inf:
        around[n + 1, level] = max(radius, 0.0)
    count, chosen = 0, slack.view(np.int64)
    for b in range(0, size, BLOCK):  # (no branches: which rows are near cannot be predicted)
        place = b if from_store else (behind + b // BLOCK) * (n + 2) * BLOCK
        for i in range(min(BLOCK, size - b)):
            chosen[count] = place + i
            count += marks[b + i]
    for b in range(0, count, BLOCK):
        block, some_rows = blocks[first + b // BLOCK], min(BLOCK, count - b)
        if from_store:
            for c in range(some_rows):
                put(chosen[b + c], store, block, c)
        else:
            for j in range(n + 2):
                for c in range(some_rows):
                    block[j, c] = flat[chosen[b + c] + j * BLOCK]
        close(block, some_rows)
    for j in range(n):
        around[j, level] = x[j]
    around[n, level] = radius if radius > 0.0 else -np.inf
    counts[0, level], counts[1, level] = count, store[2]


@njit
def descend(level, x, store, lists, work):
    """Makes the lists before this one around x; returns the first that serves x."""
    around, n = lists[1], x.shape[0]
    for first in range(level - 1, -1, -1):
        fill(first, x, store, lists, work)
        if around[n, first] < 0.0:
            break
        level = first
    return level


@inlined
def join(i, excess, found, most):
    """Puts row i among the most violated, the most violated one first."""
    p = found.shape[0] - 1
    while p > 0 and excess > most[p - 1]:
        found[p], most[p] = found[p - 1], most[p - 1]
        p -= 1
    found[p], most[p] = i, excess


@inlined
def look_through(blocks, block, count, x, noise, eps, work, found, most):
    """The first rows of a block that x violates most, beyond rounding, join those found."""
    n, last = x.shape[0], found.shape[0] - 1
    for group in range((count + WIDTH - 1) // WIDTH):
        worse = excess(blocks, block, group, x)
        if some(worse > noise):
            save(work, 0, worse)
            for p in range(WIDTH):
                place = group * WIDTH + p
                own = work[0, p] - noise - eps * abs(blocks[block, n, place])
                if own > most[last]:
                    join(int(blocks[block, n + 1, place]), own, found, most)


@njit
def search(level, x, store, lists, noise, eps, work, found, most):
    """The rows that x violates most, beyond rounding; −1 for none. This list, or the store, must serve x.

    By the same sums wherever it looks: what is found must not depend on the lists.
    """
    blocks, _, counts, _ = lists
    if level < counts.shape[1]:
        first = start(level, lists)
        for b in range(0, counts[0, level], BLOCK):
            count = min(BLOCK, counts[0, level] - b)
            look_through(blocks, first + b // BLOCK, count, x, noise, eps, work, found, most)
    else:
        some_rows = np.empty((1, x.shape[0] + 2, BLOCK))
        for b in range(0, store[2], BLOCK):
            count = min(BLOCK, store[2] - b)
            for p in range(count):
                put(b + p, store, some_rows[0], p)
            close(some_rows[0], count)
            look_through(some_rows, 0, count, x, noise, eps, work, found, most)


@inlined
def hold(i, store, k, working):
    """Row i of the store becomes the k-th of the working set."""
    unit, right, _ = store
    working.row_index[k] = i
    working.rhs[k], working.max_multiplier[k] = right[i], np.inf
    working.multiplier[k], working.row_state[k] = 0.0, INACTIVE
    for j in range(unit.shape[1]):
        working.rows[k, j] = unit[i, j]


@njit
def alone(y, lower, upper, own, own_right, equalities, store, lists, warm, dim_memory, row_memory, work, x, bound):
    """One trial of `box_many_rows`; returns a status."""
    n, p, w = y.shape[0], own.shape[0], warm.shape[0]
    m = p + w
    unit, right, size = store
    for i in range(w):
        bound[i] = -1
    for j in range(n):
        x[j] = y[j]
    y_norm = np.sqrt(dot(y, y))
    if not y_norm < np.inf:
        return NONFINITE
    working = workspace_views(dim_memory, row_memory)
    nu, state, which, target = working.multiplier, working.row_state, working.row_index, y
    found, most = bound[:AT_ONCE], working.residual[:AT_ONCE]  # what these are for comes at another time
    eps = rounding(n)
    k = p
    for i in range(p):
        working.rhs[i], working.max_multiplier[i], nu[i] = own_right[i], np.inf, 0.0
        state[i], which[i] = ACTIVE if i < equalities else INACTIVE, -1
        for j in range(n):
            working.rows[i, j] = own[i, j]
    while k < m and warm[k - p] >= 0:
        hold(warm[k - p], store, k, working)
        k += 1
    for i in range(max(size - FRESH, 0), size):
        new = k < m and dot(unit[i], y) > right[i]
        for q in range(p, k):
            new = new and which[q] != i
        if new:
            hold(i, store, k, working)
            k += 1
    for again in range(2):
        for attempt in range(JOINS):
            store_columns(working, k)
            problem = DualProblem(target, y_norm, lower, upper, k, equalities, False)
            status = maximise_dual(problem, working, nu, x)
            if status != CONVERGED:
                return status
            noise = y_norm + np.sqrt(dot(x, x))
            for i in range(k):
                noise += abs(nu[i])
            for f in range(AT_ONCE):
                found[f], most[f] = -1, 0.0
            level = serving(x, store, lists, work)
            if level > 0 and attempt < LISTS:
                level = descend(level, x, store, lists, work)
            search(level, x, store, lists, noise * eps, eps, work, found, most)
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
                        if state[i] == ACTIVE or i >= m - joined:
                            price, inside = nu[i], state[i]
                            hold(which[i], store, k, working)
                            nu[k], state[k] = price, inside
                            k += 1
                    if k == m:
                        return UNCONVERGED
                hold(found[f], store, k, working)
                k += 1
                joined += 1
            if joined == 0:
                break
        else:
            return UNCONVERGED
        x_norm = np.sqrt(dot(x, x))
        if again == 1 or y_norm <= FAR * x_norm or x_norm == 0.0:
            break
        # y − Aᵀν has lost digits that x can have: go on from a target that is near
        target = np.empty(n)
        tau = move_target_closer(y, x, x_norm, target)
        y_norm = np.sqrt(dot(target, target))
        for i in range(k):
            nu[i] *= tau
    binding = 0
    for i in range(p, k):
        if state[i] == ACTIVE:
            bound[binding] = which[i]
            binding += 1
    for i in range(binding, AT_ONCE):
        bound[i] = -1
    for i in range(p, k):
        if state[i] != ACTIVE and binding < RECENT:
            bound[binding] = which[i]
            binding += 1
    return CONVERGED


@in_order
def held_by(lane, i, memory, at):
    """Whether row i is one of a lane's."""
    found = False
    for r in range(int(memory[at.used, lane])):
        found = found or memory[at.label + r, lane] == i
    return found


@in_order
def enlist(lane, i, store, memory, at):
    """Row i of the store becomes one of a lane's; False if there is no room."""
    unit, right, _ = store
    n, r = at.z - at.y, int(memory[at.used, lane])
    if r == ROWS:
        return False
    memory[at.right + r, lane], memory[at.label + r, lane] = right[i], i
    for j in range(n):
        memory[at.rows + r * n + j, lane] = unit[i, j]
    memory[at.used, lane] = r + 1
    return True


@in_order
def take(lane, y, store, warm, memory, at):
    """A lane takes a trial; False if its target is not finite."""
    unit, right, size = store
    square = dot(y, y)
    if not square < np.inf:
        return False
    for j in range(y.shape[0]):
        memory[at.y + j, lane] = y[j]
    memory[at.y_norm, lane] = np.sqrt(square)
    i = 0
    while i < warm.shape[0] and warm[i] >= 0 and enlist(lane, warm[i], store, memory, at):
        i += 1
    for i in range(max(size - FRESH, 0), size):
        if dot(unit[i], y) > right[i] and not held_by(lane, i, memory, at):
            enlist(lane, i, store, memory, at)
    return True


@in_order
def yield_lane(lane, memory, at):
    """A lane's rows are nobody's."""
    for r in range(int(memory[at.used, lane])):
        memory[at.right + r, lane] = NEVER_BINDS
    memory[at.used, lane] = 0.0
    leave(lane, memory, at)


@in_order
def widen(lane, x, eps, store, lists, memory, at, work, found, most):
    """The rows that x violates most join a lane's; returns how many did, −1 if there is no room for them."""
    for f in range(AT_ONCE):
        found[f], most[f] = -1, 0.0
    level = serving(x, store, lists, work)
    if level > 0 and memory[at.tries, lane] < LISTS:
        level = descend(level, x, store, lists, work)
    memory[at.tries, lane] += 1.0
    search(level, x, store, lists, memory[at.noise, lane], eps, work, found, most)
    joined = 0
    for f in range(AT_ONCE):
        if found[f] >= 0 and not held_by(lane, found[f], memory, at):
            if not enlist(lane, found[f], store, memory, at):
                return -1
            joined += 1
    return joined


@in_order
def remember(lane, memory, at, bound):
    """The rows of a lane that bind, then perhaps some that nearly do."""
    binding = 0
    for i in range(bound.shape[0]):
        bound[i] = -1
    for s in range(SLOTS):
        r = int(memory[at.which + s, lane])
        if r >= 0:
            bound[binding] = int(memory[at.label + r, lane])
            binding += 1
    last = binding
    for r in range(int(memory[at.used, lane])):
        i, new = int(memory[at.label + r, lane]), last < RECENT
        for q in range(binding):
            new = new and bound[q] != i
        if new:
            bound[last] = i
            last += 1


@njit
def together(y, lower, upper, unit, right, size, blocks, around, counts, warm, work, memory, most, x, bound, status):
    """Those trials of `box_many_rows` that can go in step; the status of the others stays UNCONVERGED."""
    trials, n = y.shape
    at, eps, k, waiting, busy = lines(ROWS, n), rounding(n), 0, 0, True
    prepare(memory, at)
    for lane in range(WIDTH):
        memory[at.used, lane] = 0.0
    while busy:
        busy, rows = False, 0
        for lane in range(WIDTH):
            while memory[at.trial, lane] < 0.0 and waiting < trials:
                t = waiting
                waiting += 1
                if status[t] == UNCONVERGED and take(lane, y[t], (unit[t], right[t], size[t]), warm[t], memory, at):
                    memory[at.trial, lane] = t
            busy = busy or memory[at.trial, lane] >= 0.0
            rows = max(rows, int(memory[at.used, lane]))
        k = step(rows, k, eps, lower, upper, memory, at)
        for lane in range(WIDTH):
            t, done = int(memory[at.trial, lane]), memory[at.done, lane] > 0.0
            memory[at.age, lane] += 1.0
            if t < 0 or not (done or memory[at.age, lane] > STEPS):
                continue
            if done:
                for j in range(n):
                    x[t, j] = memory[at.x + j, lane]
                store, lists = (unit[t], right[t], size[t]), all_lists(blocks[t], around[t], counts[t])
                joined = widen(lane, x[t], eps, store, lists, memory, at, work, bound[t][:AT_ONCE], most)
                if joined > 0:
                    continue
                x_norm = memory[at.x_norm, lane]
                if joined == 0 and (memory[at.y_norm, lane] <= FAR * x_norm or x_norm == 0.0):
                    remember(lane, memory, at, bound[t])
                    status[t] = CONVERGED
            yield_lane(lane, memory, at)
        k = in_use(k, memory, at)


@guvectorize(
    [
        "float64[:,::1], boolean[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], int64, "
        "float64[:,:,::1], float64[:,::1], int64[::1], "
        "float64[:,:,:,::1], float64[:,:,::1], int64[:,:,::1], "
        "int64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], float64[:,::1], "
        "float64[:,::1], int64[:,::1], int64[::1]"
    ],
    "(r,n),(k),(n),(n),(p,n),(p),(),(r,c,n),(r,c),(r),(r,q,e,b),(r,e,a),(r,h,l),(r,w),(s,n),(t,m),(u,v),(g,a)"
    "->(r,n),(r,w),(r)",
)
def box_many_rows(
    y, active, lower, upper, own, own_right, equalities,
    unit, right, size, blocks, around, counts, warm, dim_memory, row_memory, work, memory,
    x, bound, status,
):  # fmt: skip
    """K = {lower ≤ x ≤ upper, own·x ≤ own_right, the first ``equalities`` rows with equality}, and unit·x ≤ right.

    An active-set method works on a working set, at first the rows ``warm``; whenever it is done, the most violated of
    the others join. Each time the dual gains, so this ends, and it ends at the projection onto all rows. ``bound`` are
    those that bind, then perhaps some that nearly do, then −1. Many trials over a box go in step, see
    `cocopt.kernels.lanes`, with ``memory`` for ROWS rows; all others, and what is left, one by one, see
    `cocopt.kernels.active_set`. ``dim_memory`` and ``row_memory`` are the `workspace_memory` of p + w rows; if more
    than w have to be held at once the status is UNCONVERGED. ``work`` has a line of numbers and one of marks for the
    rows of a list. A trial that is not ``active`` gets y back, and its warm rows.
    """
    trials, n = y.shape
    every = active.shape[0] == 1
    for t in range(trials):
        status[t] = UNCONVERGED if active[0 if every else t] else CONVERGED
        if status[t] == CONVERGED:
            x[t], bound[t] = y[t], warm[t]
    if own.shape[0] == 0 and trials >= IN_STEP and n <= SHORT:
        together(
            y,
            lower,
            upper,
            unit,
            right,
            size,
            blocks,
            around,
            counts,
            warm,
            work,
            memory,
            row_memory[0],
            x,
            bound,
            status,
        )
    for t in range(trials):
        if status[t] == UNCONVERGED:
            store, lists = (unit[t], right[t], size[t]), all_lists(blocks[t], around[t], counts[t])
            status[t] = alone(
                y[t],
                lower,
                upper,
                own,
                own_right,
                equalities,
                store,
                lists,
                warm[t],
                dim_memory,
                row_memory,
                work,
                x[t],
                bound[t],
            )


@guvectorize(
    [
        "float64[::1], boolean, float64, float64[:,::1], float64[::1], int64, "
        "float64[:,:,::1], float64[:,::1], int64[:,::1], float64[:,::1], int64[::1], int64[::1]"
    ],
    "(n),(),(),(c,n),(c),(),(q,e,b),(e,a),(h,l),(u,v),(g)->(g)",
)
def violated(x, active, share, unit, right, size, blocks, around, counts, work, like, found):
    """The rows that x violates most, by more than this share of their terms, as many as ``like`` has; −1 for none."""
    store, lists = (unit, right, size), all_lists(blocks, around, counts)
    most = np.zeros(found.shape[0])
    for f in range(found.shape[0]):
        found[f] = -1
    if not active:
        return
    noise = share * np.sqrt(dot(x, x))
    search(serving(x, store, lists, work), x, store, lists, noise, share, work, found, most)


@guvectorize(
    [
        "float64[::1], float64[:,::1], float64[::1], int64, "
        "float64[:,:,::1], float64[:,::1], int64[:,::1], float64[:,::1], int64[::1]"
    ],
    "(n),(c,n),(c),(),(q,e,b),(e,a),(h,l),(u,v)->()",
)
def relist(x, unit, right, size, blocks, around, counts, work, serves):
    """Makes those lists anew around x that do not reach it; returns which is the first that does."""
    store, lists = (unit, right, size), all_lists(blocks, around, counts)
    serves[0] = descend(serving(x, store, lists, work), x, store, lists, work)


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
            side = room / max(abs(a), LEAST)  # (no division by 0, even in vain)
            if a > LEAST:
                high[j] = min(high[j], low[j] + side)
            elif a < -LEAST:
                low[j] = max(low[j], high[j] - side)
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
        place[i] = -1 if most < right[i] - MARGIN * (extent + abs(right[i])) else 0
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
