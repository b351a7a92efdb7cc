"""The problems that are timed, and what one would write without cocopt.

Targets are y ~ U(−1, 2)^n around K; rows are the regression problem's A ~ U(0, 2), b ~ U(0, 1): 0 is always feasible
and most rows cut into K. On the simplex b lies between the least of ⟨a, x⟩ over K and its value at P_K(y), so that the
row is always active; several rows have the barycentre in common. Crowded problems have rows in all directions, close
to a common point inside K: nearly as many rows bind as there are dimensions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import clarabel
import cvxpy as cp
import daqp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import cocopt
from cocopt import Ball, Box, Simplex, constraints

Array = NDArray[np.float64]
TURN = 0.05  # seconds; long enough for caches to be warm


class Batch(NamedTuple):
    """Problems min ‖x − y_i‖ over x in K, A_i x ≤ b_i."""

    K: Any
    A: Array
    b: Array
    y: Array


def nearly_all_bind(kind: str, trials: int, n: int, rows: int) -> Batch:
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(trials, rows, n)), rng.uniform(-1, 2, (trials, n))
    inside = rng.dirichlet(np.full(n, 5.0), trials) if kind == "simplex" else rng.uniform(size=(trials, n))
    K = Simplex(n) if kind == "simplex" else Box(0.0, 1.0, dim=n)
    return Batch(K, A, np.matvec(A, inside) + 0.02 * rng.uniform(size=(trials, rows)), y)


def batch(kind: str, trials: int, n: int, rows: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    A, b = rng.uniform(0, 2, (trials, rows, n)), rng.uniform(0, 1, (trials, rows))
    y = rng.uniform(-1, 2, (trials, n))
    if kind == "simplex":
        K = Simplex(n)
        least = A.min(axis=-1)
        reached = np.matmul(A, K.project(y)[..., None])[..., 0]
        middle = A.mean(axis=-1)  # at the barycentre, the common point of several rows
        return Batch(K, A, least + b * (reached - least) if rows == 1 else middle + 0.1 * b, y)
    return Batch(Box(0.0, 1.0, dim=n) if kind == "box" else Ball(0.0, 1.0, dim=n), A, b, y)


def by_cocopt(problem: Batch) -> Callable[[], Array]:
    """One call for the whole batch, the constraint built anew as in every round."""
    K, A, b, y = problem
    return lambda: cocopt.project(K, constraints.Affine(A, b), y)


def by_daqp(problem: Batch) -> Callable[[], Array]:
    """One `daqp.solve` call a problem; everything that can be prepared is prepared outside the loop."""
    K, A, b, y = problem
    trials, rows, n = A.shape
    H, f, x = np.eye(n), -y, np.empty((trials, n))
    lower, upper = np.zeros(n), np.full(n, 1.0 if isinstance(K, Box) else np.inf)
    sense = np.zeros(n + rows, dtype=np.int32)
    if isinstance(K, Simplex):
        A = np.concatenate([np.ones((trials, 1, n)), A], axis=1)
        b = np.concatenate([np.ones((trials, 1)), b], axis=1)
        sense = np.insert(sense, n, 5)  # an equation
    A = np.ascontiguousarray(A)  # DAQP reads raw memory
    above = np.ascontiguousarray(np.hstack([np.broadcast_to(upper, (trials, n)), b]))
    below = np.concatenate([lower, np.full(b.shape[1], -np.inf)])
    if isinstance(K, Simplex):
        below[n] = 1.0

    def solve() -> Array:
        for i in range(trials):
            x[i], _, flag, _ = daqp.solve(H, f[i], A[i], above[i], below, sense)
            if flag != 1:
                raise RuntimeError(f"DAQP stopped with flag {flag}")
        return x

    return solve


def by_cvxpy(problem: Batch, solver: str) -> Callable[[], Array]:
    """A parametrised problem, compiled once (DPP), box only."""
    K, A, b, y = problem
    trials, rows, n = A.shape
    x, target, matrix, rhs = cp.Variable(n), cp.Parameter(n), cp.Parameter((rows, n)), cp.Parameter(rows)
    limits = [x >= K.lower, x <= K.upper, matrix @ x <= rhs]
    program = cp.Problem(cp.Minimize(cp.sum_squares(x - target)), limits)
    points = np.empty((trials, n))

    def solve() -> Array:
        for i in range(trials):
            target.value, matrix.value, rhs.value = y[i], A[i], b[i]
            program.solve(solver=solver)
            points[i] = x.value
        return points

    return solve


def by_clarabel(problem: Batch) -> Callable[[], Array]:
    """The single problem of a batch of one as a sparse cone program, Clarabel's own settings; set-up counts."""
    K, (A,), (b,), (y,) = problem
    n = y.size
    eye, row = sp.identity(n, format="csc"), sp.csc_matrix(A)
    if isinstance(K, Ball):
        matrix = sp.vstack([row, sp.csc_matrix((1, n)), -eye], format="csc")
        rhs = np.concatenate([b, [1.0], np.zeros(n)])
        cones = [clarabel.NonnegativeConeT(1), clarabel.SecondOrderConeT(n + 1)]
    elif isinstance(K, Box):
        matrix = sp.vstack([row, eye, -eye], format="csc")
        rhs = np.concatenate([b, K.upper, -K.lower])
        cones = [clarabel.NonnegativeConeT(2 * n + 1)]
    else:
        matrix = sp.vstack([sp.csc_matrix(np.ones((1, n))), row, -eye], format="csc")
        rhs = np.concatenate([[1.0], b, np.zeros(n)])
        cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n + 1)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False

    def solve() -> Array:
        solution = clarabel.DefaultSolver(eye, -y, matrix, rhs, cones, settings).solve()
        if solution.status != clarabel.SolverStatus.Solved:
            raise RuntimeError(f"Clarabel stopped with {solution.status}")
        return np.array(solution.x)[None, :]

    return solve


def in_turn(solvers: list[Callable[[], Array]]) -> Callable[[], Array]:
    """All of them, one after the other; the last result.

    Each result is kept until the next one of its kind, so that not all are written to the same place in the cache.
    """
    results = [solve() for solve in solvers]

    def solve() -> Array:
        for i, one in enumerate(solvers):
            results[i] = one()
        return results[-1]

    return solve


def race(contestants: dict[str, Callable[[], Array]], repeat: int, agree: float = 1e-5) -> dict[str, float]:
    """The best time of each in seconds; they must agree on the result to that many units."""
    first, *others = [solve().copy() for solve in contestants.values()]
    for name, other in zip(list(contestants)[1:], others, strict=True):
        worst = np.abs(first - other).max()
        if worst > agree:
            raise RuntimeError(f"{name} differs by {worst:.1e}")
    return best_times(contestants, repeat)


def best_times(contestants: dict[str, Callable[[], Array]], repeat: int) -> dict[str, float]:
    """The best time of each in seconds, the contestants taking turns of at least TURN seconds and one call."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repeat):
        for name, solve in contestants.items():
            end = time.perf_counter() + TURN
            while True:
                start = time.perf_counter()
                solve()
                stop = time.perf_counter()
                best[name] = min(best[name], stop - start)
                if stop >= end:
                    break
    return best
