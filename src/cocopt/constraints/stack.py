"""Several constraints in one round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
    batch_shape,
    broadcast,
    describe,
    require_finite,
)
from cocopt.cones import Cones, stack
from cocopt.constraints.affine import Affine
from cocopt.constraints.base import (
    Constraint,
    data_batch_shape,
    member_trials,
)
from cocopt.constraints.selected_row import SelectedRow
from cocopt.constraints.sparse_affine import SparseAffine
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse_rows import SparseRows

__all__ = ["Stack"]


@register
class Stack(Constraint):
    """The rows of several constraints, one after the other; they may be of mixed kinds, their leading axes broadcast.

    It is affine, or has `cones`, if all its members are or have.

    Parameters
    ----------
    members : sequence of Constraint

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Stack([constraints.Affine([1.0, 0.0], 2.0), constraints.NormBall([0.0, 0.0], 1.0)])
    >>> g.rows([3.0, 4.0])
    array([1., 4.])
    >>> g.gradient([3.0, 4.0])
    array([0.6, 0.8])
    """

    __slots__ = ("batch", "dim", "members", "row_count")

    def __init__(self, members: Sequence[Constraint]) -> None:
        try:
            self.members = tuple(members)
        except TypeError:
            raise InvalidInput(f"members: expected a sequence of constraints, got {describe(members)}") from None
        if not self.members:
            raise InvalidInput("members: expected at least one constraint, got none")
        for i, member in enumerate(self.members):
            if not isinstance(member, Constraint):
                raise InvalidInput(f"members: expected constraints, got {describe(member)} at index {i}")
        dims = [member.dim for member in self.members if member.dim is not None]
        if len(set(dims)) > 1:
            raise InvalidInput(f"members: expected the same dimension, got {', '.join(map(str, dims))}")
        self.dim: int | None = dims[0] if dims else None
        self.batch: tuple[int, ...] = batch_shape(*((f"members[{i}]", m.batch) for i, m in enumerate(self.members)))
        self.row_count: int = sum(member.row_count for member in self.members)

    def rows_unchecked(self, x: Array) -> Array:
        shape = data_batch_shape(self, x)
        parts = [broadcast(m.rows_unchecked(x), (*shape, m.row_count)) for m in self.members]
        return np.concatenate(parts, axis=-1)

    def jacobian_unchecked(self, x: Array) -> Array:
        shape = data_batch_shape(self, x)
        parts = [broadcast(m.jacobian_unchecked(x), (*shape, m.row_count, x.shape[-1])) for m in self.members]
        return np.concatenate(parts, axis=-2)

    def combine_unchecked(self, x: Array, weights: Array) -> Array:
        ends = np.cumsum([member.row_count for member in self.members])[:-1]
        parts = zip(self.members, np.split(weights, ends, axis=-1), strict=True)
        total: Array = np.sum([member.combine_unchecked(x, part) for member, part in parts], axis=0)
        return total

    def magnitude(self, x: Array) -> Array:
        shape = data_batch_shape(self, x)
        parts = [broadcast(m.magnitude(x), (*shape, m.row_count)) for m in self.members]
        return np.concatenate(parts, axis=-1)

    def affine(self) -> tuple[Array, Array] | None:
        A, b = [], []
        for member in self.members:
            rows = member.affine()
            if rows is None:
                return None
            A.append(broadcast(rows[0], (*self.batch, *rows[0].shape[-2:])))
            b.append(broadcast(rows[1], (*self.batch, rows[1].shape[-1])))
        return np.concatenate(A, axis=-2), np.concatenate(b, axis=-1)

    def sparse_rows(self) -> SparseRows | None:
        """Dense rows among sparse ones become sparse; None if none is sparse, or some are not affine or have trials."""
        if self.batch or all(member.sparse_rows() is None for member in self.members):
            return None
        pieces = []
        for member in self.members:
            piece, affine = member.sparse_rows(), member.affine()
            if piece is None:
                if affine is None:
                    return None
                piece = SparseRows.of_dense(*affine)
            pieces.append(piece)
        return SparseRows.stacked(pieces)

    @property
    def conic(self) -> bool:
        return all(member.conic for member in self.members)

    def cones(self) -> Cones | None:
        return self._stacked([member.cones() for member in self.members])

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._stacked([member.cones_near(center, size) for member in self.members])

    def _stacked(self, cones: list[Cones | None]) -> Cones | None:
        """The members' cones together, if they all have some."""
        self.require_single()
        pieces = [piece for piece in cones if piece is not None]
        return stack(pieces, pieces[0].matrix.width - pieces[0].aux) if len(pieces) == len(cones) else None

    def parameters(self) -> dict[str, Any]:
        return {"members": list(self.members)}

    def trials_unchecked(self, index: Any) -> Stack:
        return Stack([member_trials(member, self.batch, index) for member in self.members])

    def select_unchecked(self, row: Any) -> Constraint:
        rows = self.affine()
        if rows is not None:
            return Affine(*rows).select_unchecked(row) if self.row_count > 1 else Affine(*rows)
        sparse = self.sparse_rows()
        if sparse is not None:
            return SparseAffine.of(sparse).select_unchecked(row)
        if row.ndim > 0:
            return SelectedRow(self, row)
        left = int(row)
        for member in self.members:
            if 0 <= left < member.row_count:
                return member.select(left)
            left -= member.row_count
        raise InvalidInput(f"row: expected one of a constraint with {self.row_count} rows, got {int(row)}")

    def check_points(self, x: ArrayLike) -> Array:
        return require_finite("x", super().check_points(x))

    def require_finite_data(self) -> None:
        for member in self.members:
            member.require_finite_data()

    def raise_nonfinite(self, x: Array) -> Never:
        for member in self.members:  # let the offending member raise
            member.rows(x)
            member.jacobian(x)
        super().raise_nonfinite(x)

    def __repr__(self) -> str:
        return f"Stack([{', '.join(map(repr, self.members))}])"

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([Affine([[1.0, 0.0], [0.5, -1.0]], [1.0, 0.5]), SelectedRow(Affine([1.0, 2.0], 0.5), np.array(0))])]
