"""Steps that adapt to the gradients."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from cocopt.arrays import scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.steps.base import Schedule, Step

__all__ = ["Adaptive"]


@register
class Adaptive(Schedule):
    """η_t = scale · D / √(Σ_{s≤t} ‖∇f_s(x_s)‖²), the AdaGrad-norm step (Streeter and McMahan 2010); unit free.

    While all gradients are 0 there is no step, η_t = 0. With D the diameter of K,
    Regret_T ≤ D (1/(2·scale) + scale) √(Σ_t ‖∇f_t(x_t)‖²), least for scale = 1/√2: see [`cocopt.theory.bounds`][].

    Parameters
    ----------
    D : float, optional
        Any length; positive. Default: the diameter of K, which a learner fills in.
    scale : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import CLASP, Box, steps
    >>> steps.Adaptive(D=2.0, scale=1.0).step(3, np.array([0.0, 16.0]))
    array([0. , 0.5])
    >>> CLASP(Box(0.0, 3.0, dim=1), steps=steps.Adaptive(scale=0.5)).steps
    Adaptive(D=3.0, scale=0.5)
    """

    name = "adaptive"
    may_be_zero = True

    def __init__(self, D: float | None = None, scale: float = 2**-0.5) -> None:
        self.D = None if D is None else scalar("D", D, positive=True)
        self.scale = scalar("scale", scale, positive=True)

    def step(self, t: int, gradients: Step) -> Step:
        if self.D is None:
            raise InvalidInput("D: expected a length, or a learner that fills in the diameter of its K, got None")
        length = self.scale * self.D
        if np.ndim(gradients) == 0:
            return length / math.sqrt(gradients) if gradients else 0.0
        root = np.sqrt(gradients)
        return np.divide(length, root, out=np.zeros_like(root), where=root > 0.0)

    def for_diameter(self, diameter: float) -> Adaptive:
        if self.D is not None:
            return self
        if not diameter < np.inf:
            raise InvalidInput(
                f"steps: expected a length D, as in steps.Adaptive(D=1.0), or another schedule such as "
                f"steps.Power(0.5), since the diameter of K is {diameter}, got {self!r}"
            )
        return Adaptive(diameter or 1.0, self.scale)  # in a K of one point nothing moves, whatever D is

    def parameters(self) -> dict[str, Any]:
        return {"D": self.D, "scale": self.scale}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(D=2.0), cls(D=1.0, scale=0.5)]
