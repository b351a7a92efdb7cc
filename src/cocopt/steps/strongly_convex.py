"""Steps for strongly convex losses."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, scalar
from cocopt.registry import register
from cocopt.steps.base import Schedule, Step

__all__ = ["StronglyConvex"]


@register
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

    name = "strongly-convex"
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

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(m=0.5)]
