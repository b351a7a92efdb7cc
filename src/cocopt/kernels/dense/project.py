"""The kernel: one trial after the other, each result checked, far targets in two stages."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order
from cocopt.kernels.dense.descent import gradient_of_lagrangian
from cocopt.kernels.dense.newton import ENOUGH, maximise_dual
from cocopt.kernels.dense.problem import Problem, evaluate, work_views
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip, distance, norm
from cocopt.tolerances import FAR_TARGET, OPTIMALITY_EXACT

__all__ = ["newton_rows"]

VANISHING = 1e-4  # terms of a row are taken as no smaller than those of a point of this share of the target's length
ROUNDED = 100.0  # the gradient may be so many times its rounding error, if that is little


@borrowing
def is_stationary(problem, work, x, u):
    """Whether no move within the box decreases the Lagrangian."""
    noise = gradient_of_lagrangian(problem, work, x, u)
    tol = max(OPTIMALITY_EXACT * distance(x, problem.y), ROUNDED * noise)
    stationary = True
    for j in range(x.shape[0]):
        slope = work.gradient[j]
        ahead = slope < -tol and x[j] < problem.upper[j]
        back = slope > tol and x[j] > problem.lower[j]
        stationary = stationary and x[j] == clip(x[j], problem.lower[j], problem.upper[j]) and not (ahead or back)
    return stationary


@borrowing
def is_complementary(problem, work, u):
    """Whether rows and multipliers satisfy their conditions: feasible, and a row that is slack has the multiplier 0."""
    total, threshold = 0.0, 0.0
    for i in range(u.shape[0]):
        total += problem.counted[i] * u[i]
        threshold = max(threshold, problem.counted[i] * work.value[i])
    good = total <= problem.most_sum * (1.0 + ENOUGH)
    if not total >= problem.most_sum * (1.0 - ENOUGH):
        threshold = 0.0
    for i in range(u.shape[0]):
        tol, value = ENOUGH * work.terms[i], work.value[i] - problem.counted[i] * threshold
        equal = i < problem.equalities
        if value > tol and (equal or u[i] < problem.most[i]):
            good = False
        if value < -tol and (equal or u[i] > 0.0):
            good = False
        if not ((equal or u[i] >= 0.0) and abs(u[i]) < np.inf):
            good = False
    return good


@borrowing
def load(problem, work, x, u):
    """Clips the target to the box, u = 0, the affine rows in J."""
    for j in range(x.shape[0]):
        x[j] = clip(problem.y[j], problem.lower[j], problem.upper[j])
    for i in range(u.shape[0]):
        u[i] = 0.0
    for a in range(problem.b.shape[0]):
        work.steepness[a], work.curving[a] = norm(problem.A[a]), 0.0
        for j in range(x.shape[0]):
            work.J[a, j] = problem.A[a, j]


@borrowing
def is_solution(problem, work, x, u):
    """Whether x and u satisfy the optimality conditions, all of them computed anew."""
    return (
        evaluate(problem, work, x, u.shape[0])
        and is_stationary(problem, work, x, u)
        and is_complementary(problem, work, u)
    )


@in_order
def point_between(x, y, share, near):
    """near = x + share·(y − x)."""
    for j in range(x.shape[0]):
        near[j] = x[j] + share * (y[j] - x[j])


@borrowing
def with_near_target(problem, x, u, share, memory):
    """The problem with the target x + share·(y − x), multipliers and their bounds in the same proportion.

    x is its solution, too; y − Σ u_i ∇g_i has lost digits that x can have.
    """
    y, lower, upper, A, b, equalities, centers, radii, P, q, diagonal, r, C, e, f, h, most, most_sum, counted, _ = (
        problem
    )
    near, near_most = memory
    point_between(x, y, share, near)
    for i in range(u.shape[0]):
        near_most[i] = most[i] * share
        u[i] *= share
    return Problem(
        near, lower, upper, A, b, equalities, centers, radii, P, q, diagonal, r, C, e, f, h,
        near_most, most_sum * share, counted, VANISHING * norm(near),
    )  # fmt: skip


@borrowing
def near_share(problem, x):
    """By which share of y − x a target is about as far from x as x from 0; 1 if y is not far from x."""
    length, away = norm(x), distance(x, problem.y)
    return length / away if away > FAR_TARGET * length and length > 0.0 else 1.0


@borrowing
def solve_in_stages(problem, work, x, nu, memory):
    """The solution in x, its multipliers in ν; returns a status.

    For a far target a near one comes first, for a start: multipliers grow with the distance. And a near one comes
    last, of which x is the solution, too: y − Σ ν_i ∇g_i has lost digits that x can have.
    """
    near, near_most, u = memory
    load(problem, work, x, u)
    if not norm(problem.y) < np.inf:
        return NONFINITE
    for a in range(problem.radii.shape[0]):
        if not problem.radii[a] > 0.0:
            return UNCONVERGED
    status, warm, present = UNCONVERGED, False, problem
    for stage in range(3):
        share = near_share(problem, x) if stage != 1 else 1.0
        if share < 1.0:
            present = with_near_target(problem, x, u, share, (near, near_most))
        elif stage == 1:
            present = problem
        else:
            continue
        status = maximise_dual(present, work, x, u, warm)
        warm = status == CONVERGED
        if stage == 0:
            for i in range(u.shape[0]):
                u[i] /= share
            if not warm:
                load(problem, work, x, u)
        elif not warm:
            return status
        if stage == 1:
            for i in range(nu.shape[0]):
                nu[i] = u[i]
    return CONVERGED if is_solution(present, work, x, u) else UNCONVERGED


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], int64, "
        "float64[:, ::1], float64[::1], float64[:, :, ::1], float64[:, ::1], float64[::1], float64[::1], "
        "float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[::1], "
        "float64[::1], float64, float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(a,n),(a),(),(b,n),(b),(m,n,n),(m,n),(m),(m),(k,p,n),(k,p),(k,n),(k),(r),(),(r),(w,n),(t,r),(p)"
    "->(n),(r),()",
)
def newton_rows(
    y, lower, upper, A, b, equalities, centers, radii, P, q, diagonal, r, C, e, f, h, most, most_sum, counted,
    by_coordinate, by_row, image, x, nu, status,
):  # fmt: skip
    """The first arguments are those of `Problem`, the others are from `newton_memory`."""
    work = work_views(by_coordinate, by_row, image, y.shape[0], nu.shape[0], h.shape[0])
    problem = Problem(
        y, lower, upper, A, b, equalities, centers, radii, P, q, diagonal, r, C, e, f, h, most, most_sum, counted,
        VANISHING * norm(y),
    )  # fmt: skip
    last = by_row.shape[0] - 1
    memory = by_coordinate[by_coordinate.shape[0] - 1], by_row[last - 1], by_row[last]
    status[0] = solve_in_stages(problem, work, x, nu, memory)
