"""Linear losses."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
    read_only_view,
)
from cocopt.losses.base import Loss, as_vector
from cocopt.losses.second_order import QuadraticForm, leading_entries
from cocopt.registry import register

__all__ = ["Linear"]


@register
class Linear(Loss):
    """f(x) = ⟨c, x⟩, with gradient c.

    Parameters
    ----------
    c : array (..., n)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Linear([1.0, -2.0])
    >>> f.value([3.0, 1.0])
    np.float64(1.0)
    >>> f.gradient([3.0, 1.0])
    array([ 1., -2.])
    """

    __slots__ = ("batch", "c", "dim")

    data_axes = (1,)

    def __init__(self, c: ArrayLike) -> None:
        self.c = as_vector("c", c)
        self.batch: tuple[int, ...] = self.c.shape[:-1]
        self.dim: int = self.c.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        value = np.vecdot(x, self.c)
        return value, read_only_view(self.c, (*value.shape, self.dim))

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("c", self.c)]

    def quadratic_form(self, center: Array, count: int) -> QuadraticForm:
        weight, c = leading_entries(self.batch, count, self.c, 1)
        slope = weight * c.sum(axis=0)
        return QuadraticForm(np.zeros((center.size, center.size)), slope, float(slope @ center))

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0]), cls([[1.0, 0.0], [0.0, 3.0]])]
