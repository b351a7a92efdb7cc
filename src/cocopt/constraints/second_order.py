"""Second-order cones."""

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
from cocopt.threads import matvec, vecmat

__all__ = ["SecondOrder"]


@register
class SecondOrder(Constraint):
    """g(x) = ‖A x + b‖ − ⟨c, x⟩ − d, with subgradient Aᵀ(Ax + b)/‖Ax + b‖ − c, and −c where A x + b vanishes.

    Parameters
    ----------
    A : array (..., p, n)
    b : array (..., p)
    c : array (..., n)
    d : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.SecondOrder([[3.0, 0.0], [0.0, 4.0]], [0.0, 0.0], [1.0, 1.0], 1.0)
    >>> g.value([1.0, 1.0])
    np.float64(2.0)
    >>> g.gradient([1.0, 1.0])
    array([0.8, 2.2])
    """

    __slots__ = ("A", "b", "batch", "c", "d", "dim")

    def __init__(self, A: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> None:
        self.A, self.b = as_floats("A", A), as_floats("b", b)
        self.c, self.d = as_floats("c", c), as_floats("d", d)
        if self.A.ndim < 2:
            raise InvalidInput(f"A: expected shape (..., p, n), got {self.A.shape}")
        p, n = self.A.shape[-2:]
        for name, array, size in (("b", self.b, p), ("c", self.c, n)):
            if array.ndim == 0 or array.shape[-1] != size:
                raise InvalidInput(f"{name}: expected shape (..., {size}) to match A {self.A.shape}, got {array.shape}")
        parts = ("A", self.A.shape[:-2]), ("b", self.b.shape[:-1]), ("c", self.c.shape[:-1]), ("d", self.d.shape)
        self.batch: tuple[int, ...] = batch_shape(*parts)
        self.dim: int = n

    def rows_unchecked(self, x: Array) -> Array:
        value: Array = row_norms(matvec(self.A, x) + self.b) - np.vecdot(x, self.c) - self.d
        return value[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        gradient = vecmat(unit_vectors(matvec(self.A, x) + self.b), self.A) - self.c
        return broadcast(gradient, (*data_batch_shape(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        A: Array = np.linalg.norm(self.A, axis=(-2, -1))
        return ((A + row_norms(self.c)) * row_norms(x) + row_norms(self.b) + np.abs(finite_part(self.d, np.inf)))[
            ..., None
        ]

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """(⟨c, x⟩ + d + t, A x + b) in the second-order cone."""
        self.require_single()
        self.require_finite_data()
        if self.d == np.inf:
            return no_cones(self.dim)
        size = len(self.b) + 1
        return Cones(-np.vstack([self.c, self.A]), np.append(self.d, self.b), first_column(size), (("soc", size),))

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b, "c": self.c, "d": self.d}

    def trials_unchecked(self, index: Any) -> SecondOrder:
        return SecondOrder(*take(self.batch, index, (self.A, 2), (self.b, 1), (self.c, 1), (self.d, 0)))

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        d = finite_part(self.d, np.inf)
        return [("A", self.A, False), ("b", self.b, False), ("c", self.c, False), ("d", d, False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[1.0, 2.0], [0.0, 1.0]], [0.1, 0.2], [0.5, 0.0], 1.0)]
