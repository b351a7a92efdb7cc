"""Hinge prox with several rows over a ball, from the active-set method without the ball.

With the ball's multiplier μ and s = 1/(1 + μ), the solution is center + p(s), where p(s) solves the problem without the
ball for the target s·(y − center) and s·max_multiplier. ‖p(s)‖² grows with s and is linear in σ = s² on each set of
active rows, so that interpolation in σ inside a bracket ends after a few steps, but where it hardly grows over a long
way, as at a vertex near the ball: there the bracket is divided.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, expanded, njit
from cocopt.kernels.active_set import DualProblem, maximise_dual, normalise, store_columns
from cocopt.kernels.far_targets import MAX_STAGES, is_near, move_target_closer, next_length
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import distance, dot, norm
from cocopt.kernels.workspace import AT_BOUND, INACTIVE, workspace_views
from cocopt.tolerances import FEASIBILITY, NEVER_BINDS, ROUNDING

__all__ = ["hinge_prox_ball"]

MAX_STEPS = 150  # of the search for σ


class Bracket(NamedTuple):
    """An interval in which ‖p‖² − radius², the excess, changes its sign."""

    low: Any
    high: Any
    low_excess: Any  # negative
    high_excess: Any  # positive
    moved: Any  # which end moved last: −1 the lower, 1 the upper, 0 none
    repeats: Any  # how often in a row


@borrowing
def narrow(bracket, sigma, excess):
    """The bracket with σ as its new lower or upper end, by the Illinois rule: no end may stay for ever."""
    low, high, low_excess, high_excess, moved, repeats = bracket
    repeats = repeats + 1 if (excess > 0.0) == (moved == 1) else 0
    if excess > 0.0:
        return Bracket(low, sigma, low_excess * (0.5 if moved == 1 else 1.0), excess, 1, repeats)
    return Bracket(sigma, high, excess, high_excess * (0.5 if moved == -1 else 1.0), -1, repeats)


@borrowing
def next_sigma(bracket):
    """Inside the bracket by interpolation or, where that is slow, by division; outside if its ends are neighbours."""
    low, high, low_excess, high_excess, _, repeats = bracket
    sigma = low + (high - low) * (-low_excess / max(high_excess - low_excess, 1e-300))
    if repeats > 2 or not low < sigma < high:
        sigma = 0.5 * (low + high) if 4.0 * low > high else np.sqrt(low * high) if low > 0.0 else 0.01 * high
    return sigma


@borrowing
def load_rows(center, constraint, work, nu):
    """(status, largest |rhs|): loads the rows as functions of x − center, none of them active."""
    _, b, max_multiplier = constraint
    if not normalise(constraint, 0, work):
        return NONFINITE, 0.0
    largest, status = 0.0, CONVERGED
    for i in range(b.shape[0]):
        nu[i] = 0.0
        work.row_state[i] = INACTIVE
        work.unscaled_max_multiplier[i] = work.max_multiplier[i]
        if work.norms[i] == 0.0 and max_multiplier[i] == np.inf and b[i] < 0.0:
            status = INFEASIBLE
        if work.rhs[i] < NEVER_BINDS:
            work.rhs[i] -= dot(work.rows[i], center)
            largest = max(largest, abs(work.rhs[i]))
    store_columns(work, b.shape[0])
    return status, largest


@borrowing
def scale_multiplier_bounds(s, work, nu):
    """max_multiplier = s·unscaled_max_multiplier; multipliers at or above it are put at it."""
    for i in range(nu.shape[0]):
        most = work.unscaled_max_multiplier[i]
        most = s * min(most, NEVER_BINDS) if most < np.inf else np.inf
        work.max_multiplier[i] = most
        if work.row_state[i] == AT_BOUND:
            nu[i] = most
        elif nu[i] > most:
            nu[i], work.row_state[i] = most, AT_BOUND


@borrowing
def write_result(K, y, constraint, s, work, x, nu):
    """x and the multipliers in the units of the problem as it was given; y itself if nothing binds."""
    _, b, max_multiplier = constraint
    total = 1.0 - s
    for i in range(b.shape[0]):
        total += nu[i]
    for j in range(x.shape[0]):
        x[j] = x[j] + K[0][j] if total > 0.0 else y[j]
    for i in range(b.shape[0]):
        unscaled = nu[i] / max(s, 1e-170) if nu[i] > 0.0 else 0.0
        given = max_multiplier[i] if b[i] < 0.0 else 0.0
        nu[i] = unscaled / max(work.norms[i], 1e-170) if work.norms[i] > 0.0 else given


@njit
def _hinge_prox_ball(K, y, constraint, memory, x, nu):
    """As `hinge_prox_ball`, for any target in one stage."""
    center, radius = K
    work, n = workspace_views(memory[0], memory[1]), y.shape[0]
    target, lower, upper = np.empty(n), np.full(n, -np.inf), np.full(n, np.inf)
    y_norm, center_norm = distance(y, center), norm(center)
    if not y_norm < np.inf:
        return NONFINITE
    status, largest = load_rows(center, constraint, work, nu)
    if status != CONVERGED:
        return status
    square = radius * radius
    tol = 8.0 * ROUNDING * (square + radius * center_norm)
    bracket, sigma = Bracket(0.0, 1.0, -square, 0.0, 0, 0), 1.0
    for step in range(MAX_STEPS):
        s = np.sqrt(sigma)
        for j in range(n):
            target[j] = s * (y[j] - center[j])
        scale_multiplier_bounds(s, work, nu)
        status = maximise_dual(DualProblem(target, s * y_norm, lower, upper, nu.shape[0], 0, False), work, nu, x)
        if status != CONVERGED:
            return status
        excess = min(dot(x, x), NEVER_BINDS) - square
        if step == 0:  # the upper end, σ = 1: the ball may not bind
            if excess <= tol:
                break
            bracket, sigma = Bracket(0.0, 1.0, -square, excess, 0, 0), 0.0
            continue
        if step == 1:  # the lower end, σ = 0: the rows may touch the ball, or miss it
            if not excess <= -tol:
                miss = np.sqrt(max(excess + square, 0.0)) - radius
                status = INFEASIBLE if miss > FEASIBILITY * (radius + center_norm + largest) else CONVERGED
                break
            bracket = Bracket(0.0, 1.0, excess, bracket.high_excess, 0, 0)
        else:
            if abs(excess) <= tol:
                break
            bracket = narrow(bracket, sigma, excess)
        sigma = next_sigma(bracket)
        if not bracket.low < sigma < bracket.high:
            break
    else:
        return UNCONVERGED
    write_result(K, y, constraint, np.sqrt(sigma), work, x, nu)
    return status


@borrowing
def is_feasible(K, constraint, nu, x):
    """Whether x is in the ball and satisfies the rows as promised, but for those whose multiplier is at its bound."""
    (center, radius), (A, b, max_multiplier) = K, constraint
    x_norm, half = norm(x), 0.5 * FEASIBILITY
    feasible = distance(x, center) <= radius + half * max(x_norm, radius)
    for i in range(b.shape[0]):
        small = dot(A[i], x) - b[i] <= half * max(norm(A[i]) * x_norm, abs(b[i]))
        feasible = feasible and (small or nu[i] >= (1.0 - FEASIBILITY) * max_multiplier[i])
    return feasible


@expanded
def hinge_prox_ball(K, y, constraint, memory, x, nu):
    """The hinge prox of y in x, its multipliers in ν; returns a status. K = (center, radius).

    From far away in stages (`cocopt.kernels.far_targets`): x has lost digits that it can have, but ν has not.
    """
    A, b, max_multiplier = constraint
    center, radius = K
    target, last, most, length = y, nu, max_multiplier, distance(y, center)
    status = UNCONVERGED
    for stage in range(MAX_STAGES):
        status = _hinge_prox_ball(K, target, (A, b, most), memory, x, last)
        if status != CONVERGED or radius == 0.0 or is_near(length, radius, 0.0):
            break
        if stage == 0:
            target, last = np.empty(y.shape[0]), np.empty(b.shape[0])
        length = next_length(length, radius, 0.0)
        most = move_target_closer(y, x, length, target) * max_multiplier
    if status == CONVERGED and not is_feasible(K, (A, b, most), last, x):
        status = UNCONVERGED
    return status
