"""Equations, 1-norm, maximum norm, conditional value at risk and log-sum-exp, compared with CVXPY."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

import cocopt
from cocopt import Ball, Box, Simplex, constraints, explain, project
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def equality(rng, n, inside):
    A = rng.normal(size=(max(1, n // 3), n))
    return constraints.Equality(A, A @ inside), lambda x, A=A, b=A @ inside: [A @ x == b]


def norm1(rng, n, inside):
    center = inside + rng.normal(size=n)
    radius = np.abs(inside - center).sum() * rng.uniform(1.0, 1.2)
    return constraints.Norm1(center, radius), lambda x: [cp.norm1(x - center) <= radius]


def norm_inf(rng, n, inside):
    center = inside + 0.1 * rng.normal(size=n)
    radius = np.abs(inside - center).max() * rng.uniform(1.0, 1.2)
    return constraints.NormInf(center, radius), lambda x: [cp.norm_inf(x - center) <= radius]


def cvar(rng, n, inside):
    scenarios, level = rng.normal(size=(12, n)), rng.uniform(0.0, 0.99)
    k = max((1.0 - level) * 12, 1.0)
    limit = worst_mean(-scenarios @ inside, k) + rng.uniform(0.0, 0.2)

    def conditions(x):
        eta = cp.Variable()
        return [eta + cp.sum(cp.pos(-scenarios @ x - eta)) / k <= limit]

    return constraints.CVaR(scenarios, level, limit), conditions


def log_sum_exp(rng, n, inside):
    A = rng.normal(size=(4, n))
    b = A @ inside + np.log(4) + rng.uniform(0.0, 0.5, 4)
    return constraints.LogSumExp(A, b), lambda x: [cp.log_sum_exp(A @ x - b) <= 0]


def worst_mean(losses, k):
    """The mean of the k largest losses, one by one."""
    total, left = 0.0, k
    for loss in sorted(losses, reverse=True):
        share = min(left, 1.0)
        total, left = total + share * loss, left - share
    return total / k


MAKERS = {f.__name__: f for f in (equality, norm1, norm_inf, cvar, log_sum_exp)}
SETS = {
    "box": (lambda n: Box(-1.0, 1.0, dim=n), lambda x: [x >= -1, x <= 1]),
    "simplex": (Simplex, lambda x: [x >= 0, cp.sum(x) == 1]),
    "ball": (lambda n: Ball(0.0, 1.0, dim=n), lambda x: [cp.norm(x) <= 1]),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", SETS)
def test_the_projection_is_that_of_cvxpy(name, kind):
    make, of_set = SETS[name]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = (2, 3, 6, 9)[seed]
        K = make(n)
        g, of_rows = MAKERS[kind](rng, n, K.project(0.4 * rng.normal(size=n)))
        y = 2.0 * rng.normal(size=n)
        x = cp.Variable(n)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(x - y)), of_set(x) + of_rows(x))
        with warnings.catch_warnings():  # the tolerances are beyond what it can always reach, and it says so
            warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
            problem.solve(solver=cp.CLARABEL, **TIGHT)
        found = cocopt.project(K, g, y)
        np.testing.assert_allclose(found, x.value, atol=1e-6)
        assert float(g.value(found)) <= 1e-9 * float(g.magnitude(found).max())
        assert K.contains(found)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_rows_and_gradients_are_those_of_the_formula(kind):
    formulas = {
        "equality": lambda g, x: np.abs(g.A @ x - g.b).max(),
        "norm1": lambda g, x: np.linalg.norm(x - g.center, 1) - g.radius,
        "norm_inf": lambda g, x: np.linalg.norm(x - g.center, np.inf) - g.radius,
        "cvar": lambda g, x: worst_mean(-g.scenarios @ x, max((1 - g.level) * len(g.scenarios), 1.0)) - g.limit,
        "log_sum_exp": lambda g, x: np.log(np.exp(g.A @ x - g.b).sum()),
    }
    rng = np.random.default_rng(1)
    for n in (1, 2, 5):
        g, _ = MAKERS[kind](rng, n, rng.normal(size=n))
        x, h = rng.normal(size=n), 1e-6
        np.testing.assert_allclose(g.value(x), formulas[kind](g, x), atol=1e-12)
        slopes = [(g.value(x + h * e) - g.value(x - h * e)) / (2 * h) for e in np.eye(n)]
        np.testing.assert_allclose(g.gradient(x), slopes, atol=1e-7)


@pytest.mark.parametrize("kind", MAKERS)
def test_trials_are_projected_as_one_by_one(kind):
    rng, K, n = np.random.default_rng(2), Box(-1.0, 1.0, dim=3), 3
    several = [MAKERS[kind](rng, n, 0.3 * rng.normal(size=n))[0] for _ in range(3)]
    if kind == "cvar":
        several = [constraints.CVaR(g.scenarios, 0.7, g.limit + 1.0) for g in several]
    parameters = [g.parameters() for g in several]
    joint = {
        key: value if isinstance(value, float) else np.stack([p[key] for p in parameters])
        for key, value in parameters[0].items()
    }
    g, y = type(several[0])(**joint), rng.normal(size=(3, n))
    assert g.batch == (3,)
    np.testing.assert_array_equal(g.rows(y), np.stack([one.rows(p) for one, p in zip(several, y, strict=True)]))
    found = cocopt.project(K, g, y)
    one_by_one = [cocopt.project(K, one, p) for one, p in zip(several, y, strict=True)]
    np.testing.assert_allclose(found, one_by_one, atol=1e-9)
    assert g.trials(1).equals(several[1])


def test_what_cannot_be_satisfied_has_the_least_violation_of_the_rows():
    K = Box(0.0, 1.0, dim=2)
    impossible = {
        2.0: constraints.Equality([1.0, 1.0], 4.0),
        1.5: constraints.Norm1([2.0, -1.0], 0.5),
        0.5: constraints.NormInf([2.0, -1.0], 0.5),
        3.0: constraints.CVaR([[1.0, 1.0], [1.0, 0.0]], 0.5, -4.0),
        1.0: constraints.LogSumExp([[1.0, 0.0]], [-1.0]),
    }
    for least, g in impossible.items():
        with pytest.raises(InfeasibleRound) as caught:
            cocopt.project(K, g, [0.5, 0.5])
        np.testing.assert_allclose(caught.value.least_violation, least, atol=1e-7)


def test_constraints_that_are_switched_off():
    y = np.array([3.0, -3.0])
    off = [
        constraints.Norm1([0.0, 0.0], np.inf),
        constraints.NormInf([0.0, 0.0], np.inf),
        constraints.CVaR([[1.0, 1.0]], 0.5, np.inf),
    ]
    for g in off:
        assert g.value(y) == -np.inf
        np.testing.assert_array_equal(cocopt.project(Box(-1.0, 1.0, dim=2), g, y), [1.0, -1.0])
        assert g.cones().cones == ()


def test_cvar_between_the_mean_and_the_largest_loss():
    scenarios = np.array([[1.0], [2.0], [3.0], [-4.0]])
    for level, expected in ((0.0, -0.5), (0.5, 1.5), (0.75, 4.0), (0.99, 4.0), (0.625, (4.0 - 0.5) / 1.5)):
        np.testing.assert_allclose(constraints.CVaR(scenarios, level, 0.0).value([1.0]), expected, atol=1e-12)


def test_log_sum_exp_does_not_overflow():
    g = constraints.LogSumExp([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    assert g.value([1e6, 0.0]) == 1e6
    np.testing.assert_array_equal(g.gradient([1e6, 0.0]), [1.0, 0.0])
    assert g.value([-1e6, -1e6]) < -999_999


def test_one_equation_of_several():
    g = constraints.Equality([[1.0, 0.0], [0.0, 2.0]], [0.25, 0.5])
    assert g.select(1).equals(constraints.Equality([0.0, 2.0], 0.5))
    per_trial = g.select(np.array([0, 1]))
    np.testing.assert_allclose(per_trial.rows([1.0, 1.0]), [[0.75], [1.5]])
    np.testing.assert_allclose(cocopt.project(Box(0.0, 1.0, dim=2), g, [1.0, 1.0]), [0.25, 0.25], atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constraints.Equality(1.0, 1.0), "A: expected shape"),
        (lambda: constraints.Equality(np.eye(2), [1.0]), "b: expected shape"),
        (lambda: constraints.Norm1(1.0, 1.0), "center: expected shape"),
        (lambda: constraints.NormInf(1.0, 1.0), "center: expected shape"),
        (lambda: constraints.Norm1(np.zeros((2, 3)), np.zeros(3)), "radius: expected leading axes"),
        (lambda: constraints.CVaR([1.0], 0.5, 1.0), "scenarios: expected shape"),
        (lambda: constraints.CVaR([[1.0]], 1.0, 1.0), "level: expected a number in"),
        (lambda: constraints.CVaR([[1.0]], -0.5, 1.0), "level: expected a non-negative"),
        (lambda: constraints.LogSumExp([1.0], [1.0]), "A: expected shape"),
        (lambda: constraints.LogSumExp([[1.0]], [1.0, 2.0]), "b: expected shape"),
        (lambda: constraints.Equality([1.0, np.nan], 1.0).value([0.0, 0.0]), "Equality: A: expected finite"),
        (lambda: constraints.Equality([1.0, 1.0], np.inf).value([0.0, 0.0]), "Equality: b: expected finite"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize("kind", MAKERS)
def test_the_hinge_prox_is_that_of_cvxpy(kind):
    rng, n, weight = np.random.default_rng(3), 3, 0.25
    g, _ = MAKERS[kind](rng, n, 0.3 * rng.normal(size=n))
    y, x = 0.3 * rng.normal(size=n), cp.Variable(n)
    y += 3.0 * g.gradient(y) / np.linalg.norm(g.gradient(y))  # where the constraint is violated
    rows = {
        "equality": lambda: cp.abs(g.A @ x - g.b),
        "norm1": lambda: cp.norm1(x - g.center) - g.radius,
        "norm_inf": lambda: cp.norm_inf(x - g.center) - g.radius,
        "cvar": lambda: cp.cvar(-g.scenarios @ x, g.level) - g.limit,
        "log_sum_exp": lambda: cp.log_sum_exp(g.A @ x - g.b),
    }[kind]()
    objective = 0.5 * cp.sum_squares(x - y) + weight * cp.sum(cp.pos(rows))
    cp.Problem(cp.Minimize(objective), [x >= -1, x <= 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11
    )
    assert float(g.value(Box(-1.0, 1.0, dim=n).project(y))) > 0.0
    np.testing.assert_allclose(cocopt.hinge_prox(Box(-1.0, 1.0, dim=n), g, y, weight=weight), x.value, atol=1e-6)


def test_equations_beside_many_rows_are_solved_by_the_kernel() -> None:
    """As a grid has them: a balance beside limits on every line; conic methods take seconds for these, or fail."""
    rng = np.random.default_rng(0)
    n, rows = 30, 100
    K, A = Box(0.0, 1.0, dim=n), rng.normal(size=(rows, n)) * (rng.random((rows, n)) < 0.5)
    inside = rng.uniform(0.2, 0.8, n)
    b, one = A @ inside + rng.uniform(0.0, 0.2, rows), np.ones(n)
    g = constraints.Stack({"lines": constraints.Affine(A, b), "balance": constraints.Equality(one, inside.sum())})
    assert explain(K, g) == "kernel: compiled, 102 rows over a box"
    targets = inside + 3.0 * rng.normal(size=(3, n))
    found = solve_projection(K, g, targets)
    assert found.method == "kernel"
    assert found.multipliers is None
    for target, point in zip(targets, found.point, strict=True):
        x = cp.Variable(n)
        limits = [x >= 0, x <= 1, A @ x <= b, cp.sum(x) == inside.sum()]
        cp.Problem(cp.Minimize(cp.sum_squares(x - target)), limits).solve(solver=cp.CLARABEL)
        assert np.allclose(point, x.value, atol=1e-5)
        assert abs(point.sum() - inside.sum()) <= 1e-9 * inside.sum()
    assert np.array_equal(project(K, g, found.point[0]), found.point[0])


def test_equations_of_some_trials_cannot_be_met() -> None:
    K, target = Box(0.0, 1.0, dim=2), [[0.2, 0.4], [0.2, 0.4]]
    g = constraints.Stack(
        [constraints.Affine([1.0, 0.0], 0.75), constraints.Equality([[[1.0, 1.0]], [[1.0, 1.0]]], [[1.0], [3.0]])]
    )
    found = solve_projection(K, g, target, infeasible="nearest")
    assert found.feasible.tolist() == [True, False]
    assert np.allclose(found.point[0], [0.4, 0.6])
    assert np.isclose(found.least_violation[1], g.value(found.point)[1])
    with pytest.raises(InfeasibleRound, match="trial"):
        project(K, g, target)
