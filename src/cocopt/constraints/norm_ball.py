"""Balls around a moving center."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
    as_floats,
    batch_shape,
    broadcast,
)
from cocopt.cones import Cones
from cocopt.constraints.base import (
    Constraint,
    data_batch_shape,
    finite_part,
    first_column,
    no_cones,
    row_norms,
    take,
    unit_vectors,
)
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse import SparseMatrix

__all__ = ["NormBall"]


@register
class NormBall(Constraint):
    """g(x) = ‖x − center‖ − radius, with subgradient (x − center)/‖x − center‖, and 0 at the center.

    A negative radius is legal: then no x satisfies the constraint.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.NormBall([1.0, 0.0], 2.0)
    >>> g.value([4.0, 4.0])
    np.float64(3.0)
    >>> g.gradient([4.0, 4.0])
    array([0.6, 0.8])
    """

    __slots__ = ("batch", "center", "dim", "radius")

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = as_floats("center", center), as_floats("radius", radius)
        if self.center.ndim == 0:
            raise InvalidInput("center: expected shape (..., n), got ()")
        self.batch: tuple[int, ...] = batch_shape(("center", self.center.shape[:-1]), ("radius", self.radius.shape))
        self.dim: int = self.center.shape[-1]

    def rows_unchecked(self, x: Array) -> Array:
        return (row_norms(x - self.center) - self.radius)[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        unit = unit_vectors(x - self.center)
        return broadcast(unit, (*data_batch_shape(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        radius = np.abs(finite_part(self.radius, np.inf))
        return np.maximum(np.maximum(row_norms(x), row_norms(self.center)), radius)[..., None]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """(radius + t, x − center) in the second-order cone."""
        self.require_single()
        self.require_finite_data()
        if self.radius == np.inf:
            return no_cones(self.dim)
        A, b = SparseMatrix.diagonal(-np.ones(self.dim), empty_rows=1), np.append(self.radius, -self.center)
        return Cones(A, b, first_column(self.dim + 1), (("soc", self.dim + 1),))

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    def trials_unchecked(self, index: Any) -> NormBall:
        return NormBall(*take(self.batch, index, (self.center, 1), (self.radius, 0)))

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("center", self.center, False), ("radius", finite_part(self.radius, np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.5, -0.5], 1.0), cls([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])]
