"""Steps by a function of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from cocopt import registry
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


def as_schedule(
    steps: Schedule | Callable[[int], Step] | str | None, *, default: str | None = None, **options: float
) -> Schedule:
    """A schedule as it is, a callable of t as [`Function`][cocopt.steps.Function], a name as the class of that name.

    ``options`` are the arguments of the class, as on the command line. They choose it where no name is given: ``beta``
    is that of Power, ``m`` of StronglyConvex, ``c`` of Constant, ``D`` of Adaptive. Else the ``default`` is taken.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.as_schedule(steps.Constant(0.1))
    Constant(c=0.1)
    >>> steps.as_schedule("power", scale=2.0), steps.as_schedule(None, beta=0.7)
    (Power(beta=0.5, scale=2.0), Power(beta=0.7, scale=1.0))
    >>> steps.as_schedule(0.1)
    Traceback (most recent call last):
    ...
    cocopt.errors.InvalidInput: steps: expected a schedule such as steps.Power(), its name or a callable of t, got float
    """
    if steps is None:
        steps = next((name for option, name in _NAME_OF_OPTION.items() if option in options), default)
    if isinstance(steps, str):
        return _by_name(steps, options)
    if options:
        raise InvalidInput(f"{next(iter(options))}: expected no such option beside a schedule, got {steps!r} too")
    if isinstance(steps, Schedule):
        return steps
    if callable(steps) and not isinstance(steps, type):
        return Function(steps)
    name = steps.__name__ if isinstance(steps, type) else type(steps).__name__
    raise InvalidInput(f"steps: expected a schedule such as steps.Power(), its name or a callable of t, got {name}")


#: which schedule an option chooses where none is named; ``scale`` alone does not choose
_NAME_OF_OPTION = {"beta": "power", "m": "strongly-convex", "c": "constant", "D": "adaptive"}


def _by_name(name: str, options: dict[str, float]) -> Schedule:
    known = registry.classes("schedule")
    if name not in known:
        raise registry.unknown_name("steps", name, known)
    arguments = inspect.signature(known[name]).parameters
    for option in options:
        if option not in arguments:
            takes = ", ".join(arguments)
            raise InvalidInput(
                f"{option}: expected an argument of the algorithm, or an option of steps={name}, which takes {takes}"
            )
    missing = [one.name for one in arguments.values() if one.default is one.empty and one.name not in options]
    if missing:
        raise InvalidInput(f"{missing[0]}: expected as an option with steps={name}, got none")
    schedule: Schedule = known[name](**options)
    return schedule
