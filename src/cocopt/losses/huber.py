"""The Huber loss."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import Array, ArrayLike
from cocopt.errors import InvalidInput
from cocopt.losses.base import Loss, as_residual
from cocopt.losses.second_order import Neighborhood, SecondOrder, residual_entries
from cocopt.registry import register

__all__ = ["Huber"]


@register
class Huber(Loss):
    """f(x) = s²/2 where |s| ≤ delta, and delta·(|s| − delta/2) elsewhere, with s = ⟨u, x⟩ − y.

    Quadratic near the target and linear far from it, so that outliers count less (Huber 1964). The gradient is
    min(max(s, −delta), delta)·u.

    Parameters
    ----------
    u : array (..., n)
        Features.
    y : float or array (...)
        Targets.
    delta : float or array (...)
        Positive.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Huber([1.0, 2.0], 5.0, 1.0)
    >>> f.value([[1.0, 1.0], [2.0, 1.0]])
    array([1.5, 0.5])
    >>> f.gradient([1.0, 1.0])
    array([-1., -2.])
    """

    __slots__ = ("batch", "delta", "dim", "u", "y")

    data_axes = (1, 0, 0)

    def __init__(self, u: ArrayLike, y: ArrayLike, delta: ArrayLike) -> None:
        self.u, self.y, self.delta, self.batch = as_residual(u, y, "delta", delta)
        if not (self.delta > 0.0).all():
            raise InvalidInput(f"delta: expected positive numbers, got {self.delta}")
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        residual = np.vecdot(x, self.u) - self.y
        slope: Array = np.clip(residual, -self.delta, self.delta)
        return slope * (residual - 0.5 * slope), slope[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("y", self.y), ("delta", self.delta)]

    nonnegative = True

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """Exact: the loss has a continuous gradient, and its tangent is a minorant."""
        weight, (u, y, delta) = residual_entries(self.batch, count, self.u, self.y, self.delta)
        residual = u @ x - y
        slope = np.clip(residual, -delta, delta)
        value = weight * float((slope * (residual - 0.5 * slope)).sum())
        hessian = weight * (u.T * (np.abs(residual) <= delta)) @ u
        return SecondOrder(value, value, value, weight * slope @ u, hessian)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0, 0.5), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0], [1.0, 2.0])]
