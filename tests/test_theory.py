"""Bounds and certificates, on streams whose regret is known in closed form."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocopt import state, steps
from cocopt.errors import InvalidInput, StateError
from cocopt.theory import Certificate, bounds

SCHEDULES = [
    steps.Power(0.5),
    steps.Power(0.3, scale=0.2),
    steps.Power(0.8, scale=5.0),
    steps.Constant(0.05),
    steps.Adaptive(D=2.0),
    steps.Adaptive(D=0.3, scale=0.7),
    steps.Function(lambda t: 1 / (5 + t)),
    steps.StronglyConvex(m=0.5),
]


def play(schedule, T, n, seed):
    """CLASP in K = [−1, 1]^n, written out.

    Each round bounds one coordinate from one side, g_t(x) = a (±x_j − b), so every intersection is a box: projections
    are clips, and the best fixed action is known in closed form. Losses are ⟨c, x⟩, plus (m/2)‖x − z‖² for a schedule
    that needs strong convexity.
    """
    rng = np.random.default_rng(seed)
    m, D, size = schedule.modulus, 2 * math.sqrt(n), rng.uniform(0.1, 3.0)
    low, high = -np.ones(n), np.ones(n)  # S_t
    inside = rng.uniform(-0.5, 0.5, n)
    x = rng.uniform(-1, 1, n)
    drift = rng.normal(size=n)
    total_c, total_z, count = np.zeros(n), np.zeros(n), 0
    loss = ccv1 = ccv2 = squares = weighted = L_f = L_g = 0.0
    first = None
    proof, previous, path = Certificate.zero(diameter=D, modulus=m), np.inf, []
    for t in range(1, T + 1):
        c = size * (drift + rng.normal(size=n))
        z = rng.uniform(-1, 1, n) if m else np.zeros(n)
        gradient = c + m * (x - z)
        loss += c @ x + m / 2 * (x - z) @ (x - z)
        L_f = max(L_f, np.linalg.norm(np.abs(c) + 2 * m))
        j, sign, slope = rng.integers(n), rng.choice([-1.0, 1.0]), rng.uniform(0.1, 4.0)
        b = sign * inside[j] + rng.uniform(0, 0.5)
        violation = max(0.0, slope * (sign * x[j] - b))
        L_g = max(L_g, slope)
        ccv1, ccv2 = ccv1 + violation, ccv2 + violation**2
        square = float(gradient @ gradient)
        squares += square
        first = first or math.sqrt(square)
        eta = steps.checked_step(schedule, t, squares, previous)
        previous = eta
        weighted += eta * square
        proof = proof.after(eta, square, modulus=m)
        x = np.clip(x - eta * gradient, -1, 1)
        if sign * x[j] > b:
            x[j] = sign * b
        if sign > 0:
            high[j] = min(high[j], b)
        else:
            low[j] = max(low[j], -b)
        total_c, total_z, count = total_c + c, total_z + z, count + z @ z
        best = np.clip((m * total_z - total_c) / (m * t), low, high) if m else np.where(total_c > 0, low, high)
        least = total_c @ best + m / 2 * (t * best @ best - 2 * best @ total_z + count)
        path.append((loss - least, ccv1, ccv2, float(proof.value)))
    regret, ccv1, ccv2, value = np.array(path).T
    return SimpleNamespace(
        regret=regret, ccv1=ccv1, ccv2=ccv2, value=value, proof=proof, D=D, L_f=L_f, L_g=L_g, first=first,
        eta=eta, weighted=weighted,
    )  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__ if "lambda" in repr(s) else repr(s))
@settings(max_examples=10)
@given(st.integers(1, 4), st.integers(0, 10**6))
def test_bounds_and_certificate_hold_in_every_round(schedule, n, seed):
    T = 60
    run = play(schedule, T, n, seed)
    assert run.proof.valid
    assert (run.regret <= run.value * (1 + 1e-12) + 1e-12).all()
    promised = bounds(
        schedule,
        np.arange(1, T + 1),
        diameter=run.D,
        lipschitz_f=run.L_f,
        lipschitz_g=run.L_g,
        first_gradient=run.first,
    )
    assert (run.value <= promised.regret * (1 + 1e-12)).all()  # the certificate is at most the worst case
    assert (run.ccv2 <= promised.ccv2).all()
    assert (run.ccv1 <= promised.ccv1).all()
    assert (run.ccv1 <= np.sqrt(np.arange(1, T + 1) * run.ccv2) * (1 + 1e-12)).all()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__ if "lambda" in repr(s) else repr(s))
def test_certificate_agrees_with_its_formula(schedule):
    run = play(schedule, 40, 3, seed=5)
    form = 0.0 if schedule.modulus else run.D**2 / (2 * run.eta)
    assert run.proof.value == pytest.approx(form + run.weighted / 2, rel=1e-14)


@pytest.mark.parametrize("beta", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_power_constants(beta, scale):
    D, L_f, L_g, T = 2.0, 3.0, 0.5, 1000
    total = scale * math.fsum(t**-beta for t in range(1, T + 1))
    got = bounds(steps.Power(beta, scale), T, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g)
    assert got.regret == pytest.approx(D**2 * T**beta / (2 * scale) + L_f**2 / 2 * total, rel=1e-13)
    assert got.ccv2 == pytest.approx(L_g**2 * (D**2 + 2 * L_f * D * total), rel=1e-13)
    assert got.ccv1 == pytest.approx(math.sqrt(T * got.ccv2), rel=1e-13)


def test_strongly_convex_constants():
    D, L_f, L_g, m = 2.0, 3.0, 0.5, 0.4
    for T in (1, 7, 10**6):
        got = bounds(steps.StronglyConvex(m), T, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g)
        log = 1 + math.log(T)
        assert got.regret == pytest.approx(L_f**2 / (2 * m) * log, rel=1e-13)
        assert got.ccv2 == pytest.approx(L_g**2 * (D**2 + 2 * L_f * D / m * log), rel=1e-13)


def test_adaptive_constants():
    D, L_f, L_g, T = 2.0, 3.0, 0.5, 400
    got = bounds(steps.Adaptive(D, scale=0.5), T, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g)
    assert got.regret == pytest.approx(D * (1 / (2 * 0.5) + 0.5) * L_f * math.sqrt(T), rel=1e-13)
    assert got.ccv2 == pytest.approx(L_g**2 * (D**2 + 2 * D * 0.5 * D * T), rel=1e-13)
    known = bounds(steps.Adaptive(D, scale=0.5), T, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g, first_gradient=1.0)
    path = math.sqrt(T * (1 + math.log(T * L_f**2)))
    assert known.ccv2 == pytest.approx(L_g**2 * (D**2 + 2 * D * 0.5 * D * path), rel=1e-13)
    assert known.regret == got.regret


def test_ccv2_of_adaptive_steps_can_grow_linearly():
    # Gradients that double in each round make every step as long as the diameter of K.
    schedule, x, squares, ccv2, T = steps.Adaptive(D=2.0, scale=1.0), 1.0, 0.0, 0.0, 40
    for t in range(1, T + 1):
        side = 1.0 if t % 2 else -1.0  # g_t(x) = side · x, f_t pushes back to the other side
        ccv2 += max(0.0, side * x) ** 2
        gradient = side * 2.0**t
        squares += gradient**2
        x = np.clip(x - schedule.step(t, squares) * gradient, -1, 1)
        x = min(x, 0.0) if side > 0 else max(x, 0.0)
    assert ccv2 > 0.7 * T


def test_a_callable_has_the_bounds_of_the_equal_schedule():
    T = np.array([[1, 2], [500, 77]])
    constants = {"diameter": 2.0, "lipschitz_f": 3.0, "lipschitz_g": 0.5}
    for schedule, function in (
        (steps.Power(0.4, 0.7), lambda t: 0.7 * t**-0.4),
        (steps.Constant(0.1), lambda t: 0.1),
    ):
        for one, other in zip(bounds(schedule, T, **constants), bounds(function, T, **constants), strict=True):
            assert (one is None) == (other is None)
            assert one is None or one.shape == T.shape
            np.testing.assert_allclose(np.asarray(one, dtype=float), np.asarray(other, dtype=float), rtol=1e-13)


def test_long_horizons_are_summed_exactly():
    T = np.array([1, 999, 262_144, 262_145, 3_000_000])
    constants = {"diameter": 1.0, "lipschitz_f": 1.0, "lipschitz_g": 1.0}
    got = bounds(steps.Power(0.5), T, **constants).ccv2
    running = list(itertools.accumulate((np.arange(1, T[-1] + 1) ** -0.5).tolist()))
    np.testing.assert_allclose(got, [1 + 2 * running[t - 1] for t in T], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"T": 0}, "T: expected positive integers up to .*, got int 0"),
        ({"T": 2.5}, "T: expected positive integers up to .*, got float 2.5"),
        ({"T": []}, r"T: expected positive integers up to .*, got list"),
        ({"diameter": math.inf}, "diameter: expected a non-negative number, got inf"),
        ({"lipschitz_f": -1.0}, "lipschitz_f: expected a non-negative number, got -1.0"),
        ({"lipschitz_g": math.nan}, "lipschitz_g: expected a non-negative number, got nan"),
        ({"steps": lambda t: t}, "at most the last one, 1.0, in round 2, got 2.0"),
        ({"steps": 0.1}, "steps: expected a schedule"),
        ({"steps": steps.Adaptive(1.0), "first_gradient": 0.0}, "first_gradient: expected a positive number, got 0.0"),
    ],
)
def test_bounds_refuse_invalid_arguments(change, message):
    good = {"steps": steps.Power(), "T": 10, "diameter": 1.0, "lipschitz_f": 1.0, "lipschitz_g": 1.0}
    with pytest.raises(InvalidInput, match=message):
        bounds(**(good | change))


def test_an_infeasible_round_voids_its_trial_for_good():
    proof = Certificate.zero((3,), diameter=1.0).after(1.0, np.ones(3), infeasible=[False, True, False])
    proof = proof.after(0.5, np.ones(3), infeasible=np.zeros(3, dtype=bool))
    np.testing.assert_array_equal(proof.valid, [True, False, True])
    np.testing.assert_array_equal(proof.value, [1.75, np.inf, 1.75])
    assert proof.reasons == ("in some round no point of K satisfied the constraint",)


def test_a_weaker_loss_voids_the_strongly_convex_form_only():
    strong = Certificate.zero(diameter=1.0, modulus=2.0).after(0.5, 1.0, modulus=2.0)
    assert strong.after(0.25, 1.0, modulus=3.0).valid
    assert strong.after(0.25, 1.0, modulus=2.0 * (1 - 1e-15)).valid
    for modulus in (1.99, 0.0, None):
        void = strong.after(0.25, 1.0, modulus=modulus)
        assert not void.valid
        assert void.value == np.inf
        assert void.reasons == ("a loss was less strongly convex than the steps assume",)
    assert Certificate.zero(diameter=1.0).after(0.5, 1.0, modulus=0.0).valid
    each = Certificate.zero((2,), diameter=1.0, modulus=1.0).after(1.0, np.ones(2), modulus=np.array([1.0, 0.5]))
    np.testing.assert_array_equal(each.valid, [True, False])


def test_steps_that_decrease_too_fast_void_the_strongly_convex_form():
    # 1/η may grow by at most m per loss: a schedule that also counts rounds without a loss breaks the proof.
    proof = Certificate.zero(diameter=1.0, modulus=1.0)
    for t in range(1, 1000):
        proof = proof.after(1.0 / t, 1.0, modulus=1.0)
    assert proof.valid
    assert proof.after(None, None).after(1.0 / 1000, 1.0, modulus=1.0).valid
    void = proof.after(None, None).after(1.0 / 1001, 1.0, modulus=1.0)
    assert void.reasons == ("the steps fell faster than 1/(m t)",)


def test_a_step_that_increases_voids_the_convex_form():
    proof = Certificate.zero((2,), diameter=1.0).after(np.array([0.5, 0.5]), 1.0).after(np.array([0.5, 0.6]), 1.0)
    np.testing.assert_array_equal(proof.valid, [True, False])
    assert proof.reasons == ("a step was larger than the one before",)


def test_an_unbounded_set_voids_the_convex_form_only():
    convex = Certificate.zero(diameter=np.inf).after(1.0, 1.0)
    assert not convex.valid
    assert convex.value == np.inf
    assert convex.reasons == ("K is unbounded, or its diameter unknown",)
    strong = Certificate.zero(diameter=np.inf, modulus=1.0).after(1.0, 3.0, modulus=1.0)
    assert strong.value == 1.5
    assert strong.reasons == ()


def test_drift_adds_to_the_certificate():
    convex = Certificate.zero((2,), diameter=1.0).after(1.0, np.ones(2), drift=np.array([0.25, -0.5]), distance=7.0)
    np.testing.assert_allclose(convex.value, [0.5 + 0.5 + 0.25, 0.5 + 0.5 - 0.5])
    strong = Certificate.zero(diameter=3.0, modulus=2.0).after(0.5, 4.0, modulus=2.0, drift=0.25, distance=0.1)
    assert strong.value == pytest.approx(1.0 + 0.25 + (2.0 * 3.0 * 0.1 - 2.0 * 0.1**2 / 2))


def test_zero_steps_and_rounds_without_a_loss_add_nothing():
    start = Certificate.zero(diameter=2.0)
    assert start.value == 0.0
    assert start.after(0.0, 0.0).value == 0.0
    proof = start.after(0.0, 0.0).after(0.5, 4.0)
    assert proof.value == 2.0**2 / (2 * 0.5) + 0.5 * 4.0 / 2
    assert proof.after(None, None).value == proof.after(0.0, 0.0).value == proof.value
    assert not proof.after(None, None, infeasible=True).valid
    each = Certificate.zero((2,), diameter=2.0).after(np.array([0.0, 0.5]), np.array([0.0, 4.0]))
    np.testing.assert_array_equal(each.value, [0.0, 5.0])


def test_certificate_is_summed_to_the_last_digit():
    proof, terms = Certificate.zero(diameter=0.0), [1e16, *[1.0] * 1001]
    for term in terms:
        proof = proof.after(1.0, term)
    assert proof.value == math.fsum(terms) / 2


def plain(proof):
    """A certificate as a state file would return it."""
    spec, arrays = state.encode(proof, "proof")
    return state.Decoder(arrays).decode(spec)


@pytest.mark.parametrize("modulus", [0.0, 0.5])
def test_a_batch_equals_its_trials_and_survives_storage(modulus):
    rng = np.random.default_rng(3)
    batch = Certificate.zero((3,), diameter=1.5, modulus=modulus)
    singles = [Certificate.zero(diameter=1.5, modulus=modulus) for _ in range(3)]
    for t in range(1, 30):
        step, squares = 2.0 / t, rng.random(3)
        seen = np.array([0.5, 0.5, 0.5 if t < 20 else 0.4])
        infeasible = np.array([False, t == 9, False])
        batch = batch.after(step, squares, modulus=seen, infeasible=infeasible)
        singles = [
            one.after(step, squares[i], modulus=seen[i], infeasible=infeasible[i]) for i, one in enumerate(singles)
        ]
        batch = batch.restored(plain(batch), (3,))
        singles = [one.restored(plain(one), ()) for one in singles]
    np.testing.assert_array_equal(batch.value, [one.value for one in singles])
    np.testing.assert_array_equal(batch.valid, [one.valid for one in singles])
    assert type(singles[0].value) is np.float64
    assert batch == batch.restored(plain(batch), (3,))
    assert batch != batch.after(0.01, 1.0, modulus=1.0)
    for change in (
        {"sum": {"total": np.zeros(2), "carry": np.zeros(2)}},
        {"sum": {"total": math.nan, "carry": 0.0}},
        {"seen": 64},
        {"seen": "0"},
        {"last": -1.0},
        {"more": 1},
    ):
        with pytest.raises(StateError):
            batch.restored(plain(batch) | change, (3,))


def test_repr_and_construction():
    assert repr(Certificate.zero(diameter=2.0).after(1.0, 4.0)) == "Certificate(regret ≤ 4)"
    assert repr(Certificate.zero((2,), diameter=2.0).after(1.0, np.array([4.0, 2.0]))) == (
        "Certificate(regret ≤ 4 in each of 2 trials)"
    )
    assert repr(Certificate.zero(diameter=math.inf)) == "Certificate(void: K is unbounded, or its diameter unknown)"
    for bad in (-1.0, math.nan):
        with pytest.raises(InvalidInput, match="diameter: expected a non-negative number or inf"):
            Certificate.zero(diameter=bad)
    with pytest.raises(InvalidInput, match="modulus: expected a non-negative number"):
        Certificate.zero(diameter=1.0, modulus=-1.0)
