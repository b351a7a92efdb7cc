"""Constraints written in CVXPY: what they become, their values, their projections, new numbers, and errors."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import cocopt
from cocopt import CLASP, Box, constraints, losses
from cocopt.constraints import from_cvxpy
from cocopt.errors import InvalidInput

n = 4
x = cp.Variable(n, name="x")
rng = np.random.default_rng(7)
A, b, center = rng.normal(size=(3, n)), rng.normal(size=3), rng.normal(size=n)
P = A.T @ A + 0.1 * np.eye(n)

RECOGNISED = {
    "sum": (cp.sum(x) <= 2, "Affine"),
    "rows": (A @ x <= b, "Affine"),
    "bounds": (x >= 0, "Affine"),
    "both sides": (A @ x <= 2 * x[:3] + 1, "Affine"),
    "equation": (cp.sum(x) == 1, "Equality"),
    "equations": (A[:2] @ x == b[:2], "Equality"),
    "ball": (cp.norm(x - center) <= 2, "NormBall"),
    "cone": (cp.norm(A @ x + b) <= x[0] + 3, "SecondOrder"),
    "weighted norm": (3 * cp.norm(x - center) + x[1] <= 4, "SecondOrder"),
    "soc": (cp.SOC(x[0] + 3, A @ x + b), "SecondOrder"),
    "squares": (cp.sum_squares(A @ x + b) <= 3, "Quadratic"),
    "quadratic": (0.5 * cp.quad_form(x, P) + center @ x <= 1, "Quadratic"),
    "two squares": (cp.sum_squares(x - center) + 2 * cp.square(x[0]) <= x[1] + 5, "Quadratic"),
    "turnover": (cp.norm1(x - center) <= 1, "Norm1"),
    "largest": (cp.norm_inf(x - center) <= 1, "NormInf"),
    "mixed": (cp.hstack([x[0] - 1, cp.norm(x) - 1, x[1] - 2, x[2]]), "Stack"),
}
READ = {  # none of our classes, but values can be read off the conic form
    "two norms": cp.norm(x) + 2 * cp.norm(x - center) - 4,
    "costs": cp.norm1(x - center) + x[0] - 3,
    "weighted turnover": 2 * cp.norm1(x - center) - 3,
    "maximum": cp.max(A @ x + b) - 1,
    "norm and turnover": cp.norm(A @ x) + cp.norm1(x) - 4,
}
OTHERS = {
    "log-sum-exp": cp.log_sum_exp(x) - 2,
    "cubic": cp.sum(cp.power(cp.abs(x), 3)) - 1,
    "nested": cp.norm(cp.pos(x)) - 1,
    "huber": cp.sum(cp.huber(x - center)) - 2,
}
X = cp.reshape(x, (2, 2), order="F")
ATOMS = {  # every way in which a derivative is found, at points with positive entries
    "log": -cp.sum(cp.log(x)) - 2,
    "log of rows": -cp.log(A @ x + 5),
    "exponentials": cp.exp(A @ x + b),
    "entropy": -cp.sum(cp.entr(x)) - 1,
    "logistic": cp.sum(cp.logistic(A @ x)) - 2,
    "relative entropy": cp.sum(cp.rel_entr(x, 0.5)) + cp.sum(cp.kl_div(0.7, x)) + cp.kl_div(x[0], x[1]),
    "largest two": cp.sum_largest(A @ x, 2) - 1,
    "largest one and a half": cp.sum_largest(x, 1.5) - 1,
    "powers": cp.sum(cp.power(x, 3)) + cp.inv_pos(x[0]) - cp.sqrt(x[1]) + cp.power(x[2], 4) - 3,
    "maximum": cp.sum(cp.maximum(x, 2 * x - 0.3, 0.2)) - 1,
    "norm of order 3": cp.pnorm(A @ x, 3) - 1,
    "geometric mean": -cp.geo_mean(x),
    "ratio": cp.quad_over_lin(A @ x, x[0] + 1) - 1,
    "harmonic mean": -cp.harmonic_mean(x),
    "huber": cp.sum(cp.huber(A @ x, 0.3)),
    "matrix": cp.lambda_max(X + X.T) - 1,
    "nuclear norm": cp.normNuc(X @ np.array([[1.0, 2.0], [0.0, 1.0]])) - 1,
    "by rows": cp.log_sum_exp(np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 1.0]]) @ X, axis=1),
    "affine atoms": cp.exp(cp.hstack([cp.cumsum(x), cp.diff(x) / 2, cp.convolve([1.0, -2.0], x), 3 - x[::2]])),
    "products": cp.exp(cp.vec(np.array([[1.0, 2.0]]) @ X @ np.ones((2, 3)), order="F") + x[0] * np.ones(3)),
    "Kronecker": cp.sum(cp.exp(cp.kron(np.eye(2), X))) + cp.max(cp.multiply(x, center)) - cp.trace(X),
}


def difference(item: Any) -> cp.Expression:
    """The expression that is to be at most 0."""
    match item:
        case cp.constraints.SOC():
            return cp.norm(item.args[1]) - item.args[0]
        case cp.constraints.Equality():
            return cp.abs(item.expr)
        case cp.constraints.Inequality():
            return item.expr
        case _:
            return item


def reference_projection(item: Any, y: np.ndarray) -> np.ndarray:
    expressions = [difference(part) <= 0 for part in (item if isinstance(item, list) else [item])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clarabel comes as close as it can
        tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
        cp.Problem(cp.Minimize(cp.sum_squares(x - y)), [x >= -2, x <= 2, *expressions]).solve(cp.CLARABEL, **tight)
    found = np.array(x.value)
    x.value = None
    return found


ALL = {**{name: item for name, (item, _) in RECOGNISED.items()}, **READ, **OTHERS}


@pytest.mark.parametrize("name", RECOGNISED)
def test_what_an_expression_becomes(name: str) -> None:
    item, kind = RECOGNISED[name]
    assert type(from_cvxpy(item, x)).__name__ == kind


@pytest.mark.parametrize("name", ALL)
def test_values_and_subgradients(name: str) -> None:
    g, expression = from_cvxpy(ALL[name], x), difference(ALL[name])
    points = np.random.default_rng(1).normal(size=(5, n))
    rows, jacobian = g.rows(points), g.jacobian(points)
    assert g.row_count == expression.size
    for point, row, slope in zip(points, rows, jacobian, strict=True):
        x.value = point
        np.testing.assert_allclose(row, np.ravel(expression.value), rtol=1e-10, atol=1e-12)
        x.value = None
        ends = [(g.rows(point + 1e-6 * e) - g.rows(point - 1e-6 * e)) / 2e-6 for e in np.eye(n)]
        np.testing.assert_allclose(slope, np.transpose(ends), atol=1e-6)
        assert (np.abs(row) <= 4 * g.magnitude(point)).all()


@pytest.mark.parametrize("name", ATOMS)
def test_values_and_derivatives_are_those_of_cvxpy(name: str) -> None:
    expression = ATOMS[name]
    g = from_cvxpy(expression, x)
    for point in np.random.default_rng(3).uniform(0.2, 1.5, (3, n)):
        row, jacobian = g.rows(point), g.jacobian(point)
        x.value = point
        gradient = expression.grad[x]
        dense = gradient.toarray() if hasattr(gradient, "toarray") else np.full((n, 1), gradient)
        np.testing.assert_allclose(row, np.ravel(expression.value), rtol=1e-12)
        np.testing.assert_allclose(jacobian, dense.T, rtol=1e-10, atol=1e-12)
        x.value = None


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (cp.sum(cp.power(x, 3)) - 0.2, lambda z: (z**3).sum() - 0.2),
        (-cp.sum(cp.entr(x)) + 0.5, lambda z: (z * np.log(np.maximum(z, 1e-300))).sum() + 0.5),
        (cp.sum(cp.kl_div(x, 0.5)) - 0.2, lambda z: (z * np.log(np.maximum(2 * z, 1e-300)) - z + 0.5).sum() - 0.2),
    ],
    ids=["cubes", "entropy", "divergence"],
)
def test_targets_whose_projection_onto_K_is_at_the_end_of_the_domain(expression: Any, value: Any) -> None:
    """There CVXPY has no derivative; such a point is not taken as feasible for that."""
    K, g = Box(0.0, 1.0, dim=n), from_cvxpy(expression, x)
    for y in ([0.5, -1.0, 2.0, 3.0], [-1.0, 1.0, 0.9, 1.4]):
        z = cocopt.project(K, g, y)
        assert value(z) <= 1e-8
        problem = cp.Problem(cp.Minimize(cp.sum_squares(x - np.array(y))), [x >= 0, x <= 1, expression <= 0])
        problem.solve(cp.CLARABEL)
        np.testing.assert_allclose(z, x.value, atol=1e-4)
        assert np.sum((z - y) ** 2) <= problem.value + 1e-6
        x.value = None


@pytest.mark.parametrize("infeasible", ["raise", "nearest"])
@pytest.mark.parametrize("y", [[0.0, 0.0], [0.0, 0.01], [-1.0, -1.0], [-1.0, 1.5]])
@pytest.mark.parametrize("K", [Box(0.0, 2.0, dim=2), Box(-3.0, 2.0, dim=2)], ids=["ends there", "goes beyond"])
@pytest.mark.parametrize("kind", ["log", "sqrt", "geometric mean", "inverse"])
def test_targets_outside_the_domain(kind: str, K: Any, y: list[float], infeasible: str) -> None:
    """P_K(target) is where g is not finite, or has no derivative: it counts as violated, and as nothing else."""
    z = cp.Variable(2)
    expression, curve = {  # and the boundary of the feasible set, x_2 as a function of x_1
        "log": (-cp.sum(cp.log(z)), lambda a: 1.0 / a),
        "sqrt": (1 - cp.sum(cp.sqrt(z)), lambda a: (1.0 - np.sqrt(a)) ** 2),
        "geometric mean": (1 - cp.geo_mean(z), lambda a: 1.0 / a),
        "inverse": (cp.sum(cp.inv_pos(z)) - 4, lambda a: 1.0 / (4.0 - 1.0 / a)),
    }[kind]
    x = cocopt.project(K, from_cvxpy(expression, z), y, infeasible=infeasible)
    a = np.concatenate([np.linspace(1e-9, 1.0, 200_001), np.linspace(1.0, 2.0, 100_001)])
    if kind == "sqrt":
        a = a[a <= 1.0]
    if kind == "inverse":
        a = a[a > 0.26]
    points = np.stack([a, curve(a)], axis=-1)
    points = points[points[:, 1] <= 2.0]
    if kind == "sqrt":  # the end of the domain is a part of the boundary
        points = np.concatenate([points, [[0.0, b] for b in np.linspace(1.0, 2.0, 1001)]])
    expected = points[np.square(points - y).sum(axis=-1).argmin()]
    np.testing.assert_allclose(x, expected, atol=2e-5)


@pytest.mark.parametrize("name", ALL)
def test_projections(name: str) -> None:
    g, K = from_cvxpy(ALL[name], x), Box(-2.0, 2.0, dim=n)
    for y in np.random.default_rng(2).normal(size=(3, n)) * 2:
        np.testing.assert_allclose(cocopt.project(K, g, y), reference_projection(ALL[name], y), atol=2e-5)


def test_targets_outside_the_domain_of_a_part_of_a_constraint() -> None:
    """log x_1 ≥ −1 is x_1 ≥ 1/e: shifted, or as the worst row, it has the same domain."""
    x = cp.Variable(2)
    g = constraints.from_cvxpy(-cp.log(x[0]) <= 1.0, x)
    K, y = Box(-1.0, 1.0, dim=2), np.array([-0.5, 0.25])
    at_end = [np.exp(-1.0), 0.25]
    np.testing.assert_allclose(cocopt.project(K, g, y), at_end, atol=1e-7)
    np.testing.assert_allclose(cocopt.project(K, constraints.Shifted(g, [0.0]), y), at_end, atol=1e-7)
    np.testing.assert_allclose(cocopt.project(K, constraints.Shifted(g, [1.0]), y), [1.0, 0.25], atol=1e-7)
    for rows in ("all", "worst"):
        learner = cocopt.CLASP(K, start=[0.5, 0.25], rows=rows, steps=cocopt.steps.Constant(1.0))
        learner.tell(cocopt.losses.Linear([1.0, 0.0]), g)
        np.testing.assert_allclose(learner.ask(), at_end, atol=1e-7)


def test_a_list_is_a_stack() -> None:
    limits = [cp.norm(x) <= 1.5, cp.sum(x) == 1, x[0] >= 0.1, cp.log_sum_exp(x) <= 2]
    g = from_cvxpy(limits, x)
    assert [type(member).__name__ for member in g.members] == ["NormBall", "Equality", "Affine", "CvxpyConstraint"]
    y = np.array([-1.0, 2.0, 0.5, 0.0])
    projection = cocopt.project(Box(-2.0, 2.0, dim=n), g, y)
    np.testing.assert_allclose(projection, reference_projection(limits, y), atol=2e-5)
    assert type(from_cvxpy([cp.sum(x) <= 2], x)).__name__ == "Affine"
    assert from_cvxpy((cp.sum(x) <= 2, x <= 1), x).affine()[0].shape == (1 + n, n)


def test_affine_constraints_use_the_kernel() -> None:
    assert cocopt.explain(Box(0.0, 1.0, dim=n), from_cvxpy(cp.sum(x) <= 2, x)) == "kernel: compiled, one row over a box"


@pytest.mark.parametrize(
    "kind", ["ball", "cone", "quadratic", "turnover", "affine", "equation", "entropy", "symmetric"]
)
def test_new_numbers_in_a_compiled_program(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parameters are, the result is that of an expression which is written with these numbers."""
    c, r = cp.Parameter(n), cp.Parameter(nonneg=True)
    S = cp.Parameter((n, n), symmetric=True)

    def written(c: Any, r: Any, S: Any) -> Any:
        return {
            "ball": lambda: cp.norm(x - c) <= r,
            "cone": lambda: cp.norm(A @ x) + r * x[0] <= c[0] + 5,
            "quadratic": lambda: cp.sum_squares(x - c) + c @ x <= r + 5,
            "turnover": lambda: cp.norm1(x - c) <= r,
            "affine": lambda: c @ x <= r,
            "equation": lambda: c @ x == r,
            "entropy": lambda: cp.log_sum_exp(x - c) <= r,
            "symmetric": lambda: S @ x <= r,
        }[kind]()

    compiled = 0
    original = cp.Problem.get_problem_data

    def counted(self: cp.Problem, *args: Any, **options: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return original(self, *args, **options)

    limit, snapshots, values = written(c, r, S), [], []
    monkeypatch.setattr(cp.Problem, "get_problem_data", counted)
    for seed in range(4):
        generator = np.random.default_rng(seed)
        M = generator.normal(size=(n, n))
        c.value, r.value, S.value = generator.normal(size=n), generator.uniform(0.5, 1.0), M + M.T
        snapshots.append(from_cvxpy(limit, x))
        values.append((c.value, r.value, S.value))
    if kind != "symmetric":  # whose entries CVXPY itself has to arrange
        assert compiled == 1
    point = np.random.default_rng(9).normal(size=n)
    for g, numbers in zip(snapshots, values, strict=True):
        plain = from_cvxpy(written(*numbers), x)
        np.testing.assert_allclose(g.rows(point), plain.rows(point), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(g.jacobian(point), plain.jacobian(point), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            cocopt.project(Box(-3.0, 3.0, dim=n), g, point),
            cocopt.project(Box(-3.0, 3.0, dim=n), plain, point),
            atol=1e-7,
        )


def test_a_window_remembers_the_numbers_of_each_round() -> None:
    level = cp.Parameter(value=1.0)
    limit, K = cp.sum(x) <= level, Box(0.0, 1.0, dim=n)
    learner, twin = (CLASP(K, start=np.full(n, 0.5), window=2) for _ in range(2))
    for value in (1.5, 1.0, 2.0):
        level.value = value
        learner.tell(losses.Linear(-np.ones(n)), from_cvxpy(limit, x))
        twin.tell(losses.Linear(-np.ones(n)), constraints.Affine(np.ones(n), value))
        np.testing.assert_array_equal(learner.ask(), twin.ask())


def test_what_is_recognised_can_be_stored(tmp_path: Any) -> None:
    learner = CLASP(Box(0.0, 1.0, dim=n), start=np.full(n, 0.5), window=2)
    learner.tell(losses.Linear(-np.ones(n)), from_cvxpy(cp.norm(x) <= 0.8, x))
    learner.save(tmp_path / "learner")
    np.testing.assert_array_equal(cocopt.load(tmp_path / "learner").ask(), learner.ask())


def test_the_users_values_are_as_they_were() -> None:
    radius = cp.Parameter(value=1.0)
    x.value = np.ones(n)
    g = from_cvxpy(cp.log_sum_exp(x) - radius, x)
    radius.value = 5.0
    g.rows(np.zeros(n)), g.jacobian(np.zeros(n)), cocopt.project(Box(-1.0, 1.0, dim=n), g, np.ones(n))
    assert radius.value == 5.0
    np.testing.assert_array_equal(x.value, np.ones(n))
    assert g.value(np.zeros(n)) == pytest.approx(np.log(n) - 1.0, abs=1e-12)
    x.value = None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: from_cvxpy(3, x),
            "expression: expected a cvxpy.Expression, a constraint .*, got int 3",
        ),
        (lambda: from_cvxpy([], x), "expression: expected at least one constraint, got an empty list"),
        (lambda: from_cvxpy([cp.sum(x) <= 1, "x"], x), "expression: expected a cvxpy.Expression.*, got str 'x'"),
        (
            lambda: from_cvxpy(cp.norm(x) >= 1, x),
            "convex <= concave .*CONCAVE; .* the wrong way round",
        ),
        (lambda: from_cvxpy(cp.norm(x) == 1, x), "expected affine expressions on both sides of ==, got .* convex"),
        (lambda: from_cvxpy(cp.norm(x) - cp.norm(A @ x) <= 1, x), "UNKNOWN; CVXPY's rules do not show"),
        (lambda: from_cvxpy(x <= cp.Variable(n), x), "expected x as its only variable, got "),
        (lambda: from_cvxpy(cp.sum(x) <= cp.Parameter(name="p"), x), "expected a value for the parameter p, got None"),
        (lambda: from_cvxpy(cp.sum(x) <= np.inf, x), "expected finite numbers"),
        (lambda: from_cvxpy(cp.sum(x) <= 1, cp.Variable(n)), "as its only variable, got x"),
        (lambda: from_cvxpy(cp.diag(x) >> 0, x), "expression: expected .* or a list of them, got "),
    ],
)
def test_errors_say_what_is_wrong(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
