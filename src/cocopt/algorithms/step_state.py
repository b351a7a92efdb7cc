"""The steps that a learner has taken so far: what the next one depends on."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.arrays import Array, frozen, make_tuple
from cocopt.metrics import CompensatedSum
from cocopt.state import Range
from cocopt.steps import Adaptive, Power, Schedule, Step, checked_step

__all__ = ["StepState", "rates_of_schedule"]


class StepState(NamedTuple):
    """The last step, and Σ ‖∇f_s‖² if the schedule depends on it."""

    last: Annotated[Step, Range(0.0, np.inf)] = np.inf
    gradients: CompensatedSum = CompensatedSum()

    def next(self, schedule: Schedule, taken: int, gradient: Array, gradient_sq: Step) -> tuple[StepState, Step, Array]:
        """After one more step, number ``taken``: the steps, η_t, and the move η_t ∇f_t."""
        last, gradients = self
        if schedule.needs_gradients:
            gradients = gradients.plus(gradient_sq)
        step = checked_step(schedule, taken, gradients.value, last)
        if isinstance(step, np.ndarray):
            step = frozen(step)  # a copy, since a callable may use its array again
            return make_tuple(StepState, (step, gradients)), step, step[..., None] * gradient
        return make_tuple(StepState, (step, gradients)), step, step * gradient


def rates_of_schedule(schedule: Schedule, facts: Facts | None) -> Rates | None:
    """The rates of a step followed by a projection: those of CLASP, whose schedule decides.

    With η_t = t^(−β) the regret is O(T^max(β, 1−β)) and CCV₂ is O(T^(1−β)); of other schedules than those of the paper
    and adaptive ones nothing is said.

    Examples
    --------
    >>> from cocopt import CLASP, steps
    >>> from cocopt.algorithms.step_state import rates_of_schedule
    >>> print(rates_of_schedule(steps.Power(0.75), CLASP.facts))
    regret T^(3/4), CCV₁ T^(5/8), CCV₂ T^(1/4)
    """
    if facts is None:
        return None
    if schedule.modulus > 0.0:
        return facts.strongly_convex
    if isinstance(schedule, Power) and 0.0 < schedule.beta < 1.0:
        return Rates.from_squares(Rate(max(schedule.beta, 1.0 - schedule.beta)), Rate(1.0 - schedule.beta))
    if isinstance(schedule, Adaptive):
        return Rates.from_squares(Rate(0.5), Rate(0.5, 0.5))
    return None
