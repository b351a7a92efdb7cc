"""What the examples of real use claim, on fewer rounds; tests/test_repository.py runs them in full."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np

import cocopt
from cocopt import CLASP, Simplex

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> dict[str, Any]:
    """The names of an example, which is not run."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_service_goes_on_after_a_restart() -> None:
    names = example("service")
    day = names["draw_day"](np.random.default_rng(4))
    straight, learner = (CLASP(Simplex(4), start=np.full(4, 0.25), infeasible="nearest") for _ in range(2))
    shares = names["serve"](straight, day, 0, 90)
    before = names["serve"](learner, day, 0, 45)
    assert learner.pending
    after = names["serve"](cocopt.loads(learner.dumps()), day, 45, 90)
    assert np.array_equal([*before, *after], shares)
    assert straight.ledger.by_name["capacity"]["worst"] <= 1e-9
