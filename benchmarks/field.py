"""Every algorithm in a batch of 100 trials, metrics included, beside a plain NumPy loop over trials of the same method.

python benchmarks/field.py [--quick]

On the paper's regression; algorithms that need a fixed constraint or strongly convex losses on `static`. Algorithms are
those of the registry: one without a loop in field_loops.py is listed with its own time alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from field_loops import LOOPS, Constants, Method

from cocopt import losses
from cocopt.experiments.algorithms import resolve
from cocopt.experiments.field import applicable
from cocopt.problems import get

TRIALS, ROUNDS, FEW = 100, 100, 10  # loops are compared on all trials, and timed on a few
RATIO, COST = 4.0, 5.0  # at least so many times faster than the loop; at most so many times as expensive as CLASP
AGREE = 1e-6

#: what may cost more, by its definition
DEMANDING = {"switch": "two projections per round onto all constraints so far"}

Row = dict[str, Any]


class Case:
    """A problem, its rounds for all trials, and the algorithms that are measured on it."""

    def __init__(self, name: str, elsewhere: set[str] | None = None) -> None:
        """``elsewhere``: the algorithms measured on another problem; here they are left out, unless they are CLASP, the
        unit, or take a form for a fixed constraint.
        """
        self.problem, trials = get(name), np.arange(TRIALS)
        self.start = self.problem.start(0, trials)
        if self.problem.static:
            # From 0 Frank–Wolfe steps move several coordinates alike, so that rows tie, and rounding decides which is
            # the largest. These points satisfy the constraint by at least as much.
            self.start = self.start - np.random.default_rng(0).uniform(0.0, 0.1, self.start.shape)
        self.reveals = []
        for _, count, reveal in self.problem.blocks(seed=0, trials=trials, rounds=ROUNDS):
            self.reveals += [(reveal, k) for k in range(count)]
        chosen, _ = applicable(self.problem, ROUNDS)
        described = {spec.partition(":")[0]: (title, *resolve(spec)) for title, spec in chosen.items()}
        self.algorithms = {
            key: (title, algorithm)
            for key, (title, algorithm) in described.items()
            if elsewhere is None or key == "clasp" or key not in elsewhere or self.build(algorithm).static
        }

    def build(self, algorithm: Any) -> Any:
        return algorithm.build(self.problem, ROUNDS, self.start)

    def by_cocopt(self, algorithm: Any) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            learner, points = self.build(algorithm), []
            for reveal, k in self.reveals:
                points.append(learner.ask())
                learner.tell(*reveal(k))
            return np.array([*points, learner.ask()])

        return run

    def by_loop(self, method: Method, trials: int) -> Callable[[], np.ndarray]:
        """The same points, (T + 1, trials, n), and the same metrics, one trial after the other."""
        problem, K = self.problem, self.problem.K
        known = {"slack": None, **problem.algorithm_defaults}
        constants = Constants(
            T=ROUNDS,
            G=known["lipschitz"],
            D=known["diameter"],
            B=known["bound"],
            slack=known["slack"],
            m=problem.strong_convexity or None,
            static=problem.static,
            lower=float(K.lower[0]),
            upper=float(K.upper[0]),
        )
        rounds = [self._arrays(*reveal(k)) for reveal, k in self.reveals]

        def run() -> np.ndarray:
            points = np.empty((ROUNDS + 1, trials, K.dim))
            for k in range(trials):
                stream = method(constants, self.start[k])
                points[0, k] = x = next(stream)
                loss = soft = ccv1 = ccv2 = ccv2_sum = 0.0
                for t, (evaluate, data, A, b) in enumerate(rounds, 1):
                    value, gradient = evaluate(x, *(part[k] for part in data))
                    g = A[k] @ x - b[k]
                    largest = g.max()
                    violation = max(largest, 0.0)
                    loss += value
                    soft += largest
                    ccv1 += violation
                    ccv2 += violation**2
                    ccv2_sum += (np.maximum(g, 0.0) ** 2).sum()
                    points[t, k] = x = stream.send((gradient, g, A[k], b[k]))
            return points

        return run

    @staticmethod
    def _arrays(loss: Any, constraint: Any) -> tuple[Any, ...]:
        """How the loss is evaluated, and all data with an axis for trials."""
        A = np.array(np.broadcast_to(constraint.A, (TRIALS, *constraint.A.shape[-2:])))  # DAQP needs writable arrays
        b = np.array(np.broadcast_to(constraint.b, (TRIALS, *constraint.b.shape[-1:])))
        if isinstance(loss, losses.Distance):
            return distance, (loss.center,), A, b
        return norm, (loss.H, loss.y), A, b


def norm(x: np.ndarray, H: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    residual = H @ x - y
    value = np.sqrt(residual @ residual)
    return value, residual @ H / value


def distance(x: np.ndarray, center: np.ndarray) -> tuple[float, np.ndarray]:
    offset = x - center
    return offset @ offset / 2, offset


def seconds(contestants: dict[str, Callable[[], np.ndarray]], repeat: int) -> dict[str, float]:
    """The least processor time of each; they take turns, so that a slow moment of the machine slows all."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repeat):
        for name, run in contestants.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def measure(case: Case, repeat: int) -> list[Row]:
    """One row per algorithm: microseconds per trial and round."""
    rows: list[Row] = []
    for key, (title, algorithm) in case.algorithms.items():
        ours, loop = case.by_cocopt(algorithm), LOOPS.get(key)
        contestants = {"cocopt": ours}
        points = ours()
        if loop is not None:
            apart = float(np.abs(points - case.by_loop(loop, TRIALS)()).max())
            if apart > AGREE:
                raise RuntimeError(f"{title} on {case.problem.name}: the loop differs by {apart:.1e}")
            contestants["loop"] = case.by_loop(loop, FEW)
        best = seconds(contestants, repeat)
        row: Row = {"name": title, "key": key, "problem": case.problem.name}
        row["microseconds"] = best["cocopt"] / (TRIALS * ROUNDS) * 1e6
        if loop is not None:
            row["peer_microseconds"] = best["loop"] / (FEW * ROUNDS) * 1e6
            row["reached"] = row["peer_microseconds"] / row["microseconds"]
        rows.append(row)
    unit = next(row["microseconds"] for row in rows if row["key"] == "clasp")
    return [row | {"cost": row["microseconds"] / unit} for row in rows]


def table(repeat: int) -> list[Row]:
    """The figures of all algorithms, the cheapest of each problem first."""
    regression = Case("olr")
    static = Case("static", elsewhere=set(regression.algorithms))
    return [row for case in (regression, static) for row in sorted(measure(case, repeat), key=lambda r: r["cost"])]


def show(rows: list[Row]) -> None:
    """A Markdown table."""
    print(f"| problem | algorithm | µs | loop, µs | loop / cocopt (≥ {RATIO:g}) | × CLASP (≤ {COST:g}) | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        loop, ratio = (f"{row[key]:.3g}" if key in row else "no loop" for key in ("peer_microseconds", "reached"))
        cells = [row["problem"], row["name"], f"{row['microseconds']:.3g}", loop, ratio, f"{row['cost']:.2f}"]
        cells.append(note(row))
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def note(row: Row) -> str:
    """Which limit is missed, and why it may be."""
    missed = [f"**less than {RATIO:g} times as fast as the loop**"] if row.get("reached", RATIO) < RATIO else []
    if row["cost"] > COST:
        missed.append(DEMANDING.get(row["key"], f"**more than {COST:g} times the cost of CLASP**"))
    return ", ".join(missed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    show(table(3 if parser.parse_args().quick else 10))


if __name__ == "__main__":
    main()
