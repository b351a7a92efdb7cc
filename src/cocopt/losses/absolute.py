"""The absolute error."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import Array, ArrayLike
from cocopt.losses.base import Loss, as_residual
from cocopt.losses.second_order import Neighborhood, SecondOrder, absolute_residuals, residual_entries
from cocopt.registry import register

__all__ = ["Absolute"]


@register
class Absolute(Loss):
    """f(x) = |⟨u, x⟩ − y|, the loss of median regression.

    The subgradient is sign(⟨u, x⟩ − y)·u, and 0 where the residual vanishes.

    Parameters
    ----------
    u : array (..., n)
        Features.
    y : float or array (...)
        Targets.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Absolute([1.0, 2.0], 5.0)
    >>> f.value([1.0, 1.0])
    np.float64(2.0)
    >>> f.gradient([1.0, 1.0])
    array([-1., -2.])
    """

    __slots__ = ("batch", "dim", "u", "y")

    data_axes = (1, 0)

    def __init__(self, u: ArrayLike, y: ArrayLike) -> None:
        self.u, self.y, _, self.batch = as_residual(u, y)
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        residual = np.vecdot(x, self.u) - self.y
        return np.abs(residual), np.sign(residual)[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("y", self.y)]

    nonnegative = True

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """See `absolute_residuals`."""
        weight, (u, y) = residual_entries(self.batch, count, self.u, self.y)
        return absolute_residuals((weight, u, y), np.zeros(len(u)), 1.0, x, smoothing, exact_kinks)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0])]
