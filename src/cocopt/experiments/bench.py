"""The speed of CLASP on the paper's regression, beside what a user would write without cocopt."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cocopt import problems
from cocopt.algorithms import CLASP
from cocopt.arrays import Array
from cocopt.errors import SolverFailure

__all__ = ["Speed", "compare"]

_MAX_DIFFERENCE = 1e-6  # between the last actions of two implementations of the same algorithm


class Speed(NamedTuple):
    """One implementation of CLASP, and its time per trial and round."""

    name: str
    microseconds: float


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
