"""The projection of one trial onto a polyhedron and the rows of its store, by a working set that grows."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import expanded, inlined, njit
from cocopt.kernels.active_set import DualProblem, maximise_dual, rows_hold, store_columns
from cocopt.kernels.far_targets import MAX_STAGES, move_target_closer, next_length, smallest_size
from cocopt.kernels.persistent.lists import covering_list, rebuild_lists
from cocopt.kernels.persistent.search import search
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import dot, norm
from cocopt.kernels.workspace import ACTIVE, INACTIVE
from cocopt.tolerances import FAR_TARGET_PERSISTENT

__all__ = ["ATTEMPTS_WITH_NEW_LISTS", "MIN_KEPT", "NEWEST", "Polyhedron", "Trial", "solve_one"]

MAX_ATTEMPTS = 1000  # how often rows may be added to the working set in one projection
ATTEMPTS_WITH_NEW_LISTS = 2  # of these; later ones search whatever covers the point
NEWEST = 4  # of so many newest rows those that the target violates are in the first working set
MIN_KEPT = 4  # rows that the next projection starts with; more if more bind


class Polyhedron(NamedTuple):
    """K = {lower ≤ x ≤ upper, rows·x ≤ rhs, the first ``equalities`` of these with equality}; rows of length 1."""

    lower: Any
    upper: Any
    rows: Any  # (p, n)
    rhs: Any  # (p)
    equalities: Any


class Trial(NamedTuple):
    """What a projection takes from the trial, and memory for one."""

    polyhedron: Any
    rows: Any  # the store, `Rows`
    lists: Any  # `Lists`
    list_memory: Any  # (2, rows in the longest list)
    found: Any  # `MostViolated`


@inlined
def add_to_working_set(w, k, i, rows):
    """Makes row i of the store the k-th of the working set, with the multiplier 0."""
    w.row_index[k], w.rhs[k], w.max_multiplier[k] = i, rows.rhs[i], np.inf
    w.multiplier[k], w.row_state[k] = 0.0, INACTIVE
    for j in range(rows.unit.shape[1]):
        w.rows[k, j] = rows.unit[i, j]


@inlined
def in_working_set(w, p, k, i):
    """Whether row i of the store is among the rows p to k of the working set."""
    found = False
    for q in range(p, k):
        found = found or w.row_index[q] == i
    return found


@inlined
def first_working_set(w, y, trial, warm_start):
    """K's own rows, the rows ``warm_start``, and those of the newest that y violates; returns how many these are."""
    polyhedron, rows = trial.polyhedron, trial.rows
    p = polyhedron.rhs.shape[0]
    capacity = p + warm_start.shape[0]
    for i in range(p):
        w.row_index[i], w.rhs[i], w.max_multiplier[i] = -1, polyhedron.rhs[i], np.inf
        w.multiplier[i], w.row_state[i] = 0.0, ACTIVE if i < polyhedron.equalities else INACTIVE
        for j in range(y.shape[0]):
            w.rows[i, j] = polyhedron.rows[i, j]
    k = p
    while k < capacity and warm_start[k - p] >= 0:
        add_to_working_set(w, k, warm_start[k - p], rows)
        k += 1
    for i in range(max(rows.size - NEWEST, 0), rows.size):
        if k < capacity and dot(rows.unit[i], y) > rows.rhs[i] and not in_working_set(w, p, k, i):
            add_to_working_set(w, k, i, rows)
            k += 1
    return k


@inlined
def drop_inactive(w, p, k, added, rows):
    """Removes the rows that do not bind from the working set, but not the last ``added``; returns how many are left."""
    left = p
    for i in range(p, k):
        if w.row_state[i] == ACTIVE or i >= k - added:
            multiplier, state = w.multiplier[i], w.row_state[i]
            add_to_working_set(w, left, w.row_index[i], rows)
            w.multiplier[left], w.row_state[left] = multiplier, state
            left += 1
    return left


@inlined
def add_violated(w, p, k, capacity, trial):
    """Adds the rows that were found to the working set; (its size, how many are new or −1 if there is no room)."""
    index, added = trial.found.index, 0
    for f in range(index.shape[0]):
        if index[f] < 0 or in_working_set(w, p, k, index[f]):
            continue
        if k == capacity:
            k = drop_inactive(w, p, k, added, trial.rows)
            if k == capacity:
                return k, -1
        add_to_working_set(w, k, index[f], trial.rows)
        k += 1
        added += 1
    return k, added


@njit
def project_growing(w, target, target_norm, k, capacity, trial, x):
    """x = the projection of the target, from a working set of k rows; (status, the size of the final working set).

    Each time that violated rows are added the dual grows, so this ends, and it ends at the projection onto all rows.
    """
    polyhedron, rows, lists, memory, found = trial
    p, eps = polyhedron.rhs.shape[0], rounding(x.shape[0])
    lower, upper, equalities = polyhedron.lower, polyhedron.upper, polyhedron.equalities
    for attempt in range(MAX_ATTEMPTS):
        store_columns(w, k)
        problem = DualProblem(target, target_norm, lower, upper, k, equalities, False)
        status = maximise_dual(problem, w, w.multiplier, x)
        if status != CONVERGED:
            return status, k
        noise = norm(x)
        for i in range(k):
            noise += abs(w.multiplier[i])
        level = covering_list(x, rows, lists, memory)
        if level > 0 and attempt < ATTEMPTS_WITH_NEW_LISTS:
            level = rebuild_lists(level, x, rows, lists, memory)
        search(level, x, rows, lists, (2.0 * noise * eps, eps), memory, found)
        k, added = add_violated(w, p, k, capacity, trial)
        if added <= 0:
            return CONVERGED if added == 0 else UNCONVERGED, k
    return UNCONVERGED, k


@inlined
def write_working_set(w, p, k, working_set):
    """Writes the rows that bind, then others, MIN_KEPT in all, then −1."""
    count = 0
    for i in range(p, k):
        if w.row_state[i] == ACTIVE:
            working_set[count] = w.row_index[i]
            count += 1
    for i in range(p, k):
        if w.row_state[i] != ACTIVE and count < MIN_KEPT:
            working_set[count] = w.row_index[i]
            count += 1
    for i in range(count, working_set.shape[0]):
        working_set[i] = -1


@expanded
def solve_one(y, trial, warm_start, w, x, working_set):
    """x = the projection of y; returns a status. ``working_set`` are the rows that the next projection starts with."""
    n, p = y.shape[0], trial.polyhedron.rhs.shape[0]
    capacity = p + warm_start.shape[0]
    for i in range(working_set.shape[0]):
        working_set[i] = -1
    for j in range(n):
        x[j] = y[j]
    y_norm = norm(y)
    if not y_norm < np.inf:
        return NONFINITE
    k = first_working_set(w, y, trial, warm_start)
    # where y is far away y − Aᵀν has lost digits that x can have: go on from nearer and nearer targets
    target, target_norm, tau, smallest, status = y, y_norm, 1.0, 0.0, UNCONVERGED
    for stage in range(MAX_STAGES):
        status, k = project_growing(w, target, target_norm, k, capacity, trial, x)
        x_norm, total = norm(x), 0.0
        for i in range(k):
            total += abs(w.multiplier[i])
        if status == CONVERGED and not rows_hold(w, k, trial.polyhedron.equalities, max(x_norm, target_norm)):
            status = UNCONVERGED
        if status != CONVERGED or total == 0.0 or target_norm <= FAR_TARGET_PERSISTENT * max(x_norm, smallest):
            break
        if stage == 0:
            target, smallest = np.empty(n), smallest_size(trial.polyhedron.lower, trial.polyhedron.upper, w.rhs, k)
        before = tau
        tau = move_target_closer(y, x, next_length(target_norm, x_norm, smallest), target)
        target_norm = norm(target)
        for i in range(k):
            w.multiplier[i] *= tau / before
    if status == CONVERGED:
        write_working_set(w, p, k, working_set)
    return status
