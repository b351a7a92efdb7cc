"""The method of sets that are known by their projection alone: the dual of affine rows, one multiplier per row.

x(ν) = P_K(point − Aᵀν) and r(ν) = A x(ν) − b is the gradient of the concave dual. Newton steps with a Jacobian of r
by differences (one projection per row), an active set of rows, and a line search on the dual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.geometry.problem import Request, relative_violation, size_of
from cocopt.kernels.status import CONVERGED, UNCONVERGED
from cocopt.solvers.solution import Solution
from cocopt.tolerances import FEASIBILITY, OPTIMALITY_EXACT, ROUNDING

__all__ = ["solve_dual"]

MAX_STEPS = 200
MAX_HALVINGS = 60  # of a step, in the line search
MAX_PROJECTIONS = 5000  # a problem that needs more is left to other methods
RESIDUAL = 1e-13  # of the rows, in units of the data: the iteration ends


class _DualPoint(NamedTuple):
    """Multipliers ν, the point x(ν), the residuals r(ν) of the rows, and the dual value."""

    nu: Array
    x: Array
    r: Array
    value: float


def solve_dual(request: Request) -> Solution:
    """One trial's request by its dual, for affine rows without a bound on the sum of their multipliers."""
    K, constraint, point, *_ = request
    affine, sparse = constraint.affine(), constraint.sparse_rows()
    if sparse is not None:
        A, b, norms = sparse.matrix(), sparse.b, sparse.norms
    else:
        assert affine is not None  # the ladder asks for affine rows
        A, b, norms = *affine, np.linalg.norm(affine[0], axis=1)
    used = (norms > 0) & (b < np.inf)
    rhs, bounds = b[used] / norms[used], request.row_bounds[used] * norms[used]
    rows = A[used] / norms[used, None] if sparse is None else A[used].multiply(1.0 / norms[used, None]).tocsr()

    def evaluate(nu: Array) -> _DualPoint:
        x = K.project_unchecked(point - nu @ rows)
        r = rows @ x - rhs
        return _DualPoint(nu, x, r, 0.5 * float((x - point) @ (x - point)) + float(nu @ r))

    found, scale = _maximise(evaluate, bounds, point, rhs)
    nu, x, r, _ = found
    multipliers = np.zeros(b.size)
    multipliers[used] = nu / norms[used]
    gap = float(nu @ np.abs(np.where(nu < bounds, r, 0.0)))
    feasible = not request.projects or relative_violation(request, x) <= FEASIBILITY
    # the rows bind to a share of the size of x, not of the distance; but no gap is less than its rounding
    size = size_of(request, x)
    allowed = max(OPTIMALITY_EXACT * min(size, scale), ROUNDING * scale) * scale
    return Solution(x, multipliers, CONVERGED if feasible and gap <= allowed else UNCONVERGED)


def _maximise(
    evaluate: Callable[[Array], _DualPoint], bounds: Array, point: Array, rhs: Array
) -> tuple[_DualPoint, float]:
    """The maximum of the dual over 0 ≤ ν ≤ bounds, and the unit of lengths."""
    at = evaluate(np.zeros(rhs.size))
    # the unit of the multipliers, which are lengths since the rows are normalised
    scale = max(float(np.abs(point).max()), float(np.abs(at.x).max()), float(np.abs(rhs).max(initial=0.0)), 1e-300)
    for taken in range(MAX_STEPS):
        free = ((at.nu > 0) | (at.r > 0)) & ((at.nu < bounds) | (at.r < 0))
        if np.abs(at.r[free]).max(initial=0.0) <= RESIDUAL * scale or taken * rhs.size > MAX_PROJECTIONS:
            break
        step = _newton_step(evaluate, at, free, max(float(np.abs(at.r).max()), 1e-6 * scale))
        length = 1.0
        for _ in range(MAX_HALVINGS):
            trial = evaluate(np.clip(at.nu + length * step, 0.0, bounds))
            if trial.value >= at.value + 1e-4 * float(at.r @ (trial.nu - at.nu)) - 1e-15 * scale * scale:
                break
            length *= 0.5
        if np.array_equal(trial.nu, at.nu):
            break
        at = trial
    return at, scale


def _newton_step(
    evaluate: Callable[[Array], _DualPoint], at: _DualPoint, free: NDArray[np.bool_], reach: float
) -> Array:
    """The Newton step on the free rows; where r does not react to a multiplier, a step along r."""
    index = np.flatnonzero(free)
    J = np.empty((index.size, index.size))
    for column, i in enumerate(index):
        probe = at.nu.copy()
        h = 1e-7 * reach
        probe[i] += h
        J[:, column] = (at.r[index] - evaluate(probe).r[index]) / h
    J = 0.5 * (J + J.T)
    floor = 1e-10 * max(1.0, float(np.abs(J).max()))
    values, vectors = np.linalg.eigh(J)
    step = np.zeros_like(at.nu)
    step[index] = vectors @ ((vectors.T @ at.r[index]) / np.maximum(values, floor))
    return step
