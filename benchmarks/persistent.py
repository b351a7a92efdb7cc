"""Persistent constraints: CLASP(window=None) and Switch beside one quadratic program per round over the whole history.

Two streams of rows in n = 10: the paper's regression (4 rows per round; S_t shrinks, most rows become redundant) and
halfspaces that touch a fixed ball (as many; none is redundant in the limit).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import daqp
import numpy as np

from cocopt import CLASP, Box, Switch, constraints, losses

DIM, TRIALS, FEW = 10, 100, 10
AT, LONG = 2000, 20_000

Row = dict[str, Any]


def regression(rng: np.random.Generator, trials: int) -> tuple[np.ndarray, ...]:
    H = rng.uniform(-1, 1, (trials, 4, DIM))
    y = H.sum(axis=-1) + rng.normal(size=(trials, 4))
    return H, y, rng.uniform(0, 2, (trials, 4, DIM)), rng.uniform(0, 1, (trials, 4))


def around(rng: np.random.Generator, trials: int) -> tuple[np.ndarray, ...]:
    A = rng.normal(size=(trials, 4, DIM))
    H = rng.normal(size=(trials, 2, DIM))
    return H, H.sum(axis=-1) + rng.normal(size=(trials, 2)), A, np.linalg.norm(A, axis=-1)


STREAMS = {
    "regression": (Box(0.0, 1.0, dim=DIM), regression),
    "around a ball": (Box(-2.0, 2.0, dim=DIM), around),
}


def run(learner: Any, stream: Callable[..., Any], rounds: int, marks: tuple[int, ...]) -> tuple[dict[int, float], Any]:
    """The seconds that `tell` took up to each mark (generation excluded), and all rows."""
    rng, spent, seconds, added = np.random.default_rng(0), 0.0, {}, []
    for t in range(1, rounds + 1):
        H, y, A, b = stream(rng, learner.batch[0])
        added.append((A[0], b[0]))
        loss, constraint = losses.Norm(H, y), constraints.Affine(A, b)
        start = time.perf_counter()
        learner.tell(loss, constraint)
        spent += time.perf_counter() - start
        if t in marks:
            seconds[t] = spent
    return seconds, added


def from_scratch(K: Box, A: np.ndarray, b: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    """The seconds of one `daqp.solve` over the whole history, everything prepared, and its point."""
    above, below = np.concatenate([K.upper, b]), np.concatenate([K.lower, np.full(b.size, -1e30)])
    H, sense = np.eye(DIM), np.zeros(DIM + b.size, dtype=np.int32)
    start = time.perf_counter()
    x, _, flag, _ = daqp.solve(H, -target, A, above, below, sense, primal_tol=1e-12)
    seconds = time.perf_counter() - start
    if flag != 1:
        raise RuntimeError(f"DAQP stopped with flag {flag}")
    return seconds, x


def at_two_thousand(name: str, target: float, row: Callable[..., Row]) -> Row:
    """The projections of 100 trials in the last 200 rounds up to 2000, beside those of the first trial by DAQP.

    No archive of all rows is kept, which `squares` alone needs; DAQP's copy of them is not timed either.

    25 rounds (over which the cost of new lists is spread), then the last of them by DAQP five times, and so on, so that
    a slow moment of the machine slows both; of these the medians.
    """
    from cocopt.geometry.persistent import PersistentIntersection

    K, stream = STREAMS[name]
    rng, spent, ours, theirs = np.random.default_rng(0), 0.0, [], []
    rows, bounds = np.zeros((4 * AT, DIM)), np.zeros(4 * AT)
    S, x = PersistentIntersection.begin(K, (TRIALS,), forget=True, archive=False), np.zeros((TRIALS, DIM))
    for t in range(1, AT + 1):
        H, rhs, A, b = stream(rng, TRIALS)
        rows[4 * t - 4 : 4 * t], bounds[4 * t - 4 : 4 * t] = A[0], b[0]
        y = x - t**-0.5 * losses.Norm(H, rhs).gradient(x)
        start = time.perf_counter()
        S, found = S.plus(constraints.Affine(A, b)).project(y)
        spent += time.perf_counter() - start
        x = found.point
        if t % 25 == 0:
            ours.append(spent / 25 / TRIALS)
            spent = 0.0
        if t % 25 == 0 and t > AT - 200:
            for _ in range(5):
                seconds, point = from_scratch(K, rows[: 4 * t], bounds[: 4 * t], y[0])
                theirs.append(seconds)
            apart = np.abs(x[0] - point).max() / np.abs(point).max()
            if apart > 1e-6:
                raise RuntimeError(f"DAQP differs by {apart:.1e} of the point")
    mine, other = float(np.median(ours[-8:])), float(np.median(theirs))
    return row(f"{name}, round {AT}, {TRIALS} trials", "daqp.solve, whole history", target, mine, other)


def long_run(name: str, method: str) -> Row:
    """The mean cost of a round over 20,000 rounds against that over 2000."""
    K, stream = STREAMS[name]
    start = np.zeros((FEW, DIM))
    learner: Any = CLASP(K, start=start, beta=0.5, window=None)
    if method == "Switch":
        learner = Switch(K, LONG, 10.0, start=start, threshold=1e9)
    run(type(learner)(**learner.parameters(), start=start), stream, 20, ())  # loads and compiles what is needed
    seconds, added = run(learner, stream, LONG, (AT, LONG))
    memory = learner._state.memory
    S = memory.intersection if method == "Switch" else memory.constraints.required
    kept = f"{S.nearby.list_sizes[:, -1].max()} rows listed, {S.store.size.max()} kept of {LONG * len(added[0][1])}"
    ratio = seconds[LONG] / LONG / (seconds[AT] / AT)
    label = f"{method}, {name}, cost of 20,000 rounds / 2000 ({kept})"
    return {
        "name": label,
        "target": 4,
        "reached": ratio,
        "at_most": True,
        "microseconds": seconds[LONG] / LONG / FEW * 1e6,
    }


def table(row: Callable[..., Row]) -> list[Row]:
    """All of it; ``row`` makes a line of a table."""
    first = [at_two_thousand(name, 100, row) for name in ("regression", "around a ball")]
    return first + [long_run(name, method) for name in STREAMS for method in ("CLASP", "Switch")]
