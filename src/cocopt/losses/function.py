"""Losses that are known by value and subgradient alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from cocopt import functions
from cocopt.arrays import (
    Array,
    ArrayLike,
    require_finite,
    scalar,
)
from cocopt.losses.base import Loss
from cocopt.registry import register

__all__ = ["Function"]


@register
class Function(Loss):
    """A loss known by its value and a subgradient alone; the caller must ensure convexity and the modulus.

    Both callables see read-only copies. An exception that they raise passes through, with a note that names the trial.

    Parameters
    ----------
    value, gradient : callable
        x of shape (n,) to a number, and to an array (n,); called trial by trial. With ``vectorized`` they get all
        points (..., n) at once and return shapes (...) and (..., n).
    strong_convexity : float
    vectorized : bool

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Function(lambda x: float(x @ x), lambda x: 2 * x, strong_convexity=2.0)
    >>> f.value([[1.0, 0.0], [3.0, 4.0]])
    array([ 1., 25.])
    >>> f.gradient([3.0, 4.0])
    array([6., 8.])
    """

    __slots__ = ("_gradient", "_modulus", "_value", "dim")

    def __init__(
        self,
        value: Callable[[Array], Any],
        gradient: Callable[[Array], Any],
        strong_convexity: float = 0.0,
        vectorized: bool = False,
    ) -> None:
        self._value = functions.BlackBox("losses.Function", "value", value, vectorized)
        self._gradient = functions.BlackBox("losses.Function", "gradient", gradient, vectorized)
        self._modulus = scalar("strong_convexity", strong_convexity, nonnegative=True)
        self.dim = None

    def value(self, x: ArrayLike) -> Array:
        return self._value(self.check_points(x), ())

    def gradient(self, x: ArrayLike) -> Array:
        points = self.check_points(x)
        return self._gradient(points, points.shape[-1:])

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        return self._value(x, ()), self._gradient(x, x.shape[-1:])

    def check_points(self, x: ArrayLike) -> Array:
        return require_finite("x", super().check_points(x))  # else the error would name the callables

    @property
    def strong_convexity(self) -> float | Array:
        return self._modulus

    def __repr__(self) -> str:
        return f"Function(value={self._value.call!r}, gradient={self._gradient.call!r})"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(lambda x: float(x @ x), lambda x: 2.0 * x, strong_convexity=2.0)]
