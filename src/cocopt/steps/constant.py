"""Steps that stay the same."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, scalar
from cocopt.registry import register
from cocopt.steps.base import Schedule, Step

__all__ = ["Constant"]


@register
class Constant(Schedule):
    """η_t = c, for a known horizon (c ∝ 1/√T) or losses that drift for ever.

    Examples
    --------
    >>> from cocopt import steps
    >>> steps.Constant(0.1).step(1000, 0.0)
    0.1
    """

    name = "constant"
    needs_gradients = False

    def __init__(self, c: float) -> None:
        self.c = scalar("c", c, positive=True)

    def step(self, t: int, gradients: Step) -> float:
        return self.c

    def parameters(self) -> dict[str, Any]:
        return {"c": self.c}

    def steps_at(self, t: NDArray[np.integer[Any]]) -> Array:
        return np.full(t.shape, self.c)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(c=0.1)]
