"""Balls of the maximum norm around a moving center."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, batch_shape
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint, data_batch_shape, finite_part, no_cones, take
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse import SparseMatrix

__all__ = ["NormInf"]


@register
class NormInf(Constraint):
    """g(x) = max_i |x_i − center_i| − radius, a limit on every deviation from a benchmark.

    The subgradient is sign(x_i − center_i)·e_i for the first i with the largest deviation, and 0 at the center. A
    negative radius is legal: then no x satisfies the constraint. For a limit that never changes, the set
    [`Box`][cocopt.Box] is faster.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.NormInf([1.0, 0.0], 2.0)
    >>> g.value([4.0, -4.0])
    np.float64(2.0)
    >>> g.gradient([4.0, -4.0])
    array([ 0., -1.])
    """

    __slots__ = ("batch", "center", "dim", "radius")

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = as_floats("center", center), as_floats("radius", radius)
        if self.center.ndim == 0:
            raise InvalidInput("center: expected shape (..., n), got ()")
        self.batch: tuple[int, ...] = batch_shape(("center", self.center.shape[:-1]), ("radius", self.radius.shape))
        self.dim: int = self.center.shape[-1]

    def rows_unchecked(self, x: Array) -> Array:
        value: Array = np.abs(x - self.center).max(axis=-1) - self.radius
        return value[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        offset = np.broadcast_to(x - self.center, (*data_batch_shape(self, x), self.dim))
        worst = np.abs(offset).argmax(axis=-1)[..., None]
        return np.where(np.arange(self.dim) == worst, np.sign(offset), 0.0)[..., None, :]

    def magnitude(self, x: Array) -> Array:
        terms = np.maximum(np.abs(x), np.abs(self.center)).max(axis=-1)
        size: Array = np.maximum(terms, np.abs(finite_part(self.radius, np.inf)))
        return size[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """−(radius + t) ≤ x − center ≤ radius + t."""
        self.require_single()
        self.require_finite_data()
        if self.radius == np.inf:
            return no_cones(self.dim)
        n, ones = self.dim, np.ones(self.dim)
        A = SparseMatrix.stacked([SparseMatrix.diagonal(ones), SparseMatrix.diagonal(-ones)])
        b = np.concatenate([self.radius + self.center, self.radius - self.center])
        return Cones(A, b, np.ones((2 * n, 1)), (("nonneg", 2 * n),))

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    def trials_unchecked(self, index: Any) -> NormInf:
        return NormInf(*take(self.batch, index, (self.center, 1), (self.radius, 0)))

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("center", self.center, False), ("radius", finite_part(self.radius, np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.5, -0.5], 1.0), cls([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])]
