"""The method of black boxes: smooth and separable rows by methods of their own, all others by cutting planes.

Cutting planes come from values and subgradients (Kelley 1960), over exact inner problems. A row adds the cut
g_i(x) + ⟨s_i, · − x⟩, a lower bound of g_i everywhere. For a projection the distance to the target grows with each
round of cuts, so those that do not bind may be removed. The distance is flat around the projection: a violation of 1e-7
may leave the position wrong by 1e-4. So cuts go on until they bound the error of the position, and are taken where
their own curvature (`cocopt.geometry.refine`) predicts the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.constraints import Affine, Stack
from cocopt.errors import CutLimit, InvalidInput, SolverFailure
from cocopt.geometry.batch import solve_batch
from cocopt.geometry.conic import MAX_POLYAK_STEPS, nearly_feasible_point, solve_conic
from cocopt.geometry.derived import WORK_PER_CUT, CuttingPlanes, SetDistance, inner_work
from cocopt.geometry.problem import Request, size_of
from cocopt.geometry.refine import Guess, cut_points, predict_projection
from cocopt.geometry.rows import BEST_POSITION, Evaluation, SplitRows, project_onto_cuts, split
from cocopt.geometry.separable import solve_separable
from cocopt.geometry.smooth import MAX_DIM, SmoothSearch
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.ball import Ball
from cocopt.sets.box import Box
from cocopt.solvers.far_targets import MAX_STEPS, nearer_target
from cocopt.solvers.solution import Solution
from cocopt.tolerances import FAR_TARGET

__all__ = ["project_by_cuts", "prox_by_cuts", "solve_by_cuts"]

CLOSE = 10.0  # the distance of a near target, in units of the size of x: along a curved surface errors become a tenth
MAX_SLOW_CUTS = 10  # so many cuts, and as many as there are dimensions, may fail to halve the error
SAME_POINT = 1e-13  # a projection that moves by a smaller share of its size has not moved
SLACK = 1e-6  # cuts with less slack, in units of their terms, are kept when the others are removed
CUT_SHARE, GUESS_SHARE = 1e-5, 0.1  # of the accepted violation, what merging cuts may lose at an iterate, at a guess


def solve_by_cuts(request: Request) -> Solution:
    """One trial's request by cutting planes."""
    if not request.K.conic:
        return _project_in_space(request)
    found, evaluations = _by_smooth_rows(request)
    if found is not None:
        return found
    if not request.projects:
        return prox_by_cuts(request)
    near = request.K.project_unchecked(request.point)
    if _is_linear(request) or float(np.abs(request.point - near).max()) <= FAR_TARGET * size_of(request, near):
        return project_by_cuts(request, request.tol, evaluations)
    return _cuts_from_far_away(request, near, evaluations)


def _is_linear(request: Request) -> bool:
    """Whether projections onto cuts are quadratic programs; else they are cone programs, and slow from far away."""
    fixed, _ = split(request.constraint)
    linear = fixed is None or fixed.affine() is not None
    return linear and (request.K.polyhedral() is not None or type(request.K) is Ball)


def _cuts_from_far_away(request: Request, x: Array, evaluations: Sequence[Evaluation]) -> Solution:
    """The projection of a target that is far away, from nearer ones; x is where the first of them begins."""
    search = _Search(request, request.tol, evaluations)
    for _ in range(MAX_STEPS):
        target, _ = nearer_target(request.point, x, size_of(request, x), CLOSE)
        search.restart(target)
        solution, previous = search.run(), x
        x = solution.point
        if solution.status != CONVERGED or float(np.abs(x - previous).max()) <= BEST_POSITION * size_of(request, x):
            return solution
    return solution._replace(status=UNCONVERGED)


def _by_smooth_rows(request: Request) -> tuple[Solution | None, list[Evaluation]]:
    """The solution if the rows are smooth, or a separable piecewise linear one; and all evaluations."""
    problem = SplitRows(request, request.tol)
    bounded = not request.projects
    if not problem.whole or request.K.dim > MAX_DIM or (bounded and request.constraint.row_count > 1):
        return None, []
    search = SmoothSearch(problem, float(min(request.row_bounds[0], request.sum_bound)) if bounded else np.inf)
    solved, seen = search.run(), search.evaluations
    if not solved and not bounded and len(seen) > 1 and problem.looks_separable(*seen[-2:]):
        found = solve_separable(problem, seen)
        if found is not None:
            return found, []
        problem.may_be_separable = False
        solved = search.run()
    near = search.point if solved else min(seen, key=lambda at: float(at.g.max())).x
    far = float(np.abs(request.point).max()) > FAR_TARGET * request.scale
    if far and not solved and problem.used + MAX_POLYAK_STEPS < request.cuts:
        near, _ = nearly_feasible_point(request)  # the search may have stayed far from all feasible points
    if float(np.abs(request.point - near).max()) > FAR_TARGET * size_of(request, near):
        solution = _from_far_away(request, near, problem.used)
        if solution is not None:
            return solution, []
    if not solved:
        return None, problem.of_black_boxes(seen)
    used = problem.used - max(problem.boxes, 1)  # the last evaluation proves the result, and cuts nothing
    return Solution(search.point, problem.multipliers(search.multipliers), CONVERGED, used), []


def _from_far_away(request: Request, x: Array, used: int) -> Solution | None:
    """The solution for a target that is far away, from nearer ones; x is about where it is. None if it moves on."""
    for _ in range(MAX_STEPS):
        target, tau = nearer_target(request.point, x, size_of(request, x), CLOSE)
        each, of_sum = (None if bound is None else tau[0] * bound for bound in request[3:5])
        problem = SplitRows(request._replace(point=target, max_multiplier=each, max_multiplier_sum=of_sum), request.tol)
        problem.may_be_separable = False
        bound = np.inf if request.projects else float(tau[0] * min(request.row_bounds[0], request.sum_bound))
        search = SmoothSearch(problem, bound)
        if not search.run():
            return None
        previous, x, used = x, search.point, used + problem.used
        if float(np.abs(x - previous).max()) <= BEST_POSITION * size_of(request, x):
            return Solution(x, problem.multipliers(search.multipliers) / tau[0], CONVERGED, used)
    return None


def _project_in_space(request: Request) -> Solution:
    """The projection if K is known by its projection alone: K becomes a black box too, in the whole space."""
    K = request.K
    space, both = Box(-np.inf, np.inf, dim=K.dim), Stack([request.constraint, SetDistance(K)])
    whole = request._replace(K=space, constraint=both, max_multiplier=None, max_multiplier_sum=None)
    solution = project_by_cuts(whole, request.tol / 4)
    return solution._replace(point=K.project_unchecked(solution.point))


def project_by_cuts(request: Request, tol: float, evaluations: Sequence[Evaluation] = ()) -> Solution:
    """The projection p from values and subgradients; the violation is at most tol.

    That the cuts have no point of K in common proves that the constraint has none either. Rows with a structure are no
    cuts: with K, they are projected onto exactly. ``evaluations`` are known already.

    The error of the position is bounded too: if x is the projection onto K and cuts, its optimality conditions and
    those of p give ‖x − p‖² ≤ Σ ν_i (g_i(x) − model_i(x)) for the multipliers ν of p (those of x are taken in their
    place). While this exceeds the square of what is wanted, 0.1·tol of the size of x, cuts go on below the tolerance
    for as long as it shrinks. They are taken where `predict_projection` expects p while its guesses converge, else
    at x.
    """
    return _Search(request, tol, evaluations).run()


class _Search:
    """The state of a projection by cutting planes: the cuts, the projection x onto them, and the best point so far."""

    def __init__(self, request: Request, tol: float, evaluations: Sequence[Evaluation]) -> None:
        self.request, self.tol = request, tol
        self.fixed, self.boxes = split(request.constraint)
        K = request.K
        self.model = CuttingPlanes(self.boxes, K.dim)  #: the cuts that are projected onto
        self.past = CuttingPlanes(self.boxes, K.dim)  #: all that were ever taken
        self.used = 0  #: how many these are
        self.work, self.work_limit = 0.0, WORK_PER_CUT * request.cuts  #: multiplications, about
        self.linear = _is_linear(request)
        self.seen = [(x, g) for x, g, _ in evaluations]  #: where the rows were evaluated, and their values
        for x, g, J in evaluations:
            wanted: NDArray[np.bool_] = np.asarray(J.any(axis=-1))
            self.model.add(x, g, J, wanted)
            self.past.add(x, g, J, wanted)
            self.used += int(wanted.sum())
        self.restart(request.point)

    def restart(self, point: Array) -> None:
        """Another target, with the cuts that there are."""
        self.request = self.request._replace(point=point)
        self.x, self.nu = self.request.K.project_unchecked(point), np.zeros(0)
        self.possible, self.stalled = True, False
        #: of the points that met the tolerance, the one where the model's error is least
        self.best: Array | None = None
        self.least_error, self.cuts_left = np.inf, 0
        self.guess_distance = np.inf  #: from x to the last guess that was used

    def run(self) -> Solution:
        """Cuts until the position is known, the cuts have no common point, or they make no progress."""
        if self.fixed is not None or self.used:
            self.possible = self._project_onto_cuts(predicted=True)
        while self.possible and not self.stalled:
            guess = self._next_guess()
            if guess is not None:
                self._cut_at_guess(guess)
            elif not self._cut_at_iterate():
                break
            if not self.possible or not self._project_onto_cuts(predicted=guess is not None):
                break
        unknown = np.full(self.request.constraint.row_count, np.nan)
        if self.best is None:
            self._require_consistent()
            return Solution(self.x, unknown, INFEASIBLE, self.used)
        return Solution(self.best, unknown, CONVERGED, self.used)

    @property
    def _exhausted(self) -> bool:
        """Whether the cuts are used up, or the work that they allow."""
        return self.used >= self.request.cuts or self.work >= self.work_limit

    @property
    def _size(self) -> float:
        """The unit of the position."""
        x = self.x
        return max(float(np.linalg.norm(x)), min(float(np.linalg.norm(x - self.request.point)), self.request.scale))

    @property
    def _accuracy(self) -> float:
        """The error of the position that is aimed at."""
        return max(0.1 * self.tol, BEST_POSITION) * self._size

    def _next_guess(self) -> Guess | None:
        """Where the projection is expected, if the guesses converge and the next is not the iterate itself."""
        guess, K, point = None, self.request.K, self.request.point
        if not self._exhausted:
            with ignore_fp_warnings():
                guess = predict_projection(K, self.fixed, self.model, self.past, self.nu, point, self.x)
            if not self.linear and self.nu.any():
                self.work += inner_work(K, self.model.b.size, linear=False)
        previous, self.guess_distance = self.guess_distance, np.inf
        if guess is None:
            return None
        distance = float(np.linalg.norm(guess.z - self.x))
        if not self._accuracy < distance <= 0.5 * previous:
            return None
        self.guess_distance = distance
        return guess

    def _cut_at_guess(self, guess: Guess) -> None:
        """Cuts where the projection is expected; once a point met the tolerance, beside it, so as to see all pieces."""
        distance, K = self.guess_distance, self.request.K
        h = min(distance, max(100.0 * distance**2 / self._size, 0.3 * self._accuracy))
        points = [(guess.z, guess.owner)] if self.best is None else cut_points(guess, K, self.fixed, h)
        for at, binding in points:
            if not self.linear and self.best is not None:
                self.work += inner_work(K, guess.owner.size, linear=False)
            rows = self._evaluate(at)
            wanted = rows > 0.0
            wanted[guess.owner] = False
            wanted[binding] = True
            self.possible &= self._add_cuts(at, rows, wanted, GUESS_SHARE)

    def _cut_at_iterate(self) -> bool:
        """Cuts at x; False if the search ends with the best point: its position is known, or the limit is reached."""
        rows = self._evaluate(self.x)
        met = bool((rows <= self.tol).all())
        if met:
            error, nu_sum = self.model.error(self.x, rows), float(self.nu.sum())
            self.cuts_left = (
                MAX_SLOW_CUTS + self.request.K.dim if error <= 0.5 * self.least_error else self.cuts_left - 1
            )
            if error < self.least_error:
                self.best, self.least_error = self.x, error
            known = not (nu_sum == 0.0 or error * nu_sum > self._accuracy**2)  # NaN, an unknown multiplier, too
            if error == 0.0 or known or self.cuts_left == 0:
                return False
        if self._exhausted:
            if self.best is None:
                self._require_consistent()
                raise _limit_reached(self.request, self.tol, self.used, float(rows.max()))
            return False
        wanted = rows > (0.0 if met else self.tol)
        self.possible = self._add_cuts(self.x, rows, wanted, CUT_SHARE)
        return True

    def _project_onto_cuts(self, predicted: bool) -> bool:
        """The next x; False if the cuts have no point of K in common, or, with a best point known, the methods fail."""
        K, model, size = self.request.K, self.model, self._size
        m = model.b.size + (0 if self.fixed is None else self.fixed.row_count)
        self.work += inner_work(K, m, self.linear)
        try:
            found = project_onto_cuts(K, self.fixed, model.A, model.b, self.request.point)
        except SolverFailure:
            if self.best is None:
                raise
            return False
        if found is None:
            return False
        moved = float(np.linalg.norm(found[0] - self.x))
        self.stalled = self.best is not None and not predicted and moved <= SAME_POINT * size
        self.x, self.nu = found
        if model.b.size > 2 * K.dim + 20:
            slack = model.b - model.A @ self.x
            keep = slack <= SLACK * np.linalg.norm(model.A, axis=1) * max(float(np.linalg.norm(self.x)), 1e-300)
            model.keep(keep)
            self.nu = self.nu[keep]
        return True

    def _evaluate(self, x: Array) -> Array:
        """The rows at x."""
        rows = self.boxes.rows(x)
        self.seen.append((x, rows))
        return rows

    def _require_consistent(self) -> None:
        """Raises if the callables contradict themselves, before it is said that there is no point or none was found."""
        for x, rows in self.seen:
            self.past.require_consistent(x, rows, self.request.constraint.row_count)

    def _add_cuts(self, x: Array, rows: Array, wanted: NDArray[np.bool_], share: float) -> bool:
        """Adds the cuts of the wanted rows; False if a row is positive where it is least: then no point satisfies it.

        They replace older ones that are nearly the same, up to this share of the accepted violation.
        """
        jacobian = self.boxes.jacobian(x)
        flat = ~jacobian.any(axis=-1)
        wanted = wanted & ~flat
        for cuts in (self.model, self.past):
            cuts.add(x, rows, jacobian, wanted)
        self.model.merge(int(wanted.sum()), share * self.tol)
        self.used += int(wanted.sum())
        return not (flat & (rows > self.tol)).any()


def prox_by_cuts(request: Request) -> Solution:
    """The request with bounded multipliers from values and subgradients; the error of the model is at most tol.

    If x is the result of the model and p that of the problem, ‖x − p‖² ≤ Σ_i max_multiplier_i (g_i(x) − model_i(x)^+).
    """
    K, constraint, point, *_ = request
    limit, bounds = request.cuts, np.minimum(request.row_bounds, request.sum_bound)
    model, seen = CuttingPlanes(constraint, K.dim), list[tuple[Array, Array]]()
    x, used, work = K.project_unchecked(point), 0, 0.0
    while True:
        rows = constraint.rows(x)
        seen.append((x, rows))
        error = rows - np.maximum(model.rows_unchecked(x), 0.0)
        wanted = error > request.tol
        unknown = np.full(constraint.row_count, np.nan)
        if not wanted.any():
            return Solution(x, unknown, CONVERGED, used)
        found: Array | None = None
        if used < limit and work < WORK_PER_CUT * limit:
            jacobian = constraint.jacobian(x)
            if not jacobian[wanted].any(axis=-1).all():
                raise InvalidInput(
                    "constraint: the subgradient of a violated row is 0, so the row is positive everywhere"
                )
            model.add(x, rows, jacobian, wanted)
            used += int(wanted.sum())
            work += inner_work(K, model.b.size)
            found = _prox_of_model(request, model, bounds)
        if found is None:
            for at, values in seen:
                model.require_consistent(at, values, constraint.row_count)
            if used < limit and work < WORK_PER_CUT * limit:
                return Solution(x, unknown, UNCONVERGED, used)
            raise _limit_reached(request, request.tol, used, float(error.max()))
        x = found


def _prox_of_model(request: Request, model: CuttingPlanes, bounds: Array) -> Array | None:
    """The request with the cuts in place of the constraint; None if it was not found."""
    if model.row_count == 1:  # all multipliers together have the bound: compiled over a box, ball or polyhedron
        rows = request._replace(constraint=Affine(model.A, model.b), max_multiplier=None, max_multiplier_sum=bounds[0])
        batch = solve_batch(rows)
        if batch is not None and batch[2] == CONVERGED:
            return batch[0]
    solution = solve_conic(request._replace(constraint=model))
    return solution.point if solution.status == CONVERGED else None


def _limit_reached(request: Request, tol: float, used: int, violation: float) -> CutLimit:
    limit, n = request.cuts, request.K.dim
    reached = f"the bound of {limit} cutting planes" if used >= limit else f"the work of {limit} cutting planes"
    return CutLimit(
        f"cuts: {reached} in {n} dimensions was reached after {used} of them, at a violation of {violation:.3g} "
        f"(tol = {tol:g}); describe the constraint by its structure instead of as a black box (constraints.Stack, "
        f"constraints.from_cvxpy), raise `cuts`, or raise `tol`",
        cuts=used,
        violation=violation,
    )
