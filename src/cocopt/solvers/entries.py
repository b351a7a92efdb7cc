"""The entries of a large symmetric matrix, as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.solvers.unknowns import Unknowns
from cocopt.sparse import SparseMatrix

__all__ = ["Entries"]

Integers = NDArray[np.int64]


class Entries:
    """The entries of a symmetric sparse matrix over the unknowns of Newton's method, and more that are added."""

    def __init__(self, unknowns: Unknowns, diagonal: Array) -> None:
        self.unknowns = unknowns
        self.size = unknowns.size
        self.diagonal = diagonal.copy()  # one entry per variable
        self.rows: list[Integers] = []
        self.columns: list[Integers] = []
        self.values: list[Array] = []

    def add(self, rows: Integers, columns: Integers, values: Array) -> None:
        """Entries by numbers of unknowns."""
        self.rows.append(rows)
        self.columns.append(columns)
        self.values.append(values)

    def add_pairs(self, rows: Integers, variables: Integers, values: Array) -> None:
        """Entries in these rows for these variables, as far as they are unknown, and their mirror images."""
        at = self.unknowns.of_variable[variables]
        kept = (at >= 0) & (values != 0.0)
        self.add(rows[kept], at[kept], values[kept])
        self.add(at[kept], rows[kept], values[kept])

    def add_vector(self, row: int, vector: Array) -> None:
        """A row, one entry per variable, and its mirror image."""
        variables = np.flatnonzero(vector)
        self.add_pairs(np.full(variables.size, row), variables, vector[variables])

    def add_rank_one(self, weight: float, vector: Array) -> None:
        """weight·v vᵀ, which would be dense: by one more unknown ω = ⟨v, d⟩, a row and a column instead."""
        self.add_vector(self.size, weight * vector)
        self.add(np.array([self.size]), np.array([self.size]), np.array([-weight]))
        self.size += 1

    def add_gram(self, part: SparseMatrix, weight: float, wide: bool) -> None:
        """weight·RᵀR, R these rows; they are wide if most of their entries are not 0."""
        if (np.diff(part.starts) <= 1).all():
            self.diagonal += weight * np.bincount(part.columns, part.values**2, minlength=part.width)
            return
        gram = _gram(part, wide)
        at = self.unknowns.of_variable
        rows, columns = at[gram.row], at[gram.col]
        kept = (rows >= 0) & (columns >= 0)
        self.add(rows[kept], columns[kept], weight * gram.data[kept])

    def collect(self) -> tuple[Integers, Integers, Array]:
        """Rows, columns and values of all entries."""
        free = np.arange(self.unknowns.free.size)
        self.add(free, free, self.diagonal[self.unknowns.free])
        return np.concatenate(self.rows), np.concatenate(self.columns), np.concatenate(self.values)


def _gram(part: SparseMatrix, wide: bool) -> Any:
    """RᵀR by its entries."""
    from scipy import sparse

    if wide:
        dense = part.dense()
        return sparse.coo_array(dense.T @ dense)
    rows = sparse.csr_array((part.values, part.columns, part.starts), shape=(part.rows, part.width))
    return (rows.T @ rows).tocoo()
