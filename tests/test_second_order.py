"""What losses tell about their curvature: exact sums, derivatives by finite differences, minorants, exact kinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cocopt import Box, losses, problems
from cocopt.hindsight import best_fixed
from cocopt.losses.second_order import Neighborhood, QuadraticForm, SecondOrder, leading_entries, merge_equal_kinks

N, T = 3, 7
RNG = np.random.default_rng(0)
H, Y, U, V = RNG.normal(size=(T, 2, N)), RNG.normal(size=(T, 2)), RNG.normal(size=(T, N)), RNG.choice([-1.0, 1.0], T)
P = np.matmul(H.transpose(0, 2, 1), H)

QUADRATIC = {
    "least squares": losses.LeastSquares(H, Y),
    "least squares, shared": losses.LeastSquares(H[0], Y[0]),
    "distance": losses.Distance(U),
    "distance, shared": losses.Distance(U[0]),
    "linear": losses.Linear(U),
    "linear, shared": losses.Linear(U[0]),
    "quadratic": losses.Quadratic(P, U, V),
    "quadratic, P shared": losses.Quadratic(P[0], U, V),
    "quadratic, q and r shared": losses.Quadratic(P, U[0], 2.0),
    "quadratic, shared": losses.Quadratic(P[0], U[0], 2.0),
}
SMOOTHABLE = {
    "norm": losses.Norm(H, Y),
    "norm, shared": losses.Norm(H[0], Y[0]),
    "hinge": losses.Hinge(U, V),
    "hinge, u shared": losses.Hinge(U[0], V),
    "hinge, v shared": losses.Hinge(U, 1.0),
    "hinge, shared": losses.Hinge(U[0], 1.0),
    "logistic": losses.Logistic(U, V),
    "logistic, u shared": losses.Logistic(U[0], V),
    "logistic, shared": losses.Logistic(U[0], -1.0),
}


def summed(loss: losses.Loss, x: Any, count: int) -> float:
    """The sum of the first rounds, by definition."""
    return float(np.broadcast_to(loss.value(np.broadcast_to(x, (T, N))), T)[:count].sum())


def numerical_derivative(f: Any, x: Any, step: float = 1e-5) -> Any:
    return np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(N)], axis=-1)


@pytest.mark.parametrize("count", [1, 4, T])
@pytest.mark.parametrize("name", QUADRATIC)
def test_quadratic_form_is_the_sum(name: str, count: int) -> None:
    rng = np.random.default_rng(1)
    loss, center = QUADRATIC[name], rng.normal(size=N)
    form = loss.quadratic_form(center, count)
    assert isinstance(form, QuadraticForm)
    assert loss.second_order(center, count, 0.1) is None
    for x in rng.normal(size=(5, N)):
        d = x - center
        assert 0.5 * d @ form.P @ d + form.q @ d + form.r == pytest.approx(summed(loss, x, count), rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("count", [1, 4, T])
@pytest.mark.parametrize("name", SMOOTHABLE)
def test_value_and_derivatives(name: str, count: int, smoothing: float) -> None:
    rng = np.random.default_rng(1)
    loss = SMOOTHABLE[name]
    assert loss.quadratic_form(np.zeros(N), count) is None

    def at(x: Any) -> SecondOrder:
        local = loss.second_order(x, count, smoothing)
        assert local is not None
        return local

    for x in rng.normal(size=(3, N)):
        local = at(x)
        assert local.kinks == ()
        assert local.value == pytest.approx(summed(loss, x, count), rel=1e-12)
        assert local.gradient == pytest.approx(numerical_derivative(lambda z: at(z).smoothed, x), rel=1e-6, abs=1e-6)
        assert local.hessian == pytest.approx(numerical_derivative(lambda z: at(z).gradient, x), rel=1e-5, abs=1e-5)
        if smoothing == 0.0:
            assert local.smoothed == pytest.approx(local.value, rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("name", SMOOTHABLE)
def test_minorant_is_below_the_sum(name: str, smoothing: float) -> None:
    rng = np.random.default_rng(1)
    loss, x = SMOOTHABLE[name], rng.normal(size=N)
    local = loss.second_order(x, T, smoothing)
    assert local is not None
    assert local.minorant <= local.value * (1 + 1e-12)
    for z in x + rng.normal(size=(50, N)) * rng.uniform(0, 10, size=(50, 1)):
        assert local.minorant + local.gradient @ (z - x) <= summed(loss, z, T) + 1e-9


@pytest.mark.parametrize("radius", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("name", ["norm", "norm, shared", "hinge", "hinge, u shared", "hinge, v shared"])
def test_exact_kinks_complete_the_minorant(name: str, radius: float) -> None:
    """Without smoothing, minorant and exact kinks add up to the value at x, and are below the sum elsewhere."""
    rng = np.random.default_rng(1)
    loss, x = SMOOTHABLE[name], rng.normal(size=N)
    local = loss.second_order(x, T, 0.0, Neighborhood(x, radius))
    assert local is not None
    assert local.kinks or radius < 1e9
    assert not local.kinks or radius > 0.0

    def kinks(z: Any) -> float:
        return float(sum(np.linalg.norm(kink.H @ z - kink.y) for kink in local.kinks))

    assert local.value == pytest.approx(summed(loss, x, T), rel=1e-12)
    assert local.minorant + kinks(x) == pytest.approx(local.value, rel=1e-9)
    for z in x + rng.normal(size=(20, N)):
        assert local.minorant + local.gradient @ (z - x) + kinks(z) <= summed(loss, z, T) + 1e-9


@pytest.mark.parametrize("name", [*QUADRATIC, *SMOOTHABLE])
def test_nonnegative_losses_are_not_negative(name: str) -> None:
    rng = np.random.default_rng(1)
    loss = {**QUADRATIC, **SMOOTHABLE}[name]
    assert loss.nonnegative == (not name.startswith(("linear", "quadratic")))
    if loss.nonnegative:
        assert np.min(loss.value(10 * rng.normal(size=(100, 1, N)))) >= 0.0


def test_equal_kinks_are_merged() -> None:
    rng = np.random.default_rng(1)
    kinks = merge_equal_kinks(H[[0, 1, 0, 0]], Y[[0, 1, 0, 0]])
    assert len(kinks) == 2
    x = rng.normal(size=N)
    total = sum(np.linalg.norm(kink.H @ x - kink.y) for kink in kinks)
    assert total == pytest.approx(3 * np.linalg.norm(H[0] @ x - Y[0]) + np.linalg.norm(H[1] @ x - Y[1]))
    assert merge_equal_kinks(H[:0], Y[:0]) == ()


def test_leading_entries_repeat_shared_data() -> None:
    weight, data = leading_entries((), 5, U[0], 1)
    assert weight == 5.0
    assert data.shape == (1, N)
    weight, data = leading_entries((T,), 5, U[0], 1)
    assert weight == 1.0
    assert np.array_equal(data, np.broadcast_to(U[0], (5, N)))
    assert np.array_equal(leading_entries((T,), 5, U, 1)[1], U[:5])


def test_a_subclass_with_another_value_inherits_no_curvature() -> None:
    class Doubled(losses.Norm):
        def value_and_gradient_unchecked(self, x: Any) -> Any:
            value, gradient = super().value_and_gradient_unchecked(x)
            return 2.0 * value - 1.0, 2.0 * gradient

    class Renamed(losses.Norm):
        pass

    assert Doubled(H, Y).second_order(np.zeros(N), T, 0.0) is None
    assert not Doubled.nonnegative
    assert Renamed(H, Y).second_order(np.zeros(N), T, 0.0) is not None
    assert Renamed.nonnegative


class Cosh(losses.Loss):
    """f(x) = Σ_i cosh(x_i − c_i): a loss from outside the package, with a Hessian of its own."""

    calls = 0

    def __init__(self, c: Any) -> None:
        self.c = np.asarray(c)
        self.batch, self.dim = self.c.shape[:-1], self.c.shape[-1]

    def value_and_gradient_unchecked(self, x: Any) -> Any:
        Cosh.calls += 1
        return np.cosh(x - self.c).sum(axis=-1), np.sinh(x - self.c)


class SmoothCosh(Cosh):
    nonnegative = True

    def second_order(
        self, x: Any, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        weight, c = leading_entries(self.batch, count, self.c, 1)
        value = weight * float(np.cosh(x - c).sum())
        gradient = weight * np.sinh(x - c).sum(axis=0)
        return SecondOrder(value, value, value, gradient, np.diag(weight * np.cosh(x - c).sum(axis=0)))


@pytest.mark.parametrize("kind", [Cosh, SmoothCosh])
def test_a_new_loss_needs_no_edit_of_the_package(kind: type[Cosh]) -> None:
    """Σ_t cosh(x − c_t) is least where Σ_t sinh(x − c_t) = 0: tanh x = Σ sinh c_t / Σ cosh c_t."""

    class Drawn(problems.BlockProblem):
        K, rounds = Box(-3.0, 3.0, dim=2), 40

        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            return (rng.uniform(-1.0, 1.0, (count, 2)),)

        def reveal(self, *columns: Any) -> Any:
            return kind(columns[0]), None

    Cosh.calls = 0
    best = best_fixed(Drawn(), 0, [0], [10, 40])
    assert (Cosh.calls == 0) == (kind is SmoothCosh)  # with second-order information it is no black box
    c = np.concatenate([loss.c for _, (loss, _) in Drawn().stacked_rounds(0, 0, 40)])
    for value, point, T in zip(best.value[0], best.point[0], [10, 40], strict=True):
        x = np.arctanh(np.sinh(c[:T]).sum(axis=0) / np.cosh(c[:T]).sum(axis=0))
        assert value == pytest.approx(np.cosh(x - c[:T]).sum(), rel=2e-7)
        assert point == pytest.approx(x, abs=1e-3)
