"""One trial's problem, as every method of the ladder sees it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.constraints import Constraint
from cocopt.sets.base import ConvexSet

__all__ = ["SATISFIED", "Membership", "Problem", "Relaxed", "excess"]

SATISFIED = 1e-10  # a row violated by less than this share of its terms counts as satisfied (the promise is 1e-9)
VANISHING = 1e-4  # a row's terms below this share of those at K's scale: 1e-9 of them is rounding


class Problem(NamedTuple):
    """argmin over x in K of ½‖x − point‖² + the penalty of the caps (all infinite: the projection onto K ∩ {g ≤ 0}).

    The penalty is Σ_i cap_i g_i^+ for a cap a row, or cap·max_i g_i^+ for a single ``total`` cap.
    """

    K: ConvexSet
    constraint: Constraint
    point: Array
    cap: Array
    total: float = np.inf

    @property
    def projects(self) -> bool:
        """Whether this is a projection, without any finite cap."""
        return bool(np.isinf(self.cap).all() and np.isinf(self.total))


def excess(K: ConvexSet, constraint: Constraint, x: Array, demanded: Any = True) -> float:
    """The worst violation at x in K's and the rows' own units, of the rows ``demanded``: 1e-9 is what we promise.

    Where the terms of a row vanish, as at 0 if its right-hand side does, rounding at the scale of K is no violation.
    """
    of_set = float(K.violation_unchecked(x)) / max(float(np.abs(x).max()), K.scale)
    rows, unit = constraint.rows_unchecked(x), np.maximum(constraint.magnitude(x), 1e-300)
    if (rows > SATISFIED * unit).any():
        unit = np.maximum(unit, VANISHING * constraint.magnitude(np.full(x.shape, K.scale)))
    of_rows = float(np.max(rows / unit, initial=0.0, where=demanded))
    return max(of_set, of_rows)


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

    @property
    def conic(self) -> bool:
        return self.of.conic

    def cones(self) -> Cones | None:
        return self._relaxed(self.of.cones())

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._relaxed(self.of.cones_near(center, size))

    def _relaxed(self, cones: Cones | None) -> Cones | None:
        return None if cones is None else cones._replace(b=cones.b + cones.E @ self.t)


class Membership(Constraint):
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
