"""Constraints that are known before acting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import late_feedback as naive

import cocopt
from cocopt import CLASP, OFW, Box, Simplex, constraints, losses, registry
from cocopt.errors import InfeasibleRound, InvalidInput

N = 3
K = Box(0.0, 1.0, dim=N)


def test_the_nearest_point_that_satisfies_what_is_known() -> None:
    learner = CLASP(K, start=[0.9, 0.5, 0.1], beta=0.5)
    x = learner.ask(known=constraints.Affine([1.0, 1.0, 0.0], 1.0))
    np.testing.assert_allclose(x, [0.7, 0.3, 0.1], atol=1e-12)
    np.testing.assert_array_equal(learner.ask(), x)  # repeats the answer
    y = learner.ask(known=constraints.Equality([0.0, 0.0, 1.0], 0.6))
    np.testing.assert_allclose(y, [0.9, 0.5, 0.6], atol=1e-12)  # replaces it: from x_t, not from the last answer
    record = learner.tell(losses.Linear([0.1, 0.0, 0.0]), constraints.Affine([1.0, 0.0, 0.0], 0.5))
    np.testing.assert_allclose(record.rows, [0.4, 0.0], atol=1e-12)  # the constraint, and below it what was known
    assert record.violation == pytest.approx(0.4)
    np.testing.assert_allclose(learner.ask(), [0.5, 0.5, 0.6], atol=1e-12)  # the step goes from y, onto both
    np.testing.assert_allclose(learner.tell(losses.Linear([0.0, 0.0, 1.0])).rows is None, True)


@pytest.mark.parametrize("options", [{}, {"beta": 0.5}, {"m": 1.0}])
def test_certificates_stay_valid_and_known_rows_are_never_violated(options: Any) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        common = rng.uniform(0.3, 0.6, N)
        learner, centers, rows, paid = CLASP(K, start=np.full(N, 0.95), **options), [], [], 0.0
        for _ in range(40):
            a, b = rng.normal(size=(2, N))
            known, revealed = (a, float(a @ common)), (b, float(b @ common) + 0.02)
            x = learner.ask(known=constraints.Affine(*known))
            assert known[0] @ x <= known[1] + 1e-9
            c = rng.uniform(0, 1, N)
            learner.tell(losses.Distance(c), constraints.Affine(*revealed))
            paid += 0.5 * (x - c) @ (x - c)
            centers.append(c)
            rows += [known, revealed]
        assert learner.certificate().valid
        assert learner.certificate().value >= paid - naive.best_loss(centers, rows) - 1e-9


def test_a_balance_that_is_known_is_met_in_every_round() -> None:
    """The demand of the next hour, as on a grid: without ``known`` the balance is missed in every round."""
    rng = np.random.default_rng(1)
    demands = 4 + np.cumsum(rng.normal(size=30)) * 0.3
    blind, informed = (CLASP(Box(0.0, 3.0, dim=4), start=np.ones(4)) for _ in range(2))
    missed = {"blind": 0.0, "informed": 0.0}
    for demand in demands:
        balance, cost = constraints.Equality(np.ones(4), demand), losses.Linear(rng.uniform(1, 2, 4))
        missed["blind"] += abs(blind.ask().sum() - demand)
        missed["informed"] += abs(informed.ask(known=balance).sum() - demand)
        blind.tell(cost, balance)
        informed.tell(cost)
    assert missed["informed"] <= 1e-8
    assert missed["blind"] > 1.0


@pytest.mark.parametrize("known", [constraints.NormBall(np.full(N, 0.2), 0.3), constraints.Norm1(np.full(N, 0.2), 0.4)])
@pytest.mark.parametrize("K", [K, Simplex(N)], ids=["box", "simplex"])
def test_every_set_and_constraint(K: Any, known: Any) -> None:
    learner = CLASP(K, start=K.project([0.9, 0.1, 0.0]))
    x = learner.ask(known=known)
    np.testing.assert_allclose(x, cocopt.project(K, known, K.project([0.9, 0.1, 0.0])), atol=1e-12)


def test_batches_have_one_answer_per_trial() -> None:
    starts = np.array([[0.9, 0.9, 0.9], [0.1, 0.2, 0.3]])
    known = constraints.Affine(np.ones((2, 1, N)), np.array([[1.5], [1.5]]))
    together = CLASP(K, start=starts)
    x = together.ask(known=known)
    for i, start in enumerate(starts):
        np.testing.assert_allclose(x[i], CLASP(K, start=start).ask(known=known.trials(i)), atol=1e-12)
    with pytest.raises(InvalidInput, match="known: expected leading axes"):
        CLASP(K).ask(known=known)


def test_what_is_known_is_stored_until_it_is_told() -> None:
    learner = CLASP(K, start=np.full(N, 0.9))
    learner.ask(known=constraints.NormBall(np.zeros(N), 0.5))
    again = cocopt.loads(learner.dumps())
    np.testing.assert_array_equal(again.ask(), learner.ask())
    for one in (learner, again):
        one.tell(losses.Linear([1.0, 2.0, 3.0]))
    assert again.dumps() == learner.dumps()


def test_later_changes_of_the_users_arrays_do_not_matter() -> None:
    A = np.array([1.0, 0.0, 0.0])
    learner = CLASP(K, start=np.full(N, 0.9))
    learner.ask(known=constraints.Affine(A, 0.5))
    A[:] = 0.0
    assert learner.tell(losses.Linear(np.ones(N))).rows == pytest.approx([0.0])


def test_an_infeasible_known_obeys_the_option() -> None:
    impossible = constraints.Affine(np.ones(N), -1.0)
    learner = CLASP(K, start=np.full(N, 0.5))
    with pytest.raises(InfeasibleRound):
        learner.ask(known=impossible)
    np.testing.assert_array_equal(learner.ask(), np.full(N, 0.5))
    nearest = CLASP(K, start=np.full(N, 0.5), infeasible="nearest")
    np.testing.assert_allclose(nearest.ask(known=impossible), np.zeros(N), atol=1e-9)
    record = nearest.tell(losses.Linear(np.zeros(N)))
    assert not record.feasible
    assert nearest.ledger.infeasible_rounds == 1
    assert not nearest.certificate().valid


def test_which_algorithms_take_it() -> None:
    """Those whose analysis rests on distances to feasible actions; the others say so."""
    refusing = set()
    for name, cls in registry.classes("algorithm").items():
        options = cls.example_options()[0]
        learner = cls(K, start=np.full(N, 0.1), **options)
        try:
            learner.ask(known=constraints.Affine(np.ones(N), 2.0))
        except InvalidInput as error:
            refusing.add((name, str(error).partition(" of ")[0]))
    projection_free = {"ofw", "scofw", "sarkar", "garber-kretzu", "lu"}
    one_fixed_constraint = {"mahdavi", "yu-neely", "yi2021", "polyak", "jenatton"}
    assert refusing == {
        (name, "known: expected None, since the analysis") for name in projection_free | one_fixed_constraint
    }
    with pytest.raises(InvalidInput, match=r"known: expected an object such as constraints\.Affine"):
        CLASP(K).ask(known=3.0)
    with pytest.raises(InvalidInput, match="known: expected dimension 3"):
        CLASP(K).ask(known=constraints.Affine([1.0], 1.0))
    assert OFW.projection_free
