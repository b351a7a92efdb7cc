"""A conic problem in numbers of order 1, solved by Clarabel and Newton's method, and the judge of what they return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.geometry.polish import SMOOTH, Active, Polished, polish
from cocopt.geometry.problem import Problem, excess
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.solvers import clarabel
from cocopt.solvers.solution import Solution
from cocopt.tolerances import FAR_TARGET

__all__ = ["POSITION", "Found", "minimise", "row_scaled", "size_of"]

POSITION = 1e-7  # along the active surface, in units of the result
PROMISE = 1e-9  # of violation, in units of the terms involved
OPTIMAL = 1e-9  # of stationarity and duality gap, in units of the distance that the projection bridges
NORMALS = 1e-12  # what rounding does to the normal of a curved surface, for each FAR_TARGET that the target is away
SECOND = 2 * POSITION  # is added to the error of what is second best: behind all that is sharp, ahead of nothing
PARALLEL = 1e5  # by this factor a violation may move the point, if the row is nearly parallel to another


class Found(NamedTuple):
    """An optimum in the units of the data: where to begin with the same problem and another target."""

    solution: Solution
    rest: Array  # auxiliary variables and relaxations
    dual: Array
    active: Active | None  # the rows and cones on whose surface it is
    error: float  # what bounds the error of its position, in units of its size


class _Scaled(NamedTuple):
    """The problem moved and scaled: x = point + unit·S u, S the metric, so that the distance is about 1 in any units.

    The variables of min ½ vᵀ diag(P) v + qᵀv are u, those that the cones bring along, and the relaxations at a price.
    """

    problem: Problem
    metric: Array | None
    unit: float
    P: Array
    q: Array
    cones: Cones
    relaxed: Array  # how the constraint's rows relax the first of the cones

    @classmethod
    def of(cls, problem: Problem, cones: Cones, metric: Array | None) -> _Scaled:
        K, _, point, cap, total = problem
        n, unit = K.dim, _distance(problem)
        b = (cones.b - cones.A[:, :n] @ point) / unit
        A = cones.A if metric is None else np.hstack([cones.A[:, :n] @ metric, cones.A[:, n:]])
        cones = row_scaled(cones._replace(A=A, b=b))
        relaxed, soft = cones.E, np.isfinite(cap)
        columns = relaxed[:, soft] if np.isinf(total) else relaxed.sum(axis=1, keepdims=True)
        weights = (cap[soft] if np.isinf(total) else np.array([total])) / unit
        if weights.size:  # relaxations in units of length, of several rows that share one those of the least steep
            lengths = np.min(np.abs(columns), axis=0, initial=np.inf, where=columns != 0)
            lengths = np.where(lengths < np.inf, lengths, 1.0)
            cones, weights = _with_columns(cones, columns / lengths), weights / lengths
        P = np.concatenate([np.ones(n), np.zeros(cones.A.shape[1] - n)])
        q = np.concatenate([np.zeros(P.size - weights.size), weights])
        return cls(problem, metric, unit, P, q, cones, relaxed)

    def point(self, v: Array) -> Array:
        """x in the units of the data."""
        u = v[: self.problem.K.dim]
        return self.problem.point + self.unit * (u if self.metric is None else self.metric @ u)

    def candidates(self, start: Found | None, growth: float) -> Iterator[tuple[Polished, bool]]:
        """What may be the optimum, and whether the solver says that there is none.

        Newton's method from the start, whose multipliers grow by a factor, then the solver's attempts, each with
        Newton's method first.
        """
        P, q, cones = self.P, self.q, self.cones
        if start is not None and start.active is not None:
            v = np.concatenate([start.solution.point - self.problem.point, start.rest]) / self.unit
            better = polish(P, q, cones, v, growth / self.unit * start.dual, start.active)
            if better is not None:
                yield better, False
        for attempt in range(len(clarabel.ATTEMPTS)):
            result = clarabel.minimise(P, q, cones, attempt)
            better = polish(P, q, cones, result.x, result.z)
            if better is not None:
                yield better, result.infeasible
            yield Polished(result.x, result.z, None, np.inf), result.infeasible

    def judge(self, v: Array, z: Array, active: Active | None, step: float) -> Found | None:
        """The optimum, if it is one.

        The error is Newton's next step, or else what strong convexity makes of the duality gap; more, if a row that may
        be nearly parallel to another is violated. If the target is far away the gap says nothing of position: there
        only a small step counts. What is right in units of x, but not of a much shorter distance, is second best.
        """
        (K, constraint, _, cap, total), n, unit = self.problem, self.problem.K.dim, self.unit
        size = max(1.0, float(np.abs(v[:n]).max()))
        stationarity = float((np.abs(self.P * v + self.q + self.cones.A.T @ z) / np.maximum(self.q, 1.0)).max())
        stationarity = max(stationarity, _outside(self.cones, z, dual=True))
        slack = self.cones.b - self.cones.A @ v
        gap = abs(float(slack @ z))
        x = self.point(v)
        length = size_of(K, x)
        far = unit / (2 * FAR_TARGET * length)
        bound = (stationarity + np.sqrt(2.0 * gap)) * unit / length if far <= 1.0 else np.inf
        error = min(step * unit / length, bound)
        stationarity /= max(1.0, far * NORMALS / OPTIMAL)
        outside = _outside(self.cones, slack) if self.q.any() else 0.0
        solves = max(stationarity, gap / size, outside) <= OPTIMAL * size and (far <= 1.0 or error <= POSITION)
        if not (solves or (bound <= POSITION and outside * unit <= PROMISE * length)):
            return None
        # (of rows with a price the slack tells the violation; else auxiliary variables need not have followed x)
        missed = excess(K, constraint, x, np.isinf(cap) & np.isinf(total))
        if not missed <= PROMISE * max(1.0, far):
            return None
        error = max(error, PARALLEL * missed if far <= 1.0 else 0.0) if solves else SECOND + bound
        # multipliers: what relaxing a row by t saves
        solution = Solution(x, unit * (z[: len(self.relaxed)] @ self.relaxed), CONVERGED)
        return Found(solution, unit * v[n:], unit * z, active, error)


def minimise(
    problem: Problem, cones: Cones, metric: Array | None = None, start: Found | None = None, growth: float = 1.0
) -> Found:
    """The first candidate whose position is as sharp as is promised, or else the sharpest.

    Where the optimum is degenerate none may be; where Newton's method does not apply, or a metric asks for a guess
    alone, the first one will do.
    """
    scaled = _Scaled.of(problem, cones, metric)
    wanted = POSITION if metric is None and all(kind in SMOOTH for kind, _ in cones.cones) else np.inf
    found, infeasible = None, False
    with ignore_fp_warnings():  # a proof that there is no point may be of any length
        for candidate, refused in scaled.candidates(start, growth):
            infeasible |= refused
            judged = scaled.judge(*candidate)
            if judged is not None and (found is None or judged.error < found.error):
                found = judged
                if found.error <= wanted:
                    break
    if found is not None:
        return found
    nothing = np.full(problem.constraint.row_count, np.nan)
    status = INFEASIBLE if infeasible else UNCONVERGED
    return Found(Solution(problem.point, nothing, status), np.zeros(0), np.zeros(0), None, np.inf)


def _outside(cones: Cones, slack: Array, dual: bool = False) -> float:
    """How far the slack is outside the linear and second-order cones; the solver keeps to the others.

    Or multipliers outside the dual cones, which are the same but for equations.
    """
    worst, at = 0.0, 0
    for kind, size in cones.cones:
        own = slack[at : at + size]
        if kind == "zero":
            worst = max(worst, 0.0 if dual else float(np.abs(own).max(initial=0.0)))
        elif kind == "nonneg":
            worst = max(worst, float(-own.min(initial=0.0)))
        elif kind == "soc":
            worst = max(worst, float(np.linalg.norm(own[1:]) - own[0]))
        at += size * (size + 1) // 2 if kind == "psd" else size
    return worst


def _with_columns(cones: Cones, columns: Array) -> Cones:
    """One more non-negative variable for each column, which relaxes the cones along it."""
    k = columns.shape[1]
    A = np.block([[cones.A, -columns], [np.zeros((k, cones.A.shape[1])), -np.eye(k)]])
    return Cones(A, np.append(cones.b, np.zeros(k)), np.zeros((len(A), 0)), (*cones.cones, ("nonneg", k)), cones.aux)


def size_of(K: ConvexSet, x: Array) -> float:
    """The unit of x's position: its own size, or K's scale if that is larger."""
    return max(float(np.abs(x).max()), K.scale)


def _distance(problem: Problem) -> float:
    """The order of the distance from the target to the solution."""
    K, constraint, point, _, _ = problem
    foot = K.project_unchecked(point)
    rows, jacobian = constraint.rows_unchecked(foot), constraint.jacobian_unchecked(foot)
    steepness = np.linalg.norm(jacobian, axis=-1)
    reach = float(np.max(rows[steepness > 0] / steepness[steepness > 0], initial=0.0))
    size = max(float(np.abs(point).max()), float(np.abs(foot).max()), 1e-300)
    return float(np.clip(float(np.linalg.norm(foot - point)) + reach, 1e-9 * size, 1e9 * size))


def row_scaled(cones: Cones) -> Cones:
    """The same set in numbers of order 1.

    Each row, or cone of several rows, is divided by its largest coefficient of x, each auxiliary variable gets a unit
    of its own, and rows without x are divided by their largest coefficient.
    """
    A, b, E, at = cones.A.copy(), cones.b.copy(), cones.E.copy(), 0
    n = A.shape[1] - cones.aux
    pieces: list[slice] = []
    for kind, size in cones.cones:
        rows = size * (size + 1) // 2 if kind == "psd" else size
        step = 1 if kind in ("zero", "nonneg") else rows
        pieces += [slice(i, i + step) for i in range(at, at + rows, step)]
        at += rows

    def divide(piece: slice, columns: slice) -> bool:
        largest = float(np.abs(A[piece, columns]).max(initial=0.0))
        if largest > 0:
            for part in (A, b, E):
                part[piece] /= largest
        return largest > 0

    rest = [piece for piece in pieces if not divide(piece, slice(0, n))]
    if cones.aux:
        units = np.abs(A[:, n:]).max(axis=0)
        A[:, n:] /= np.where(units > 0, units, 1.0)
    for piece in rest:
        divide(piece, slice(n, None))
    return cones._replace(A=A, b=b, E=E)
