"""The hard instances have the outcomes that theory predicts: closed forms, rates and lower bounds."""

from __future__ import annotations

from math import atan, ceil, cos, floor, log, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import cocopt
from cocopt import CLASP, AdaGrad, Switch, problems, steps
from cocopt.algorithms import Learner
from cocopt.errors import InvalidInput


def play(problem: problems.Problem, learner: Learner, rounds: int | None = None) -> np.ndarray:
    """All actions of a learner that starts as the problem says, (T, trials, n)."""
    actions = []
    for _, count, reveal in problem.blocks(0, [0], rounds):
        for k in range(count):
            actions.append(learner.ask())
            learner.tell(*reveal(k))
    return np.array(actions)


# ---------------------------------------------------------------- trap


@pytest.mark.parametrize(("a", "c"), [(4.0, 10.0), (6.0, 1.0)])
def test_methods_that_project_leave_the_trap_at_once(a: float, c: float) -> None:
    problem = problems.get("trap", a=a, c=c)
    start = problem.start(0, [0])
    assert start == pytest.approx((1 + a / 2) / 2)
    for learner in (
        CLASP(problem.K, start=start, beta=0.5),
        Switch(problem.K, 300, problem.algorithm_defaults["lipschitz"], start=start),
    ):
        actions = play(problem, learner, 300)
        assert actions[1:] == pytest.approx(a / 2, rel=1e-9)
        assert learner.ledger.ccv1 == pytest.approx(a / 2 - float(start[0, 0]))


@pytest.mark.parametrize("T", [30, 100, 1000])
@pytest.mark.parametrize("a", [4.0, 6.0])
def test_adagrad_violates_linearly_in_the_trap(T: int, a: float) -> None:
    problem = problems.get("trap", a=a, c=10.0)
    assert problem.lipschitz_f == 2 * 10.0 * a
    G, D, start = problem.lipschitz_f, a - 1, (1 + a / 2) / 2
    predicted = (a / 2 - start) + (a / 2 - 1) * (T - 1)
    assert predicted < 4 * G * D * sqrt(T) * log(4 * 10.0 * sqrt(T))  # the condition of the formula
    learner = AdaGrad(problem.K, T, G, start=problem.start(0, [0]))
    actions = play(problem, learner, T)
    assert (actions[1:] == 1.0).all()
    assert learner.ledger.ccv1 == pytest.approx(predicted, rel=1e-12)


def level_of_adagrad(T: int) -> tuple[float, float, float]:
    """CCV₁ of AdaGrad in the trap with c = 0.1 after T and after 0.9 T rounds, and the predicted level."""
    problem = problems.get("trap", c=0.1)
    G, D = problem.algorithm_defaults["lipschitz"], 3.0
    learner = AdaGrad(problem.K, T, G, start=problem.start(0, [0]))
    earlier = 0.0
    for _, count, reveal in problem.blocks(0, [0], T):
        for k in range(count):
            learner.tell(*reveal(k))
            if learner.t == 9 * T // 10:
                earlier = float(learner.ledger.ccv1[0])
    return float(learner.ledger.ccv1[0]), earlier, 4 * G * D * sqrt(T) * log(2 * 0.1 * 4.0 * sqrt(T))


def test_the_violation_of_adagrad_levels_off_in_a_shallow_trap() -> None:
    ccv1, earlier, level = level_of_adagrad(10_000)
    assert ccv1 == pytest.approx(level, rel=1e-3)
    assert ccv1 - earlier < 0.01 * 1000  # linear growth would be 1 per round


@pytest.mark.slow
def test_the_violation_of_adagrad_levels_off_to_four_digits() -> None:
    ccv1, earlier, level = level_of_adagrad(100_000)
    assert ccv1 == pytest.approx(level, rel=1e-4)
    assert ccv1 - earlier < 1e-4 * 10_000


# ---------------------------------------------------------------- drift


@pytest.mark.parametrize(("kappa", "beta"), [(1.0, 0.5), (1.0, 0.7), (0.25, 0.5)])
def test_drift_keeps_clasp_on_the_circle(kappa: float, beta: float) -> None:
    T = 1000
    problem = problems.get("drift", kappa=kappa, beta=beta, margin=0.0, rounds=T)
    learner = CLASP(problem.K, start=problem.start(0, [0]), steps=steps.Power(beta))
    actions = play(problem, learner)[:, 0]
    moves = [kappa * t**-beta for t in range(1, T + 1)]
    phi = 0.0
    for x, move in zip(actions, moves, strict=True):
        assert x == pytest.approx([cos(phi), sin(phi)], abs=1e-9)
        phi += np.arccos(1 / (1 + move))
    assert learner.ledger.loss == pytest.approx(-kappa * T, rel=1e-9)
    assert learner.ledger.ccv1 == pytest.approx(sum(sqrt(2 * m + m * m) / (1 + m) for m in moves), rel=1e-9)
    assert learner.ledger.ccv2 == pytest.approx(sum(1 - (1 + m) ** -2 for m in moves), rel=1e-9)


def test_drift_attains_the_rates_of_clasp() -> None:
    """CCV₁ ~ (4√2/3) T^¾, and CCV₂ ~ 4√T, half of its bound.

    With η = t^(−½): 2η − 3η² ≤ 1 − (1 + η)^(−2) ≤ 2η and √(2η)(1 − η) ≤ √(2η + η²)/(1 + η) ≤ √(2η).
    """
    T = 4000
    problem = problems.get("drift", margin=0.0, rounds=T)
    learner = CLASP(problem.K, start=problem.start(0, [0]), beta=0.5)
    play(problem, learner)
    leading = 4 * sqrt(2) / 3 * T**0.75
    assert leading - 4 * sqrt(2) * (T**0.25 + 1) <= learner.ledger.ccv1 <= leading
    assert 4 * sqrt(T) - 4 - 3 * (1 + log(T)) <= learner.ledger.ccv2 <= 4 * sqrt(T)
    bound = learner.bounds(T, lipschitz_f=problem.lipschitz_f, lipschitz_g=problem.lipschitz_g).ccv2
    assert bound / 2 - 2 - 3 * (1 + log(T)) <= learner.ledger.ccv2 <= bound / 2


@pytest.mark.parametrize("T", [100, 1000])
def test_drift_without_losses(T: int) -> None:
    problem = problems.get("drift", kappa=0.0, margin=0.0, rounds=T)
    learner = CLASP(problem.K, start=problem.start(0, [0]), beta=0.5)
    actions = play(problem, learner)[:, 0]
    theta = 1 / sqrt(T)
    for t, x in enumerate(actions):
        rho = cos(theta) ** t
        assert x == pytest.approx([rho * cos(t * theta), rho * sin(t * theta)], abs=1e-9)
    predicted = sin(theta) * (1 - cos(theta) ** T) / (1 - cos(theta))
    assert learner.ledger.ccv1 == pytest.approx(predicted, rel=1e-9)
    assert predicted == pytest.approx(0.787 * sqrt(T), rel=0.01)
    assert learner.ledger.ccv2 < 1


@pytest.mark.parametrize("kappa", [0.0, 1.0])
def test_persistent_constraints_pay_little_for_drift(kappa: float) -> None:
    problem = problems.get("drift", kappa=kappa, rounds=300)
    learner = CLASP(problem.K, start=problem.start(0, [0]), beta=0.5, window=None)
    play(problem, learner)
    assert learner.ledger.ccv1 < 4


# ---------------------------------------------------------------- spiral


def spiral_blocks(T: int) -> tuple[int, float, list[float], list[float]]:
    """p, η, φ_j and r_j, from the recursion."""
    p, eta = floor(T**0.25 + 1e-9), T**-0.5
    phi, r = [0.0], [1.0]
    while len(r) < ceil(T / p):
        phi.append(phi[-1] + atan(p * eta / r[-1]))
        r.append(r[-1] - (p * eta) ** 3 / (2 * pi * r[-1] ** 2))
    return p, eta, phi, r


def spiral_violation(T: int) -> float:
    """The predicted CCV₁."""
    p, eta, _, r = spiral_blocks(T)
    return sum(sqrt(r[j] ** 2 + (p * eta) ** 2) - r[j + 1] for j in range(len(r) - 1))


@pytest.mark.parametrize("T", [81, 1000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_every_window_makes_the_same_moves_on_the_spiral(T: int) -> None:
    problem = problems.get("spiral", rounds=T)
    actions = []
    for window in (1, 4, None):
        learner = CLASP(problem.K, start=problem.start(0, [0]), steps=steps.Constant(T**-0.5), window=window)
        actions.append(play(problem, learner))
        assert learner.ledger.ccv1 == pytest.approx(spiral_violation(T), rel=1e-9)
    assert actions[1] == pytest.approx(actions[0], abs=1e-9)
    assert actions[2] == pytest.approx(actions[0], abs=1e-9)


def test_the_spiral_costs_the_fourth_root_of_T_around_a_disc() -> None:
    """With r³ = 1 − 3s/(2π), s in [0, 1], along the way: CCV₁ = (T^¼/2) ∫ ds/r + (1 − r(1)), up to smaller terms."""
    last = (1 - 3 / (2 * pi)) ** (1 / 3)
    factor = pi / 2 * (1 - last**2)
    assert factor == pytest.approx(0.55, abs=0.005)
    for root in (10, 20, 30):
        assert spiral_violation(root**4) == pytest.approx(factor * root + 1 - last, rel=0.01)
    p, _, phi, r = spiral_blocks(10_000)
    assert r[-1] == pytest.approx(last, rel=0.01)
    assert min(r) > 0.8
    problem = problems.get("spiral")
    for first, count, reveal in problem.blocks(0, [0]):
        for k in range(0, count, 50):
            block = (first + k - 1) // p
            farthest = [0.8 * cos(phi[block]), 0.8 * sin(phi[block])]  # of the disc
            assert reveal(k)[1].value(farthest) == pytest.approx(0.8 - r[block], abs=1e-12)


# ---------------------------------------------------------------- zigzag


def corners(N: int, delta: float) -> np.ndarray:
    """c, z_1, …, z_N."""
    return np.array([(0.0, 1 - N * delta), *(((-1.0) ** k, 1 - (k - 1) * delta) for k in range(1, N + 1))])


@pytest.mark.parametrize(("T", "regret"), [(300, 1.0), (2000, 1.0), (2000, 0.0)])
def test_the_rows_of_zigzag_are_the_nested_polygons(T: int, regret: float) -> None:
    delta = 2 * sqrt((regret + 1) / T)
    N = floor(1 / (2 * delta))
    problem = problems.get("zigzag", rounds=T, regret=regret)
    assert (problem.phases, problem.delta) == (N, pytest.approx(delta))
    points, rng, m = corners(N, delta), np.random.default_rng(0), T // N
    for k in range(1, N + 1):
        t = (k - 1) * m + 1
        constraint = next(reveal(t - first) for first, count, reveal in problem.blocks(0, [0]) if t < first + count)[1]
        inside = points[[0, *range(k, N + 1)]]
        assert constraint.value(inside).max() <= 1e-12
        assert problem.best([t, t + m - 1]) == pytest.approx(-inside[:, 1].max())
        if k == N:  # a segment
            mixed = rng.uniform(0, 1, (200, 1)) * (inside[1] - inside[0]) + inside[0]
            assert constraint.value(mixed).max() <= 1e-12
            assert constraint.value(mixed + np.array([0.0, 1e-6])).min() > 5e-7
            assert constraint.value(2 * inside[0] - mixed[mixed[:, 0] != 0]).min() > 0
            continue
        equations = ConvexHull(inside).equations
        sample = np.concatenate([rng.uniform(-1, 1, (300, 2)), inside + 0.1 * delta * rng.normal(size=inside.shape)])
        sample = problem.K.project(sample)
        outside = (sample @ equations[:, :2].T + equations[:, 2]).max(axis=1)
        assert ((constraint.value(sample) > 0) == (outside > 0))[np.abs(outside) > 1e-12].all()


def test_small_regret_on_zigzag_takes_much_movement() -> None:
    """The sets are known before acting: every point played is projected onto the set of its round."""
    T = 2000
    problem = problems.get("zigzag", rounds=T)
    N, R, delta = problem.phases, problem.regret, problem.delta
    assert sqrt(T / (R + 1)) / 4 - 2 <= N - 1
    sizes = np.array([1e-3, 0.1, 1.0, 1 / delta, 3 / delta, 8 / delta, 100 / delta])
    x = np.tile(problem.start(0, [0]), (sizes.size, 1))
    regret, movement, last = np.zeros(sizes.size), np.zeros(sizes.size), None
    for first, count, reveal in problem.blocks(0, np.zeros(sizes.size, dtype=int)):
        for k in range(count):
            loss, constraint = reveal(k)
            x = cocopt.project(problem.K, constraint, x)
            regret += loss.value(x) - problem.best(first + k)
            movement += 0.0 if last is None else np.linalg.norm(x - last, axis=-1)
            last = x
            x = cocopt.project(problem.K, constraint, x - sizes[:, None] * loss.gradient(x))
    assert (regret >= -1e-9).all()
    small = regret <= R
    assert small[-2:].all()
    assert not small[:3].any()
    assert (movement[small] >= N - 1).all()
    assert movement[0] < 1


def test_against_a_fixed_point_zigzag_takes_little_movement() -> None:
    """Why the regret must be read against the optimum of each set."""
    T = 2000
    problem = problems.get("zigzag", rounds=T)
    N, delta, m = problem.phases, problem.delta, T // problem.phases
    c, z = corners(N, delta)[0], corners(N, delta)[1:]
    played = np.array([z[0], *(z[k] * [0, 1] - [0, delta / 2] for k in range(1, N - 1)), c])[
        [min((t - 1) // m, N - 1) for t in range(1, T + 1)]
    ]
    for first, count, reveal in problem.blocks(0, [0]):
        for k in range(count):
            assert reveal(k)[1].value(played[first + k - 1]) <= 1e-12
    assert np.linalg.norm(np.diff(played, axis=0), axis=1).sum() < 2
    assert (-played[:, 1]).sum() <= -z[-1, 1] * T
    assert (-played[:, 1] - problem.best(np.arange(1, T + 1))).sum() > problem.regret


@pytest.mark.parametrize("size", [0.01, 1.0, 1000.0])
def test_zigzag_revealed_after_acting_costs_little_violation(size: float) -> None:
    problem = problems.get("zigzag", rounds=2000)
    learner = CLASP(problem.K, start=problem.start(0, [0]), steps=steps.Constant(size))
    play(problem, learner)
    assert learner.ledger.ccv1 < 2


# ---------------------------------------------------------------- options


@pytest.mark.parametrize("name", ["drift", "spiral", "zigzag"])
def test_instances_that_depend_on_the_horizon_have_no_more_rounds(name: str) -> None:
    problem = problems.get(name, rounds=300)
    assert problem.rounds == 300
    assert sum(count for _, count, _ in problem.blocks(0, [0])) == 300
    with pytest.raises(InvalidInput, match=f"rounds: expected at most 300, for which {name} was constructed, got 301"):
        next(problem.blocks(0, [0], 301))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("trap", {"a": 2.0}, "a: expected a number above 2"),
        ("trap", {"c": 0.0}, "c: expected a positive number"),
        ("drift", {"kappa": -1.0}, "kappa: expected a non-negative number"),
        ("drift", {"rounds": 0}, "rounds: expected a positive integer"),
        ("spiral", {"rounds": 2.5}, "rounds: expected a positive integer"),
        ("zigzag", {"rounds": 127}, r"rounds: expected at least 64\(regret \+ 1\) = 128, got 127"),
    ],
)
def test_wrong_options_are_explained(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        problems.get(name, **options)
