"""Constraints that are made from others: relaxed, seen through cutting planes, and a set's distance as a constraint."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sparse_rows import SparseRows

__all__ = ["CUT_ROUNDING", "WORK_PER_CUT", "CuttingPlanes", "Relaxed", "SetDistance", "inner_work"]

CONTRADICTION = 1e-3  # by this share of its terms a cut may exceed the row: gradients may be differences
VALUE_ROUNDING = 1e-12  # by this share of a cut's terms its value and that of the callable may be rounded
SHOWN = 5  # coordinates of a point that a message shows
SAME_SLOPE = 1e-3  # slopes that differ by a smaller share may be merged
WORK_PER_CUT = 1e7  # multiplications that each of the allowed cuts may cost: 500 cuts take about two seconds
CONE_PROGRAM = 2.5e7  # multiplications in the time that the smallest cone program takes
CUT_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # by this share of its terms a cut may be wrong for rounding


def describe_point(x: Array) -> str:
    """The first coordinates, for a message."""
    shown = ", ".join(f"{value:.6g}" for value in x[:SHOWN])
    return f"({shown})" if x.size <= SHOWN else f"({shown}, …)"


def inner_work(K: ConvexSet, m: int, linear: bool = True) -> float:
    """About how many multiplications a projection onto K and m cuts takes; ``linear`` if all other rows are affine."""
    n = K.dim
    if linear and (K.polyhedral() is not None or type(K) is Ball):
        return n * (10.0 * n * n + 2.0 * (n + m) * min(n, m))
    return CONE_PROGRAM + 10.0 * (n + m) ** 3


class Relaxed(Constraint):
    """g_i(x) ≤ t_i in place of g_i(x) ≤ 0, for a single constraint."""

    __slots__ = ("dim", "of", "row_count", "t")

    def __init__(self, of: Constraint, t: Array) -> None:
        self.of, self.t = of, t
        self.dim = of.dim
        self.row_count = of.row_count

    def rows_unchecked(self, x: Array) -> Array:
        return self.of.rows_unchecked(x) - self.t

    def jacobian_unchecked(self, x: Array) -> Array:
        return self.of.jacobian_unchecked(x)

    def magnitude(self, x: Array) -> Array:
        return np.maximum(self.of.magnitude(x), np.abs(self.t))

    def affine(self) -> tuple[Array, Array] | None:
        rows = self.of.affine()
        return None if rows is None else (rows[0], rows[1] + self.t)

    def sparse_rows(self) -> SparseRows | None:
        rows = self.of.sparse_rows()
        return None if rows is None else rows.with_b(rows.b + self.t)

    @property
    def has_domain(self) -> bool:
        return self.of.has_domain

    @property
    def conic(self) -> bool:
        return self.of.conic

    def cones(self) -> Cones | None:
        return self._relaxed(self.of.cones())

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._relaxed(self.of.cones_near(center, size))

    def _relaxed(self, cones: Cones | None) -> Cones | None:
        return None if cones is None else cones.replace(b=cones.b + cones.E @ self.t)


class SetDistance(Constraint):
    """The distance from K as a constraint: ‖x − P_K(x)‖ ≤ 0, for sets that are known by their projection alone."""

    __slots__ = ("K", "dim")

    def __init__(self, K: ConvexSet) -> None:
        self.K, self.dim = K, K.dim

    def rows_unchecked(self, x: Array) -> Array:
        distance: Array = np.linalg.norm(x - self.K.project_unchecked(x), axis=-1, keepdims=True)
        return distance

    def jacobian_unchecked(self, x: Array) -> Array:
        away = x - self.K.project_unchecked(x)
        unit: Array = away / np.maximum(np.linalg.norm(away, axis=-1, keepdims=True), 1e-300)
        return unit[..., None, :]


class CuttingPlanes(Constraint):
    """A model of a constraint from below: row i is the largest of the cuts a·x − b that were taken of row i."""

    __slots__ = ("A", "b", "dim", "of", "origin", "owner", "row_count")

    dim: int

    def __init__(self, of: Constraint, dim: int) -> None:
        self.of, self.dim, self.row_count = of, dim, of.row_count
        self.A, self.b = np.zeros((0, dim)), np.zeros(0)
        self.owner = np.zeros(0, dtype=np.int64)  #: the row that each cut was taken of
        self.origin = np.zeros((0, dim))  #: the point where each cut was taken

    def add(self, x: Array, rows: Array, jacobian: Array, wanted: NDArray[np.bool_]) -> None:
        """Adds the cuts of the wanted rows at x, where they have these values and subgradients."""
        slopes = jacobian[wanted]
        self.A = np.concatenate([self.A, slopes])
        self.b = np.concatenate([self.b, slopes @ x - rows[wanted]])
        self.owner = np.concatenate([self.owner, np.flatnonzero(wanted)])
        self.origin = np.concatenate([self.origin, np.broadcast_to(x, slopes.shape)])

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Removes the other cuts."""
        self.A, self.b, self.owner, self.origin = self.A[kept], self.b[kept], self.owner[kept], self.origin[kept]

    def merge(self, count: int, loss: float) -> None:
        """Of cuts of a row that are nearly the same, keeps the newest; ``count`` of them are new.

        The slopes of the removed cuts differ by less than SAME_SLOPE, and where they were taken they exceed the new one
        by less than ``loss``. (Many rows that are nearly parallel would cost the projection onto them its last digits.)
        """
        new = self.b.size - count
        change, step = self.A[new:, None] - self.A[:new], self.origin[new:, None] - self.origin[:new]
        same = (self.owner[new:, None] == self.owner[:new]) & (np.vecdot(change, step) <= loss)
        same &= np.linalg.norm(change, axis=-1) <= SAME_SLOPE * np.linalg.norm(self.A[new:, None], axis=-1)
        self.keep(np.append(~same.any(axis=0), np.ones(count, dtype=bool)))

    def error(self, x: Array, rows: Array) -> float:
        """max_i g_i(x) − model_i(x)^+, given the rows' values; 0 if it may be the rounding of the cuts' own terms."""
        error = float((rows - np.maximum(self.rows_unchecked(x), 0.0)).max())
        terms = np.linalg.norm(self.A, axis=1) * np.linalg.norm(x) + np.abs(self.b)
        return error if error > CUT_ROUNDING * float(terms.max(initial=0.0)) else 0.0

    def require_consistent(self, x: Array, rows: Array, count: int) -> None:
        """Raises if a cut of the first ``count`` rows exceeds its row at x, where rows were evaluated.

        No convex function does that. Gradients by differences, right to some digits, are no contradiction.
        """
        with ignore_fp_warnings():
            values = self.A @ x - self.b
            terms = np.abs(rows[self.owner]) + np.vecdot(np.abs(self.A), np.abs(x - self.origin)) + np.abs(values)
            rounding = VALUE_ROUNDING * (np.abs(self.A) @ np.abs(x) + np.abs(self.b))
            beyond = values - rows[self.owner] - CONTRADICTION * terms - rounding
            wrong = np.flatnonzero((beyond > 0.0) & (self.owner < count))
        if wrong.size:
            k = wrong[np.argmax(beyond[wrong] / terms[wrong])]
            row = "" if count == 1 else f" of row {self.owner[k]}"
            raise InvalidInput(
                "constraint: expected a convex function and its subgradients, got a value and a gradient that "
                f"contradict each other{row}: by its gradient at {describe_point(self.origin[k])} it is at least "
                f"{values[k]:.6g} at {describe_point(x)}, where its value is {rows[self.owner[k]]:.6g}; check the sign "
                "and the scale of the gradient (cocopt.checks.check_constraint compares it with the values), and that "
                "the function is convex"
            )

    def rows_unchecked(self, x: Array) -> Array:
        rows: Array = np.full(self.row_count, -np.inf)
        np.maximum.at(rows, self.owner, self.A @ x - self.b)
        return rows

    def jacobian_unchecked(self, x: Array) -> Array:
        jacobian = np.zeros((self.row_count, self.dim))
        order = np.argsort(self.A @ x - self.b)  # the largest is written last
        jacobian[self.owner[order]] = self.A[order]
        return jacobian

    def cones(self) -> Cones:
        return Cones(self.A, self.b, np.eye(self.row_count)[self.owner], (("nonneg", self.b.size),))
