"""The steps that a learner has taken so far: what the next one depends on."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from cocopt.arrays import Array, frozen, make_tuple
from cocopt.metrics import CompensatedSum
from cocopt.state import Range
from cocopt.steps import Schedule, Step, checked_step

__all__ = ["StepState"]


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
