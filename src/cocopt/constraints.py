"""Constraints g_t(x) ≤ 0, as small immutable objects.

A constraint has one or several *rows* g_i; g = max_i g_i. Arrays may carry leading axes, one entry a trial;
they broadcast against the leading axes of the point. Contents are not searched for NaN at construction (that would cost
more than a round): a result that is not finite is traced to the argument that caused it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Never

import numpy as np

from cocopt._arrays import Array, ArrayLike, as_floats, as_points, require_finite
from cocopt.cones import Cones
from cocopt.errors import InvalidInput

__all__ = ["Affine", "Constraint"]


class Constraint(ABC):
    """A convex constraint g(x) = max_i g_i(x) ≤ 0.

    A new constraint needs `dim`, `batch`, `row_count`, `_rows` and `_jacobian`; `cones` opens the exact rungs of
    [`cocopt.project`][], without it cutting planes are used.
    """

    #: the dimension n, or None if any will do
    dim: int | None
    #: the leading axes of the data; () for a single constraint
    batch: tuple[int, ...] = ()
    #: the number of rows M
    row_count: int = 1

    def rows(self, x: ArrayLike) -> Array:
        """(g_1(x), …, g_M(x)), shape (..., M); −inf for a row that is switched off by b = +inf."""
        points = self._points(x)
        values = self._rows(points)
        if not (values < np.inf).all():  # NaN or +inf
            self._blame(points)
        return values

    def value(self, x: ArrayLike) -> Array:
        """g(x) = max_i g_i(x), shape (...)."""
        return self.rows(x).max(axis=-1)

    def jacobian(self, x: ArrayLike) -> Array:
        """A subgradient of each row, shape (..., M, n)."""
        points = self._points(x)
        jacobian = self._jacobian(points)
        if not np.isfinite(jacobian).all():
            self._blame(points)
        return jacobian

    def gradient(self, x: ArrayLike) -> Array:
        """A subgradient of g: that of the largest row, the first one on ties. Shape (..., n)."""
        points = self._points(x)
        rows, jacobian = self.rows(points), self.jacobian(points)
        if self.row_count == 1:
            return jacobian[..., 0, :]
        worst = np.broadcast_to(rows.argmax(axis=-1)[..., None, None], (*rows.shape[:-1], 1, 1))
        jacobian = np.broadcast_to(jacobian, (*rows.shape, points.shape[-1]))
        return np.take_along_axis(jacobian, worst, axis=-2)[..., 0, :]

    @abstractmethod
    def _rows(self, x: Array) -> Array:
        """The rows, on checked points."""

    @abstractmethod
    def _jacobian(self, x: Array) -> Array:
        """The rows' subgradients, on checked points."""

    def magnitude(self, x: Array) -> Array:
        """The size of the terms that make up each row at x, shape (..., M): the unit of relative violations."""
        return np.ones((*x.shape[:-1], self.row_count))

    def affine(self) -> tuple[Array, Array] | None:
        """(A, b) with shapes (..., M, n) and (..., M) if every row is affine, else None."""
        return None

    def cones(self) -> Cones | None:
        """The constraint in conic form, or None for a black box. Only for a single constraint (``batch == ()``)."""
        return None

    def trials(self, index: Any) -> Constraint:
        """The constraint of some trials only (an index into the leading axis); itself if all trials share it."""
        if self.batch == ():
            return self
        return self._trials(index)

    def _trials(self, index: Any) -> Constraint:
        raise TypeError(f"{type(self).__name__} has no leading axes")

    def select(self, row: ArrayLike) -> Constraint:
        """One row of the constraint alone: row is an index, or one index a trial (shape ``batch``)."""
        if self.row_count == 1:
            return self
        return self._select(np.asarray(row))

    def _select(self, row: Any) -> Constraint:
        raise TypeError(f"{type(self).__name__} cannot be split into rows")

    def _points(self, x: ArrayLike) -> Array:
        if self.dim is None:
            points = as_floats("x", x)
            if points.ndim == 0:
                raise InvalidInput("x: expected shape (..., n), got ()")
            return points
        return as_points("x", x, self.dim)

    def _blame(self, x: Array) -> Never:
        """Finds the argument that made a result infinite or NaN, and says so."""
        name = f"constraints.{type(self).__name__}"
        for argument, array, infinities in self._data():
            require_finite(f"{name}: {argument}", array, infinities=infinities)
        require_finite("x", x)
        raise InvalidInput(f"{name}: the value or gradient is not finite at a finite point; the data may overflow")

    def _data(self) -> list[tuple[str, Array, bool]]:
        """(argument name, array, whether it may be infinite), for error messages."""
        return []


class Affine(Constraint):
    """The rows g_i(x) = ⟨a_i, x⟩ − b_i, in short A x ≤ b.

    Parameters
    ----------
    A : array (..., M, n), or (n,) for a single row
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

    __slots__ = ("A", "b", "batch", "dim", "row_count")

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        rows, right = as_floats("A", A), as_floats("b", b)
        if rows.ndim < 2:
            if rows.ndim == 0:
                raise InvalidInput("A: expected shape (..., M, n) or (n,), got ()")
            if right.shape not in ((), (1,)):
                raise InvalidInput(f"b: expected a number, since A is a single row, got shape {right.shape}")
            rows, right = rows[None, :], right.reshape(1)
        if right.shape != rows.shape[:-1]:
            raise InvalidInput(f"b: expected shape {rows.shape[:-1]} to match A of shape {rows.shape}, got {right.shape}")
        self.A, self.b = rows, right
        self.batch: tuple[int, ...] = rows.shape[:-2]
        self.row_count: int = rows.shape[-2]
        self.dim: int = rows.shape[-1]

    def _rows(self, x: Array) -> Array:
        return np.matmul(self.A, x[..., None])[..., 0] - self.b

    def _jacobian(self, x: Array) -> Array:
        return np.broadcast_to(self.A, (*np.broadcast_shapes(self.batch, x.shape[:-1]), *self.A.shape[-2:]))

    def magnitude(self, x: Array) -> Array:
        size = np.linalg.norm(self.A, axis=-1) * np.linalg.norm(x, axis=-1, keepdims=True)
        return np.maximum(size, np.where(np.isfinite(self.b), np.abs(self.b), 0.0))

    def affine(self) -> tuple[Array, Array]:
        return self.A, self.b

    def cones(self) -> Cones:
        active = np.isfinite(self.b)
        m = int(active.sum())
        return Cones(self.A[active], self.b[active], np.eye(self.row_count)[active], (("nonneg", m),) if m else ())

    def _trials(self, index: Any) -> Affine:
        return Affine(self.A[index], self.b[index])

    def _select(self, row: Any) -> Affine:
        if row.ndim == 0:
            return Affine(self.A[..., row, None, :].reshape(*self.batch, 1, self.dim), self.b[..., row].reshape(*self.batch, 1))
        A = np.broadcast_to(self.A, (*row.shape, *self.A.shape[-2:]))
        b = np.broadcast_to(self.b, (*row.shape, self.row_count))
        return Affine(
            np.take_along_axis(A, row[..., None, None], axis=-2),
            np.take_along_axis(b, row[..., None], axis=-1),
        )

    def _data(self) -> list[tuple[str, Array, bool]]:
        minus = np.where(self.b == -np.inf, np.nan, self.b)  # b = −inf asks for the impossible
        return [("A", self.A, False), ("b", minus, True)]

    def __repr__(self) -> str:
        return f"Affine(A of shape {self.A.shape}, b of shape {self.b.shape})"
