"""Norms of residuals."""

from __future__ import annotations

from cocopt import kernels
from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.kernels import contiguous
from cocopt.losses.base import Loss, as_regression

__all__ = ["Norm"]


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

    def __init__(self, H: ArrayLike, y: ArrayLike) -> None:
        rows, right = as_regression(H, y)
        self.H, self.y = contiguous(rows), contiguous(right)
        self.batch: tuple[int, ...] = rows.shape[:-2]
        self.dim: int = rows.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        value, gradient = kernels.norm_loss(self.H, self.y, contiguous(x))
        return value, gradient

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("H", self.H), ("y", self.y)]
