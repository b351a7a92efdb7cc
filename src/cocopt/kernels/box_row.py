"""Hinge prox of one trial over a box with a single row, from the root of its multiplier (see `cocopt.kernels.line`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, njit
from cocopt.kernels.line import (
    MANY_COORDINATES,
    Line,
    estimate_bracket,
    find_root,
    find_root_many,
    limit_at_infinity,
    split_coordinates,
    sums_at_zero,
    value_and_slope,
)
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip
from cocopt.tolerances import FAR_TARGET, FEASIBILITY

__all__ = ["box_row_prox"]


@njit
def check_start(line, sums, eps):
    """(CONVERGED if x(0) satisfies the row, UNCONVERGED if not, or NONFINITE; the tolerance for h)."""
    h, b = sums.inner - line.b, line.b
    if not (sums.a_sq + sums.y_sq < np.inf and (abs(h) < np.inf or b == np.inf)):
        return NONFINITE, 0.0
    if h <= eps * abs(b) or h * h <= eps * eps * sums.a_sq * sums.x_sq:
        return CONVERGED, 0.0
    return UNCONVERGED, eps * (np.sqrt(sums.a_sq * (sums.x_sq + sums.y_sq)) + abs(b))


class Search(NamedTuple):
    """What is known of the multiplier of one row."""

    verdict: Any  # as of `check_start`
    nu: Any
    h: Any  # h(ν)
    tol: Any  # what |h| may be for rounding
    sums: Any


@njit
def find_multiplier(line, max_multiplier, eps):
    """The root of h, for few coordinates."""
    sums = sums_at_zero(line)
    verdict, tol = check_start(line, sums, eps)
    nu, h = 0.0, sums.inner - line.b
    if verdict == UNCONVERGED:
        nu, h = find_root(line, max_multiplier, tol, h, sums.slope)
    return Search(verdict, nu, h, tol, sums)


@njit
def find_multiplier_many(line, max_multiplier, eps):
    """The same for many coordinates. Memory is the bottleneck: one pass computes both the sums and the pieces."""
    bracket = estimate_bracket(line, max_multiplier)
    changing = np.empty(line.y.shape[0] + 1, dtype=np.int32)
    sums, pieces = split_coordinates(line, bracket[0], bracket[1], changing)
    verdict, tol = check_start(line, sums, eps)
    nu, h = 0.0, sums.inner - line.b
    if verdict == UNCONVERGED:
        nu, h = find_root_many(line, max_multiplier, tol, sums, bracket, pieces, changing)
    return Search(verdict, nu, h, tol, sums)


@borrowing
def move_and_clip(line, nu, x):
    """x = clip(y − ν a); returns ‖x‖²."""
    y, lower, upper, a, _ = line
    square = 0.0
    for j in range(y.shape[0]):
        p = clip(y[j] - nu * a[j], lower[j], upper[j])
        x[j] = p
        square += p * p
    return square


@borrowing
def least_point(line, x):
    """Of the points that minimise ⟨a, x⟩ over the box the one nearest to y; returns ‖x‖²."""
    y, lower, upper, a, _ = line
    square = 0.0
    for j in range(y.shape[0]):
        x[j] = lower[j] if a[j] > 0.0 else upper[j] if a[j] < 0.0 else clip(y[j], lower[j], upper[j])
        square += x[j] * x[j]
    return square


@borrowing
def project_again(line, tol, x):
    """Projects x, which nearly satisfies the row, once more: y − ν a had lost digits that x can have."""
    _, lower, upper, a, b = line
    near = Line(x, lower, upper, a, b)
    h, slope = value_and_slope(near, 0.0)
    if h > tol:
        step, _ = find_root(near, np.inf, tol, h, slope)
        for j in range(x.shape[0]):
            x[j] = clip(x[j] - step * a[j], lower[j], upper[j])


@njit
def box_row_prox(line, max_multiplier, x):
    """The prox of one trial in x; returns (ν, status)."""
    n, b = line.y.shape[0], line.b
    eps = rounding(n)
    if n < MANY_COORDINATES:
        verdict, nu, h, tol, sums = find_multiplier(line, max_multiplier, eps)
    else:
        verdict, nu, h, tol, sums = find_multiplier_many(line, max_multiplier, eps)
    if verdict != UNCONVERGED:
        for j in range(n):
            x[j] = clip(line.y[j], line.lower[j], line.upper[j])
        return nu, verdict
    x_sq = move_and_clip(line, nu, x)
    if nu == max_multiplier:
        return nu, CONVERGED
    if not abs(h) <= 16.0 * tol:
        least = limit_at_infinity(line)
        if least > -tol:
            x_sq = least_point(line, x)
            empty = least > FEASIBILITY * (np.sqrt(sums.a_sq * x_sq) + abs(b))
            return np.inf, INFEASIBLE if empty else CONVERGED
        return nu, UNCONVERGED
    if sums.y_sq > FAR_TARGET * FAR_TARGET * x_sq:
        project_again(line, eps * (np.sqrt(sums.a_sq * x_sq) + abs(b)), x)
    return nu, CONVERGED
