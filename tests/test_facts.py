"""What algorithms say about themselves, and the parts that many of them share: static constraints, queues per row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from cocopt import CLASP, Ball, Box, constraints, losses, registry, state, steps
from cocopt.algorithms.base import Feedback
from cocopt.algorithms.facts import Rate, Rates
from cocopt.algorithms.queues import row_queues
from cocopt.algorithms.static_constraint import StaticConstraint
from cocopt.errors import InvalidInput, StateError

K = Box(0.0, 1.0, dim=2)


@pytest.mark.parametrize("name", registry.classes("algorithm"))
def test_every_algorithm_says_what_is_known_about_it(name: str) -> None:
    facts = registry.classes("algorithm")[name].facts
    assert facts is not None
    assert 2003 <= facts.year <= 2026
    assert facts.oracle
    assert facts.provenance
    assert facts.convex or facts.strongly_convex
    assert facts.constraints in ("dynamic", "static")


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(0.5), "√T"),
        (Rate(1.0), "T"),
        (Rate(0.75), "T^(3/4)"),
        (Rate(5 / 6), "T^(5/6)"),
        (Rate(0.123456), "T^0.123"),
        (Rate(0.0), "1"),
        (Rate(0.0, 1.0), "log T"),
        (Rate(0.5, 1.0), "√T log T"),
        (Rate(0.5, 0.5), "√(T log T)"),
        (Rate(0.25, 0.5), "T^(1/4) (log T)^0.5"),
    ],
)
def test_rates_are_written_as_in_papers(rate: Rate, text: str) -> None:
    assert str(rate) == text


def test_rates_follow_the_configuration() -> None:
    assert CLASP(K, beta=0.5).rates == Rates.from_squares(Rate(0.5), Rate(0.5))
    assert CLASP(K, steps=steps.Power(0.75)).rates == Rates(Rate(0.75), Rate(0.625), Rate(0.25))
    assert CLASP(K, steps=steps.StronglyConvex(1.0)).rates == CLASP.facts.strongly_convex
    assert CLASP(K, steps=steps.Constant(0.1)).rates is None


# ------------------------------------------------------------------------------------------------- equal constraints

A, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0])
PAIRS = [
    (lambda s: constraints.Affine(s * A, b), True),
    (lambda s: constraints.Affine(A, s * b), True),
    (lambda s: constraints.NormBall(np.zeros(2), s * 1.0), True),
    (lambda s: constraints.Stack([constraints.Affine(A, b), constraints.NormBall(np.zeros(2), s * 1.0)]), True),
    (lambda s: constraints.Function(lambda x: s * x[0], np.cos), False),  # another lambda each time
]


@pytest.mark.parametrize(("make", "equal"), PAIRS)
def test_constraints_are_compared_by_value(make, equal) -> None:
    one = make(1.0)
    assert one.equals(one)
    assert one.equals(make(1.0)) == equal
    assert not one.equals(make(2.0))
    assert not one.equals(constraints.Affine([1.0, 0.0], 1.0))


def test_black_boxes_are_equal_if_they_call_the_same_functions() -> None:
    def value(x):
        return float(x @ x) - 1.0

    def gradient(x):
        return 2.0 * x

    one = constraints.Function(value, gradient)
    assert one.equals(constraints.Function(value, gradient))
    assert not one.equals(constraints.Function(value, gradient, vectorized=True))
    assert not one.equals(constraints.Function(value, np.cos))


# ----------------------------------------------------------------------------------------- static constraints, queues


def feedback(constraint, t: int = 1) -> Feedback:
    x = np.zeros(2)
    rows = None if constraint is None else constraint.rows(x)
    return Feedback(t, t, x, x, None, 0.0, None, None, constraint, rows)


def test_a_static_constraint_is_kept_and_another_one_refused() -> None:
    array = A.copy()
    static = StaticConstraint(K, "Mahdavi").after(feedback(None)).after(feedback(constraints.Affine(array, b)))
    array[...] = 0.0  # the caller's array is the caller's
    assert static.after(feedback(constraints.Affine(A, b), 2)) is static
    with pytest.raises(InvalidInput, match=r"the same constraint in every round, which Mahdavi .* in round 3"):
        static.after(feedback(constraints.Affine(2 * A, b), 3))


def test_a_static_constraint_is_stored() -> None:
    empty = StaticConstraint(K, "Mahdavi")
    for static in (empty, empty.after(feedback(constraints.Affine(A, b)))):
        spec, arrays = state.encode(static, "static")
        again = state.restore(state.Decoder(arrays).decode(spec), empty)
        assert (again.constraint is None) == (static.constraint is None)
        assert again.constraint is None or again.constraint.equals(static.constraint)
    with pytest.raises(StateError):
        empty.restored({"constraint": constraints.Affine(np.ones(3), 1.0)}, ())
    with pytest.raises(StateError):
        empty.restored({"constraint": Ball(0.0, 1.0, dim=2)}, ())


def test_queues_learn_the_number_of_rows() -> None:
    queues = row_queues(None, np.zeros((4, 3)), initial=2.0)
    np.testing.assert_array_equal(queues, np.full((4, 3), 2.0))
    assert row_queues(queues, np.ones((4, 3))) is queues
    with pytest.raises(InvalidInput, match="expected 3 rows as in the first round, since each row has a queue, got 2"):
        row_queues(queues, np.ones((4, 2)))


def test_restored_queues_have_one_number_per_trial_and_row() -> None:

    class Memory(NamedTuple):
        queues: state.NonNegativeRows

    def restored(value, batch=(4,)):
        return state.restore({"queues": value}, Memory(None), batch).queues

    assert restored(None) is None
    np.testing.assert_array_equal(restored(np.ones((4, 3))), np.ones((4, 3)))
    for bad in (np.ones((3, 3)), np.ones(4), np.ones((4, 0)), -np.ones((4, 3)), np.full((4, 3), np.nan)):
        with pytest.raises(StateError, match="queues"):
            restored(bad)
    for bad in (np.ones((4, 3), dtype=np.float32), np.full((4, 3), np.inf), "queues", 1.0, [1.0]):
        with pytest.raises(StateError, match="queues"):
            restored(bad)


# ------------------------------------------------------------------------------------------------ extreme constants


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("jenatton", {"lipschitz": 1e-320, "bound": 4.0}),
        ("mahdavi", {"horizon": 10, "lipschitz": 1e-320, "bound": 1.0}),
        ("mahdavi", {"horizon": 10, "lipschitz": 1e300, "bound": 1.0}),
        ("yu-neely", {"horizon": 10, "lipschitz": 1e300}),
        ("recoo", {"epsilon": 400.0}),
    ],
)
def test_constants_with_which_an_update_overflows_are_an_error(name: str, options: dict[str, float]) -> None:
    def play() -> None:
        learner = registry.classes("algorithm")[name](Box(-1.0, 1.0, dim=2), **options)
        for _ in range(50):
            assert np.isfinite(learner.ask()).all()
            learner.tell(losses.Distance([0.3, -0.4]), constraints.Affine(np.eye(2), [0.5, 0.5]))

    with np.errstate(all="ignore"), pytest.raises(InvalidInput):
        play()


def test_what_a_users_function_raises_is_not_changed() -> None:
    def divide(x: np.ndarray) -> float:
        return 1.0 / 0.0

    with pytest.raises(ZeroDivisionError):
        CLASP(K).tell(losses.Function(divide, np.cos))
