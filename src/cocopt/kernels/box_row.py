"""Hinge prox of one trial over a box with a single row, from the root of its multiplier (see `cocopt.kernels.line`)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, njit
from cocopt.kernels.far_targets import MAX_STAGES, is_near, move_target_closer, next_length, smallest_size
from cocopt.kernels.line import (
    MANY_COORDINATES,
    Line,
    estimate_bracket,
    find_root,
    find_root_many,
    limit_at_infinity,
    split_coordinates,
    sums_at_zero,
)
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip, dot, norm
from cocopt.tolerances import FEASIBILITY

__all__ = ["box_row_prox", "box_row_prox_few"]


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


@njit
def find_multiplier_any(line, max_multiplier, eps):
    """The same for any number of coordinates."""
    if line.y.shape[0] < MANY_COORDINATES:
        return find_multiplier(line, max_multiplier, eps)
    return find_multiplier_many(line, max_multiplier, eps)


@borrowing
def move_and_clip(line, nu, x):
    """x = clip(y − ν a); returns ‖x‖²."""
    y, lower, upper, a, _ = line
    for j in range(y.shape[0]):
        x[j] = clip(y[j] - nu * a[j], lower[j], upper[j])
    return dot(x, x)


@borrowing
def least_point(line, x):
    """Of the points that minimise ⟨a, x⟩ over the box the one nearest to y; returns ‖x‖²."""
    y, lower, upper, a, _ = line
    for j in range(y.shape[0]):
        x[j] = lower[j] if a[j] > 0.0 else upper[j] if a[j] < 0.0 else clip(y[j], lower[j], upper[j])
    return dot(x, x)


class Answer(NamedTuple):
    """The prox of one target, in one stage."""

    nu: Any
    status: Any
    exact: Any  # whether it is the target, clipped: then x has all its digits
    y_norm: Any
    x_norm: Any


@borrowing
def row_holds(line, smallest, x):
    """Whether x satisfies the row as promised."""
    a_sq, x_sq, h = 0.0, smallest * smallest, -line.b
    for j in range(x.shape[0]):
        a_sq += line.a[j] * line.a[j]
        x_sq += x[j] * x[j]
        h += line.a[j] * x[j]
    return h <= 0.5 * FEASIBILITY * max(np.sqrt(a_sq * x_sq), abs(line.b))


def prox_by(find):
    """The prox of one trial, its multiplier found by ``find``."""

    @njit
    def prox_in_one_stage(line, max_multiplier, x):
        """The prox in x, whatever the distance of the target."""
        n, b = line.y.shape[0], line.b
        eps = rounding(n)
        verdict, nu, h, tol, sums = find(line, max_multiplier, eps)
        y_norm = np.sqrt(sums.y_sq)
        if verdict != UNCONVERGED:
            for j in range(n):
                x[j] = clip(line.y[j], line.lower[j], line.upper[j])
            return Answer(nu, verdict, True, y_norm, y_norm)
        x_norm = np.sqrt(move_and_clip(line, nu, x))
        norm_a, status = np.sqrt(sums.a_sq), CONVERGED
        if nu != max_multiplier and not abs(h) <= 16.0 * tol:
            least, status = limit_at_infinity(line), UNCONVERGED
            if least > -eps * (norm_a * x_norm + abs(b)):
                x_norm = np.sqrt(least_point(line, x))
                empty = least > FEASIBILITY * (norm_a * x_norm + abs(b))
                nu, status = np.inf, INFEASIBLE if empty else CONVERGED
        return Answer(nu, status, status == INFEASIBLE, y_norm, x_norm)

    @njit
    def box_row_prox(line, max_multiplier, x):
        """The prox of one trial in x; returns (ν, status). From far away in stages (`cocopt.kernels.far_targets`)."""
        nu, status, exact, y_norm, x_norm = prox_in_one_stage(line, max_multiplier, x)
        if exact or status != CONVERGED or is_near(y_norm, x_norm, 0.0):
            return nu, status
        y, lower, upper, a, b = line
        target, most, rhs = np.empty(y.shape[0]), max_multiplier, np.empty(1)
        rhs[0] = abs(b) / max(norm(a), 1e-300)
        smallest = smallest_size(lower, upper, rhs, 1)
        for _ in range(MAX_STAGES):
            tau = move_target_closer(y, x, next_length(y_norm, x_norm, smallest), target)
            most = tau * max_multiplier if max_multiplier < np.inf else np.inf
            last, status, exact, y_norm, x_norm = prox_in_one_stage(Line(target, lower, upper, a, b), most, x)
            if exact or status != CONVERGED or is_near(y_norm, x_norm, smallest):
                break
        if status == CONVERGED and last < most and not row_holds(line, smallest, x):
            status = UNCONVERGED
        return (nu if status != INFEASIBLE else np.inf), status

    return box_row_prox


box_row_prox = prox_by(find_multiplier_any)
box_row_prox_few = prox_by(find_multiplier)  # for few coordinates: half as much to compile
