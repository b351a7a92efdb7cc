"""Losses f_t, as small immutable objects.

Arrays may carry leading axes, one entry a trial; they broadcast against the leading axes of the point. Contents are
not searched for NaN at construction: a result that is not finite is traced to the argument that caused it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Never

import numpy as np

from cocopt._arrays import Array, ArrayLike, as_floats, as_points, require_finite
from cocopt.errors import InvalidInput

__all__ = ["Loss", "Norm"]


class Loss(ABC):
    """A convex loss f. A new loss needs `dim`, `batch` and `_value_and_gradient`."""

    #: the dimension n, or None if any will do
    dim: int | None
    #: the leading axes of the data; () for a single loss
    batch: tuple[int, ...] = ()

    def value(self, x: ArrayLike) -> Array:
        """f(x), shape (...)."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of f at x, shape (..., n)."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: ArrayLike) -> tuple[Array, Array]:
        """f(x) and a subgradient, sharing their common work."""
        points = self._points(x)
        value, gradient = self._value_and_gradient(points)
        if not (np.isfinite(value).all() and np.isfinite(gradient).all()):
            self._blame(points)
        return value, gradient

    @property
    def strong_convexity(self) -> float | Array:
        """The largest known m with f − (m/2)‖x‖² convex; one number, or one a trial."""
        return 0.0

    @abstractmethod
    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Both, on checked points."""

    def _points(self, x: ArrayLike) -> Array:
        if self.dim is None:
            points = as_floats("x", x)
            if points.ndim == 0:
                raise InvalidInput("x: expected shape (..., n), got ()")
            return points
        return as_points("x", x, self.dim)

    def _blame(self, x: Array) -> Never:
        """Finds the argument that made a result infinite or NaN, and says so."""
        name = f"losses.{type(self).__name__}"
        for argument, array in self._data():
            require_finite(f"{name}: {argument}", array)
        require_finite("x", x)
        raise InvalidInput(f"{name}: the value or gradient is not finite at a finite point; the data may overflow")

    def _data(self) -> list[tuple[str, Array]]:
        """(argument name, array), for error messages."""
        return []


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
        self.H, self.y = _regression(H, y)
        self.batch: tuple[int, ...] = self.H.shape[:-2]
        self.dim: int = self.H.shape[-1]

    def _value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        residual = np.matmul(self.H, x[..., None])[..., 0] - self.y
        value = np.sqrt((residual * residual).sum(axis=-1))
        unit = residual / np.where(value > 0, value, 1.0)[..., None]
        return value, np.matmul(unit[..., None, :], self.H)[..., 0, :]

    def _data(self) -> list[tuple[str, Array]]:
        return [("H", self.H), ("y", self.y)]


def _regression(H: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    rows, right = as_floats("H", H), as_floats("y", y)
    if rows.ndim < 2:
        raise InvalidInput(f"H: expected shape (..., p, n), got {rows.shape}")
    if right.shape != rows.shape[:-1]:
        raise InvalidInput(f"y: expected shape {rows.shape[:-1]} to match H of shape {rows.shape}, got {right.shape}")
    return rows, right
