"""What every constraint g_t(x) ≤ 0 offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Never, Self

import numpy as np
from numpy.typing import NDArray

from cocopt import html
from cocopt.arrays import (
    Array,
    ArrayLike,
    all_finite,
    as_integers,
    batch_shape,
    broadcast,
    check_points,
    describe,
    equal_values,
    ignore_fp_warnings,
    require_finite,
)
from cocopt.cones import Cones
from cocopt.errors import InvalidInput, NotStorable
from cocopt.sparse_rows import SparseRows
from cocopt.threads import vecmat
from cocopt.tolerances import TINY

__all__ = [
    "Constraint",
    "data_batch_shape",
    "finite_part",
    "first_column",
    "member_trials",
    "no_cones",
    "row_norms",
    "take",
    "unit_vectors",
]


class Constraint(ABC):
    """A convex constraint g(x) = max_i g_i(x) ≤ 0.

    A new constraint needs `dim`, `batch`, `row_count`, `rows_unchecked` and `jacobian_unchecked`; with `cones`
    the exact methods of [`cocopt.project`][] apply, without it cutting planes are used.
    """

    __slots__ = ()

    kind: ClassVar[str] = "constraint"
    #: the dimension n, or None if any will do
    dim: int | None
    #: the leading axes of the data; () for a single constraint
    batch: tuple[int, ...] = ()
    #: the number of rows M
    row_count: int = 1
    #: whether rows have names, under which violations are reported
    named: bool = False

    def rows(self, x: ArrayLike) -> Array:
        """(g_1(x), …, g_M(x)), shape (..., M); −inf for a row that is switched off by b = +inf."""
        points = self.check_points(x)
        with ignore_fp_warnings():
            values = self.rows_unchecked(points)
            finite = all_finite(values)
        if not finite:
            self.require_finite_data()  # −inf must come from an idle row, not from A or x
            require_finite("x", points)
            if not (values < np.inf).all():
                self.raise_nonfinite(points)
        return values

    def value(self, x: ArrayLike) -> Array:
        """g(x) = max_i g_i(x), shape (...)."""
        worst: Array = self.rows(x).max(axis=-1)
        return worst

    def jacobian(self, x: ArrayLike) -> Array:
        """A subgradient of each row, shape (..., M, n)."""
        points = self.check_points(x)
        with ignore_fp_warnings():
            jacobian = self.jacobian_unchecked(points)
            finite = all_finite(jacobian) and all_finite(points)
        if not finite:
            self.raise_nonfinite(points)
        return jacobian

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of g: that of the largest row, the first one on ties. Shape (..., n)."""
        points = self.check_points(x)
        if self.row_count == 1:
            return self.jacobian(points)[..., 0, :]
        worst = self.rows(points).argmax(axis=-1)
        with ignore_fp_warnings():
            gradient = self.subgradient_unchecked(points, worst)
            finite = all_finite(gradient) and all_finite(points)
        if not finite:
            self.raise_nonfinite(points)
        return gradient

    @abstractmethod
    def rows_unchecked(self, x: Array) -> Array:
        """The rows, on checked points."""

    def violation_unchecked(self, x: Array) -> Array:
        """max(0, max_i g_i(x))."""
        violation: Array = np.maximum(self.rows_unchecked(x).max(axis=-1), 0.0)
        return violation

    @abstractmethod
    def jacobian_unchecked(self, x: Array) -> Array:
        """The rows' subgradients, on checked points."""

    def subgradient_unchecked(self, x: Array, row: Any) -> Array:
        """A subgradient of one row at each point, (..., n); ``row`` has an integer for each of all trials."""
        jacobian = self.jacobian_unchecked(x)
        jacobian = broadcast(jacobian, (*row.shape, *jacobian.shape[-2:]))
        subgradient: Array = jacobian[(*np.indices(row.shape, sparse=True), row)]
        return subgradient

    def combine_unchecked(self, x: Array, weights: Array) -> Array:
        """Σ_i weights_i s_i of the rows' subgradients s_i at each point, for weights (..., M)."""
        combined: Array = vecmat(weights, self.jacobian_unchecked(x))
        return combined

    def magnitude(self, x: Array) -> Array:
        """The size of the terms that make up each row at x, shape (..., M): the unit of relative violations."""
        return np.ones((*x.shape[:-1], self.row_count))

    @property
    def row_names(self) -> tuple[str | None, ...]:
        """The name of each row; None for a row without one."""
        return (None,) * self.row_count

    @property
    def row_weights(self) -> Array:
        """How much a violation of each row weighs where not all can be met, (M,)."""
        return np.ones(self.row_count)

    @property
    def soft_rows(self) -> NDArray[np.bool_]:
        """Which rows yield first where not all can be met, (M,)."""
        return np.zeros(self.row_count, dtype=bool)

    @property
    def has_priorities(self) -> bool:
        """Whether some rows matter more than others where not all can be met."""
        return False

    def plain(self) -> Constraint:
        """The same rows without names and weights: what is projected onto."""
        return self

    def affine(self) -> tuple[Array, Array] | None:
        """(A, b) with shapes (..., M, n) and (..., M) if every row is affine, else None."""
        return None

    def sparse_rows(self) -> SparseRows | None:
        """The rows if they are affine and sparse, for a single constraint, else None. `affine` is None then."""
        return None

    @property
    def has_domain(self) -> bool:
        """Whether g is +∞ outside a domain of its own, where its rows are computed as NaN or infinite."""
        return False

    @property
    def conic(self) -> bool:
        """Whether there is a conic form; to know that, its dense matrix (n × n or more) need not be built."""
        return self.cones() is not None

    def cones(self) -> Cones | None:
        """The constraint in conic form, or None for a black box. Only for a single constraint (``batch == ()``)."""
        return None

    def cones_near(self, center: Array, size: float) -> Cones | None:
        """As `cones`, in the numbers that keep most digits where x is of that size and near the center."""
        return self.cones()

    def trials(self, index: Any) -> Constraint:
        """The constraint of some trials only (an index into the leading axes); itself if all trials share it."""
        if self.batch == ():
            return self
        try:
            return self.trials_unchecked(index)
        except (IndexError, TypeError, ValueError, OverflowError):
            expected = f"an index into the leading axes {self.batch}"
            raise InvalidInput(f"index: expected {expected}, got {describe(index)}") from None

    def trials_unchecked(self, index: Any) -> Constraint:
        """Some trials, of a constraint that has leading axes."""
        raise InvalidInput(f"trials: expected a constraint with leading axes, got a {type(self).__name__} without any")

    def select(self, row: ArrayLike) -> Constraint:
        """One row of the constraint alone: row is an index, or one index per trial (shape ``batch``)."""
        rows = as_integers("row", row, f"indices of the {self.row_count} rows")
        if rows.min() < 0 or rows.max() >= self.row_count:
            raise InvalidInput(f"row: expected one of a constraint with {self.row_count} rows, got {describe(row)}")
        batch_shape(("data", self.batch), ("row", rows.shape))
        return self if self.row_count == 1 else self.select_unchecked(rows)

    def select_unchecked(self, row: Any) -> Constraint:
        """One of several rows; ``row`` is an integer or an array of integers of numpy's, in range."""
        from cocopt.constraints.selected_row import SelectedRow

        return SelectedRow(self, row)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments: ``type(g)(**g.parameters())`` is g again. A black box has none to store."""
        raise NotStorable(f"{type(self).__name__} does not say its parameters")

    def equals(self, other: Constraint) -> bool:
        """Whether the other is of the same class with the same arguments; a black box equals itself alone.

        Examples
        --------
        >>> from cocopt import constraints
        >>> g = constraints.Affine([1.0, 2.0], 3.0)
        >>> g.equals(constraints.Affine([1.0, 2.0], 3.0)), g.equals(constraints.Affine([1.0, 2.0], 4.0))
        (True, False)
        """
        if self is other:
            return True
        try:
            return type(self) is type(other) and equal_values(self.parameters(), other.parameters())
        except TypeError:  # it cannot say its arguments
            return False

    def check_points(self, x: ArrayLike) -> Array:
        """Points (..., n) whose leading axes fit those of the data."""
        return check_points(x, self.dim, self.batch)

    def raise_nonfinite(self, x: Array) -> Never:
        """Finds the argument that made a result infinite or NaN, and says so."""
        self.require_finite_data()
        require_finite("x", x)
        name = f"constraints.{type(self).__name__}"
        raise InvalidInput(f"{name}: the value or gradient is not finite at a finite point; the data may overflow")

    def require_finite_data(self) -> None:
        """Raises an error that names the first argument that is not finite."""
        for argument, array, infinities in self.data_arrays():
            require_finite(f"constraints.{type(self).__name__}: {argument}", array, infinities=infinities)

    def require_single(self) -> None:
        """Raises an error if the constraint has leading axes."""
        if self.batch:
            name = f"constraints.{type(self).__name__}"
            raise InvalidInput(f"{name}: cones: expected a single constraint, got leading axes {self.batch}")

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        """(argument name, array, whether it may be infinite), for error messages."""
        return []

    @classmethod
    def examples(cls) -> list[Self]:
        """Some constraints of this class, on which the contract tests are run."""
        return []

    def __repr__(self) -> str:
        inner = ", ".join(f"{name} of shape {array.shape}" for name, array, _ in self.data_arrays())
        return f"{type(self).__name__}({inner})"

    def _repr_html_(self) -> str:
        rows = f"{self.row_count} row{'s' if self.row_count > 1 else ''}"
        items: dict[str, Any] = {name: array for name, array, _ in self.data_arrays()}
        about = html.note("a constraint", self.dim, self.batch, rows)
        return html.card(type(self).__name__, about, items or {"": repr(self)})


def data_batch_shape(constraint: Constraint, x: Array) -> tuple[int, ...]:
    """The leading axes of the constraint's data and of the points, broadcast."""
    return batch_shape(("data", constraint.batch), ("x", x.shape[:-1]))


def row_norms(array: Array) -> Array:
    """The lengths of vectors (..., n)."""
    length: Array = np.sqrt(np.vecdot(array, array))
    return length


def unit_vectors(array: Array) -> Array:
    """v/‖v‖, and 0 for 0."""
    return array / (row_norms(array) + TINY)[..., None]


def finite_part(array: Array, idle: float) -> Array:
    """The array without the infinity that switches a row off."""
    return np.where(array == idle, 0.0, array)


def no_cones(dim: int) -> Cones:
    """A single row that is switched off."""
    return Cones(np.zeros((0, dim)), np.zeros(0), np.zeros((0, 1)), ())


def first_column(size: int) -> Array:
    """The first column of the identity: only the first entry of a cone is relaxed."""
    return np.eye(size, 1)


def take(batch: tuple[int, ...], index: Any, *parts: tuple[Array, int]) -> list[Array]:
    """Some trials of each array, whose last so many axes are not trials; what all trials share stays as it is."""
    picked = []
    for array, inner in parts:
        at = array.ndim - inner
        picked.append(np.broadcast_to(array, (*batch, *array.shape[at:]))[index] if at else array)
    return picked


def member_trials(member: Constraint, batch: tuple[int, ...], index: Any) -> Constraint:
    """Some trials of a member whose leading axes may be fewer than those of the batch, or of length 1."""
    if member.batch == batch:
        return member.trials(index)
    at = np.unravel_index(np.arange(math.prod(batch)).reshape(batch)[index], batch)
    own = zip(at[len(batch) - len(member.batch) :], member.batch, strict=True)
    return member.trials(tuple(np.zeros_like(i) if size == 1 else i for i, size in own))
