"""The conic form of sets and constraints.

Sets and constraints with a conic form describe it as ``Cones``; pieces stacked together are the data of a cone program.
One description serves the projection, the hinge prox and the least violation, because it includes how each row is
*relaxed*.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from cocopt.arrays import Array
from cocopt.sparse import SparseMatrix

__all__ = ["ConeList", "Cones", "absolute_values", "stack", "sum_of_auxiliary"]

ConeList: TypeAlias = tuple[tuple[str | tuple[str, float], int], ...]


class Cones:
    """The set {x : there is u with b − A [x; u] + E t in cones} for row relaxations t (t = 0: the set itself).

    For a constraint, t_i relaxes row i to g_i(x) ≤ t_i. A set K is never relaxed: its ``E`` has no columns.

    Parameters
    ----------
    A : array or SparseMatrix (m, n + aux)
        Columns for x, then for the auxiliary variables u.
    b : array (m,)
    E : array (m, M)
        How each of the M rows of a constraint is relaxed.
    cones : tuple of (kind, size)
        kind is "zero", "nonneg", "soc" (first entry ≥ norm of the others), "exp" or "psd" (as Clarabel defines them),
        or ("power", alpha) with size 3; the sizes of all cones add up to m ("psd": size is the matrix side).
    aux : int
        The number of auxiliary variables.
    """

    __slots__ = ("E", "aux", "b", "cones", "matrix")

    def __init__(self, A: Array | SparseMatrix, b: Array, E: Array, cones: ConeList, aux: int = 0) -> None:
        self.matrix = A if isinstance(A, SparseMatrix) else SparseMatrix.of(A)
        self.b, self.E, self.cones, self.aux = np.ascontiguousarray(b), E, cones, aux

    @property
    def A(self) -> Array:
        """The matrix as an array, m × (n + aux): not for large problems."""
        return self.matrix.dense()

    def replace(self, **changes: Any) -> Cones:
        """The same with other arguments."""
        own: dict[str, Any] = {"A": self.matrix, "b": self.b, "E": self.E, "cones": self.cones, "aux": self.aux}
        return Cones(**own | changes)

    def widened(self, first: int, dim: int) -> Cones:
        """The same over points of that dimension, of which it describes those coordinates that begin at ``first``."""
        own = self.matrix.width - self.aux
        matrix = self.matrix.moved(own, dim - own - first, dim - first + self.aux).moved(0, first, dim + self.aux)
        return self.replace(A=matrix)


def stack(pieces: list[Cones], dim: int) -> Cones:
    """The intersection of all pieces: auxiliary variables and relaxations side by side."""
    if len(pieces) == 1:
        return pieces[0]
    aux = sum(piece.aux for piece in pieces)
    matrices, u = [], 0
    for piece in pieces:
        matrices.append(piece.matrix.moved(dim, u, dim + aux))
        u += piece.aux
    b = np.concatenate([piece.b for piece in pieces])
    E = np.zeros((b.size, sum(piece.E.shape[1] for piece in pieces)))
    at, t = 0, 0
    for piece in pieces:
        m, count = piece.E.shape
        E[at : at + m, t : t + count] = piece.E
        at, t = at + m, t + count
    cones: ConeList = sum((piece.cones for piece in pieces), ())
    return Cones(SparseMatrix.stacked(matrices), b, E, cones, aux)


def absolute_values(n: int) -> SparseMatrix:
    """The rows x − u ≤ 0 and −x − u ≤ 0, with as many auxiliary variables u: |x| ≤ u."""
    signs = np.repeat([1.0, -1.0], n)
    columns = np.stack([np.tile(np.arange(n), 2), np.tile(np.arange(n, 2 * n), 2)], axis=-1)
    values = np.stack([signs, np.full(2 * n, -1.0)], axis=-1)
    return SparseMatrix(values.ravel(), columns.ravel(), 2 * np.arange(2 * n + 1), 2 * n)


def sum_of_auxiliary(n: int) -> SparseMatrix:
    """The row Σ u_i, with as many auxiliary variables u as there are x."""
    return SparseMatrix(np.ones(n), np.arange(n, 2 * n), np.array([0, n]), 2 * n)
