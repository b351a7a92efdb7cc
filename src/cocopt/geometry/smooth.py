"""Sequential quadratic programming for rows that are known by value and gradient, over a polyhedron.

Where the rows are smooth this reaches the solution in a few evaluations. Every linearisation is also a cutting plane:
where a kink stops the method, `cocopt.geometry.cuts` goes on with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, all_finite, ignore_fp_warnings
from cocopt.geometry.rows import BEST_POSITION, Evaluation, SplitRows
from cocopt.sets.base import Polyhedral

__all__ = ["ACCURATE", "MAX_DIM", "SmoothSearch", "Step", "minimise_model"]

MAX_DIM = 500  # in more dimensions n × n matrices cost more than they save
ACCURATE = 1e-7  # the error of the position, in units of its size, that is accepted if the method comes no closer
SLOW_STEPS = 7  # so many steps, and half as many as there are dimensions, may fail to halve the error
MAX_STEPS = 30  # in all, and twice as many as there are dimensions
INFINITY = 1e30  # DAQP's infinity
EQUATION = 5  # DAQP's flag of a row that holds with equality
SMALL_CHANGE = 1e-12  # of a slope, relative: may be rounding
MULTIPLIER_ERROR = 1e-6  # to this share multipliers are taken to be right at best


class Step(NamedTuple):
    """The minimiser of a quadratic model, and its multipliers."""

    x: Array
    nu: Array  #: of the linearised rows
    of_rows: Array  #: of the polyhedron's rows, of equations with their sign
    duals: Array  #: as DAQP has them, a start for the next model


def minimise_model(
    polyhedron: Polyhedral, x: Array, B: Array, slope: Array, J: Array, g: Array, duals: Array | None = None
) -> Step | None:
    """argmin of ½ dᵀBd + ⟨slope, d⟩ over x + d in the polyhedron with g + J d ≤ 0; None if DAQP does not find it.

    The result is not checked.
    """
    import daqp

    lower, upper, A, b, equations = polyhedron
    n, own, steepness = x.size, b.size, np.maximum(np.sqrt(np.vecdot(J, J)), 1e-300)
    # in units in which the step is of order 1
    unit = max(float(np.abs(slope).max()), float((g / steepness).max(initial=0.0)), 1e-300)
    high = np.concatenate([upper - x, b - A @ x, -g / steepness]) / unit
    low = np.full(high.size, -INFINITY)
    low[:n] = np.maximum((lower - x) / unit, -INFINITY)
    high = np.minimum(high, INFINITY)
    low[n : n + equations] = high[n : n + equations]
    sense = np.zeros(high.size, dtype=np.int32)
    sense[n : n + equations] = EQUATION
    rows = J / steepness[:, None]
    rows = np.concatenate([A, rows]) if own else rows
    if not (all_finite(B) and all_finite(rows) and all_finite(high)):
        return None
    options: dict[str, Any] = {"primal_tol": 1e-12, "dual_tol": 1e-12}
    if duals is not None and duals.size == high.size:
        options["dual_start"] = duals
    u, _, flag, info = daqp.solve(B, slope / unit, rows, high, low, sense, **options)
    if flag <= 0 or not all_finite(u):
        return None
    duals = np.array(info["lam"])
    moved = np.minimum(np.maximum(x + unit * u, lower), upper)
    moved = np.where(duals[:n] > 0.0, upper, np.where(duals[:n] < 0.0, lower, moved))
    return Step(moved, unit * np.maximum(duals[n + own :], 0.0) / steepness, unit * duals[n : n + own], duals)


class SmoothSearch:
    """argmin of ½‖x − point‖² over a polyhedron and curved rows; with a bound the first is a penalty bound·g^+.

    With the curvature H_i of row i, estimated from the changes of its gradient, and the metric B = I + Σ ν_i H_i, each
    step minimises ½ dᵀBd + ⟨x − point, d⟩ where x + d is in the polyhedron and the linearised rows are at most 0
    (Wilson 1963, Han 1977).

    A point is accepted by values and gradients alone. With the gradient r of the Lagrangian at x, projected onto the
    bounds, and the multipliers ν* of the solution, x is at most ‖r‖ + √(Σ |ν_i − ν*_i| |g_i(x)|) away from it; the
    change of ν in the last step is taken for the difference.
    """

    def __init__(self, problem: SplitRows, bound: float = np.inf) -> None:
        self.problem, self.bound = problem, bound
        M = problem.row_count
        self.at = problem.evaluate(problem.start)
        self.evaluations = [self.at]  #: all of them
        self.point, self.multipliers, self.error = self.at.x, np.zeros(M), np.inf  #: the best so far
        self._curvature: list[Array | None] = [None] * M
        self._nu, self._duals = np.zeros(M), np.zeros(0)
        self._slow, self._least = 0, np.full(2, np.inf)

    def run(self) -> bool:
        """Whether the solution was found; else the method came no closer, or the rows look separable.

        In the latter case a second call goes on.
        """
        with ignore_fp_warnings():
            while self._advance():
                if self.problem.looks_separable(*self.evaluations[-2:]):
                    return False
        return self.error <= self.problem.accuracy(self.point, ACCURATE)

    def _advance(self) -> bool:
        """One step; False if it is the last."""
        problem, last = self.problem, self.at
        step = self._step(last)
        if step is None or problem.exhausted or len(self.evaluations) > MAX_STEPS + 2 * last.x.size:
            return False
        at = self.at = problem.evaluate(step.x)
        self.evaluations.append(at)
        error, distances = self._measure(at, step)
        if error < self.error:
            self.point, self.multipliers, self.error = at.x, step.nu, error
            if error <= problem.accuracy(at.x, BEST_POSITION):
                return False
        halved = distances < 0.5 * self._least
        self._least = np.where(halved, distances, self._least)
        self._slow = 0 if halved.any() else self._slow + 1
        if self._slow > SLOW_STEPS + at.x.size // 2:
            return False
        self._nu, self._duals = step.nu, step.duals
        for i, H in enumerate(self._curvature):
            self._curvature[i] = _updated(H, at.x - last.x, at.J[i] - last.J[i], last.J[i])
        return True

    def _step(self, at: Evaluation) -> Step | None:
        """The minimiser of the quadratic model; None if there is none, as where linearised rows have no point."""
        slope, eye, K = at.x - self.problem.point, np.eye(at.x.size), self.problem.polyhedron
        found = minimise_model(K, at.x, self._metric(eye, self._nu), slope, at.J, at.g, self._duals)
        if self.bound == np.inf or (found is not None and found.nu[0] <= self.bound):
            return found
        # the penalty is not enough for the row to hold: its multiplier is the bound
        nu = np.append(self.bound, self._nu[1:])
        found = minimise_model(K, at.x, self._metric(eye, nu), slope + self.bound * at.J[0], at.J[1:], at.g[1:])
        return None if found is None else found._replace(nu=np.append(self.bound, found.nu))

    def _metric(self, eye: Array, nu: Array) -> Array:
        """I + Σ ν_i H_i."""
        B = eye
        for weight, H in zip(nu, self._curvature, strict=True):
            if H is not None and weight > 0.0:
                B = B + weight * H
        return B

    def _measure(self, at: Evaluation, step: Step) -> tuple[float, Array]:
        """The bound of the distance to the solution, inf where a row is violated by more than is accepted.

        And what shows progress: the gradient of the Lagrangian, and the violation.
        """
        problem, nu = self.problem, step.nu
        residual, slack = problem.residual(at.x, nu @ at.J, step.of_rows)
        violation = max(float(at.g.max()), 0.0)
        distances = np.array([residual, violation])
        off = np.where(np.abs(at.g) <= problem.rounding(at), 0.0, np.abs(at.g))
        if self.bound < np.inf and nu[0] >= self.bound:  # it is known, but not the multiplier where g(x) < 0
            slack += self.bound * float(off[0]) if at.g[0] < 0.0 else 0.0
            at = at._replace(g=np.append(0.0, at.g[1:]))
            distances, off[0] = np.array([residual, max(float(at.g.max()), 0.0)]), 0.0
        if not problem.is_met(at):
            return np.inf, distances
        slack += float((off * np.maximum(np.abs(nu - self._nu), MULTIPLIER_ERROR * nu)).sum())
        return residual + float(np.sqrt(slack)), distances


def _updated(H: Array | None, step: Array, change: Array, slope: Array) -> Array | None:
    """A positive semidefinite H with H·step = change of the slope.

    Curvature is added by the symmetric rank-one formula (Conn, Gould & Toint 1991), which finds that of a quadratic,
    and taken away by that of Broyden, Fletcher, Goldfarb and Shanno (1970), which keeps it positive semidefinite.
    """
    Hs = np.zeros_like(step) if H is None else H @ step
    rest = change - Hs
    along, left, length = float(rest @ step), float(np.linalg.norm(rest)), float(np.linalg.norm(step))
    if left <= SMALL_CHANGE * float(np.linalg.norm(slope)):
        return H
    if along > 1e-6 * left * length:
        added: Array = rest[:, None] * (rest / along)
        return added if H is None else H + added
    of_change, of_H = float(change @ step), float(Hs @ step)
    if H is None or of_H <= 0.0:
        return H
    less: Array = H - Hs[:, None] * (Hs / of_H)
    if of_change > 1e-6 * float(np.linalg.norm(change)) * length:
        less += change[:, None] * (change / of_change)
    return less
