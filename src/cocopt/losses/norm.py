"""Norms of residuals."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt import kernels
from cocopt.arrays import (
    Array,
    ArrayLike,
    plain_system,
)
from cocopt.kernels import contiguous
from cocopt.losses.base import Loss, as_regression
from cocopt.losses.second_order import Kink, Neighborhood, SecondOrder, leading_entries, merge_equal_kinks
from cocopt.registry import register
from cocopt.threads import matvec, vecmat
from cocopt.tolerances import TINY

__all__ = ["Norm"]


@register
class Norm(Loss):
    """f(x) = ‖H x − y‖, the loss of the paper's regression; not strongly convex.

    The subgradient is Hᵀ(Hx − y)/‖Hx − y‖, and 0 where the residual vanishes.

    Parameters
    ----------
    H : array (..., p, n)
    y : array (..., p)

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Norm([[3.0, 0.0], [0.0, 4.0]], [0.0, 0.0])
    >>> f.value([1.0, 1.0])
    np.float64(5.0)
    >>> f.gradient([1.0, 1.0])
    array([1.8, 3.2])
    """

    __slots__ = ("H", "batch", "dim", "y")

    H: Array
    y: Array
    batch: tuple[int, ...]
    dim: int

    data_axes = (2, 1)

    def __init__(self, H: ArrayLike, y: ArrayLike) -> None:
        plain = plain_system(H, y)
        if plain is not None:  # the usual case, in half the time
            self.H, self.y = plain
            self.batch, self.dim = (), self.H.shape[1]
            return
        rows, targets = as_regression(H, y)
        self.H, self.y = contiguous(rows), contiguous(targets)
        self.batch, self.dim = rows.shape[:-2], rows.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        value, gradient = kernels.norm_loss(self.H, self.y, contiguous(x))
        return value, gradient

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("H", self.H), ("y", self.y)]

    nonnegative = True

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """‖r‖ ≥ ⟨u, r⟩ if ‖u‖ ≤ 1; smoothed to √(‖r‖² + μ²), whose gradient has u = r/√(‖r‖² + μ²)."""
        weight, H = leading_entries(self.batch, count, self.H, 2)
        y = leading_entries(self.batch, count, self.y, 1)[1]
        kinks: tuple[Kink, ...] = ()
        residual = matvec(H, x) - y
        squared = np.vecdot(residual, residual)
        value = weight * float(np.sqrt(squared).sum())
        if exact_kinks is not None:
            near = np.linalg.norm(matvec(H, exact_kinks.point) - y, axis=-1) <= exact_kinks.radius
            kinks = merge_equal_kinks(weight * H[near], weight * y[near])
            H, residual, squared = H[~near], residual[~near], squared[~near]
        root = np.sqrt(squared + smoothing**2) + TINY
        u = residual / root[:, None]
        gradients = vecmat(u, H)
        scaled_rows = (H / np.sqrt(root)[:, None, None]).reshape(-1, x.size)
        scaled_gradients = gradients / np.sqrt(root)[:, None]
        return SecondOrder(
            value,
            minorant=weight * float((squared / root).sum()),
            smoothed=weight * float(root.sum()),
            gradient=weight * gradients.sum(axis=0),
            hessian=weight * (scaled_rows.T @ scaled_rows - scaled_gradients.T @ scaled_gradients),
            kinks=kinks,
        )

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[1.0, 2.0], [0.0, 1.0]], [1.0, -1.0]), cls([[[1.0, 2.0]], [[0.5, 0.0]]], [[1.0], [2.0]])]
