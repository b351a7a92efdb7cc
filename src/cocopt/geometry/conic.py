"""The rung of stacked cones: K and the constraint in conic form, handed to Clarabel together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocopt._arrays import Array
from cocopt._terms import quiet
from cocopt.cones import Cones, stack
from cocopt.constraints import Constraint
from cocopt.geometry.polish import SMOOTH, Active, Polished, polish
from cocopt.geometry.problem import Problem, excess
from cocopt.kernels.rounding import FAR
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.solvers import clarabel
from cocopt.solvers.nearer import STEPS, is_far, nearer, stays
from cocopt.solvers.solution import Solution

__all__ = ["least_conic", "solve_conic"]

POSITION = 1e-7  # along the active surface, in units of the result
PROMISE = 1e-9  # of violation, in units of the terms involved
FEET = 60  # steps to a point that is nearly feasible
CLIMB = 10.0  # by this factor targets become farther away, one after the other
CLOSE = 10.0  # the distance of a near target: along a curved surface the error becomes a tenth
SETTLED = 1e-6  # a projection from far away that moves by less than this share of its size stays
NORMALS = 1e-12  # what rounding does to the normal of a curved surface, for each FAR that the target is away
SMALLER = (1e-2, 1e-4)  # how small K ∩ {g ≤ 0} may be, as a share of the length of its points
PARALLEL = 1e3  # by this factor a violation may move the point, if the row is nearly parallel to another
OPTIMAL = 1e-9  # of stationarity and duality gap, in units of the distance that the projection bridges


def _stacked(K: ConvexSet, constraint: Constraint) -> Cones | None:
    """K and the constraint together; the relaxations are the constraint's."""
    of_set, of_rows = K.cones(), constraint.cones()
    return None if of_set is None or of_rows is None else stack([of_set, of_rows], K.dim)


def _with_columns(cones: Cones, columns: Array) -> Cones:
    """One more non-negative variable for each column, which relaxes the cones along it."""
    k = columns.shape[1]
    A = np.block([[cones.A, -columns], [np.zeros((k, cones.A.shape[1])), -np.eye(k)]])
    return Cones(A, np.append(cones.b, np.zeros(k)), np.zeros((len(A), 0)), (*cones.cones, ("nonneg", k)), cones.aux)


class _Found(NamedTuple):
    """An optimum in the units of the data: where to begin with the same problem and another target."""

    solution: Solution
    rest: Array  # auxiliary variables and relaxations
    dual: Array
    active: Active | None  # the rows and cones on whose surface it is
    error: float  # what bounds the error of its position, in units of its size


def solve_conic(problem: Problem, metric: Array | None = None) -> Solution | None:
    """The problem by Clarabel; None if K or the constraint has no conic form.

    With a ``metric`` S, x = point + S u, and it is ‖u‖ that counts as the distance.
    """
    K, constraint, point, _, _ = problem
    cones = _stacked(K, constraint)
    if cones is None:
        return None
    found, foot = None, point
    if metric is None and float(np.abs(point).max()) > FAR * K.scale:
        foot = _near_feasible(problem)
        if is_far(point, foot, _length(K, foot)):
            found = _from_afar(problem, cones, foot)
    if found is None:
        found = _minimise(problem, cones, metric)
    if not found.error <= POSITION and metric is None:  # far away in units of a set that is small, maybe
        foot = _near_feasible(problem) if foot is point else foot
        for share in SMALLER:
            if is_far(point, foot, share * _length(K, foot)):
                sharper = _from_afar(problem, cones, foot, share)
                if sharper.error <= POSITION:
                    return sharper.solution
    return found.solution


def _length(K: ConvexSet, x: Array) -> float:
    return max(float(np.abs(x).max()), K.scale)


def _near_feasible(problem: Problem) -> Array:
    """A point of K that nearly satisfies the constraint: steps to where the worst row's linear model does (Polyak)."""
    K, constraint, point, _, _ = problem
    x = K._project(point)
    for _ in range(FEET):
        rows = constraint._rows(x)
        worst = int(np.argmax(rows))
        slope = constraint._jacobian(x)[worst]
        steepness = float(slope @ slope)
        if rows[worst] <= 1e-3 * constraint.magnitude(x)[worst] or steepness == 0.0:
            break
        x = K._project(x - rows[worst] / steepness * slope)
    return x


def _from_afar(problem: Problem, cones: Cones, foot: Array, share: float = 1.0) -> _Found:
    """The problem of a target that is far away, which an interior-point method alone would leave with few digits.

    Far in units of the size of K ∩ {g ≤ 0}, which is taken to be that share of the length of its points.

    First one climbs to it: a nearer target tells the active surfaces, on which Newton's method goes on to the next.
    Across the surfaces the result still has an error, which targets that are near x mend.
    """

    def size(x: Array) -> float:
        return share * _length(problem.K, x)

    def towards(x: Array, distance: float) -> tuple[Problem, float]:
        target, tau = nearer(problem.point, x, size(x), distance)
        part = float(tau[0])
        return problem._replace(point=target, cap=part * problem.cap, total=part * problem.total), part

    distance = FAR
    middle, part = towards(foot, distance)
    found = _minimise(middle, cones)
    while part < 1.0:
        if found.solution.status == INFEASIBLE:
            return found
        distance *= CLIMB
        last, (middle, part) = part, towards(foot, distance)
        found = _minimise(middle, cones, start=found, growth=part / last)
    for _ in range(STEPS):
        if found.solution.status != CONVERGED:
            return found
        old = found.solution.point
        near, part = towards(old, CLOSE)
        found = _minimise(near, cones, start=found, growth=part)
        found = found._replace(dual=found.dual / part)
        if stays(problem.point, found.solution.point, old, size(old), SETTLED):
            return found._replace(solution=found.solution._replace(multipliers=found.solution.multipliers / part))
    return found._replace(solution=found.solution._replace(status=UNCONVERGED), error=np.inf)


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
        cones = _row_scaled(cones._replace(A=A, b=b))
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

    def candidates(self, start: _Found | None, growth: float) -> Iterator[tuple[Polished, bool]]:
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

    def judge(self, v: Array, z: Array, active: Active | None, step: float) -> _Found | None:
        """The optimum, if it is one.

        The error is Newton's next step, or else what strong convexity makes of the duality gap. If the target is far
        away the gap says nothing of position: there only a small step counts.
        """
        (K, constraint, _, cap, total), n, unit = self.problem, self.problem.K.dim, self.unit
        size = max(1.0, float(np.abs(v[:n]).max()))
        stationarity = float((np.abs(self.P * v + self.q + self.cones.A.T @ z) / np.maximum(self.q, 1.0)).max())
        slack = self.cones.b - self.cones.A @ v
        gap = abs(float(slack @ z))
        x = self.point(v)
        length = _length(K, x)
        far = unit / (2 * FAR * length)
        error = min(step, stationarity + np.sqrt(2.0 * gap) if far <= 1.0 else np.inf) * unit / length
        stationarity /= max(1.0, far * NORMALS / OPTIMAL)
        outside = _outside(self.cones, slack) if self.q.any() else 0.0
        if not (max(stationarity, gap / size, outside) <= OPTIMAL * size and (far <= 1.0 or error <= POSITION)):
            return None
        # (of rows with a price the slack tells the violation; else auxiliary variables need not have followed x)
        missed = excess(K, constraint, x, np.isinf(cap) & np.isinf(total))
        if not missed <= PROMISE * max(1.0, far):
            return None
        error = max(error, PARALLEL * missed if far <= 1.0 else 0.0)
        # multipliers: what relaxing a row by t saves
        solution = Solution(x, unit * (z[: len(self.relaxed)] @ self.relaxed), CONVERGED)
        return _Found(solution, unit * v[n:], unit * z, active, error)


def _minimise(
    problem: Problem, cones: Cones, metric: Array | None = None, start: _Found | None = None, growth: float = 1.0
) -> _Found:
    """The first candidate whose position is as sharp as is promised, or else the sharpest.

    Where the optimum is degenerate none may be; where Newton's method does not apply, or a metric asks for a guess
    alone, the first one will do.
    """
    scaled = _Scaled.of(problem, cones, metric)
    wanted = POSITION if metric is None and all(kind in SMOOTH for kind, _ in cones.cones) else np.inf
    found, infeasible = None, False
    with quiet():  # a proof that there is no point may be of any length
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
    return _Found(Solution(problem.point, nothing, status), np.zeros(0), np.zeros(0), None, np.inf)


def _outside(cones: Cones, slack: Array) -> float:
    """How far the slack is outside the linear and second-order cones; the solver keeps to the others."""
    worst, at = 0.0, 0
    for kind, size in cones.cones:
        own = slack[at : at + size]
        if kind == "zero":
            worst = max(worst, float(np.abs(own).max(initial=0.0)))
        elif kind == "nonneg":
            worst = max(worst, float(-own.min(initial=0.0)))
        elif kind == "soc":
            worst = max(worst, float(np.linalg.norm(own[1:]) - own[0]))
        at += size * (size + 1) // 2 if kind == "psd" else size
    return worst


def _distance(problem: Problem) -> float:
    """The order of the distance from the target to the solution."""
    K, constraint, point, _, _ = problem
    foot = K._project(point)
    rows, jacobian = constraint._rows(foot), constraint._jacobian(foot)
    steepness = np.linalg.norm(jacobian, axis=-1)
    reach = float(np.max(rows[steepness > 0] / steepness[steepness > 0], initial=0.0))
    size = max(float(np.abs(point).max()), float(np.abs(foot).max()), 1e-300)
    return float(np.clip(float(np.linalg.norm(foot - point)) + reach, 1e-9 * size, 1e9 * size))


def least_conic(K: ConvexSet, constraint: Constraint, unit: Array, point: Array) -> tuple[float, Array] | None:
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, and such an x; None if there is no conic form."""
    cones = _stacked(K, constraint)
    if cones is None:
        return None
    n = K.dim
    relaxed = unit > 0

    def height(x: Array) -> float:
        return float(np.max(constraint._rows(x)[relaxed] / unit[relaxed]))

    foot = K._project(point)
    length = _length(K, foot)
    step = max(abs(height(foot)), 1e-300)
    b = cones.b - cones.A[:, :n] @ foot
    cones = _row_scaled(cones._replace(A=cones.A * length, b=b))
    scaled = cones._replace(A=np.hstack([cones.A, -(cones.E @ unit[:, None]) * step]))
    size = scaled.A.shape[1]
    P, q = np.zeros(size), np.append(np.zeros(size - 1), 1.0)
    result = clarabel.minimise(P, q, scaled)
    polished = polish(P, q, scaled, result.x, result.z)
    v = result.x if polished is None else polished.x
    x = K._project(foot + length * v[:n]) if np.isfinite(v).all() else foot
    return height(x), x


def _row_scaled(cones: Cones) -> Cones:
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
