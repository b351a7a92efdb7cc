"""The comparators: each takes trials of a problem, or lists of losses and constraints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocopt.arrays import MAX_INTEGER, Array, as_integers, describe, one_of, positive_int
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.hindsight.dynamic import minimise_rounds
from cocopt.hindsight.expectation import SumMode, sum_constraints
from cocopt.hindsight.piecewise import minimise_blocks
from cocopt.hindsight.rounds import Rounds, Streams, streams_of_lists, streams_of_problem
from cocopt.hindsight.search import Search
from cocopt.losses import Loss
from cocopt.problems.base import Problem
from cocopt.sets.base import ConvexSet
from cocopt.threads import one_blas_thread

__all__ = [
    "DynamicHindsight",
    "Hindsight",
    "PiecewiseHindsight",
    "best_dynamic",
    "best_fixed",
    "best_in_expectation",
    "best_piecewise",
]

_MAX_ROUNDS = 10**7  # of which one action each is kept

Losses = Sequence[Loss | None]
Constraints = Sequence[Constraint | None]


class Hindsight(NamedTuple):
    """The best fixed actions of B trials at C numbers of rounds.

    From lists, the axis B is replaced by the leading axes of the losses and constraints (none for a single stream),
    and without ``checkpoints`` there is no axis C.

    Attributes
    ----------
    value : ndarray (B, C)
        The least Σ f_t, NaN where no action is feasible. It is proven to be above the optimum by at most 1e-6 of it
        (1e-7 unless that takes many steps), rounding of the sums apart; or by 1e-9 of a round's loss if that is more,
        for the optimum may be 0: of the mean up to the least checkpoint, at the point of K nearest to 0.
    feasible : ndarray (B, C) of bool
        Whether some action is feasible.
    point : ndarray (B, C, n)
        x*_T, NaN where there is none.
    """

    value: Array
    feasible: NDArray[np.bool_]
    point: Array


class DynamicHindsight(NamedTuple):
    """The best actions u_t of all T rounds of B trials, each by itself.

    From lists, the axis B is replaced by the leading axes of the losses and constraints (none for a single stream).

    Attributes
    ----------
    value : ndarray (B, T)
        f_t(u_t), 0 in a round without a loss, NaN where K ∩ {g_t ≤ 0} is empty; proven as that of `Hindsight`.
    feasible : ndarray (B, T) of bool
        Whether K ∩ {g_t ≤ 0} has a point.
    point : ndarray (B, T, n)
        u_t, NaN where there is none.
    """

    value: Array
    feasible: NDArray[np.bool_]
    point: Array

    @property
    def running_value(self) -> Array:
        """Σ_{s≤t} f_s(u_s), (B, T), over the rounds that have a u_s."""
        return np.cumsum(np.where(self.feasible, self.value, 0.0), axis=-1)

    @property
    def increments(self) -> Array:
        """‖u_t − u_s‖, (B, T), where s is the last round before t that has a u_s; 0 if u_t or u_s does not exist."""
        rounds = np.arange(self.feasible.shape[-1])
        last = np.maximum.accumulate(np.where(self.feasible, rounds, -1), axis=-1)
        previous = np.concatenate([np.full((*last.shape[:-1], 1), -1), last[..., :-1]], axis=-1)
        before = np.take_along_axis(self.point, np.maximum(previous, 0)[..., None], axis=-2)
        known = self.feasible & (previous >= 0)
        steps = np.where(known[..., None], self.point, 0.0) - np.where(known[..., None], before, 0.0)
        lengths: Array = np.linalg.norm(steps, axis=-1)
        return lengths

    @property
    def path_length(self) -> Array:
        """P_T = Σ_{t≥2} ‖u_t − u_{t−1}‖, (B,), of these u_t: where a minimiser is not unique others may be nearer."""
        total: Array = self.increments.sum(axis=-1)
        return total


class PiecewiseHindsight(NamedTuple):
    """The best actions that are constant on at most N blocks, of B trials at C numbers of rounds.

    From lists, the axis B is replaced by the leading axes of the losses and constraints (none for a single stream),
    and without ``checkpoints`` there is no axis C.

    Attributes
    ----------
    value : ndarray (B, C)
        The least sum of losses, NaN where none is feasible; each block's is proven as that of `Hindsight`.
    feasible : ndarray (B, C) of bool
        Whether every block has an action that satisfies the constraints of its rounds.
    point : ndarray (B, C, N, n)
        The action of each block, NaN where there is none.
    end : ndarray (B, C, N) of int
        The last round of each block; 0 behind the last block.
    """

    value: Array
    feasible: NDArray[np.bool_]
    point: Array
    end: NDArray[np.int64]

    @property
    def path_length(self) -> Array:
        """The sum of the distances between the actions of consecutive blocks, (B, C); NaN where none is feasible."""
        steps = np.linalg.norm(np.diff(self.point, axis=-2), axis=-1)
        total: Array = np.where(self.feasible, np.where(self.end[..., 1:] > 0, steps, 0.0).sum(axis=-1), np.nan)
        return total


@overload
def best_fixed(problem: Problem, seed: int, trials: ArrayLike, checkpoints: ArrayLike) -> Hindsight: ...
@overload
def best_fixed(
    K: ConvexSet, losses: Losses, constraints: Constraints | None = None, checkpoints: ArrayLike | None = None
) -> Hindsight: ...
@one_blas_thread
def best_fixed(*arguments: Any, **options: Any) -> Hindsight:
    """The best fixed action that satisfies the constraints of all rounds, after each of these numbers of rounds.

        x*_T = argmin of Σ_{t≤T} f_t(x) over x in S_T = K ∩ {g_1 ≤ 0} ∩ … ∩ {g_T ≤ 0}

    Takes trials of a problem, ``best_fixed(problem, seed, trials, checkpoints)``, or what a loop has revealed,
    ``best_fixed(K, losses, constraints, checkpoints=None)``.

    Parameters
    ----------
    problem, seed, trials : Problem, int, list of int
        The trials of a seed, by their numbers.
    K, losses, constraints : ConvexSet, list of Loss, list of Constraint
        One entry per round, None where a round revealed none. Leading axes are trials; they broadcast.
    checkpoints : list of int
        Numbers of rounds; by default that of the lists.

    Returns
    -------
    Hindsight

    Examples
    --------
    >>> from cocopt import Box, constraints, hindsight, losses, problems
    >>> best = hindsight.best_fixed(problems.get("olr"), seed=0, trials=[0, 1], checkpoints=[10, 100])
    >>> best.value.shape, best.feasible.all()
    ((2, 2), np.True_)

    The regret of a loop of one's own:

    >>> f = [losses.Distance([1.0, 0.0]), losses.Distance([0.0, 1.0])]
    >>> g = [None, constraints.Affine([1.0, 0.0], 0.25)]
    >>> best = hindsight.best_fixed(Box(0.0, 1.0, dim=2), f, g)
    >>> best.value.round(6), best.point.round(6)
    (np.float64(0.5625), array([0.25, 0.5 ]))
    """
    streams, marks = _dispatch("best_fixed", arguments, options, _problem_with_marks, _lists_with_marks)

    def find(rounds: Rounds, ends: list[int]) -> list[Any]:
        search, found = Search(streams.K, rounds), list[Any]()
        for T in ends:  # S_T only shrinks: the last working set is a good start, and once empty it stays so
            found.append(None if found and found[-1] is None else search.minimise(T))
        return found

    return _best_at_marks(streams, marks, find)


@overload
def best_in_expectation(
    problem: Problem, seed: int, trials: ArrayLike, checkpoints: ArrayLike, *, rows: SumMode = "each"
) -> Hindsight: ...
@overload
def best_in_expectation(
    K: ConvexSet,
    losses: Losses,
    constraints: Constraints | None = None,
    checkpoints: ArrayLike | None = None,
    *,
    rows: SumMode = "each",
) -> Hindsight: ...
@one_blas_thread
def best_in_expectation(*arguments: Any, rows: Any = "each", **options: Any) -> Hindsight:
    """The best fixed action that satisfies the constraints on average, after each of these numbers of rounds.

        argmin of Σ_{t≤T} f_t(x) over x in K with Σ_{t≤T} g_{t,i}(x) ≤ 0 for each row i

    This is the sample form of E g ≤ 0, the comparator of methods for stochastic constraints. Slack in one round offsets
    violation in another, so its loss is at most that of `best_fixed`. For adversarial constraints no method has both
    sublinear regret against it and sublinear violation (Mannor, Tsitsiklis and Yu 2009): it is a measure, not a
    promise. Rounds without a constraint, and rows that are switched off, add nothing.

    Parameters
    ----------
    problem, seed, trials, K, losses, constraints, checkpoints
        As for `best_fixed`.
    rows : "each" or "max"
        Sum each row by itself, for methods with a queue for each row, or Σ_{t≤T} max_i g_{t,i}(x) ≤ 0, for methods
        with one queue.

    Returns
    -------
    Hindsight

    Examples
    --------
    >>> from cocopt import Box, constraints, hindsight, losses
    >>> f = [losses.Linear([-1.0])] * 2
    >>> g = [constraints.Affine([1.0], 0.25), constraints.Affine([1.0], 0.75)]
    >>> K = Box(0.0, 1.0, dim=1)
    >>> hindsight.best_in_expectation(K, f, g).point.round(6), hindsight.best_fixed(K, f, g).point.round(6)
    (array([0.5]), array([0.25]))
    """
    one_of("rows", rows, "each", "max")
    streams, marks = _dispatch("best_in_expectation", arguments, options, _problem_with_marks, _lists_with_marks)

    def find(rounds: Rounds, ends: list[int]) -> list[Any]:
        return [_search_in_expectation(streams.K, rounds, T, rows).minimise(T) for T in ends]

    return _best_at_marks(streams, marks, find)


def _search_in_expectation(K: ConvexSet, rounds: Rounds, T: int, rows: SumMode) -> Search:
    total = sum_constraints(rounds, T, K.dim, rows)
    return Search(K, rounds, limits=Rounds(lambda: [(1, lambda _: (None, total))], 1))


@overload
def best_dynamic(problem: Problem, seed: int, trials: ArrayLike, rounds: int | None = None) -> DynamicHindsight: ...
@overload
def best_dynamic(K: ConvexSet, losses: Losses, constraints: Constraints | None = None) -> DynamicHindsight: ...
@one_blas_thread
def best_dynamic(*arguments: Any, **options: Any) -> DynamicHindsight:
    """The best action of every round by itself, and the length of the path that they make.

        u_t = argmin of f_t(x) over x in K ∩ {g_t ≤ 0},      P_T = Σ_{t≥2} ‖u_t − u_{t−1}‖

    Where K ∩ {g_t ≤ 0} is empty there is no u_t: ``feasible`` says so, and the round is left out of sums and path.
    Where the minimiser is not unique u_t is any of them: the value does not depend on the choice, the path length does,
    and is that of the choice made here. Squared distances are projected all at once; other losses take a program per
    round.

    Parameters
    ----------
    problem, seed, trials, K, losses, constraints
        As for `best_fixed`.
    rounds : int, optional
        How many; by default the problem's own number.

    Returns
    -------
    DynamicHindsight

    Examples
    --------
    >>> from cocopt import Box, constraints, hindsight, losses
    >>> f = [losses.Distance([1.0, 0.0]), losses.Distance([0.0, 1.0])]
    >>> g = [constraints.Affine([1.0, 0.0], 0.25), None]
    >>> best = hindsight.best_dynamic(Box(0.0, 1.0, dim=2), f, g)
    >>> best.point
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    >>> best.value, best.path_length.round(6)
    (array([0.28125, 0.     ]), np.float64(1.030776))
    """
    streams = _dispatch("best_dynamic", arguments, options, _whole_problem, streams_of_lists)
    found = [minimise_rounds(streams.K, rounds) for rounds in _open_each(streams)]
    value, feasible, point = (_reshaped(parts, streams.batch) for parts in zip(*found, strict=True))
    return DynamicHindsight(value, feasible, point)


@overload
def best_piecewise(
    problem: Problem,
    seed: int,
    trials: ArrayLike,
    checkpoints: ArrayLike,
    *,
    breakpoints: ArrayLike,
    switches: int | None = None,
) -> PiecewiseHindsight: ...
@overload
def best_piecewise(
    K: ConvexSet,
    losses: Losses,
    constraints: Constraints | None = None,
    checkpoints: ArrayLike | None = None,
    *,
    breakpoints: ArrayLike,
    switches: int | None = None,
) -> PiecewiseHindsight: ...
@one_blas_thread
def best_piecewise(
    *arguments: Any, breakpoints: Any, switches: int | None = None, **options: Any
) -> PiecewiseHindsight:
    """The best actions that change after given rounds only and satisfy the constraints of their own block of rounds.

    After each checkpoint T, the blocks are those of the breakpoints below T, and the last one ends with T. Each block
    is a problem as that of `best_fixed`. With ``switches``, the best choice of at most so many of the breakpoints is
    found by dynamic programming over the ends of blocks; it takes such a problem for every pair of breakpoints.

    Parameters
    ----------
    problem, seed, trials, K, losses, constraints, checkpoints
        As for `best_fixed`.
    breakpoints : list of int
        The rounds after which the action changes (with ``switches``: may change), in increasing order.
    switches : int, optional
        The largest number of changes; by default the action changes at every breakpoint.

    Returns
    -------
    PiecewiseHindsight

    Examples
    --------
    >>> from cocopt import Box, hindsight, losses
    >>> f = [losses.Distance([c]) for c in (0.0, 0.0, 0.0, 1.0, 1.0, 0.5)]
    >>> K = Box(0.0, 1.0, dim=1)
    >>> hindsight.best_piecewise(K, f, breakpoints=[2]).value.round(6)
    np.float64(0.34375)
    >>> best = hindsight.best_piecewise(K, f, breakpoints=range(1, 6), switches=1)
    >>> best.end, best.point.ravel().round(4)
    (array([3, 6]), array([0.    , 0.8333]))
    """
    ends = _numbers("breakpoints", breakpoints, increasing=True)
    if switches is not None and (
        isinstance(switches, bool) or not isinstance(switches, int | np.integer) or switches < 0
    ):
        raise InvalidInput(f"switches: expected a non-negative integer or None, got {describe(switches)}")
    streams, marks = _dispatch("best_piecewise", arguments, options, _problem_with_marks, _lists_with_marks)
    if ends and ends[-1] >= streams.horizon:
        raise InvalidInput(f"breakpoints: expected rounds before the last, {streams.horizon}, got {ends[-1]}")
    chosen = [streams.horizon] if marks is None else marks
    most = None if switches is None else min(switches, len(ends))
    found = [minimise_blocks(streams.K, rounds, ends, most, chosen) for rounds in _open_each(streams)]
    value, feasible, point, end = (_reshaped(parts, streams.batch) for parts in zip(*found, strict=True))
    if marks is None:
        axis = len(streams.batch)
        value, feasible, point, end = (part.take(0, axis=axis) for part in (value, feasible, point, end))
    return PiecewiseHindsight(value, feasible, point, end)


def _best_at_marks(
    streams: Streams, marks: list[int] | None, find: Callable[[Rounds, list[int]], list[Any]]
) -> Hindsight:
    """What ``find`` returns for each trial at the checkpoints in increasing order, as arrays."""
    chosen = [streams.horizon] if marks is None else marks
    order = np.argsort(chosen, kind="stable")
    trials = int(np.prod(streams.batch))
    shape = (trials, len(chosen))
    value, feasible = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    point = np.full((*shape, streams.K.dim), np.nan)
    for i, rounds in enumerate(_open_each(streams)):
        for c, best in zip(order, find(rounds, [chosen[c] for c in order]), strict=True):
            if best is not None:
                value[i, c], point[i, c] = best
                feasible[i, c] = True
    axes = streams.batch if marks is None else (*streams.batch, len(marks))
    return Hindsight(value.reshape(axes)[()], feasible.reshape(axes)[()], point.reshape(*axes, streams.K.dim))


def _open_each(streams: Streams) -> Any:
    """The rounds of each trial, one after the other."""
    return (streams.open(i) for i in range(int(np.prod(streams.batch))))


def _reshaped(parts: Sequence[NDArray[Any]], batch: tuple[int, ...]) -> Any:
    """The arrays of all trials as one, with the axes of the trials."""
    return np.stack(parts).reshape(*batch, *parts[0].shape)


def _dispatch(
    name: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    of_problem: Callable[..., Any],
    of_lists: Callable[..., Any],
) -> Any:
    """Calls the function for the kind of the first argument."""
    first = arguments[0] if arguments else options.get("problem", options.get("K"))
    if isinstance(first, Problem):
        handler = of_problem
    elif isinstance(first, ConvexSet):
        handler = of_lists
    else:
        raise InvalidInput(f"{name}: expected a problem, or a set K and lists, got {describe(first)}")
    try:
        inspect.signature(handler).bind(*arguments, **options)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    return handler(*arguments, **options)


def _problem_with_marks(
    problem: Problem, seed: int, trials: ArrayLike, checkpoints: ArrayLike
) -> tuple[Streams, list[int]]:
    marks = _numbers("checkpoints", checkpoints)
    return streams_of_problem(problem, seed, trials, max(marks)), marks


def _lists_with_marks(
    K: ConvexSet, losses: Losses, constraints: Constraints | None = None, checkpoints: ArrayLike | None = None
) -> tuple[Streams, list[int] | None]:
    streams = streams_of_lists(K, losses, constraints)
    if checkpoints is None:
        return streams, None
    marks = _numbers("checkpoints", checkpoints)
    if max(marks) > streams.horizon:
        raise InvalidInput(f"checkpoints: expected at most {streams.horizon}, the rounds given, got {max(marks)}")
    return streams, marks


def _whole_problem(problem: Problem, seed: int, trials: ArrayLike, rounds: int | None = None) -> Streams:
    return streams_of_problem(
        problem, seed, trials, positive_int("rounds", problem.rounds if rounds is None else rounds, at_most=_MAX_ROUNDS)
    )


def _numbers(name: Literal["checkpoints", "breakpoints"], given: ArrayLike, increasing: bool = False) -> list[int]:
    """Numbers of rounds from 1 on; breakpoints in increasing order, and there may be none."""
    if increasing and isinstance(given, list | tuple) and not given:
        return []
    expected = "numbers of rounds from 1 on, in increasing order" if increasing else "numbers of rounds from 1 on"
    numbers = as_integers(name, given, expected)
    if (
        numbers.ndim != 1
        or numbers.min() < 1
        or numbers.max() > MAX_INTEGER
        or (increasing and (np.diff(numbers) <= 0).any())
    ):
        raise InvalidInput(f"{name}: expected {expected}, got {describe(given)}")
    return [int(number) for number in numbers]
