"""The method of stacked cones: K and the constraint in conic form, handed to Clarabel together."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones, stack
from cocopt.constraints import Constraint
from cocopt.geometry.polish import polish
from cocopt.geometry.problem import Problem
from cocopt.geometry.scaled import POSITION, Found, minimise, row_scaled, size_of
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import ConvexSet
from cocopt.solvers import clarabel
from cocopt.solvers.nearer import STEPS, is_far, nearer, stays
from cocopt.solvers.solution import Solution
from cocopt.tolerances import FAR_TARGET

__all__ = ["least_conic", "solve_conic"]

FEET = 60  # steps to a point that is nearly feasible
SHORT = 1e-3  # the share of its size that such a step may still have
CLIMB = 10.0  # by this factor targets become farther away, one after the other
CLOSE = 10.0  # the distance of a near target: along a curved surface the error becomes a tenth
SETTLED = 1e-6  # a projection from far away that moves by less than this share of its size stays
SMALLER = (1e-2, 1e-4)  # how small K ∩ {g ≤ 0} may be, as a share of the size of its points


def _stacked(K: ConvexSet, constraint: Constraint, center: Array) -> Cones | None:
    """K and the constraint together, for points near the center; the relaxations are the constraint's."""
    of_set, of_rows = K.cones(), constraint.cones_near(center, size_of(K, center))
    return None if of_set is None or of_rows is None else stack([of_set, of_rows], K.dim)


def solve_conic(problem: Problem, metric: Array | None = None) -> Solution | None:
    """The problem by Clarabel; None if K or the constraint has no conic form.

    With a ``metric`` S, x = point + S u, and it is ‖u‖ that counts as the distance.
    """
    K, constraint, point, _, _ = problem
    if not (K.conic and constraint.conic):
        return None
    foot = _near_feasible(problem)
    size, cones = size_of(K, foot), _stacked(K, constraint, foot)
    if cones is None:
        return None
    if metric is not None:
        return minimise(problem, cones, metric).solution
    found = _from_afar(problem, cones, foot) if is_far(point, foot, size) else minimise(problem, cones)
    if not found.error <= POSITION:  # far away in units of a set that is small, maybe
        for share in SMALLER:
            if is_far(point, foot, share * size):
                sharper = _from_afar(problem, cones, foot, share)
                if sharper.error <= POSITION:
                    return sharper.solution
    return found.solution


def _near_feasible(problem: Problem) -> Array:
    """A point of K that nearly satisfies the constraint: steps to where the worst row's linear model does (Polyak).

    They begin at the projection of the target onto K or of 0, whichever is nearer in that model.
    """
    K, constraint, point, _, _ = problem

    def step(x: Array) -> Array:
        rows = constraint.rows_unchecked(x)
        worst = int(np.argmax(rows))
        slope = constraint.jacobian_unchecked(x)[worst]
        steepness = float(slope @ slope)
        return max(float(rows[worst]), 0.0) / steepness * slope if steepness > 0.0 else np.zeros_like(x)

    starts = [K.project_unchecked(point), K.project_unchecked(np.zeros_like(point))]
    steps = [step(x) for x in starts]
    nearest = int(np.argmin(np.linalg.norm(steps, axis=1)))
    x, s = starts[nearest], steps[nearest]
    for _ in range(FEET):
        if np.linalg.norm(s) <= SHORT * np.linalg.norm(x):
            break
        x = K.project_unchecked(x - s)
        s = step(x)
    return x


def _from_afar(problem: Problem, cones: Cones, foot: Array, share: float = 1.0) -> Found:
    """The problem of a target that is far away, which an interior-point method alone would leave with few digits.

    Far in units of the size of K ∩ {g ≤ 0}, which is taken to be that share of the size of its points.

    First one climbs to it: a nearer target tells the active surfaces, on which Newton's method goes on to the next.
    Across the surfaces the result still has an error, which targets that are near x mend.
    """

    def size(x: Array) -> float:
        return share * size_of(problem.K, x)

    def towards(x: Array, distance: float) -> tuple[Problem, float]:
        target, tau = nearer(problem.point, x, size(x), distance)
        part = float(tau[0])
        return problem._replace(point=target, cap=part * problem.cap, total=part * problem.total), part

    distance = FAR_TARGET
    middle, part = towards(foot, distance)
    found = minimise(middle, cones)
    while part < 1.0:
        if found.solution.status == INFEASIBLE:
            return found
        distance *= CLIMB
        last, (middle, part) = part, towards(foot, distance)
        found = minimise(middle, cones, start=found, growth=part / last)
    for _ in range(STEPS):
        if found.solution.status != CONVERGED:
            return found
        old = found.solution.point
        near, part = towards(old, CLOSE)
        found = minimise(near, cones, start=found, growth=part)
        found = found._replace(dual=found.dual / part)
        if stays(problem.point, found.solution.point, old, size(old), SETTLED):
            return found._replace(solution=found.solution._replace(multipliers=found.solution.multipliers / part))
    return found._replace(solution=found.solution._replace(status=UNCONVERGED), error=np.inf)


def least_conic(K: ConvexSet, constraint: Constraint, unit: Array, point: Array) -> tuple[float, Array] | None:
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, and such an x; None if there is no conic form."""
    if not (K.conic and constraint.conic):
        return None
    n, foot = K.dim, K.project_unchecked(point)
    cones = _stacked(K, constraint, foot)
    if cones is None:
        return None
    relaxed = unit > 0

    def height(x: Array) -> float:
        return float(np.max(constraint.rows_unchecked(x)[relaxed] / unit[relaxed]))

    length = size_of(K, foot)
    step = max(abs(height(foot)), 1e-300)
    b = cones.b - cones.A[:, :n] @ foot
    cones = row_scaled(cones._replace(A=cones.A * length, b=b))
    scaled = cones._replace(A=np.hstack([cones.A, -(cones.E @ unit[:, None]) * step]))
    size = scaled.A.shape[1]
    P, q = np.zeros(size), np.append(np.zeros(size - 1), 1.0)
    result = clarabel.minimise(P, q, scaled)
    polished = polish(P, q, scaled, result.x, result.z)
    v = result.x if polished is None else polished.x
    x = K.project_unchecked(foot + length * v[:n]) if np.isfinite(v).all() else foot
    return height(x), x
