"""What a problem is: a seeded source of rounds.

The data of a trial depend on (seed, trial, block of rounds) alone, so that trial k sees the same rounds whatever other
trials run beside it, however many rounds are asked for, and on whichever machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.arrays import Array, describe, positive_int
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.losses import Loss
from cocopt.sets.base import ConvexSet

__all__ = ["BlockProblem", "EachConstraint", "EachLoss", "Problem", "numbers", "one_of"]

Pair: TypeAlias = tuple[Loss | None, Constraint | None]
Columns: TypeAlias = tuple[NDArray[Any], ...]
Block: TypeAlias = tuple[int, int, Callable[[int], Pair]]


class Problem:
    """A seeded source of rounds. An own problem needs `K`, `rounds` and `round`; everything else has a default.

    Every round of every trial is then one Python call; [`BlockProblem`][cocopt.problems.BlockProblem] is the form for
    speed. Constants that are left None are unknown: algorithms that need them say so.

    Examples
    --------
    >>> from cocopt import Box, constraints, losses, problems
    >>> class Noise(problems.Problem):
    ...     K = Box(0.0, 1.0, dim=2)
    ...     rounds = 10
    ...
    ...     def round(self, rng, t):
    ...         return losses.Distance(rng.normal(size=2)), constraints.Affine(rng.uniform(size=2), 1.0)
    >>> problem = Noise()
    >>> problem.start(seed=0, trials=[0, 1, 2])
    array([[0., 0.],
           [0., 0.],
           [0., 0.]])
    >>> for first, count, reveal in problem.blocks(seed=0, trials=[0, 1, 2], rounds=5):
    ...     print(first, count, reveal(0))
    1 5 (Distance(center of shape (3, 2)), Affine(A of shape (3, 1, 2), b of shape (3, 1)))
    """

    kind: ClassVar[str] = "problem"
    #: the set of actions
    K: ConvexSet
    #: the usual number of rounds
    rounds: int
    #: bounds on the norms of all subgradients of losses and constraints over K
    lipschitz_f: float | None = None
    lipschitz_g: float | None = None
    #: a modulus m that every loss has
    strong_convexity: float = 0.0
    #: whether some point of K satisfies all constraints, if that is known beforehand
    feasible: bool | None = None
    #: rounds that are drawn at once, from one random stream a trial
    block_rounds: ClassVar[int] = 256
    #: what the problem was made with, plain values only
    options: Mapping[str, Any] = {}
    #: the name under which results are filed, by default that of the class
    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = vars(cls).get("name", cls.__name__)

    @property
    def algorithm_defaults(self) -> dict[str, float]:
        """What is handed to algorithms that ask, as far as it is known: "lipschitz" (of f and g), "diameter"."""
        known = {}
        if self.lipschitz_f is not None and self.lipschitz_g is not None:
            known["lipschitz"] = max(self.lipschitz_f, self.lipschitz_g)
        if self.K.bounded:
            known["diameter"] = self.K.diameter
        return known

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        """x_1 of one trial, a point of K; by default the one nearest to 0."""
        return self.K.project(np.zeros(self.K.dim))

    def round(self, rng: np.random.Generator, t: int) -> Pair:
        """(loss, constraint) of round t = 1, 2, … of one trial, or None for one of them; random by ``rng`` alone."""
        raise NotImplementedError(f"{type(self).__name__}: define round(self, rng, t), or derive from BlockProblem")

    def start(self, seed: int, trials: ArrayLike) -> Array:
        """x_1 of these trials, (B, n)."""
        return np.stack([np.asarray(self.initial(_generator(seed, k, 0)), dtype=np.float64) for k in numbers(trials)])

    def blocks(self, seed: int, trials: ArrayLike, rounds: int | None = None) -> Iterator[Block]:
        """The rounds 1, …, ``rounds`` of these trials, block by block: (first round, count, reveal).

        reveal(k) is (loss, constraint) of round first + k, 0 ≤ k < count, with one entry a trial. One block at a time
        is held in memory.
        """
        for first, columns in self._columns(seed, trials, rounds):

            def reveal(k: int, columns: Columns = columns) -> Pair:
                return self.reveal(*(column[k] for column in columns))

            yield first, len(columns[0]), reveal

    def whole_blocks(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[tuple[int, Pair]]:
        """One trial's rounds, many at a time: (count, (loss, constraint)) with a leading axis for the rounds.

        What all these rounds share may lack the axis.
        """
        for _, columns in self._columns(seed, [trial], rounds):
            pairs = zip(*(column[:, 0] for column in columns), strict=True)
            for _, alike in groupby(pairs, key=lambda pair: [_kind(member) for member in pair]):
                members = np.array([*alike], dtype=object)
                yield len(members), self.reveal(*members.T)

    def reveal(self, *columns: NDArray[Any]) -> Pair:
        """(loss, constraint) of rounds whose data are given, with the leading axes of the data."""
        loss, constraint = columns
        return _together(loss, EachLoss), _together(constraint, EachConstraint)

    def _columns(self, seed: int, trials: ArrayLike, rounds: int | None) -> Iterator[tuple[int, Columns]]:
        """The number of the first round and the data, arrays (count, B, ...), of block after block."""
        chosen = numbers(trials)
        horizon = positive_int("rounds", self.rounds if rounds is None else rounds)
        for block, before in enumerate(range(0, horizon, self.block_rounds)):
            count = min(self.block_rounds, horizon - before)
            columns: Columns = ()
            for i, trial in enumerate(chosen):
                drawn = self._draw(_generator(seed, trial, block + 1), trial, before + 1, count)
                if i == 0:
                    columns = tuple(np.empty((count, len(chosen), *c.shape[1:]), c.dtype) for c in drawn)
                for column, own in zip(columns, drawn, strict=True):
                    column[:, i] = own[:count]
            yield before + 1, columns

    def _draw(self, rng: np.random.Generator, trial: int, first: int, count: int) -> Columns:
        """The data of at least ``count`` rounds of one trial."""
        columns = np.empty(count, dtype=object), np.empty(count, dtype=object)
        for k in range(count):
            pair = self.round(rng, first + k)
            if not (isinstance(pair, tuple) and len(pair) == 2 and _is(pair[0], Loss) and _is(pair[1], Constraint)):
                where = f"{self.name}: round {first + k} of trial {trial}"
                raise InvalidInput(f"{where}: expected (loss, constraint), got {describe(pair)}")
            columns[0][k], columns[1][k] = pair
        return columns

    def parameters(self) -> dict[str, Any]:
        """What the problem was made with, so that ``type(p)(**p.parameters())`` is p again."""
        return dict(self.options)

    @classmethod
    def examples(cls) -> list[Self]:
        """Some problems of this class, on which the contract tests are run."""
        return [cls()]

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{type(self).__name__}({inner})"


class BlockProblem(Problem):
    """A problem whose rounds are drawn many at a time, as arrays. It needs `K`, `rounds`, `draw` and `reveal`.

    Examples
    --------
    >>> from cocopt import Box, constraints, losses, problems
    >>> class Noise(problems.BlockProblem):
    ...     K = Box(0.0, 1.0, dim=2)
    ...     rounds = 10
    ...
    ...     def draw(self, rng, first, count):
    ...         return rng.normal(size=(count, 2)), rng.uniform(size=(count, 1, 2))
    ...
    ...     def reveal(self, c, A):
    ...         return losses.Distance(c), constraints.Affine(A, np.ones(A.shape[:-1]))
    >>> import numpy as np
    >>> first, count, reveal = next(Noise().blocks(seed=0, trials=range(100)))
    >>> reveal(0)
    (Distance(center of shape (100, 2)), Affine(A of shape (100, 1, 2), b of shape (100, 1)))
    """

    def draw(self, rng: np.random.Generator, first: int, count: int) -> Columns:
        """The data of the rounds first, …, first + count − 1 of one trial: arrays with leading axis ``count``.

        Always asked for `block_rounds` rounds, needed or not, so that the data do not depend on the horizon.
        """
        raise NotImplementedError(f"{type(self).__name__}: define draw(self, rng, first, count)")

    def reveal(self, *columns: NDArray[Any]) -> Pair:
        raise NotImplementedError(
            f"{type(self).__name__}: define reveal(self, …), with an argument for each array of draw"
        )

    def whole_blocks(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[tuple[int, Pair]]:
        for _, columns in self._columns(seed, [trial], rounds):
            yield len(columns[0]), self.reveal(*(column[:, 0] for column in columns))

    def _draw(self, rng: np.random.Generator, trial: int, first: int, count: int) -> Columns:
        return self.draw(rng, first, self.block_rounds)


class EachLoss(Loss):
    """A loss of its own kind for each trial or round."""

    __slots__ = ("batch", "dim", "members")

    def __init__(self, members: NDArray[Any]) -> None:
        self.members = members
        self.batch: tuple[int, ...] = members.shape
        self.dim: int | None = members.flat[0].dim

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        x = np.broadcast_to(x, (*self.batch, x.shape[-1]))
        value, gradient = np.empty(self.batch), np.empty(x.shape)
        for index, member in np.ndenumerate(self.members):
            value[index], gradient[index] = member.value_and_gradient(x[index])
        return value, gradient

    @property
    def strong_convexity(self) -> Array:
        return np.array([member.strong_convexity for member in self.members.flat]).reshape(self.batch)


class EachConstraint(Constraint):
    """A constraint of its own kind for each trial or round, all with the same number of rows."""

    __slots__ = ("batch", "dim", "members", "row_count")

    def __init__(self, members: NDArray[Any]) -> None:
        counts = {member.row_count for member in members.flat}
        if len(counts) > 1:
            raise InvalidInput(f"constraint: expected as many rows in every trial, got {sorted(counts)}")
        self.members = members
        self.batch: tuple[int, ...] = members.shape
        self.dim: int | None = members.flat[0].dim
        self.row_count: int = counts.pop()

    def rows_unchecked(self, x: Array) -> Array:
        return self._each(x, lambda member, point: member.rows(point), (self.row_count,))

    def jacobian_unchecked(self, x: Array) -> Array:
        return self._each(x, lambda member, point: member.jacobian(point), (self.row_count, x.shape[-1]))

    def magnitude(self, x: Array) -> Array:
        return self._each(x, lambda member, point: member.magnitude(point), (self.row_count,))

    def _each(self, x: Array, call: Callable[[Constraint, Array], Array], shape: tuple[int, ...]) -> Array:
        x = np.broadcast_to(x, (*self.batch, x.shape[-1]))
        answers = np.empty((*self.batch, *shape))
        for index, member in np.ndenumerate(self.members):
            answers[index] = call(member, x[index])
        return answers

    def trials_unchecked(self, index: Any) -> Constraint:
        picked = self.members[index]
        return EachConstraint(picked) if isinstance(picked, np.ndarray) else picked


def one_of(name: str, value: str, *known: str) -> str:
    """The option's value, if it is one of those known."""
    if value not in known:
        raise InvalidInput(f"{name}: expected one of {', '.join(known)}, got {describe(value)}")
    return value


def _together(members: NDArray[Any], each: Callable[[NDArray[Any]], Any]) -> Any:
    """An array of losses, or of constraints, as one object with the array's axes as its leading axes."""
    everyone: list[Any] = members.ravel().tolist()
    kind, shapes, _ = _kind(everyone[0])
    if any(member is None for member in everyone):
        if kind is not type(None) or any(member is not None for member in everyone):
            raise InvalidInput("round: expected a loss (or a constraint) in every trial or in none, got both")
        return None
    if not shapes or any(_kind(member) != _kind(everyone[0]) for member in everyone):
        return each(members)
    described = [_arguments(member) for member in everyone]
    return kind(
        **{
            key: np.stack([arguments[key] for arguments in described]).reshape(*members.shape, *shape)
            for key, shape in shapes.items()
        }
    )


def _kind(member: Any) -> tuple[Any, dict[str, tuple[int, ...]], int]:
    """What must agree for losses or constraints to become one: class, shapes of the data, number of rows."""
    shapes = {key: array.shape for key, array in _arguments(member).items()}
    return type(member), shapes, getattr(member, "row_count", 1)


def _arguments(member: Any) -> dict[str, Array]:
    """The constructor's arguments if all are arrays; none for a black box, a stack, or None."""
    if member is None:
        return {}
    if isinstance(member, Loss):
        return dict(member.data_arrays())
    try:
        arguments: dict[str, Array] = member.parameters()
    except TypeError:
        return {}
    return arguments if all(isinstance(value, np.ndarray) for value in arguments.values()) else {}


def _is(value: Any, kind: type[Loss] | type[Constraint]) -> bool:
    return value is None or isinstance(value, kind)


def numbers(trials: ArrayLike) -> Sequence[int]:
    """Trial numbers, checked."""
    chosen = np.asarray(trials)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu" or chosen.min() < 0:
        raise InvalidInput(f"trials: expected trial numbers from 0 on, got {describe(trials)}")
    return [int(k) for k in chosen]


def _generator(seed: int, trial: int, stream: int) -> np.random.Generator:
    """The random stream of a trial's start (0) or of its block number ``stream`` (from 1 on)."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(trial, stream)))
