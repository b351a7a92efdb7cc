"""The logistic loss."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.losses.base import Loss, as_labelled
from cocopt.losses.second_order import Neighborhood, SecondOrder, leading_entries
from cocopt.registry import register

__all__ = ["Logistic"]


@register
class Logistic(Loss):
    """f(x) = log(1 + exp(−v⟨u, x⟩)), with gradient −v u / (1 + exp(v⟨u, x⟩)); neither overflows.

    Parameters
    ----------
    u : array (..., n)
        Features.
    v : float or array (...)
        Labels, ±1 or any real numbers.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Logistic([1.0, 2.0], 1.0)
    >>> f.value([-1000.0, 0.0])
    np.float64(1000.0)
    >>> f.gradient([0.0, 0.0])
    array([-0.5, -1. ])
    """

    __slots__ = ("batch", "dim", "u", "v")

    data_axes = (1, 0)

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u, self.v, self.batch = as_labelled(u, v)
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        margin = self.v * np.vecdot(x, self.u)
        slope = -self.v * np.exp(-np.logaddexp(0.0, margin))
        return np.logaddexp(0.0, -margin), slope[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("v", self.v)]

    nonnegative = True

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """Exact: the loss is smooth, and its tangent is a minorant."""
        weight, u = leading_entries(self.batch, count, self.u, 1)
        v = leading_entries(self.batch, count, self.v, 0)[1]
        margin = v * np.vecdot(u, x)
        p = np.exp(-np.logaddexp(0.0, margin))
        value = weight * float(np.logaddexp(0.0, -margin).sum())
        gradient = -weight * (p * v) @ u
        return SecondOrder(value, value, value, gradient, weight * (u.T * (v**2 * p * (1.0 - p))) @ u)

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0])]
