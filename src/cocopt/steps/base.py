"""What every step-size rule offers, and the check that its steps pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, as_floats, describe, positive_int
from cocopt.errors import InvalidInput, NotStorable, ReadOnly

__all__ = ["Schedule", "Step", "checked_step"]

Step: TypeAlias = float | Array

_LARGEST = np.finfo(np.float64).max


class Schedule(ABC):
    """A rule for η_t. A new one needs `step`, and `parameters` if it is to be stored."""

    kind: ClassVar[str] = "schedule"
    #: the strong convexity that every loss must have for the rule's theorem; 0 if none
    modulus: float = 0.0
    #: whether η_t = 0, no step at all, is allowed
    may_be_zero: bool = False
    #: whether `step` depends on the gradients; if not, they are not added up
    needs_gradients: bool = True

    @abstractmethod
    def step(self, t: int, gradients: Step) -> Step:
        """η_t for round t = 1, 2, …; ``gradients`` is Σ_{s≤t} ‖∇f_s(x_s)‖², one per trial."""

    def for_diameter(self, diameter: float) -> Schedule:
        """The schedule as a learner uses it whose K has this diameter: itself, unless its steps depend on that."""
        return self

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, so that ``type(s)(**s.parameters())`` is s again."""
        raise NotStorable(f"{type(self).__name__} does not say its parameters")

    def steps_at(self, t: NDArray[np.integer[Any]]) -> Array | None:
        """η_t for an array of rounds, if it depends on t alone and never increases; None if `step` is to be asked."""
        return None

    @classmethod
    def examples(cls) -> list[Self]:
        """Some schedules of this class, on which the contract tests are run."""
        return []

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and name in self.__dict__:
            raise ReadOnly(self, name)
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash((type(self), *self.parameters().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.parameters().items())})"


def checked_step(schedule: Schedule, t: int, gradients: Step, previous: Step = np.inf) -> Step:
    """η_t, refused unless positive, finite and, in each trial, at most ``previous`` = η_{t−1}.

    Where the schedule allows η_t = 0 (`may_be_zero`), that counts neither as too small nor as a previous step.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.checked_step(steps.Power(), t=4, gradients=0.0, previous=0.7)
    0.5
    >>> steps.checked_step(steps.Function(lambda t: 0.1 * t), t=2, gradients=0.0, previous=0.1)
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: steps: expected a positive step of at most the last one, 0.1, in round 2, got 0.2
    """
    try:
        step = schedule.step(t, gradients)
    except Exception:
        _check_step_arguments(schedule, t, gradients, previous)  # else the schedule itself raised it
        raise
    if type(step) is float and type(previous) is float and 0.0 < step <= previous and step != np.inf:
        return step  # the usual case, at the cost of a comparison
    _check_step_arguments(schedule, t, gradients, previous)
    try:
        if np.iscomplexobj(step):
            raise TypeError
        steps = np.asarray(step, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"steps: expected a number in round {t}, got {type(step).__name__} {step!r}") from None
    if steps.shape not in ((), np.shape(gradients)):
        raise InvalidInput(
            f"steps: expected a number or shape {np.shape(gradients)} in round {t}, got shape {steps.shape}"
        )
    good = (steps > 0.0) & (steps <= np.minimum(previous, _LARGEST))
    if schedule.may_be_zero and not good.all():
        good |= (steps == 0.0) | ((previous == 0.0) & (steps > 0.0) & (steps <= _LARGEST))
    if not good.all():
        index = tuple(np.argwhere(~good)[0])
        got, last = (np.broadcast_to(value, good.shape)[index] for value in (steps, previous))
        limit = f"positive step of at most the last one, {last}," if 0.0 < last < np.inf else "positive finite step"
        raise InvalidInput(f"steps: expected a {limit} in round {t}, got {got}")
    return float(steps) if steps.ndim == 0 else steps


def _check_step_arguments(schedule: Any, t: Any, gradients: Any, previous: Any) -> None:
    """Refuses what no step can be found from; costs nothing where one was found."""
    if not isinstance(schedule, Schedule):
        raise InvalidInput(f"schedule: expected a schedule such as steps.Power(), got {describe(schedule)}")
    positive_int("t", t)
    as_floats("gradients", gradients)
    as_floats("previous", previous)
