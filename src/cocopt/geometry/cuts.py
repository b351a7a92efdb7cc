"""The method of black boxes: cutting planes from values and subgradients (Kelley 1960), over exact inner problems.

A row adds the cut g_i(x) + ⟨s_i, · − x⟩, a lower bound of g_i everywhere. For a projection the distance to the target
grows with each round of cuts, so those that do not bind may be forgotten. The distance is flat around the projection:
a violation of 1e-7 may leave the position wrong by 1e-4. So cuts go on until they account for the position, and are
taken where their own curvature (`cocopt.geometry.refine`) expects the result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.constraints import Affine, Constraint, Stack
from cocopt.errors import CutLimit, InvalidInput, SolverFailure
from cocopt.geometry.conic import least_conic, solve_conic
from cocopt.geometry.problem import Membership, Problem
from cocopt.geometry.refine import Door, beside, foretell
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.solvers.solution import Solution

__all__ = ["Cuts", "least_cuts", "project_cuts", "prox_cuts"]

SHARPEST = 1e-8  # the position that is asked for at most, in units of its own size
PATIENCE = 10  # so many cuts, and as many as there are dimensions, may fail to halve the error
ROUNDING = 4 * float(np.finfo(np.float64).eps)


class Cuts(Constraint):
    """A constraint seen through its cuts: row i is the largest of the cuts a·x − b that row i has given so far."""

    __slots__ = ("A", "b", "dim", "of", "origin", "owner", "row_count")

    dim: int

    def __init__(self, of: Constraint, dim: int) -> None:
        self.of, self.dim, self.row_count = of, dim, of.row_count
        self.A, self.b, self.owner = np.zeros((0, dim)), np.zeros(0), np.zeros(0, dtype=np.int64)
        self.origin = np.zeros((0, dim))  #: where each cut was taken

    def add(self, x: Array, rows: Array, jacobian: Array, wanted: NDArray[np.bool_]) -> None:
        """The cuts of the wanted rows at x, where they have these values and subgradients."""
        slopes = jacobian[wanted]
        self.A = np.concatenate([self.A, slopes])
        self.b = np.concatenate([self.b, slopes @ x - rows[wanted]])
        self.owner = np.concatenate([self.owner, np.flatnonzero(wanted)])
        self.origin = np.concatenate([self.origin, np.broadcast_to(x, slopes.shape)])

    def forget(self, keep: NDArray[np.bool_]) -> None:
        """Drops the other cuts."""
        self.A, self.b, self.owner, self.origin = self.A[keep], self.b[keep], self.owner[keep], self.origin[keep]

    def merge(self, count: int, loss: float) -> None:
        """Of cuts of a row that are all but the same, keeps the newest; ``count`` of them are new.

        The others' slopes differ by less than 1e-3, and where they were taken they say more by less than ``loss``.
        (Many rows that are nearly parallel would cost the projection onto them its last digits.)
        """
        new = self.b.size - count
        change, step = self.A[new:, None] - self.A[:new], self.origin[new:, None] - self.origin[:new]
        same = (self.owner[new:, None] == self.owner[:new]) & (np.vecdot(change, step) <= loss)
        same &= np.linalg.norm(change, axis=-1) <= 1e-3 * np.linalg.norm(self.A[new:, None], axis=-1)
        self.forget(np.append(~same.any(axis=0), np.ones(count, dtype=bool)))

    def error(self, x: Array, rows: Array) -> float:
        """max_i g_i(x) − model_i(x)^+, given the rows' values; 0 if it may be the rounding of the cuts' own terms."""
        error = float((rows - np.maximum(self.rows_unchecked(x), 0.0)).max())
        terms = np.linalg.norm(self.A, axis=1) * np.linalg.norm(x) + np.abs(self.b)
        return error if error > ROUNDING * float(terms.max(initial=0.0)) else 0.0

    def rows_unchecked(self, x: Array) -> Array:
        rows: Array = np.full(self.row_count, -np.inf)
        np.maximum.at(rows, self.owner, self.A @ x - self.b)
        return rows

    def jacobian_unchecked(self, x: Array) -> Array:
        jacobian = np.zeros((self.row_count, self.dim))
        order = np.argsort(self.A @ x - self.b)  # the largest is written last
        jacobian[self.owner[order]] = self.A[order]
        return jacobian

    def cones(self) -> Cones:
        return Cones(self.A, self.b, np.eye(self.row_count)[self.owner], (("nonneg", self.b.size),))


class Search:
    """The cuts of a projection: those that it goes by, and all that were ever taken."""

    def __init__(self, constraint: Constraint, dim: int, tol: float, relative: bool) -> None:
        self.constraint, self.tol, self.relative = constraint, tol, relative
        self.model, self.past, self.used = Cuts(constraint, dim), Cuts(constraint, dim), 0

    def look(self, x: Array) -> tuple[Array, Array]:
        """The rows at x, and the violation that is accepted of each."""
        rows = self.constraint.rows(x)
        return rows, self.tol * (
            np.maximum(self.constraint.magnitude(x), 1e-300) if self.relative else np.ones_like(rows)
        )

    def cut(self, x: Array, rows: Array, accepted: Array, wanted: NDArray[np.bool_], blur: float) -> bool:
        """Takes the cuts of the wanted rows; False if a row is positive where it is least, so that no point will do.

        They replace older ones that are all but the same, up to this share of the accepted violation.
        """
        jacobian = self.constraint.jacobian(x)
        flat = ~jacobian.any(axis=-1)
        wanted = wanted & ~flat
        for cuts in (self.model, self.past):
            cuts.add(x, rows, jacobian, wanted)
        self.model.merge(int(wanted.sum()), blur * float(accepted.min()))
        self.used += int(wanted.sum())
        return not (flat & (rows > accepted)).any()


def project_cuts(
    problem: Problem,
    limit: int,
    tol: float,
    project: Door,
    relative: bool = False,
) -> tuple[Solution, int]:
    """The projection p from values and subgradients, and the number of cuts used; the violation is at most tol.

    With ``relative`` the tolerance is a share of the size of the row's terms. ``project`` is the door to the exact
    methods; that the cuts have no point of K in common proves that the constraint has none either.

    The position is known too: if x is the projection onto K and cuts, its optimality conditions and those of p give
    ‖x − p‖² ≤ Σ ν_i (g_i(x) − model_i(x)) for the multipliers ν of p (those of x are taken in their place). While this
    exceeds the square of what is wanted, 0.1·tol of the size of x, cuts go on below the tolerance for as long as it
    shrinks. They are taken where `foretell` expects p while its guesses close in, else at x.
    """
    K, constraint, point, _, _ = problem
    search = Search(constraint, K.dim, tol, relative)
    model = search.model
    x, nu, possible = K.project_unchecked(point), np.zeros(0), True
    settled, least, patience = None, np.inf, 0  # of the points that met the tolerance, the one the cuts explain best
    ahead, stuck = np.inf, False
    while possible and not stuck:
        size = max(float(np.linalg.norm(x)), min(float(np.linalg.norm(x - point)), K.scale))
        sharp = max(0.1 * tol, SHARPEST) * size
        with ignore_fp_warnings():
            guess = foretell(K, model, search.past, nu, point, x) if search.used < limit else None
        before, ahead = ahead, np.inf if guess is None else float(np.linalg.norm(guess.z - x))
        leap = guess is not None and sharp < ahead <= 0.5 * before
        if guess is not None and leap:
            h = min(ahead, max(100.0 * ahead**2 / size, 0.3 * sharp))
            for at, binding in [(guess.z, guess.owner)] if settled is None else beside(guess, K, h, project):
                rows, accepted = search.look(at)
                wanted = rows > 0.0
                wanted[guess.owner] = False
                wanted[binding] = True
                possible &= search.cut(at, rows, accepted, wanted, 0.1)
        else:
            ahead = np.inf
            rows, accepted = search.look(x)
            met = bool((rows <= accepted).all())
            if met:
                error, price = model.error(x, rows), float(nu.sum())
                patience = PATIENCE + K.dim if error <= 0.5 * least else patience - 1
                if error < least:
                    settled, least = x, error
                if error == 0.0 or not (price == 0.0 or error * price > sharp**2) or patience == 0:
                    break
            if search.used >= limit:
                if settled is None:
                    raise _limit_reached(limit, tol, search.used, float((rows * tol / accepted).max()))
                break
            possible = search.cut(x, rows, accepted, rows > (0.0 if met else accepted), 1e-5)
        try:
            found = project(K, Affine(model.A, model.b), point)
        except SolverFailure:
            if settled is None:
                raise
            break
        if found is None:
            break
        stuck = settled is not None and not leap and float(np.linalg.norm(found[0] - x)) <= 1e-13 * size
        x, nu = found
        if model.b.size > 2 * K.dim + 20:
            slack = model.b - model.A @ x
            keep = slack <= 1e-6 * np.linalg.norm(model.A, axis=1) * max(float(np.linalg.norm(x)), 1e-300)
            model.forget(keep)
            nu = nu[keep]
    nothing = np.full(constraint.row_count, np.nan)
    if settled is None:
        return Solution(x, nothing, INFEASIBLE), search.used
    return Solution(settled, nothing, CONVERGED), search.used


def prox_cuts(problem: Problem, limit: int, tol: float, structured: bool = False) -> tuple[Solution, int]:
    """The problem of finite caps from values and subgradients, and the number of cuts; the model errs by ≤ tol.

    If x is the result of the model and p that of the problem, ‖x − p‖² ≤ Σ_i cap_i (g_i(x) − model_i(x)^+). Of a
    ``structured`` constraint so much is accepted as leaves x right to SHARPEST of its size, or as may be rounding.
    """
    K, constraint, point, cap, total = problem
    model = Cuts(constraint, K.dim)
    nothing = np.full(constraint.row_count, np.nan)
    x, used = K.project_unchecked(point), 0
    while True:
        rows, accepted = constraint.rows(x), np.full(constraint.row_count, tol)
        if structured:
            size = max(float(np.linalg.norm(x)), K.scale)
            enough = (SHARPEST * size) ** 2 / np.maximum(np.minimum(cap, total), 1e-100)
            accepted = np.maximum(enough, ROUNDING * constraint.magnitude(x))
        wrong = rows - np.maximum(model.rows_unchecked(x), 0.0)
        if (wrong <= accepted).all():
            return Solution(x, nothing, CONVERGED), used
        if used >= limit:
            raise _limit_reached(limit, tol, used, float(wrong.max()))
        wanted = wrong > accepted
        jacobian = constraint.jacobian(x)
        if not jacobian[wanted].any(axis=-1).all():
            raise InvalidInput("constraint: the subgradient of a violated row is 0, so the row is positive everywhere")
        model.add(x, rows, jacobian, wanted)
        used += int(wanted.sum())
        solution = solve_conic(problem._replace(constraint=model))
        if solution is None or solution.status != CONVERGED:
            return Solution(x, nothing, UNCONVERGED), used
        x = solution.point


def _limit_reached(limit: int, tol: float, used: int, wrong: float) -> CutLimit:
    return CutLimit(
        f"cuts: the bound of {limit} cutting planes was reached at a violation of {wrong:.3g} (tol = {tol:g}); "
        "raise `cuts`, or describe the constraint by its structure instead of as a black box",
        cuts=used,
        violation=wrong,
    )


def least_cuts(
    K: ConvexSet, constraint: Constraint, unit: Array, point: Array, limit: int, tol: float
) -> tuple[float, Array] | None:
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, to tol, and such an x; None if it was not found.

    A set that is known by its projection alone is cut out of a box by its supporting halfspaces; the box grows for as
    long as the result touches it.
    """
    if K.conic:
        return _least_in(K, K, constraint, unit, point, limit, tol)
    both = Stack([constraint, Membership(K)])
    foot = K.project_unchecked(point)
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
    x = outer.project_unchecked(point)
    best, best_x = np.inf, K.project_unchecked(x)
    for _ in range(limit):
        rows, inside = constraint.rows(x), K.project_unchecked(x)
        height = float((constraint.rows(inside)[relaxed] / unit[relaxed]).max())
        if height < best:
            best, best_x = height, inside
        model.add(x, rows, constraint.jacobian(x), relaxed | (rows > 0))
        found = least_conic(outer, model, unit, outer.project_unchecked(best_x))
        if found is None:
            return None
        below, x = found
        if best - below <= tol * max(1.0, abs(best)):
            break
    return best, best_x
