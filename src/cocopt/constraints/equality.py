"""Affine equations."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike
from cocopt.cones import Cones
from cocopt.constraints.affine import Affine
from cocopt.constraints.base import Constraint
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse_rows import is_sparse

__all__ = ["Equality"]


@register
class Equality(Constraint):
    """The rows g_i(x) = |⟨a_i, x⟩ − b_i|, in short A x = b.

    A row is at most 0 where its equation holds, and only there. The subgradient is sign(⟨a_i, x⟩ − b_i)·a_i, and 0
    where the equation holds.

    Parameters
    ----------
    A : array (..., M, n), or (n,) for a single row
    b : array (..., M), or a number for a single row

    Examples
    --------
    >>> import cocopt
    >>> from cocopt import constraints
    >>> g = constraints.Equality([[1.0, 1.0], [1.0, -1.0]], [1.0, 0.5])
    >>> g.rows([1.0, 0.25])
    array([0.25, 0.25])
    >>> balanced = constraints.Equality([1.0, 1.0], 1.0)
    >>> cocopt.project(cocopt.Box(0.0, 1.0, dim=2), balanced, [0.25, 0.25]).round(12)
    array([0.5, 0.5])
    """

    __slots__ = ("_residual", "batch", "dim", "row_count")

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        if is_sparse(A):
            raise InvalidInput("A: expected a dense array, got a sparse one; `Affine` takes these, for inequalities")
        self._residual = Affine(A, b)
        self.batch: tuple[int, ...] = self._residual.batch
        self.row_count: int = self._residual.row_count
        self.dim: int = self._residual.dim

    @property
    def A(self) -> Array:
        """The rows a_i, (..., M, n)."""
        return self._residual.A

    @property
    def b(self) -> Array:
        """What the rows are to be equal to, (..., M)."""
        return self._residual.b

    def rows_unchecked(self, x: Array) -> Array:
        return np.abs(self._residual.rows_unchecked(x))

    def jacobian_unchecked(self, x: Array) -> Array:
        sign = np.sign(self._residual.rows_unchecked(x))
        return sign[..., None] * self.A

    def magnitude(self, x: Array) -> Array:
        return self._residual.magnitude(x)

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """−t ≤ A x − b ≤ t."""
        self.require_single()
        self.require_finite_data()
        E = np.eye(self.row_count)
        A, b = np.concatenate([self.A, -self.A]), np.concatenate([self.b, -self.b])
        return Cones(A, b, np.concatenate([E, E]), (("nonneg", 2 * self.row_count),))

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b}

    def trials_unchecked(self, index: Any) -> Equality:
        return Equality(self.A[index], self.b[index])

    def select_unchecked(self, row: Any) -> Equality:
        selected = self._residual.select_unchecked(row)
        return Equality(selected.A, selected.b)

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("A", self.A, False), ("b", self.b, False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [
            cls([1.0, 2.0], 0.5),
            cls([[1.0, 0.0], [0.5, -1.0]], [1.0, 0.25]),
            cls(np.eye(2)[:, None], [[0.1], [0.2]]),
        ]
