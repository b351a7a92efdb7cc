"""Affine rows."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np

from cocopt import kernels
from cocopt.arrays import (
    Array,
    ArrayLike,
    as_floats,
    batch_shape,
    broadcast,
    plain_system,
    read_only_view,
)
from cocopt.cones import Cones
from cocopt.constraints.base import (
    Constraint,
    data_batch_shape,
    finite_part,
    row_norms,
)
from cocopt.errors import InvalidInput
from cocopt.kernels import contiguous
from cocopt.registry import register
from cocopt.sparse_rows import SparseRows, is_sparse

__all__ = ["Affine"]


@register
class Affine(Constraint):
    """The rows g_i(x) = ⟨a_i, x⟩ − b_i, in short A x ≤ b.

    Parameters
    ----------
    A : array (..., M, n), or (n,) for a single row
        Or a sparse array of SciPy's, (M, n), in any format, which all trials share: then the constraint is a
        [`SparseAffine`][cocopt.constraints.SparseAffine], which never makes it dense.
    b : array (..., M), or a number for a single row
        b_i = +inf switches row i off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Affine([[1.0, 1.0], [1.0, -1.0]], [1.0, 0.5])
    >>> g.rows([1.0, 0.25])
    array([0.25, 0.25])
    >>> g.gradient([1.0, 0.0])
    array([ 1., -1.])
    """

    __slots__ = ("A", "_entries", "b", "batch", "dim", "row_count")

    A: Array
    b: Array
    batch: tuple[int, ...]
    row_count: int
    dim: int

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        plain = plain_system(A, b)
        if plain is not None:  # the usual case, in half the time
            self.A, self.b = plain
            self.batch = ()
            self.row_count, self.dim = self.A.shape
            return
        if is_sparse(A):
            self._become_sparse(A, as_floats("b", b))
            return
        rows, rhs = as_floats("A", A), as_floats("b", b)
        if rows.ndim < 2:
            if rows.ndim == 0:
                raise InvalidInput("A: expected shape (..., M, n) or (n,), got ()")
            if rhs.shape not in ((), (1,)):
                raise InvalidInput(f"b: expected a number, since A is a single row, got shape {rhs.shape}")
            rows, rhs = rows[None, :], rhs.reshape(1)
        if rhs.shape != rows.shape[:-1]:
            raise InvalidInput(f"b: expected shape {rows.shape[:-1]} to match A {rows.shape}, got {rhs.shape}")
        self.A, self.b = contiguous(rows), contiguous(rhs)
        self.batch = rows.shape[:-2]
        self.row_count, self.dim = rows.shape[-2:]

    def _become_sparse(self, matrix: Any, b: Array) -> None:
        """Goes on as a `SparseAffine`, which has the same slots; to choose the class before would slow every round."""
        from cocopt.constraints.sparse_affine import SparseAffine

        if type(self) is not Affine:
            raise InvalidInput(f"A: expected a dense array for a {type(self).__name__}, got a sparse one")
        rows = SparseRows.of(matrix, contiguous(b.reshape(1) if b.ndim == 0 else b))
        expected = (rows.start.size - 1,)
        if rows.b.shape != expected:
            raise InvalidInput(f"b: expected shape {expected} to match A {matrix.shape}, got {b.shape}")
        self.__class__ = SparseAffine
        cast(SparseAffine, self).set_rows(rows)

    def rows_unchecked(self, x: Array) -> Array:
        rows: Array = kernels.affine_rows(self.A, self.b, contiguous(x))
        return rows

    def violation_unchecked(self, x: Array) -> Array:
        worst: Array = kernels.affine_violation(self.A, self.b, contiguous(x))
        return worst

    def jacobian_unchecked(self, x: Array) -> Array:
        return read_only_view(self.A, (*data_batch_shape(self, x), *self.A.shape[-2:]))

    def magnitude(self, x: Array) -> Array:
        return np.maximum(row_norms(self.A) * row_norms(x)[..., None], np.abs(finite_part(self.b, np.inf)))

    def affine(self) -> tuple[Array, Array] | None:
        return self.A, self.b

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones | None:
        self.require_single()
        self.require_finite_data()
        active = self.b < np.inf
        m = int(active.sum())
        return Cones(self.A[active], self.b[active], np.eye(self.row_count)[active], (("nonneg", m),) if m else ())

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b}

    def trials_unchecked(self, index: Any) -> Affine:
        return Affine(self.A[index], self.b[index])

    def select_unchecked(self, row: Any) -> Affine:
        if row.ndim == 0:
            return Affine(self.A[..., row, :][..., None, :], self.b[..., row][..., None])
        shape = batch_shape(("data", self.batch), ("row", row.shape))
        A, b = broadcast(self.A, (*shape, *self.A.shape[-2:])), broadcast(self.b, (*shape, self.row_count))
        trials = (np.arange(shape[0]),) if len(shape) == 1 else np.indices(shape, sparse=True)
        index = (*trials, broadcast(row, shape))
        return Affine(A[index][..., None, :], b[index][..., None])

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("A", self.A, False), ("b", finite_part(self.b, np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [
            cls([1.0, 2.0], 0.5),
            cls([[1.0, 0.0], [0.5, -1.0]], [1.0, np.inf]),
            cls(np.eye(2)[:, None], [[0.1], [0.2]]),
        ]
