"""The hinge loss."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.losses.base import Loss, as_labelled
from cocopt.registry import register

__all__ = ["Hinge"]


@register
class Hinge(Loss):
    """f(x) = max(0, 1 − v⟨u, x⟩), the loss of the support vector machine.

    The subgradient is −v u where the margin v⟨u, x⟩ is below 1, and 0 elsewhere, the kink included.

    Parameters
    ----------
    u : array (..., n)
        Features.
    v : float or array (...)
        Labels, ±1 or any real numbers.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Hinge([1.0, 2.0], -1.0)
    >>> f.value([1.0, 0.5])
    np.float64(3.0)
    >>> f.gradient([1.0, 0.5])
    array([1., 2.])
    """

    __slots__ = ("batch", "dim", "u", "v")

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u, self.v, self.batch = as_labelled(u, v)
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        loss = 1.0 - self.v * np.vecdot(x, self.u)
        slope: Array = -self.v * (loss > 0)
        return np.maximum(loss, 0.0), slope[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("v", self.v)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0])]
