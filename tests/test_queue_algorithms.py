"""Polyak feasibility steps, drift-plus-penalty, and Yu, Lee and Lee: their formulas, bounds and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from reference import queue_algorithms as naive
from test_static_algorithms import BOUND_CASES, CASES, K2, ROUNDS, SETS, T, constants, run, stream

from cocopt import Box, DriftPlusPenalty, Halfspace, PolyakFeasibility, Simplex, YuLeeLee, constraints, losses
from cocopt.errors import InvalidInput, SuspiciousInput
from cocopt.theory.polyak import safe_parameters

# ------------------------------------------------------------------------------------------------ Polyak feasibility


def strictly_feasible(name: str, M: int, seed: int, trials: int = 2) -> Any:
    """A stream of one constraint that starts at a point with slack."""
    data = stream(SETS[name][0], M, seed, static=True, trials=trials)
    return data._replace(start=data.best)


@pytest.mark.parametrize(("name", "M", "seed"), CASES)
@pytest.mark.parametrize(("eta", "rho"), [(None, None), (0.3, 0.02), (0.5, 0.0)])
def test_polyak_is_its_formula(name: str, M: int, seed: int, eta: float | None, rho: float | None) -> None:
    K, reference = SETS[name]
    data = strictly_feasible(name, M, seed)
    points = data.play(PolyakFeasibility(K, T, 6.0, 0.05, start=data.start, eta=eta, rho=rho))
    safe = safe_parameters(T, K.diameter, 6.0, 0.05)
    used = (safe[0] if eta is None else eta, safe[1] if rho is None else rho)
    for k in range(2):
        expected = naive.polyak(reference.project, data.start[k], data.rounds(k), *used, reference.along)
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "M", "seed"), BOUND_CASES)
def test_polyak_never_violates_and_keeps_its_bound(name: str, M: int, seed: int) -> None:
    data = strictly_feasible(name, M, seed, trials=20)
    L_f, L_g, _ = constants(data)
    learner = PolyakFeasibility(data.K, T, max(L_f, L_g), 0.05, start=data.start)
    regret, rows = run(data, learner)
    assert (rows <= 0.0).all()
    assert (regret <= learner.bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g).regret).all()
    assert (learner.ledger.ccv1 == 0.0).all()


def test_safe_steps_never_violate_when_the_loss_pulls_outside() -> None:
    K, limit = Box(-1.0, 1.0, dim=2), constraints.Affine([[1.0, 0.2], [0.1, 1.0]], [0.3, 0.2])
    learner = PolyakFeasibility(K, 5000, 1.1, 0.2, start=[0.0, 0.0])

    def play() -> None:
        for _ in range(5000):
            learner.tell(losses.Linear([-0.8, -0.7]), limit)

    with pytest.warns(SuspiciousInput, match="moved by less than"):  # the safe steps are that small
        play()
    assert learner.ledger.ccv1 == 0.0
    assert limit.value(learner.ask()) > limit.value([0.0, 0.0])  # it went towards the limit, though slowly


def test_the_known_constraint_counts_in_rounds_that_do_not_reveal_it() -> None:
    learner, again = (PolyakFeasibility(K2, 50, 1.0, 0.4, start=[0.0, 0.0], eta=0.2) for _ in range(2))
    g = constraints.Affine([1.0, 0.0], 0.5)
    for t in range(50):
        learner.tell(losses.Linear([-1.0, -0.1]), g if t == 0 else None)
        again.tell(losses.Linear([-1.0, -0.1]), g)
    np.testing.assert_array_equal(learner.ask(), again.ask())


def test_a_start_without_slack_is_refused() -> None:
    learner = PolyakFeasibility(K2, 50, 1.0, 0.4, start=[0.2, 0.0])
    with pytest.raises(InvalidInput, match=r"expected g\(x_1\) ≤ −slack = −0.4, got -0.3: start at a point"):
        learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    assert learner.t == 0


# ------------------------------------------------------------------------------------------------ drift plus penalty


@pytest.mark.parametrize("horizon", [None, T])
@pytest.mark.parametrize(("name", "M", "seed"), CASES)
def test_drift_plus_penalty_is_its_formula(name: str, M: int, seed: int, horizon: int | None) -> None:
    K, reference = SETS[name]
    data = stream(K, M, seed, static=False)
    data = data._replace(b=data.b - 0.2)  # queues that grow
    points = data.play(DriftPlusPenalty(K, horizon=horizon, start=data.start))
    for k in range(2):
        expected = naive.drift_plus_penalty(reference.project, data.start[k], data.rounds(k), horizon)
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-9)


def test_drift_plus_penalty_balances_random_constraints() -> None:
    """With E g < 0 possible, regret and soft violation per round fall like 1/√T."""
    rng = np.random.default_rng(0)
    soft, worse = [], []
    for horizon in (400, 6400):
        learner = DriftPlusPenalty(K2, horizon=horizon, start=np.full((20, 2), 0.5))
        for _ in range(horizon):
            limit = rng.uniform(0.2, 0.8, (20, 1))
            learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine(np.tile([[1.0, 0.0]], (20, 1, 1)), limit))
        soft.append(float(np.mean(learner.ledger.ccv_soft)) / horizon)
        worse.append(float(np.mean(learner.ledger.loss)) / horizon + 0.5)
    assert soft[1] < 0.5 * soft[0]
    assert abs(worse[1]) < 0.1


# -------------------------------------------------------------------------------------------------- Yu, Lee and Lee

OPTIONS: list[Any] = [
    {},
    {"gamma_scale": 50.0, "regularizer_scale": 0.1},
    {"gamma_scale": 50.0, "regularizer_scale": 0.1, "hard": False},
    {"gamma_scale": 20.0, "regularizer_scale": 0.3, "delta": 0.2},
]


@pytest.mark.parametrize("m", [None, 1.0])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("name", "M", "seed"), [case for case in CASES if case[0] != "simplex"])
def test_yu_lee_lee_is_its_formula(name: str, M: int, seed: int, options: Any, m: float | None) -> None:
    K, reference = SETS[name]
    data = stream(K, M, seed, static=False)
    learner = YuLeeLee(K, 4.0, 3.0, start=data.start, strong_convexity=m, **options)
    points = data.play(learner)
    for k in range(2):
        expected, queue, total = naive.yu_lee_lee(
            reference.project, data.start[k], data.rounds(k), K.diameter, 4.0, 3.0, m, **options
        )
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(learner.memory.queue[k], queue, rtol=1e-8, atol=1e-8)
        if options.get("hard", True):  # CCV₁ = Q_{T+1} + Σ R_t
            np.testing.assert_allclose(learner.ledger.ccv1[k], queue + total, rtol=1e-8)


def test_only_the_part_along_the_simplex_counts() -> None:
    """A gradient that is shifted by a multiple of (1, …, 1), which is normal to the simplex, changes nothing."""
    K = Simplex(3)
    plain, shifted = (YuLeeLee(K, 4.0, 3.0, gamma_scale=50.0, regularizer_scale=0.1) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(20):
        c, g = rng.normal(size=3), constraints.Affine(rng.normal(size=3), 0.1)
        plain.tell(losses.Linear(c), g)
        shifted.tell(losses.Linear(c + 7.0), g)
    np.testing.assert_allclose(plain.ask(), shifted.ask(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("m", [None, 1.0])
@pytest.mark.parametrize(("name", "M", "seed"), BOUND_CASES)
def test_yu_lee_lee_keeps_its_bounds(name: str, M: int, seed: int, m: float | None) -> None:
    data = stream(SETS[name][0], M, seed, static=False, trials=20)
    L_f, L_g, B = constants(data)
    learner = YuLeeLee(data.K, max(L_f, L_g), B, strong_convexity=m, start=data.start)
    regret, rows = run(data, learner)
    promised = learner.bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g)
    violation = np.maximum(rows.max(axis=-1), 0.0)
    assert (regret <= promised.regret).all()
    assert (np.cumsum(violation, axis=1) <= promised.ccv1).all()
    assert (np.cumsum(violation**2, axis=1) <= promised.ccv2).all()


def test_extreme_queues_stay_numbers() -> None:
    for options in ({"gamma_scale": 1e6, "regularizer_scale": 0.0}, {"gamma_scale": 1e6, "regularizer_scale": 1e3}):
        for delta in (None, 0.1):
            learner = YuLeeLee(K2, 1.0, 1.0, start=[1.0, 1.0], delta=delta, **options)
            for _ in range(200):
                learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
            assert np.isfinite(learner.ask()).all()
            assert math.isfinite(learner.memory.queue)


# ------------------------------------------------------------------------------------------------------------- errors

BAD: list[Any] = [
    (lambda: PolyakFeasibility(K2, 10, 1.0, 0.0), "slack"),
    (lambda: PolyakFeasibility(K2, 10, 1.0, 0.1, eta=0.0), "eta"),
    (lambda: PolyakFeasibility(K2, 10, 1.0, 0.1, rho=-1.0), "rho"),
    (lambda: PolyakFeasibility(Halfspace([1.0, 0.0], 1.0), 10, 1.0, 0.1), "diameter"),
    (lambda: PolyakFeasibility(K2, 10, 1.0, 0.1, eta=1.0).bounds(10, lipschitz_f=1.0, lipschitz_g=1.0), "eta, rho"),
    (lambda: PolyakFeasibility(K2, 10, 1.0, 0.1).bounds(11, lipschitz_f=1.0, lipschitz_g=1.0), "T"),
    (lambda: DriftPlusPenalty(K2, horizon=0), "horizon"),
    (lambda: YuLeeLee(K2, 1.0, 1.0, delta=1.0), "delta"),
    (lambda: YuLeeLee(K2, 1.0, 1.0, gamma_scale=0.0), "gamma_scale"),
    (lambda: YuLeeLee(K2, 1.0, 1.0, hard=None), "hard"),
    (lambda: YuLeeLee(K2, 1.0, 1.0, hard=False).bounds(10, lipschitz_f=1.0, lipschitz_g=1.0), "bounds"),
    (lambda: YuLeeLee(K2, 1.0, 1.0).bounds(10, lipschitz_f=2.0, lipschitz_g=1.0), "lipschitz_f"),
]


@pytest.mark.parametrize(("call", "argument"), BAD)
def test_bad_arguments_are_named(call: Any, argument: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{argument}: expected"):
        call()


def test_another_number_of_rows_is_refused() -> None:
    learner = DriftPlusPenalty(K2)
    learner.tell(None, constraints.Affine(np.eye(2), [0.5, np.inf]))
    assert np.isfinite(learner.ask()).all()
    with pytest.raises(InvalidInput, match="expected 2 rows as in the first round"):
        learner.tell(None, constraints.Affine([1.0, 0.0], 0.5))
