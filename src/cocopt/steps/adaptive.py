"""Steps that adapt to the gradients."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from cocopt.arrays import scalar
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

    name = "adaptive"
    may_be_zero = True

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

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(D=2.0), cls(D=1.0, scale=0.5)]
