"""The method of stacked cones: K and the constraint in conic form, solved by Clarabel together."""

from __future__ import annotations

import math

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones, stack
from cocopt.geometry.problem import Request, size_of
from cocopt.geometry.scaled import ConicOptimum, distance, minimise, values_and_slopes
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers.far_targets import MAX_STEPS, is_far, is_unchanged, nearer_target
from cocopt.solvers.solution import Solution
from cocopt.threads import one_blas_thread
from cocopt.tolerances import FAR_TARGET, POSITION

__all__ = ["MAX_POLYAK_STEPS", "nearly_feasible_point", "solve_conic", "stacked_cones"]

MAX_POLYAK_STEPS = 60  # towards a point that is nearly feasible
SHORT_STEP = 1.0  # the share of its size by which such a point may still move: only orders of magnitude count
TARGET_GROWTH = 10.0  # by this factor targets become farther away, one after the other
CLOSE = 10.0  # the distance of a near target: along a curved surface the error becomes a tenth
UNCHANGED = 1e-6  # a projection from far away that moves by less than this share of its size is final
LARGER = 10.0  # by so much another unit of length shall exceed that of the distance
SMALLER = (1e-2, 1e-4)  # how small K ∩ {g ≤ 0} may be, as a share of the size of its points


def stacked_cones(request: Request, center: Array) -> Cones | None:
    """K and the constraint of one trial together, for points near the center; the relaxations are the constraint's.

    None if K or the constraint has no conic form.
    """
    of_set = request.K.conic_form
    of_rows = request.constraint.cones_near(center, size_of(request, center))
    return None if of_set is None or of_rows is None else stack([of_set, of_rows], request.K.dim)


@one_blas_thread
def solve_conic(request: Request, metric: Array | None = None) -> Solution:
    """One trial's request by Clarabel; UNCONVERGED if K or the constraint has no conic form.

    With a ``metric`` S, x = point + S u, and the distance is ‖u‖.
    """
    constraint, point = request.constraint, request.point
    center, unit = nearly_feasible_point(request)
    cones = stacked_cones(request, center)
    if cones is None:
        return Solution(point, np.full(constraint.row_count, np.nan), UNCONVERGED)
    if metric is not None:
        return minimise(request, cones, metric, unit=unit).solution
    size = size_of(request, center)
    far = is_far(point, center, size)
    optimum = _solve_far_target(request, cones, center) if far else minimise(request, cones, unit=unit)
    if not optimum.error <= POSITION:  # the target may be far away in units of a set that is small
        for share in SMALLER:
            if is_far(point, center, share * size):
                better = _solve_far_target(request, cones, center, share)
                if better.error <= POSITION:
                    return better.solution
        for larger in (math.sqrt(unit * size), size):  # in units of a short distance the data are large
            if larger > LARGER * unit:
                better = minimise(request, cones, unit=larger)
                if better.error <= POSITION:
                    return better.solution
    return optimum.solution


def nearly_feasible_point(request: Request) -> tuple[Array, float]:
    """A point of K that nearly satisfies the constraint, and the order of the distance from the target to the solution.

    By steps to where the worst row's linear model is satisfied (Polyak). They begin at the projection of the target
    onto K or, if that needs a long step, of 0, whichever is nearer in that model.
    """
    K, constraint, point, *_ = request

    def polyak_step(x: Array, rows: Array, slopes: Array) -> tuple[Array, Array, float]:
        worst = int(rows.argmax())
        steepness = float(slopes[worst] @ slopes[worst])
        share = max(float(rows[worst]), 0.0) / steepness if steepness > 0.0 else 0.0
        return x, share * slopes[worst], share * math.sqrt(steepness)

    in_set = K.project_unchecked(point)
    rows, slopes = values_and_slopes(constraint, in_set)
    # (a row of −∞ never binds)
    if not ((rows < np.inf).all() and np.isfinite(slopes).all()):  # at the end of a domain, or outside
        away = float(np.linalg.norm(point - in_set))
        return in_set, away if away > 0.0 else size_of(request, in_set)
    x, step, length = polyak_step(in_set, rows, slopes)
    if length > request.scale:
        start = K.project_unchecked(np.zeros_like(point))
        other = polyak_step(start, *values_and_slopes(constraint, start))
        x, step, length = min((x, step, length), other, key=lambda taken: taken[2])
    for _ in range(MAX_POLYAK_STEPS):
        if length <= SHORT_STEP * size_of(request, x):
            break
        x = K.project_unchecked(x - step)
        x, step, length = polyak_step(x, *values_and_slopes(constraint, x))
    return x, distance(request, in_set, rows, slopes)


def _solve_far_target(request: Request, cones: Cones, center: Array, share: float = 1.0) -> ConicOptimum:
    """The optimum for a target that is far away, which an interior-point method alone would find with few digits.

    Far in units of the size of K ∩ {g ≤ 0}, which is taken to be that share of the size of its points.

    First a sequence of targets farther and farther away: the nearest shows which surfaces are active, on which Newton's
    method goes on to the next. Across the surfaces the result still has an error, which targets near x remove.
    """

    def size(x: Array) -> float:
        return share * size_of(request, x)

    def towards(x: Array, distance: float) -> tuple[Request, float]:
        target, tau = nearer_target(request.point, x, size(x), distance)
        part = float(tau[0])
        each, of_sum = (None if bound is None else part * bound for bound in request[3:5])
        return request._replace(point=target, max_multiplier=each, max_multiplier_sum=of_sum), part

    distance = FAR_TARGET
    nearer, part = towards(center, distance)
    optimum = minimise(nearer, cones)
    while part < 1.0:
        if optimum.solution.status == INFEASIBLE:
            return optimum
        distance *= TARGET_GROWTH
        last, (nearer, part) = part, towards(center, distance)
        optimum = minimise(nearer, cones, start=optimum, growth=part / last)
    for _ in range(MAX_STEPS):
        if optimum.solution.status != CONVERGED:
            return optimum
        previous = optimum.solution.point
        nearer, part = towards(previous, CLOSE)
        optimum = minimise(nearer, cones, start=optimum, growth=part)
        optimum = optimum._replace(dual=optimum.dual / part)
        solution = optimum.solution
        if is_unchanged(solution.point, previous, size(previous), UNCHANGED):
            return optimum._replace(solution=solution._replace(multipliers=solution.multipliers / part))
    return optimum._replace(solution=optimum.solution._replace(status=UNCONVERGED), error=np.inf)
