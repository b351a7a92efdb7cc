"""The contract of learners."""

from __future__ import annotations

import gc
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cocopt.algorithms.base import Learner
from cocopt.arrays import Array, as_flag, describe, positive_int
from cocopt.checks.atomicity import check_refusals
from cocopt.checks.base import TOL, as_generator, close, require, require_kind
from cocopt.checks.rounds import Reveal, loss_value, random_stream, replay, row_values, violation_value
from cocopt.checks.storage import Store, check_storage
from cocopt.errors import InvalidInput
from cocopt.sets import Ball, Box, ConvexSet, Simplex

__all__ = ["check_algorithm"]

_MAX_AGENTS = 100
_MIN_ROUNDS, _MAX_ROUNDS = 16, 1000  # all kinds of rounds occur in the first half; all rounds are held in memory


# nine parameters exceed the guide: all but the first are options that a caller names
def check_algorithm(
    make: Callable[[ConvexSet, Array], Learner],
    *,
    K: ConvexSet | None = None,
    rounds: int = 24,
    seed: int = 0,
    remembers: bool = False,
    saves: bool = True,
    supplied: Mapping[str, Any] | None = None,
    static: bool = False,
    agents: int | None = None,
) -> None:
    """Checks on random streams that an algorithm keeps the contract of a learner.

    - Every action lies in K; `ask` changes nothing, and what it returned is read-only and stays as it was.
    - The round records and the ledger are those of the actions played; a round may reveal one half, or nothing.
    - What is passed in is not changed, and what the caller does to it later has no effect.
    - x_t depends on this learner's rounds before t alone: not on round t, on other learners, or on chance.
    - A batch of trials equals as many single learners to 1e-12.
    - Saved and loaded halfway, a run goes on bit for bit.
    - `tell` is atomic: NaN, infinities, wrong shapes, no losses at all, a user's callable that raises (at any of its
      calls), an infeasible round that is refused: all of the state is as before, and the run goes on bit for bit.
    - Memory does not grow with the number of rounds.

    Parameters
    ----------
    make : callable
        ``make(K, start)`` builds a learner; ``start`` has shape (n,), or (..., n) for many trials.
    K : ConvexSet, optional
        By default a box, a ball and a simplex in turn.
    rounds : int, default 24
        The length of the streams, 16 to 1000: no learner sees more rounds than that.
    seed : int, default 0
    remembers : bool, default False
        Whether the algorithm may keep what was revealed: then memory is not checked.
    saves : bool, default True
        Whether the learner can be stored; if not, `save` must say so by a `TypeError`.
    supplied : mapping, optional
        What `cocopt.load` needs again, such as ``{"steps": function}``.
    static : bool, default False
        Whether the algorithm is for constraints that never change. Then all rounds reveal the same rows, and x_1
        satisfies them with a slack of 0.2, in units of the smaller of K's scale and diameter.
    agents : int, optional
        The number of agents, if the algorithm is for networks. Then ``start`` has shape (agents, n), or (..., agents,
        n) for many trials, and a single learner has all agents of a trial.

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> from cocopt import CLASP
    >>> from cocopt.checks import check_algorithm
    >>> check_algorithm(lambda K, start: CLASP(K, start=start))
    >>> class Careless(CLASP):
    ...     def ask(self):
    ...         return super().ask().copy()
    >>> check_algorithm(lambda K, start: Careless(K, start=start))
    Traceback (most recent call last):
    ...
    AssertionError: Careless(Box(...), t=0): ask() returns an array that can be written to
    """
    if isinstance(make, type):
        name = make.__name__
        raise InvalidInput(
            f"make: expected a function of (K, start), such as lambda K, start: {name}(K, start=start), "
            f"got the class {name}"
        )
    if not callable(make):
        raise InvalidInput(f"make: expected a function of (K, start), got {describe(make)}")
    if K is not None:
        require_kind("K", K, "set", "cocopt.Box")
    rounds, rng = positive_int("rounds", rounds, at_most=_MAX_ROUNDS), as_generator(seed)
    if rounds < _MIN_ROUNDS:
        raise InvalidInput(f"rounds: expected at least {_MIN_ROUNDS}, got {rounds}")
    remembers, saves, static = as_flag("remembers", remembers), as_flag("saves", saves), as_flag("static", static)
    again = _as_arguments(supplied)
    network = () if agents is None else (positive_int("agents", agents, at_most=_MAX_AGENTS),)
    with tempfile.TemporaryDirectory() as folder:
        for chosen in [Box(0.0, 1.0, dim=3), Ball(0.0, 1.0, dim=3), Simplex(3)] if K is None else [K]:
            store = Store(Path(folder, "state.npz"), saves, again)
            for batch in (), (2, 2):
                start, stream = random_stream(chosen, (*batch, *network), rounds, rng, static=static)
                learner = make(chosen, start)
                require_kind("make", learner, "algorithm", "cocopt.CLASP from the function")
                points = _check_run(learner, start, stream)
                _check_isolation(make, chosen, start, stream, points)
                _check_trials(make, chosen, start, stream, points, batch)
                check_storage(make(chosen, start), stream, points, store)
                check_refusals(make, chosen, start, stream, points, store)
            if not remembers:
                _check_memory(make, chosen, rounds, rng, static, network)


def _as_arguments(supplied: Any) -> dict[str, Any]:
    if supplied is None:
        return {}
    if not isinstance(supplied, Mapping) or not all(isinstance(name, str) for name in supplied):
        raise InvalidInput(f"supplied: expected a mapping from names to arguments, got {describe(supplied)}")
    return dict(supplied)


def _check_run(learner: Learner, start: Array, stream: Sequence[Reveal]) -> Array:
    """Plays the whole stream, and returns x_1, …, x_{T+1}."""
    points, values, rows = [], [], []
    for t, reveal in enumerate(stream, start=1):
        x = learner.ask()
        _check_point(learner, x, start.shape)
        points.append(x.copy())
        given = reveal.copy()
        record = given.to(learner)
        require(learner, np.array_equal(x, points[-1]), "tell() changes an action that ask() returned before")
        for name, before, after in zip(Reveal._fields, reveal, given, strict=True):
            if before is not None and after is not None:
                require(learner, np.array_equal(before, after), f"tell() changes {name}, which is the caller's")
                require(learner, after.flags.writeable, f"tell() makes {name} read-only, which is the caller's")
        require(learner, record.t == t == learner.t, "the rounds are counted wrongly")
        values.append(loss_value(reveal, x))
        rows.append(row_values(reveal, x))
        require(learner, close(record.loss, values[-1]), "the round record has a wrong loss")
        require(learner, close(record.violation, violation_value(rows[-1])), "the round record has a wrong violation")
    violations = [violation_value(row) for row in rows]
    expected = {
        "loss": sum(values),
        "ccv_soft": sum(np.zeros(learner.batch) if row is None else row.max(axis=-1) for row in rows),
        "ccv1": sum(violations),
        "ccv2": sum(v**2 for v in violations),
    }
    for name, value in expected.items():
        require(learner, close(getattr(learner.ledger, name), value), f"the ledger has a wrong {name}")
    _check_point(learner, learner.ask(), start.shape)
    return np.stack([*points, learner.ask()])


def _check_point(learner: Learner, x: Array, shape: tuple[int, ...]) -> None:
    fits = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == shape
    require(learner, fits, "ask() returns an action of a wrong shape or dtype")
    require(learner, not x.flags.writeable, "ask() returns an array that can be written to")
    inside = bool(np.isfinite(x).all()) and bool(np.all(learner.K.contains(x, tol=TOL)))
    require(learner, inside, "an action does not lie in K")
    require(learner, np.array_equal(learner.ask(), x), "asking twice gives two answers")


def _check_isolation(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    start: Array,
    stream: Sequence[Reveal],
    points: Array,
) -> None:
    """The same actions whatever the caller does to the arrays, and whatever another learner sees meanwhile."""
    given = start.copy()
    learner, other = make(K, given), make(K, start)
    given[...] = np.nan
    for t, reveal in enumerate(stream):
        require(learner, np.array_equal(learner.ask(), points[t]), _dependence(t))
        passed = reveal.copy()
        for item in (*passed.to(learner), *passed):
            if isinstance(item, np.ndarray) and item.flags.writeable:
                item[...] = 0
        stream[-1 - t].copy().to(other)
    require(learner, np.array_equal(learner.ask(), points[-1]), _dependence(len(stream)))


def _dependence(t: int) -> str:
    return (
        f"x_{t + 1} differs in a second run: it depends on arrays that the caller has changed since, on another "
        "learner, or on chance"
    )


def _check_trials(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    start: Array,
    stream: Sequence[Reveal],
    points: Array,
    batch: tuple[int, ...],
) -> None:
    together = replay(make(K, start), stream)
    for index in np.ndindex(batch):
        single = make(K, start[index])
        for t, reveal in enumerate(stream):
            near = np.allclose(single.ask(), points[t][index], rtol=0.0, atol=1e-12 * max(K.scale, 1.0))
            require(single, near, f"x_{t + 1} in a batch differs from that of a single learner")
            reveal.trial(index).to(single)
        for name, value in together.ledger.as_dict().items():
            one = value if np.ndim(value) == 0 else value[index]
            require(single, close(getattr(single.ledger, name), one), f"{name} in a batch differs from a single one")


def _check_memory(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    rounds: int,
    rng: np.random.Generator,
    static: bool,
    network: tuple[int, ...],
) -> None:
    """A number per trial and round is too much, that is 8 bytes; so many trials that they stand out.

    Solvers that are called for single trials keep some hundred bytes of their own for a while.
    """
    trials, most = 256, 7
    start, stream = random_stream(K, (trials, *network), rounds, rng, static=static)
    # what is loaded at its first use, kept for reuse, or not yet collected makes less of a difference every time
    for oldest in (0, 2, 2, 2):
        learner = make(K, start)
        growth = _memory_per_round(learner, stream, oldest)
        if growth < most * trials:
            break
    require(learner, growth < most * trials, f"memory grows, by {growth:.0f} bytes per round for {trials} trials")


def _memory_per_round(learner: Learner, stream: Sequence[Reveal], oldest: int) -> float:
    """By how many bytes per round the memory in use grows in the second half of the rounds.

    Garbage is searched for among objects up to the ``oldest`` generation; that among old ones takes long to find.
    """
    half = len(stream) // 2
    collects = gc.isenabled()
    gc.disable()  # what is new stays young then, and its garbage is found without a look at everything else
    tracemalloc.start()
    try:
        replay(learner, stream[:half])
        gc.collect(oldest)
        before, _ = tracemalloc.get_traced_memory()
        replay(learner, stream[half:])
        gc.collect(oldest)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        if collects:
            gc.enable()
    return (after - before) / (len(stream) - half)
