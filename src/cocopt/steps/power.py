"""Steps that fall like a power of t."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.steps.base import Schedule, Step

__all__ = ["Power"]


@register
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

    name = "power"
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

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(), cls(beta=0.3, scale=2.0)]
