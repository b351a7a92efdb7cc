"""The learners whose state files are kept in tests/fixtures, and the rounds that they see; as a script it writes them.

No random numbers: what was written once must be computed again by any later version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cocopt import CLASP, CLASPF, RECOO, AdaGrad, Ball, Box, Product, Simplex, Switch, constraints, losses, state, steps

FOLDER = Path(__file__).parent / "fixtures"
BEFORE, AFTER = 6, 3  # rounds before the learner is saved, and after it is loaded
BATCH = np.array([[0.5, 0.5, 0.25, 0.5, 0.5], [0.1, 0.9, -0.5, 0.2, 0.8]])
SETS = {"product": Product([Box(0.0, 1.0, dim=2), Product([Ball(0.0, 1.0, dim=1), Simplex(2)])])}


def slowly(t: int) -> float:
    return 1.0 / (2.0 + t)


def learners() -> dict[str, Any]:
    K, one, many = SETS["product"], BATCH[0], BATCH
    return {
        "clasp": CLASP(K, start=one, beta=0.5),
        "clasp-batch": CLASP(K, start=many, steps=steps.Adaptive(2.0, scale=1.0), infeasible="nearest"),
        "clasp-callable": CLASP(K, start=one, steps=slowly),
        "clasp-strongly-convex": CLASP(Ball(np.zeros(5), 2.0), start=one, steps=steps.StronglyConvex(1.0)),
        "clasp-window": CLASP(K, start=one, beta=0.5, window=3),
        "clasp-window-batch": CLASP(K, start=many, beta=0.5, window=4, rows="worst"),
        "clasp-persistent": CLASP(K, start=one, beta=0.5, window=None),
        "clasp-persistent-batch": CLASP(K, start=many, beta=0.5, window=None, rows="worst"),
        "clasp-f": CLASPF(K, start=many, gradient_at="xb", steps=steps.Constant(0.1)),
        "recoo": RECOO(K, start=one, strong_convexity=0.5),
        "recoo-batch": RECOO(K, start=many, rows="worst"),
        "adagrad": AdaGrad(K, 100, 3.0, start=one, weight=0.5),
        "adagrad-batch": AdaGrad(K, 100, 3.0, start=many, strong_convexity=0.5),
        "switch": Switch(K, 100, 3.0, start=many),
        "switch-second-phase": Switch(K, 100, 3.0, start=many, threshold=0.1, on_empty="adagrad"),
    }


def tell(learner: Any, t: int) -> None:
    """Round t: the same for all."""
    wave = np.sin(np.arange(10.0) + t)
    loss = losses.Distance(wave[:5] + 0.5)
    constraint: Any = constraints.Affine([np.abs(wave[:5]), np.abs(wave[5:])], [1.2, 1.1])
    if t % 4 == 2:
        constraint = constraints.Stack([constraint, constraints.NormBall(np.full(5, 0.3), 1.4 - 0.02 * t)])
    learner.tell(None if t == 5 else loss, None if t == 3 else constraint)


def proceed(learner: Any, first: int, rounds: int) -> list[Any]:
    """The actions and some of the metrics after each of these rounds."""
    shown = []
    for t in range(first, first + rounds):
        tell(learner, t)
        ledger = learner.ledger
        shown.append([learner.ask().tolist(), np.asarray(ledger.loss).tolist(), np.asarray(ledger.ccv2).tolist()])
    return shown


def write(folder: Path) -> None:
    """Saves all learners, and how they go on."""
    folder.mkdir(parents=True)
    expected = {}
    for name, learner in learners().items():
        proceed(learner, 1, BEFORE)
        learner.save(folder / f"{name}.npz")
        expected[name] = proceed(learner, BEFORE + 1, AFTER)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    write(FOLDER / f"state-v{state.VERSION}")
