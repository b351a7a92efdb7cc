"""Affine rows that are sparse."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, ArrayLike, as_dimension, as_floats, as_integers
from cocopt.cones import Cones
from cocopt.constraints.affine import Affine
from cocopt.constraints.base import Constraint, data_batch_shape, finite_part, row_norms
from cocopt.errors import InvalidInput
from cocopt.kernels import contiguous
from cocopt.registry import register
from cocopt.sparse import SparseMatrix
from cocopt.sparse_rows import SparseRows

__all__ = ["SparseAffine"]

MAX_DENSE = 10**8  # entries of a dense Jacobian that is asked for
MAX_CONIC = 10**7  # entries of a dense conic form, which is used beside curved constraints


@register
class SparseAffine(Affine):
    """The rows g_i(x) = ⟨a_i, x⟩ − b_i of one sparse matrix for all trials; `Affine` makes it from SciPy's arrays.

    The matrix is kept as it is: projections, values and gradients cost what its entries cost. Only `jacobian` returns a
    dense array, and where there are curved constraints too, in up to 2000 dimensions, the conic form is dense.

    Parameters
    ----------
    values, places : array (entries,)
        The entries of all rows, one row after the other, and their columns, which rise in each row.
    start : array (M + 1,)
        Where the entries of each row begin, and their number.
    b : array (M,)
        b_i = +inf switches row i off.
    dim : int

    Examples
    --------
    >>> import scipy.sparse
    >>> from cocopt import constraints
    >>> g = constraints.Affine(scipy.sparse.csr_array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]), [1.0, 0.5])
    >>> g
    SparseAffine(2 rows with 2 entries in dimension 3)
    >>> g.rows([1.0, 1.0, 1.0])
    array([1. , 0.5])
    """

    __slots__ = ()

    # The five parts of one matrix: that is what is stored, by its name.
    def __init__(self, values: ArrayLike, places: ArrayLike, start: ArrayLike, b: ArrayLike, dim: int) -> None:
        entries = np.zeros(0) if _is_empty(values) else as_floats("values", values)
        columns = np.zeros(0) if _is_empty(places) else as_integers("places", places)
        rhs, begin, n = as_floats("b", b), as_integers("start", start), as_dimension("dim", dim)
        for name, array in (("values", entries), ("places", columns), ("start", begin), ("b", rhs)):
            if array.ndim != 1:
                raise InvalidInput(f"{name}: expected one axis, got shape {array.shape}")
        rows = SparseRows(entries, columns.astype(np.int64), begin.astype(np.int64), contiguous(rhs), n)
        rows.require_valid()
        self.set_rows(rows)

    @classmethod
    def of(cls, rows: SparseRows) -> SparseAffine:
        """The constraint of rows that are known to be valid."""
        self = cls.__new__(cls)
        self.set_rows(rows)
        return self

    def set_rows(self, rows: SparseRows) -> None:
        """Makes these the rows of a new object; ``A`` is the matrix."""
        self._entries, self.A, self.b = rows, rows.matrix(), rows.b
        self.batch, self.row_count, self.dim = (), rows.row_count, rows.dim

    def sparse_rows(self) -> SparseRows:
        return self._entries

    def affine(self) -> None:
        """None, since the rows are not a dense array."""

    def rows_unchecked(self, x: Array) -> Array:
        part = self._entries
        rows: Array = kernels.sparse_rows(part.values, part.places, part.start, part.b, contiguous(x))
        return rows

    def violation_unchecked(self, x: Array) -> Array:
        return Constraint.violation_unchecked(self, x)

    def jacobian_unchecked(self, x: Array) -> Array:
        if self.row_count * self.dim > MAX_DENSE:
            raise InvalidInput(
                f"jacobian: expected at most {MAX_DENSE:.0e} numbers, since it is dense, got {self.row_count} rows in "
                f"dimension {self.dim}; `gradient` returns that of the largest row alone"
            )
        jacobian = self._entries.dense(np.arange(self.row_count))
        return np.broadcast_to(jacobian, (*data_batch_shape(self, x), *jacobian.shape))

    def subgradient_unchecked(self, x: Array, row: Any) -> Array:
        return self._entries.dense(row)

    def combine_unchecked(self, x: Array, weights: Array) -> Array:
        return self._entries.combine(weights)

    def magnitude(self, x: Array) -> Array:
        return np.maximum(self._entries.norms * row_norms(x)[..., None], np.abs(finite_part(self.b, np.inf)))

    @property
    def conic(self) -> bool:
        return self.row_count * self.dim <= MAX_CONIC

    def cones(self) -> Cones | None:
        self.require_finite_data()
        if not self.conic:
            return None
        used = np.flatnonzero(self.b < np.inf)
        rows, relaxation = self._entries.select(used), np.eye(self.row_count)[used]
        matrix = SparseMatrix(rows.values, rows.places, rows.start, self.dim)
        return Cones(matrix, rows.b, relaxation, (("nonneg", used.size),) if used.size else ())

    def select_unchecked(self, row: Any) -> Affine:
        return Affine(self._entries.dense(row)[..., None, :], self.b[row][..., None])

    def parameters(self) -> dict[str, Any]:
        part = self._entries
        return {"values": part.values, "places": part.places, "start": part.start, "b": part.b, "dim": part.dim}

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("A", self._entries.values, False), ("b", finite_part(self.b, np.inf), False)]

    def require_finite_data(self) -> None:
        part = self._entries
        bad = np.flatnonzero(~np.isfinite(part.values))
        if bad.size:
            k = int(bad[0])
            at = f"({int(part.owner[k])}, {int(part.places[k])})"
            raise InvalidInput(f"constraints.Affine: A: expected finite numbers, got {part.values[k]} at index {at}")
        super().require_finite_data()

    def __repr__(self) -> str:
        return f"SparseAffine({self.row_count} rows with {self._entries.values.size} entries in dimension {self.dim})"

    @classmethod
    def examples(cls) -> list[Self]:
        return [
            cls([1.0, 2.0], [0, 1], [0, 2], [0.5], 2),
            cls([2.0, -1.0, 0.5], [1, 0, 2], [0, 1, 3, 3], [1.0, 0.5, np.inf], 3),
        ]


def _is_empty(value: Any) -> bool:
    """Whether it is an array or a list without numbers, as of rows without entries."""
    return value.size == 0 if isinstance(value, np.ndarray) else isinstance(value, list | tuple) and not value
