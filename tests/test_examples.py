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


def test_portfolio_keeps_its_turnover() -> None:
    names = example("portfolio")
    returns = names["draw_returns"](np.random.default_rng(0))[200:260]  # with the beginning of a crisis
    Sigma, limit, turnover = names["covariances"](returns), np.full(60, 0.12), np.full(60, 0.02)
    learner, weights = names["follow"](returns, Sigma, limit, turnover, limited=True)
    moved = [np.abs(b - a).sum() for a, b in zip([names["UNIFORM"], *weights], weights, strict=False)]
    assert max(moved) <= 0.02 + 1e-9
    assert learner.ledger.by_name["turnover"]["worst"] <= 1e-9
    free, _ = names["follow"](returns, Sigma, limit, turnover, limited=False)
    assert free.ledger.by_name == {}


def test_dispatch_meets_the_demand_that_it_knows() -> None:
    names = example("dispatch")
    hours = names["draw_hours"](np.random.default_rng(1))[:48]
    for knows in (True, False):
        _, x = names["dispatch"](hours, knows_demand=knows)
        found = names["evaluate"](x, hours)
        worst = max(abs(float(sum(own)) - hour.demand) for own, hour in zip(x, hours, strict=True))
        assert np.abs(found.imbalance).max() == worst
        assert (worst <= 1e-6) == knows


def test_flows_of_the_grid_balance_at_every_bus() -> None:
    """What flows out of a bus is what is fed in there, and flows follow from angles: Kirchhoff's laws."""
    names = example("dispatch")
    factors, lines = names["FACTORS"], list(names["LINES"].values())
    for bus in range(1, 4):
        fed = np.eye(4)[bus] - np.eye(4)[0]  # 1 MW from this bus to the slack
        flow = factors @ fed
        out = [sum(f if at == a else -f if at == b else 0.0 for f, (a, b) in zip(flow, lines, strict=True))
               for at in range(4)]  # fmt: skip
        assert np.allclose(out, fed)
        by_line = dict(zip(lines, flow, strict=True))
        assert np.isclose(by_line[0, 1] + by_line[1, 2] - by_line[0, 2], 0.0)
        assert np.isclose(by_line[1, 2] + by_line[2, 3] - by_line[1, 3], 0.0)


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
