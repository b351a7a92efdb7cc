"""Passes over the rounds of one trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cocopt.constraints import Constraint
from cocopt.losses import Loss
from cocopt.problems.base import MixedLoss, Problem

__all__ = ["Block", "LossBlock", "Rounds"]

MAX_ROUNDS_IN_MEMORY = 20_000  # of one trial; the data of longer runs are drawn again for every pass


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
    """One trial's rounds, over which many passes are made."""

    def __init__(self, problem: Problem, seed: int, trial: int, horizon: int) -> None:
        def draw() -> Iterable[tuple[int, tuple[Loss | None, Constraint | None]]]:
            return problem.stacked_rounds(seed, trial, horizon)

        self._all_blocks: Callable[[], Iterable[tuple[int, tuple[Loss | None, Constraint | None]]]] = draw
        if horizon <= MAX_ROUNDS_IN_MEMORY:
            stored = list(draw())
            self._all_blocks = lambda: stored

    def blocks(self, T: int) -> Iterator[Block]:
        """The blocks of rounds 1, …, T."""
        for size, (loss, constraint) in self._all_blocks():
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
