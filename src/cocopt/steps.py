"""Step sizes η_t of the gradient steps.

Rounds count from 1. The theorems want positive steps that never increase; [`checked_step`][cocopt.steps.checked_step]
holds every schedule to that as it is used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, scalar
from cocopt.errors import InvalidInput

__all__ = ["Adaptive", "Constant", "Function", "Power", "Schedule", "StronglyConvex", "as_schedule", "checked_step"]

Step: TypeAlias = float | Array

_LARGEST = np.finfo(np.float64).max


class Schedule(ABC):
    """A rule for η_t. A new one needs `step`, and `parameters` if it is to be stored."""

    #: the strong convexity that every loss must have for the rule's theorem; 0 if none
    modulus: float = 0.0
    #: whether η_t = 0, "no step", is a legal answer
    may_rest: bool = False
    #: whether `step` looks at the gradients; if not, they are not added up
    needs_gradients: bool = True

    @abstractmethod
    def step(self, t: int, gradients: Step) -> Step:
        """η_t for round t = 1, 2, …; ``gradients`` is Σ_{s≤t} ‖∇f_s(x_s)‖², one a trial."""

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, so that ``type(s)(**s.parameters())`` is s again."""
        raise TypeError(f"{type(self).__name__} does not say its parameters")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash((type(self), *self.parameters().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.parameters().items())})"

    def steps_at(self, t: NDArray[np.integer[Any]]) -> Array | None:
        """η_t for an array of rounds, if it depends on t alone and never increases; None if `step` is to be asked."""
        return None


class Power(Schedule):
    """η_t = scale · t^(−β), the paper's step for convex losses.

    Regret grows like T^max(β, 1−β) and CCV₂ like T^(1−β): β = ½ balances the two. The step is not unit free;
    ``scale`` near D/L_f (diameter over gradient size) is a good choice.

    Parameters
    ----------
    beta : float
        β in (0, 1).
    scale : float
        Positive.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.Power(beta=0.5, scale=3.0).step(9, 0.0)
    1.0
    """

    needs_gradients = False

    def __init__(self, beta: float = 0.5, scale: float = 1.0) -> None:
        self.beta = scalar("beta", beta)
        if not 0.0 < self.beta < 1.0:
            raise InvalidInput(f"beta: expected a number in (0, 1), got {self.beta}")
        self.scale = scalar("scale", scale, positive=True)

    def step(self, t: int, gradients: Step) -> float:
        power: float = t**-self.beta
        return self.scale * power

    def parameters(self) -> dict[str, Any]:
        return {"beta": self.beta, "scale": self.scale}

    def steps_at(self, t: NDArray[np.integer[Any]]) -> Array:
        steps: Array = self.scale * t.astype(np.float64) ** -self.beta
        return steps


class StronglyConvex(Schedule):
    """η_t = 1/(m t), the paper's step for losses that are all m-strongly convex: regret and CCV₂ grow like log T.

    Parameters
    ----------
    m : float
        Positive; must hold for every future loss.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.StronglyConvex(m=0.5).step(4, 0.0)
    0.5
    """

    needs_gradients = False

    def __init__(self, m: float) -> None:
        self.m = self.modulus = scalar("m", m, positive=True)

    def step(self, t: int, gradients: Step) -> float:
        return 1.0 / (self.m * t)

    def parameters(self) -> dict[str, Any]:
        return {"m": self.m}

    def steps_at(self, t: NDArray[np.integer[Any]]) -> Array:
        steps: Array = 1.0 / (self.m * t.astype(np.float64))
        return steps


class Constant(Schedule):
    """η_t = c, for a known horizon (c ∝ 1/√T) or losses that drift for ever.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.Constant(0.1).step(1000, 0.0)
    0.1
    """

    needs_gradients = False

    def __init__(self, c: float) -> None:
        self.c = scalar("c", c, positive=True)

    def step(self, t: int, gradients: Step) -> float:
        return self.c

    def parameters(self) -> dict[str, Any]:
        return {"c": self.c}

    def steps_at(self, t: NDArray[np.integer[Any]]) -> Array:
        return np.full(t.shape, self.c)


class Adaptive(Schedule):
    """η_t = scale · D / √(Σ_{s≤t} ‖∇f_s(x_s)‖²), the AdaGrad-norm step (Streeter and McMahan 2010); unit free.

    While all gradients are 0 there is no step, η_t = 0. With D the diameter of K,
    Regret_T ≤ D (1/(2·scale) + scale) √(Σ_t ‖∇f_t(x_t)‖²), least for scale = 1/√2: see [`cocopt.theory.bounds`][].

    Parameters
    ----------
    D : float
        The diameter of K, or any length; positive.
    scale : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import steps
    >>> steps.Adaptive(D=2.0).step(3, np.array([0.0, 16.0]))
    array([0. , 0.5])
    """

    may_rest = True

    def __init__(self, D: float, scale: float = 1.0) -> None:
        self.D = scalar("D", D, positive=True)
        self.scale = scalar("scale", scale, positive=True)

    def step(self, t: int, gradients: Step) -> Step:
        length = self.scale * self.D
        if np.ndim(gradients) == 0:
            return length / math.sqrt(gradients) if gradients else 0.0
        root = np.sqrt(gradients)
        return np.divide(length, root, out=np.zeros_like(root), where=root > 0.0)

    def parameters(self) -> dict[str, Any]:
        return {"D": self.D, "scale": self.scale}


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


def checked_step(schedule: Schedule, t: int, gradients: Step, previous: Step = np.inf) -> Step:
    """η_t, refused unless positive, finite and, in each trial, at most ``previous`` = η_{t−1}.

    A schedule that may rest is allowed η_t = 0, which counts neither as too small nor as a previous step.

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
    step = schedule.step(t, gradients)
    if type(step) is float and type(previous) is float and 0.0 < step <= previous and step != np.inf:
        return step  # the usual case, at the cost of a comparison
    try:
        steps = np.asarray(step, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"steps: expected a number in round {t}, got {type(step).__name__} {step!r}") from None
    if steps.shape not in ((), np.shape(gradients)):
        raise InvalidInput(
            f"steps: expected a number or shape {np.shape(gradients)} in round {t}, got shape {steps.shape}"
        )
    good = (steps > 0.0) & (steps <= np.minimum(previous, _LARGEST))
    if schedule.may_rest and not good.all():
        good |= (steps == 0.0) | ((previous == 0.0) & (steps > 0.0) & (steps <= _LARGEST))
    if not good.all():
        index = tuple(np.argwhere(~good)[0])
        got, last = (np.broadcast_to(value, good.shape)[index] for value in (steps, previous))
        limit = f"positive step of at most the last one, {last}," if 0.0 < last < np.inf else "positive finite step"
        raise InvalidInput(f"steps: expected a {limit} in round {t}, got {got}")
    return float(steps) if steps.ndim == 0 else steps
