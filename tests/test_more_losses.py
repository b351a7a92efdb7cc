"""Negative logarithm, absolute error, quantile and Huber losses: formulas, gradients and hindsight by CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import cocopt
from cocopt import Box, Simplex, constraints, losses
from cocopt.errors import InvalidInput
from cocopt.hindsight import best_fixed

LEVEL, DELTA = 0.8, 0.3


def draw(kind, rng, rounds, n):
    """A loss with one leading axis, and the sum of its rounds as CVXPY states it."""
    u = rng.normal(size=(rounds, n))
    y = u @ np.linspace(0.0, 1.0, n) + 0.5 * rng.normal(size=rounds)
    if kind == "absolute":
        return losses.Absolute(u, y), lambda x: cp.norm1(u @ x - y)
    if kind == "quantile":
        return losses.Quantile(u, y, LEVEL), lambda x: cp.sum(
            cp.maximum(LEVEL * (y - u @ x), (1 - LEVEL) * (u @ x - y))
        )
    if kind == "huber":
        return losses.Huber(u, y, DELTA), lambda x: 0.5 * cp.sum(cp.huber(u @ x - y, DELTA))
    r = rng.uniform(0.2, 2.0, (rounds, n))
    return losses.NegativeLog(r), lambda x: -cp.sum(cp.log(r @ x))


KINDS = ("absolute", "quantile", "huber", "negative_log")


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_fixed_action_is_that_of_cvxpy(kind, constrained):
    for seed, (rounds, n) in enumerate([(1, 2), (7, 3), (60, 4)]):
        rng = np.random.default_rng(seed)
        f, total = draw(kind, rng, rounds, n)
        g = constraints.Affine(np.linspace(1.0, 0.0, n), 0.4) if constrained else None
        x = cp.Variable(n)
        conditions = [x >= 0, cp.sum(x) == 1] + ([np.linspace(1.0, 0.0, n) @ x <= 0.4] if constrained else [])
        least = cp.Problem(cp.Minimize(total(x)), conditions).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10
        )
        each = [f.trials(t) for t in range(rounds)]
        best = best_fixed(Simplex(n), losses=each, constraints=None if g is None else [g] * rounds)
        assert float(np.ravel(best.value)[-1]) == pytest.approx(least, rel=2e-7, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_formula_and_gradients_their_slopes(kind):
    rng, h = np.random.default_rng(1), 1e-6
    f, total = draw(kind, rng, 5, 3)
    x = rng.uniform(0.1, 1.0, 3)
    variable = cp.Variable(3, value=x)
    assert float(f.value(x).sum()) == pytest.approx(float(total(variable).value), abs=1e-12)
    slopes = np.stack([(f.value(x + h * e) - f.value(x - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
    np.testing.assert_allclose(f.gradient(x), slopes, atol=1e-8)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("kind", KINDS)
def test_second_order_information_is_of_the_sum(kind, smoothing, exact):
    """The gradient and the Hessian are those of the smoothed sum, the minorant is below the sum."""
    from cocopt.losses.second_order import Neighborhood

    rng, h, n, count = np.random.default_rng(2), 1e-6, 3, 4
    f, _ = draw(kind, rng, 6, n)
    x = rng.uniform(0.2, 1.0, n)
    near = Neighborhood(x, 0.3) if exact else None
    local = f.second_order(x, count, smoothing, near)
    assert local.value == pytest.approx(float(f.value(x)[:count].sum()), abs=1e-12)
    up, down = ([f.second_order(x + s * h * e, count, smoothing, near) for e in np.eye(n)] for s in (1, -1))
    slopes = [(a.smoothed - b.smoothed) / (2 * h) for a, b in zip(up, down, strict=True)]
    np.testing.assert_allclose(local.gradient, slopes, atol=1e-7)
    bends = [(a.gradient - b.gradient) / (2 * h) for a, b in zip(up, down, strict=True)]
    np.testing.assert_allclose(local.hessian, bends, atol=1e-5)
    for z in rng.uniform(0.01, 2.0, (50, n)):
        kinks = sum(np.linalg.norm(kink.H @ z - kink.y) for kink in local.kinks)
        assert local.minorant + local.gradient @ (z - x) + kinks <= f.value(z)[:count].sum() + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_one_loss_for_all_rounds_counts_as_often(kind):
    f, _ = draw(kind, np.random.default_rng(3), 2, 3)
    x, one = np.array([0.2, 0.3, 0.5]), f.trials(1)
    local = one.second_order(x, 7, 0.01)
    assert local.value == pytest.approx(7 * float(one.value(x)), abs=1e-12)
    np.testing.assert_allclose(local.gradient, 7 * one.second_order(x, 1, 0.01).gradient)


def test_the_quantile_of_constant_predictions_is_a_quantile():
    y = np.random.default_rng(0).normal(size=41)
    for level in (0.1, 0.5, 0.9):
        each = [losses.Quantile([1.0], target, level) for target in y]
        best = best_fixed(Box(-5.0, 5.0, dim=1), losses=each)
        expected = np.quantile(y, level, method="inverted_cdf")
        predicted = sum(float(f.value([expected])) for f in each)
        assert float(np.ravel(best.value)[-1]) == pytest.approx(predicted, rel=1e-6)


def test_half_the_absolute_error_is_the_quantile_loss_of_the_middle():
    rng = np.random.default_rng(4)
    u, y, x = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(6, 3))
    np.testing.assert_allclose(losses.Quantile(u, y, 0.5).value(x), 0.5 * losses.Absolute(u, y).value(x))


def test_the_domain_of_the_logarithm():
    f = losses.NegativeLog([[1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_array_equal(f.in_domain([1.0, 2.0]), [True, False])
    assert losses.Linear([1.0, 2.0]).in_domain([0.0, 0.0])
    for x in ([1.0, 2.0], [1.0, 1.0]):
        with pytest.raises(InvalidInput, match="x: expected points with ⟨r, x⟩ > 0"):
            f.value(x)
    with pytest.raises(InvalidInput, match="NegativeLog: r: expected finite"):
        losses.NegativeLog([np.nan, 1.0]).value([1.0, 1.0])
    learner = cocopt.CLASP(Box(-1.0, 1.0, dim=2), start=[-0.5, 0.0])
    with pytest.raises(InvalidInput, match="x: expected points with ⟨r, x⟩ > 0"):
        learner.tell(losses.NegativeLog([1.0, 1.0]))
    with pytest.raises(InvalidInput, match="x: expected points with ⟨r, x⟩ > 0"):
        best_fixed(Box(-1.0, 0.0, dim=2), losses=[losses.NegativeLog([1.0, 1.0])])


def test_returns_of_zero_do_not_stop_the_search():
    """At corners of the simplex some losses are infinite; the best is proportional betting (Kelly 1956)."""
    counts = np.array([5, 3, 2])
    each = [losses.NegativeLog(row) for row in np.repeat(np.eye(3), counts, axis=0)]
    best = best_fixed(Simplex(3), losses=each)
    share = counts / counts.sum()
    assert float(np.ravel(best.value)[-1]) == pytest.approx(-float(counts @ np.log(share)), rel=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.Quantile([1.0], 0.0, 1.0), "level: expected numbers between 0 and 1"),
        (lambda: losses.Quantile([1.0], 0.0, np.nan), "level: expected numbers between 0 and 1"),
        (lambda: losses.Huber([1.0], 0.0, 0.0), "delta: expected positive"),
        (lambda: losses.Absolute(1.0, 0.0), "u: expected shape"),
        (lambda: losses.NegativeLog(1.0), "r: expected shape"),
        (lambda: losses.Huber(np.ones((2, 3)), np.ones(3), 1.0), "y: expected leading axes"),
        (lambda: losses.Absolute([1.0], np.nan).value([1.0]), "Absolute: y: expected finite"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
