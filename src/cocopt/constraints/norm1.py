"""Balls of the 1-norm around a moving center."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, batch_shape, broadcast
from cocopt.cones import Cones, absolute_values, sum_of_auxiliary
from cocopt.constraints.base import Constraint, data_batch_shape, finite_part, no_cones, take
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse import SparseMatrix

__all__ = ["Norm1"]


@register
class Norm1(Constraint):
    """g(x) = Σ |x_i − center_i| − radius, a limit on turnover; its subgradient is sign(x − center).

    A negative radius is legal: then no x satisfies the constraint. For a limit that never changes, the set
    [`L1Ball`][cocopt.L1Ball] is faster.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Norm1([1.0, 0.0], 2.0)
    >>> g.value([4.0, -4.0])
    np.float64(5.0)
    >>> g.gradient([4.0, -4.0])
    array([ 1., -1.])
    """

    __slots__ = ("batch", "center", "dim", "radius")

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = as_floats("center", center), as_floats("radius", radius)
        if self.center.ndim == 0:
            raise InvalidInput("center: expected shape (..., n), got ()")
        self.batch: tuple[int, ...] = batch_shape(("center", self.center.shape[:-1]), ("radius", self.radius.shape))
        self.dim: int = self.center.shape[-1]

    def rows_unchecked(self, x: Array) -> Array:
        value: Array = np.abs(x - self.center).sum(axis=-1) - self.radius
        return value[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        sign = np.sign(x - self.center)
        return broadcast(sign, (*data_batch_shape(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        terms = np.maximum(np.abs(x), np.abs(self.center)).sum(axis=-1)
        size: Array = np.maximum(terms, np.abs(finite_part(self.radius, np.inf)))
        return size[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """|x − center| ≤ u and Σ u_i ≤ radius + t, with auxiliary variables u."""
        self.require_single()
        self.require_finite_data()
        if self.radius == np.inf:
            return no_cones(self.dim)
        n = self.dim
        A = SparseMatrix.stacked([sum_of_auxiliary(n), absolute_values(n)])
        b = np.concatenate([[self.radius], self.center, -self.center])
        return Cones(A, b, np.eye(2 * n + 1, 1), (("nonneg", 2 * n + 1),), aux=n)

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    def trials_unchecked(self, index: Any) -> Norm1:
        return Norm1(*take(self.batch, index, (self.center, 1), (self.radius, 0)))

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("center", self.center, False), ("radius", finite_part(self.radius, np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.5, -0.5], 1.0), cls([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])]
