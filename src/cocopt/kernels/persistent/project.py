"""The kernel of persistent intersections: many trials, each with a store of rows of its own."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.persistent.lists import lists_of_trial
from cocopt.kernels.persistent.rows import rows_of_trial
from cocopt.kernels.persistent.search import MostViolated
from cocopt.kernels.persistent.solve_one import Polyhedron, Trial, solve_one
from cocopt.kernels.persistent.solve_simd import solve_simd
from cocopt.kernels.status import CONVERGED, UNCONVERGED
from cocopt.kernels.workspace import workspace_views

__all__ = ["project_many_rows"]

MIN_SIMD_TRIALS, SIMD_MAX_DIM = 8, 16  # SIMD lanes are faster from so many trials on, up to so many dimensions
MAX_ADDED = 4  # rows that are added to a working set at a time


# (A gufunc takes nothing but arrays, so the fields of four objects are its arguments.)
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
def project_many_rows(
    y, active, lower, upper, own_rows, own_rhs, equalities,
    unit, rhs, size, blocks, balls, counts, warm_start, dim_memory, row_memory, list_memory, lane_memory,
    x, working_set, status,
):  # fmt: skip
    """K = {lower ≤ x ≤ upper, own_rows·x ≤ own_rhs, the first ``equalities`` rows with equality}, and unit·x ≤ rhs.

    The working sets start as ``warm_start``. ``working_set`` are the rows that bind, then perhaps some others, then −1.
    Many trials over a box are solved eight at a time, with the `lane_memory` of LANE_ROWS rows; all others, and what
    is left, one by one. ``dim_memory`` and ``row_memory`` are the `workspace_memory` of p + w rows; if a working set of
    more than w rows is needed the status is UNCONVERGED. ``list_memory`` has two lines as long as the longest list. A
    trial that is not ``active`` gets y back, and its warm start.
    """
    trials, n = y.shape
    all_active = active.shape[0] == 1
    all_rows, all_lists = (unit, rhs, size), (blocks, balls, counts)
    found = MostViolated(np.empty(MAX_ADDED, np.int64), np.empty(MAX_ADDED))
    for t in range(trials):
        status[t] = UNCONVERGED if active[0 if all_active else t] else CONVERGED
        if status[t] == CONVERGED:
            for j in range(n):
                x[t, j] = y[t, j]
            for i in range(warm_start.shape[1]):
                working_set[t, i] = warm_start[t, i]
    if own_rhs.shape[0] == 0 and trials >= MIN_SIMD_TRIALS and n <= SIMD_MAX_DIM:
        memories, results = (list_memory, lane_memory), (x, working_set, status)
        solve_simd(y, (lower, upper), all_rows, all_lists, warm_start, memories, found, results)
    workspace = workspace_views(dim_memory, row_memory)
    polyhedron = Polyhedron(lower, upper, own_rows, own_rhs, equalities)
    for t in range(trials):
        if status[t] == UNCONVERGED:
            trial = Trial(polyhedron, rows_of_trial(all_rows, t), lists_of_trial(all_lists, t), list_memory, found)
            status[t] = solve_one(y[t], trial, warm_start[t], workspace, x[t], working_set[t])
