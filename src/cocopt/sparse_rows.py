"""Sparse rows: affine rows of which only the entries that are not 0 are stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, describe
from cocopt.errors import InvalidInput

__all__ = ["SparseRows", "UnitRows", "is_sparse"]

Integers = NDArray[np.int64]


def is_sparse(matrix: Any) -> bool:
    """Whether it is a sparse array or matrix of SciPy's; nothing is imported to find out."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(matrix))


class UnitRows(NamedTuple):
    """The rows that can bind, divided by their lengths, by rows and by columns."""

    used: Integers  #: which rows these are
    norms: Array  #: their lengths as given
    values: Array
    places: Integers
    start: Integers
    column_values: Array
    column_places: Integers
    column_start: Integers
    rhs: Array


class SparseRows:
    """The rows ⟨a_i, x⟩ − b_i. The entries of a_i are ``values[start[i]:start[i + 1]]``, in the columns ``places``.

    In a row no column occurs twice, and the columns rise. b_i = +inf switches row i off.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from cocopt.sparse_rows import SparseRows
    >>> rows = SparseRows.of(scipy.sparse.csr_array([[0.0, 3.0], [1.0, 1.0]]), np.array([1.0, 2.0]))
    >>> rows.values, rows.places, rows.start
    (array([3., 1., 1.]), array([1, 0, 1]), array([0, 1, 3]))
    """

    def __init__(self, values: Array, places: Integers, start: Integers, b: Array, dim: int) -> None:
        self.values, self.places, self.start, self.b, self.dim = values, places, start, b, dim

    @classmethod
    def of(cls, matrix: Any, b: Array) -> SparseRows:
        """The rows of a sparse matrix in any format: duplicates are summed, columns sorted, zeros dropped."""
        if matrix.dtype.kind not in "biuf":
            raise InvalidInput(f"A: expected an array of real numbers, got a sparse one of {matrix.dtype}")
        if matrix.ndim == 1:
            matrix = matrix.reshape(1, -1)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise InvalidInput(f"A: expected a sparse array of shape (M, n), got shape {matrix.shape}")
        rows = matrix.tocsr(copy=True).astype(np.float64)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        places, start = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return cls(rows.data, places, start, b, int(matrix.shape[1]))

    @classmethod
    def of_dense(cls, A: Array, b: Array) -> SparseRows:
        """The rows of a dense matrix (M, n)."""
        row, places = np.nonzero(A)
        start = np.searchsorted(row, np.arange(len(A) + 1))
        return cls(A[row, places], places, start, b, A.shape[1])

    @classmethod
    def stacked(cls, pieces: Sequence[SparseRows]) -> SparseRows:
        """The rows of all pieces, one after the other."""
        ends = np.cumsum([0, *(piece.values.size for piece in pieces)])
        starts = [piece.start[:-1] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
        return cls(
            np.concatenate([piece.values for piece in pieces]),
            np.concatenate([piece.places for piece in pieces]),
            np.concatenate([*starts, ends[-1:]]),
            np.concatenate([piece.b for piece in pieces]),
            pieces[0].dim,
        )

    def with_b(self, b: Array) -> SparseRows:
        """The same normals with other right-hand sides."""
        return SparseRows(self.values, self.places, self.start, b, self.dim)

    @property
    def row_count(self) -> int:
        """The number of rows M."""
        return int(self.b.size)

    @cached_property
    def owner(self) -> Integers:
        """The row of every entry."""
        return np.repeat(np.arange(self.row_count), np.diff(self.start))

    @cached_property
    def norms(self) -> Array:
        """The lengths of the rows."""
        return np.sqrt(np.bincount(self.owner, weights=self.values * self.values, minlength=self.row_count))

    def dense(self, rows: Any) -> Array:
        """The normals of some rows, given as integers of any shape (...): (..., n)."""
        index = np.asarray(rows)
        normals = np.zeros((index.size, self.dim))
        for at, i in enumerate(index.flat):
            part = slice(self.start[i], self.start[i + 1])
            normals[at, self.places[part]] = self.values[part]
        return normals.reshape(*index.shape, self.dim)

    def combine(self, weights: Array) -> Array:
        """Σ_i weights_i a_i, for weights (..., M)."""
        flat = weights.reshape(-1, self.row_count)
        sums = [np.bincount(self.places, weights=self.values * w[self.owner], minlength=self.dim) for w in flat]
        return np.reshape(sums, (*weights.shape[:-1], self.dim))

    def matrix(self) -> Any:
        """A as a ``csr_array`` of SciPy's."""
        from scipy.sparse import csr_array

        return csr_array((self.values, self.places, self.start), shape=(self.row_count, self.dim))

    def select(self, rows: Integers) -> SparseRows:
        """Some of the rows, given in rising order."""
        if rows.size == self.row_count:
            return self
        kept, start = np.isin(self.owner, rows), np.concatenate([[0], np.cumsum(np.diff(self.start)[rows])])
        return SparseRows(self.values[kept], self.places[kept], start, self.b[rows], self.dim)

    @cached_property
    def unit_rows(self) -> UnitRows:
        """What the compiled method needs."""
        used = np.flatnonzero((self.norms > 0.0) & (self.b < np.inf))
        rows, norms = self.select(used), self.norms[used]
        values, places, owner = rows.values / norms[rows.owner], rows.places, rows.owner
        order = np.argsort(places, kind="stable")
        column_start = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=self.dim))])
        return UnitRows(
            used, norms, values, places, rows.start, values[order], owner[order], column_start, rows.b / norms,
        )  # fmt: skip

    def require_valid(self) -> None:
        """Raises unless ``places`` and ``start`` describe a matrix, as those that were stored may not."""
        start, places = self.start, self.places
        fits = start.shape == (self.row_count + 1,) and start[0] == 0 and start[-1] == places.size == self.values.size
        if not (fits and (np.diff(start) >= 0).all()):
            raise InvalidInput(f"start: expected where the entries of each of {self.row_count} rows begin, got others")
        inside = bool(((places >= 0) & (places < self.dim)).all())
        inner = np.ones(max(places.size - 1, 0), dtype=bool)
        inner[start[1:-1][(start[1:-1] > 0) & (start[1:-1] < places.size)] - 1] = False  # the next one is another row's
        if not (inside and (np.diff(places) > 0)[inner].all()):
            raise InvalidInput(f"places: expected columns below {self.dim}, rising in each row, got {describe(places)}")
