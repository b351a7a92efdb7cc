"""The logarithm of a sum of exponentials."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint, row_norms
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse import SparseMatrix
from cocopt.threads import matvec, vecmat

__all__ = ["LogSumExp"]


@register
class LogSumExp(Constraint):
    """g(x) = log Σ_i exp(⟨a_i, x⟩ − b_i), the logarithm of a posynomial; its gradient is the weighted mean of the a_i.

    It never overflows. Since max_i (⟨a_i, x⟩ − b_i) ≤ g(x), every point with g(x) ≤ 0 satisfies A x ≤ b.

    Parameters
    ----------
    A : array (..., M, n)
    b : array (..., M)

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.LogSumExp([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    >>> g.value([1000.0, 1000.0]).round(9)
    np.float64(1000.693147181)
    >>> g.gradient([0.0, 0.0])
    array([0.5, 0.5])
    """

    __slots__ = ("A", "b", "batch", "dim")

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        self.A, self.b = as_floats("A", A), as_floats("b", b)
        if self.A.ndim < 2:
            raise InvalidInput(f"A: expected shape (..., M, n), got {self.A.shape}")
        if self.b.shape != self.A.shape[:-1]:
            raise InvalidInput(f"b: expected shape {self.A.shape[:-1]} to match A {self.A.shape}, got {self.b.shape}")
        self.batch: tuple[int, ...] = self.A.shape[:-2]
        self.dim: int = self.A.shape[-1]

    def _exponentials(self, x: Array) -> tuple[Array, Array]:
        """The largest exponent (..., 1), and the exponentials after it is subtracted (..., M)."""
        exponents = matvec(self.A, x) - self.b
        largest: Array = exponents.max(axis=-1, keepdims=True)
        return largest, np.exp(exponents - largest)

    def rows_unchecked(self, x: Array) -> Array:
        largest, terms = self._exponentials(x)
        rows: Array = largest + np.log(terms.sum(axis=-1, keepdims=True))
        return rows

    def jacobian_unchecked(self, x: Array) -> Array:
        terms = self._exponentials(x)[1]
        gradient: Array = vecmat(terms / terms.sum(axis=-1, keepdims=True), self.A)
        return gradient[..., None, :]

    def magnitude(self, x: Array) -> Array:
        terms = row_norms(self.A) * row_norms(x)[..., None] + np.abs(self.b)
        size: Array = np.maximum(terms.max(axis=-1, keepdims=True), 1.0)
        return size

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        """Σ u_i ≤ 1 and exp(⟨a_i, x⟩ − b_i − t) ≤ u_i, with auxiliary variables u."""
        self.require_single()
        self.require_finite_data()
        M, n = self.A.shape
        b, E = np.ones(3 * M + 1), np.zeros((3 * M + 1, 1))
        first = 1 + 3 * np.arange(M)  # the cone holds (exponent, 1, u_i)
        b[first], E[first], b[first + 2] = -self.b, -1.0, 0.0
        u = n + np.arange(M)
        values = np.append(np.ones(M), -np.hstack([self.A, np.ones((M, 1))]))
        columns = np.append(u, np.hstack([np.tile(np.arange(n), (M, 1)), u[:, None]]))
        lengths = np.append([0, M], np.tile([n, 0, 1], M))
        A = SparseMatrix(values, columns, np.cumsum(lengths), n + M)
        return Cones(A, b, E, (("nonneg", 1), *((("exp", 3),) * M)), aux=M)

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b}

    def trials_unchecked(self, index: Any) -> LogSumExp:
        return LogSumExp(self.A[index], self.b[index])

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("A", self.A, False), ("b", self.b, False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[1.0, 0.0], [0.5, -1.0]], [1.0, 0.5]), cls([[[1.0, 2.0]], [[0.5, 0.0]]], [[1.0], [2.0]])]
