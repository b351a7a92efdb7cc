"""Switch against a naive loop, its phases, and what it does when the intersection becomes empty."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from reference.persistent import switch

import cocopt
from cocopt import AdaGrad, Ball, Box, Switch, constraints, losses
from cocopt.errors import InfeasibleRound, InvalidInput

ROUNDS = 60


def regression(seed, n=6):
    """The paper's regression: ‖Hx − y‖ under rows that push towards 0."""
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        H = rng.uniform(-1, 1, (4, n))
        yield losses.Norm(H, H.sum(axis=1) + rng.normal(size=4)), rng.uniform(0, 2, (4, n)), rng.uniform(0, 1, 4)


def svm(seed, n=4):
    """½‖w‖² under a margin for labels that are partly noise: sooner or later no (w, b) has it."""
    rng = np.random.default_rng(seed)
    P = np.diag(np.append(np.ones(n - 1), 0.0))
    for _ in range(ROUNDS):
        u = rng.normal(size=n - 1)
        v = np.sign(u[0] + rng.normal())
        yield losses.Quadratic(P, np.zeros(n)), -v * np.append(u, -1.0)[None], np.array([-1.0])


def naive(kind, start, stream, **options):
    rounds = [(loss.gradient, A, b) for loss, A, b in stream]
    if kind == "box":
        return switch(lambda z: [z >= 0, z <= 1], lambda y: np.clip(y, 0, 1), rounds, start, **options)
    return switch(
        lambda z: [cp.norm(z) <= 5.0], lambda y: y * min(1.0, 5.0 / np.linalg.norm(y)), rounds, start, **options
    )


@pytest.mark.parametrize("rows", ["all", "worst"])
@pytest.mark.parametrize("threshold", [None, 2.0])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_regression_equals_a_naive_loop(seed, threshold, rows):
    start = np.random.default_rng(seed + 100).uniform(0, 1, 6)
    constants = {"horizon": ROUNDS, "lipschitz": 3.0, "threshold": threshold, "rows": rows}
    points, phases = naive("box", start, regression(seed), diameter=np.sqrt(6), **constants)
    learner = Switch(Box(0.0, 1.0, dim=6), start=start, **constants)
    for (loss, A, b), x, phase in zip(regression(seed), points, phases, strict=False):
        np.testing.assert_allclose(learner.ask(), x, rtol=0, atol=1e-6)
        assert learner.phase == phase
        learner.tell(loss, constraints.Affine(A, b))
    assert set(phases) == ({1} if threshold is None else {1, 2})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_empty_intersection_is_noticed_in_its_round(seed):
    constants = {"horizon": ROUNDS, "lipschitz": 5.0, "diameter": 10.0, "threshold": 1e9}
    points, phases = naive("ball", np.zeros(4), svm(seed), on_empty="adagrad", **constants)
    first = phases.index(2)  # the round in which S_t becomes empty
    assert 0 < first < ROUNDS - 1
    stubborn = Switch(Ball(0.0, 5.0, dim=4), **constants)
    lenient = Switch(Ball(0.0, 5.0, dim=4), on_empty="adagrad", **constants)
    for t, (loss, A, b) in enumerate(svm(seed)):
        constraint = constraints.Affine(A, b)
        np.testing.assert_allclose(lenient.ask(), points[t], rtol=0, atol=1e-6)
        record = lenient.tell(loss, constraint)
        assert record.feasible == (t != first)
        assert lenient.phase == (1 if t < first else 2)
        if t < first:
            stubborn.tell(loss, constraint)
            np.testing.assert_array_equal(stubborn.ask(), lenient.ask())
        elif t == first:
            before = stubborn.ask()
            with pytest.raises(InfeasibleRound) as caught:
                stubborn.tell(loss, constraint)
            assert caught.value.trials == (0,)
            assert caught.value.least_violation > 0
            assert stubborn.ask() is before
            assert stubborn.t == t
    assert lenient.ledger.infeasible_rounds == 1
    assert lenient._state.memory.intersection is None  # nothing of the past is kept


def batches(seed, trials):
    """The regression for several trials, one of which (1) becomes infeasible in round 20."""
    streams = [regression(seed + i) for i in range(trials)]
    for t, rounds in enumerate(zip(*streams, strict=True)):
        H, y, A, b = (np.stack(part) for part in zip(*((f.H, f.y, A, b) for f, A, b in rounds), strict=True))
        if t == 20:
            b[1, 0] = -1.0
        yield losses.Norm(H, y), constraints.Affine(A, b)


@pytest.mark.parametrize("rows", ["all", "worst"])
def test_each_trial_switches_on_its_own(rows, tmp_path):
    K, trials = Box(0.0, 1.0, dim=6), 4
    start = np.array([1.0, 0.1, 0.3, 0.2])[:, None] * np.ones(6)
    options = {"horizon": ROUNDS, "lipschitz": 3.0, "threshold": 2.02, "on_empty": "adagrad", "rows": rows}
    whole = Switch(K, start=start, **options)
    singles = [Switch(K, start=x, **options) for x in start]
    phases = []
    for t, (loss, constraint) in enumerate(batches(0, trials)):
        if t in (10, 30):
            whole.save(tmp_path / "state.npz")
            twin = cocopt.load(tmp_path / "state.npz")
        whole.tell(loss, constraint)
        for i, single in enumerate(singles):
            single.tell(losses.Norm(loss.H[i], loss.y[i]), constraint.trials(i))
            np.testing.assert_allclose(whole.ask()[i], single.ask(), rtol=0, atol=1e-12)
            assert whole.phase[i] == single.phase
        phases.append(whole.phase)
        if t >= 10:
            twin.tell(loss, constraint)
            np.testing.assert_array_equal(twin.ask(), whole.ask())
    assert twin.ledger == whole.ledger
    starts = np.argmax(np.array(phases) == 2, axis=0)
    assert len(set(starts.tolist())) > 2  # they did not all switch at once
    np.testing.assert_array_equal(whole.ledger.infeasible_rounds > 0, [False, starts[1] == 20, False, False])


def test_phase_two_is_adagrad_from_the_current_point():
    K = Box(0.0, 1.0, dim=6)
    learner = Switch(K, ROUNDS, 3.0, start=np.full(6, 0.9), threshold=0.0)
    rival = None
    for loss, A, b in regression(7):
        constraint = constraints.Affine(A, b)
        if rival is None and learner.phase == 2:
            rival = AdaGrad(K, ROUNDS, 3.0, start=learner.ask())
        learner.tell(loss, constraint)
        if rival is not None:
            rival.tell(loss, constraint)
            np.testing.assert_array_equal(learner.ask(), rival.ask())
    assert rival is not None
    assert rival.t == ROUNDS - 1  # the round that exceeded the threshold was one of phase one


def test_the_default_threshold_is_that_of_the_paper():
    g = constraints.Affine([1.0, 0.0], -0.0)
    for horizon in (9, 100):
        learner = Switch(Box(0.0, 1.0, dim=2), horizon, 1.0, start=[1.0, 0.0])
        rounds = 0
        while learner.phase == 1:
            learner.tell(None, g, played=[1.0, 0.0])  # a violation of 1 every round
            rounds += 1
        assert rounds - 1 <= np.sqrt(horizon) * np.log(horizon) < rounds


def test_regret_bound_on_feasible_streams():
    """Regret ≤ 3.5 GD√T + 2GD, here against the best fixed point for linear losses over K ∩ {x_1 + … + x_n ≤ ½}."""
    n, T, trials = 3, 400, 5
    rng = np.random.default_rng(11)
    K = Box(0.0, 1.0, dim=n)
    row, slopes = constraints.Affine(np.ones(n), 0.5), np.zeros((trials, n))
    learner = Switch(K, T, 2.0, start=np.ones((trials, n)))
    for _ in range(T):
        c = rng.uniform(-1, 1, (trials, n)) - 0.05
        slopes += c
        learner.tell(losses.Linear(c), row)
    best = 0.5 * np.minimum(slopes.min(axis=1), 0.0)  # a vertex: 0 or half a unit vector
    assert (learner.ledger.loss - best <= 3.5 * 2.0 * K.diameter * np.sqrt(T) + 4.0 * K.diameter).all()
    assert (learner.ledger.ccv1 <= 2.5 + 1e-9).all()  # the first round's alone: afterwards the row is known


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon: expected a positive integer"),
        ({"lipschitz": -1.0}, "lipschitz: expected a positive number"),
        ({"threshold": -1.0}, "threshold: expected a non-negative number"),
        ({"on_empty": "stop"}, 'on_empty: expected "raise" or "adagrad"'),
        ({"rows": "best"}, 'rows: expected "all" or "worst"'),
        ({"K": Box(0.0, np.inf, dim=2)}, "diameter: expected a positive number, since that of K is inf"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Switch(**({"K": Box(0.0, 1.0, dim=2), "horizon": 10, "lipschitz": 1.0} | arguments))


def test_a_diameter_can_be_given_for_an_unbounded_set():
    learner = Switch(Box(0.0, np.inf, dim=2), 10, 1.0, diameter=2.0)
    learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine([1.0, 0.0], 1.5))
    np.testing.assert_allclose(learner.ask(), [1.5, 0.0])
