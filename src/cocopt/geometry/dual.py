"""The method of sets that are known by their projection alone: the dual of affine rows, one multiplier a row.

x(ν) = P_K(point − Aᵀν) and r(ν) = A x(ν) − b is the gradient of the concave dual. Newton steps with a Jacobian of r
by differences (a projection a row), an active set of rows, and a line search on the dual.
"""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.geometry.problem import Problem, excess
from cocopt.kernels.status import CONVERGED, UNCONVERGED
from cocopt.solvers.solution import Solution

__all__ = ["solve_dual"]

STEPS = 200
PROJECTIONS = 5000  # a problem that needs more is left to others


def solve_dual(problem: Problem) -> Solution | None:
    """The problem by its dual; None if a row is not affine, or the cap is one for the sum of all rows."""
    K, constraint, point, cap, total = problem
    affine = constraint.affine()
    if affine is None or np.isfinite(total):
        return None
    A, b = affine
    norms = np.linalg.norm(A, axis=1)
    use = (norms > 0) & (b < np.inf)
    rows, right, caps = A[use] / norms[use, None], b[use] / norms[use], cap[use] * norms[use]

    def at(nu: Array) -> tuple[Array, Array, float]:
        z = point - nu @ rows
        x = K.project_unchecked(z)
        r = rows @ x - right
        return x, r, 0.5 * float((x - point) @ (x - point)) + float(nu @ r)

    nu = np.zeros(right.size)
    x, r, dual = at(nu)
    # the unit of the multipliers, which are lengths since the rows are normalised
    scale = max(float(np.abs(point).max()), float(np.abs(x).max()), float(np.abs(right).max(initial=0.0)), 1e-300)
    for taken in range(STEPS):
        free = ((nu > 0) | (r > 0)) & ((nu < caps) | (r < 0))
        if np.abs(r[free]).max(initial=0.0) <= 1e-13 * scale or taken * right.size > PROJECTIONS:
            break
        step = _newton(at, nu, r, free, max(float(np.abs(r).max()), 1e-6 * scale))
        length = 1.0
        for _ in range(60):
            trial = np.clip(nu + length * step, 0.0, caps)
            x_new, r_new, dual_new = at(trial)
            if dual_new >= dual + 1e-4 * float(r @ (trial - nu)) - 1e-15 * scale * scale:
                break
            length *= 0.5
        if np.array_equal(trial, nu):
            break
        nu, x, r, dual = trial, x_new, r_new, dual_new
    multipliers = np.zeros(b.size)
    multipliers[use] = nu / norms[use]
    gap = float(nu @ np.abs(np.where(nu < caps, r, 0.0)))
    feasible = not problem.projects or excess(K, constraint, x) <= 1e-9
    return Solution(x, multipliers, CONVERGED if feasible and gap <= 1e-10 * scale * scale else UNCONVERGED)


def _newton(at, nu: Array, r: Array, free: Array, reach: float) -> Array:  # type: ignore[no-untyped-def]
    """The Newton step on the free rows; where r does not react to a multiplier, a step along r."""
    index = np.flatnonzero(free)
    J = np.empty((index.size, index.size))
    for column, i in enumerate(index):
        probe = nu.copy()
        h = 1e-7 * reach
        probe[i] += h
        J[:, column] = (r[index] - at(probe)[1][index]) / h
    J = 0.5 * (J + J.T)
    floor = 1e-10 * max(1.0, float(np.abs(J).max()))
    values, vectors = np.linalg.eigh(J)
    step = np.zeros_like(nu)
    step[index] = vectors @ ((vectors.T @ r[index]) / np.maximum(values, floor))
    return step
