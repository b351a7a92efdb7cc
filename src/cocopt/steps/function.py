"""Steps by a function of one's own."""

from __future__ import annotations

from collections.abc import Callable

from cocopt.errors import InvalidInput
from cocopt.steps.base import Schedule, Step

__all__ = ["Function", "as_schedule"]


# Not registered: code cannot be stored, nor named on the command line.
class Function(Schedule):
    """η_t = function(t), any rule of one's own; it cannot be stored, only passed again.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.Function(lambda t: 1.0 / (10 + t)).step(10, 0.0)
    0.05
    """

    def __init__(self, function: Callable[[int], Step]) -> None:
        if not callable(function):
            raise InvalidInput(f"function: expected a callable of t, got {type(function).__name__}")
        self.function = function

    def step(self, t: int, gradients: Step) -> Step:
        return self.function(t)

    def __eq__(self, other: object) -> bool:
        return self.function == other.function if isinstance(other, Function) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return f"Function({self.function!r})"


def as_schedule(steps: Schedule | Callable[[int], Step]) -> Schedule:
    """A schedule as it is, a callable of t as [`Function`][cocopt.steps.Function].

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.as_schedule(steps.Constant(0.1))
    Constant(c=0.1)
    >>> steps.as_schedule(0.1)
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: steps: expected a schedule such as steps.Power() or a callable of t, got float
    """
    if isinstance(steps, Schedule):
        return steps
    if callable(steps) and not isinstance(steps, type):
        return Function(steps)
    name = steps.__name__ if isinstance(steps, type) else type(steps).__name__
    raise InvalidInput(f"steps: expected a schedule such as steps.Power() or a callable of t, got {name}")
