"""Mahdavi, Jenatton, Yuan-Lamperski and Yu-Neely: the points of their formulas, their bounds, and their errors."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from reference import rivals as plain
from reference import static_algorithms as naive

from cocopt import Ball, Box, Halfspace, Jenatton, Mahdavi, Simplex, YuanLamperski, YuNeely, constraints, losses, theory
from cocopt.errors import InvalidInput

T, N = 60, 5
SETS: dict[str, Any] = {
    "box": (Box(0.0, 1.0, dim=N), plain.box(np.zeros(N), np.ones(N))),
    "ball": (Ball(np.full(N, 0.3), 2.0), plain.ball(np.full(N, 0.3), 2.0)),
    "simplex": (Simplex(N, total=1.5), plain.simplex(1.5)),
}


class Stream(NamedTuple):
    """Losses ½‖x − c_t‖², and rows A_t x ≤ b_t or one ball, for some trials; a point of K satisfies all of them."""

    K: Any
    start: np.ndarray
    centers: np.ndarray  # (trials, T, n)
    A: np.ndarray  # (trials, T, M, n)
    b: np.ndarray
    best: np.ndarray  # a point that satisfies all constraints

    def constraint(self, t: int, k: Any = slice(None)) -> constraints.Affine:
        return constraints.Affine(self.A[k, t], self.b[k, t])

    def play(self, learner: Any) -> np.ndarray:
        points = [learner.ask()]
        for t in range(T):
            learner.tell(losses.Distance(self.centers[:, t]), self.constraint(t))
            points.append(learner.ask())
        return np.stack(points, axis=1)

    def rounds(self, k: int) -> list[Any]:
        """Trial k for the plain loops."""

        def one(t: int) -> Any:
            A, b, c = self.A[k, t], self.b[k, t], self.centers[k, t]
            return lambda x: x - c, lambda x: A @ x - b, lambda x: A

        return [one(t) for t in range(T)]


def stream(K: Any, M: int, seed: int, *, static: bool, trials: int = 2) -> Stream:
    rng = np.random.default_rng(seed)
    best = K.project(rng.uniform(0, 1, (trials, N)))
    A = np.repeat(rng.normal(size=(trials, 1, M, N)), T, axis=1) if static else rng.normal(size=(trials, T, M, N))
    slack = rng.uniform(0.05, 0.2, (trials, 1, M) if static else (trials, T, M))
    b = np.einsum("ktmn,kn->ktm", A, best) + slack
    centers = best[:, None] + rng.normal(size=(trials, T, N))
    return Stream(K, K.project(rng.normal(size=(trials, N))), centers, A, b, best)


CASES = [(name, M, seed) for name in SETS for M in (1, 4) for seed in (0, 1)]
G, B = 6.0, 8.0


@pytest.mark.parametrize(("name", "M", "seed"), CASES)
def test_mahdavi_is_its_formula(name: str, M: int, seed: int) -> None:
    K, reference = SETS[name]
    data = stream(K, M, seed, static=True)
    for G_, B_ in ((G, B), (0.2, 0.1)):  # the second pair reaches the largest step
        points = data.play(Mahdavi(K, T, G_, B_, start=data.start))
        for k in range(2):
            expected = naive.mahdavi(reference.project, data.start[k], data.rounds(k), T, K.diameter, G_, B_)
            np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("m", [None, 1.0])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("name", "M", "seed"), CASES)
def test_jenatton_is_its_formula(name: str, M: int, seed: int, hard: bool, m: float | None) -> None:
    K, reference = SETS[name]
    data = stream(K, M, seed, static=not hard)
    learner = Jenatton(K, G, B, beta=0.6, strong_convexity=m, hard=hard, start=data.start)
    assert learner.static == (not hard)
    points = data.play(learner)
    for k in range(2):
        expected = naive.jenatton(reference.project, data.start[k], data.rounds(k), K.diameter, G, 0.6, m, hard)
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-9)


STEPS: list[Any] = [
    ({}, lambda t: t**-0.5),
    ({"horizon": T, "beta": 0.7, "scale": 2.0}, lambda t: 2.0 * T**-0.7),
    ({"strong_convexity": 1.0}, lambda t: 1.0 / t),
]


@pytest.mark.parametrize(("options", "step"), STEPS)
@pytest.mark.parametrize(("name", "M", "seed"), CASES)
def test_yuan_lamperski_is_its_formula(name: str, M: int, seed: int, options: Any, step: Any) -> None:
    K, reference = SETS[name]
    data = stream(K, M, seed, static=False)
    points = data.play(YuanLamperski(K, 3.0, start=data.start, **options))
    for k in range(2):
        expected = naive.yuan_lamperski(reference.project, data.start[k], data.rounds(k), 3.0, step)
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-9)


def without_warnings(function: Any, *arguments: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference solver's remarks about its own accuracy
        return np.asarray(function(*arguments))


@pytest.mark.parametrize(("name", "M", "seed"), [case for case in CASES if case[2] == 0])
def test_yu_neely_is_its_argmin(name: str, M: int, seed: int) -> None:
    K, reference = SETS[name]
    data = stream(K, M, seed, static=True, trials=1)
    points = data.play(YuNeely(K, T, 2.0, start=data.start))

    def rows(z: Any) -> list[Any]:
        return [a @ z - b for a, b in zip(data.A[0, 0], data.b[0, 0], strict=True)]

    expected = without_warnings(naive.yu_neely, reference.constraints, data.start[0], data.rounds(0), T, 2.0, rows)
    np.testing.assert_allclose(points[0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_yu_neely_with_curved_rows_is_its_argmin(name: str) -> None:
    K, reference = SETS[name]
    rng = np.random.default_rng(3)
    center, c = np.full(N, 0.2), rng.normal(size=(20, N))
    g = constraints.Stack([constraints.NormBall(center, 0.4), constraints.Affine(np.ones(N), 1.3)])
    learner = YuNeely(K, 20, 3.0, start=K.project(np.ones(N)))
    points = [learner.ask()]
    for t in range(20):
        learner.tell(losses.Distance(c[t]), g)
        points.append(learner.ask())
    rounds = [(lambda x, t=t: x - c[t], g.rows, g.jacobian) for t in range(20)]

    def rows(z: Any) -> list[Any]:
        return [cp.norm(z - center) - 0.4, cp.sum(z) - 1.3]

    expected = without_warnings(naive.yu_neely, reference.constraints, points[0], rounds, 20, 3.0, rows)
    np.testing.assert_allclose(points, expected, rtol=0, atol=1e-6)


# ------------------------------------------------------------------------------------------------------------- bounds


def constants(data: Stream) -> tuple[float, float, float]:
    """(L_f, L_g, B) on K, by its diameter."""
    D = data.K.diameter
    L_f = float(np.linalg.norm(data.centers - data.best[:, None], axis=-1).max()) + D
    L_g = float(np.linalg.norm(data.A, axis=-1).max())
    B = float(np.abs(np.einsum("ktmn,kn->ktm", data.A, data.best) - data.b).max()) + L_g * D
    return L_f, L_g, B


def run(data: Stream, learner: Any) -> tuple[np.ndarray, np.ndarray]:
    """For every number of rounds: the regret against the common feasible point, and the rows' values (trials, T, M)."""
    points = data.play(learner)[:, :T]
    value = np.square(points - data.centers).sum(axis=-1) / 2
    other = np.square(data.best[:, None] - data.centers).sum(axis=-1) / 2
    rows = np.einsum("ktmn,ktn->ktm", data.A, points) - data.b
    return np.cumsum(value - other, axis=1), rows


BOUND_CASES = [(name, M, seed) for name in ("box", "simplex") for M in (1, 4) for seed in range(4)]
ROUNDS = np.arange(1, T + 1)


@pytest.mark.parametrize(("name", "M", "seed"), BOUND_CASES)
def test_mahdavi_keeps_its_bounds(name: str, M: int, seed: int) -> None:
    data = stream(SETS[name][0], M, seed, static=True, trials=20)
    L_f, L_g, B = constants(data)
    learner = Mahdavi(data.K, T, max(L_f, L_g), B, start=data.start)
    regret, rows = run(data, learner)
    promised = learner.bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g)
    assert (regret <= promised.regret).all()
    assert (np.cumsum(rows, axis=1) <= promised.ccv_soft[:, None]).all()
    again = Mahdavi(data.K, T, max(L_f, L_g), B).bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g, rows=M)
    np.testing.assert_array_equal(again.regret, promised.regret)  # it knows M from the constraint


@pytest.mark.parametrize("m", [None, 1.0])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("name", "M", "seed"), BOUND_CASES)
def test_jenatton_keeps_its_bounds(name: str, M: int, seed: int, hard: bool, m: float | None) -> None:
    data = stream(SETS[name][0], M, seed, static=not hard, trials=20)
    L_f, L_g, B = constants(data)
    learner = Jenatton(data.K, max(L_f, L_g), B, strong_convexity=m, hard=hard, start=data.start)
    regret, rows = run(data, learner)
    promised = learner.bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g)
    assert (regret <= promised.regret).all()
    largest = rows.max(axis=-1)
    assert (np.cumsum(largest, axis=1) <= promised.ccv_soft).all()
    if hard:
        violation = np.maximum(largest, 0.0)
        assert (np.cumsum(violation, axis=1) <= promised.ccv1).all()
        assert (np.cumsum(violation**2, axis=1) <= promised.ccv2).all()


@pytest.mark.parametrize("options", [{}, {"horizon": T}, {"strong_convexity": 1.0}])
@pytest.mark.parametrize(("name", "M", "seed"), BOUND_CASES)
def test_yuan_lamperski_keeps_its_bounds(name: str, M: int, seed: int, options: Any) -> None:
    data = stream(SETS[name][0], M, seed, static=False, trials=20)
    L_f, L_g, _ = constants(data)
    learner = YuanLamperski(data.K, L_g, start=data.start, **options)
    regret, rows = run(data, learner)
    promised = learner.bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g)
    violations = np.maximum(rows, 0.0)
    assert (regret <= promised.regret).all()
    assert (np.cumsum(np.square(violations).sum(axis=-1), axis=1) <= promised.ccv2).all()
    assert (np.cumsum(violations.max(axis=-1), axis=1) <= promised.ccv1).all()


@pytest.mark.parametrize(("name", "M", "seed"), BOUND_CASES)
def test_yu_neely_keeps_its_bound(name: str, M: int, seed: int) -> None:
    data = stream(SETS[name][0], M, seed, static=True, trials=20)
    L_f, L_g, _ = constants(data)
    learner = YuNeely(data.K, T, L_g, start=data.start)
    regret, _ = run(data, learner)
    assert (regret <= learner.bounds(ROUNDS, lipschitz_f=L_f, lipschitz_g=L_g).regret).all()


def test_yu_neely_violates_no_more_in_the_long_run() -> None:
    """Under Slater's condition the soft violation is bounded: it does not grow with the horizon."""
    K, g = Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 0.0], 0.5)
    soft = []
    for horizon in (100, 400, 1600, 6400):
        learner = YuNeely(K, horizon, 1.0, start=[1.0, 1.0])
        for _ in range(horizon):
            learner.tell(losses.Linear([-1.0, 0.0]), g)
        soft.append(float(learner.ledger.ccv_soft))
    assert max(soft[1:]) <= 1.1 * soft[0]


# ------------------------------------------------------------------------------------------------------------- errors

K2 = Box(0.0, 1.0, dim=2)
STATIC: list[Any] = [
    lambda K=K2: Mahdavi(K, 10, 1.0, 1.0),
    lambda K=K2: Jenatton(K, 1.0, 1.0),
    lambda K=K2: YuNeely(K, 10, 1.0),
]


@pytest.mark.parametrize("make", STATIC)
def test_a_constraint_that_changes_is_refused(make: Any) -> None:
    learner = make()
    learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    x = learner.ask()
    with pytest.raises(InvalidInput, match=rf"the same constraint in every round, which {type(learner).__name__}"):
        learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.6))
    assert learner.ask() is x
    learner.tell(losses.Linear([1.0, 0.0]))
    learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    assert learner.t == 3


@pytest.mark.parametrize("make", STATIC)
def test_an_unbounded_set_needs_a_diameter(make: Any) -> None:
    with pytest.raises(InvalidInput, match=r"diameter: expected a positive number, since that of K is inf, got None"):
        make(Halfspace([1.0, 0.0], 1.0))


@pytest.mark.parametrize("make", [lambda: Jenatton(K2, 1.0, 1.0, hard=True), lambda: YuanLamperski(K2, 1.0)])
def test_methods_that_allow_it_take_a_constraint_that_changes(make: Any) -> None:
    learner = make()
    for limit in (0.5, 0.6):
        learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([1.0, 0.0], limit))
    learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine(np.eye(2), [0.5, 0.5]))
    assert learner.t == 3


BAD: list[Any] = [
    (lambda: Mahdavi(K2, 0, 1.0, 1.0), "horizon"),
    (lambda: Mahdavi(K2, 10, -1.0, 1.0), "lipschitz"),
    (lambda: Mahdavi(K2, 10, 1.0, 0.0), "bound"),
    (lambda: Jenatton(K2, 1.0, 1.0, beta=1.0), "beta"),
    (lambda: Jenatton(K2, 1.0, 1.0, hard="yes"), "hard"),
    (lambda: YuanLamperski(K2, 1.0, beta=0.0), "beta"),
    (lambda: YuanLamperski(K2, 1.0, beta=1.5), "beta"),
    (lambda: YuNeely(K2, 10, np.nan), "lipschitz"),
    (lambda: Mahdavi(K2, 10, 1.0, 1.0).bounds(11, lipschitz_f=1.0, lipschitz_g=1.0), "T"),
    (lambda: Mahdavi(K2, 10, 1.0, 1.0).bounds(10, lipschitz_f=2.0, lipschitz_g=1.0), "lipschitz_f"),
    (lambda: YuNeely(K2, 10, 1.0).bounds(11, lipschitz_f=1.0, lipschitz_g=1.0), "T"),
    (lambda: theory.bounds_jenatton(10, diameter=1.0, lipschitz=1.0, bound=1.0, beta=2.0), "beta"),
]


@pytest.mark.parametrize(("call", "argument"), BAD)
def test_bad_arguments_are_named(call: Any, argument: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{argument}: expected"):
        call()


def test_idle_rows_do_nothing() -> None:
    idle = constraints.Affine(np.eye(2), [0.5, np.inf])
    alone = constraints.Affine([1.0, 0.0], 0.5)
    one, two = (Jenatton(K2, 1.0, 1.0, hard=True, start=[1.0, 1.0]) for _ in range(2))
    for _ in range(5):
        one.tell(losses.Linear([0.1, 0.2]), idle)
        two.tell(losses.Linear([0.1, 0.2]), alone)
    np.testing.assert_array_equal(one.ask(), two.ask())
    for learner in (Mahdavi(K2, 10, 1.0, 1.0), YuNeely(K2, 10, 1.0), YuanLamperski(K2, 1.0)):
        for _ in range(5):
            learner.tell(losses.Linear([0.1, 0.2]), idle)
        assert np.isfinite(learner.ask()).all()
