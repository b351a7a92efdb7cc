"""The rung of black boxes: cutting planes from values and subgradients (Kelley 1960), over exact inner problems.

Every row with g_i(x) > tol adds the cut g_i(x) + ⟨s_i, · − x⟩, a lower bound of g_i everywhere. For a projection the
distance to the target grows with each round of cuts, so those that do not bind may be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cocopt._arrays import Array
from cocopt.cones import Cones
from cocopt.constraints import Affine, Constraint, Stack
from cocopt.errors import CutLimit, InvalidInput
from cocopt.geometry.conic import least_conic, solve_conic
from cocopt.geometry.problem import Membership, Problem
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.solvers.solution import Solution

__all__ = ["Cuts", "least_cuts", "solve_cuts"]


class Cuts(Constraint):
    """A constraint seen through its cuts: row i is the largest of the cuts a·x − b that row i has given so far."""

    __slots__ = ("A", "b", "dim", "of", "owner", "row_count")

    dim: int

    def __init__(self, of: Constraint, dim: int) -> None:
        self.of, self.dim, self.row_count = of, dim, of.row_count
        self.A, self.b, self.owner = np.zeros((0, dim)), np.zeros(0), np.zeros(0, dtype=np.int64)

    def add(self, x: Array, rows: Array, wanted: NDArray[np.bool_]) -> None:
        """The cuts of the wanted rows at x, where they have the values ``rows``."""
        slopes = self.of.jacobian(x)[wanted]
        self.A = np.concatenate([self.A, slopes])
        self.b = np.concatenate([self.b, slopes @ x - rows[wanted]])
        self.owner = np.concatenate([self.owner, np.flatnonzero(wanted)])

    def forget(self, keep: NDArray[np.bool_]) -> None:
        """Drops the other cuts."""
        self.A, self.b, self.owner = self.A[keep], self.b[keep], self.owner[keep]

    def _rows(self, x: Array) -> Array:
        rows: Array = np.full(self.row_count, -np.inf)
        np.maximum.at(rows, self.owner, self.A @ x - self.b)
        return rows

    def _jacobian(self, x: Array) -> Array:
        jacobian = np.zeros((self.row_count, self.dim))
        order = np.argsort(self.A @ x - self.b)  # the largest is written last
        jacobian[self.owner[order]] = self.A[order]
        return jacobian

    def cones(self) -> Cones:
        return Cones(self.A, self.b, np.eye(self.row_count)[self.owner], (("nonneg", self.b.size),))


def solve_cuts(
    problem: Problem,
    limit: int,
    tol: float,
    project: Callable[[ConvexSet, Constraint, Array], Array | None],
    relative: bool = False,
) -> tuple[Solution, int]:
    """The problem from values and subgradients, and the number of cuts used; violation (or model error) at most tol.

    With ``relative`` the tolerance is a share of the size of the row's terms.

    ``project`` is the door to the exact rungs, None meaning that the cuts have no point of K in common: a proof that
    the constraint has none either.
    """
    K, constraint, point, _, _ = problem
    model = Cuts(constraint, K.dim)
    nothing = np.full(constraint.row_count, np.nan)
    x, used, wrong = K._project(point), 0, np.inf
    while True:
        rows = constraint.rows(x)
        unit = np.maximum(constraint.magnitude(x), 1e-300) if relative else 1.0
        wrong = float(((rows if problem.projects else rows - np.maximum(model._rows(x), 0.0)) / unit).max())
        if wrong <= tol:
            return Solution(x, nothing, CONVERGED), used
        if used >= limit:
            raise CutLimit(
                f"cuts: the bound of {limit} cutting planes was reached at a violation of {wrong:.3g} (tol = {tol:g}); "
                "raise `cuts`, or describe the constraint by its structure instead of as a black box",
                cuts=used,
                violation=wrong,
            )
        wanted = rows > tol * unit
        model.add(x, rows, wanted)
        used += int(wanted.sum())
        if not np.linalg.norm(model.A[-wanted.sum() :], axis=1).all():
            if problem.projects:  # a row that is positive where it is least
                return Solution(x, nothing, INFEASIBLE), used
            raise InvalidInput("constraint: the subgradient of a violated row is 0, so the row is positive everywhere")
        if problem.projects:
            following = project(K, Affine(model.A, model.b), point)
            if following is None:
                return Solution(x, nothing, INFEASIBLE), used
            slack = model.b - model.A @ following
            size = np.linalg.norm(model.A, axis=1) * max(float(np.linalg.norm(following)), 1e-300)
            if model.b.size > 2 * K.dim + 20:
                model.forget(slack <= 1e-6 * size)
        else:
            solution = solve_conic(problem._replace(constraint=model))
            if solution is None or solution.status != CONVERGED:
                return Solution(x, nothing, UNCONVERGED), used
            following = solution.point
        x = following


def least_cuts(
    K: ConvexSet, constraint: Constraint, unit: Array, point: Array, limit: int, tol: float
) -> tuple[float, Array] | None:
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, to tol, and such an x; None if it was not found.

    A set that is known by its projection alone is cut out of a box by its supporting halfspaces; the box grows for as
    long as the result touches it.
    """
    if K.cones() is not None:
        return _least_in(K, K, constraint, unit, point, limit, tol)
    both = Stack([constraint, Membership(K)])
    foot = K._project(point)
    radius = min(K.diameter, 10.0 * max(float(np.abs(foot).max()), float(np.abs(foot - point).max()), 1e-300))
    for _ in range(8):
        outer = Box(foot - radius, foot + radius)
        found = _least_in(K, outer, both, np.append(unit, 0.0), foot, limit, tol)
        if found is None or radius >= K.diameter or np.abs(found[1] - foot).max() < 0.99 * radius:
            return found
        radius *= 100.0
    return None


def _least_in(
    K: ConvexSet, outer: ConvexSet, constraint: Constraint, unit: Array, point: Array, limit: int, tol: float
) -> tuple[float, Array] | None:
    """Kelley's method for min of max_i g_i/unit_i over the outer set; rows with unit 0 hold K and are not relaxed."""
    relaxed = unit > 0
    model = Cuts(constraint, K.dim)
    x = outer._project(point)
    best, best_x = np.inf, K._project(x)
    for _ in range(limit):
        rows, inside = constraint.rows(x), K._project(x)
        height = float((constraint.rows(inside)[relaxed] / unit[relaxed]).max())
        if height < best:
            best, best_x = height, inside
        model.add(x, rows, relaxed | (rows > 0))
        found = least_conic(outer, model, unit, outer._project(best_x))
        if found is None:
            return None
        below, x = found
        if best - below <= tol * max(1.0, abs(best)):
            break
    return best, best_x
