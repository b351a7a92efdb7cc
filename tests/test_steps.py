"""Step-size schedules."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocopt
from cocopt import steps
from cocopt.errors import InvalidInput

STORABLE = [
    steps.Power(),
    steps.Power(beta=0.3, scale=2.5),
    steps.StronglyConvex(m=0.4),
    steps.Constant(0.1),
    steps.Adaptive(D=3.0, scale=0.5),
]

positive = st.floats(1e-6, 1e6)


@given(st.floats(0.01, 0.99), positive, st.integers(1, 10**9))
def test_power_is_its_formula(beta, scale, t):
    assert steps.Power(beta, scale).step(t, 0.0) == pytest.approx(scale * math.exp(-beta * math.log(t)), rel=1e-12)


@given(positive, st.integers(1, 10**9))
def test_strongly_convex_is_its_formula(m, t):
    schedule = steps.StronglyConvex(m)
    assert schedule.step(t, 0.0) == pytest.approx(1 / m / t, rel=1e-12)
    assert schedule.modulus == m


@given(positive, positive, st.lists(st.floats(0, 1e12), min_size=1, max_size=5))
def test_adaptive_is_its_formula_and_zero_without_gradients(D, scale, gradients):
    schedule = steps.Adaptive(D, scale)
    together = schedule.step(7, np.array(gradients))
    for one, g in zip(together, gradients, strict=True):
        assert one == pytest.approx(scale * D / math.sqrt(g) if g > 0 else 0.0, rel=1e-12)
        assert schedule.step(7, np.float64(g)) == one


def test_constant_and_function():
    assert steps.Constant(0.25).step(10**6, 0.0) == 0.25
    assert steps.Function(lambda t: 1 / (t + 1)).step(3, 0.0) == 0.25


@pytest.mark.parametrize("schedule", STORABLE, ids=repr)
def test_parameters_make_the_schedule_again(schedule):
    again = type(schedule)(**schedule.parameters())
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert eval(repr(schedule), vars(steps).copy()) == schedule
    assert sum(schedule == other for other in STORABLE) == 1
    assert schedule.modulus == (0.4 if isinstance(schedule, steps.StronglyConvex) else 0.0)


@pytest.mark.parametrize("schedule", STORABLE, ids=repr)
def test_built_in_schedules_pass_their_own_check(schedule):
    previous, gradients = np.inf, 0.0
    for t in range(1, 500):
        gradients += (t % 3) / 7
        step = steps.checked_step(schedule, t, gradients, previous)
        assert type(step) is float
        previous = step or previous


def test_as_schedule():
    power = steps.Power()
    assert steps.as_schedule(power) is power

    def rule(t):
        return 1 / t

    wrapped = steps.as_schedule(rule)
    assert wrapped == steps.Function(rule)
    assert wrapped != steps.Function(lambda t: 1 / t)
    assert hash(wrapped) == hash(steps.Function(rule))
    assert wrapped.modulus == 0.0
    with pytest.raises(TypeError, match="Function does not say its parameters"):
        wrapped.parameters()
    for bad, named in ((0.1, "float"), (None, "NoneType"), (steps.Power, "Power")):
        with pytest.raises(InvalidInput, match=f"steps: expected a schedule .* got {named}"):
            steps.as_schedule(bad)


def test_a_schedule_by_name_and_options() -> None:
    assert steps.as_schedule("power") == steps.Power()
    assert steps.as_schedule("power", scale=2.0) == steps.Power(scale=2.0)
    assert steps.as_schedule(None, beta=0.7) == steps.Power(0.7)
    assert steps.as_schedule(None, m=2.0) == steps.StronglyConvex(2.0)
    assert steps.as_schedule(None, c=0.1) == steps.Constant(0.1)
    assert steps.as_schedule(None, D=3.0, scale=0.5) == steps.Adaptive(3.0, 0.5)
    assert steps.as_schedule(None, default="power", scale=0.5) == steps.Power(scale=0.5)
    for arguments, options, message in (
        (("powr",), {}, "steps: expected a known name, got 'powr'; did you mean power?"),
        (
            ("power",),
            {"m": 1.0},
            "m: expected an argument of the algorithm, or an option of steps=power, which takes beta, scale",
        ),
        (("strongly-convex",), {}, "m: expected as an option with steps=strongly-convex, got none"),
        ((steps.Power(),), {"beta": 0.5}, "beta: expected no such option beside a schedule"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            steps.as_schedule(*arguments, **options)


def test_adaptive_steps_take_the_diameter_of_K() -> None:
    assert cocopt.CLASP(cocopt.Box(0.0, 3.0, dim=1)).steps == steps.Adaptive(3.0)
    assert cocopt.CLASP(cocopt.Box(0.0, 3.0, dim=1), D=1.0).steps == steps.Adaptive(1.0)
    assert cocopt.CLASP(cocopt.Box(2.0, 2.0, dim=3)).ask() == pytest.approx([2.0, 2.0, 2.0])  # a K of one point
    with pytest.raises(InvalidInput, match=r"steps: expected a length D, as in steps.Adaptive\(D=1.0\), or another"):
        cocopt.CLASP(cocopt.Space(2))
    with pytest.raises(InvalidInput, match="D: expected a length, or a learner that fills in the diameter"):
        steps.Adaptive().step(1, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: steps.Power(beta=0.0), r"beta: expected a number in \(0, 1\), got 0.0"),
        (lambda: steps.Power(beta=1.0), r"beta: expected a number in \(0, 1\), got 1.0"),
        (lambda: steps.Power(beta=math.nan), "beta: expected a finite number, got nan"),
        (lambda: steps.Power(scale=0.0), "scale: expected a positive number, got 0.0"),
        (lambda: steps.StronglyConvex(-1.0), "m: expected a positive number, got -1.0"),
        (lambda: steps.Constant(math.inf), "c: expected a positive number, got inf"),
        (lambda: steps.Adaptive(D=math.inf), "D: expected a positive number, got inf"),
        (lambda: steps.Adaptive(D=1.0, scale=-1.0), "scale: expected a positive number, got -1.0"),
        (lambda: steps.Function(0.1), "function: expected a callable of t, got float"),
    ],
)
def test_malformed_schedules_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("value", "previous", "message"),
    [
        (0.0, math.inf, "steps: expected a positive finite step in round 5, got 0.0"),
        (-1.0, 2.0, "steps: expected a positive step of at most the last one, 2.0, in round 5, got -1.0"),
        (math.nan, math.inf, "positive finite step in round 5, got nan"),
        (math.inf, math.inf, "positive finite step in round 5, got inf"),
        (0.5, 0.25, "at most the last one, 0.25, in round 5, got 0.5"),
        (np.nextafter(0.25, 1.0), 0.25, "at most the last one, 0.25, in round 5, got 0.25"),
        (np.array([0.1, 0.3]), np.array([0.2, 0.2]), "at most the last one, 0.2, in round 5, got 0.3"),
        (np.array([0.1, np.nan]), 0.2, "at most the last one, 0.2, in round 5, got nan"),
        (np.array([0.1, 0.1, 0.1]), 0.2, r"a number or shape \(2,\) in round 5, got shape \(3,\)"),
        ("half", 0.2, "steps: expected a number in round 5, got str 'half'"),
        (None, 0.2, "positive step of at most the last one, 0.2, in round 5, got nan|got NoneType"),
    ],
)
def test_a_step_that_breaks_the_rules_is_refused(value, previous, message):
    with pytest.raises(InvalidInput, match=message):
        steps.checked_step(steps.Function(lambda t: value), 5, np.ones(2), previous)


def test_good_steps_of_any_type_pass():
    for value in (1, 0.5, np.float32(0.5), np.array(0.5)):
        step = steps.checked_step(steps.Function(lambda t, value=value: value), 2, 0.0, 1.0)
        assert step == float(value)
        assert type(step) is float
    each = np.array([0.5, 0.25])
    np.testing.assert_array_equal(steps.checked_step(steps.Function(lambda t: each), 2, np.ones(2), each), each)


def test_a_zero_step_is_neither_refused_nor_compared():
    schedule = steps.Adaptive(D=1.0, scale=1.0)
    first = steps.checked_step(schedule, 1, np.array([0.0, 4.0]))
    np.testing.assert_array_equal(first, [0.0, 0.5])
    second = steps.checked_step(schedule, 2, np.array([1.0, 4.0]), first)
    np.testing.assert_array_equal(second, [1.0, 0.5])
    assert steps.checked_step(schedule, 1, 0.0) == 0.0
    assert steps.checked_step(schedule, 2, 4.0, 0.0) == 0.5
    with pytest.raises(InvalidInput, match=r"at most the last one, 0.5, in round 3, got 1.0"):
        steps.checked_step(schedule, 3, np.array([1.0, 1.0]), second)  # gradients cannot shrink
