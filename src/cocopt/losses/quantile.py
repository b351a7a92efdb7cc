"""The quantile loss."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import Array, ArrayLike
from cocopt.errors import InvalidInput
from cocopt.losses.base import Loss, as_residual
from cocopt.losses.second_order import Neighborhood, SecondOrder, absolute_residuals, residual_entries
from cocopt.registry import register

__all__ = ["Quantile"]


@register
class Quantile(Loss):
    """f(x) = max(level·s, (level − 1)·s) with s = y − ⟨u, x⟩: the pinball loss of quantile regression.

    A constant prediction with the least sum of losses is a quantile of the targets of that level (Koenker & Bassett
    1978). The subgradient is −level·u where the prediction ⟨u, x⟩ is too small, (1 − level)·u where it is too large,
    and (1/2 − level)·u where it is the target.

    Parameters
    ----------
    u : array (..., n)
        Features.
    y : float or array (...)
        Targets.
    level : float or array (...)
        In (0, 1); 1/2 is half the absolute error.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Quantile([1.0, 2.0], 5.0, 0.75)
    >>> f.value([1.0, 1.0])
    np.float64(1.5)
    >>> f.gradient([1.0, 1.0])
    array([-0.75, -1.5 ])
    """

    __slots__ = ("batch", "dim", "level", "u", "y")

    data_axes = (1, 0, 0)

    def __init__(self, u: ArrayLike, y: ArrayLike, level: ArrayLike) -> None:
        self.u, self.y, self.level, self.batch = as_residual(u, y, "level", level)
        if not ((self.level > 0.0) & (self.level < 1.0)).all():
            raise InvalidInput(f"level: expected numbers between 0 and 1, got {self.level}")
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        residual = np.vecdot(x, self.u) - self.y
        slope: Array = 0.5 - self.level + 0.5 * np.sign(residual)
        return slope * residual, slope[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("y", self.y), ("level", self.level)]

    nonnegative = True

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """(1/2 − level)·s + |s|/2 with s = ⟨u, x⟩ − y; see `absolute_residuals`."""
        weight, (u, y, level) = residual_entries(self.batch, count, self.u, self.y, self.level)
        return absolute_residuals((weight, u, y), 0.5 - level, 0.5, x, smoothing, exact_kinks)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0, 0.25), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0], 0.9)]
