"""Rounds that a learner must refuse, and rounds that are interrupted: both leave it as it was."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cocopt import constraints, losses
from cocopt.algorithms.base import Learner
from cocopt.arrays import Array, ignore_fp_warnings
from cocopt.checks.base import require
from cocopt.checks.rounds import Reveal, replay
from cocopt.checks.storage import Store
from cocopt.errors import CocoptError, InvalidInput
from cocopt.sets import ConvexSet

__all__ = ["check_refusals"]


class _Interrupt(BaseException):
    """What a user's callable may raise: even this."""


def check_refusals(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    start: Array,
    stream: Sequence[Reveal],
    points: Array,
    store: Store,
) -> None:
    """Rounds that are refused or interrupted leave all of the state as it was, and the run goes on bit for bit."""
    half = len(stream) // 2
    learner = replay(make(K, start), stream[:half])
    before = store.content(learner)
    for what, reveal in _bad_rounds(K, start):
        try:
            with ignore_fp_warnings():  # the data are bad on purpose
                reveal(learner)
        except InvalidInput:
            require(learner, store.content(learner) == before, f"tell() refuses {what}, but changes the state")
        else:
            raise AssertionError(f"{learner!r}: tell() accepts {what}")
    for rest in range(half, len(stream)):
        require(learner, np.array_equal(learner.ask(), points[rest]), f"x_{rest + 1} differs after refused rounds")
        stream[rest].copy().to(learner)
    # what may be refused or not: then the learner is of no further use here
    learner = replay(make(K, start), stream[:half])
    row = np.ones(K.dim)
    try:
        learner.tell(None, constraints.Affine(np.stack([row, -row]), [-1.0, -1.0]))
    except CocoptError:
        require(learner, store.content(learner) == before, "tell() refuses an infeasible round, but changes the state")
    for what, fail in (("loss", 0), ("loss", 1), ("constraint", 0), ("constraint", 1)):
        learner = replay(make(K, start), stream[:half])
        for call in range(1, 9):
            if not _interrupted(learner, what, fail, call, start.reshape(-1, K.dim)[0]):
                break
            message = f"an exception in call {call} of a {what}'s {('value', 'gradient')[fail]} changes the state"
            require(learner, store.content(learner) == before, message)


def _bad_rounds(K: ConvexSet, start: Array) -> Iterator[tuple[str, Callable[[Learner], object]]]:
    """(what is wrong with it, the round)."""
    batch, n = start.shape[:-1], K.dim
    good = Reveal(np.ones((*batch, n, n)), np.ones((*batch, n)), np.ones((*batch, 2, n)), np.ones((*batch, 2)), None)
    for name, bad in itertools.product(("H", "y", "A", "b"), (np.nan, -np.inf)):
        spoiled = good.copy()
        getattr(spoiled, name).flat[-1] = bad
        yield f"{bad} in {name}", spoiled.to
    for bad in (np.nan, np.inf):
        yield f"{bad} in played", good._replace(played=np.full(start.shape, bad)).to
    yield "an action played of a wrong shape", good._replace(played=np.zeros((*batch, n + 1))).to
    yield "an action played with other leading axes", good._replace(played=np.zeros((7, *start.shape))).to
    yield "a loss of another dimension", good._replace(H=np.ones((*batch, n, n + 1))).to
    yield "a constraint of another dimension", good._replace(A=np.ones((*batch, 2, n + 1))).to
    yield "a loss with other leading axes", good._replace(H=np.ones((7, *batch, n, n)), y=np.ones((7, *batch, n))).to
    yield (
        "a constraint with other leading axes",
        good._replace(A=np.ones((7, *batch, 2, n)), b=np.ones((7, *batch, 2))).to,
    )
    something: Any = "loss"
    yield "text in place of a loss", lambda learner: learner.tell(something)
    something_else: Any = losses.Linear(np.ones(n))
    yield "a loss in place of a constraint", lambda learner: learner.tell(None, something_else)


def _interrupted(learner: Learner, what: str, fail: int, call: int, center: Array) -> bool:
    """Whether a round was interrupted whose loss or constraint raises in that call of its value or gradient."""
    calls = 0

    def value(x: Array) -> float:
        nonlocal calls
        calls += fail == 0
        if fail == 0 and calls == call:
            raise _Interrupt
        return float((x - center) @ (x - center)) / 2

    def gradient(x: Array) -> Array:
        nonlocal calls
        calls += fail == 1
        if fail == 1 and calls == call:
            raise _Interrupt
        return x - center

    try:
        if what == "loss":
            learner.tell(losses.Function(value, gradient, strong_convexity=1.0))
        else:
            learner.tell(None, constraints.Function(value, gradient))
    except _Interrupt:
        return True
    except CocoptError:  # the feasible set is but the centre: that may be too little
        return False
    return False
