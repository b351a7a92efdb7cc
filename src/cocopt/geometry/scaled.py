"""A conic problem in numbers of order 1, solved by Clarabel and Newton's method, and the check of what they return."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.constraints import Constraint
from cocopt.constraints.base import row_norms
from cocopt.geometry.problem import Request, relative_violation, size_of
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.solvers.cone_program import Candidate, candidates
from cocopt.solvers.layout import layout
from cocopt.solvers.polish import ActiveSurfaces, polish
from cocopt.solvers.scaling import row_scaled
from cocopt.solvers.solution import FeasibleSolution, Solution
from cocopt.sparse import SparseMatrix
from cocopt.threads import matvec
from cocopt.tolerances import FAR_TARGET, FEASIBILITY, OPTIMALITY, POSITION

__all__ = ["ConicOptimum", "ScaledProblem", "distance", "minimise", "residuals", "values_and_slopes"]

NORMALS = 1e-12  # what rounding does to the normal of a curved surface, per FAR_TARGET that the target is away
INACCURATE = 2 * POSITION  # is added to the error of inaccurate optima: they rank behind all accurate ones
PARALLEL = 1e5  # by this factor a violation may move the point, if the row is nearly parallel to another


class ConicOptimum(NamedTuple):
    """An optimum in the units of the data; a start for the same problem with another target."""

    solution: Solution
    auxiliary: Array  #: auxiliary variables and relaxations
    dual: Array
    active: ActiveSurfaces | None  #: the rows and cones on whose surface it is
    error: float  #: a bound of the error of its position, in units of its size


class ScaledProblem(NamedTuple):
    """The problem moved and scaled: x = point + unit·S u, S the metric, so that the distance is about 1 in any units.

    The variables of min ½ vᵀ diag(P) v + qᵀv are u, those that the cones bring along, and the relaxations of rows
    whose multipliers are bounded, with the bounds as their costs.
    """

    request: Request
    metric: Array | None
    unit: float
    P: Array
    q: Array
    cones: Cones
    relaxations: Array  #: how the constraint's rows relax the first of the cones

    @classmethod
    def of(cls, request: Request, cones: Cones, metric: Array | None, unit: float | None = None) -> ScaledProblem:
        """The problem of one trial's request, whose K and constraint have this conic form."""
        row_bounds, sum_bound = request.row_bounds, request.sum_bound
        n = request.K.dim
        if unit is None:
            in_set = request.K.project_unchecked(request.point)
            unit = distance(request, in_set, *values_and_slopes(request.constraint, in_set))
        if metric is not None:
            A = cones.A
            b = cones.b - matvec(A[:, :n], request.point)
            cones = row_scaled(cones.replace(A=np.hstack([A[:, :n] @ metric, A[:, n:]]), b=b), np.zeros(n), unit)
        else:
            cones = row_scaled(cones, request.point, unit)
        relaxations, bounded = cones.E, np.isfinite(row_bounds)
        costs = np.zeros(0)
        if not request.projects:
            columns = relaxations[:, bounded] if np.isinf(sum_bound) else relaxations.sum(axis=1, keepdims=True)
            costs = (row_bounds[bounded] if np.isinf(sum_bound) else np.array([sum_bound])) / unit
        if costs.size:  # relaxations in units of length, of several rows that share one those of the least steep
            lengths = np.min(np.abs(columns), axis=0, initial=np.inf, where=columns != 0)
            lengths = np.where(lengths < np.inf, lengths, 1.0)
            cones, costs = _with_relaxations(cones, columns / lengths), costs / lengths
        P, q = np.zeros(cones.matrix.width), np.zeros(cones.matrix.width)
        P[:n] = 1.0
        q[q.size - costs.size :] = costs
        return cls(request, metric, unit, P, q, cones, relaxations)

    def point(self, v: Array) -> Array:
        """x in the units of the data."""
        u = v[: self.request.K.dim]
        return self.request.point + self.unit * (u if self.metric is None else self.metric @ u)

    def candidates(self, start: ConicOptimum | None, growth: float) -> Iterator[Candidate]:
        """Newton's method from the start, whose multipliers grow by a factor; then the solver's candidates."""
        if start is not None and start.active is not None:
            v = np.concatenate([start.solution.point - self.request.point, start.auxiliary]) / self.unit
            refined = polish(self.P, self.q, self.cones, v, growth / self.unit * start.dual, start.active)
            if refined is not None:
                yield Candidate(*refined, infeasible=False)
        yield from candidates(self.P, self.q, self.cones)

    def check(self, candidate: Candidate) -> ConicOptimum | None:
        """The optimum, if the candidate satisfies the optimality conditions.

        The error is Newton's next step, or else the bound that strong convexity gives from the duality gap; more, if a
        row that may be nearly parallel to another is violated. If the target is far away the gap gives no bound of the
        position: there only a small step is accepted. What is accurate in units of x, but not in those of a much
        shorter distance to the target, ranks behind what is accurate in both.
        """
        unit, (v, z, active, step, _) = self.unit, candidate
        n = self.request.K.dim
        size = max(1.0, float(np.abs(v[:n]).max()))
        stationarity, dual_outside, gap, outside = residuals(self.P, self.q, self.cones, v, z)
        stationarity = max(stationarity, dual_outside)
        x = self.point(v)
        length = size_of(self.request, x)
        far = unit / (2 * FAR_TARGET * length)
        bound = (stationarity + np.sqrt(2.0 * gap)) * unit / length if far <= 1.0 else np.inf
        error = min(step * unit / length, bound)
        stationarity /= max(1.0, far * NORMALS / OPTIMALITY)
        outside = outside if self.q.any() else 0.0
        residual = max(stationarity, gap / size, outside)
        accurate = residual <= OPTIMALITY * size and (far <= 1.0 or error <= POSITION)
        if not (accurate or (bound <= POSITION and outside * unit <= FEASIBILITY * length)):
            return None
        # (of rows with a bounded multiplier the slack is the violation; else auxiliary variables may lag behind x)
        required = np.isinf(self.request.row_bounds) & np.isinf(self.request.sum_bound)
        violation = relative_violation(self.request, x, required)
        if not violation <= FEASIBILITY * max(1.0, far):
            return None
        error = max(error, PARALLEL * violation if far <= 1.0 else 0.0) if accurate else INACCURATE + bound
        # multipliers: what relaxing a row by t saves
        multipliers = unit * (z[: len(self.relaxations)] @ self.relaxations)
        kind = FeasibleSolution if self.request.projects and violation <= FEASIBILITY else Solution
        return ConicOptimum(kind(x, multipliers, CONVERGED), unit * v[n:], unit * z, active, error)


def residuals(P: Array, q: Array, cones: Cones, v: Array, z: Array) -> tuple[float, float, float, float]:
    """Of stationarity in units of the costs, of the dual cones, of complementarity and of the cones."""
    (values, columns, starts, _), (kinds, ends, _, _) = cones.matrix, layout(cones.cones)
    found = np.empty(4)
    kernels.cone_residuals(P, q, values, columns, starts, cones.b, kinds, ends, v, z, np.empty_like(v), found)
    stationarity, dual_outside, gap, outside = found.tolist()
    return stationarity, dual_outside, abs(gap), outside


def minimise(
    request: Request,
    cones: Cones,
    metric: Array | None = None,
    start: ConicOptimum | None = None,
    growth: float = 1.0,
    unit: float | None = None,
) -> ConicOptimum:
    """The first candidate whose position is as accurate as promised, or else the most accurate.

    Where the optimum is degenerate none may be; where Newton's method does not apply, or a metric asks for a guess
    only, the first is taken.
    """
    scaled = ScaledProblem.of(request, cones, metric, unit)
    wanted = POSITION if metric is None and layout(cones.cones).smooth else np.inf
    best, infeasible = None, False
    with ignore_fp_warnings():  # the multipliers that prove infeasibility may be of any length
        for candidate in scaled.candidates(start, growth):
            infeasible |= candidate.infeasible
            optimum = scaled.check(candidate)
            if optimum is not None and (best is None or optimum.error < best.error):
                best = optimum
                if best.error <= wanted:
                    break
    if best is not None:
        return best
    unknown = np.full(request.constraint.row_count, np.nan)
    status = INFEASIBLE if infeasible else UNCONVERGED
    return ConicOptimum(Solution(request.point, unknown, status), np.zeros(0), np.zeros(0), None, np.inf)


def _with_relaxations(cones: Cones, columns: Array) -> Cones:
    """One more non-negative variable for each column, which relaxes the cones along it."""
    k = columns.shape[1]
    left = cones.matrix.with_columns(-columns)
    bounds = SparseMatrix.diagonal(-np.ones(k)).moved(0, cones.matrix.width, left.width)
    A, b = SparseMatrix.stacked([left, bounds]), np.append(cones.b, np.zeros(k))
    return Cones(A, b, np.zeros((b.size, 0)), (*cones.cones, ("nonneg", k)), cones.aux)


def values_and_slopes(constraint: Constraint, x: Array) -> tuple[Array, Array]:
    """The rows and their subgradients at x."""
    return constraint.rows_unchecked(x), constraint.jacobian_unchecked(x)


def distance(request: Request, in_set: Array, rows: Array, slopes: Array) -> float:
    """The order of the distance from the target to the solution, from its projection onto K and the rows there."""
    steepness = row_norms(slopes)
    steep = steepness > 0.0
    to_rows = float(np.max(rows / np.where(steep, steepness, 1.0), initial=0.0, where=steep))
    size = max(float(np.abs(request.point).max()), float(np.abs(in_set).max()), 1e-300)
    away = in_set - request.point
    return min(max(math.sqrt(float(away @ away)) + to_rows, 1e-9 * size), 1e9 * size)
