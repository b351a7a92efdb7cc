"""What every algorithm has in common: ask, tell, the ledger, and a state that can be stored.

A learner holds one immutable state. `tell` computes the next one in full before it takes its place, so that whatever
goes wrong on the way (bad input, an infeasible round, an interrupt in a user's callable) leaves the learner as it was.
"""

from __future__ import annotations

import inspect
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocopt import registry, state
from cocopt.algorithms.facts import Facts, Rates
from cocopt.algorithms.single_stream import SingleStream
from cocopt.arrays import (
    Array,
    ArrayLike,
    all_finite,
    as_points,
    batch_shape,
    describe,
    ignore_fp_warnings,
    make_tuple,
    require_finite,
    scalar,
    squared_norm,
)
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput, NotStorable, StateError
from cocopt.losses import Loss
from cocopt.metrics import History, Ledger
from cocopt.sets.base import ConvexSet

__all__ = ["Feedback", "Learner", "Round", "Update", "check_lipschitz", "optional_scalar", "require_diameter"]

_ZERO = np.float64(0.0)


def optional_scalar(name: str, value: Any, *, positive: bool = False, nonnegative: bool = False) -> float | None:
    """None, or a finite number, positive or non-negative where asked."""
    return None if value is None else scalar(name, value, positive=positive, nonnegative=nonnegative)


def require_diameter(K: ConvexSet, diameter: float | None) -> float:
    """D: the diameter that was given, else that of K; an error if neither is positive and finite."""
    D = K.diameter if diameter is None else diameter
    if not 0.0 < D < np.inf:
        raise InvalidInput(f"diameter: expected a positive number, since that of K is {D}, got {diameter}")
    return D


def check_lipschitz(assumed: float, lipschitz_f: float, lipschitz_g: float) -> None:
    """An error if a Lipschitz constant exceeds the one given to a learner at construction."""
    for name, constant in (("lipschitz_f", lipschitz_f), ("lipschitz_g", lipschitz_g)):
        if scalar(name, constant, nonnegative=True) > assumed:
            raise InvalidInput(f"{name}: expected at most the {assumed} given at construction, got {constant}")


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

    t: int  #: the round's number, from 1
    losses: int  #: how many rounds have revealed a loss, this one included
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
    t: int  # rounds so far
    losses: int  # rounds so far that revealed a loss
    x: Array
    ledger: Ledger
    memory: Any


class Learner(ABC):
    """A learner for one stream, or for a batch of trials that all see the same t.

    An algorithm is a subclass that defines

    - `initial_memory`: what it remembers before round 1, a NamedTuple, number or array;
    - `update`: x_{t+1} and the new memory from the old one and what the round revealed;

    and keeps the arguments of its constructor under their names, so that it can be built again (or defines
    `parameters`). With ``@cocopt.register`` it is exported, storable, listed by ``cocopt list`` and known to
    ``cocopt.run`` by its name. How the memory is stored and checked follows from `initial_memory` (see
    `cocopt.state.restore`).
    """

    kind: ClassVar[str] = "algorithm"
    #: the name on the command line and in state files; by default that of the class
    name: ClassVar[str]
    #: the name in figures; by default that of the class
    title: ClassVar[str] = ""
    #: rates, needs, work per round and provenance; None for an algorithm that says nothing about itself
    facts: ClassVar[Facts | None] = None
    #: the options of its form for constraints that change, if that is not the default
    dynamic_options: ClassVar[dict[str, Any]] = {}
    #: which earlier constraints the ledger counts: none, all ("hist") or those of a window ("window")
    history: History = None
    #: the number of agents if the last leading axis is that of a network; None if every leading axis is a trial's
    agents: int | None = None
    #: whether the memory may grow with the number of rounds
    grows: bool = False
    #: what plays a usual round of one stream by one compiled call; None if every round is played in the ordinary way
    stream: SingleStream | None = None

    def __init__(self, K: ConvexSet, start: ArrayLike | None) -> None:
        if not isinstance(K, ConvexSet):
            raise InvalidInput(f"K: expected a set such as cocopt.Box, got {describe(K)}")
        self.K = K
        self._loss_types: set[type] = set()  # whose objects were found to fit
        self._constraint_types: set[type] = set()
        if start is None:
            x = np.array(self.default_start())
        else:
            x = np.array(require_finite("start", as_points("start", start, K.dim)))
            if not np.all(K.contains(x)):
                worst = float(np.max(K.violation(x)))
                raise InvalidInput(f"start: expected a point of K, got one that violates it by {worst:.3g}")
        x.flags.writeable = False
        self._start = x

    @cached_property
    def _state(self) -> _State:
        """All that changes; made at first use, when the constructors of subclasses have set all attributes."""
        x = self._start
        ledger = Ledger.zero(x.shape[:-1], self.history)
        return _State(0, 0, x, ledger, self.initial_memory(x.shape[:-1]))

    def default_start(self) -> Array:
        """x_1 if none is given, of shape (n,): the point of K nearest to 0. An algorithm without projections overrides.

        It is called before the constructors of subclasses have set their attributes, and may use K alone.
        """
        return self.K.project_unchecked(np.zeros(self.K.dim))

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        """Constructor arguments beside K and start, with which the contract tests are run."""
        return [{}]

    @property
    def rates(self) -> Rates | None:
        """The rates that are proved for this configuration; None where nothing is."""
        if self.facts is None:
            return None
        return self.facts.strongly_convex if getattr(self, "strong_convexity", None) else self.facts.convex

    @property
    def static(self) -> bool:
        """Whether the constraint must be the same in every round."""
        return self.facts is not None and self.facts.constraints == "static"

    @property
    def t(self) -> int:
        """The number of rounds so far."""
        return self._state.t

    @property
    def start(self) -> Array:
        """x_1, read-only; of a loaded learner, the action from which it went on."""
        return self._start

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the trials; () for one stream."""
        return self._start.shape[:-1]

    @property
    def ledger(self) -> Ledger:
        """The running metrics."""
        return self._state.ledger

    @property
    def memory(self) -> Any:
        """What the algorithm remembers, as `update` returned it last; not to be changed."""
        return self._state.memory

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
        if played is None and self.stream is not None:
            done = self.stream.play(before, loss, constraint)
            if done is not None:
                t, losses, x, ledger, memory, record = done
                self._state = make_tuple(_State, (t, losses, x, ledger, memory))
                return make_tuple(Round, record)
        try:
            feedback = self._evaluate_round(before, loss, constraint, played)
            update = self.update(before.memory, feedback)
        except RuntimeWarning:  # numpy's report of infinite data, where warnings are errors; ours names the argument
            with ignore_fp_warnings():  # (not always, since that would slow down every operation inside)
                feedback = self._evaluate_round(before, loss, constraint, played)
                update = self.update(before.memory, feedback)
        except ValueError:
            self._require_batches(loss, constraint)  # arrays that do not broadcast have numpy's error, which names none
            raise
        except (OverflowError, ZeroDivisionError) as error:
            if not _raised_here(error):  # but by a user's callable
                raise
            raise self._overflow() from error
        x = np.asarray(update.x)
        if update.method == "set" and not all_finite(x):  # the ladder checks what it finds
            raise self._overflow()
        x.setflags(write=False)
        feasible, infeasible = update.feasible, None
        if feasible is np.True_:
            feasible = _all_true(x.shape[:-1]) if x.ndim > 1 else feasible
        elif not np.all(feasible):
            infeasible = ~feasible
        loss_value = None if feedback.loss is None else feedback.value
        ledger, violation = before.ledger.with_round(loss_value, feedback.rows, update.past, infeasible)
        t, losses = feedback.t, feedback.losses
        self._state = make_tuple(_State, (t, losses, x, ledger, update.memory))
        return make_tuple(Round, (t, feedback.value, feedback.rows, violation, update.step, update.method, feasible))

    def _overflow(self) -> InvalidInput:
        return InvalidInput(
            f"tell: expected constants, gradients and rows of moderate size, got some with which the update of "
            f"{type(self).__name__} overflows"
        )

    def _evaluate_round(
        self, before: _State, loss: Loss | None, constraint: Constraint | None, played: ArrayLike | None
    ) -> Feedback:
        """The values at the action played, checked."""
        t, losses, x = before.t + 1, before.losses, before.x
        moved = None
        if played is not None:
            action = np.array(require_finite("played", as_points("played", played, self.K.dim)))  # it may be x_{t+1}
            if action.shape != x.shape:
                raise InvalidInput(f"played: expected shape {x.shape} as that of ask(), got {action.shape}")
            moved, x = (action != x).any(axis=-1), action
        value: Any = _ZERO
        gradient = gradient_sq = rows = None
        if loss is not None:
            losses += 1
            if not (type(loss) in self._loss_types and loss.dim == self.K.dim):
                self._require_fit("loss", loss, Loss)
            value, gradient = loss.value_and_gradient_unchecked(x)
            gradient_sq = squared_norm(gradient)
            if not _all_finite(value + gradient_sq) and not (_all_finite(value) and all_finite(gradient)):
                loss.raise_nonfinite(x)
            if gradient.shape != x.shape:
                raise InvalidInput(f"loss: expected leading axes {self.batch} of the trials, got {gradient.shape[:-1]}")
        if constraint is not None:
            if not (type(constraint) in self._constraint_types and constraint.dim == self.K.dim):
                self._require_fit("constraint", constraint, Constraint)
            rows = constraint.rows_unchecked(x)
            if not _rows_finite(rows):
                rows = constraint.rows(x)  # names the argument, unless idle rows alone are infinite
            if rows.shape[:-1] != x.shape[:-1]:
                raise InvalidInput(
                    f"constraint: expected leading axes {self.batch} of the trials, got {rows.shape[:-1]}"
                )
        return make_tuple(Feedback, (t, losses, x, loss, value, gradient, gradient_sq, constraint, rows, moved))

    def _require_batches(self, *revealed: Loss | Constraint | None) -> None:
        for name, part in zip(("loss", "constraint"), revealed, strict=True):
            if isinstance(part, Loss | Constraint):
                batch_shape(("trials", self.batch), (name, part.batch))

    def _require_fit(self, name: str, revealed: Any, kind: type[Loss] | type[Constraint]) -> None:
        if not isinstance(revealed, kind):
            example = "losses.Norm" if kind is Loss else "constraints.Affine"
            raise InvalidInput(f"{name}: expected an object such as {example}, got {describe(revealed)}")
        if revealed.dim is not None and revealed.dim != self.K.dim:
            raise InvalidInput(f"{name}: expected dimension {self.K.dim} as that of K, got {revealed.dim}")
        (self._loss_types if kind is Loss else self._constraint_types).add(type(revealed))

    @abstractmethod
    def initial_memory(self, batch: tuple[int, ...]) -> Any:
        """The algorithm's memory before round 1."""

    @abstractmethod
    def update(self, memory: Any, feedback: Feedback) -> Update:
        """x_{t+1} and the new memory; must not change the old one."""

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments but ``start``, as they are stored: plain values, sets and schedules.

        By default the attributes of the same names.
        """
        try:
            return {name: getattr(self, name) for name in _argument_names(type(self))}
        except AttributeError as error:
            raise NotStorable(
                f"{type(self).__name__}: expected attributes named as the constructor's arguments, or a method "
                f"parameters(), got {error}"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Stores the learner, so that ``cocopt.load(path)`` continues bit for bit.

        One ``.npz`` of plain arrays and JSON, replaced atomically. What cannot be stored (a callable, a set whose
        class is not registered) must be passed to `cocopt.load` again.
        """
        name = registry.name_of(type(self))
        if name is None:
            raise NotStorable(f"save: {type(self).__name__} cannot be stored: register it with @cocopt.register")
        parameters: dict[str, Any] = {}
        header: dict[str, Any] = {"algorithm": name, "parameters": parameters}
        arrays: state.Arrays = {}
        for key, value in self.parameters().items():
            try:
                parameters[key], own = state.encode(value, f"parameters.{key}")
            except TypeError:
                parameters[key], own = {"absent": key}, {}
            arrays.update(own)
        try:
            for key, value in self._state._asdict().items():
                header[key], own = state.encode(value, key)
                arrays.update(own)
        except TypeError as error:
            raise NotStorable(
                f"save: the learner remembers what cannot be stored: {error}. A black box is code, and a state file "
                "holds data alone: describe the constraint by its structure, or do not remember it (window=1)"
            ) from error
        state.write(path, header, arrays)

    @classmethod
    def from_stored(cls, header: dict[str, Any], arrays: state.Arrays, supplied: Mapping[str, Any]) -> Self:
        """The learner that `save` described, or a `StateError`; what could not be stored is ``supplied``."""
        with state.refusing("state", cls.__name__):
            stored = dict(
                zip(
                    ("parameters", *_State._fields), state.as_fields(header, "parameters", *_State._fields), strict=True
                )
            )
        decoder = state.Decoder(arrays)
        arguments = _arguments(stored.pop("parameters"), decoder, supplied)
        values = {key: decoder.decode(spec, key) for key, spec in stored.items()}
        decoder.finish()
        x, K = values["x"], arguments.get("K")
        if not (isinstance(x, np.ndarray) and x.ndim > 0 and x.dtype == np.float64):
            raise StateError(f"x: expected points (..., n), got {describe(x)}")
        if "K" in supplied and isinstance(K, ConvexSet) and K.dim != x.shape[-1]:
            raise InvalidInput(f"K: expected dimension {x.shape[-1]} as that of the stored state, got {K.dim}")
        with state.refusing("state", cls.__name__):
            learner = cls(start=x, **arguments)
            t = state.as_count(values["t"], "t")
            losses = state.as_count(values["losses"], "losses", t)
            ledger = state.restore(
                values["ledger"], Ledger.zero(learner.batch, learner.history), learner.batch, "ledger"
            )
            if ledger.rounds != t:
                raise StateError(f"ledger: expected {t} rounds, got {ledger.rounds}")
            memory = state.restore(values["memory"], learner._state.memory, learner.batch, "memory")
            learner._state = _State(t, losses, learner._start, ledger, memory)
        return learner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.K!r}, t={self.t})"


def _raised_here(error: BaseException) -> bool:
    """Whether the exception comes from a line of this package."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("cocopt.")


@cache
def _argument_names(cls: type[Learner]) -> tuple[str, ...]:
    """The names of the constructor's arguments but ``start``."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    arguments = inspect.signature(cls).parameters.values()
    return tuple(own.name for own in arguments if own.name != "start" and own.kind not in kinds)


def _all_finite(values: Any) -> bool:
    return math.isfinite(values) if isinstance(values, float) else all_finite(values)


@cache
def _all_true(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """One read-only array for all rounds."""
    flags = np.ones(shape, dtype=bool)
    flags.setflags(write=False)
    return flags


def _rows_finite(rows: Array) -> bool:
    """Whether all rows are finite."""
    if rows.ndim == 1 and rows.size <= 64:  # Python's own sum is several times as fast on a few numbers
        return math.isfinite(sum(rows.tolist()))
    return all_finite(rows)


def _arguments(specs: Any, decoder: state.Decoder, supplied: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's arguments: as stored, or as supplied where they could not be."""
    if not isinstance(specs, dict):
        raise StateError(f"parameters: expected the arguments of a learner, got {describe(specs)}")
    arguments: dict[str, Any] = {}
    wanted = []  # what was stored stays as it was, unless its class is not known here
    for name, spec in specs.items():
        absent = isinstance(spec, dict) and spec == {"absent": name}
        try:
            if not absent:
                arguments[name] = decoder.decode(spec, f"parameters.{name}")
                continue
        except state.UnknownClass:
            if name not in supplied:
                raise
        if name not in supplied:
            raise StateError(
                f"{name}: expected as an argument, since it could not be stored: cocopt.load(path, {name}=...)"
            )
        decoder.discard(f"parameters.{name}")
        arguments[name] = supplied[name]
        wanted.append(name)
    unknown = sorted(set(supplied) - set(wanted))
    if unknown:
        got = "one that the file contains" if unknown[0] in specs else "an unknown name"
        raise InvalidInput(f"{unknown[0]}: expected {' or '.join(wanted) or 'nothing'} to be passed, got {got}")
    return arguments
