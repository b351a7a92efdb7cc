"""Black boxes that are separable and piecewise linear, g(x) = Σ_j h_j(x_j), such as a limit on turnover Σ |x_j − w_j|.

One by one, cutting planes would have to meet every corner of such a function. But one evaluation gives the slope of
every h_j, so that their kinks are found all at once, by bisection. The projection onto the function so learnt is the
answer if cutting planes of the black box itself prove it; nothing depends on the assumption.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.constraints import Constraint
from cocopt.errors import SolverFailure
from cocopt.geometry.rows import Evaluation, SplitRows
from cocopt.geometry.smooth import ACCURATE, Step
from cocopt.kernels.status import CONVERGED
from cocopt.sets.base import Polyhedral
from cocopt.solvers.solution import Solution

__all__ = ["solve_separable"]

MAX_ROUNDS = 6  # functions that are learnt, each from the last and what was wrong with it
MAX_PROBES = 400  # evaluations to find kinks
SAME_VALUE = 1e-11  # values of the function that was learnt, relative to its terms, that count as the same
MAX_CELLS = 60  # neighbouring cells to which a minimiser moves on
MAX_MULTIPLIERS = 60  # multipliers that are tried
CLOSE_MULTIPLIER = 0.1  # by this share the multiplier may be too large: a cell near that of the projection is enough
HOLDS = 1e-12  # a slope that lacks less than this share of the force holds a coordinate
EPS = float(np.finfo(np.float64).eps)


class Kinks(NamedTuple):
    """Kinks of the h_j, sorted by coordinate and position; each lies between two points with different slopes."""

    j: NDArray[np.int64]  #: the coordinate
    low: Array
    high: Array
    before: Array  #: the slope at low
    after: Array  #: the slope at high


class Pieces(Constraint):
    """c + ⟨a, x⟩ + Σ_k (after_k − before_k)·max(0, x_{j_k} − high_k), with the value of the black box at one point."""

    __slots__ = ("c", "dim", "jumps", "kinks", "slope", "starts")

    dim: int

    def __init__(self, kinks: Kinks, slope: Array, at: Evaluation) -> None:
        self.kinks, self.slope, self.dim = kinks, slope, slope.size
        self.jumps, self.c = kinks.after - kinks.before, 0.0
        self.starts = np.searchsorted(kinks.j, np.arange(slope.size + 1))  #: the first kink of each coordinate
        self.c = float(at.g[0] - self.rows_unchecked(at.x)[0])

    def rows_unchecked(self, x: Array) -> Array:
        beyond = np.maximum(x[self.kinks.j] - self.kinks.high, 0.0)
        return np.array([self.c + float(self.slope @ x) + float(self.jumps @ beyond)])

    def jacobian_unchecked(self, x: Array) -> Array:
        return self.slope_beyond(x[self.kinks.j] > self.kinks.high)[None]

    def slope_beyond(self, passed: NDArray[np.bool_]) -> Array:
        """The slope where these kinks are passed."""
        beyond: Array = self.slope + np.bincount(self.kinks.j, self.jumps * passed, minlength=self.dim)
        return beyond

    def magnitude(self, x: Array) -> Array:
        terms = np.abs(self.jumps) @ np.maximum(np.abs(x[self.kinks.j]), np.abs(self.kinks.high))
        return np.array([abs(self.c) + float(np.abs(self.slope) @ np.abs(x)) + float(terms)])


def solve_separable(problem: SplitRows, evaluations: list[Evaluation]) -> Solution | None:
    """The projection if the black box turns out to be separable and piecewise linear where it matters; else None."""
    try:
        return _learn_and_project(problem, _Probe(problem), evaluations)
    except SolverFailure:
        return None


class _Probe:
    """Evaluations of a single black box at points of K, up to a number of them."""

    def __init__(self, problem: SplitRows) -> None:
        self.problem, self.left = problem, min(MAX_PROBES, problem.request.cuts - problem.used)
        self.share = 1.0  # of the coordinates that are asked for at once

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Values and slopes at points (m, n)."""
        self.left -= len(x)
        if self.left < 0:
            raise SolverFailure("too many probes")
        self.problem.used += len(x)
        curved = self.problem.curved
        found = [(curved.rows(point)[0], curved.jacobian(point)[0]) for point in x]
        return np.array([value for value, _ in found]), np.array([slope for _, slope in found])

    def point(self, j: NDArray[np.int64], values: Array) -> tuple[Array, int]:
        """A point of K whose first coordinates in j, as many as are possible at once, have these values."""
        problem, base = self.problem, self.problem.start
        while True:
            count = max(int(self.share * j.size), 1)
            if not problem.b.size:
                x = base.copy()
                x[j] = values
                return x, j.size
            lower, upper, x = problem.lower.copy(), problem.upper.copy(), base.copy()
            x[j[:count]] = lower[j[:count]] = upper[j[:count]] = values[:count]
            within = problem.polyhedron._replace(lower=lower, upper=upper)
            step = _project_within(within, base, base[None][:0], np.zeros(0))
            if step is not None and problem.is_in_polyhedron(step.x):
                return step.x, count
            if count == 1:
                raise SolverFailure("no point of K has this coordinate")
            self.share *= 0.5


def _project_within(polyhedron: Polyhedral, target: Array, rows: Array, rhs: Array) -> Step | None:
    """The projection onto a polyhedron and further rows by the compiled kernel; None if it does not find it."""
    lower, upper, A, b, equalities = polyhedron
    every, limits = np.concatenate([A, rows]), np.concatenate([b, rhs])
    if not limits.size:
        x = np.minimum(np.maximum(target, lower), upper)
        return Step(x, rhs, b, rhs)
    memory = kernels.workspace_memory(*every.shape)
    bounds = np.full(limits.size, np.inf)
    x, nu, status = kernels.box_rows(target, lower, upper, every, limits, bounds, equalities, *memory)
    return Step(x, nu[b.size :], nu[: b.size], rhs) if status == CONVERGED else None


def _learn_and_project(problem: SplitRows, probe: _Probe, evaluations: list[Evaluation]) -> Solution | None:
    """Learns the function from probes, projects onto it, and has cutting planes prove the result."""
    one, two = evaluations[-2:]
    points, slopes = np.array([one.x, two.x]), np.concatenate([one.J, two.J])
    if not problem.b.size:  # the corners of a box are points of K
        reach = 4.0 * float(np.abs(one.x - two.x).max())
        sides = ((problem.lower, one.x - reach), (problem.upper, one.x + reach))
        mixed = np.where(np.arange(one.x.size) % 2 == 0, one.x, two.x)
        corners = np.array([mixed, *(np.where(np.isfinite(side), side, near) for side, near in sides)])
        points, slopes = np.concatenate([points, corners]), np.concatenate([slopes, probe(corners)[1]])
    elif np.isfinite(problem.lower).all():
        more = _on_both_sides(problem)
        points, slopes = np.concatenate([points, more]), np.concatenate([slopes, probe(more)[1].reshape(more.shape)])
    for _ in range(MAX_ROUNDS):
        learnt = _learn(probe, points, slopes, one)
        step = None if learnt is None else _project(problem, learnt)
        if learnt is None or step is None:
            return None
        value, slope = probe(step.x[None])
        at = Evaluation(step.x, value, slope)
        if abs(float(value[0] - learnt.rows_unchecked(step.x)[0])) <= SAME_VALUE * float(learnt.magnitude(step.x)[0]):
            return _proved(problem, probe, learnt, at, step)
        points, slopes = np.concatenate([points, step.x[None]]), np.concatenate([slopes, slope])
    return None


def _on_both_sides(problem: SplitRows) -> Array:
    """Points of K with every other coordinate at its lower bound, the others beyond what they are on average."""
    n, whole = problem.start.size, problem.polyhedron
    none, limits = np.zeros((0, n)), np.zeros(0)
    middle, found = _project_within(whole, np.full(n, problem.start.mean()), none, limits), []
    for first in range(2):
        upper = problem.upper.copy()
        upper[first::2] = problem.lower[first::2]
        step = None if middle is None else _project_within(whole._replace(upper=upper), middle.x, none, limits)
        if step is not None and problem.is_in_polyhedron(step.x):
            found.append(step.x)
    return np.array(found).reshape(-1, n)


def _learn(probe: _Probe, points: Array, slopes: Array, one: Evaluation) -> Pieces | None:
    """All kinks between the points, by bisection in many coordinates at once; None if the slopes are not constants."""
    order = np.argsort(points, axis=0, kind="stable")
    x, s = np.take_along_axis(points, order, axis=0), np.take_along_axis(slopes, order, axis=0)
    j, k = np.nonzero((s[1:] != s[:-1]).T)
    kinks = Kinks(j, x[k, j], x[k + 1, j], s[k, j], s[k + 1, j])
    if not j.size or (kinks.after <= kinks.before).any() or (kinks.low == kinks.high).any():
        return None  # not convex in each coordinate, so not separable
    first = True
    while True:
        middle = 0.5 * (kinks.low + kinks.high)
        wide = np.flatnonzero((middle > kinks.low) & (middle < kinks.high))
        wide = wide[np.argsort(kinks.low[wide] - kinks.high[wide], kind="stable")]  # the widest first
        wide = wide[np.sort(np.unique(kinks.j[wide], return_index=True)[1])]  # one of each coordinate
        if not wide.size:
            return Pieces(_merged(kinks), s[0], one)
        at, count = probe.point(kinks.j[wide], middle[wide])
        wide = wide[:count]
        slope = probe(at[None])[1][0, kinks.j[wide]]
        other = (slope != kinks.before[wide]) & (slope != kinks.after[wide])
        if first and 2 * np.count_nonzero(other) > count:
            return None  # the slopes change everywhere: a smooth function
        first, kinks = False, _halved(kinks, wide, middle[wide], slope)


def _halved(kinks: Kinks, at: NDArray[np.int64], middle: Array, slope: Array) -> Kinks:
    """The halves of the intervals ``at`` in which the slope changes; both, if it is a third one in the middle."""
    low, high, after = kinks.low.copy(), kinks.high.copy(), kinks.after.copy()
    to_right = slope == kinks.before[at]
    low[at[to_right]], high[at[~to_right]] = middle[to_right], middle[~to_right]
    third = ~to_right & (slope != kinks.after[at])
    after[at[third]] = slope[third]
    halves = kinks._replace(low=low, high=high, after=after)
    if not third.any():
        return halves
    added = at[third]
    more = Kinks(kinks.j[added], middle[third], kinks.high[added], slope[third], kinks.after[added])
    order = np.lexsort((np.append(halves.low, more.low), np.append(halves.j, more.j)))
    return Kinks(*(np.append(part, new)[order] for part, new in zip(halves, more, strict=True)))


def _merged(kinks: Kinks) -> Kinks:
    """Kinks of a coordinate that rounding alone keeps apart are one: at a kink the slope itself may be a third one."""
    close = 4 * EPS * np.maximum(np.abs(kinks.low[1:]), np.abs(kinks.high[:-1]))
    apart = (kinks.j[1:] != kinks.j[:-1]) | (kinks.low[1:] - kinks.high[:-1] > close)
    first, last = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
    return Kinks(kinks.j[first], kinks.low[first], kinks.high[last], kinks.before[first], kinks.after[last])


def _project(problem: SplitRows, learnt: Pieces) -> Step | None:
    """The projection onto the function that was learnt; None if it was not found.

    A multiplier ν for which argmin of ½‖x − point‖² + ν·(function) satisfies it, and is not far from the smallest such
    one, gives a cell that has points with function ≤ 0; from there on the projection is found cell by cell.
    """
    start = problem.start
    cell = np.bincount(learnt.kinks.j, start[learnt.kinks.j] > learnt.kinks.high, minlength=learnt.dim).astype(np.int64)
    away = float(np.abs(problem.point - start).max() + np.abs(start).max())
    low, high = 0.0, away / float(np.abs(learnt.slope).max() + np.abs(learnt.jumps).max())
    enough = None
    for _ in range(MAX_MULTIPLIERS):
        nu = high if enough is None else 0.5 * (low + high)
        settled = _settle(problem, learnt, cell, nu)
        if settled is None:
            return None
        cell = settled[1]
        if float(learnt.rows_unchecked(settled[0].x)[0]) <= 0.0:
            enough, high = settled, nu
        else:
            low, high = nu, high if enough is not None else 4.0 * high
        if enough is not None and high - low <= CLOSE_MULTIPLIER * high:
            found = _settle(problem, learnt, enough[1], None, enough[0].x)
            return None if found is None else found[0]
    return None


def _settle(
    problem: SplitRows, learnt: Pieces, cell: NDArray[np.int64], nu: float | None, x: Array | None = None
) -> tuple[Step, NDArray[np.int64]] | None:
    """argmin of ½‖x − point‖² + ν·(function), or with function ≤ 0 if ν is None, and its cell.

    A cell is between two neighbouring kinks of each coordinate, where the function is affine; ``cell`` counts the kinks
    that are passed. A coordinate that is held by a kink, though the slope beyond is not steep enough, passes it.
    """
    kinks, starts, x = learnt.kinks, learnt.starts, problem.start if x is None else x
    positions, jumps, count = np.append(kinks.high, 0.0), np.append(learnt.jumps, 0.0), np.diff(starts)
    for _ in range(MAX_CELLS):
        below, above = np.where(cell > 0, starts[:-1] + cell - 1, -1), np.where(cell < count, starts[:-1] + cell, -1)
        lower = np.maximum(np.where(below >= 0, positions[below], -np.inf), problem.lower)
        upper = np.minimum(np.where(above >= 0, positions[above], np.inf), problem.upper)
        slope = learnt.slope_beyond(np.arange(kinks.j.size) < (starts[:-1] + cell)[kinks.j])
        inside = np.minimum(np.maximum(x, lower), upper)
        rows, rhs = slope[None][:0], np.zeros(0)
        if nu is None:
            rows, rhs = slope[None], float(slope @ inside) - learnt.rows_unchecked(inside)
        target = problem.point if nu is None else problem.point - nu * slope
        step = _project_within(problem.polyhedron._replace(lower=lower, upper=upper), target, rows, rhs)
        if step is None:
            return None
        weight = float(step.nu[0]) if nu is None else nu
        force = problem.point - step.x - step.of_rows @ problem.A
        small = HOLDS * float(np.abs(force).max())
        on = (above >= 0) & (step.x >= upper) & (step.x < problem.upper)
        on &= force > weight * (slope + jumps[above]) + small
        back = (below >= 0) & (step.x <= lower) & (step.x > problem.lower)
        back &= force < weight * (slope - jumps[below]) - small
        if not (on | back).any():
            return step, cell
        cell, x = cell + on - back, step.x
    return None


def _proved(problem: SplitRows, probe: _Probe, learnt: Pieces, at: Evaluation, step: Step) -> Solution | None:
    """The solution, if cutting planes taken around it prove that no point is nearer.

    At a kink the slope that holds x is between those of the two pieces. The corners in which the i kinks with the
    highest shares are passed have slopes of which it is a weighted mean, so that their cuts, with these weights, make
    the one that proves it.
    """
    kinks, nu, x = learnt.kinks, float(step.nu[0]), step.x
    if nu <= 0.0:
        return None
    wanted = (problem.point - x - step.of_rows @ problem.A) / nu
    held = np.flatnonzero(x[kinks.j] == kinks.high)
    share = np.clip((wanted[kinks.j[held]] - kinks.before[held]) / learnt.jumps[held], 0.0, 1.0)
    order = np.argsort(-share)
    held, share = held[order], share[order]
    weights = -np.diff(np.concatenate([[1.0], share, [0.0]]))
    corners = np.tile(x, (held.size + 1, 1))
    passed = np.arange(held.size) < np.arange(held.size + 1)[:, None]
    for i, k in enumerate(held):
        corners[:, kinks.j[k]] = np.where(passed[:, i], kinks.high[k], kinks.low[k])
    corners, weights = corners[weights > 0.0], weights[weights > 0.0]
    values, slopes = probe(corners)
    slope, cut = weights @ slopes, float(weights @ (values + np.vecdot(slopes, x - corners)))
    residual, slack = problem.residual(x, nu * slope, step.of_rows)
    gap = float(at.g[0]) - cut
    slack += nu * gap if gap > SAME_VALUE * 1e-2 * float(learnt.magnitude(x)[0]) else 0.0
    if not problem.is_met(at) or not residual + np.sqrt(slack) <= problem.accuracy(x, ACCURATE):
        return None
    return Solution(x, problem.multipliers(step.nu, step.of_rows), CONVERGED, problem.used)
