"""Squared distances."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.losses.base import Loss, as_vector
from cocopt.losses.second_order import QuadraticForm, leading_entries
from cocopt.registry import register

__all__ = ["Distance"]


@register
class Distance(Loss):
    """f(x) = ½‖x − center‖², with gradient x − center; strongly convex with modulus 1, exactly.

    Parameters
    ----------
    center : array (..., n)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Distance([1.0, 0.0])
    >>> f.value([4.0, 4.0])
    np.float64(12.5)
    >>> f.gradient([4.0, 4.0])
    array([3., 4.])
    """

    __slots__ = ("batch", "center", "dim")

    data_axes = (1,)

    def __init__(self, center: ArrayLike) -> None:
        self.center = as_vector("center", center)
        self.batch: tuple[int, ...] = self.center.shape[:-1]
        self.dim: int = self.center.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        offset = x - self.center
        return 0.5 * np.vecdot(offset, offset), offset

    @property
    def strong_convexity(self) -> float | Array:
        return 1.0

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("center", self.center)]

    nonnegative = True

    def quadratic_form(self, center: Array, count: int) -> QuadraticForm:
        weight, centers = leading_entries(self.batch, count, self.center, 1)
        offset = center - centers
        return QuadraticForm(
            count * np.eye(center.size),
            weight * offset.sum(axis=0),
            0.5 * weight * float(np.vecdot(offset, offset).sum()),
        )

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0]), cls([[1.0, 0.0], [0.0, 3.0]])]
