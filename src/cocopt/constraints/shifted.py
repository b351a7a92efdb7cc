"""A constraint whose rows are shifted by constants."""

from __future__ import annotations

from typing import Any, Never, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, batch_shape, broadcast, describe
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint, data_batch_shape, finite_part, member_trials
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sparse_rows import SparseRows

__all__ = ["Shifted"]


@register
class Shifted(Constraint):
    """The rows g_i(x) + by_i of another constraint.

    A weighted sum Σ w_i g_i is, up to a constant, the penalty Σ w_i (g_i + by_i)^+ with shifts that make every row
    non-negative on K: so the hinge prox solves problems without a hinge, too.

    Parameters
    ----------
    of : Constraint
    by : array (..., M)
        Leading axes are trials. −inf switches a row off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> constraints.Shifted(constraints.NormBall([0.0, 0.0], 1.0), [3.0]).rows([3.0, 4.0])
    array([7.])
    """

    __slots__ = ("batch", "by", "dim", "of", "row_count")

    def __init__(self, of: Constraint, by: ArrayLike) -> None:
        if not isinstance(of, Constraint):
            raise InvalidInput(f"of: expected a constraint such as constraints.Affine, got {describe(of)}")
        self.of, self.by = of, as_floats("by", by)
        self.row_count: int = of.row_count
        self.batch: tuple[int, ...] = batch_shape(("of", of.batch), ("by", self.by.shape[:-1]))
        self.dim: int | None = of.dim

    def rows_unchecked(self, x: Array) -> Array:
        return self.of.rows_unchecked(x) + self.by

    def jacobian_unchecked(self, x: Array) -> Array:
        jacobian = self.of.jacobian_unchecked(x)
        return broadcast(jacobian, (*data_batch_shape(self, x), *jacobian.shape[-2:]))

    def magnitude(self, x: Array) -> Array:
        return self.of.magnitude(x) + np.abs(finite_part(self.by, -np.inf))

    def affine(self) -> tuple[Array, Array] | None:
        rows = self.of.affine()
        return None if rows is None else (rows[0], rows[1] - self.by)

    def subgradient_unchecked(self, x: Array, row: Any) -> Array:
        return self.of.subgradient_unchecked(x, row)

    def sparse_rows(self) -> SparseRows | None:
        rows = self.of.sparse_rows()
        return None if rows is None or self.batch else rows.with_b(rows.b - self.by)

    @property
    def has_domain(self) -> bool:
        return self.of.has_domain

    @property
    def conic(self) -> bool:
        return self.of.conic

    def cones(self) -> Cones | None:
        return self._shifted(self.of.cones())

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._shifted(self.of.cones_near(center, size))

    def _shifted(self, cones: Cones | None) -> Cones | None:
        """g_i(x) + by_i ≤ t_i is g_i(x) ≤ t_i − by_i."""
        self.require_single()
        if cones is None:
            return None
        if np.isneginf(self.by).all() and self.dim is not None:
            return Cones(np.zeros((0, self.dim)), np.zeros(0), np.zeros((0, self.row_count)), ())
        return cones.replace(b=cones.b - cones.E @ self.by)

    def trials_unchecked(self, index: Any) -> Constraint:
        own = np.broadcast_to(self.by, (*self.batch, self.row_count))[index]
        return Shifted(member_trials(self.of, self.batch, index) if self.of.batch else self.of, own)

    def parameters(self) -> dict[str, Any]:
        return {"of": self.of, "by": self.by}

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [*self.of.data_arrays(), ("by", finite_part(self.by, -np.inf), False)]

    def require_finite_data(self) -> None:
        self.of.require_finite_data()
        super().require_finite_data()

    def raise_nonfinite(self, x: Array) -> Never:
        self.of.raise_nonfinite(x)

    @classmethod
    def examples(cls) -> list[Self]:
        from cocopt.constraints.norm_ball import NormBall

        return [cls(NormBall([0.5, -0.5], 1.0), [0.25])]
