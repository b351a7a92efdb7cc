"""CLASP, CLASP-F, RECOO and AdaGrad on the paper's regression, a batch of 100 trials, metrics included.

Each beside the same algorithm written as a NumPy loop (around ``daqp.solve`` where it solves something, around
``np.clip`` where it only projects onto the box) and beside that loop around a parametrised (DPP) CVXPY problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import daqp
import numpy as np
from clasp import DIM, ROWS, TRIALS, Data, data
from kernels import best_times

from cocopt import CLASP, CLASPF, RECOO, AdaGrad, Box, constraints, losses

HORIZON, LIPSCHITZ, DIAMETER, EPSILON = 100, 12.0, DIM**0.5, 0.1
CVXPY_ROUNDS = 12  # of a single trial: a round takes milliseconds

Answer = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]  # (target, A, b, max_multiplier_sum) → x


def learner(name: str, start: np.ndarray) -> Any:
    K = Box(0.0, 1.0, dim=DIM)
    if name == "AdaGrad":
        return AdaGrad(K, HORIZON, LIPSCHITZ, start=start)
    if name == "RECOO":
        return RECOO(K, start=start, epsilon=EPSILON)
    return {"CLASP": CLASP, "CLASP-F": CLASPF}[name](K, start=start, beta=0.5)


def by_cocopt(name: str, start: np.ndarray, rounds: Data) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        one = learner(name, start)
        for H, y, A, b in rounds:
            one.ask()
            one.tell(losses.Norm(H, y), constraints.Affine(A, b))
        return one.ask()

    return run


def by_loop(name: str, start: np.ndarray, rounds: Data, solve: Answer, box: Answer) -> Callable[[], np.ndarray]:
    """What one would write. ``solve`` is argmin ½‖x − target‖² + w·max_i g_i^+ over the box, ``box`` is P_K."""

    def run() -> np.ndarray:
        points = []
        for k in range(len(start)):
            x = start[k]
            loss = soft = ccv1 = ccv2 = ccv2_sum = queue = squares = 0.0
            Q = 1.0
            for t, (H_all, y_all, A_all, b_all) in enumerate(rounds, 1):
                H, y, A, b = H_all[k], y_all[k], A_all[k], b_all[k]
                residual = H @ x - y
                value = np.sqrt(residual @ residual)
                gradient = residual @ H / value
                g = A @ x - b
                i = g.argmax()
                violation = max(g[i], 0.0)
                loss += value
                soft += g[i]
                ccv1 += violation
                ccv2 += violation**2
                ccv2_sum += (np.maximum(g, 0.0) ** 2).sum()
                if name == "CLASP":
                    x = solve(x - t**-0.5 * gradient, A, b, np.inf)
                elif name == "CLASP-F":
                    middle = box(x - violation / (A[i] @ A[i]) * A[i], A, b, 0.0) if violation > 0 else x
                    x = box(middle - t**-0.5 * gradient, A, b, 0.0)
                elif name == "RECOO":
                    alpha, gamma = np.sqrt(t), t ** (0.5 + EPSILON)
                    x = solve(x - gradient / (2 * alpha), A, b, Q * gamma / (2 * alpha))
                    Q = max(Q + gamma * max((A @ x - b).max(), 0.0), np.sqrt(t + 1))
                else:
                    weight, rate = 1 / (2 * LIPSCHITZ * DIAMETER), 0.5 / np.sqrt(HORIZON)
                    queue += weight * violation
                    n = weight * gradient
                    if violation > 0:
                        n = n + rate * np.exp(rate * queue) * weight * A[i]
                    squares += n @ n
                    x = box(x - DIAMETER / np.sqrt(2 * squares) * n, A, b, 0.0)
            points.append(x)
        return np.array(points)

    return run


def with_daqp() -> Answer:
    """The hinge as one more variable; without a bound there is none."""
    plain, lower = np.eye(DIM), np.concatenate([np.zeros(DIM), np.full(ROWS, -1e30)])
    sense, ones = np.zeros(DIM + ROWS, dtype=np.int32), np.ones(DIM)
    H = np.diag(np.append(np.ones(DIM), 0.0))
    low, senses = np.concatenate([np.zeros(DIM + 1), np.full(ROWS, -1e30)]), np.zeros(DIM + 1 + ROWS, dtype=np.int32)
    slack = -np.ones((ROWS, 1))

    def solve(target: np.ndarray, A: np.ndarray, b: np.ndarray, max_multiplier_sum: float) -> np.ndarray:
        x, _, _, info = daqp.solve(plain, -target, A, np.concatenate([ones, b]), lower, sense)
        if info["lam"][DIM:].sum() <= max_multiplier_sum:
            return x
        high = np.concatenate([ones, [1e30], b])
        return daqp.solve(H, np.append(-target, max_multiplier_sum), np.hstack([A, slack]), high, low, senses)[0][:DIM]

    return solve


def with_cvxpy() -> tuple[Answer, Answer]:
    x, t = cp.Variable(DIM), cp.Variable(nonneg=True)
    target, A, b, weight = cp.Parameter(DIM), cp.Parameter((ROWS, DIM)), cp.Parameter(ROWS), cp.Parameter(nonneg=True)
    inside = [x >= 0, x <= 1]
    objective = 0.5 * cp.sum_squares(x - target)
    exact = cp.Problem(cp.Minimize(objective), [*inside, A @ x <= b])
    hinge = cp.Problem(cp.Minimize(objective + weight * t), [*inside, A @ x <= b + t])
    clip = cp.Problem(cp.Minimize(objective), inside)

    def solve(point: np.ndarray, rows: np.ndarray, rhs: np.ndarray, max_multiplier_sum: float) -> np.ndarray:
        target.value, A.value, b.value = point, rows, rhs
        if np.isfinite(max_multiplier_sum):
            weight.value = max_multiplier_sum
        (hinge if np.isfinite(max_multiplier_sum) else exact).solve(solver=cp.CLARABEL)
        return x.value

    def box(point: np.ndarray, rows: np.ndarray, rhs: np.ndarray, max_multiplier_sum: float) -> np.ndarray:
        target.value = point
        clip.solve(solver=cp.CLARABEL)
        return x.value

    return solve, box


def table(race: Callable[..., dict[str, float]], row: Callable[..., dict[str, Any]], repeat: int) -> list[Any]:
    """The figures, as benchmarks/run.py shows them."""
    start, rounds = data(TRIALS)
    few = [tuple(part[:1] for part in parts) for parts in rounds[:CVXPY_ROUNDS]]
    figures = []
    for name, peer, target in [
        ("CLASP", "loop around daqp.solve", 8),
        ("RECOO", "loop around daqp.solve", 8),
        ("CLASP-F", "loop around np.clip", 4),
        ("AdaGrad", "loop around np.clip", 4),
    ]:
        loop = by_loop(name, start, rounds, with_daqp(), lambda point, *_: np.clip(point, 0.0, 1.0))
        contestants = {"cocopt": by_cocopt(name, start, rounds), "loop": loop}
        race(contestants, 1, agree=1e-4)
        contestants["cvxpy"] = by_loop(name, start[:1], few, *with_cvxpy())
        best = best_times(contestants, repeat)  # in turn, so that a slow moment of the machine slows all
        ours = best["cocopt"] / (TRIALS * len(rounds))
        figures.append(row(f"{name}, batch of 100", peer, target, ours, best["loop"] / (TRIALS * len(rounds))))
        figures.append(row(f"{name}, batch of 100", "loop around DPP CVXPY", 1000, ours, best["cvxpy"] / len(few)))
    return figures
