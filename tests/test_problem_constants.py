"""Every problem's constants hold, and those that are called exact are attained."""

from __future__ import annotations

from math import cos, exp, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocopt import CLASP, hindsight, problems, steps
from cocopt.checks import check_problem
from cocopt.problems.svm import wine

ALL = [
    *((name, {}) for name in problems.names()),
    ("olr", {"loss": "squared", "noise": "truncated"}),
    ("tracking", {"limits": "rarely"}),
    ("network", {"agents": 2}),
    ("trap", {"a": 7.0, "c": 0.1}),
    ("drift", {"kappa": 0.0, "margin": 0.5, "rounds": 50}),
    ("drift", {"kappa": 3.0, "margin": 0.0, "rounds": 50}),
    ("zigzag", {"regret": 0.0, "rounds": 70}),
]
WITH_SLACK = {"logistic": 0.5, "network": 0.1, "static": 0.5}


def points(problem: problems.Problem, trials: int, rng: np.random.Generator, reach: float) -> Any:
    """Points of K with the leading axes of the problem; far ones are projected onto the boundary."""
    shape = problem.start(0, range(trials)).shape
    return problem.K.project(reach * problem.K.diameter * rng.normal(size=shape))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), case=st.sampled_from(ALL), reach=st.sampled_from([0.3, 30.0]))
def test_constants_hold(seed: int, case: tuple[str, dict[str, Any]], reach: float) -> None:
    problem, rng = problems.get(case[0], **case[1]), np.random.default_rng(seed)
    assert problem.lipschitz_f is not None
    assert problem.lipschitz_g is not None
    assert problem.bound is not None
    _, count, reveal = next(problem.blocks(seed, range(4), min(problem.rounds, 60)))
    for k in range(0, count, 3):
        loss, constraint = reveal(k)
        x = points(problem, 4, rng, reach)
        assert np.linalg.norm(loss.gradient(x), axis=-1).max() <= problem.lipschitz_f * (1 + 1e-12)
        assert np.linalg.norm(constraint.jacobian(x), axis=-1).max() <= problem.lipschitz_g * (1 + 1e-12)
        assert np.min(loss.strong_convexity) >= problem.strong_convexity * (1 - 1e-12)
        rows = constraint.rows(x)
        assert np.abs(rows[rows > -np.inf]).max(initial=0.0) <= problem.bound * (1 + 1e-12)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_the_start_satisfies_all_constraints_where_a_slack_is_stated(name: str, options: dict[str, Any]) -> None:
    problem = problems.get(name, **options)
    assert problem.slack == WITH_SLACK.get(name)
    if problem.slack is None:
        return
    start, least = problem.start(0, range(20)), np.inf
    _, count, reveal = next(problem.blocks(0, range(20)))
    for k in range(count):
        least = min(least, -float(reveal(k)[1].value(start).max()))
    assert problem.slack <= least <= 1.05 * problem.slack


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"bound": 1.0}, "a row has the absolute value 2, above the bound 1.0"),
        ({"slack": 0.6}, "a row is -0.5 at the start, above minus the slack 0.6"),
        ({"agents": 3}, "start.. has a wrong shape"),
    ],
)
def test_the_contract_check_finds_wrong_constants(claims: dict[str, Any], message: str) -> None:
    problem = problems.get("static")
    check_problem(problem)
    for name, value in claims.items():
        setattr(problem, name, value)
    with pytest.raises(AssertionError, match=message):
        check_problem(problem)


def test_extreme_data_attain_the_constants() -> None:
    def attained(problem: problems.Problem, x: Any, *data: Any) -> tuple[float, float, float]:
        loss, constraint = problem.reveal(*(np.array(array) for array in data))
        slope = np.linalg.norm(constraint.jacobian(x), axis=-1).max()
        return float(np.linalg.norm(loss.gradient(x))), float(slope), float(np.abs(constraint.rows(x)).max())

    olr, tracking, svm = problems.get("olr"), problems.get("tracking"), problems.get("svm")
    assert attained(olr, np.ones(10), np.ones((4, 10)), np.ones(4), np.full((4, 10), 2.0), np.zeros(4))[2] == olr.bound
    pair = np.eye(10)[None, 0] + np.eye(10)[None, 1]
    assert attained(tracking, -np.ones(10), np.zeros(10), pair, [0.4])[2] == pytest.approx(tracking.bound)
    features, labels = wine()
    rows = -labels[:, None] * np.column_stack([features, -np.ones(len(features))])
    longest = int(np.linalg.norm(rows, axis=1).argmax())
    x = 70 * sqrt(11) * rows[longest] / np.linalg.norm(rows[longest])
    assert attained(svm, x, longest)[2] == pytest.approx(svm.bound)

    drone = problems.get("drone")
    assert attained(drone, [0.0, -4.0], [0.0, 2.0], np.full(4, 3.0)) == (6.0, 1.0, 7.0)
    assert (drone.lipschitz_f, drone.lipschitz_g, drone.bound) == (6.0, 1.0, 7.0)
    static = problems.get("static")
    found = attained(static, -np.ones(10), np.linspace(0, 1, 10) + 1)
    assert found == pytest.approx((static.lipschitz_f, static.lipschitz_g, static.bound))
    assert (static.lipschitz_g, static.bound) == (sqrt(10), 12.0)
    logistic = problems.get("logistic")
    away = -2 / sqrt(5) * np.ones(5)
    found = attained(logistic, away, np.ones(5), 1.0, 0.5 / sqrt(5) * np.ones(5), 1.0)
    assert found == pytest.approx((sqrt(5) / (1 + exp(-2 * sqrt(5))), 1.0, 1.5))
    assert found == pytest.approx((logistic.lipschitz_f, logistic.lipschitz_g, logistic.bound))
    network = problems.get("network", agents=1)
    data = np.ones((1, 2, 6)), np.full((1, 2), 3.5), np.full((1, 2, 6), 2.0), np.ones((1, 2))
    found = attained(network, -np.ones((1, 6)), *data)
    assert found == pytest.approx((9.5 * sqrt(24), 2 * sqrt(6), 13.0))
    assert found == pytest.approx((network.lipschitz_f, network.lipschitz_g, network.bound))
    assert attained(problems.get("trap"), [4.0], 1) == (80.0, 1.0, 2.0)
    assert attained(problems.get("drift", rounds=5), [0.0, 1.0], 1)[0] == 1.0


def test_the_drone_is_drawn_as_described() -> None:
    problem = problems.get("drone")
    assert (problem.rounds, problem.strong_convexity, problem.K.diameter) == (1000, 1.0, 8.0)
    assert problem.start(0, [0, 1]).tolist() == [[0.0, 2.0], [0.0, 2.0]]
    _, (target, limits) = next(problem.data_blocks(0, range(50)))
    assert np.linalg.norm(target, axis=-1) == pytest.approx(2.0)
    angle = np.arctan2(-target[..., 0], target[..., 1])
    for values, low, high in ((angle, -pi / 6, pi / 6), (limits, 0.1, 3.0)):
        assert low < values.min() < low + 0.01
        assert high - 0.01 < values.max() < high
        assert values.mean() == pytest.approx((low + high) / 2, abs=0.02)
    constraint = problem.reveal(target[0, 0], limits[0, 0])[1]
    (u1, u2, l1, l2), x = limits[0, 0], np.array([0.3, -0.7])
    assert constraint.rows(x) == pytest.approx([0.3 - u1, -0.7 - u2, -l1 - 0.3, -l2 + 0.7])


def test_strongly_convex_steps_keep_their_bounds_on_the_drone() -> None:
    problem, trials = problems.get("drone"), np.arange(5)
    best = hindsight.best_fixed(problem, 0, trials, [1000]).value[:, 0]
    for rows in ("all", "worst"):
        learner = CLASP(problem.K, start=problem.start(0, trials), steps=steps.StronglyConvex(1.0), rows=rows)
        for _, count, reveal in problem.blocks(0, trials):
            for k in range(count):
                learner.tell(*reveal(k))
        bounds = learner.bounds(1000, lipschitz_f=6.0, lipschitz_g=1.0)
        assert (learner.ledger.loss - best <= learner.certificate().value).all()
        assert (learner.certificate().value <= bounds.regret).all()
        assert (learner.ledger.ccv2 <= bounds.ccv2).all()


def test_the_static_constraint_never_changes_and_binds() -> None:
    problem = problems.get("static")
    shown = {id(reveal(k)[1]) for _, count, reveal in problem.blocks(0, [0, 1], 300) for k in range(count)}
    assert len(shown) == 1
    constraint = next(problem.blocks(0, [0]))[2](0)[1]
    x = np.linspace(-1, 1, 10)
    expected = [*(x[i] + x[(i + 1) % 10] - 0.5 for i in range(10)), x.sum() - 2]
    assert sorted(constraint.rows(x)) == pytest.approx(sorted(expected))
    assert constraint.value(np.linspace(0, 1, 10)) > 0
    best = hindsight.best_fixed(problem, 0, [0], [1000])
    assert constraint.value(best.point[0, 0]) == pytest.approx(0.0, abs=1e-7)


def test_the_ball_of_the_logistic_problem_moves_on_a_circle() -> None:
    problem = problems.get("logistic")
    rounds = [(first, reveal, count) for first, count, reveal in problem.blocks(0, [3, 4], 300)]
    for first, reveal, count in rounds:
        for k in (0, count - 1):
            ball, angle = reveal(k)[1], 2 * pi * (first + k) / 100
            assert ball.center == pytest.approx(np.tile([cos(angle) / 2, sin(angle) / 2, 0, 0, 0], (2, 1)))
            assert ((ball.radius >= 1) & (ball.radius <= 1.5)).all()
    _, (features, labels, *_) = next(problem.data_blocks(0, range(40)))
    odds = np.exp(features @ [2.0, -2.0, 1.0, -1.0, 0.5])
    assert (labels == 1).mean() == pytest.approx((odds / (1 + odds)).mean(), abs=0.01)
    assert (labels[odds > 3] == 1).mean() > 0.75
