"""What a problem is: a seeded source of rounds.

The data of a trial depend on (seed, trial, block of rounds) alone, so that trial k has the same rounds whatever other
trials are run with it, for any number of rounds and on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.arrays import Array, as_integers, describe, nonnegative_int, positive_int
from cocopt.constraints import Constraint, Stack
from cocopt.errors import InvalidInput
from cocopt.losses import Loss
from cocopt.sets.base import ConvexSet

__all__ = [
    "Block",
    "BlockProblem",
    "Data",
    "MixedConstraint",
    "MixedLoss",
    "Pair",
    "Problem",
    "Section",
    "check_seed",
    "sections_of",
    "stack",
    "stack_members",
    "trial_numbers",
]

#: what a round reveals
Pair: TypeAlias = tuple[Loss | None, Constraint | None]
#: the data of a block of rounds, one array per argument of `Problem.reveal`
Data: TypeAlias = tuple[NDArray[Any], ...]
#: (first round, number of rounds, function that reveals the k-th of them)
Block: TypeAlias = tuple[int, int, Callable[[int], Pair]]
#: (number of rounds, function that reveals a slice of them with a leading axis for rounds)
Section: TypeAlias = tuple[int, Callable[[slice], Pair]]


class Problem:
    """A seeded source of rounds. A subclass defines `K`, `rounds` and `round`; everything else has a default.

    Every round of every trial is then one Python call; [`BlockProblem`][cocopt.problems.BlockProblem] is faster.
    Constants that are None are unknown; an algorithm that needs one raises an error that names it.

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
    #: B with |g_{t,i}(x)| ≤ B for every x in K, every round and every row that is not switched off
    bound: float | None = None
    #: ε > 0 with g_t(x_1) ≤ −ε in every round: the start satisfies all constraints, with that much to spare
    slack: float | None = None
    #: a modulus m that every loss has
    strong_convexity: float = 0.0
    #: whether some point of K satisfies all constraints, if that is known beforehand
    feasible: bool | None = None
    #: whether the constraint is the same in every round, if that is known
    static: bool | None = None
    #: rounds that are drawn at once, from one random stream per trial
    block_rounds: ClassVar[int] = 256
    #: the number of agents, if each has losses and constraints of its own: `start` is then (B, agents, n), what a round
    #: reveals has leading axes (B, agents), and `stacked_rounds` gives the mean of the agents' losses, and all rows
    agents: int | None = None
    #: what the problem was made with, plain values only
    options: Mapping[str, Any] = {}
    #: whether trials are played one by one, since they lack feedback in different rounds: `blocks` of one trial then
    #: reveals losses and constraints without the axis of trials
    one_by_one: bool = False
    #: the name under which results are filed, by default that of the class
    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = vars(cls).get("name", cls.__name__)

    @property
    def algorithm_defaults(self) -> dict[str, float]:
        """Constants for algorithms that need them, by the names of constructors' arguments, as far as they are known.

        These are "lipschitz" (of losses and constraints), "diameter", "bound" and "slack".
        """
        lipschitz = None
        if self.lipschitz_f is not None and self.lipschitz_g is not None:
            lipschitz = max(self.lipschitz_f, self.lipschitz_g)
        diameter = self.K.diameter if self.K.bounded else None
        constants = {"lipschitz": lipschitz, "diameter": diameter, "bound": self.bound, "slack": self.slack}
        return {name: value for name, value in constants.items() if value is not None}

    @property
    def identity(self) -> Any:
        """What distinguishes its data from those of every other problem, as JSON; None if it cannot say."""
        own = type(self).__module__.startswith("cocopt.")
        return {"problem": self.name, "options": self.options} if own else None

    def check_size(self, trials: int, rounds: int) -> None:
        """Raises an error if there are not so many different trials, or rounds; by default there are."""
        return

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        """x_1 of one trial, a point of K, or one per agent; by default the projection of 0."""
        return self.K.project(np.zeros(self.K.dim))

    def round(self, rng: np.random.Generator, t: int) -> Pair:
        """(loss, constraint) of round t = 1, 2, … of one trial, or None for one of them; random by ``rng`` alone."""
        raise NotImplementedError(f"{type(self).__name__}: define round(self, rng, t), or derive from BlockProblem")

    def start(self, seed: int, trials: ArrayLike) -> Array:
        """x_1 of these trials, (B, n); with agents (B, agents, n)."""
        return np.stack(
            [np.asarray(self.initial(_generator(seed, k, 0)), dtype=np.float64) for k in trial_numbers(trials)]
        )

    def blocks(self, seed: int, trials: ArrayLike, rounds: int | None = None) -> Iterator[Block]:
        """The rounds 1, …, ``rounds`` of these trials, block by block: (first round, count, reveal).

        reveal(k) is (loss, constraint) of round first + k, 0 ≤ k < count, with one entry per trial. One block at a
        time is held in memory.
        """
        for first, data in self.data_blocks(seed, trials, rounds):

            def reveal(k: int, data: Data = data) -> Pair:
                return self.reveal(*(array[k] for array in data))

            yield first, len(data[0]), reveal

    def stacked_rounds(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[tuple[int, Pair]]:
        """One trial's rounds, many at a time: (count, (loss, constraint)) with a leading axis for the rounds.

        A loss or a constraint that is the same in all these rounds may lack the axis. With agents a round has the mean
        of their losses and all their rows.
        """
        for count, reveal in self.sections(seed, trial, rounds):
            yield count, reveal(slice(None))

    def sections(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[Section]:
        """As `stacked_rounds`: (count, reveal), where reveal(part) is (loss, constraint) of a slice of these rounds."""
        for _, data in self.data_blocks(seed, [trial], rounds):
            yield from sections_of(zip(*(array[:, 0] for array in data), strict=True), self.reveal)

    def reveal(self, *data: NDArray[Any]) -> Pair:
        """(loss, constraint) of rounds whose data are given, with the leading axes of the data."""
        return stack_members(*data)

    def data_blocks(self, seed: int, trials: ArrayLike, rounds: int | None = None) -> Iterator[tuple[int, Data]]:
        """The data behind `blocks`: the number of each block's first round, and arrays (count, B, ...)."""
        chosen = trial_numbers(trials)
        horizon = positive_int("rounds", self.rounds if rounds is None else rounds)
        for block, before in enumerate(range(0, horizon, self.block_rounds)):
            count = min(self.block_rounds, horizon - before)
            data: Data = ()
            for i, trial in enumerate(chosen):
                drawn = self._draw_trial(_generator(seed, trial, block + 1), trial, before + 1, count)
                if i == 0:
                    data = tuple(np.empty((count, len(chosen), *own.shape[1:]), own.dtype) for own in drawn)
                for array, own in zip(data, drawn, strict=True):
                    array[:, i] = own[:count]
            yield before + 1, data

    def _draw_trial(self, rng: np.random.Generator, trial: int, first: int, count: int) -> Data:
        """The data of at least ``count`` rounds of one trial; here the losses and the constraints themselves."""
        losses, constraints = np.empty(count, dtype=object), np.empty(count, dtype=object)
        for k in range(count):
            pair = self.round(rng, first + k)
            if not _is_pair(pair):
                where = f"{self.name}: round {first + k} of trial {trial}"
                raise InvalidInput(f"{where}: expected (loss, constraint), got {describe(pair)}")
            losses[k], constraints[k] = pair
        return losses, constraints

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
    """A problem whose rounds are drawn many at a time, as arrays. A subclass defines `K`, `rounds`, `draw`, `reveal`.

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

    def draw(self, rng: np.random.Generator, first: int, count: int) -> Data:
        """The data of the rounds first, …, first + count − 1 of one trial: arrays with leading axis ``count``.

        ``count`` is always `block_rounds`, even if fewer rounds are needed, so that the data do not depend on the
        horizon.
        """
        raise NotImplementedError(f"{type(self).__name__}: define draw(self, rng, first, count)")

    def reveal(self, *data: NDArray[Any]) -> Pair:
        raise NotImplementedError(
            f"{type(self).__name__}: define reveal(self, …), with an argument for each array of draw"
        )

    def sections(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[Section]:
        for _, data in self.data_blocks(seed, [trial], rounds):

            def reveal(part: slice, data: Data = data) -> Pair:
                return self.reveal(*(array[part, 0] for array in data))

            yield len(data[0]), reveal

    def _draw_trial(self, rng: np.random.Generator, trial: int, first: int, count: int) -> Data:
        return self.draw(rng, first, self.block_rounds)


class MixedLoss(Loss):
    """Losses that cannot be one object with leading axes: an array of them, one per trial or round."""

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

    def trials_unchecked(self, index: Any) -> Loss:
        chosen = self.members[index]
        return MixedLoss(chosen) if isinstance(chosen, np.ndarray) else chosen


class MixedConstraint(Constraint):
    """Constraints that cannot be one object with leading axes: an array of them, with equal numbers of rows."""

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
        return self._evaluate(x, lambda member, point: member.rows(point), (self.row_count,))

    def jacobian_unchecked(self, x: Array) -> Array:
        return self._evaluate(x, lambda member, point: member.jacobian(point), (self.row_count, x.shape[-1]))

    def magnitude(self, x: Array) -> Array:
        return self._evaluate(x, lambda member, point: member.magnitude(point), (self.row_count,))

    def _evaluate(self, x: Array, call: Callable[[Constraint, Array], Array], shape: tuple[int, ...]) -> Array:
        x = np.broadcast_to(x, (*self.batch, x.shape[-1]))
        values = np.empty((*self.batch, *shape))
        for index, member in np.ndenumerate(self.members):
            values[index] = call(member, x[index])
        return values

    def trials_unchecked(self, index: Any) -> Constraint:
        chosen = self.members[index]
        return MixedConstraint(chosen) if isinstance(chosen, np.ndarray) else chosen


def stack_members(losses: NDArray[Any], constraints: NDArray[Any]) -> Pair:
    """Arrays of losses and of constraints as one loss and one constraint, with the axes of the arrays."""
    return stack(losses, MixedLoss), stack(constraints, MixedConstraint)


def sections_of(pairs: Iterable[Pair], reveal: Callable[..., Pair] = stack_members) -> Iterator[Section]:
    """Single losses and constraints, one pair per round, in sections of rounds that have the same layout."""
    for _, group in groupby(pairs, key=lambda pair: [_layout(member) for member in pair]):
        members = np.array([*group], dtype=object)

        def reveal_part(part: slice, members: NDArray[Any] = members) -> Pair:
            return reveal(*members[part].T)

        yield len(members), reveal_part


def _is_pair(value: Any) -> bool:
    """Whether it is (loss, constraint), each of which may be None."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return False
    loss, constraint = value
    return (loss is None or isinstance(loss, Loss)) and (constraint is None or isinstance(constraint, Constraint))


def _stack_nested(flat: list[Any], shape: tuple[int, ...]) -> Constraint | None:
    """Stacks of the same members, names and weights as one such stack; None if they differ, or are no stacks."""
    first = flat[0]
    if not isinstance(first, Stack) or not all(type(one) is Stack and one.is_alike(first) for one in flat):
        return None
    parts = [_as_objects([one.members[i] for one in flat], shape) for i in range(len(first.members))]
    return first.with_members([stack(part, MixedConstraint) for part in parts])


def _as_objects(members: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of these objects, of that shape."""
    array = np.empty(len(members), dtype=object)
    array[:] = members
    return array.reshape(shape)


def stack(members: NDArray[Any], mixed: Callable[[NDArray[Any]], Any]) -> Any:
    """An array of losses, or of constraints, as one object with the axes of the array as its leading axes.

    That is an object of the same class if the members have the same layout, else one of the class ``mixed``.
    """
    flat: list[Any] = members.ravel().tolist()
    missing = [member is None for member in flat]
    if all(missing):
        return None
    if any(missing):
        raise InvalidInput("round: expected a loss (or a constraint) in every trial or in none, got both")
    nested = _stack_nested(flat, members.shape)
    if nested is not None:
        return nested
    cls, shapes, _ = layout = _layout(flat[0])
    if not shapes or any(_layout(member) != layout for member in flat):
        return mixed(members)
    arguments = [_array_arguments(member) for member in flat]
    return cls(
        **{
            name: np.stack([own[name] for own in arguments]).reshape(*members.shape, *shape)
            for name, shape in shapes.items()
        }
    )


def _layout(member: Any) -> tuple[Any, dict[str, tuple[int, ...]], int]:
    """What losses or constraints must have in common to become one: class, shapes of the data, number of rows."""
    shapes = {name: array.shape for name, array in _array_arguments(member).items()}
    return type(member), shapes, getattr(member, "row_count", 1)


def _array_arguments(member: Any) -> dict[str, Array]:
    """The constructor's arguments if all are arrays; none for a black box, a stack, or None."""
    if member is None:
        return {}
    if not hasattr(member, "parameters"):
        return {name: array for name, array, *_ in member.data_arrays()}
    try:
        arguments: dict[str, Array] = member.parameters()
    except TypeError:  # a black box
        return {}
    return arguments if all(isinstance(value, np.ndarray) for value in arguments.values()) else {}


def check_seed(seed: int) -> int:
    """A non-negative integer."""
    return nonnegative_int("seed", seed)


def trial_numbers(trials: ArrayLike) -> Sequence[int]:
    """The numbers of some trials as a list of integers, checked."""
    expected = "trial numbers from 0 on"
    chosen = as_integers("trials", trials, expected)
    if chosen.ndim != 1 or chosen.min() < 0:
        raise InvalidInput(f"trials: expected {expected}, got {describe(trials)}")
    return [int(k) for k in chosen]


def _generator(seed: int, trial: int, stream: int) -> np.random.Generator:
    """The random stream of a trial's start (0) or of its block number ``stream`` (from 1 on)."""
    return np.random.default_rng(np.random.SeedSequence(check_seed(seed), spawn_key=(trial, stream)))
