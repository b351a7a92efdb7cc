"""Least squares."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.losses.base import Loss, as_regression, one_or_many
from cocopt.losses.second_order import QuadraticForm, leading_entries
from cocopt.registry import register
from cocopt.threads import matvec, one_blas_thread, vecmat

__all__ = ["LeastSquares"]


@register
class LeastSquares(Loss):
    """f(x) = ½‖H x − y‖², with gradient Hᵀ(Hx − y).

    The modulus of strong convexity is λ_min(HᵀH), exact up to rounding (0 if H has dependent columns); it is computed
    when first asked for.

    Parameters
    ----------
    H : array (..., p, n)
    y : array (..., p)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 0.0])
    >>> f.value([0.0, 1.0])
    np.float64(2.5)
    >>> f.gradient([0.0, 1.0])
    array([-1.,  4.])
    >>> f.strong_convexity
    1.0
    """

    __slots__ = ("H", "_modulus", "batch", "dim", "y")

    data_axes = (2, 1)

    def __init__(self, H: ArrayLike, y: ArrayLike) -> None:
        self.H, self.y = as_regression(H, y)
        self.batch: tuple[int, ...] = self.H.shape[:-2]
        self.dim: int = self.H.shape[-1]
        self._modulus: float | Array | None = None

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        residual = matvec(self.H, x) - self.y
        return 0.5 * np.vecdot(residual, residual), vecmat(residual, self.H)

    @property
    def strong_convexity(self) -> float | Array:
        if self._modulus is None:
            self.require_finite_data()
            p, n = self.H.shape[-2:]
            if p < n:
                least = np.zeros(self.batch)
            else:  # singular values keep the digits that forming HᵀH would lose
                with one_blas_thread:
                    sizes = np.linalg.svd(self.H, compute_uv=False)
                noise = p * np.finfo(np.float64).eps * sizes[..., 0]
                least = np.where(sizes[..., -1] > noise, sizes[..., -1] ** 2, 0.0)
            self._modulus = one_or_many(least)
        return self._modulus

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("H", self.H), ("y", self.y)]

    nonnegative = True

    def quadratic_form(self, center: Array, count: int) -> QuadraticForm:
        weight, H = leading_entries(self.batch, count, self.H, 2)
        y = leading_entries(self.batch, count, self.y, 1)[1]
        rows, residual = H.reshape(-1, center.size), (matvec(H, center) - y).ravel()
        return QuadraticForm(
            weight * rows.T @ rows, weight * residual @ rows, 0.5 * weight * float(residual @ residual)
        )

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[1.0, 2.0], [0.0, 1.0]], [1.0, -1.0]), cls([[[1.0, 2.0]], [[0.5, 0.0]]], [[1.0], [2.0]])]
