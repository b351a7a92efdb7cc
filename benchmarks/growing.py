"""Persistent constraints: CLASP(window=None) and Switch beside one quadratic program over the whole history a round.

Two streams of rows in n = 10: the paper's regression (4 rows a round; S_t shrinks, nearly all rows become redundant) and
halfspaces that touch a fixed ball (1 row a round; none becomes redundant for good).
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
    A = rng.normal(size=(trials, 1, DIM))
    H = rng.normal(size=(trials, 2, DIM))
    return H, 3.0 * rng.normal(size=(trials, 2)), A, np.linalg.norm(A, axis=-1)


STREAMS = {
    "regression": (Box(0.0, 1.0, dim=DIM), regression),
    "around a ball": (Box(-2.0, 2.0, dim=DIM), around),
}


def run(learner: Any, stream: Callable[..., Any], rounds: int, marks: tuple[int, ...]) -> tuple[dict[int, float], Any]:
    """The seconds that `tell` took up to each mark (generation excluded), and all rows."""
    rng, spent, seconds, told = np.random.default_rng(0), 0.0, {}, []
    for t in range(1, rounds + 1):
        H, y, A, b = stream(rng, learner.batch[0])
        told.append((A[0], b[0]))
        loss, constraint = losses.Norm(H, y), constraints.Affine(A, b)
        start = time.perf_counter()
        learner.tell(loss, constraint)
        spent += time.perf_counter() - start
        if t in marks:
            seconds[t] = spent
    return seconds, told


def from_scratch(K: Box, A: np.ndarray, b: np.ndarray, target: np.ndarray, repeat: int) -> tuple[float, np.ndarray]:
    """Seconds of one `daqp.solve` over the whole history, everything prepared, and its point."""
    above, below = np.concatenate([K.upper, b]), np.concatenate([K.lower, np.full(b.size, -1e30)])
    H, sense, best, x = np.eye(DIM), np.zeros(DIM + b.size, dtype=np.int32), np.inf, target
    for _ in range(repeat):
        start = time.perf_counter()
        x, _, flag, _ = daqp.solve(H, -target, A, above, below, sense, primal_tol=1e-12)
        best = min(best, time.perf_counter() - start)
        if flag != 1:
            raise RuntimeError(f"DAQP stopped with flag {flag}")
    return best, x


def at_two_thousand(name: str, row: Callable[..., Row], repeat: int) -> Row:
    """The last 100 of 2000 rounds of 100 trials, metrics included, beside DAQP in the last round of the first trial."""
    K, stream = STREAMS[name]
    learner = CLASP(K, start=np.zeros((TRIALS, DIM)), window=None)
    seconds, told = run(learner, stream, AT, (AT - 100, AT))
    A, b = (np.concatenate(part) for part in zip(*told, strict=True))
    H, y, more, right = stream(np.random.default_rng(1), TRIALS)
    loss = losses.Norm(H, y)
    target = (learner.ask() - (AT + 1) ** -0.5 * loss.gradient(learner.ask()))[0]
    learner.tell(loss, constraints.Affine(more, right))
    theirs, x = from_scratch(K, np.vstack([A, more[0]]), np.append(b, right[0]), target, repeat)
    apart = np.abs(x - learner.ask()[0]).max() / np.abs(x).max()
    if apart > 1e-6:
        raise RuntimeError(f"DAQP differs by {apart:.1e} of the point")
    ours = (seconds[AT] - seconds[AT - 100]) / 100 / TRIALS
    return row(f"{name}, round {AT}, {TRIALS} trials", "daqp.solve, whole history", 100, ours, theirs)


def long_run(name: str, method: str) -> Row:
    """The mean cost of a round over 20,000 rounds against that over 2000."""
    K, stream = STREAMS[name]
    start = np.zeros((FEW, DIM))
    learner: Any = CLASP(K, start=start, window=None)
    if method == "Switch":
        learner = Switch(K, LONG, 10.0, start=start, threshold=1e9)
    seconds, told = run(learner, stream, LONG, (AT, LONG))
    memory = learner._state.memory
    pile = (memory.seen if method == "Switch" else memory.window.demanded).pile
    kept = f"{pile.near.size} rows near, {pile.all.size} kept of {LONG * len(told[0][1])}"
    ratio = seconds[LONG] / LONG / (seconds[AT] / AT)
    label = f"{method}, {name}, cost of 20,000 rounds / 2000 ({kept})"
    return {
        "name": label,
        "target": 4,
        "reached": ratio,
        "at_most": True,
        "microseconds": seconds[LONG] / LONG / FEW * 1e6,
    }


def table(row: Callable[..., Row], repeat: int) -> list[Row]:
    """All of it; ``row`` makes a line of a table."""
    first = [at_two_thousand(name, row, repeat) for name in STREAMS]
    return first + [long_run(name, method) for name in STREAMS for method in ("CLASP", "Switch")]
