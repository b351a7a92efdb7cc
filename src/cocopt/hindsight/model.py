"""The minimiser over S_T of a quadratic model of the sum of losses, and the lower bound that its multipliers prove."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.errors import SolverFailure
from cocopt.hindsight.objective import Objective, ValueAndGradient
from cocopt.hindsight.programs import Optimum, Program, solve_program, solve_triangular
from cocopt.hindsight.working_set import EPIGRAPH, Row, WorkingSet
from cocopt.losses.second_order import SecondOrder

__all__ = ["Epigraph", "Iterate", "ModelStep", "minimise_model"]

MAX_PROGRAMS = 500  # in one step
PROGRAMS_PER_WEIGHT = 50  # with one proximal weight
WEIGHT_GROWTH = 4.0  # of the proximal weight: nearer to x fewer cuts are needed
REGULARISATION = 1e-7  # of the mean curvature: makes every model strongly convex
EASY_PROGRAMS = 2  # with fewer programs than this, the cuts are good where they are needed
LARGE_PROXIMAL_WEIGHT = 0.1  # a larger one is halved after every step, whether it was easy or not


class Iterate(NamedTuple):
    """A point x and the sum of losses there, black boxes apart."""

    x: Array
    local: SecondOrder
    black_boxes: ValueAndGradient

    @property
    def value(self) -> float:
        """The sum of all losses at x."""
        return self.local.value + self.black_boxes.value


class Epigraph(NamedTuple):
    """Black boxes among the losses enter as one more constraint, Σ f_t(x) ≤ unit · τ, with a variable τ.

    Attributes
    ----------
    unit : float
        0 if there are no black boxes.
    tolerance : float
        How far the sum of the black boxes may be above its linearisations.
    """

    unit: float
    tolerance: float


class ModelStep(NamedTuple):
    """The minimiser x of a model over S_T, and its multipliers λ."""

    x: Array
    multipliers: Array  # of the rows of the working set
    constraint_gradient: Array  # Aᵀλ of all rows and cones
    slack: float  # λᵀ(b − A x) of all rows and cones
    proximal_weight: float  # for the next step

    def lower_bound(self, local: SecondOrder, diameter: float) -> float:
        """The lower bound of the minimum over S_T that the package's docstring derives."""
        residual = float(np.linalg.norm(local.gradient + self.constraint_gradient))
        return local.minorant - self.slack - residual * diameter


class _Model(NamedTuple):
    """gradient, Hessian and center of the quadratic model in the variables z = x, or (x, τ)."""

    gradient: Array
    hessian: Array
    center: Array
    slope: float  # a bound on the norm of the gradient, kinks included

    def program(self, at: Iterate, proximal_weight: float, diameter: float) -> tuple[Program, float]:
        """The program of the model with a proximal term, and the scale by which its objective was divided."""
        n = at.x.size
        weight = REGULARISATION * np.trace(self.hessian) / n + proximal_weight * self.slope / diameter
        hessian = self.hessian + (weight or 1.0) * np.eye(self.center.size)
        scale = float(np.trace(hessian))  # the solvers see a curvature of about 1
        L = np.asarray(np.linalg.cholesky(hessian / scale), dtype=np.float64)
        target = L.T @ self.center - solve_triangular(L, self.gradient / scale)
        return Program(L, target, at.local.kinks, 1.0 / scale), scale


def minimise_model(
    working_set: WorkingSet, objective: Objective, at: Iterate, epigraph: Epigraph, proximal_weight: float
) -> ModelStep | None:
    """The minimiser over S_T of the quadratic model at a point; None if S_T is empty."""
    model, diameter = _model(at, epigraph.unit), working_set.K.diameter
    program, scale = model.program(at, proximal_weight, diameter)
    for solved in range(MAX_PROGRAMS):
        if solved and solved % PROGRAMS_PER_WEIGHT == 0:
            proximal_weight *= WEIGHT_GROWTH
            program, scale = model.program(at, proximal_weight, diameter)
        optimum = solve_program(program, working_set)
        if optimum is None:
            return None
        x = optimum.z[: at.x.size]
        cuts = _epigraph_cuts(objective, optimum.z, x, epigraph)
        if not working_set.add_violated(objective.T, x, cuts):
            easy = solved < EASY_PROGRAMS
            shrink = 0.5 if proximal_weight > LARGE_PROXIMAL_WEIGHT or easy else 1.0
            return _as_step(working_set, optimum, x, scale, epigraph.unit, shrink * proximal_weight)
    raise SolverFailure(f"the best fixed action of {objective.T} rounds needs more than {MAX_PROGRAMS} cuts in a step")


def _model(at: Iterate, unit: float) -> _Model:
    n = at.x.size
    size = n + (unit > 0)
    gradient, hessian = np.full(size, unit), np.zeros((size, size))
    center = np.full(size, at.black_boxes.value / (unit or 1.0))
    gradient[:n], hessian[:n, :n], center[:n] = at.local.gradient, at.local.hessian, at.x
    steepest_kink = max((float(np.linalg.norm(kink.H)) for kink in at.local.kinks), default=0.0)
    return _Model(gradient, hessian, center, float(np.linalg.norm(gradient)) + steepest_kink)


def _epigraph_cuts(objective: Objective, z: Array, x: Array, epigraph: Epigraph) -> list[Row]:
    """The linearisation of the black boxes at x, if their sum there is above the epigraph variable."""
    if not epigraph.unit:
        return []
    value, gradient = objective.black_boxes(x)
    if value - epigraph.unit * z[-1] <= epigraph.tolerance:
        return []
    return [Row(EPIGRAPH, gradient, float(gradient @ x) - value, -epigraph.unit)]


def _as_step(
    working_set: WorkingSet, optimum: Optimum, x: Array, scale: float, unit: float, proximal_weight: float
) -> ModelStep:
    rows, multipliers = working_set.rows, scale * optimum.multipliers
    if unit:  # τ is unbounded: the slope in its direction must vanish, so the cuts' multipliers must add up to 1
        multipliers = np.where(rows.tau < 0, multipliers / -(multipliers @ rows.tau / unit or -1.0), multipliers)
    return ModelStep(
        x,
        multipliers,
        multipliers @ rows.A + scale * optimum.cone_gradient,
        float(multipliers @ (rows.b - rows.A @ x)) + scale * optimum.cone_slack,
        proximal_weight,
    )
