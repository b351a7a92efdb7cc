"""What passes between a learner, its algorithm and its user: records, feedback, updates and the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.constraint_memory import fitting_constraint
from cocopt.arrays import Array, all_finite, as_plain, describe
from cocopt.constraints import Constraint
from cocopt.errors import StateError
from cocopt.geometry.cutter import largest_row
from cocopt.losses import Loss
from cocopt.metrics import Ledger
from cocopt.sets.base import ConvexSet
from cocopt.state import as_array, as_count, as_fields

__all__ = ["Asked", "Feedback", "LearnerState", "Played", "Round", "Update", "restored_rounds"]


NORMAL = 1e-14  # a part along the hull of less than this share of the vector is rounding


class Round(NamedTuple):
    """The record of one round; arrays have the leading axes of the trials.

    Examples
    --------
    >>> from cocopt import CLASP, Box, constraints, losses
    >>> learner = CLASP(Box(0.0, 1.0, dim=2), start=[1.0, 1.0])
    >>> learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([0.0, 1.0], 0.5)).violation
    np.float64(0.5)
    """

    t: int  #: the round's number, from 1
    loss: Any  #: f_t(x_t); 0 if no loss was revealed
    rows: Array | None  #: g_{t,i}(x_t), (..., M), those of a constraint that was known before last
    violation: Any  #: max(0, max_i g_{t,i}(x_t))
    step: Any  #: η_t; 0 if no step was taken
    method: str  #: where on the ladder x_{t+1} was found, see `cocopt.explain`
    feasible: Any  #: whether K and the constraint had a point in common
    names: tuple[str | None, ...] | None = None  #: of the rows, if they have any

    @property
    def by_name(self) -> dict[str, Any]:
        """The violation of the rows of each name, max(0, max g_i)."""
        if self.names is None or self.rows is None:
            return {}
        rows = {name: [i for i, own in enumerate(self.names) if own == name] for name in self.names if name is not None}
        return {name: np.maximum(self.rows[..., index].max(axis=-1), 0.0) for name, index in rows.items()}

    def to_dict(self) -> dict[str, Any]:
        """The record in plain numbers and lists, which JSON has; a row that is switched off is −inf."""
        plain: dict[str, Any] = as_plain({**self._asdict(), "by_name": self.by_name})
        return plain


class Feedback(NamedTuple):
    """What a round revealed. An algorithm steps from ``x``; everything was evaluated at ``played``."""

    t: int  #: how many rounds have had feedback, this one included
    losses: int  #: how many rounds have revealed a loss, this one included
    x: Array  #: the iterate: the action played, unless feedback came late or another action was executed
    played: Array  #: the action at which loss and constraint count; the same object as ``x`` where it is the iterate
    loss: Loss | None
    value: Any
    gradient: Array | None  #: the part of ∇f_t(played) along the affine hull of K
    gradient_sq: Any  #: its squared norm
    constraint: Constraint | None
    rows: Array | None  #: g_{t,i}(played)
    drift: Any = None  #: ⟨∇f_t(played), played − x⟩; None where that is 0 by definition
    #: P_V, V the direction space of K's affine hull; None for the identity
    along_hull: Callable[[Array], Array] | None = None

    def largest_row(self, x: Array | None = None, rows: Array | None = None) -> tuple[Array, Array]:
        """(v, s): v = max(0, g_t) and a subgradient of the largest row along K's hull.

        At ``played``, or at x, where the rows are ``rows``.
        """
        assert self.constraint is not None
        assert self.rows is not None
        at, values = (self.played, self.rows) if x is None or rows is None else (x, rows)
        violation, subgradient = largest_row(self.constraint, at, values)
        return violation, self.along(subgradient)

    def row_subgradients(self) -> Array:
        """A subgradient of each row at ``played``, along K's hull, (..., M, n), finite."""
        assert self.constraint is not None
        jacobian = self.constraint.jacobian_unchecked(self.played)
        if not all_finite(jacobian):
            self.constraint.raise_nonfinite(self.played)
        return np.broadcast_to(self.along(jacobian), (*self.played.shape[:-1], *jacobian.shape[-2:]))

    def weighted_subgradients(self, weights: Array) -> Array:
        """Σ_i weights_i s_i of the rows' subgradients s_i at ``played``, along K's hull, finite; weights (..., M)."""
        assert self.constraint is not None
        combined = self.constraint.combine_unchecked(self.played, weights)
        if not all_finite(combined):
            self.constraint.raise_nonfinite(self.played)
        return self.along(combined)

    def along(self, vectors: Array) -> Array:
        """The part along K's hull; what rounding leaves of a vector normal to it is 0."""
        if self.along_hull is None:
            return vectors
        along = self.along_hull(vectors)
        kept: Array = np.where(np.abs(along) > NORMAL * np.abs(vectors).max(axis=-1, keepdims=True), along, 0.0)
        return kept


class Update(NamedTuple):
    """What an algorithm makes of a round."""

    x: Array  #: x_{t+1}
    memory: Any  #: the algorithm's own part of the state
    step: Any = 0.0
    method: str = "set"
    feasible: Any = np.True_
    past: Any = None  #: Σ_τ (g_τ^+(x_t))² over the earlier constraints that are remembered


class Asked(NamedTuple):
    """The answer to ``ask(known=...)``, which stays until the round is over."""

    known: Constraint
    x: Array  #: the nearest point to the iterate that satisfies it
    feasible: Any  #: whether some point of K does


class Played(NamedTuple):
    """A round whose feedback is still missing, or half of it."""

    round: int
    x: Array  #: the action that was played
    known: Constraint | None  #: what was known before it
    has_loss: bool = False  #: whether the loss has come
    has_constraint: bool = False  #: whether the constraint has


class LearnerState(NamedTuple):
    """All that changes in a learner; replaced as a whole."""

    t: int  #: rounds that have had feedback
    losses: int  #: those that revealed a loss
    x: Array  #: the iterate
    ledger: Ledger
    memory: Any  #: the algorithm's own
    rounds: int = 0  #: rounds so far, those without feedback included
    asked: Asked | None = None
    pending: Mapping[int, Played] = {}  # by round, in their order; never changed in place


def restored_rounds(
    values: Mapping[str, Any], K: ConvexSet, batch: tuple[int, ...], t: int
) -> tuple[int, Asked | None, dict[int, Played]]:
    """(rounds, asked, pending) of a stored state, if a run could have reached them; else a `StateError`."""
    rounds = as_count(values["rounds"], "rounds")
    asked = None
    if values["asked"] is not None:
        known, x, feasible = as_fields(values["asked"], "known", "x", "feasible")
        flags = as_array(np.asarray(feasible), "feasible", batch, np.bool_)[()]
        asked = Asked(fitting_constraint(known, K, batch), _action(x, K, batch), flags)
    if not isinstance(values["pending"], list):
        raise StateError(f"pending: expected a list of rounds, got {describe(values['pending'])}")
    pending: dict[int, Played] = {}
    last = 0
    for stored in values["pending"]:
        number, x, known, has_loss, has_constraint = as_fields(stored, *Played._fields)
        number = as_count(number, "round", rounds)
        if number <= last or type(has_loss) is not bool or type(has_constraint) is not bool:
            raise StateError("pending: expected rounds in their order, and what has come of each, got others")
        if has_loss and has_constraint:
            raise StateError(f"pending: expected rounds that lack something, got round {number}")
        known = None if known is None else fitting_constraint(known, K, batch)
        pending[number] = Played(number, _action(x, K, batch), known, has_loss, has_constraint)
        last = number
    waiting = sum(not (one.has_loss or one.has_constraint) for one in pending.values())
    if t + waiting > rounds:
        raise StateError(f"rounds: expected at least {t + waiting}, got {rounds}")
    return rounds, asked, pending


def _action(x: Any, K: ConvexSet, batch: tuple[int, ...]) -> Array:
    """A stored point of K."""
    point: Array = as_array(x, "x", (*batch, K.dim))
    if not np.all(K.contains(point)):
        raise StateError("x: expected a point of K, got another")
    point.setflags(write=False)
    return point
