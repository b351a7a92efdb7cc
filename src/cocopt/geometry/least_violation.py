"""The least violation of a constraint over K, which decides whether K ∩ {g ≤ 0} is empty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.constraints import Stack
from cocopt.errors import SolverFailure
from cocopt.geometry.batch import joined
from cocopt.geometry.conic import nearly_feasible_point, stacked_cones
from cocopt.geometry.derived import WORK_PER_CUT, CuttingPlanes, SetDistance, inner_work
from cocopt.geometry.problem import Request, size_of
from cocopt.geometry.scaled import residuals
from cocopt.kernels.status import CONVERGED, INFEASIBLE
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.box import Box
from cocopt.solvers.cone_program import candidates
from cocopt.solvers.qp import solve_qp
from cocopt.solvers.scaling import row_scaled
from cocopt.threads import matvec
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["LeastViolation", "least_violation"]

MAX_BOXES = 8  # boxes around a set that is known by its projection alone, each larger than the last
BOX_GROWTH = 100.0
PROVEN = 1e-7  # residuals of a cone program, in units of order 1, that prove its value
STEPS = (1.0, 10.0, 0.1, 100.0, 0.01)  # units of t that are tried, as shares of the violation where the search begins
FINER, MAX_FINER = 1e-3, 4  # a value below this share of the unit of t becomes the unit, so often at most
STRICTLY = 10 * FEASIBILITY  # rows that are negative by more, in their units: whether they can be is answered


class LeastViolation(NamedTuple):
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, and such an x."""

    value: float
    point: Array


def least_violation(request: Request, unit: Array) -> LeastViolation | None:
    """The least violation of one trial's rows, in these units; None if it was not found. A row of unit 0 is held.

    By a linear program if K and the constraint are polyhedral, by a cone program if they have a conic form, and by
    cutting planes otherwise.
    """
    K, constraint, *_ = request
    polyhedral, affine, sparse = K.polyhedral(), constraint.affine(), constraint.sparse_rows()
    if polyhedral is not None and (affine is not None or sparse is not None) and (unit > 0).all():
        from cocopt.solvers import highs

        A, b = affine if sparse is None else (sparse.matrix(), sparse.b)  # type: ignore[misc]  # one of them is there
        return LeastViolation(*highs.least_violation(polyhedral, A, b, unit))
    if K.conic and constraint.conic:
        return _by_cones(request, unit, nearly_feasible_point(request)[0])  # from a far target digits are lost
    if K.conic:
        return _by_cuts(request, K, unit)
    return _by_cuts_in_boxes(request, unit)


def _by_cones(request: Request, unit: Array, point: Array) -> LeastViolation | None:
    """By a cone program in x and t; rows with unit 0 are not relaxed. None if there is no conic form.

    The least of the violations that were seen, up to the first whose residuals prove it.
    """
    K, constraint, *_ = request
    n, start = K.dim, K.project_unchecked(point)
    cones = stacked_cones(request, start)
    if cones is None:
        return None
    relaxed = unit > 0

    def violation(x: Array) -> float:
        return float(np.max(constraint.rows_unchecked(x)[relaxed] / unit[relaxed]))

    length = size_of(request, start)
    cones = row_scaled(cones, start, length)

    def search(step: float) -> tuple[LeastViolation, bool]:
        """The least of the violations that are seen with t in units of this step, and whether residuals prove it."""
        # in the rows' own units: b was divided by the length too
        lifted = cones.replace(A=cones.matrix.with_columns(-matvec(cones.E, unit)[:, None] * (step / length)))
        P, q = np.zeros(lifted.matrix.width), np.zeros(lifted.matrix.width)
        q[-1] = 1.0
        least = LeastViolation(np.inf, start)
        for candidate in candidates(P, q, lifted, rough=False):
            v, z = candidate.x, candidate.z
            if not (np.isfinite(v).all() and np.isfinite(z).all()):
                continue
            x = K.project_unchecked(start + length * v[:n])
            least = min(least, LeastViolation(violation(x), x), key=lambda found: found.value)
            with ignore_fp_warnings():
                stationarity, dual_outside, gap, _ = residuals(P, q, lifted, v, z)
            if max(stationarity, dual_outside, gap) <= PROVEN * max(1.0, abs(float(v[-1]))):
                return least, True
        return least, False

    at_start = violation(start)
    best, step = LeastViolation(np.inf, start), 0.0
    for share in STEPS:
        step = share * max(abs(at_start), 1e-300)
        found, proven = search(step)
        best = min(best, found, key=lambda least: least.value)
        if proven:
            break
    if best.value == np.inf:
        return LeastViolation(at_start, start)
    for _ in range(MAX_FINER):  # of a value far below the unit of t few digits are known
        satisfied = SATISFIED * float(np.min(constraint.magnitude(best.point)[relaxed] / unit[relaxed]))
        if not satisfied < best.value < FINER * step:
            break
        step = best.value
        best = min(best, search(step)[0], key=lambda least: least.value)
    return best


def _by_cuts_in_boxes(request: Request, unit: Array) -> LeastViolation | None:
    """For a set that is known by its projection alone: it is cut out of a box by its supporting halfspaces.

    The box grows for as long as the result touches it.
    """
    K, constraint, point, *_ = request
    center = K.project_unchecked(point)
    radius = min(K.diameter, 10.0 * max(float(np.abs(center).max()), float(np.abs(center - point).max()), 1e-300))
    whole = request._replace(constraint=Stack([constraint, SetDistance(K)]), point=center)
    for _ in range(MAX_BOXES):
        found = _by_cuts(whole, Box(center - radius, center + radius), np.append(unit, 0.0))
        if found is None or radius >= K.diameter or np.abs(found.point - center).max() < 0.99 * radius:
            return found
        radius *= BOX_GROWTH
    return None


def _by_cuts(request: Request, outer: ConvexSet, unit: Array) -> LeastViolation | None:
    """min of max_i g_i/unit_i over the outer set by cuts; rows with unit 0 hold K and are not relaxed.

    Between the best value and a lower bound, cuts are taken where a model of the rows expects less. If half the work
    that cuts are allowed is done before they meet, the best value is returned provided that the lower bound is
    positive. None if it is not, or an inner problem fails.
    """
    K, constraint = request.K, request.constraint
    relaxed, model, polyhedral = unit > 0, CuttingPlanes(constraint, K.dim), outer.polyhedral()
    x = outer.project_unchecked(request.point)
    best, center, levels = LeastViolation(np.inf, K.project_unchecked(x)), x, _Levels()
    work, lower, seen = 0.5 * WORK_PER_CUT * request.cuts, -np.inf, list[tuple[Array, Array]]()
    while work > 0.0:
        work -= inner_work(outer, model.b.size, polyhedral is not None) * max(levels.programs, 1)
        rows, inside = constraint.rows(x), K.project_unchecked(x)
        values = constraint.rows(inside)
        seen += [(x, rows), (inside, values)]
        value = float((values[relaxed] / unit[relaxed]).max())
        if value < best.value:
            best, center = LeastViolation(value, inside), x
        if best.value < -STRICTLY:
            return best
        model.add(x, rows, constraint.jacobian(x), relaxed | (rows > 0))
        accepted = request.tol * max(1.0, abs(best.value))
        if polyhedral is not None:
            try:
                found = levels.next_point(polyhedral, model, unit, center, best.value, accepted)
            except SolverFailure:
                return None
            lower = levels.lower
            if found is None:
                break
            x = found
        else:
            whole = request._replace(K=outer, constraint=model)
            least = _by_cones(whole, unit, outer.project_unchecked(best.point))
            if least is None:
                return None
            lower = max(lower, least.value)
            if best.value - least.value <= accepted:
                break
            x = least.point
    for at, values in seen:
        model.require_consistent(at, values, unit.size)
    met = best.value - lower <= request.tol * max(1.0, abs(best.value))
    return best if met or lower > FEASIBILITY else None


class _Levels:
    """The level method (Lemaréchal, Nemirovskii & Nesterov 1995), whose inner problems are projections.

    The best point is projected onto {cuts ≤ level}, with a level between the best value and a lower bound; where that
    is empty, the level is a lower bound.
    """

    def __init__(self) -> None:
        self.lower, self.step, self.programs = -np.inf, 0.0, 0  #: and how many programs the last point took

    def next_point(
        self, polyhedral: Polyhedral, model: CuttingPlanes, unit: Array, center: Array, best: float, accepted: float
    ) -> Array | None:
        """Where to cut next; None if the lower bound is as close to the best value as is accepted."""
        self.step, self.programs = max(2.0 * self.step, 0.5 * abs(best), 1e-300), 0
        while best - self.lower > accepted:
            level = best - min(self.step, 0.5 * (best - self.lower))
            self.programs += 1
            found = solve_qp(*joined(polyhedral, model.A, model.b + level * unit[model.owner]), center)
            if found.status == CONVERGED:
                return found.point
            if found.status != INFEASIBLE:
                raise SolverFailure("least violation: no point was found that passed its optimality check")
            self.lower, self.step = max(self.lower, level), 0.5 * self.step
        return None
