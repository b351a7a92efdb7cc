"""Constraints that are known by value and subgradient alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from cocopt import functions
from cocopt.arrays import (
    Array,
    ArrayLike,
    require_finite,
)
from cocopt.constraints.base import (
    Constraint,
)
from cocopt.registry import register

__all__ = ["Function"]


@register
class Function(Constraint):
    """A constraint known by its value and a subgradient alone; the caller must ensure convexity.

    It is fast where it is smooth, or separable and piecewise linear (a limit on turnover, say); otherwise a structured
    constraint or [`from_cvxpy`][cocopt.constraints.from_cvxpy] is far faster. The callables are asked for points of K
    only, and see read-only copies. An exception that they raise passes through, with a note that names the trial.

    Parameters
    ----------
    value, gradient : callable
        x of shape (n,) to a number, and to an array (n,); called trial by trial. With ``vectorized`` they get all
        points (..., n) at once and return shapes (...) and (..., n).
    vectorized : bool

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Function(lambda x: float(x @ x) - 1.0, lambda x: 2 * x)
    >>> g.value([[1.0, 0.0], [3.0, 4.0]])
    array([ 0., 24.])
    >>> g.gradient([3.0, 4.0])
    array([6., 8.])
    """

    __slots__ = ("_gradient", "_value", "dim")

    def __init__(
        self, value: Callable[[Array], Any], gradient: Callable[[Array], Any], vectorized: bool = False
    ) -> None:
        self._value = functions.BlackBox("constraints.Function", "value", value, vectorized)
        self._gradient = functions.BlackBox("constraints.Function", "gradient", gradient, vectorized)
        self.dim = None

    def rows_unchecked(self, x: Array) -> Array:
        return self._value(x, ())[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        return self._gradient(x, x.shape[-1:])[..., None, :]

    def check_points(self, x: ArrayLike) -> Array:
        return require_finite("x", super().check_points(x))  # else the error would name the callables

    def equals(self, other: Constraint) -> bool:
        """Whether the other calls the same functions."""
        if not isinstance(other, Function):
            return False
        pairs = ((self._value, other._value), (self._gradient, other._gradient))
        return all(one.call == two.call and one.vectorized == two.vectorized for one, two in pairs)

    def __repr__(self) -> str:
        return f"Function(value={self._value.call!r}, gradient={self._gradient.call!r})"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x)]
