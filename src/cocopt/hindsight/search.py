"""The minimisation of Σ_{t≤T} f_t over S_T: Newton steps until the duality gap is small enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array, all_finite
from cocopt.constraints import Function
from cocopt.errors import SolverFailure
from cocopt.hindsight.model import Epigraph, Iterate, ModelStep, minimise_model
from cocopt.hindsight.objective import Objective
from cocopt.hindsight.rounds import Rounds
from cocopt.hindsight.working_set import WorkingSet
from cocopt.losses.second_order import Neighborhood
from cocopt.sets.base import ConvexSet
from cocopt.tolerances import FEASIBILITY, HINDSIGHT_GAP

__all__ = ["Best", "Search"]

MAX_STEPS = 200
STEPS_TO_FULL_GAP = 30  # after so many steps a gap of RELAXED_GAP is accepted
RELAXED_GAP = 10 * HINDSIGHT_GAP
VALUE_FLOOR = 1e-3  # of a typical loss of one round: takes the place of a smaller value as the unit of the gap
CUT_TOLERANCE = 0.3 * HINDSIGHT_GAP  # of the value: how far black boxes may be above their linearisations
MAX_CONE_VIOLATION = 1e-8  # in units of a constraint's terms; with a larger one S_T may be empty

# Smoothing, in units of the loss of a typical round
FIRST_SMOOTHING, COARSE_SMOOTHING, SMOOTHING_DECREASE = 1e-3, 0.1, 0.1
SMOOTHING_SHARE = 0.1  # of the gap: smoothing that causes more is decreased

# Steps that keep kinks exact
EXACT_KINK_RADIUS = 30.0  # in units of the smoothing
MAX_KINK_ROWS = 10  # per dimension
MAX_EXACT_STEPS = 8  # from each iterate
FIRST_EXACT_STEP = 2  # before that, iterates are far from the optimum

# The proximal weight, for flat directions; larger where linearisations must approach something curved
PROXIMAL_WEIGHT, PROXIMAL_WEIGHT_LINEARISED = 1e-4, 1.0

SUFFICIENT_DECREASE, MIN_STEP_LENGTH = 1e-4, 1e-9  # of the line search (Armijo)
SHORT_STEP = 0.5  # a shorter one means that the model is good nearby only


class Best(NamedTuple):
    """The least value found, and where."""

    value: float
    x: Array


class Search:
    """The minimisation for one trial, at growing T.

    Parameters
    ----------
    K : ConvexSet
    rounds : Rounds
        Their losses are summed.
    limits : Rounds, optional
        Their constraints are to be satisfied; by default those of ``rounds``.
    """

    def __init__(self, K: ConvexSet, rounds: Rounds, limits: Rounds | None = None) -> None:
        self._K, self._rounds = K, rounds
        self._limits = rounds if limits is None else limits
        self._start = K.project_unchecked(np.zeros(K.dim))
        self._working_set = WorkingSet(K, self._limits, self._start)
        self._typical_loss = 0.0  # of one round; unknown before the first call

    def minimise(self, T: int) -> Best | None:
        """The least value over S_T and where it is taken; None if S_T is empty."""
        D, objective = self._K.diameter, Objective(self._rounds, T, self._start)
        if not all_finite(objective.at_center.gradient):
            objective.raise_nonfinite(self._start)
        start = Iterate(self._start, objective.at_center, objective.black_boxes(self._start))
        if D == 0.0:  # K is a point
            return Best(start.value, start.x) if _satisfies(self._limits, T, start.x) else None
        change = D * float(np.linalg.norm(start.local.gradient + start.black_boxes.gradient))  # over K, to first order
        if not self._typical_loss:
            curvature = D**2 * float(np.linalg.norm(objective.quadratic.P))
            self._typical_loss = max(abs(start.value), 1e-6 * change, 1e-12 * curvature) / T
        loss_unit = max(self._typical_loss, abs(start.value) / T, 1e-3 * change / T)
        newton = _Newton(self._working_set, self._rounds, objective, start, loss_unit, VALUE_FLOOR * self._typical_loss)
        best = newton.minimise()
        if best is not None:
            self._start = best.x
        return best


def _satisfies(limits: Rounds, T: int, x: Array) -> bool:
    """Whether x violates no constraint of the first T rounds by more than is allowed."""
    for size, used, _, constraint in limits.blocks(T):
        if constraint is not None:
            points = np.broadcast_to(x, (size, x.size)) if constraint.batch or isinstance(constraint, Function) else x
            excess = constraint.rows(points) - FEASIBILITY * constraint.magnitude(points)
            if np.atleast_2d(excess)[:used].max() > 0.0:
                return False
    return True


class _Newton:
    """Newton's method for one T, with a line search and decreasing smoothing."""

    def __init__(
        self,
        working_set: WorkingSet,
        rounds: Rounds,
        objective: Objective,
        start: Iterate,
        loss_unit: float,
        value_floor: float,
    ) -> None:
        self._working_set, self._rounds, self._objective = working_set, rounds, objective
        self._start, self._diameter, self._value_floor = start.x, working_set.K.diameter, value_floor
        self._smoothing, self._coarse_smoothing = FIRST_SMOOTHING * loss_unit, COARSE_SMOOTHING * loss_unit
        self._current = start._replace(local=objective(start.x, self._smoothing))
        self._trivial_bound = 0.0 if objective.nonnegative else -np.inf
        self._best, self._lower_bound = Best(np.inf, start.x), self._trivial_bound
        unit = self._epigraph_unit(start) or 1.0 if objective.has_black_boxes else 0.0
        self._epigraph = Epigraph(unit, self._cut_tolerance(start.value))
        self._linearises = bool(unit) or working_set.needs_linearisation(objective.T)
        self._proximal_weight = PROXIMAL_WEIGHT_LINEARISED if self._linearises else PROXIMAL_WEIGHT
        self._feasible = False  # whether the current point satisfies the constraints: the start need not
        self._recentered = False

    def minimise(self) -> Best | None:
        """The least value over S_T, proven; None if S_T is empty."""
        for count in range(MAX_STEPS):
            step = self._model_step(self._current)
            if step is None:
                return None
            trial = self._evaluate(step.x)
            self._update_bounds(trial, step)
            noise = self._diameter * self._objective.gradient_error(trial.x, trial.local.gradient)
            allowed = HINDSIGHT_GAP if count < STEPS_TO_FULL_GAP else RELAXED_GAP
            too_smooth = trial.local.value - trial.local.minorant > SMOOTHING_SHARE * self._gap
            if too_smooth and count >= FIRST_EXACT_STEP:
                trial, step = self._try_exact_kinks(trial, step, allowed, noise)
            self._epigraph = self._epigraph._replace(tolerance=self._cut_tolerance(self._best.value))
            if self._gap_is_closed(allowed, noise):
                if noise > 0.1 * allowed * self._scale and self._objective.quadratic.P.any() and not self._recentered:
                    self._recenter(trial)
                    continue
                return self._accept(step)
            self._advance(trial, step, too_smooth, noise)
        raise SolverFailure(
            f"the best fixed action of {self._objective.T} rounds was found only to "
            f"{self._gap / self._scale:.2g} of its value"
        )

    @property
    def _gap(self) -> float:
        """The duality gap."""
        return self._best.value - self._lower_bound

    @property
    def _scale(self) -> float:
        """The unit of the duality gap."""
        return max(abs(self._best.value), self._value_floor)

    def _gap_is_closed(self, allowed: float, noise: float) -> bool:
        return self._gap <= allowed * self._scale + noise

    def _cut_tolerance(self, value: float) -> float:
        return CUT_TOLERANCE * max(abs(value), self._value_floor)

    def _epigraph_unit(self, at: Iterate) -> float:
        """How much the black boxes change over K, to first order."""
        return float(np.linalg.norm(at.black_boxes.gradient)) * self._diameter

    def _evaluate(self, x: Array) -> Iterate:
        return Iterate(x, self._objective(x, self._smoothing), self._objective.black_boxes(x))

    def _model_step(self, at: Iterate) -> ModelStep | None:
        return minimise_model(self._working_set, self._objective, at, self._epigraph, self._proximal_weight)

    def _update_bounds(self, trial: Iterate, step: ModelStep) -> None:
        self._lower_bound = max(self._lower_bound, step.lower_bound(trial.local, self._diameter))
        if trial.value < self._best.value:
            self._best = Best(trial.value, trial.x)

    def _try_exact_kinks(
        self, trial: Iterate, step: ModelStep, allowed: float, noise: float
    ) -> tuple[Iterate, ModelStep]:
        """Steps without smoothing until the gap is closed; the better one of their result and the trial point."""
        before = self._best.value
        exact_steps = self._exact_steps(trial)
        while not self._gap_is_closed(allowed, noise):
            pair = next(exact_steps, None)
            if pair is None:
                break
            self._update_bounds(*pair)
            step = pair[1]
        return (self._evaluate(self._best.x), step) if self._best.value < before else (trial, step)

    def _exact_steps(self, trial: Iterate) -> Iterator[tuple[Iterate, ModelStep]]:
        """A few steps from a point without smoothing: kinks near it are second-order cones of the model."""
        near = Neighborhood(trial.x, EXACT_KINK_RADIUS * self._smoothing)
        at = trial._replace(local=self._objective(trial.x, 0.0, near))
        for _ in range(MAX_EXACT_STEPS):
            if sum(len(kink.y) for kink in at.local.kinks) > MAX_KINK_ROWS * at.x.size:
                return
            try:
                step = self._model_step(at)
            except SolverFailure:  # these steps are optional
                return
            if step is None:
                return
            at = Iterate(step.x, self._objective(step.x, 0.0, near), self._objective.black_boxes(step.x))
            yield at, step

    def _recenter(self, trial: Iterate) -> None:
        """Begins again at the trial point, with quadratic forms about it that cancel less."""
        self._objective = Objective(self._rounds, self._objective.T, trial.x)
        self._current = trial._replace(local=self._objective(trial.x, self._smoothing))
        self._best, self._lower_bound = Best(np.inf, trial.x), self._trivial_bound
        self._recentered = True

    def _accept(self, step: ModelStep) -> Best | None:
        """The best point, unless it violates a cone by more than rounding."""
        if self._working_set.cone_violation(self._best.x) > MAX_CONE_VIOLATION:
            if self._working_set.is_empty(self._start):
                return None
            raise SolverFailure(f"the best fixed action of {self._objective.T} rounds was not found: S_T is too thin")
        self._working_set.drop_inactive(step.multipliers)
        return self._best

    def _advance(self, trial: Iterate, step: ModelStep, too_smooth: bool, noise: float) -> None:
        """Moves to the trial point, or part of the way, and adapts smoothing, proximal weight and epigraph unit."""
        length = 1.0
        if self._feasible and not self._epigraph.unit:  # (a proximal step on black boxes is exact)
            trial, length = self._line_search(trial, noise)
        if too_smooth:
            self._smoothing, self._coarse_smoothing = SMOOTHING_DECREASE * self._smoothing, 0.0
            trial = trial._replace(local=self._objective(trial.x, self._smoothing))
        elif length < SHORT_STEP and self._coarse_smoothing > 0.0:  # once
            self._smoothing, self._coarse_smoothing = max(self._smoothing, self._coarse_smoothing), 0.0
            trial = trial._replace(local=self._objective(trial.x, self._smoothing))
        if self._epigraph.unit:  # the flatter the black boxes, the finer
            self._epigraph = self._epigraph._replace(unit=self._epigraph_unit(trial) or self._epigraph.unit)
            self._working_set.set_epigraph_unit(self._epigraph.unit)
        if self._linearises:
            self._proximal_weight = step.proximal_weight
        self._current, self._feasible = trial, True

    def _line_search(self, trial: Iterate, noise: float) -> tuple[Iterate, float]:
        """Halves the step until the smoothed sum decreases enough; the point and the step length."""
        x, local, length = self._current.x, self._current.local, 1.0
        way, there = trial.x - x, trial
        descent = float(local.gradient @ way)
        while (
            there.local.smoothed > local.smoothed + SUFFICIENT_DECREASE * length * descent + noise
            and length > MIN_STEP_LENGTH
        ):
            length *= 0.5
            point = x + length * way
            there = there._replace(x=point, local=self._objective(point, self._smoothing))
        return there, length
