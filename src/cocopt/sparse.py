"""Sparse matrices, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array

__all__ = ["SparseMatrix"]

Integers = NDArray[np.int64]


class SparseMatrix(NamedTuple):
    """A matrix by its nonzero entries, row by row: those of row i are ``values[starts[i]:starts[i + 1]]``.

    (SciPy's sparse matrices take longer to make than a small cone program to solve.)

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.sparse import SparseMatrix
    >>> matrix = SparseMatrix.of(np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]))
    >>> matrix.values, matrix.columns, matrix.starts
    (array([2., 3., 4.]), array([1, 0, 1]), array([0, 1, 1, 3]))
    """

    values: Array  #: all three arrays are contiguous
    columns: Integers
    starts: Integers
    width: int

    @classmethod
    def of(cls, matrix: Array) -> SparseMatrix:
        """The same matrix without its zeros."""
        present = matrix != 0.0
        starts = np.zeros(len(matrix) + 1, dtype=np.int64)
        np.cumsum(np.count_nonzero(present, axis=1), out=starts[1:])
        columns = np.ascontiguousarray(np.nonzero(present)[1])
        return cls(matrix[present], columns, starts, matrix.shape[1])

    @classmethod
    def of_full(cls, matrix: Array) -> SparseMatrix:
        """The same matrix, all of whose entries are kept."""
        m, n = matrix.shape
        return cls(np.ascontiguousarray(matrix).reshape(-1), *_full_pattern(m, n), n)

    @classmethod
    def diagonal(cls, values: Array, empty_rows: int = 0) -> SparseMatrix:
        """The square diagonal matrix, below some empty rows."""
        return cls(values, *_diagonal_pattern(values.size, empty_rows), values.size)

    @classmethod
    def stacked(cls, parts: Sequence[SparseMatrix]) -> SparseMatrix:
        """The parts, of the same width, one below the other."""
        if len(parts) == 1:
            return parts[0]
        starts = np.concatenate([part.starts[(1 if i else 0) :] for i, part in enumerate(parts)])
        at, entries = 1 + parts[0].rows, parts[0].values.size
        for part in parts[1:]:
            starts[at : at + part.rows] += entries
            at, entries = at + part.rows, entries + part.values.size
        values, columns = (
            np.concatenate(arrays) for arrays in zip(*((p.values, p.columns) for p in parts), strict=True)
        )
        return cls(values, columns, starts, parts[0].width)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.starts.size - 1

    def of_entries(self) -> Integers:
        """The row of each entry."""
        return np.repeat(np.arange(self.rows), np.diff(self.starts))

    def part(self, first: int, end: int) -> SparseMatrix:
        """The rows from ``first`` to ``end``."""
        starts = self.starts[first : end + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        return SparseMatrix(self.values[entries], self.columns[entries], starts - starts[0], self.width)

    def moved(self, first: int, by: int, width: int) -> SparseMatrix:
        """The matrix with this width, its columns from ``first`` on moved by so many places."""
        columns = self.columns
        if by and columns.size:
            columns = columns + by if first == 0 else np.where(columns >= first, columns + by, columns)
        return self._replace(columns=columns, width=width)

    def with_columns(self, matrix: Array) -> SparseMatrix:
        """The matrix with the columns of a dense one behind its own."""
        more = SparseMatrix.of(matrix)
        order = np.argsort(np.concatenate([self.of_entries(), more.of_entries()]), kind="stable")
        values = np.concatenate([self.values, more.values])[order]
        columns = np.concatenate([self.columns, more.columns + self.width])[order]
        return SparseMatrix(values, columns, self.starts + more.starts, self.width + more.width)

    def dense(self) -> Array:
        """The same matrix as an array."""
        matrix = np.zeros((self.rows, self.width))
        matrix[self.of_entries(), self.columns] = self.values
        return matrix


@lru_cache(maxsize=4)
def _full_pattern(m: int, n: int) -> tuple[Integers, Integers]:
    """The columns of the entries of a full matrix, and where its rows begin."""
    return _frozen(np.tile(np.arange(n), m)), _frozen(n * np.arange(m + 1))


@lru_cache(maxsize=64)
def _diagonal_pattern(n: int, empty_rows: int) -> tuple[Integers, Integers]:
    """The columns of the entries of a diagonal matrix below empty rows, and where its rows begin."""
    return _frozen(np.arange(n)), _frozen(np.maximum(np.arange(n + empty_rows + 1) - empty_rows, 0))


def _frozen(array: Integers) -> Integers:
    array.flags.writeable = False
    return array
