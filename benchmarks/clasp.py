"""CLASP on the paper's regression (n = 10, 4 rows), metrics included, beside a NumPy loop around ``daqp.solve``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import daqp
import numpy as np

from cocopt import CLASP, Box, constraints, losses

DIM, ROWS, TRIALS, ROUNDS = 10, 4, 100, 100
FIRST_TELL = """
import time; t = time.perf_counter()
import numpy as np
from cocopt import CLASP, Box, constraints, losses
learner = CLASP(Box(0.0, 1.0, dim=10), start=np.full(10, 0.5), beta=0.5)
learner.tell(losses.Norm(np.ones((4, 10)), np.ones(4)), constraints.Affine(np.ones((4, 10)), np.ones(4)))
print(time.perf_counter() - t)
"""

Data = list[tuple[np.ndarray, ...]]


def data(trials: int, rounds: int = ROUNDS) -> tuple[np.ndarray, Data]:
    """The start points and, for each round, (H, y, A, b) of all trials."""
    rng = np.random.default_rng(0)
    rounds_ = []
    for _ in range(rounds):
        H = rng.uniform(-1, 1, (trials, ROWS, DIM))
        A, b = rng.uniform(0, 2, (trials, ROWS, DIM)), rng.uniform(0, 1, (trials, ROWS))
        rounds_.append((H, H.sum(axis=-1) + rng.normal(size=(trials, ROWS)), A, b))
    return rng.uniform(0, 1, (trials, DIM)), rounds_


def by_cocopt(start: np.ndarray, rounds: Data, rows: str) -> Callable[[], np.ndarray]:
    """All trials in one learner; a single trial as a stream without leading axis. CCV₂ and the last point of each."""
    if len(start) == 1:
        start, rounds = start[0], [tuple(part[0] for part in parts) for parts in rounds]

    def run() -> np.ndarray:
        learner = CLASP(Box(0.0, 1.0, dim=DIM), start=start, beta=0.5, rows=rows)
        for H, y, A, b in rounds:
            learner.ask()
            learner.tell(losses.Norm(H, y), constraints.Affine(A, b))
        return np.column_stack([np.atleast_1d(learner.ledger.ccv2), np.atleast_2d(learner.ask())])

    return run


def by_daqp(start: np.ndarray, rounds: Data, rows: str) -> Callable[[], np.ndarray]:
    """What one would write: a loop over trials and rounds, arrays made beforehand where that helps."""
    used = 1 if rows == "worst" else ROWS
    H0, lower = np.eye(DIM), np.concatenate([np.zeros(DIM), np.full(used, -1e30)])
    sense, ones = np.zeros(DIM + used, dtype=np.int32), np.ones(DIM)

    def run() -> np.ndarray:
        results = []
        for k in range(len(start)):
            x, loss, soft, ccv1, ccv2, ccv2_sum = start[k], 0.0, 0.0, 0.0, 0.0, 0.0
            for t, (H, y, A, b) in enumerate(rounds, 1):
                residual = H[k] @ x - y[k]
                value = np.sqrt(residual @ residual)
                gradient = residual @ H[k] / value
                g = A[k] @ x - b[k]
                worst = g.argmax()
                violation = max(g[worst], 0.0)
                loss += value
                soft += g[worst]
                ccv1 += violation
                ccv2 += violation**2
                ccv2_sum += (np.maximum(g, 0.0) ** 2).sum()
                target = x - t**-0.5 * gradient
                part = slice(worst, worst + 1) if used == 1 else slice(None)
                x = daqp.solve(H0, -target, A[k, part], np.concatenate([ones, b[k, part]]), lower, sense)[0]
            results.append([ccv2, *x])
        return np.array(results)

    return run


def first_tell() -> float:
    """Seconds from the first import to the end of the first `tell`, kernels cached; the best of five processes."""
    command = [sys.executable, "-c", FIRST_TELL]
    return min(float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(5))


def table(race: Callable[..., dict[str, float]], row: Callable[..., dict[str, Any]], repeat: int) -> list[Any]:
    """The figures, as benchmarks/run.py shows them."""
    figures = []
    for name, trials, rows, target in [
        ("CLASP, batch of 100, worst row", TRIALS, "worst", 10),
        ("CLASP, batch of 100, all rows", TRIALS, "all", 6),
        ("CLASP, single stream, all rows", 1, "all", 2),
        ("CLASP, single stream, worst row", 1, "worst", 2),
    ]:
        start, rounds = data(trials, ROUNDS if trials > 1 else 20 * ROUNDS)
        arguments = (start, rounds, rows)
        best = race({"cocopt": by_cocopt(*arguments), "daqp": by_daqp(*arguments)}, repeat)
        count = trials * len(rounds)
        figures.append(row(name, "loop around daqp.solve", target, best["cocopt"] / count, best["daqp"] / count))
    figures.append({"name": "start to first tell, seconds", "target": 1.2, "reached": first_tell(), "at_most": True})
    return figures
