"""The rounds of one trial, over which many passes are made, and where the rounds of several trials come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cocopt.arrays import batch_shape, describe, positive_int
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.losses import Loss
from cocopt.problems.base import MixedLoss, Pair, Problem, Section, check_seed, sections_of, trial_numbers
from cocopt.sets.base import ConvexSet

__all__ = ["Block", "LossBlock", "Rounds", "Streams", "streams_of_lists", "streams_of_problem"]

MAX_BYTES_IN_MEMORY = 2**28  # of one trial's data; those of longer runs are drawn again for every pass
OBJECT_BYTES = 1000  # of a black box, about


class Block(NamedTuple):
    """Consecutive rounds, of which the first ``used`` are up to round T; the data have a leading axis for rounds."""

    rounds: int
    used: int
    loss: Loss | None
    constraint: Constraint | None


class LossBlock(NamedTuple):
    """The losses of consecutive rounds that are all of one kind."""

    rounds: int
    used: int
    loss: Loss


class Rounds:
    """One trial's rounds, over which many passes are made.

    Parameters
    ----------
    draw : function
        Returns the sections of the rounds, anew at each call.
    horizon : int
        The number of rounds.
    """

    def __init__(self, draw: Callable[[], Iterable[Section]], horizon: int) -> None:
        self.horizon = horizon
        self.sections = draw
        self._stacked: Callable[[], Iterable[tuple[int, Pair]]] = lambda: (
            (count, reveal(slice(None))) for count, reveal in self.sections()
        )
        kept = _in_memory(draw())
        if kept is not None:
            sections, stacked = kept
            self.sections, self._stacked = (lambda: sections), (lambda: stacked)

    def blocks(self, T: int) -> Iterator[Block]:
        """The blocks of rounds 1, …, T."""
        for size, (loss, constraint) in self._stacked():
            if T <= 0:
                return
            yield Block(size, min(size, T), loss, constraint)
            T -= size

    def losses(self, T: int) -> Iterator[LossBlock]:
        """The losses of rounds 1, …, T; where each round has a loss of its own kind, one by one."""
        for size, count, loss, _ in self.blocks(T):
            if isinstance(loss, MixedLoss):
                yield from (LossBlock(1, 1, member) for member in loss.members[:count])
            elif loss is not None:
                yield LossBlock(size, count, loss)

    def part(self, first: int, last: int) -> Rounds:
        """The rounds first + 1, …, last, which become the rounds 1, 2 and so on."""

        def draw() -> Iterator[Section]:
            before = 0
            for count, reveal in self.sections():
                low, high = max(first - before, 0), min(last - before, count)
                if low < high:
                    yield high - low, _shifted(reveal, range(low, high))
                before += count

        return Rounds(draw, last - first)


def _in_memory(drawn: Iterable[Section]) -> tuple[list[Section], list[tuple[int, Pair]]] | None:
    """All sections, and what they reveal; None if their data are too large."""
    sections, stacked, size = [], [], 0
    for section in drawn:
        count, reveal = section
        pair = reveal(slice(None))
        size += sum(_data_bytes(own, count) for own in pair)
        if size > MAX_BYTES_IN_MEMORY:
            return None
        sections.append(section)
        stacked.append((count, pair))
    return sections, stacked


def _data_bytes(own: Loss | Constraint | None, count: int) -> int:
    """What the data of a section of ``count`` rounds take."""
    if own is None:
        return 0
    arrays = [array for _, array, *_ in own.data_arrays()]
    return sum(array.nbytes for array in arrays) or OBJECT_BYTES * count


def _shifted(reveal: Callable[[slice], Pair], rounds: range) -> Callable[[slice], Pair]:
    """Reveals slices of these rounds of a section."""

    def reveal_part(part: slice) -> Pair:
        chosen = rounds[part]
        return reveal(slice(chosen.start, chosen.stop))

    return reveal_part


class Streams(NamedTuple):
    """The rounds of several trials, which are drawn or cut out one trial at a time.

    Attributes
    ----------
    K : ConvexSet
    batch : tuple of int
        The axes of the trials.
    horizon : int
        The number of rounds.
    open : function
        The rounds of a trial, by its place in the flattened batch.
    """

    K: ConvexSet
    batch: tuple[int, ...]
    horizon: int
    open: Callable[[int], Rounds]


def streams_of_problem(problem: Problem, seed: int, trials: ArrayLike, horizon: int) -> Streams:
    """Some trials of a problem."""
    _require_bounded(problem.K)
    number, chosen = check_seed(seed), trial_numbers(trials)

    def open_trial(i: int) -> Rounds:
        return Rounds(lambda: problem.sections(number, chosen[i], horizon), horizon)

    return Streams(problem.K, (len(chosen),), horizon, open_trial)


def streams_of_lists(
    K: ConvexSet, losses: Sequence[Loss | None], constraints: Sequence[Constraint | None] | None = None
) -> Streams:
    """The trials of a list of losses and one of constraints, which have an entry per round."""
    _require_bounded(K)
    f = _checked_list("losses", losses, Loss, K.dim)
    g = [None] * len(f) if constraints is None else _checked_list("constraints", constraints, Constraint, K.dim)
    if len(f) != len(g):
        raise InvalidInput(f"constraints: expected {len(f)} entries, as many as there are losses, got {len(g)}")
    positive_int("the number of rounds", len(f))
    batch = batch_shape(*_batches("losses", f), *_batches("constraints", g))

    def open_trial(i: int) -> Rounds:
        index = tuple(map(int, np.unravel_index(i, batch)))
        pairs: list[Any] = [tuple(_of_trial(own, batch, index) for own in pair) for pair in zip(f, g, strict=True)]
        return Rounds(lambda: sections_of(pairs), len(pairs))

    return Streams(K, batch, len(f), open_trial)


def _batches(name: str, of_rounds: list[Any]) -> list[tuple[str, tuple[int, ...]]]:
    """The leading axes of losses or constraints, with their names."""
    return [(f"{name}[{t}]", own.batch) for t, own in enumerate(of_rounds) if own is not None]


def _checked_list(name: str, given: Any, kind: type[Any], dim: int) -> list[Any]:
    """A list of losses or constraints, or None among them, of this dimension."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidInput(f"{name}: expected a list with an entry per round, got {describe(given)}")
    for t, own in enumerate(given):
        if own is None:
            continue
        if not isinstance(own, kind):
            raise InvalidInput(f"{name}[{t}]: expected a {kind.__name__} or None, got {describe(own)}")
        if own.dim is not None and own.dim != dim:
            raise InvalidInput(f"{name}[{t}]: expected dimension {dim} as that of K, got {own.dim}")
    return list(given)


def _of_trial(own: Any, batch: tuple[int, ...], index: tuple[int, ...]) -> Any:
    """The loss or constraint of one trial; its leading axes broadcast against those of all trials."""
    if own is None or own.batch == ():
        return own
    sizes = own.batch
    return own.trials(tuple(0 if n == 1 else i for n, i in zip(sizes, index[len(batch) - len(sizes) :], strict=True)))


def _require_bounded(K: ConvexSet) -> None:
    if not K.bounded:
        raise InvalidInput(f"K: expected a set of finite diameter, got {K!r}")
