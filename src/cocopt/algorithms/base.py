"""What every algorithm has in common: ask, tell, the ledger, and a state that can be stored.

A learner holds one immutable state. `tell` computes the next one in full before it takes its place, so that whatever
goes wrong on the way (bad input, an infeasible round, an interrupt in a user's callable) leaves the learner as it was.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocopt import state
from cocopt.arrays import (
    Array,
    ArrayLike,
    all_finite,
    as_points,
    describe,
    ignore_fp_warnings,
    make_tuple,
    require_finite,
    squared_norm,
)
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput, StateError
from cocopt.losses import Loss
from cocopt.metrics import History, Ledger
from cocopt.sets.base import ConvexSet

__all__ = ["Feedback", "Learner", "Round", "Update", "checked_rows"]

Arrays = dict[str, NDArray[Any]]
_ZERO = np.float64(0.0)


def checked_rows(rows: Any) -> Literal["all", "worst"]:
    """The choice of rows, if it is one."""
    if rows not in ("all", "worst"):
        raise InvalidInput(f'rows: expected "all" or "worst", got {describe(rows)}')
    return "worst" if rows == "worst" else "all"


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
    rows: Array | None  #: g_{t,i}(x_t), (..., M)
    violation: Any  #: max(0, max_i g_{t,i}(x_t))
    step: Any  #: η_t; 0 if no step was taken
    method: str  #: where on the ladder x_{t+1} was found, see `cocopt.explain`
    feasible: Any  #: whether K and the constraint had a point in common


class Feedback(NamedTuple):
    """What a round revealed at the action that was played."""

    x: Array
    loss: Loss | None
    value: Any
    gradient: Array | None
    gradient_sq: Any  #: ‖∇f_t(x_t)‖²
    constraint: Constraint | None
    rows: Array | None
    moved: Any  #: whether the action played differs from the one asked for; None if it is the same


class Update(NamedTuple):
    """What an algorithm makes of a round."""

    x: Array  #: x_{t+1}
    memory: Any  #: the algorithm's own part of the state
    step: Any = 0.0
    method: str = "set"
    feasible: Any = np.True_
    past: Any = None  #: Σ_τ (g_τ^+(x_t))² over the earlier constraints that are remembered


class _State(NamedTuple):
    t: int
    x: Array
    ledger: Ledger
    memory: Any


class Learner(ABC):
    """A learner for one stream, or for a batch of trials that all see the same t.

    An algorithm defines `parameters`, `initial_memory` and `update`, and how its memory is stored.
    """

    _history: History = None

    def __init__(self, K: ConvexSet, start: ArrayLike | None) -> None:
        if not isinstance(K, ConvexSet):
            raise InvalidInput(f"K: expected a set such as cocopt.Box, got {describe(K)}")
        self.K = K
        self._losses: set[type] = set()  # the classes of those that were found to fit
        self._constraints: set[type] = set()
        if start is None:
            x = K.project_unchecked(np.zeros(K.dim))
        else:
            x = np.array(require_finite("start", as_points("start", start, K.dim)))
            if not np.all(K.contains(x)):
                worst = float(np.max(K.violation(x)))
                raise InvalidInput(f"start: expected a point of K, got one that violates it by {worst:.3g}")
        x.flags.writeable = False
        self._state = _State(0, x, Ledger.zero(x.shape[:-1], self._history), None)
        self._state = self._state._replace(memory=self.initial_memory(x.shape[:-1]))

    @property
    def t(self) -> int:
        """The number of rounds told so far."""
        return self._state.t

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the trials; () for one stream."""
        return self._state.x.shape[:-1]

    @property
    def ledger(self) -> Ledger:
        """The running metrics."""
        return self._state.ledger

    def ask(self) -> Array:
        """x_t, the action for the coming round, a point of K of shape (..., n), read-only. Asking changes nothing."""
        return self._state.x

    def tell(
        self, loss: Loss | None = None, constraint: Constraint | None = None, *, played: ArrayLike | None = None
    ) -> Round:
        """Reveals f_t and g_t, and moves on to x_{t+1}.

        All or nothing: if anything raises, the learner is as it was before.

        Parameters
        ----------
        loss : Loss, optional
        constraint : Constraint, optional
            A round may reveal only one of the two.
        played : array (..., n), optional
            The action that was really executed, if it differed from `ask`.
        """
        before = self._state
        try:
            feedback = self._evaluate_round(before.x, loss, constraint, played)
            update = self.update(before.memory, feedback)
        except RuntimeWarning:  # numpy's word on infinite data, where warnings are errors: ours names the culprit
            with ignore_fp_warnings():  # (not always, since that would slow down every operation inside)
                feedback = self._evaluate_round(before.x, loss, constraint, played)
                update = self.update(before.memory, feedback)
        x = np.asarray(update.x)
        x.setflags(write=False)
        feasible, infeasible = update.feasible, None
        if feasible is np.True_:
            feasible = _all_true(x.shape[:-1]) if x.ndim > 1 else feasible
        elif not np.all(feasible):
            infeasible = ~feasible
        loss_value = None if feedback.loss is None else feedback.value
        ledger, violation = before.ledger.with_round(loss_value, feedback.rows, update.past, infeasible)
        t = before.t + 1
        self._state = make_tuple(_State, (t, x, ledger, update.memory))
        return make_tuple(Round, (t, feedback.value, feedback.rows, violation, update.step, update.method, feasible))

    def _evaluate_round(
        self, x: Array, loss: Loss | None, constraint: Constraint | None, played: ArrayLike | None
    ) -> Feedback:
        """The values at the action played, checked."""
        moved = None
        if played is not None:
            action = np.array(require_finite("played", as_points("played", played, self.K.dim)))  # it may be x_{t+1}
            if action.shape != x.shape:
                raise InvalidInput(f"played: expected shape {x.shape} as that of ask(), got {action.shape}")
            moved, x = (action != x).any(axis=-1), action
        value: Any = _ZERO
        gradient = gradient_sq = rows = None
        if loss is not None:
            if not (type(loss) in self._losses and loss.dim == self.K.dim):
                self._fits("loss", loss, Loss)
            value, gradient = loss.value_and_gradient_unchecked(x)
            gradient_sq = squared_norm(gradient)
            if not _all_finite(value + gradient_sq) and not (_all_finite(value) and all_finite(gradient)):
                loss.raise_nonfinite(x)
            if gradient.shape != x.shape:
                raise InvalidInput(f"loss: expected leading axes {self.batch} of the trials, got {gradient.shape[:-1]}")
        if constraint is not None:
            if not (type(constraint) in self._constraints and constraint.dim == self.K.dim):
                self._fits("constraint", constraint, Constraint)
            rows = constraint.rows_unchecked(x)
            if not _usual(rows):
                rows = constraint.rows(x)  # names the culprit, unless idle rows alone are infinite
            if rows.shape[:-1] != x.shape[:-1]:
                raise InvalidInput(
                    f"constraint: expected leading axes {self.batch} of the trials, got {rows.shape[:-1]}"
                )
        return make_tuple(Feedback, (x, loss, value, gradient, gradient_sq, constraint, rows, moved))

    def _fits(self, name: str, revealed: Any, kind: type[Loss] | type[Constraint]) -> None:
        if not isinstance(revealed, kind):
            example = "losses.Norm" if kind is Loss else "constraints.Affine"
            raise InvalidInput(f"{name}: expected an object such as {example}, got {describe(revealed)}")
        if revealed.dim is not None and revealed.dim != self.K.dim:
            raise InvalidInput(f"{name}: expected dimension {self.K.dim} as that of K, got {revealed.dim}")
        (self._losses if kind is Loss else self._constraints).add(type(revealed))

    @abstractmethod
    def initial_memory(self, batch: tuple[int, ...]) -> Any:
        """The algorithm's memory before round 1."""

    @abstractmethod
    def update(self, memory: Any, feedback: Feedback) -> Update:
        """x_{t+1} and the new memory; must not change the old one."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments but ``start``, as they are stored: plain values, sets and schedules."""

    @abstractmethod
    def _store(self, memory: Any) -> tuple[dict[str, Any], Arrays]:
        """The memory as plain values and arrays."""

    @abstractmethod
    def _restore(self, plain: Mapping[str, Any], arrays: Arrays) -> Any:
        """The memory that `_store` described."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Stores the learner, so that ``cocopt.load(path)`` continues bit for bit.

        One ``.npz`` of plain arrays and JSON, replaced in one stroke. What cannot be stored (a callable, a set whose
        class is not registered) must be passed to `cocopt.load` again.
        """
        now = self._state
        plain, memory = self._store(now.memory)
        parameters: dict[str, Any] = {}
        arrays: Arrays = {"x": now.x}
        for name, value in self.parameters().items():
            if value is None or isinstance(value, bool | int | float | str):
                parameters[name] = {"value": value}
            else:
                parameters[name], own = state.encode(value, name)
                arrays.update({f"parameter.{key}": array for key, array in own.items()})
        arrays.update({f"ledger.{key}": array for key, array in now.ledger.arrays().items()})
        arrays.update({f"memory.{key}": array for key, array in memory.items()})
        header = {"algorithm": type(self).__name__, "t": now.t, "parameters": parameters, "memory": plain}
        state.write(path, header, arrays)

    @classmethod
    def _from_state(cls, header: Mapping[str, Any], arrays: Arrays, supplied: Mapping[str, Any]) -> Self:
        try:
            own = _part(arrays, "parameter")
            specs = header["parameters"]
            arguments = {
                name: spec["value"] if "value" in spec else state.decode(spec, own, supplied, name)
                for name, spec in specs.items()
            }
            # what was stored stays as it was, unless its class is not known here
            again = [name for name, spec in specs.items() if "value" not in spec and not state.known(spec)]
            unknown = sorted(set(supplied) - set(again))
            if unknown:
                got = "one that the file settles" if unknown[0] in specs else "an unknown name"
                raise InvalidInput(f"{unknown[0]}: expected {' or '.join(again) or 'nothing'} to be passed, got {got}")
            learner = cls(start=arrays["x"], **arguments)
            memory = learner._restore(header["memory"], _part(arrays, "memory"))
            ledger = Ledger.from_arrays(_part(arrays, "ledger"))
            learner._state = _State(int(header["t"]), learner._state.x, ledger, memory)
        except (KeyError, TypeError) as error:
            raise StateError(f"expected the state of a {cls.__name__}, got one that lacks {error}") from error
        return learner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.K!r}, t={self.t})"


def _all_finite(values: Any) -> bool:
    return math.isfinite(values) if isinstance(values, float) else all_finite(values)


@cache
def _all_true(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """One array for all rounds, which nobody can change."""
    flags = np.ones(shape, dtype=bool)
    flags.setflags(write=False)
    return flags


def _usual(rows: Array) -> bool:
    """Whether all rows are finite."""
    if rows.ndim == 1 and rows.size <= 64:  # Python's own sum is several times as fast on a few numbers
        return math.isfinite(sum(rows.tolist()))
    return all_finite(rows)


def _part(arrays: Arrays, name: str) -> Arrays:
    prefix = f"{name}."
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
