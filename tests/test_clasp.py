"""CLASP equals a naive loop around CVXPY, and a batch equals its trials."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from instances import CONSTRAINTS, SETS, build, build_set, random_constraint, random_set, stacked
from reference import clasp as reference_clasp
from streams import RULES, build_round, build_steps, random_loss, random_stream

from cocopt import CLASP, Box, constraints, losses, steps
from cocopt.errors import InvalidInput

ROUNDS = 60
OPTIONS = list(itertools.product(("all", "worst"), (1, 3, None)))
# Every set and every kind of constraint meets every option; each case has a seed, and step sizes, of its own.
CASES = [
    (kind, CONSTRAINTS[(i + j) % len(CONSTRAINTS)], *option, list(RULES)[(i + j) % len(RULES)], 10 * i + j)
    for i, kind in enumerate(SETS)
    for j, option in enumerate(OPTIONS)
]
# Here CVXPY has to look at the expressions or cones of several rounds in every round: up to a minute each.
HEAVY = [case for case in CASES if case[3] != 1 and case[1] in ("from_cvxpy", "Stack")]


def test_the_cases_are_complete():
    assert {(case[0], case[2:4]) for case in CASES} == set(itertools.product(SETS, OPTIONS))
    assert {(case[1], case[2:4]) for case in CASES} == set(itertools.product(CONSTRAINTS, OPTIONS))


def check_against_reference(kind, constraint, rows, window, rule, seed, n=3, rounds=ROUNDS):
    K, start, stream = random_stream(kind, constraint, n, rounds, seed)
    learner = CLASP(build_set(K), start=start, steps=build_steps(RULES[rule]), rows=rows, window=window)
    loop = reference_clasp.run(K, start, stream, RULES[rule], rows, window)
    seen, total = next(loop), np.zeros(6)
    for t, (f, g) in enumerate(stream, start=1):
        np.testing.assert_allclose(learner.ask(), seen.x, rtol=0, atol=1e-6)
        record = learner.tell(*build_round(f, g))
        assert record.t == t
        assert bool(record.feasible)
        np.testing.assert_allclose(record.loss, seen.loss, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(record.rows, seen.rows, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(record.step, seen.step, rtol=1e-5)
        worst = max(0.0, seen.rows.max())
        np.testing.assert_allclose(learner.ask(), seen.next, rtol=0, atol=1e-6)
        squares = np.maximum(seen.rows, 0.0) ** 2
        total += [seen.loss, seen.rows.max(), worst, worst**2, squares.sum(), worst**2 + seen.past]
        seen = next(loop) if t < rounds else None
    ledger = learner.ledger
    names = ["loss", "ccv_soft", "ccv1", "ccv2", "ccv2_sum"]
    names += [] if window == 1 else ["ccv2_hist" if window is None else "ccv2_window"]
    np.testing.assert_allclose([getattr(ledger, name) for name in names], total[: len(names)], rtol=1e-5, atol=1e-5)
    assert ledger.ccv1 > 0.1  # else the constraints would have been idle
    assert ledger.infeasible_rounds == 0


# two thirds of the cases wait for the slow run; each set, each kind and each option is in the fast one too
SPREAD = [pytest.param(*case, marks=pytest.mark.slow) if (i + i // 3) % 3 else case for i, case in enumerate(CASES)]


@pytest.mark.parametrize(("kind", "constraint", "rows", "window", "rule", "seed"), SPREAD)
def test_clasp_equals_the_naive_loop(kind, constraint, rows, window, rule, seed):
    heavy = (kind, constraint, rows, window, rule, seed) in HEAVY
    check_against_reference(kind, constraint, rows, window, rule, seed, rounds=10 if heavy else ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "constraint", "rows", "window", "rule", "seed"), HEAVY)
def test_clasp_equals_the_naive_loop_to_the_end(kind, constraint, rows, window, rule, seed):
    check_against_reference(kind, constraint, rows, window, rule, seed)


@pytest.mark.parametrize("seed", [200, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(201, 206))])
def test_the_paper_s_setting_with_more_seeds(seed):
    rows, window = OPTIONS[seed % len(OPTIONS)]
    check_against_reference("Box", "rows", rows, window, "Power", seed, n=6)


# ---------------------------------------------------------------- one code for one stream and for many


def batch_of_streams(kind, constraint, trials, rounds, seed):
    """One K, and streams of their own for the trials."""
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, 3, rng)
    K = build_set(K)
    starts = K.project(z + 0.1 * rng.normal(size=(trials, 3)))
    names = ("Norm", "LeastSquares", "Linear", "Distance", "Hinge", "Logistic")
    stream = []
    for t in range(rounds):
        fs = [random_loss(names[t % 6], z, rng) for _ in range(trials)]
        gs = [random_constraint(constraint, z, rng, slack=0.02) for _ in range(trials)]
        stream.append((fs, gs))
    return K, starts, stream


BATCHES = [
    *(("Box", "rows", {"rows": rows, "window": window}) for rows, window in OPTIONS),
    *(("Box", "row", {"steps": build_steps(rule)}) for rule in RULES.values()),
    *((kind, "rows", {"rows": "worst"}) for kind in SETS),
    *(("Ball", constraint, {"window": 3}) for constraint in ("NormBall", "Quadratic", "SecondOrder", "Stack")),
    ("Simplex", "Stack", {"rows": "worst", "window": 3}),
    ("Box", "rows", {"infeasible": "nearest"}),
]


@pytest.mark.parametrize(("kind", "constraint", "options"), BATCHES)
def test_a_batch_equals_separate_learners(kind, constraint, options):
    trials, options = 4, {"steps": "power"} | options
    K, starts, stream = batch_of_streams(kind, constraint, trials, 25, seed=5)
    together = CLASP(K, start=starts, **options)
    apart = [CLASP(K, start=start, **options) for start in starts]
    for t, (fs, gs) in enumerate(stream):
        if options.get("infeasible") == "nearest" and t == 7:
            gs[2] = ("Affine", np.vstack([np.ones((2, 3)), -np.ones((2, 3))]), np.full(4, -1.0))  # no such point
        f, g = stacked(fs), stacked(gs)
        if t == 11:
            reveal = [(None, g), *((None, one) for one in gs)]
        elif t == 13:
            reveal = [(f, None), *((one, None) for one in fs)]
        else:
            reveal = [(f, g), *zip(fs, gs, strict=True)]
        played = K.project(starts + 0.01 * t) if t == 17 else None
        records = [
            learner.tell(
                None if f is None else getattr(losses, f[0])(*f[1:]),
                None if g is None else build(g),
                played=None if played is None else played if i == 0 else played[i - 1],
            )
            for i, (learner, (f, g)) in enumerate(zip([together, *apart], reveal, strict=True))
        ]
        for name in ("loss", "rows", "violation", "step", "feasible"):
            many, ones = getattr(records[0], name), [getattr(record, name) for record in records[1:]]
            if many is not None:
                np.testing.assert_allclose(np.broadcast_to(many, np.shape(ones)), ones, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(together.ask(), [one.ask() for one in apart], rtol=0, atol=1e-12)
    for name, many in together.ledger.as_dict().items():
        ones = [getattr(one.ledger, name) for one in apart]
        np.testing.assert_allclose(np.broadcast_to(many, trials), ones, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(together.certificate().value, [one.certificate().value for one in apart], rtol=1e-12)
    assert together.certificate().reasons == tuple(
        sorted({r for one in apart for r in one.certificate().reasons}, key=together.certificate().reasons.index)
    )


def test_losses_and_constraints_that_all_trials_share():
    K, starts = Box(0.0, 1.0, dim=3), np.random.default_rng(0).random((2, 5, 3))
    together = CLASP(K, start=starts)
    single = CLASP(K, start=starts[1, 3])
    f, g = losses.Linear([1.0, -1.0, 0.5]), constraints.Affine([1.0, 1.0, 1.0], 1.0)
    for _ in range(5):
        together.tell(f, g)
        single.tell(f, g)
        np.testing.assert_allclose(together.ask()[1, 3], single.ask(), rtol=0, atol=1e-12)
    assert together.ledger.loss.shape == together.certificate().value.shape == (2, 5)


# ---------------------------------------------------------------- construction and small rules


def test_steps_are_counted_in_losses():
    learner = CLASP(Box(-9.0, 9.0, dim=1), start=[0.0], steps=steps.Power(0.5))
    f = losses.Linear([1.0])
    assert learner.tell(f).step == 1.0
    assert learner.tell(None, constraints.Affine([1.0], 5.0)).step == 0.0
    assert learner.tell().step == 0.0
    assert learner.tell(f).step == 2**-0.5
    assert learner.t == learner.ledger.rounds == 4


def test_the_worst_row_is_projected_onto_even_when_it_is_not_violated():
    # At x_1 = 0 both rows hold; the gradient step then crosses them both, and only the larger one at x_1 is met.
    learner = CLASP(Box(-9.0, 9.0, dim=2), start=[0.0, 0.0], rows="worst", steps=steps.Constant(1.0))
    learner.tell(losses.Linear([-5.0, -5.0]), constraints.Affine(np.eye(2), [2.0, 1.0]))
    np.testing.assert_array_equal(learner.ask(), [5.0, 1.0])
    learner = CLASP(Box(-9.0, 9.0, dim=2), start=[0.0, 0.0], rows="worst", steps=steps.Constant(1.0))
    learner.tell(losses.Linear([-5.0, -5.0]), constraints.Affine(np.eye(2), [1.0, 1.0]))
    np.testing.assert_array_equal(learner.ask(), [1.0, 5.0])  # the first on ties


def test_a_window_forgets():
    learner = CLASP(Box(0.0, 9.0, dim=1), start=[9.0], window=2, steps=steps.Constant(1.0))
    up = losses.Linear([-9.0])
    for b in (1.0, 2.0, 3.0, 4.0):
        learner.tell(up, constraints.Affine([1.0], b))
    np.testing.assert_allclose(learner.ask(), [3.0], rtol=1e-14)  # rounds 3 and 4
    learner.tell(up)  # a round without a constraint takes its place in the window
    np.testing.assert_allclose(learner.ask(), [4.0], rtol=1e-14)
    learner.tell(up)
    np.testing.assert_array_equal(learner.ask(), [9.0])


def test_the_nearest_point_is_counted_and_voids_the_certificate():
    K = Box(0.0, 1.0, dim=2)
    learner = CLASP(K, start=np.zeros((2, 2)), infeasible="nearest", steps=steps.Constant(0.5))
    g = constraints.Affine(np.ones((2, 1, 2)), [[1.0], [-1.0]])
    record = learner.tell(losses.Linear([-1.0, 0.0]), g)
    np.testing.assert_array_equal(record.feasible, [True, False])
    np.testing.assert_allclose(learner.ask(), [[0.5, 0.0], [0.0, 0.0]], atol=1e-9)
    np.testing.assert_array_equal(learner.ledger.infeasible_rounds, [0, 1])
    np.testing.assert_array_equal(learner.certificate().valid, [True, False])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": "box"}, "K: expected a set"),
        ({"start": [2.0, 0.0]}, "start: expected a point of K, got one that violates it by 1"),
        ({"start": [0.5]}, r"start: expected shape \(\.\.\., 2\)"),
        ({"start": [np.nan, 0.0]}, "start: expected finite numbers"),
        ({"steps": 0.1}, "steps: expected a schedule"),
        ({"rows": "some"}, 'rows: expected "all" or "worst"'),
        ({"window": 0}, "window: expected a positive integer"),
        ({"window": 1.5}, "window: expected a positive integer"),
        ({"infeasible": "ignore"}, 'infeasible: expected "raise", "nearest" or "skip"'),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        CLASP(**({"K": Box(0.0, 1.0, dim=2)} | arguments))


def test_a_schedule_is_refused_as_it_is_used():
    learner = CLASP(Box(0.0, 1.0, dim=2), steps=lambda t: 0.1 * t)
    learner.tell(losses.Linear([1.0, 0.0]))
    with pytest.raises(InvalidInput, match=r"at most the last one, 0\.1, in round 2, got 0\.2"):
        learner.tell(losses.Linear([1.0, 0.0]))
    with pytest.raises(InvalidInput, match=r"positive finite step in round 1, got 0\.0"):
        CLASP(Box(0.0, 1.0, dim=2), steps=lambda t: 0.0).tell(losses.Linear([1.0, 0.0]))


def test_a_schedule_may_use_its_array_again():
    own = np.array([0.5, 0.25])

    def halving(t):
        own[...] /= 2
        return own

    learner = CLASP(Box(-9.0, 9.0, dim=1), start=np.zeros((2, 1)), steps=halving)
    first = learner.tell(losses.Linear([1.0])).step
    learner.tell(losses.Linear([1.0]))
    np.testing.assert_array_equal(first, [0.25, 0.125])
    np.testing.assert_array_equal(learner.ask(), [[-0.375], [-0.1875]])
    own[...] = 1.0
    np.testing.assert_array_equal(
        learner.certificate().value, 18.0**2 / (2 * own * [0.125, 0.0625]) + 0.5 * np.array([0.375, 0.1875])
    )


@pytest.mark.parametrize("batch", [(2, 2), (3, 2)])
def test_one_step_per_trial_with_two_leading_axes(batch):
    rng = np.random.default_rng(1)
    c = rng.normal(size=(*batch, 3))
    learner = CLASP(Box(-99.0, 99.0, dim=3), start=np.zeros((*batch, 3)), steps=steps.Adaptive(1.0, scale=1.0))
    learner.tell(losses.Linear(c))
    np.testing.assert_allclose(learner.ask(), -c / np.linalg.norm(c, axis=-1, keepdims=True), atol=1e-15)


@pytest.mark.parametrize("window", [3, None])
def test_earlier_constraints_do_not_change_with_the_users_arrays(window):
    """Those inside of a stack, too."""
    rng = np.random.default_rng(0)

    def play(reused):
        learner = CLASP(Box(-1.0, 1.0, dim=3), window=window)
        own_A, own_b = np.empty((2, 3)), np.empty(2)
        for A, b, slope in data:
            if reused:
                own_A[:], own_b[:] = A, b
                A, b = own_A, own_b
            learner.tell(losses.Linear(slope), constraints.Stack([constraints.Affine(A, b), constraints.Affine(-A, b)]))
        return learner

    data = [(rng.normal(size=(2, 3)), rng.uniform(0.01, 0.1, 2), rng.normal(size=3)) for _ in range(12)]
    one, other = play(reused=True), play(reused=False)
    np.testing.assert_array_equal(one.ask(), other.ask())


@pytest.mark.parametrize("batch", [(), (3,), (2, 1)])
def test_a_record_says_for_every_trial_whether_the_round_was_feasible(batch):
    learner = CLASP(Box(0.0, 1.0, dim=2), start=np.full((*batch, 2), 0.5), infeasible="nearest")
    for b, expected in ((1.0, True), (-1.0, False)):
        feasible = learner.tell(losses.Linear([1.0, 1.0]), constraints.Affine([1.0, 1.0], b)).feasible
        assert np.shape(feasible) == batch
        assert np.asarray(feasible).dtype == bool
        assert np.all(feasible == expected)
