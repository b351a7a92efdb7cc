"""A program of a user: run with the installed package, and checked by mypy and pyright, which see its types alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import cocopt
from cocopt import CLASP, Box, constraints, errors, experiments, losses, metrics, problems, steps
from cocopt.algorithms import Learner
from cocopt.sets import ConvexSet

Array = NDArray[np.float64]


def play(rounds: int = 20) -> CLASP:
    """The example of the README, shorter."""
    rng = np.random.default_rng(0)
    K = Box(0.0, 1.0, dim=3)
    assert_type(K, Box)
    assert_type(K.project([2.0, 0.5, -1.0]), Array)
    learner = CLASP(K, start=np.full(3, 0.5), steps=steps.Power(0.5))
    assert_type(learner, CLASP)
    for _ in range(rounds):
        x = learner.ask()
        assert_type(x, Array)
        A, b = rng.uniform(0, 2, (2, 3)), rng.uniform(0, 1, 2)
        learner.tell(losses.Distance(rng.uniform(size=3)), constraints.Affine(A, b))
    assert_type(learner.ledger, metrics.Ledger)
    assert_type(learner.t, int)
    return learner


class Drifting(problems.Problem):
    """A problem of the user's own."""

    K: ConvexSet = Box(-1.0, 1.0, dim=2)
    rounds = 15

    def round(self, rng: np.random.Generator, t: int) -> tuple[losses.Loss, constraints.Constraint]:
        return losses.Distance(rng.uniform(-1, 1, size=2)), constraints.Affine([1.0, 1.0], 0.5)


def main() -> None:
    """Use the main names; fail if one of them does not do its work."""
    learner = play()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.npz")
        learner.save(path)
        again: Learner = cocopt.load(path)  # whichever algorithm the file names
    np.testing.assert_array_equal(again.ask(), learner.ask())

    assert_type(cocopt.project(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0), [1.0, 0.5]), Array)
    result = cocopt.run(Drifting, ["clasp", "recoo"], trials=3)
    assert_type(result, experiments.Result)
    assert_type(result.finals("clasp"), dict[str, Array])
    assert result.finals("clasp")["ccv2"].shape == (3,)
    try:
        Box(1.0, 0.0, dim=2)
    except errors.EmptySet as error:
        assert_type(error, errors.EmptySet)
    else:
        raise SystemExit("an empty box was accepted")
    print(f"cocopt {cocopt.__version__}: the program outside of the package is done")


if __name__ == "__main__":
    main()
