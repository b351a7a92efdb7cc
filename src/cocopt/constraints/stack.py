"""Several constraints in one round."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import (
    Array,
    ArrayLike,
    batch_shape,
    broadcast,
    describe,
    require_finite,
    scalar,
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

MAX_NAME = 100  # characters of a name


@register
class Stack(Constraint):
    """The rows of several constraints, one after the other; they may be of mixed kinds, their leading axes broadcast.

    It is affine, or has `cones`, if all its members are or have.

    Parameters
    ----------
    members : sequence of Constraint, or a mapping from names to them
        Violations are reported by name (`cocopt.metrics.Ledger.by_name`).
    weights : sequence of float, or a mapping from names to them, optional
        How much a violation of each member weighs where not all rows can be met, so that their units compare; those of
        members that are left out are 1.
    names : sequence of str, optional
        The names of members that are given as a sequence.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Stack([constraints.Affine([1.0, 0.0], 2.0), constraints.NormBall([0.0, 0.0], 1.0)])
    >>> g.rows([3.0, 4.0])
    array([1., 4.])
    >>> g.gradient([3.0, 4.0])
    array([0.6, 0.8])
    >>> limits = constraints.Stack({"cap": constraints.Affine([1.0, 0.0], 2.0), "risk": g}, weights={"risk": 10.0})
    >>> limits.row_names, limits.row_weights
    (('cap', 'risk', 'risk'), array([ 1., 10., 10.]))
    """

    __slots__ = ("_names", "_weights", "batch", "dim", "members", "named", "row_count")

    def __init__(
        self,
        members: Sequence[Constraint] | Mapping[str, Constraint],
        weights: Sequence[float] | Mapping[str, float] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if isinstance(members, Mapping) and names is not None:
            raise InvalidInput(f"names: expected none, since members have names already, got {describe(names)}")
        given = members if isinstance(members, Mapping) else names
        self._names = None if given is None else _as_names(given)
        self.members = _as_members(members)
        if self._names is not None and len(self._names) != len(self.members):
            raise InvalidInput(f"names: expected one for each of {len(self.members)} members, got {describe(names)}")
        dims = [member.dim for member in self.members if member.dim is not None]
        if len(set(dims)) > 1:
            raise InvalidInput(f"members: expected the same dimension, got {', '.join(map(str, dims))}")
        self.dim: int | None = dims[0] if dims else None
        self.batch: tuple[int, ...] = batch_shape(*((f"members[{i}]", m.batch) for i, m in enumerate(self.members)))
        self.row_count: int = sum(member.row_count for member in self.members)
        self.named: bool = self._names is not None or any(member.named for member in self.members)
        self._weights = None if weights is None else _as_weights(weights, self._names, len(self.members))

    @property
    def row_names(self) -> tuple[str | None, ...]:
        if self._names is None:
            return tuple(name for member in self.members for name in member.row_names)
        return tuple(
            own if inner is None else f"{own}.{inner}"
            for own, member in zip(self._names, self.members, strict=True)
            for inner in member.row_names
        )

    @property
    def row_weights(self) -> Array:
        weights = [1.0] * len(self.members) if self._weights is None else self._weights
        return np.concatenate([w * member.row_weights for w, member in zip(weights, self.members, strict=True)])

    @property
    def soft_rows(self) -> NDArray[np.bool_]:
        return np.concatenate([member.soft_rows for member in self.members])

    @property
    def has_priorities(self) -> bool:
        return self._weights is not None or any(member.has_priorities for member in self.members)

    def plain(self) -> Constraint:
        members = [member.plain() for member in self.members]
        if len(members) == 1:
            return members[0]
        same = self._names is None and self._weights is None and all(map(operator.is_, members, self.members))
        return self if same else Stack(members)

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
    def has_domain(self) -> bool:
        return any(member.has_domain for member in self.members)

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
        """The names beside the members, not in a mapping: a state sorts the keys of a mapping."""
        own = {"weights": self._weights, "names": self._names}
        return {"members": list(self.members)} | {key: list(value) for key, value in own.items() if value is not None}

    def trials_unchecked(self, index: Any) -> Stack:
        return self.with_members([member_trials(member, self.batch, index) for member in self.members])

    def with_members(self, members: Sequence[Constraint]) -> Stack:
        """Other members with the same names and weights."""
        named = members if self._names is None else dict(zip(self._names, members, strict=True))
        return Stack(named, self._weights)

    def is_alike(self, other: Stack) -> bool:
        """Whether the other has as many members, with the same classes, names and weights."""
        same = self._names == other._names and self._weights == other._weights
        return same and [type(one) for one in self.members] == [type(one) for one in other.members]

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
        if self._names is None:
            return f"Stack([{', '.join(map(repr, self.members))}])"
        inner = (f"{name!r}: {member!r}" for name, member in zip(self._names, self.members, strict=True))
        return f"Stack({{{', '.join(inner)}}})"

    @classmethod
    def examples(cls) -> list[Self]:
        rows = Affine([[1.0, 0.0], [0.5, -1.0]], [1.0, 0.5])
        return [
            cls([rows, SelectedRow(Affine([1.0, 2.0], 0.5), np.array(0))]),
            cls({"limits": rows, "cap": Affine([1.0, 2.0], 0.5)}, weights={"cap": 2.0}),
        ]


def _as_members(given: Any) -> tuple[Constraint, ...]:
    """At least one constraint."""
    try:
        members = tuple(given.values() if isinstance(given, Mapping) else given)
    except TypeError:
        raise InvalidInput(f"members: expected a sequence of constraints, got {describe(given)}") from None
    if not members:
        raise InvalidInput("members: expected at least one constraint, got none")
    for i, member in enumerate(members):
        if not isinstance(member, Constraint):
            raise InvalidInput(f"members: expected constraints, got {describe(member)} at index {i}")
    return members


def _as_names(given: Any) -> tuple[str, ...]:
    """Printable names, all different."""
    names = tuple(given) if isinstance(given, Mapping | Sequence) and not isinstance(given, str) else (given,)
    for name in names:
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= MAX_NAME:
            raise InvalidInput(f"members: expected printable names of 1 to {MAX_NAME} characters, got {describe(name)}")
    if len(set(names)) < len(names):
        raise InvalidInput(f"names: expected names that differ, got {describe(given)}")
    return names


def _as_weights(weights: Any, names: tuple[str, ...] | None, count: int) -> tuple[float, ...]:
    """One positive number for each member."""
    if isinstance(weights, Mapping):
        if names is None:
            raise InvalidInput("weights: expected a number for each member, since they have no names, got names")
        unknown = [name for name in weights if name not in names]
        if unknown:
            raise InvalidInput(f"weights: expected names of members, got {describe(unknown[0])}")
        weights = [weights.get(name, 1.0) for name in names]
    try:
        given = list(weights)
    except TypeError:
        given = []
    if len(given) != count:
        raise InvalidInput(f"weights: expected a positive number for each of {count} members, got {describe(weights)}")
    return tuple(scalar("weights", weight, positive=True) for weight in given)
