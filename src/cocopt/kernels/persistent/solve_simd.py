"""The projections of `solve_one` for many trials over a box, eight at a time (see `cocopt.kernels.simd`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import expanded, in_order
from cocopt.kernels.persistent.lists import covering_list, lists_of_trial, rebuild_lists
from cocopt.kernels.persistent.rows import rows_of_trial
from cocopt.kernels.persistent.search import search
from cocopt.kernels.persistent.solve_one import ATTEMPTS_WITH_NEW_LISTS, MIN_KEPT, NEWEST
from cocopt.kernels.rounding import rounding
from cocopt.kernels.simd.active_set import MAX_ITERATIONS, iterate, slots_in_use
from cocopt.kernels.simd.lanes import SLOTS, free_all_lanes, free_lane, lanes
from cocopt.kernels.simd.vector import WIDTH
from cocopt.kernels.status import CONVERGED, UNCONVERGED
from cocopt.kernels.vectors import dot
from cocopt.tolerances import FAR_TARGET_PERSISTENT, NEVER_BINDS

__all__ = ["LANE_ROWS", "solve_simd"]

LANE_ROWS = 16  # rows that the working set of a lane has room for


@in_order
def in_lane(w, lane, i):
    """Whether row i of the store is in the working set of a lane."""
    found = False
    for r in range(int(w.row_count[lane])):
        found = found or w.row_index[r, lane] == i
    return found


@in_order
def add_to_lane(w, lane, i, rows):
    """Adds row i of the store to the working set of a lane; False if there is no room."""
    unit, rhs, _ = rows
    r = int(w.row_count[lane])
    if r == LANE_ROWS:
        return False
    w.rhs[r, lane], w.row_index[r, lane] = rhs[i], i
    for j in range(w.dim):
        w.rows[r, j, lane] = unit[i, j]
    w.row_count[lane] = r + 1
    return True


@in_order
def load_trial(w, lane, y, rows, warm_start):
    """Loads a trial and its first working set into a lane; False if the target is not finite."""
    unit, rhs, size = rows
    square = dot(y, y)
    if not square < np.inf:
        return False
    for j in range(w.dim):
        w.target[j, lane] = y[j]
    w.target_norm[lane] = np.sqrt(square)
    i = 0
    while i < warm_start.shape[0] and warm_start[i] >= 0 and add_to_lane(w, lane, warm_start[i], rows):
        i += 1
    for i in range(max(size - NEWEST, 0), size):
        if dot(unit[i], y) > rhs[i] and not in_lane(w, lane, i):
            add_to_lane(w, lane, i, rows)
    return True


@in_order
def load_trials(w, y, all_rows, warm_start, status, next_trial):
    """Loads the next unsolved trials into free lanes; (the next, if any lane is busy, rows of the largest)."""
    busy, most = False, 0
    for lane in range(WIDTH):
        while w.trial[lane] < 0.0 and next_trial < y.shape[0]:
            t = next_trial
            next_trial += 1
            if status[t] == UNCONVERGED and load_trial(w, lane, y[t], rows_of_trial(all_rows, t), warm_start[t]):
                w.trial[lane] = t
        busy = busy or w.trial[lane] >= 0.0
        most = max(most, int(w.row_count[lane]))
    return next_trial, busy, most


@in_order
def unload_trial(w, lane):
    """Empties the working set of a lane and makes it free."""
    for r in range(int(w.row_count[lane])):
        w.rhs[r, lane] = NEVER_BINDS
    w.row_count[lane] = 0.0
    free_lane(w, lane)


@in_order
def add_violated(w, lane, x, rows, lists, memory, found):
    """Adds the rows that x violates most to a lane; returns how many are new, −1 if there is no room for them."""
    level = covering_list(x, rows, lists, memory)
    if level > 0 and w.attempts[lane] < ATTEMPTS_WITH_NEW_LISTS:
        level = rebuild_lists(level, x, rows, lists, memory)
    w.attempts[lane] += 1.0
    search(level, x, rows, lists, (w.noise[lane], rounding(w.dim)), memory, found)
    added, (index, _) = 0, found
    for f in range(index.shape[0]):
        i = index[f]
        if i >= 0 and not in_lane(w, lane, i):
            if not add_to_lane(w, lane, i, rows):
                return -1
            added += 1
    return added


@in_order
def write_working_set(w, lane, working_set):
    """Writes the rows that bind, then others, MIN_KEPT in all, then −1."""
    binding = 0
    for i in range(working_set.shape[0]):
        working_set[i] = -1
    for slot in range(SLOTS):
        r = int(w.active_index[slot, lane])
        if r >= 0:
            working_set[binding] = int(w.row_index[r, lane])
            binding += 1
    count = binding
    for r in range(int(w.row_count[lane])):
        i, new = int(w.row_index[r, lane]), count < MIN_KEPT
        for q in range(binding):
            new = new and working_set[q] != i
        if new:
            working_set[count] = i
            count += 1


@expanded
def finish(w, lane, rows, lists, memory, found, x, working_set):
    """What follows when a lane is done with its working set; (whether the lane is free now, the status of the trial).

    If rows are violated they are added, and the lane goes on. A target that is far away is left to `solve_one`.
    """
    for j in range(w.dim):
        x[j] = w.x[j, lane]
    added = add_violated(w, lane, x, rows, lists, memory, found)
    if added > 0:
        return False, UNCONVERGED
    total = 0.0
    for slot in range(SLOTS):
        total += w.nu[slot, lane]
    if added == 0 and (total == 0.0 or w.target_norm[lane] <= FAR_TARGET_PERSISTENT * w.x_norm[lane]):
        write_working_set(w, lane, working_set)
        return True, CONVERGED
    return True, UNCONVERGED


@expanded
def solve_simd(y, box, all_rows, all_lists, warm_start, memories, found, results):
    """Projects those trials whose status is UNCONVERGED; it stays so for those that are left to `solve_one`.

    ``memories`` are (list_memory, lane_memory) and ``results`` (x, working_set, status).
    """
    n = y.shape[1]
    list_memory, lane_memory = memories
    x, working_set, status = results
    w, eps, k, next_trial = lanes(lane_memory, LANE_ROWS, n), rounding(n), np.int64(0), np.int64(0)
    free_all_lanes(w)
    while True:
        next_trial, busy, most = load_trials(w, y, all_rows, warm_start, status, next_trial)
        if not busy:
            return
        k = iterate(w, most, k, eps, box)
        for lane in range(WIDTH):
            t, done = int(w.trial[lane]), w.done[lane] > 0.0
            w.iterations[lane] += 1.0
            if t < 0 or not (done or w.iterations[lane] > MAX_ITERATIONS):
                continue
            free = True
            if done:
                rows, lists = rows_of_trial(all_rows, t), lists_of_trial(all_lists, t)
                free, status[t] = finish(w, lane, rows, lists, list_memory, found, x[t], working_set[t])
            if free:
                unload_trial(w, lane)
        k = slots_in_use(w, k)
