"""Which constraints a learner projects onto: the current one, those of a window, or all so far.

Three strategies with the same two methods. They are immutable: a method returns the strategy that follows.

- ``past_squares(x)``: the strategy, and Σ_τ (g_τ^+(x))² over the earlier constraints (None if none is remembered);
- ``project(target, constraint, row, infeasible)``: the strategy with one more constraint, and the projection of the
  target onto K and all that it holds. ``row`` is the row of the constraint that counts (one per trial), None for all.
  Where they have no point in common, ``infeasible`` says what to do; with "skip" the constraint is left out, and the
  strategy that follows does not hold it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, make_tuple
from cocopt.constraints import Affine, Constraint, Shifted, Stack
from cocopt.errors import StateError
from cocopt.geometry.ladder import MAX_CUTS, Request, solve
from cocopt.geometry.persistent import PersistentIntersection
from cocopt.geometry.project import Projection
from cocopt.sets.base import ConvexSet
from cocopt.state import as_fields
from cocopt.tolerances import BLACK_BOX

__all__ = [
    "AllConstraints",
    "ConstraintMemory",
    "ConstraintWindow",
    "CurrentConstraint",
    "fitting_constraint",
    "own_copy",
]


class CurrentConstraint(NamedTuple):
    """Only the constraint just revealed: nothing is remembered."""

    K: ConvexSet

    def past_squares(self, x: Array) -> tuple[CurrentConstraint, None]:
        """No earlier constraint counts."""
        return self, None

    def project(
        self, target: Array, constraint: Constraint | None, row: Any, infeasible: str
    ) -> tuple[CurrentConstraint, Projection]:
        """P_{K ∩ {g_t ≤ 0}}(target)."""
        if constraint is not None and row is not None:
            constraint = constraint.select_unchecked(row)
        if infeasible != "skip" or constraint is None:
            return self, _project(self.K, constraint, target, infeasible)
        found = _project(self.K, constraint, target, "nearest")
        if _all_feasible(found):
            return self, found
        return self, _where_feasible(found, _project(self.K, None, target, infeasible))

    def stored(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> CurrentConstraint:
        """Itself, if nothing was stored."""
        as_fields(stored)
        return self


class _Remembered(NamedTuple):
    """A constraint of an earlier round that still has to be met."""

    constraint: Constraint  # all rows, which the metrics count
    row: Any  # the row (one per trial) that is projected onto; None for all rows

    @property
    def required(self) -> Constraint:
        return self.constraint if self.row is None else self.constraint.select(self.row)

    def only_in(self, trials: Any) -> _Remembered | None:
        """The same in some trials only; None if there are none."""
        return _Remembered(_only_in(self.constraint, trials), self.row) if np.any(trials) else None


class ConstraintWindow(NamedTuple):
    """The constraints of the last ``size`` rounds, the current one included."""

    K: ConvexSet
    size: int
    earlier: tuple[_Remembered | None, ...] = ()  # oldest first, None for a round without a constraint

    def past_squares(self, x: Array) -> tuple[ConstraintWindow, Array]:
        """Σ_τ (g_τ^+(x))² over the earlier constraints in the window."""
        total = np.zeros(x.shape[:-1])
        for kept in self.earlier:
            if kept is not None:
                total = total + np.square(kept.constraint.violation_unchecked(x))
        return self, total

    def project(
        self, target: Array, constraint: Constraint | None, row: Any, infeasible: str
    ) -> tuple[ConstraintWindow, Projection]:
        """The projection onto K and all constraints in the window."""
        current = None if constraint is None else _Remembered(own_copy(constraint), row)
        kept = (*self.earlier, current)
        required = [one.required for one in kept if one is not None]
        everything = Stack(required) if required else None
        if infeasible != "skip" or current is None:
            found = _project(self.K, everything, target, infeasible)
            return ConstraintWindow(self.K, self.size, kept[1 - self.size :]), found
        found = _project(self.K, everything, target, "nearest")
        if not _all_feasible(found):
            earlier = Stack(required[:-1]) if required[1:] else None
            found = _where_feasible(found, _project(self.K, earlier, target, "raise"))
            kept = (*self.earlier, current.only_in(found.feasible))
        return ConstraintWindow(self.K, self.size, kept[1 - self.size :]), found

    def stored(self) -> dict[str, Any]:
        """The earlier constraints."""
        return {"earlier": self.earlier}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> ConstraintWindow:
        """The window that `stored` describes, if it fits into this one and its constraints fit the trials."""
        (earlier,) = as_fields(stored, "earlier")
        if not isinstance(earlier, list) or len(earlier) >= self.size:
            raise StateError(f"earlier: expected at most {self.size - 1} constraints, got others")
        kept = []
        for one in earlier:
            if one is not None:
                constraint, row = as_fields(one, "constraint", "row")
                one = _Remembered(fitting_constraint(constraint, self.K, batch), row)
                rows = np.asarray(one.required.rows(np.zeros((*batch, self.K.dim))))
                if rows.shape != (*batch, 1 if row is not None else constraint.row_count):
                    raise StateError(f"row: expected one row of the constraint per trial, got {row}")
            kept.append(one)
        return self._replace(earlier=tuple(kept))


class AllConstraints(NamedTuple):
    """Every constraint so far."""

    required: PersistentIntersection  # what is projected onto
    revealed: PersistentIntersection | None  # what the metrics count, where that is more: with one row of several

    @classmethod
    def begin(cls, K: ConvexSet, batch: tuple[int, ...], *, forget: bool, one_row: bool) -> AllConstraints:
        """None so far. ``forget`` allows to drop rows that can no longer bind, ``one_row`` to keep one per round."""
        required = PersistentIntersection.begin(K, batch, forget=forget)
        return cls(required, PersistentIntersection.begin(K, batch) if one_row else None)

    def past_squares(self, x: Array) -> tuple[AllConstraints, Array]:
        """Σ_τ (g_τ^+(x))² over all earlier constraints."""
        if self.revealed is None:
            required, total = self.required.squares(x)
            return AllConstraints(required, None), total
        revealed, total = self.revealed.squares(x)
        return AllConstraints(self.required, revealed), total

    def project(
        self, target: Array, constraint: Constraint | None, row: Any, infeasible: str
    ) -> tuple[AllConstraints, Projection]:
        """The projection onto K and all constraints."""
        if constraint is not None:
            constraint = own_copy(constraint)
        after, found = self._plus(constraint, row)._project(target, "nearest" if infeasible == "skip" else infeasible)
        if infeasible == "skip" and constraint is not None and not _all_feasible(found):
            feasible = found.feasible
            left = _only_in(constraint, feasible) if np.any(feasible) else None
            after, found = self._plus(left, row)._project(target, "raise")
            found = found._replace(feasible=feasible)
        return after, found

    def _plus(self, constraint: Constraint | None, row: Any) -> AllConstraints:
        """With one more constraint, or its row."""
        if constraint is None:
            return self
        required, revealed = self
        required = required.plus(constraint if row is None else constraint.select_unchecked(row))
        return AllConstraints(required, None if revealed is None else revealed.plus(constraint))

    def _project(self, target: Array, infeasible: str) -> tuple[AllConstraints, Projection]:
        required, found = self.required.project(target, infeasible)
        return self._replace(required=required), found

    def stored(self) -> dict[str, Any]:
        """Both intersections."""
        return {"required": self.required, "revealed": self.revealed}

    def restored(self, stored: Any, batch: tuple[int, ...]) -> AllConstraints:
        """The constraints that `stored` describes."""
        required, revealed = as_fields(stored, "required", "revealed")
        if (revealed is None) != (self.revealed is None):
            raise StateError("revealed: expected constraints only where single rows of them are required")
        return AllConstraints(
            self.required.restored(required, batch),
            None if self.revealed is None else self.revealed.restored(revealed, batch),
        )


ConstraintMemory = CurrentConstraint | ConstraintWindow | AllConstraints


def _all_feasible(found: Projection) -> bool:
    return found.feasible is np.True_ or bool(np.all(found.feasible))


def _where_feasible(found: Projection, other: Projection) -> Projection:
    """What was found where there was a feasible point, and the other points elsewhere."""
    return found._replace(point=np.where(np.asarray(found.feasible)[..., None], found.point, other.point))


def _only_in(constraint: Constraint, trials: Any) -> Constraint:
    """The constraint, switched off in all other trials."""
    by = np.where(np.asarray(trials)[..., None], 0.0, np.full(constraint.row_count, -np.inf))
    affine = constraint.affine()
    if affine is not None:
        return Affine(np.broadcast_to(affine[0], (*by.shape, affine[0].shape[-1])), affine[1] - by)
    return Shifted(constraint, by)


def own_copy(constraint: Constraint) -> Constraint:
    """A copy that later changes of the user's arrays do not affect; a black box as it is."""
    try:
        parameters = constraint.parameters()
    except TypeError:
        return constraint
    return type(constraint)(**{name: _copied(value) for name, value in parameters.items()})


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list | tuple):
        return [_copied(item) for item in value]
    return own_copy(value) if isinstance(value, Constraint) else value


def _project(K: ConvexSet, constraint: Constraint | None, target: Array, infeasible: str) -> Projection:
    if constraint is None:
        return Projection(K.project_unchecked(target), "set", np.True_, 0.0)
    # (all fields in their order: the constructor with its defaults would take three times as long)
    return solve(make_tuple(Request, (K, constraint, target, None, None, infeasible, MAX_CUTS, BLACK_BOX, 0.0)))


def fitting_constraint(constraint: Any, K: ConvexSet, batch: tuple[int, ...]) -> Constraint:
    """A stored constraint, if it is one, of this dimension and for these trials."""
    if not isinstance(constraint, Constraint) or constraint.dim not in (None, K.dim):
        raise StateError(f"constraint: expected a constraint of dimension {K.dim}, got {type(constraint).__name__}")
    if np.broadcast_shapes(constraint.batch, batch) != batch:
        raise StateError(f"constraint: expected leading axes {batch}, got {constraint.batch}")
    constraint.require_finite_data()
    return constraint
