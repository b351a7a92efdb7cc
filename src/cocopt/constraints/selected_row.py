"""One row of a constraint."""

from __future__ import annotations

from typing import Any, Never, Self

import numpy as np

from cocopt.arrays import (
    Array,
    as_integers,
    batch_shape,
    describe,
)
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint, data_batch_shape, member_trials
from cocopt.errors import InvalidInput
from cocopt.registry import register

__all__ = ["SelectedRow"]


@register
class SelectedRow(Constraint):
    """One row of a constraint, perhaps another one in each trial."""

    __slots__ = ("batch", "dim", "of", "row")

    def __init__(self, of: Constraint, row: Any) -> None:
        if not isinstance(of, Constraint):
            raise InvalidInput(f"of: expected a constraint such as constraints.Stack, got {describe(of)}")
        self.of, self.row = of, as_integers("row", row, f"indices of the {of.row_count} rows")
        if self.row.min() < 0 or self.row.max() >= of.row_count:
            raise InvalidInput(f"row: expected one of a constraint with {of.row_count} rows, got {describe(row)}")
        self.batch: tuple[int, ...] = batch_shape(("constraint", of.batch), ("row", self.row.shape))
        self.dim: int | None = of.dim

    def rows_unchecked(self, x: Array) -> Array:
        return self._pick(self.of.rows_unchecked(x), data_batch_shape(self, x), 1)

    def jacobian_unchecked(self, x: Array) -> Array:
        return self._pick(self.of.jacobian_unchecked(x), data_batch_shape(self, x), 2)

    def magnitude(self, x: Array) -> Array:
        return self._pick(self.of.magnitude(x), data_batch_shape(self, x), 1)

    def _pick(self, values: Array, batch: tuple[int, ...], inner: int) -> Array:
        values = np.broadcast_to(values, (*batch, *values.shape[values.ndim - inner :]))
        row = np.broadcast_to(self.row, batch).reshape(*batch, *(1,) * inner)
        return np.take_along_axis(values, row, axis=-inner)

    @property
    def has_domain(self) -> bool:
        return self.of.has_domain

    @property
    def conic(self) -> bool:
        return self.of.conic

    def cones(self) -> Cones | None:
        return self._row_of(self.of.cones())

    def cones_near(self, center: Array, size: float) -> Cones | None:
        return self._row_of(self.of.cones_near(center, size))

    def _row_of(self, whole: Cones | None) -> Cones | None:
        """The row's part of all cones."""
        self.require_single()
        if whole is None:
            return None
        others = np.delete(whole.E, self.row, axis=1)  # the other rows may be relaxed by any amount
        own, aux = whole.E[:, [int(self.row)]], whole.aux + others.shape[1]
        return Cones(whole.matrix.with_columns(-others), whole.b, own, whole.cones, aux)

    def trials_unchecked(self, index: Any) -> Constraint:
        return member_trials(self.of, self.batch, index).select(np.broadcast_to(self.row, self.batch)[index])

    def parameters(self) -> dict[str, Any]:
        return {"of": self.of, "row": self.row}

    def require_finite_data(self) -> None:
        self.of.require_finite_data()

    def raise_nonfinite(self, x: Array) -> Never:
        self.of.raise_nonfinite(x)

    def __repr__(self) -> str:
        return f"row {self.row} of {self.of!r}"

    @classmethod
    def examples(cls) -> list[Self]:
        from cocopt.constraints.norm_ball import NormBall

        return [cls(NormBall([0.5, -0.5], 1.0), np.array(0))]
