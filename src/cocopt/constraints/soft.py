"""Constraints that yield first."""

from __future__ import annotations

from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike, describe, scalar
from cocopt.cones import Cones
from cocopt.constraints.affine import Affine
from cocopt.constraints.base import Constraint
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse_rows import SparseRows

__all__ = ["Soft"]


@register
class Soft(Constraint):
    """The rows of a constraint, marked as those that yield first where not all rows can be met.

    In a feasible round they bind like any other. With ``infeasible="nearest"`` the other rows, the hard ones, are met
    if they can be; then the largest weighted violation max_i weight_i g_i^+(x) of the soft rows is made least.

    Parameters
    ----------
    constraint : Constraint
    weight : float
        Positive: how much a violation weighs beside that of other soft rows.

    Examples
    --------
    A cap that must hold, and a target that need not, on [0, 1]: no point satisfies both.

    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> cap, target = constraints.Affine([1.0], 0.4), constraints.Affine([-1.0], -0.6)
    >>> g = constraints.Stack({"cap": cap, "target": constraints.Soft(target)})
    >>> cocopt.project(Box(0.0, 1.0, dim=1), g, [1.0], infeasible="nearest")
    array([0.4])
    """

    __slots__ = ("batch", "constraint", "dim", "named", "row_count", "weight")

    def __init__(self, constraint: Constraint, weight: float = 1.0) -> None:
        if not isinstance(constraint, Constraint):
            raise InvalidInput(f"constraint: expected one such as constraints.Affine, got {describe(constraint)}")
        self.constraint, self.weight = constraint, scalar("weight", weight, positive=True)
        self.dim, self.batch, self.row_count = constraint.dim, constraint.batch, constraint.row_count
        self.named = constraint.named

    @property
    def row_names(self) -> tuple[str | None, ...]:
        return self.constraint.row_names

    @property
    def row_weights(self) -> Array:
        return self.weight * self.constraint.row_weights

    @property
    def soft_rows(self) -> NDArray[np.bool_]:
        return np.ones(self.row_count, dtype=bool)

    @property
    def has_priorities(self) -> bool:
        return True

    def plain(self) -> Constraint:
        return self.constraint.plain()

    def rows_unchecked(self, x: Array) -> Array:
        return self.constraint.rows_unchecked(x)

    def violation_unchecked(self, x: Array) -> Array:
        return self.constraint.violation_unchecked(x)

    def jacobian_unchecked(self, x: Array) -> Array:
        return self.constraint.jacobian_unchecked(x)

    def subgradient_unchecked(self, x: Array, row: Any) -> Array:
        return self.constraint.subgradient_unchecked(x, row)

    def combine_unchecked(self, x: Array, weights: Array) -> Array:
        return self.constraint.combine_unchecked(x, weights)

    def magnitude(self, x: Array) -> Array:
        return self.constraint.magnitude(x)

    def affine(self) -> tuple[Array, Array] | None:
        return self.constraint.affine()

    def sparse_rows(self) -> SparseRows | None:
        return self.constraint.sparse_rows()

    @property
    def has_domain(self) -> bool:
        return self.constraint.has_domain

    @property
    def conic(self) -> bool:
        return self.constraint.conic

    def cones(self) -> Cones | None:
        return self.constraint.cones()

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self.constraint.cones_near(center, size)

    def parameters(self) -> dict[str, Any]:
        return {"constraint": self.constraint, "weight": self.weight}

    def trials_unchecked(self, index: Any) -> Soft:
        return Soft(self.constraint.trials_unchecked(index), self.weight)

    def select_unchecked(self, row: Any) -> Constraint:
        return Soft(self.constraint.select_unchecked(row), self.weight)

    def check_points(self, x: ArrayLike) -> Array:
        return self.constraint.check_points(x)

    def require_finite_data(self) -> None:
        self.constraint.require_finite_data()

    def raise_nonfinite(self, x: Array) -> Never:
        self.constraint.raise_nonfinite(x)

    def __repr__(self) -> str:
        return f"Soft({self.constraint!r}, weight={self.weight:g})"

    @classmethod
    def examples(cls) -> list[Self]:
        return [
            cls(Affine([[1.0, 0.0], [0.5, -1.0]], [1.0, 0.5]), 2.0),
            cls(Affine(np.eye(2)[:, None], [[0.1], [0.2]])),
        ]
