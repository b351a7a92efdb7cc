"""Comparators in hindsight, each as the programs that define it, by CVXPY and by trying all choices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import cvxpy as cp
import numpy as np

from reference.projections import Array, Description, dimension, expressions, membership, minimum

Round = tuple[Description | None, Description | None]  # loss, constraint


def loss(f: Description, x: cp.Expression) -> cp.Expression:
    """The loss, in CVXPY's words."""
    match f:
        case ("Norm", H, y):
            return cp.norm(H @ x - y)
        case ("LeastSquares", H, y):
            return cp.sum_squares(H @ x - y) / 2
        case ("Linear", c):
            return c @ x
        case ("Distance", c):
            return cp.sum_squares(x - c) / 2
        case ("Quadratic", P, q, r):
            return cp.quad_form(x, cp.psd_wrap(P)) / 2 + q @ x + r
        case ("Hinge", u, v):
            return cp.pos(1 - v * (u @ x))
        case ("Logistic", u, v):
            return cp.logistic(-v * (u @ x))
    raise ValueError(f[0])


def total_loss(rounds: Sequence[Round], x: cp.Expression) -> cp.Expression:
    return cp.sum([loss(f, x) for f, _ in rounds if f is not None] + [cp.Constant(0.0)])


def is_empty(K: Description, limits: list[Description]) -> bool:
    """Whether no point of K satisfies the constraints, by their least common violation."""
    x, worst = cp.Variable(dimension(K)), cp.Variable()
    rows = [e <= worst for g in limits for e in expressions(g, x)]
    return minimum(worst, membership(K, x) + rows + [worst >= -1.0]) > 1e-8


def fixed(K: Description, rounds: Sequence[Round]) -> float:
    """min of Σ f_t over K and all constraints; inf if there is no such point."""
    limits = [g for _, g in rounds if g is not None]
    if limits and is_empty(K, limits):
        return np.inf
    x = cp.Variable(dimension(K))
    return minimum(total_loss(rounds, x), membership(K, x) + [e <= 0 for g in limits for e in expressions(g, x)])


def dynamic(K: Description, rounds: Sequence[Round]) -> Array:
    """The least loss of every round by itself."""
    return np.array([fixed(K, [one]) for one in rounds])


def piecewise(K: Description, rounds: Sequence[Round], breakpoints: Sequence[int]) -> float:
    """The least loss of actions that change after each of the breakpoints."""
    ends = [0, *breakpoints, len(rounds)]
    return sum(fixed(K, rounds[a:b]) for a, b in pairwise(ends))


def switching(K: Description, rounds: Sequence[Round], breakpoints: Sequence[int], switches: int) -> float:
    """The least loss of actions that change after at most so many of the breakpoints, by trying all of them."""
    return min(
        piecewise(K, rounds, chosen)
        for count in range(min(switches, len(breakpoints)) + 1)
        for chosen in combinations(breakpoints, count)
    )


def in_expectation(K: Description, rounds: Sequence[Round], rows: str) -> float:
    """min of Σ f_t over K and Σ_t g_t ≤ 0, row by row or of the largest rows; inf if there is no such point."""
    x, worst = cp.Variable(dimension(K)), cp.Variable()
    each = [expressions(g, x) for _, g in rounds if g is not None]
    if rows == "max":
        each = [[cp.max(cp.hstack(own))] for own in each]
    else:
        each = [[cp.hstack(own)] for own in each]
    sums = [cp.sum([own[0] for own in each])] if each else []
    if sums and minimum(worst, membership(K, x) + [e <= worst for e in sums] + [worst >= -1.0]) > 1e-8:
        return np.inf
    return minimum(total_loss(rounds, x), membership(K, x) + [e <= 0 for e in sums])
