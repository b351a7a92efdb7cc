"""Where the time of a round goes, and how far each path is from what the processor allows.

    python benchmarks/profile_round.py [--json FILE]

A round of CLASP on the paper's regression is taken apart: objects, loss, rows, projection, ledger, certificate; what is
left of the whole `tell` are checks and the passing of arguments. The limit of a path is a compiled loop over the same
data that only does what no method can leave out: it reads every number once, evaluates loss and rows at the action, and
writes a point.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clasp
import numpy as np
import table_problems
from numba import njit

import cocopt
from cocopt import CLASP, Box, constraints, losses
from cocopt.metrics import Ledger
from cocopt.theory import Certificate

REPEAT, TURN, SLOW = 7, 0.03, 1.0  # seconds

Parts = dict[str, float]


@njit(fastmath=True)
def read_round(H, y, A, b, x, out):  # type: ignore[no-untyped-def]
    """For each trial: ‖Hx − y‖, its gradient, the rows A x − b, and a step that is cut off at 0 and 1."""
    for k in range(len(x)):
        n = x.shape[1]
        square = 0.0
        for j in range(n):
            out[k, j] = 0.0
        for i in range(H.shape[1]):
            residual = -y[k, i]
            for j in range(n):
                residual += H[k, i, j] * x[k, j]
            square += residual * residual
            for j in range(n):
                out[k, j] += residual * H[k, i, j]
        worst = 0.0
        for i in range(A.shape[1]):
            value = -b[k, i]
            for j in range(n):
                value += A[k, i, j] * x[k, j]
            worst = max(worst, value)
        step = 0.1 / np.sqrt(square + 1e-300)
        for j in range(n):
            out[k, j] = min(max(x[k, j] - step * out[k, j] - 1e-9 * worst, 0.0), 1.0)
    return out


@njit(fastmath=True)
def read_rows(A, b, y, out):  # type: ignore[no-untyped-def]
    """For each problem: P_K(y) of a box, the rows there, and a point."""
    for k in range(len(y)):
        n = y.shape[1]
        for j in range(n):
            out[k, j] = min(max(y[k, j], 0.0), 1.0)
        worst = 0.0
        for i in range(A.shape[1]):
            value = -b[k, i]
            for j in range(n):
                value += A[k, i, j] * out[k, j]
            worst = max(worst, value)
        out[k, 0] -= 1e-9 * worst
    return out


@njit(fastmath=True)
def read_ball(center, radius, y, out):  # type: ignore[no-untyped-def]
    """For each problem: P_K(y) of a box, its distance from the centre, and a point."""
    for k in range(len(y)):
        square = 0.0
        for j in range(y.shape[1]):
            out[k, j] = min(max(y[k, j], 0.0), 1.0)
            square += (out[k, j] - center[k, j]) ** 2
        share = min(radius[k] / np.sqrt(square + 1e-300), 1.0)
        for j in range(y.shape[1]):
            out[k, j] = center[k, j] + share * (out[k, j] - center[k, j])
    return out


@njit(fastmath=True)
def read_quadratic(P, q, r, y, out):  # type: ignore[no-untyped-def]
    """For each problem: P_K(y) of a box, the quadratic and its gradient there, and a point."""
    for k in range(len(y)):
        n = y.shape[1]
        value = r[k]
        for i in range(n):
            x = min(max(y[k, i], 0.0), 1.0)
            slope = q[k, i]
            for j in range(n):
                slope += P[k, i, j] * min(max(y[k, j], 0.0), 1.0)
            value += x * slope
            out[k, i] = x - 1e-9 * slope
        out[k, 0] -= 1e-9 * value
    return out


def best_times(calls: dict[str, Callable[[], Any]]) -> Parts:
    """The best seconds of each; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEAT):
        for name, call in calls.items():
            end = time.perf_counter() + TURN
            while True:
                start = time.perf_counter()
                call()
                stop = time.perf_counter()
                best[name] = min(best[name], stop - start)
                if stop >= end:
                    break
    return best


def round_parts(trials: int) -> Parts:
    """Microseconds per trial and round of each part, of the whole round, and of the limit."""
    start, rounds = clasp.data(trials, 50)
    if trials == 1:
        x, data = start[0], [tuple(part[0] for part in parts) for parts in rounds]
    else:
        x, data = start, rounds
    K, batch = Box(0.0, 1.0, dim=clasp.DIM), x.shape[:-1]
    learner, points, targets = CLASP(K, start=x, beta=0.5), [], []
    for t, (H, y, A, b) in enumerate(data, 1):
        points.append(learner.ask())
        targets.append(points[-1] - t**-0.5 * losses.Norm(H, y).gradient(points[-1]))
        learner.tell(losses.Norm(H, y), constraints.Affine(A, b))
    objects = [(losses.Norm(H, y), constraints.Affine(A, b)) for H, y, A, b in data]
    pairs = list(zip(objects, points, strict=True))
    values = [(f.value_and_gradient_unchecked(x), g.rows_unchecked(x)) for (f, g), x in pairs]
    ledger, proof = Ledger.zero(batch), Certificate.zero(batch, diameter=K.diameter, modulus=0.0)
    squares = [np.vecdot(gradient, gradient) for (_, gradient), _ in values]

    def whole_rounds() -> None:
        learner = CLASP(K, start=x, beta=0.5)
        for H, y, A, b in data:
            learner.tell(losses.Norm(H, y), constraints.Affine(A, b))

    out = np.empty_like(start)
    read_round(*rounds[0], start, out)
    seconds = best_times(
        {
            "objects": lambda: [(losses.Norm(H, y), constraints.Affine(A, b)) for H, y, A, b in data],
            "loss and gradient": lambda: [f.value_and_gradient_unchecked(x) for (f, _), x in pairs],
            "rows": lambda: [g.rows_unchecked(x) for (_, g), x in pairs],
            "projection": lambda: [
                cocopt.project(K, g, target) for (_, g), target in zip(objects, targets, strict=True)
            ],
            "ledger": lambda: [ledger.with_round(value, rows, None, None) for (value, _), rows in values],
            "certificate": lambda: [proof.after_unchecked(0.1, square) for square in squares],
            "whole round": whole_rounds,
            "limit": lambda: [read_round(*parts, start, out) for parts in rounds],
        }
    )
    return {name: each / (trials * len(rounds)) * 1e6 for name, each in seconds.items()}


def path_limits() -> dict[str, Parts]:
    """Microseconds per problem of projections of a batch, and of the loop that is their limit."""
    paths: dict[str, Parts] = {}
    for n, rows in ((10, 1), (10, 4), (10, 80), (100, 20)):
        make = lambda trials, n=n, rows=rows: table_problems.affine("box", n, rows, trials)  # noqa: E731
        name = f"box ∩ {rows} affine row{'s' * (rows > 1)}, n = {n}"
        paths[name] = _pair(make, lambda g, y, out: read_rows(g.A, g.b, y, out))
    for n in (10, 100):
        make = lambda trials, n=n: table_problems.curved("box", "NormBall", n, trials)  # noqa: E731
        paths[f"box ∩ NormBall, n = {n}"] = _pair(make, lambda g, y, out: read_ball(g.center, g.radius, y, out))
    for n in (10, 100):
        make = lambda trials, n=n: table_problems.curved("box", "Quadratic", n, trials)  # noqa: E731
        paths[f"box ∩ Quadratic, n = {n}"] = _pair(make, lambda g, y, out: read_quadratic(g.P, g.q, g.r, y, out))
    return paths


def _pair(make: Callable[[int], table_problems.Problems], read: Callable[..., Any]) -> Parts:
    """A batch of 100; of two where that would take too long."""
    first = make(2)
    whole = first.build(slice(None))
    cocopt.project(first.K, whole, first.y)
    start = time.perf_counter()
    cocopt.project(first.K, whole, first.y)
    if 50 * (time.perf_counter() - start) < SLOW:
        first = make(100)
    whole, out = first.build(slice(None)), np.empty_like(first.y)
    read(whole, first.y, out)
    seconds = best_times(
        {
            "projection": lambda: cocopt.project(first.K, whole, first.y),
            "limit": lambda: read(whole, first.y, out),
        }
    )
    return {name: each / len(first.y) * 1e6 for name, each in seconds.items()}


def measure() -> dict[str, Any]:
    """Parts of a round in a batch and in a single stream, and the limits of the paths."""
    return {
        "round": {"batch of 100": round_parts(100), "one stream": round_parts(1)},
        "paths": path_limits(),
    }


def markdown(figures: dict[str, Any]) -> str:
    """The two tables of docs/performance.md."""
    names = list(figures["round"]["one stream"])
    lines = ["| part of a round, µs per trial | " + " | ".join(figures["round"]) + " |"]
    lines.append("|---" * (1 + len(figures["round"])) + "|")
    for name in names:
        cells = [f"{parts[name]:.3g}" for parts in figures["round"].values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    left = []
    for parts in figures["round"].values():
        known = sum(value for name, value in parts.items() if name not in ("whole round", "limit"))
        left.append(f"{parts['whole round'] / parts['limit']:.3g} ({known / parts['whole round']:.0%})")
    lines += ["| whole round / limit (share of the parts) | " + " | ".join(left) + " |", ""]
    lines += ["| projection, batch of 100 | µs | limit, µs | times the limit |", "|---|---|---|---|"]
    for name, pair in figures["paths"].items():
        ratio = pair["projection"] / pair["limit"]
        lines.append(f"| {name} | {pair['projection']:.3g} | {pair['limit']:.3g} | {ratio:.3g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    options = parser.parse_args()
    figures = measure()
    print(markdown(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
