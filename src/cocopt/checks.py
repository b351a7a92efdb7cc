"""Contract checks that a set or an algorithm of one's own can be put through, as the built-in ones are."""

from __future__ import annotations

import gc
import itertools
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocopt import constraints, losses, state
from cocopt.algorithms.base import Learner, Round
from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.errors import CocoptError, InvalidInput
from cocopt.sets import Ball, Box, ConvexSet, Polyhedral, Simplex

__all__ = ["check_algorithm", "check_set"]

_TOL = 1e-9  # relative to the size of the points and the set


# ---------------------------------------------------------------- sets


def check_set(K: ConvexSet, *, seed: int = 0, trials: int = 50) -> None:
    """Checks on random points that K keeps the contract of [`ConvexSet`][cocopt.ConvexSet].

    The projection has the right shapes with leading axes, lies in K, is idempotent, firmly non-expansive, satisfies the
    variational inequality ⟨y − Py, z − Py⟩ ≤ 0 for z in K, and leaves its input and points of K alone; ``contains``,
    ``violation``, ``diameter``, ``polyhedral()``, ``cones()`` (those without auxiliary variables) and ``parameters()``
    agree with it.

    Parameters
    ----------
    K : ConvexSet
    seed : int, default 0
    trials : int, default 50
        The number of random points.

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import Box
    >>> from cocopt.checks import check_set
    >>> check_set(Box(0.0, 1.0, dim=3))
    >>> class Shrunk(Box):
    ...     def project_unchecked(self, point):
    ...         return np.clip(0.9 * point, self.lower, self.upper)
    >>> check_set(Shrunk(0.0, 1.0, dim=3))
    Traceback (most recent call last):
    ...
    AssertionError: Shrunk(lower=0 (shape (3,)), upper=1 (shape (3,)), dim=3): the projection is not idempotent
    """
    points = _random_points(K, np.random.default_rng(seed), trials)
    given = points.copy()
    nearest = K.project(points)
    _require(
        K, nearest.shape == points.shape and nearest.dtype == np.float64, "the projection has a wrong shape or dtype"
    )
    _require(K, np.array_equal(points, given), "the projection changes its input")
    _require(K, bool(np.isfinite(nearest).all()), "the projection is not finite")
    size = np.maximum(np.abs(points).max(axis=-1), K.scale)
    _check_batches(K, points, nearest, size)
    _check_projection(K, points, nearest, size)
    _check_membership(K, points, nearest, size)
    _check_descriptions(K, points, nearest, size)


def _check_batches(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    violation = K.violation(points)
    _require(K, violation.shape == points.shape[:-1], "the violation has a wrong shape")
    singles = np.stack([K.project(point) for point in points])
    _require(K, _near(singles, nearest, size), "projecting a batch differs from projecting its points one by one")
    deeper = K.project(points[:, None, :])
    _require(K, deeper.shape == (len(points), 1, K.dim), "the projection has a wrong shape with two leading axes")
    _require(K, _near(deeper[:, 0], nearest, size), "the projection with two leading axes differs")
    measured = np.array([K.violation(point) for point in points])
    _require(K, _near(measured, violation, size), "the violation of a batch differs from that of its points")


def _check_projection(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    _require(K, bool(K.contains(nearest, tol=_TOL).all()), "the projection does not lie in K")
    _require(K, _near(K.project(nearest), nearest, size), "the projection is not idempotent")
    # every point with every other: axes (first, second, n)
    shift = points[:, None] - points
    moved = nearest[:, None] - nearest
    tolerance = _TOL * np.maximum(size[:, None], size) * np.maximum(np.linalg.norm(shift, axis=-1), size)
    firm = (moved * (shift - moved)).sum(axis=-1) >= -tolerance
    _require(K, bool(firm.all()), "the projection is not firmly non-expansive")
    normal = (points - nearest)[:, None]
    tolerance = _TOL * np.maximum(size[:, None], size) * np.maximum(np.linalg.norm(normal, axis=-1), size)
    obtuse = (normal * (nearest - nearest[:, None])).sum(axis=-1) <= tolerance
    _require(K, bool(obtuse.all()), "the variational inequality fails: another point of K is nearer")


def _check_membership(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    between = (nearest + np.roll(nearest, 1, axis=0)) / 2
    _require(K, bool(K.contains(between, tol=_TOL).all()), "K is not convex: it lacks the middle of two of its points")
    for some in (nearest, between):
        inside = some[K.violation(some) == 0]
        if len(inside):
            _require(K, np.array_equal(K.project(inside), inside), "a point of K is not returned unchanged")
    violation = K.violation(points)
    _require(K, bool((violation >= 0).all()), "the violation is negative")
    _require(K, np.array_equal(K.contains(points, tol=0.0), violation <= 0), "contains and violation disagree")
    far = np.linalg.norm(points - nearest, axis=-1) > 1e-6 * size
    _require(K, bool((violation[far] > 0).all()), "a point that the projection moves counts as inside")
    apart = np.linalg.norm(nearest[:, None] - nearest, axis=-1).max()
    _require(
        K, bool(apart <= K.diameter + _TOL * size.max()), f"two of its points are {apart:g} apart, beyond the diameter"
    )


def _check_descriptions(K: ConvexSet, points: Array, nearest: Array, size: Array) -> None:
    outside = K.violation(points) > 1e-6 * size
    polyhedral, cones = K.polyhedral(), K.cones()
    _require(K, K.conic == (cones is not None), "conic and cones() disagree")
    if polyhedral is not None:
        agree = _agree(_polyhedral_slack(polyhedral, points[outside]), _polyhedral_slack(polyhedral, nearest), size)
        _require(K, agree, "polyhedral() describes another set")
    if cones is not None:
        rows = sum(count for _, count in cones.cones)
        fits = cones.A.shape == (rows, K.dim + cones.aux) and cones.b.shape == (rows,) and cones.E.shape == (rows, 0)
        _require(K, fits, "cones() has arrays of wrong shapes")
        if cones.aux == 0 and all(kind in ("zero", "nonneg", "soc") for kind, _ in cones.cones):
            unit = size * np.maximum(np.abs(cones.A).max(initial=0.0), 1.0)
            agree = _agree(_cone_slack(cones, points[outside]), _cone_slack(cones, nearest), unit)
            _require(K, agree, "cones() describes another set")
    try:
        parameters = K.parameters()
    except TypeError:  # K does not say them
        return
    twin = type(K)(**parameters)
    _require(K, np.array_equal(twin.project(points), nearest), "parameters() make another set")


def _agree(slack_outside: Array, slack_inside: Array, unit: Array) -> bool:
    return bool((slack_outside < 0).all() and (slack_inside >= -_TOL * unit).all())


def _polyhedral_slack(polyhedral: Polyhedral, points: Array) -> Array:
    """The least slack of all bounds and rows, negative outside."""
    slack = polyhedral.b - points @ polyhedral.A.T
    slack[:, : polyhedral.equalities] = -np.abs(slack[:, : polyhedral.equalities])
    least: Array = np.concatenate([slack, points - polyhedral.lower, polyhedral.upper - points], axis=-1).min(axis=-1)
    return least


def _cone_slack(cones: Cones, points: Array) -> Array:
    """The least slack of all cones, negative outside."""
    rows = cones.b - points @ cones.A.T
    least = np.full(len(points), np.inf)
    at = 0
    for kind, count in cones.cones:
        part = rows[:, at : at + count]
        if kind == "zero":
            slack = -np.abs(part).max(axis=-1)
        elif kind == "nonneg":
            slack = part.min(axis=-1)
        else:
            slack = part[:, 0] - np.linalg.norm(part[:, 1:], axis=-1)
        least = np.minimum(least, slack)
        at += count
    return least


def _random_points(K: ConvexSet, rng: np.random.Generator, trials: int) -> Array:
    """Points about K, some near, some far, in units of its scale and (every other one) of its diameter."""
    units = np.full(trials, K.scale)
    if 0 < K.diameter < np.inf:
        units[::2] = K.diameter
    lengths = units * 10 ** rng.uniform(-2, 2, trials)
    directions = rng.normal(size=(trials, K.dim)) / np.sqrt(K.dim)
    start = K.project(np.zeros(K.dim))
    _require(K, bool(np.isfinite(start).all()), "the projection is not finite")
    points: Array = start + lengths[:, None] * directions
    return points


def _near(first: Array, second: Array, size: Array) -> bool:
    unit = size if first.ndim == 1 else size[:, None]
    return bool((np.abs(first - second) <= _TOL * unit).all())


def _require(subject: object, holds: bool, failure: str) -> None:
    if not holds:
        raise AssertionError(f"{subject!r}: {failure}")


# ---------------------------------------------------------------- algorithms


def check_algorithm(
    make: Callable[[ConvexSet, Array], Learner],
    *,
    K: ConvexSet | None = None,
    rounds: int = 24,
    seed: int = 0,
    remembers: bool = False,
    saves: bool = True,
    supplied: Mapping[str, Any] | None = None,
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
        The length of the streams, at least 16: no learner plays more rounds than that.
    seed : int, default 0
    remembers : bool, default False
        Whether the algorithm may keep what was revealed: then memory is not checked.
    saves : bool, default True
        Whether the learner can be stored; if not, `save` must say so by a `TypeError`.
    supplied : mapping, optional
        What `cocopt.load` needs again, such as ``{"steps": function}``.

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
    if rounds < 16:
        raise InvalidInput(f"rounds: expected at least 16, got {rounds}")
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        for chosen in [Box(0.0, 1.0, dim=3), Ball(0.0, 1.0, dim=3), Simplex(3)] if K is None else [K]:
            store = _Store(Path(folder, "state.npz"), saves, dict(supplied or {}))
            for batch in (), (2, 2):
                start, stream = _random_stream(chosen, batch, rounds, rng)
                points = _check_run(make(chosen, start), start, stream)
                _check_isolation(make, chosen, start, stream, points)
                _check_trials(make, chosen, start, stream, points)
                _check_state(make(chosen, start), stream, points, store)
                _check_refusals(make, chosen, start, stream, points, store)
            if not remembers:
                _check_memory(make, chosen, rounds, rng)


class _Reveal(NamedTuple):
    """The arrays of one round: ½‖Hx − y‖², Ax ≤ b, and the action played; any may be missing."""

    H: Array | None
    y: Array | None
    A: Array | None
    b: Array | None
    played: Array | None

    def to(self, learner: Learner) -> Round:
        loss = None if self.H is None or self.y is None else losses.LeastSquares(self.H, self.y)
        constraint = None if self.A is None or self.b is None else constraints.Affine(self.A, self.b)
        return learner.tell(loss, constraint, played=self.played)

    def copy(self) -> _Reveal:
        return _Reveal(*(None if array is None else array.copy() for array in self))

    def trial(self, index: tuple[int, ...]) -> _Reveal:
        return _Reveal(*(None if array is None else array[index] for array in self))


# Which arrays the rounds reveal, in turn: all kinds of rounds within the first half of the shortest stream.
_KINDS = ("HyAb", "HyAb", "HyAb", "Hy", "HyAb played", "Ab", "Ab played", "", "played", "Hy played", "HyAb")


def _random_stream(
    K: ConvexSet, batch: tuple[int, ...], rounds: int, rng: np.random.Generator
) -> tuple[Array, list[_Reveal]]:
    """A start and rounds whose rows leave a common point of K some room, and whose losses pull away from it."""
    n, unit = K.dim, min(K.scale, K.diameter) or 1.0

    def point() -> Array:
        return K.project(unit * rng.normal(size=(*batch, n)))

    start, common = point(), point()
    stream = []
    for t in range(rounds):
        kind = _KINDS[t % len(_KINDS)]
        H = rng.normal(size=(*batch, n + 1, n)) / np.sqrt(n)
        A = rng.normal(size=(*batch, 2, n))
        y = np.matvec(H, common + 3.0 * unit * rng.normal(size=(*batch, n)))
        b = np.matvec(A, common) + unit * rng.uniform(0.0, 0.3, (*batch, 2))
        played = point()
        given = {"H": H, "y": y, "A": A, "b": b, "played": played}
        stream.append(_Reveal(**{name: array if name in kind else None for name, array in given.items()}))
    return start, stream


def _check_run(learner: Learner, start: Array, stream: Sequence[_Reveal]) -> Array:
    """Plays the whole stream, and returns x_1, …, x_{T+1}."""
    points, values, rows = [], [], []
    for t, reveal in enumerate(stream, start=1):
        x = learner.ask()
        _check_point(learner, x, start.shape)
        points.append(x.copy())
        given = reveal.copy()
        record = given.to(learner)
        _require(learner, np.array_equal(x, points[-1]), "tell() changes an action that ask() returned before")
        for name, before, after in zip(_Reveal._fields, reveal, given, strict=True):
            if before is not None and after is not None:
                _require(learner, np.array_equal(before, after), f"tell() changes {name}, which is the caller's")
                _require(learner, after.flags.writeable, f"tell() makes {name} read-only, which is the caller's")
        _require(learner, record.t == t == learner.t, "the rounds are counted wrongly")
        values.append(_loss(reveal, x))
        rows.append(_rows(reveal, x))
        _require(learner, _close(record.loss, values[-1]), "the round record has a wrong loss")
        _require(
            learner, _close(record.violation, violation_unchecked(rows[-1])), "the round record has a wrong violation"
        )
    violations = [violation_unchecked(row) for row in rows]
    expected = {
        "loss": sum(values),
        "ccv_soft": sum(np.zeros(learner.batch) if row is None else row.max(axis=-1) for row in rows),
        "ccv1": sum(violations),
        "ccv2": sum(v**2 for v in violations),
    }
    for name, value in expected.items():
        _require(learner, _close(getattr(learner.ledger, name), value), f"the ledger has a wrong {name}")
    _check_point(learner, learner.ask(), start.shape)
    return np.stack([*points, learner.ask()])


def _check_point(learner: Learner, x: Array, shape: tuple[int, ...]) -> None:
    as_expected = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == shape
    _require(learner, as_expected, "ask() returns an action of a wrong shape or dtype")
    _require(learner, not x.flags.writeable, "ask() returns an array that can be written to")
    inside = bool(np.isfinite(x).all()) and bool(np.all(learner.K.contains(x, tol=_TOL)))
    _require(learner, inside, "an action does not lie in K")
    _require(learner, np.array_equal(learner.ask(), x), "asking twice gives two answers")


def _loss(reveal: _Reveal, x: Array) -> Array:
    if reveal.H is None or reveal.y is None:
        return np.zeros(x.shape[:-1])
    x = x if reveal.played is None else reveal.played
    value: Array = 0.5 * np.square(np.einsum("...pn,...n->...p", reveal.H, x) - reveal.y).sum(axis=-1)
    return value


def _rows(reveal: _Reveal, x: Array) -> Array | None:
    if reveal.A is None or reveal.b is None:
        return None
    x = x if reveal.played is None else reveal.played
    rows: Array = np.einsum("...mn,...n->...m", reveal.A, x) - reveal.b
    return rows


def violation_unchecked(rows: Array | None) -> Any:
    return 0.0 if rows is None else np.maximum(rows.max(axis=-1), 0.0)


def _close(value: Any, expected: Any) -> bool:
    return bool(np.allclose(value, expected, rtol=_TOL, atol=_TOL))


def _replay(learner: Learner, stream: Sequence[_Reveal]) -> Learner:
    for reveal in stream:
        reveal.copy().to(learner)
    return learner


def _check_isolation(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    start: Array,
    stream: Sequence[_Reveal],
    points: Array,
) -> None:
    """The same actions whatever the caller does to the arrays, and whatever another learner sees meanwhile."""
    given = start.copy()
    learner, other = make(K, given), make(K, start)
    given[...] = np.nan
    for t, reveal in enumerate(stream):
        _require(learner, np.array_equal(learner.ask(), points[t]), _dependence(t))
        passed = reveal.copy()
        for item in (*passed.to(learner), *passed):
            if isinstance(item, np.ndarray) and item.flags.writeable:
                item[...] = 0
        stream[-1 - t].copy().to(other)
    _require(learner, np.array_equal(learner.ask(), points[-1]), _dependence(len(stream)))


def _dependence(t: int) -> str:
    return (
        f"x_{t + 1} differs in a second run: it depends on arrays that the caller has changed since, on another "
        "learner, or on chance"
    )


def _check_trials(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    start: Array,
    stream: Sequence[_Reveal],
    points: Array,
) -> None:
    together = _replay(make(K, start), stream)
    for index in np.ndindex(start.shape[:-1]):
        single = make(K, start[index])
        for t, reveal in enumerate(stream):
            near = np.allclose(single.ask(), points[t][index], rtol=0.0, atol=1e-12 * max(K.scale, 1.0))
            _require(single, near, f"x_{t + 1} in a batch differs from that of a single learner")
            reveal.trial(index).to(single)
        for name, value in together.ledger.as_dict().items():
            one = value if np.ndim(value) == 0 else value[index]
            _require(single, _close(getattr(single.ledger, name), one), f"{name} in a batch differs from a single one")


class _Store(NamedTuple):
    """Where learners are saved, if they can be."""

    path: Path
    works: bool
    supplied: dict[str, Any]

    def content(self, learner: Learner) -> dict[str, Any]:
        """All that can be known of a learner, as plain values and bytes."""
        shown = {"x": learner.ask(), "ledger": learner.ledger}
        if hasattr(learner, "certificate"):
            shown["proof"] = learner.certificate()
        spec, arrays = state.encode(shown, "shown")
        content: dict[str, Any] = {
            name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()
        }
        content["shown"] = spec
        if self.works:
            learner.save(self.path)
            content["stored"] = self.path.read_bytes()
        return {"t": learner.t, **content}


def _check_state(learner: Learner, stream: Sequence[_Reveal], points: Array, store: _Store) -> None:
    half = len(stream) // 2
    _replay(learner, stream[:half])
    if not store.works:
        try:
            learner.save(store.path)
        except TypeError:
            return
        raise AssertionError(f"{learner!r}: save() works, although it is said not to")
    before = store.content(learner)
    resumed = state.load(store.path, **store.supplied)
    _require(learner, type(resumed) is type(learner), f"what was saved is loaded as a {type(resumed).__name__}")
    _require(learner, store.content(resumed) == before, "saved, loaded and saved again, the state differs")
    for t in range(half, len(stream)):
        _require(learner, np.array_equal(resumed.ask(), points[t]), f"x_{t + 1} differs after saving and loading")
        stream[t].copy().to(resumed)
    _replay(learner, stream[half:])
    same = store.content(resumed) == store.content(learner)
    _require(learner, same, "a run that was saved and loaded ends in another state")


class _Interrupt(BaseException):
    """What a user's callable may raise: even this."""


def _check_refusals(
    make: Callable[[ConvexSet, Array], Learner],
    K: ConvexSet,
    start: Array,
    stream: Sequence[_Reveal],
    points: Array,
    store: _Store,
) -> None:
    half = len(stream) // 2
    learner = _replay(make(K, start), stream[:half])
    before = store.content(learner)
    for what, reveal in _bad_rounds(K, start):
        try:
            reveal(learner)
        except InvalidInput:
            _require(learner, store.content(learner) == before, f"tell() refuses {what}, but changes the state")
        else:
            raise AssertionError(f"{learner!r}: tell() accepts {what}")
    for rest in range(half, len(stream)):
        _require(learner, np.array_equal(learner.ask(), points[rest]), f"x_{rest + 1} differs after refused rounds")
        stream[rest].copy().to(learner)
    # what may be refused or not: then the learner is of no further use here
    learner = _replay(make(K, start), stream[:half])
    row = np.ones(K.dim)
    try:
        learner.tell(None, constraints.Affine(np.stack([row, -row]), [-1.0, -1.0]))
    except CocoptError:
        _require(learner, store.content(learner) == before, "tell() refuses an infeasible round, but changes the state")
    for what, fail in (("loss", 0), ("loss", 1), ("constraint", 0), ("constraint", 1)):
        learner = _replay(make(K, start), stream[:half])
        for call in range(1, 9):
            if not _interrupted(learner, what, fail, call, start.reshape(-1, K.dim)[0]):
                break
            message = f"an exception in call {call} of a {what}'s {('value', 'gradient')[fail]} changes the state"
            _require(learner, store.content(learner) == before, message)


def _bad_rounds(K: ConvexSet, start: Array) -> Iterator[tuple[str, Callable[[Learner], object]]]:
    """(what is wrong with it, the round)."""
    batch, n = start.shape[:-1], K.dim
    good = _Reveal(np.ones((*batch, n, n)), np.ones((*batch, n)), np.ones((*batch, 2, n)), np.ones((*batch, 2)), None)
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


def _check_memory(
    make: Callable[[ConvexSet, Array], Learner], K: ConvexSet, rounds: int, rng: np.random.Generator
) -> None:
    """A number per trial and round is too much: with so many trials it is measurable."""
    trials, half = 256, rounds // 2
    start, stream = _random_stream(K, (trials,), rounds, rng)
    learner = make(K, start)
    collects = gc.isenabled()
    gc.disable()  # what is new stays young then, and its garbage is found without a look at everything else
    tracemalloc.start()
    try:
        _replay(learner, stream[:half])
        gc.collect(0)
        before, _ = tracemalloc.get_traced_memory()
        _replay(learner, stream[half:])
        gc.collect(0)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        if collects:
            gc.enable()
    growth = (after - before) / (rounds - half)
    _require(learner, growth < 4 * trials, f"memory grows, by {growth:.0f} bytes a round for {trials} trials")
