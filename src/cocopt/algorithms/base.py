"""What every algorithm has in common: ask, tell, the ledger, and a state that can be stored.

A learner holds one immutable state. `tell` computes the next one in full before it takes its place, so that whatever
goes wrong on the way (bad input, an infeasible round, an interrupt in a user's callable) leaves the learner as it was.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import Any, BinaryIO, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cocopt import html, registry, state
from cocopt.algorithms.constraint_memory import own_copy
from cocopt.algorithms.facts import Facts, Rates
from cocopt.algorithms.records import Asked, Feedback, LearnerState, Played, Round, Update, restored_rounds
from cocopt.algorithms.single_stream import SingleStream
from cocopt.algorithms.watch import Watch, refuse_wrong_subgradients
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
from cocopt.constraints import Constraint, Stack
from cocopt.errors import InfeasibleRound, InvalidInput, NotStorable, ReadOnly, StateError
from cocopt.geometry.project import solve_projection
from cocopt.losses import Loss
from cocopt.metrics import History, Ledger
from cocopt.sets.base import ConvexSet

__all__ = ["Feedback", "Learner", "Round", "Update", "check_lipschitz", "optional_scalar", "require_diameter"]

RECENT_ACTIONS = 16  # so many earlier actions are compared with ``played``

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
    #: options that `cocopt.run` uses for this algorithm, where they differ from the defaults of its constructor
    run_options: ClassVar[dict[str, Any]] = {}
    #: which earlier constraints the ledger counts: none, all ("hist") or those of a window ("window")
    history: History = None
    #: the number of agents if the last leading axis is that of a network; None if every leading axis is a trial's
    agents: int | None = None
    #: whether the memory may grow with the number of rounds
    grows: bool = False
    #: whether it never projects, for sets on which that is expensive
    projection_free: ClassVar[bool] = False
    #: whether its analysis allows to play the projection onto a constraint that is known beforehand
    accepts_known: ClassVar[bool] = True
    #: whether its analysis covers feedback that comes late
    accepts_delays: ClassVar[bool] = False
    #: what to do where K and a constraint have no point in common
    infeasible: str = "raise"
    #: what plays a usual round of one stream by one compiled call; None if every round is played in the ordinary way
    stream: SingleStream | None = None

    def __init__(self, K: ConvexSet, start: ArrayLike | None) -> None:
        if not isinstance(K, ConvexSet):
            raise InvalidInput(f"K: expected a set such as cocopt.Box, got {describe(K)}")
        self.K = K
        self._described_before: tuple[dict[str, Any], dict[str, Any], state.Arrays] | None = None
        self._loss_types: set[type] = set()  # whose objects were found to fit
        self._constraint_types: set[type] = set()
        self._watch = Watch(K, movement=not self.projection_free)
        self._recent: deque[Array] = deque(maxlen=RECENT_ACTIONS)  # actions asked for, to compare ``played`` with
        if start is None:
            x = np.array(self.default_start())
        else:
            x = np.array(require_finite("start", as_points("start", start, K.dim)))
            if not np.all(K.contains(x)):
                x = _nearest_within_rounding(K, x, np.asarray(start).dtype)
            if not np.all(K.contains(x)):
                worst = float(np.max(K.violation(x)))
                raise InvalidInput(f"start: expected a point of K, got one that violates it by {worst:.3g}")
        x.flags.writeable = False
        self._start = x

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and self.__dict__.get(name, value) is not value and name in _argument_names(type(self)):
            raise ReadOnly(self, name)
        object.__setattr__(self, name, value)

    @cached_property
    def _state(self) -> LearnerState:
        """All that changes; made at first use, when the constructors of subclasses have set all attributes."""
        x = self._start
        ledger = Ledger.zero(x.shape[:-1], self.history)
        return LearnerState(0, 0, x, ledger, self.initial_memory(x.shape[:-1]))

    @cached_property
    def _along_hull(self) -> Callable[[Array], Array] | None:
        """The projection of gradients onto the direction space of K's affine hull; None if that is the whole space."""
        return None if self.K.full_dimensional else self.K.project_direction_unchecked

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
        """The number of rounds so far that have had feedback."""
        return self._state.t

    @property
    def rounds(self) -> int:
        """The number of rounds so far, those without feedback included: the coming one is ``rounds + 1``."""
        return self._state.rounds

    @property
    def pending(self) -> tuple[int, ...]:
        """The rounds that were played and still lack their loss or their constraint, in order."""
        return tuple(self._state.pending)

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

    def ask(self, known: Constraint | None = None) -> Array:
        """x_t, the action for the coming round, a point of K of shape (..., n), read-only.

        Parameters
        ----------
        known : Constraint, optional
            What is known of the coming constraint already. The answer is then the point of K ∩ {known ≤ 0} nearest to
            x_t: it violates ``known`` by nothing, and comes no farther from any feasible action, so that bounds and
            certificates stay valid. `tell` steps from there, with ``known`` stacked below its constraint. Until then
            ``ask()`` repeats the answer; another ``known`` replaces it. If no point of K satisfies it, that is an
            infeasible round.

        Examples
        --------
        A demand that is known beforehand is met; the loss is not known yet.

        >>> from cocopt import CLASP, Box, constraints, losses
        >>> learner = CLASP(Box(0.0, 10.0, dim=2), start=[3.0, 3.0])
        >>> learner.ask(known=constraints.Equality([1.0, 1.0], 8.0))
        array([4., 4.])
        >>> record = learner.tell(losses.Linear([1.0, 2.0]))
        >>> record.violation
        np.float64(0.0)
        """
        before = self._state
        if known is not None:
            self._state = before._replace(asked=self._answer(known, before.x))
        asked = self._state.asked
        return before.x if asked is None else asked.x

    def play(self, known: Constraint | None = None) -> tuple[int, Array]:
        """Commits to the action of the next round; returns the round's number and x. Its feedback may come late.

        For feedback that comes late, out of order, in parts or never: ``tell(loss, constraint, round=...)`` brings it,
        both halves at once or each when it comes, and `forget` gives up what is missing. `pending` lists the rounds
        that lack something; memory is bounded by them.

        Parameters
        ----------
        known : Constraint, optional
            As for `ask`.

        Examples
        --------
        >>> from cocopt import CLASP, Box, constraints, losses
        >>> learner = CLASP(Box(0.0, 1.0, dim=2), start=[1.0, 1.0])
        >>> first, x = learner.play()
        >>> second, x = learner.play()
        >>> record = learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([0.0, 1.0], 0.5), round=second)
        >>> learner.pending
        (1,)
        >>> learner.forget(first)
        """
        if not self.accepts_delays:
            raise InvalidInput(
                f"play: expected an algorithm whose analysis covers feedback that comes late, such as CLASP, got "
                f"{type(self).__name__}; ask() and tell() remain"
            )
        x = self.ask(known)
        before = self._state
        number, asked = before.rounds + 1, before.asked
        waiting = Played(number, x, None if asked is None else asked.known)
        self._state = before._replace(
            rounds=number, x=self._iterate(before), asked=None, pending={**before.pending, number: waiting}
        )
        return number, x

    def forget(self, round: int) -> None:
        """Gives up the feedback that a pending round still lacks; what has come counts."""
        before = self._state
        waiting = self._waiting(round)
        self._state = before._replace(pending={n: one for n, one in before.pending.items() if n != waiting.round})

    def tell(
        self,
        loss: Loss | None = None,
        constraint: Constraint | None = None,
        *,
        played: ArrayLike | None = None,
        round: int | None = None,
    ) -> Round:
        """Reveals f_t and g_t, and moves on to x_{t+1}.

        All or nothing: if anything raises, the learner is as it was before.

        Parameters
        ----------
        loss : Loss, optional
        constraint : Constraint, optional
            A round may reveal only one of the two.
        played : array (..., n), optional
            The action that was really executed in this very round, if it differed from `ask`: loss and constraint
            count there, and the step goes from the iterate along the gradient there. It is the wrong tool for feedback
            that comes late: that belongs to the round in which the action was played (see `play`).
        round : int, optional
            The pending round that this is the feedback of (see `play`). Without it, that of the action last asked
            for; then no round may be pending.
        """
        before = self._state
        if round is not None:
            waiting = self._waiting(round)
            for name, given, has in (
                ("loss", loss, waiting.has_loss),
                ("constraint", constraint, waiting.has_constraint),
            ):
                if given is not None and has:
                    raise InvalidInput(f"{name}: expected none, since that of round {round} has come, got another")
            if loss is None and constraint is None:
                raise InvalidInput("tell: expected a loss or a constraint for a pending round, got neither")
            return self._complete(before, waiting, loss, constraint, played)
        if before.pending:
            raise InvalidInput(
                f"round: expected one of the pending rounds {_some(tuple(before.pending))}, got None; "
                "say which round the feedback is of, or forget(round)"
            )
        if played is None and before.asked is None and self.stream is not None:
            done = self.stream.play(before, loss, constraint)
            if done is not None:
                return self._play_compiled(before, loss, constraint, done)
        return self._complete(before, None, loss, constraint, played)

    def _play_compiled(
        self, before: LearnerState, loss: Loss | None, constraint: Constraint | None, done: tuple[Any, ...]
    ) -> Round:
        """A usual round of one stream, which one compiled call has played."""
        losses, x, ledger, memory, record = done
        if self._watch.movement:  # for a few rounds: evaluated once more, for the gradient
            self._watch.see(self._evaluate_round(before, None, loss, constraint, None), x)
        self._recent.append(before.x)
        t, rounds = before.t + 1, before.rounds + 1
        self.__dict__["_state"] = make_tuple(LearnerState, (t, losses, x, ledger, memory, rounds, None, before.pending))
        return make_tuple(Round, (rounds, *record))

    def _complete(
        self,
        before: LearnerState,
        waiting: Played | None,
        loss: Loss | None,
        constraint: Constraint | None,
        played: ArrayLike | None,
    ) -> Round:
        """The round, or half a round, is evaluated, counted, and followed by the algorithm's update.

        Its length exceeds the guide: what may go wrong is caught here, so that the state changes at the end alone.
        """
        try:
            feedback = self._evaluate_round(before, waiting, loss, constraint, played)
            update = self.update(before.memory, feedback)
        except RuntimeWarning:  # numpy's report of infinite data, where warnings are errors; ours names the argument
            with ignore_fp_warnings():  # (not always, since that would slow down every operation inside)
                feedback = self._evaluate_round(before, waiting, loss, constraint, played)
                update = self.update(before.memory, feedback)
        except InfeasibleRound:
            if constraint is not None:
                self._refuse_wrong_subgradients(constraint, before.x)
            raise
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
        if self._watch.active:
            self._watch.see(feedback, x)
        feasible, infeasible = update.feasible, None
        if feasible is np.True_:
            feasible = _all_true(x.shape[:-1]) if x.ndim > 1 else feasible
        elif not np.all(feasible):
            infeasible = ~feasible
        loss_value = None if feedback.loss is None else feedback.value
        begins = feedback.t - before.t  # 0 for the second half of a round
        names = feedback.constraint.row_names if feedback.constraint is not None and feedback.constraint.named else None
        ledger, violation = before.ledger.with_round(loss_value, feedback.rows, update.past, infeasible, begins, names)
        number, rounds, asked, pending = before.rounds + 1, before.rounds + 1, None, before.pending
        if waiting is not None:
            number, rounds = waiting.round, before.rounds
            pending = _after_feedback(pending, waiting, loss is not None, constraint is not None)
            asked = before.asked and self._answer(before.asked.known, x)
        if x.ndim == 1:  # late feedback is a matter of single streams, and a batch would keep much
            self._recent.append(before.x if played is not None or waiting is not None else feedback.played)
        self.__dict__["_state"] = make_tuple(  # (at once, since every assignment is checked)
            LearnerState, (feedback.t, feedback.losses, x, ledger, update.memory, rounds, asked, pending)
        )
        return make_tuple(
            Round, (number, feedback.value, feedback.rows, violation, update.step, update.method, feasible, names)
        )

    def _answer(self, known: Constraint, x: Array) -> Asked:
        """The point of K ∩ {known ≤ 0} nearest to x, which counts as what was asked for."""
        if self.projection_free or not self.accepts_known or self.static or self.agents is not None:
            raise InvalidInput(
                f"known: expected None, since the analysis of {type(self).__name__} does not allow to play another "
                f"point than its own, got {describe(known)}"
            )
        self._require_fit("known", known, Constraint)
        if np.broadcast_shapes(known.batch, self.batch) != self.batch:
            raise InvalidInput(f"known: expected leading axes {self.batch} of the trials, got {known.batch}")
        own = own_copy(known)
        found = solve_projection(self.K, own, x, infeasible="raise" if self.infeasible == "raise" else "nearest")
        point = found.point
        if self.infeasible == "skip":
            point = np.where(np.asarray(found.feasible)[..., None], point, x)
        point.setflags(write=False)
        return Asked(own, point, found.feasible)

    def _iterate(self, before: LearnerState) -> Array:
        """From where the coming step goes: the point asked for, or, where nothing known could be met, x itself.

        If rounds may be skipped, always x itself: the certificate is then about actions that need not satisfy what was
        known, which may be farther from the point asked for; it charges the drift instead.
        """
        x, asked = before.x, before.asked
        if self.infeasible == "skip":
            return x
        if asked is None or np.all(asked.feasible):
            return x if asked is None else asked.x
        iterate = np.where(np.asarray(asked.feasible)[..., None], asked.x, x)
        iterate.setflags(write=False)
        return iterate

    def _refuse_wrong_subgradients(self, constraint: Constraint, x: Array) -> None:
        """An error that names the constraint, if its own subgradients contradict its values: it may be feasible."""
        nearest = np.broadcast_to(self.K.project_unchecked(np.zeros(self.K.dim)), x.shape)
        refuse_wrong_subgradients(constraint, x, self._start, nearest)

    def _waiting(self, round: Any) -> Played:
        """The pending round of that number."""
        state = self._state
        try:
            number = None if isinstance(round, bool) else operator.index(round)
        except TypeError:
            number = None
        if number is not None and number in state.pending:
            return state.pending[number]
        got = describe(round)
        if number is not None and 0 < number <= state.rounds:
            got = f"{number}, whose feedback has come or was given up"
        raise InvalidInput(f"round: expected one of the pending rounds {_some(tuple(state.pending))}, got {got}")

    def _overflow(self) -> InvalidInput:
        return InvalidInput(
            f"tell: expected constants, gradients and rows of moderate size, got some with which the update of "
            f"{type(self).__name__} overflows"
        )

    def _evaluate_round(
        self,
        before: LearnerState,
        waiting: Played | None,
        loss: Loss | None,
        constraint: Constraint | None,
        played: ArrayLike | None,
    ) -> Feedback:
        """The values at the action played, checked."""
        t, losses, x, action = before.t + 1, before.losses, before.x, before.x
        if waiting is not None:
            t -= waiting.has_loss or waiting.has_constraint
            action = waiting.x
            if constraint is not None:
                constraint = _stacked(constraint, waiting.known)
        elif before.asked is not None:
            x, action = self._iterate(before), before.asked.x
            constraint = _stacked(constraint, before.asked.known)
        if played is not None:
            action = self._executed(played, action)
        value: Any = _ZERO
        gradient = gradient_sq = rows = drift = None
        if loss is not None:
            losses += 1
            if not (type(loss) in self._loss_types and loss.dim == self.K.dim):
                self._require_fit("loss", loss, Loss)
            value, gradient = loss.value_and_gradient_unchecked(action)
            gradient_sq = squared_norm(gradient)
            if not _all_finite(value + gradient_sq) and not (_all_finite(value) and all_finite(gradient)):
                loss.raise_nonfinite(action)
            if gradient.shape != x.shape:
                raise InvalidInput(f"loss: expected leading axes {self.batch} of the trials, got {gradient.shape[:-1]}")
            if action is not x:
                drift = np.vecdot(gradient, action - x)
            if self._along_hull is not None:
                gradient = self._along_hull(gradient)
                gradient_sq = squared_norm(gradient)
        if constraint is not None:
            if not (type(constraint) in self._constraint_types and constraint.dim == self.K.dim):
                self._require_fit("constraint", constraint, Constraint)
            rows = constraint.rows_unchecked(action)
            if not _rows_finite(rows):
                rows = constraint.rows(action)  # names the argument, unless idle rows alone are infinite
            if rows.shape[:-1] != x.shape[:-1]:
                raise InvalidInput(
                    f"constraint: expected leading axes {self.batch} of the trials, got {rows.shape[:-1]}"
                )
        return make_tuple(
            Feedback,
            (t, losses, x, action, loss, value, gradient, gradient_sq, constraint, rows, drift, self._along_hull),
        )

    def _executed(self, played: ArrayLike, action: Array) -> Array:
        """The action that was really executed, checked; ``action`` itself where it is the same."""
        given = np.array(require_finite("played", as_points("played", played, self.K.dim)))  # it may be x_{t+1}
        if given.shape != action.shape:
            raise InvalidInput(f"played: expected shape {action.shape} as that of ask(), got {given.shape}")
        if np.array_equal(given, action):
            return action
        self._watch.see_played(given, self._recent, self.t)
        return given

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

    def save(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Stores the learner, so that ``cocopt.load(path)`` continues bit for bit.

        One ``.npz`` of plain arrays and JSON, replaced atomically; a file that is open for writing gets the same
        bytes. What cannot be stored (a callable, a set whose class is not registered) must be passed to `cocopt.load`
        again.
        """
        state.write(path, *self._described())

    def dumps(self) -> bytes:
        """The bytes that `save` would write, for a database or a cache; `cocopt.loads` makes the learner again.

        Examples
        --------
        >>> import cocopt
        >>> learner = cocopt.CLASP(cocopt.Box(0.0, 1.0, dim=2))
        >>> cocopt.loads(learner.dumps())
        CLASP(Box(lower=0 (shape (2,)), upper=1 (shape (2,)), dim=2), t=0)
        """
        return state.pack(*self._described(), plain=True)

    def _described(self) -> tuple[dict[str, Any], state.Arrays]:
        """The learner as a JSON-able description and arrays."""
        name = registry.name_of(type(self))
        if name is None:
            raise NotStorable(f"save: {type(self).__name__} cannot be stored: register it with @cocopt.register")
        parameters, own = self._described_parameters()
        header: dict[str, Any] = {"algorithm": name, "parameters": parameters}
        arrays: state.Arrays = {**own}
        fields = self._state._replace(pending=list(self._state.pending.values()))._asdict()  # type: ignore[arg-type]
        try:
            for key, value in fields.items():
                header[key], own = state.encode(value, key)
                arrays.update(own)
        except TypeError as error:
            raise NotStorable(
                f"save: the learner remembers what cannot be stored: {error}. A black box is code, and a state file "
                "holds data alone: describe the constraint by its structure, or do not remember it (window=1)"
            ) from error
        return header, arrays

    def _described_parameters(self) -> tuple[dict[str, Any], state.Arrays]:
        """The same for the constructor's arguments; described anew only if one of them is another object."""
        values = self.parameters()
        known = self._described_before
        if known is not None and [*map(id, known[0].values())] == [*map(id, values.values())]:
            return known[1], known[2]
        parameters: dict[str, Any] = {}
        arrays: state.Arrays = {}
        for key, value in values.items():
            try:
                parameters[key], own = state.encode(value, f"parameters.{key}")
            except TypeError:
                parameters[key], own = {"absent": key}, {}
            arrays.update(own)
        if not any(isinstance(value, list | dict | np.ndarray) for value in values.values()):  # which may change
            self._described_before = values, parameters, arrays
        return parameters, arrays

    @classmethod
    def from_stored(cls, header: dict[str, Any], arrays: state.Arrays, supplied: Mapping[str, Any]) -> Self:
        """The learner that `save` described, or a `StateError`; what could not be stored is ``supplied``."""
        names = ("parameters", *LearnerState._fields)
        if not {"rounds", "asked", "pending"} & header.keys():  # format 2 had no rounds without feedback
            header = {**header, "rounds": header.get("t"), "asked": None, "pending": []}
        with state.refusing("state", cls.__name__):
            stored = dict(zip(names, state.as_fields(header, *names), strict=True))
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
            rounds, asked, pending = restored_rounds(values, learner.K, learner.batch, t)
            if pending and not learner.accepts_delays:
                raise StateError(f"pending: expected none, since {cls.__name__} has no feedback that comes late")
            learner._state = LearnerState(t, losses, learner._start, ledger, memory, rounds, asked, pending)
        return learner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.K!r}, t={self.t})"

    def _repr_html_(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        if self.rounds != self.t:
            rounds += f", {self.t} with feedback"
        trials = f", trials of shape {self.batch}" if self.batch else ""
        items = {"K": repr(self.K), "iterate": self._state.x, **self.ledger.html_items()}
        certificate: Any = getattr(self, "certificate", None)
        if certificate is not None:
            items["certificate"] = repr(certificate()).removeprefix("Certificate(").removesuffix(")")
        return html.card(type(self).__name__, f"{rounds}{trials}", items)


def _nearest_within_rounding(K: ConvexSet, x: Array, dtype: Any) -> Array:
    """The nearest points of K, if numbers of less precision than ours explain why x is outside; else x."""
    if dtype not in (np.float32, np.float16):
        return x
    nearest = K.project_unchecked(x)
    rounding = 4 * float(np.finfo(dtype).eps) * np.maximum(np.abs(x).max(axis=-1, keepdims=True), K.scale)
    return nearest if (np.abs(nearest - x) <= rounding).all() else x


def _stacked(constraint: Constraint | None, known: Constraint | None) -> Constraint | None:
    """What a round reveals, and below it what was known before."""
    if known is None or constraint is None:
        return constraint if known is None else known
    return Stack([constraint, known])


def _after_feedback(
    pending: Mapping[int, Played], waiting: Played, has_loss: bool, has_constraint: bool
) -> Mapping[int, Played]:
    """The pending rounds once one of them has had more feedback."""
    has_loss, has_constraint = waiting.has_loss or has_loss, waiting.has_constraint or has_constraint
    left = {
        number: one for number, one in pending.items() if number != waiting.round or not (has_loss and has_constraint)
    }
    if waiting.round in left:
        left[waiting.round] = waiting._replace(has_loss=has_loss, has_constraint=has_constraint)
    return left


def _some(rounds: tuple[int, ...], limit: int = 8) -> str:
    """The first of the rounds, in words."""
    shown = ", ".join(map(str, rounds[:limit])) or "(none)"
    return shown if len(rounds) <= limit else f"{shown}, … ({len(rounds)} in all)"


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
