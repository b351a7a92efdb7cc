"""The speed of CLASP and of projections, beside what a user would write without cocopt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cocopt import constraints, losses, problems
from cocopt.algorithms import CLASP
from cocopt.arrays import Array
from cocopt.constraints import Constraint
from cocopt.errors import SolverFailure
from cocopt.geometry import project
from cocopt.sets import Box, ConvexSet, Simplex

__all__ = ["Comparison", "Speed", "compare", "quick"]

_MAX_DIFFERENCE = 1e-6  # between the last actions of two implementations of the same algorithm
_CLARABEL_DIFFERENCE = 1e-4  # with its default tolerances
_DIM = 10
_LOOP = "loop around daqp.solve"


class Speed(NamedTuple):
    """One implementation of CLASP, and its time per trial and round."""

    name: str
    microseconds: float


class Comparison(NamedTuple):
    """A problem, our time for it, and that of a peer, both in microseconds per problem or per trial and round."""

    what: str
    microseconds: float
    peer: str
    peer_microseconds: float

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer."""
        return self.peer_microseconds / self.microseconds


def compare(trials: int = 100, rounds: int = 100, repeat: int = 3) -> list[Speed]:
    """CLASP on ``olr``: one learner for all trials, one per trial, a loop around ``daqp.solve``; best of ``repeat``.

    The time to draw the data is not counted. All implementations must reach the same actions.
    """
    problem = problems.get("olr", loss="norm")
    numbers = np.arange(trials)
    start = problem.start(0, numbers)
    data = [reveal(k) for _, count, reveal in problem.blocks(0, numbers, rounds) for k in range(count)]
    own = [
        [one for _, count, reveal in problem.blocks(0, [k], rounds) for one in map(reveal, range(count))]
        for k in numbers
    ]

    def batch() -> Array:
        learner = CLASP(problem.K, start=start, beta=0.5)
        for revealed in data:
            learner.tell(*revealed)
        return learner.ask()

    def singles() -> Array:
        actions = []
        for k in range(trials):
            learner = CLASP(problem.K, start=start[k : k + 1], beta=0.5)
            for revealed in own[k]:
                learner.tell(*revealed)
            actions.append(learner.ask()[0])
        return np.array(actions)

    implementations: dict[str, Callable[[], Array]] = {
        f"cocopt, {trials} trials in one learner": batch,
        "cocopt, one learner per trial": singles,
        "a loop around daqp.solve": lambda: _by_daqp(start, data),
    }
    table, actions = [], []
    for name, implementation in implementations.items():
        implementation()  # compiles, warms caches
        seconds, action = _best_time(implementation, repeat)
        table.append(Speed(name, seconds / (trials * rounds) * 1e6))
        actions.append(action)
    for speed, action in zip(table, actions, strict=True):
        if not np.allclose(action, actions[0], rtol=0.0, atol=_MAX_DIFFERENCE):
            raise SolverFailure(f"bench: {speed.name} reached other actions than {table[0].name}")
    return table


def quick(trials: int = 100, rounds: int = 50, repeat: int = 3) -> list[Comparison]:
    """CLASP as a batch and as one stream, and projections of a batch and of one point, beside DAQP and Clarabel.

    The peers are those that cocopt itself needs. Contestants must agree, and take turns; the best of ``repeat`` counts.
    """
    batch, _, loop = compare(trials, rounds, repeat)
    table = [
        Comparison(f"CLASP, batch of {trials}", batch.microseconds, _LOOP, loop.microseconds),
        _stream(10 * rounds, repeat),
    ]
    rng = np.random.default_rng(0)
    y = rng.uniform(-1, 2, (trials, _DIM))
    A, b = rng.uniform(0, 2, (trials, 4, _DIM)), rng.uniform(0, 1, (trials, 4))
    box, simplex = Box(0.0, 1.0, dim=_DIM), Simplex(_DIM)
    middle = A[:, :1].mean(axis=-1)  # at the barycentre
    center = rng.uniform(size=(trials, _DIM))
    radius = 0.6 * np.linalg.norm(box.project(y) - center, axis=-1)
    cases: list[tuple[str, ConvexSet, Callable[[Any], Constraint], str, Callable[[int], Callable[[], Array]]]] = [
        ("box ∩ 4 rows", box, lambda i: constraints.Affine(A[i], b[i]), "daqp.solve", _qp_calls(y, A, b, False)),
        (
            "simplex ∩ 1 row",
            simplex,
            lambda i: constraints.Affine(A[i, :1], middle[i]),
            "daqp.solve",
            _qp_calls(y, A[:, :1], middle, True),
        ),
        (
            "box ∩ NormBall",
            box,
            lambda i: constraints.NormBall(center[i], radius[i]),
            "Clarabel",
            _cone_calls(y, center, radius),
        ),
    ]
    for name, K, build, peer, prepare in cases:
        table += _projections(name, K, build, y, (peer, prepare), repeat)
    return table


def _stream(rounds: int, repeat: int) -> Comparison:
    """CLASP on one stream, the objects of each round built in the loop as a user would."""
    problem = problems.get("olr", loss="norm")
    data: list[Any] = [reveal(k) for _, count, reveal in problem.blocks(0, [0], rounds) for k in range(count)]
    arrays = [tuple(np.ascontiguousarray(part[0]) for part in (f.H, f.y, g.A, g.b)) for f, g in data]
    start = problem.start(0, [0])[0]

    def run() -> Array:
        learner = CLASP(problem.K, start=start, beta=0.5)
        for H, y, A, b in arrays:
            learner.tell(losses.Norm(H, y), constraints.Affine(A, b))
        return learner.ask()

    calls = [run, lambda: _stream_by_daqp(start, arrays)]
    ours, theirs = _in_turn(calls, _MAX_DIFFERENCE, repeat, "one stream")
    return Comparison("CLASP, one stream", ours / rounds * 1e6, _LOOP, theirs / rounds * 1e6)


def _stream_by_daqp(start: Array, arrays: list[tuple[Array, ...]]) -> Array:
    """The same loop for one stream, its sums plain numbers."""
    import daqp

    n, rows = start.size, len(arrays[0][3])
    x: Any = start
    identity, ones, sense = np.eye(n), np.ones(n), np.zeros(n + rows, dtype=np.int32)
    below = np.concatenate([np.zeros(n), np.full(rows, -np.inf)])
    loss = ccv1 = ccv2 = 0.0
    for t, (H, y, A, b) in enumerate(arrays, start=1):
        residual = H @ x - y
        size = np.sqrt(residual @ residual)
        violation = max(0.0, (A @ x - b).max())
        loss += size
        ccv1 += violation
        ccv2 += violation**2
        target = x - t**-0.5 / size * (residual @ H)
        x, _, flag, _ = daqp.solve(identity, -target, A, np.concatenate([ones, b]), below, sense)
        if flag != 1:
            raise SolverFailure(f"bench: DAQP stopped with flag {flag}")
    return np.asarray(x, dtype=np.float64)


def _in_turn(calls: list[Callable[[], Array]], tolerance: float, repeat: int, what: str) -> list[float]:
    """The best time of each call in seconds; they take turns, and must agree."""
    first, *others = [np.array(call()) for call in calls]  # compiles, warms caches
    for other in others:
        if not np.allclose(first, other.reshape(first.shape), rtol=0.0, atol=tolerance):
            raise SolverFailure(f"bench: the results of cocopt and its peer differ, {what}")
    best = [float("inf")] * len(calls)
    for _ in range(repeat):
        best = [min(known, _best_time(call, repeat)[0]) for known, call in zip(best, calls, strict=True)]
    return best


def _projections(
    name: str,
    K: ConvexSet,
    build: Callable[[Any], Constraint],
    y: Array,
    peer: tuple[str, Callable[[int], Callable[[], Array]]],
    repeat: int,
) -> list[Comparison]:
    """The whole batch in one call, and its first point by itself."""
    title, prepare = peer
    tolerance = _CLARABEL_DIFFERENCE if title == "Clarabel" else _MAX_DIFFERENCE
    table = []
    for count in (len(y), 1):
        index: Any = slice(count) if count > 1 else 0

        def ours(index: Any = index) -> Array:
            return project(K, build(index), y[index])

        what = f"{name}, batch of {count}" if count > 1 else f"{name}, one point"
        seconds = _in_turn([ours, prepare(count)], tolerance, repeat, what)
        table.append(Comparison(what, seconds[0] / count * 1e6, title, seconds[1] / count * 1e6))
    return table


def _qp_calls(y: Array, A: Array, b: Array, simplex: bool) -> Callable[[int], Callable[[], Array]]:
    """For so many problems, a loop around ``daqp.solve``; what can be prepared is prepared outside the loop."""
    import daqp

    trials, n = y.shape
    H, f, x = np.eye(n), -y, np.empty((trials, n))
    if simplex:  # Σ x = 1, x ≥ 0
        A, b = np.concatenate([np.ones((trials, 1, n)), A], axis=1), np.concatenate([np.ones((trials, 1)), b], axis=1)
    rows = np.ascontiguousarray(A)
    above = np.ascontiguousarray(np.concatenate([np.full((trials, n), np.inf if simplex else 1.0), b], axis=1))
    below = np.concatenate([np.zeros(n), np.full(b.shape[1], -np.inf)])
    sense = np.zeros(below.size, dtype=np.int32)
    if simplex:
        below[n], sense[n] = 1.0, 5  # an equation

    def prepare(count: int) -> Callable[[], Array]:
        def run() -> Array:
            for i in range(count):
                x[i], _, flag, _ = daqp.solve(H, f[i], rows[i], above[i], below, sense)
                if flag != 1:
                    raise SolverFailure(f"bench: DAQP stopped with flag {flag}")
            return x[:count]

        return run

    return prepare


def _cone_calls(y: Array, center: Array, radius: Array) -> Callable[[int], Callable[[], Array]]:
    """For so many problems, direct calls of Clarabel with its default settings: the unit box and a ball."""
    import clarabel
    from scipy import sparse

    trials, n = y.shape
    eye = sparse.identity(n, format="csc")
    matrix = sparse.vstack([eye, -eye, sparse.csc_matrix((1, n)), -eye], format="csc")
    cones = [clarabel.NonnegativeConeT(2 * n), clarabel.SecondOrderConeT(n + 1)]
    rhs = [np.concatenate([np.ones(n), np.zeros(n), radius[i : i + 1], -center[i]]) for i in range(trials)]
    f, x = -y, np.empty((trials, n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False

    def prepare(count: int) -> Callable[[], Array]:
        def run() -> Array:
            for i in range(count):
                x[i] = clarabel.DefaultSolver(eye, f[i], matrix, rhs[i], cones, settings).solve().x
            return x[:count]

        return run

    return prepare


def _best_time(call: Callable[[], Array], repeat: int) -> tuple[float, Array]:
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        action = call()
        times.append(time.perf_counter() - began)
    return min(times), action


def _by_daqp(start: Array, data: list[Any]) -> Array:
    """CLASP with NumPy and a QP solver; computes loss, CCV₁ and CCV₂ as well, as cocopt does."""
    import daqp

    trials, n = start.shape
    rows = data[0][1].A.shape[-2]
    identity, sense = np.eye(n), np.zeros(n + rows, dtype=np.int32)
    below = np.concatenate([np.zeros(n), np.full(rows, -np.inf)])
    above = np.ones(n + rows)
    actions = start.copy()
    loss, ccv1, ccv2 = np.zeros(trials), np.zeros(trials), np.zeros(trials)
    for t, (f, g) in enumerate(data, start=1):
        for k in range(trials):
            x, H, A = actions[k], f.H[k], g.A[k]
            residual = H @ x - f.y[k]
            size = np.sqrt(residual @ residual)
            violation = max(0.0, (A @ x - g.b[k]).max())
            loss[k] += size
            ccv1[k] += violation
            ccv2[k] += violation**2
            above[n:] = g.b[k]
            target = x - (residual @ H) / size / np.sqrt(t)
            actions[k], _, flag, _ = daqp.solve(identity, -target, np.ascontiguousarray(A), above, below, sense)
            if flag != 1:
                raise SolverFailure(f"bench: DAQP stopped with flag {flag}")
    return actions
