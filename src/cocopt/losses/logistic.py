"""The logistic loss."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.losses.base import Loss, as_labelled
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

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u, self.v, self.batch = as_labelled(u, v)
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        margin = self.v * np.vecdot(x, self.u)
        slope = -self.v * np.exp(-np.logaddexp(0.0, margin))
        return np.logaddexp(0.0, -margin), slope[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("v", self.v)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0])]
