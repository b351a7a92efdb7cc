"""Constraints known only by values and subgradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from reference.projections import Array

import cocopt
from cocopt import Ball, Box, Ellipsoid, Simplex, constraints
from cocopt.errors import CutLimit, InfeasibleRound, InvalidInput
from cocopt.geometry import cuts, solve_projection

BLACK_BOX = 1e-7  # the promised violation


def unit_ball_by_value_and_gradient() -> constraints.Function:
    """‖x‖ ≤ 1, known only by values and subgradients."""
    return constraints.Function(lambda x: float(np.linalg.norm(x) - 1.0), lambda x: x / np.linalg.norm(x))


def test_the_number_of_cuts_is_reported() -> None:
    y = [[3.0, 2.0, 1.0], [0.1, 0.1, 0.1], [0.0, 0.0, 5.0]]
    result = solve_projection(Box(-2.0, 2.0, dim=3), unit_ball_by_value_and_gradient(), np.array(y))
    assert result.method == "cuts"
    assert np.all(np.asarray(result.cuts) <= 500)
    assert np.max(result.cuts) >= 2
    np.testing.assert_allclose(result.point[0], np.array(y[0]) / np.linalg.norm(y[0]), atol=1e-7)
    np.testing.assert_array_equal(result.point[1], y[1])


def test_affine_rows_need_no_cuts() -> None:
    result = solve_projection(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0), np.array([1.0, 0.5]))
    assert result.method == "kernel"
    assert np.max(result.cuts) == 0
    assert bool(np.all(result.feasible))
    assert np.max(result.least_violation) == 0.0


def test_too_few_cuts_are_an_error() -> None:
    K, y = Box(-2.0, 2.0, dim=3), np.array([3.0, 2.0, 1.0])
    needed = int(np.max(solve_projection(K, unit_ball_by_value_and_gradient(), y).cuts))
    with pytest.raises(CutLimit) as caught:
        cocopt.project(K, unit_ball_by_value_and_gradient(), y, cuts=2)
    assert caught.value.cuts == 2
    assert 1e-7 < caught.value.violation < 3.0
    cocopt.project(K, unit_ball_by_value_and_gradient(), y, cuts=needed)


def test_a_looser_tolerance_needs_fewer_cuts() -> None:
    K, y = Box(-2.0, 2.0, dim=3), np.array([3.0, 2.0, 1.0])
    loose, tight = (solve_projection(K, unit_ball_by_value_and_gradient(), y, tol=tol) for tol in (1e-2, 1e-9))
    assert np.max(loose.cuts) < np.max(tight.cuts)
    assert unit_ball_by_value_and_gradient().value(loose.point) <= 1e-2
    assert unit_ball_by_value_and_gradient().value(tight.point) <= 1e-9


def test_a_black_box_that_is_not_smooth() -> None:
    """The sup norm: cuts find its faces and finish exactly."""

    def gradient(x: Array) -> Array:
        i = int(np.argmax(np.abs(x)))
        return np.sign(x[i]) * np.eye(len(x))[i]

    g = constraints.Function(lambda x: float(np.abs(x).max() - 1.0), gradient)
    x = cocopt.project(Ball(0.0, 3.0, dim=4), g, [5.0, -4.0, 0.5, 1.0])
    np.testing.assert_allclose(x, [1.0, -1.0, 0.5, 1.0], atol=1e-7)


def test_a_black_box_without_feasible_points_is_infeasible() -> None:
    g = constraints.Function(lambda x: float(x @ x + 1.0), lambda x: 2 * x)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-1.0, 2.0, dim=2), g, [2.0, 1.0])
    np.testing.assert_allclose(caught.value.least_violation, [1.0], rtol=1e-6)
    x = cocopt.project(Box(-1.0, 2.0, dim=2), g, [2.0, 1.0], infeasible="nearest")
    np.testing.assert_allclose(x, [0.0, 0.0], atol=1e-3)  # √1e-7: the violation is flat there
    assert g.value(x) <= 1.0 + 1e-6


# ------------------------------------------------------------------------------- against the structured form in CVXPY


def expected(K: Any, inequalities: Any, y: Array, penalty: Any = None) -> Array:
    """The projection (or, with a penalty, the hinge prox) by CVXPY from the structured form, to 1e-8 or so."""
    x = cp.Variable(y.size)
    objective = 0.5 * cp.sum_squares(x - y) + (0.0 if penalty is None else penalty(x))
    match K:
        case Ball():
            inside = [cp.norm(x - K.center) <= K.radius]
        case Simplex():
            inside = [x >= 0, cp.sum(x) == K.total]
        case _:
            inside = [x >= K.lower, x <= K.upper]
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "max_step_fraction": 0.9}
    problem = cp.Problem(cp.Minimize(objective), [*inside, *([] if inequalities is None else inequalities(x))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tighter than Clarabel can reach: it comes as close as it can
        problem.solve(solver=cp.CLARABEL, **tight)
    assert x.value is not None
    return np.asarray(x.value)


class Known(NamedTuple):
    """A function by value and gradient, and as a CVXPY expression."""

    value: Callable[[Array], float]
    gradient: Callable[[Array], Array]
    expression: Callable[[cp.Variable], cp.Expression]

    def bounded(self, limit: float, scale: float = 1.0) -> constraints.Function:
        """The function ≤ limit, multiplied by a scale."""
        return constraints.Function(
            lambda x: scale * (self.value(x) - limit), lambda x: scale * np.asarray(self.gradient(x))
        )


def smooth_function(name: str, n: int, rng: np.random.Generator) -> Known:
    G, A, b = rng.normal(size=(n, n)) / np.sqrt(n), rng.normal(size=(2 * n, n)), rng.normal(size=2 * n)
    P = G @ G.T

    def softmax(x: Array) -> Array:
        e = np.exp(A @ x + b)
        return np.asarray(e / e.sum())

    return {
        "quadratic": Known(
            lambda x: float(0.5 * x @ P @ x + b[:n] @ x),
            lambda x: P @ x + b[:n],
            lambda x: 0.5 * cp.sum_squares(G.T @ x) + b[:n] @ x,
        ),
        "norm": Known(
            lambda x: float(np.linalg.norm(G @ x + b[:n])),
            lambda x: G.T @ (G @ x + b[:n]) / np.linalg.norm(G @ x + b[:n]),
            lambda x: cp.norm(G @ x + b[:n]),
        ),
        "log-sum-exp": Known(
            lambda x: float(np.log(np.exp(A @ x + b).sum())),
            lambda x: A.T @ softmax(x),
            lambda x: cp.log_sum_exp(A @ x + b),
        ),
        "exp": Known(lambda x: float(np.exp(x).sum()), np.exp, lambda x: cp.sum(cp.exp(x))),
        "fourth power": Known(
            lambda x: float(((G @ x) ** 4).sum()),
            lambda x: 4.0 * G.T @ (G @ x) ** 3,
            lambda x: cp.sum(cp.power(G @ x, 4)),
        ),
    }[name]


def piecewise_linear_function(name: str, n: int, rng: np.random.Generator) -> Known:
    w, A, b = rng.dirichlet(np.ones(n)), rng.normal(size=(50, n)), rng.normal(size=50)
    up, down = rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, n)

    def of_largest(x: Array) -> Array:
        k = int(np.argmax(np.abs(x - w)))
        return np.asarray(np.sign(x[k] - w[k]) * np.eye(n)[k])

    return {
        "1-norm": Known(lambda x: float(np.abs(x - w).sum()), lambda x: np.sign(x - w), lambda x: cp.norm1(x - w)),
        "costs": Known(
            lambda x: float((up * np.maximum(x - w, 0.0) + down * np.maximum(w - x, 0.0)).sum()),
            lambda x: np.where(x > w, up, -down),
            lambda x: up @ cp.pos(x - w) + down @ cp.neg(x - w),
        ),
        "several kinks": Known(
            lambda x: float((np.abs(x - w) + np.maximum(x - 2.0 * w, 0.0) + 0.1 * x).sum()),
            lambda x: np.sign(x - w) + (x > 2.0 * w) + 0.1,
            lambda x: cp.norm1(x - w) + cp.sum(cp.pos(x - 2.0 * w)) + 0.1 * cp.sum(x),
        ),
        "maximum norm": Known(lambda x: float(np.abs(x - w).max()), of_largest, lambda x: cp.norm_inf(x - w)),
        "largest of 50": Known(
            lambda x: float((A @ x + b).max()), lambda x: A[int(np.argmax(A @ x + b))], lambda x: cp.max(A @ x + b)
        ),
        "1-norm of a map": Known(
            lambda x: float(np.abs(A @ (x - w)).sum()),
            lambda x: A.T @ np.sign(A @ (x - w)),
            lambda x: cp.norm1(A @ (x - w)),
        ),
        "curved and 1-norm": Known(
            lambda x: float(x @ x + np.abs(x - w).sum()),
            lambda x: 2.0 * x + np.sign(x - w),
            lambda x: cp.sum_squares(x) + cp.norm1(x - w),
        ),
    }[name]


SMOOTH = ("quadratic", "norm", "log-sum-exp", "exp", "fourth power")
KINKED = ("1-norm", "costs", "several kinks", "maximum norm", "largest of 50", "1-norm of a map", "curved and 1-norm")


def instance_of(name: str, kind: str, n: int, seed: int) -> tuple[Any, Known, float, Array]:
    """K, a function, a limit that a point of K satisfies, and a target."""
    rng = np.random.default_rng([seed, n, len(name)])
    function = (smooth_function if name in SMOOTH else piecewise_linear_function)(name, n, rng)
    K = {"Box": Box(-1.0, 1.0, dim=n), "Ball": Ball(0.0, 1.0, dim=n), "Simplex": Simplex(n)}[kind]
    z = rng.dirichlet(np.ones(n)) if kind == "Simplex" else rng.uniform(-0.5, 0.5, n) / np.sqrt(n)
    limit = function.value(z) + 0.05 * abs(function.value(z))
    return K, function, limit, K.project(z) + rng.normal(size=n) * rng.choice([0.3, 3.0])


@pytest.mark.parametrize("n", [2, 7, 25])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex"])
@pytest.mark.parametrize("name", SMOOTH + KINKED)
def test_a_black_box_is_its_structured_form(name: str, kind: str, n: int) -> None:
    for seed in range(2):
        K, function, limit, y = instance_of(name, kind, n, seed)
        asked: list[Array] = []

        def value(x: Array, function: Known = function, limit: float = limit, asked: list[Array] = asked) -> float:
            asked.append(x)
            return function.value(x) - limit

        x = cocopt.project(K, constraints.Function(value, function.gradient), y)
        assert value(x) <= BLACK_BOX
        assert K.contains(x)
        assert np.asarray(K.contains(np.array(asked), tol=2e-9)).all()  # a callable need not be defined elsewhere
        best = expected(K, lambda v, f=function, limit=limit: [f.expression(v) <= limit], y)
        assert np.abs(x - best).max() <= 2e-5, seed  # what CVXPY's solution is right to
        # x is no farther than CVXPY's solution, but for what both may violate
        assert np.linalg.norm(x - y) <= np.linalg.norm(best - y) + 1e-6


@pytest.mark.parametrize("kind", ["Box", "Simplex"])
@pytest.mark.parametrize("name", ["1-norm", "costs", "several kinks"])
def test_turnover_in_100_dimensions_is_exact(name: str, kind: str) -> None:
    """Separable kinks are found all at once; the reference is a projection onto the same function in conic form."""
    K, function, limit, y = instance_of(name, kind, 100, 0)
    result = solve_projection(K, function.bounded(limit), y)
    assert result.cuts <= 500
    assert abs(function.value(result.point) - limit) <= 1e-12 * (1.0 + abs(limit))
    np.testing.assert_allclose(result.point, expected(K, lambda v: [function.expression(v) <= limit], y), atol=2e-5)


def test_an_exact_turnover_limit() -> None:
    """‖x − w‖₁ ≤ τ over the whole space is soft thresholding, x = w + sign(d)·max(|d| − θ, 0), with ‖x − w‖₁ = τ."""
    rng = np.random.default_rng(5)
    w, d = rng.normal(size=40), rng.normal(size=40)
    low, high = 0.0, float(np.abs(d).max())
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(np.abs(d) - middle, 0.0).sum() > 3.0 else (low, middle)
    g = constraints.Function(lambda x: float(np.abs(x - w).sum() - 3.0), lambda x: np.sign(x - w))
    x = cocopt.project(Box(-np.inf, np.inf, dim=40), g, w + d)
    np.testing.assert_allclose(x, w + np.sign(d) * np.maximum(np.abs(d) - high, 0.0), atol=1e-13)


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", ["quadratic", "1-norm", "largest of 50"])
def test_units_of_length_and_of_the_value_do_not_matter(name: str, length: float, scale: float) -> None:
    _, function, limit, y = instance_of(name, "Box", 6, 1)
    g = constraints.Function(
        lambda x: scale * (function.value(x / length) - limit), lambda x: scale / length * function.gradient(x / length)
    )
    x = cocopt.project(Box(-length, length, dim=6), g, length * y, tol=1e-7 * scale)
    same = cocopt.project(Box(-1.0, 1.0, dim=6), function.bounded(limit), y)
    assert np.abs(x / length - same).max() <= 1e-6


@pytest.mark.parametrize("far", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex"])
def test_far_targets(kind: str, far: float) -> None:
    """From far away the projection of a direction is where a ball ends in that direction, if that is inside K."""
    n, rng = 6, np.random.default_rng(3)
    d = rng.normal(size=n)
    if kind == "Simplex":
        d -= d.mean()  # else the simplex, too, stops x
    c = np.full(n, 1.0 / n)
    K = {"Box": Box(-3.0, 3.0, dim=n), "Ball": Ball(0.0, 3.0, dim=n), "Simplex": Simplex(n)}[kind]
    r = 0.01 if kind == "Simplex" else 0.5
    g = constraints.Function(lambda x: float((x - c) @ (x - c) - r * r), lambda x: 2.0 * (x - c))
    x = cocopt.project(K, g, c + far * d)
    np.testing.assert_allclose(x, c + r * d / np.linalg.norm(d), atol=1e-7)


@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex"])
@pytest.mark.parametrize("name", ["quadratic", "log-sum-exp", "1-norm", "largest of 50"])
def test_the_least_violation_where_there_is_no_feasible_point(name: str, kind: str) -> None:
    K, function, _, y = instance_of(name, kind, 5, 2)
    x = cp.Variable(5)
    inside = {
        "Box": [x >= -1, x <= 1],
        "Ball": [cp.norm(x) <= 1],
        "Simplex": [x >= 0, cp.sum(x) == 1],
    }[kind]
    least = cp.Problem(cp.Minimize(function.expression(x)), inside).solve(solver=cp.CLARABEL)
    g = function.bounded(least - 0.25)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, g, y)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], atol=1e-6)
    nearest = cocopt.project(K, g, y, infeasible="nearest")
    assert K.contains(nearest)
    assert g.value(nearest) <= 0.25 + 1e-6


def test_a_violated_row_without_slope_is_infeasible() -> None:
    g = constraints.Function(lambda x: 1.0, np.zeros_like)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(0.0, 1.0, dim=2), g, [2.0, 0.5])
    np.testing.assert_allclose(caught.value.least_violation, [1.0])


def test_sets_that_only_touch() -> None:
    """One point alone is feasible, where the gradient vanishes, or K ends."""
    at_minimum = constraints.Function(lambda x: float(x @ x), lambda x: 2.0 * x)
    x = cocopt.project(Box(-1.0, 2.0, dim=2), at_minimum, [2.0, 1.0])
    assert at_minimum.value(x) <= BLACK_BOX
    at_corner = constraints.Function(lambda x: float(x @ x) - 2.0, lambda x: 2.0 * x)
    x = cocopt.project(Box(1.0, 2.0, dim=2), at_corner, [2.0, 1.5])
    np.testing.assert_allclose(x, [1.0, 1.0], atol=1e-6)
    flat = constraints.Function(lambda x: float((x**4).sum()) - 1e-8, lambda x: 4.0 * x**3)
    x = cocopt.project(Box(-1.0, 2.0, dim=2), flat, [2.0, 1.0], tol=1e-12)
    np.testing.assert_allclose(
        x, expected(Box(-1.0, 2.0, dim=2), lambda v: [cp.norm(v, 4) <= 0.01], np.array([2.0, 1.0])), atol=1e-5
    )


@pytest.mark.parametrize("tol", [1e-7, 1e-3])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Ellipsoid"])
def test_a_black_box_does_not_loosen_its_structured_neighbours(kind: str, tol: float) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, scale = int(rng.integers(2, 7)), 10.0 ** rng.integers(-2, 3)
        z, A, b, c = rng.uniform(-0.5, 0.5, n), rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n)
        d = float(np.linalg.norm(A @ z + b) - c @ z + 0.05)
        cone = constraints.SecondOrder(scale * A, scale * b, scale * c, scale * d)
        row = constraints.Affine(scale * c, scale * (c @ z + 0.1))
        w = rng.uniform(0.1, 1.0, n)
        curved = Known(lambda x, w=w: float(w @ x**2), lambda x, w=w: 2.0 * w * x, lambda x: x)
        kinked = Known(lambda x: float(np.abs(x).sum()), np.sign, lambda x: x)
        K = {
            "Box": Box(-1.0, 1.0, dim=n),
            "Ball": Ball(0.0, 1.0, dim=n),
            "Ellipsoid": Ellipsoid(np.zeros(n), np.eye(n) + 0.1),
        }[kind]
        y = z + rng.normal(size=n) * 10.0 ** rng.integers(-1, 2)
        for function in (curved, kinked):
            g = function.bounded(function.value(z) + 0.05)
            x = cocopt.project(K, constraints.Stack([cone, g, row]), y, tol=tol)
            terms = scale * ((np.linalg.norm(A) + np.linalg.norm(c)) * np.linalg.norm(x) + np.linalg.norm(b) + abs(d))
            assert cone.value(x) <= 1e-9 * terms
            assert row.value(x) <= 1e-9 * scale * (np.abs(c) @ np.abs(x) + abs(c @ z + 0.1))
            assert g.value(x) <= tol
            assert K.contains(x, tol=1e-9)


# ----------------------------------------------------------------------------------------------------- the hinge prox


@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex"])
@pytest.mark.parametrize("name", ["quadratic", "log-sum-exp", "1-norm", "largest of 50"])
def test_the_hinge_prox_of_a_black_box(name: str, kind: str) -> None:
    for weight in (0.02, 0.2, 5.0):
        K, function, limit, y = instance_of(name, kind, 6, 3)
        x = cocopt.hinge_prox(K, function.bounded(limit), y, weight=weight, tol=1e-10)
        best = expected(K, None, y, lambda v, f=function, w=weight, u=limit: w * cp.pos(f.expression(v) - u))
        assert np.abs(x - best).max() <= 5e-5


@pytest.mark.parametrize("kind", [Box, Ball, Simplex])
def test_the_hinge_prox_of_a_black_box_in_many_dimensions(kind: Any) -> None:
    """Cutting planes answer, of which a single one is enough; its multiplier is bounded by the weight."""
    n = 501
    K = Simplex(n, 2.0) if kind is Simplex else kind(0.0, 2.0, dim=n)
    row = np.zeros(n)
    row[0] = 1.0
    black_box = constraints.Function(lambda x: float(x[0]) - 0.5, lambda x: row)
    y = np.zeros(n)
    y[:2] = 1.5, 0.25
    for weight in (0.2, 10.0):
        x = cocopt.hinge_prox(K, black_box, y, weight=weight)
        np.testing.assert_allclose(x, cocopt.hinge_prox(K, constraints.Affine(row, 0.5), y, weight=weight), atol=1e-9)
    assert cocopt.hinge_prox(Box(0.0, 2.0, dim=n), black_box, y, weight=0.2)[0] == pytest.approx(1.3)


# -------------------------------------------------------------------------------------------------- bounds and errors


def test_the_error_of_a_cut_limit_says_what_was_reached_and_what_to_do() -> None:
    K, function, limit, y = instance_of("curved and 1-norm", "Box", 25, 0)
    with pytest.raises(CutLimit, match=r"cuts: the bound of 9 cutting planes in 25 dimensions") as caught:
        cocopt.project(K, function.bounded(limit), y, cuts=9)
    assert caught.value.cuts >= 9
    assert caught.value.violation > BLACK_BOX
    for advice in (f"violation of {caught.value.violation:.3g}", "tol = 1e-07", "by its structure", "raise `cuts`"):
        assert advice in str(caught.value)


def test_work_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """In many dimensions a cut costs more, and fewer are allowed."""
    monkeypatch.setattr(cuts, "WORK_PER_CUT", 3e3)
    K, function, limit, y = instance_of("curved and 1-norm", "Box", 25, 0)
    with pytest.raises(CutLimit, match="the work of 500 cutting planes in 25 dimensions was reached") as caught:
        cocopt.project(K, function.bounded(limit), y)
    assert caught.value.cuts < 500


@pytest.mark.parametrize("name", ["quadratic", "1-norm", "largest of 50"])
def test_what_a_callable_raises_passes_through(name: str) -> None:
    K, function, limit, y = instance_of(name, "Box", 6, 0)
    calls: list[Array] = []

    def limited(fatal: int) -> constraints.Function:
        def gradient(x: Array) -> Array:
            calls.append(x)
            if len(calls) == fatal:
                raise ZeroDivisionError("no price today")
            return np.asarray(function.gradient(x))

        calls.clear()
        return constraints.Function(lambda x: function.value(x) - limit, gradient)

    cocopt.project(K, limited(0), y)
    for fatal in {1, 2, len(calls) // 2, len(calls)}:
        with pytest.raises(ZeroDivisionError, match="no price today") as caught:
            cocopt.project(K, limited(fatal), y)
        assert caught.value.__notes__ == ["raised by `gradient` of constraints.Function"]


def test_vectorized_black_boxes() -> None:
    y = np.random.default_rng(0).normal(size=(3, 4))
    g = constraints.Function(lambda x: (x**2).sum(axis=-1) - 0.5, lambda x: 2.0 * x, vectorized=True)
    x = cocopt.project(Box(-1.0, 1.0, dim=4), g, y)
    ball = cocopt.project(Box(-1.0, 1.0, dim=4), constraints.NormBall(np.zeros(4), np.sqrt(0.5)), y)
    np.testing.assert_allclose(x, ball, atol=1e-7)


CONTRADICTIONS = {
    "the gradient of the wrong sign": (lambda x: float(x @ x) - 1.0, lambda x: -2.0 * x),
    "the gradient ten times too small": (lambda x: float(x @ x) - 1.0, lambda x: 0.2 * x),
    "a thousand times too large": (lambda x: float(x @ x) - 1.0, lambda x: 2e3 * x),
    "a kink of the wrong sign": (lambda x: float(np.abs(x).sum()) - 1.0, lambda x: -np.sign(x)),
}


@pytest.mark.parametrize("infeasible", ["raise", "nearest"])
@pytest.mark.parametrize("K", [Box(-5.0, 5.0, dim=3), Ball(0.0, 5.0, dim=3), cocopt.Space(3)], ids=repr)
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_values_and_gradients_that_contradict_each_other(name: str, K: cocopt.ConvexSet, infeasible: str) -> None:
    """The unit ball is feasible, but the cuts exclude it."""
    g = constraints.Function(*CONTRADICTIONS[name])
    with pytest.raises(InvalidInput, match=r"constraint: expected a convex function.*contradict each other"):
        cocopt.project(K, g, [3.0, 1.0, -2.0], infeasible=infeasible)


def test_the_row_that_contradicts_itself_is_named() -> None:
    wrong = constraints.Function(*CONTRADICTIONS["the gradient of the wrong sign"])
    both = constraints.Stack([unit_ball_by_value_and_gradient(), wrong])
    with pytest.raises(InvalidInput, match="of row 1"):
        cocopt.project(Box(-5.0, 5.0, dim=3), both, [3.0, 1.0, -2.0])


@pytest.mark.parametrize("K", [Box(-5.0, 5.0, dim=3), Ball(0.0, 5.0, dim=3)], ids=repr)
def test_gradients_by_differences_are_no_contradiction(K: cocopt.ConvexSet) -> None:
    def gradient(x: Array) -> Array:
        return np.array([((x + h) @ (x + h) - x @ x) / 1e-7 for h in 1e-7 * np.eye(3)])

    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, constraints.Function(lambda x: float(x @ x) + 1.0, gradient), [3.0, 1.0, -2.0])
    np.testing.assert_allclose(caught.value.least_violation, [1.0], atol=1e-5)
    g = constraints.Function(lambda x: float(x @ x) - 1.0, gradient)
    y = np.array([3.0, 1.0, -2.0])
    np.testing.assert_allclose(cocopt.project(K, g, y), y / np.linalg.norm(y), atol=1e-6)


def shifted_log_sum_exp(n: int) -> tuple[Callable[[Array], float], Callable[[Array], Array]]:
    """log Σ exp(±⟨a_i, x⟩) − log M − 1 of M random rows and their negatives: {g ≤ 0} is bounded, around 0."""
    rows = np.random.default_rng(n).normal(size=(n + 3, n))
    A = np.concatenate([rows, -rows])

    def value(x: Array) -> float:
        z = A @ x
        return float(z.max() + np.log(np.exp(z - z.max()).mean()) - 1.0)

    def gradient(x: Array) -> Array:
        w = np.exp(A @ x - (A @ x).max())
        return w @ A / w.sum()

    return value, gradient


def pseudo_norm(n: int) -> tuple[Callable[[Array], float], Callable[[Array], Array]]:
    """√(1 + ‖x‖²) − 2."""
    return lambda x: float(np.sqrt(1.0 + x @ x)) - 2.0, lambda x: x / np.sqrt(1.0 + x @ x)


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize(
    ("function", "n"), [(shifted_log_sum_exp, 2), (shifted_log_sum_exp, 5), *((pseudo_norm, n) for n in (2, 5, 20, 50))]
)
def test_far_targets_over_a_set_without_a_size(function: Callable[[int], Any], n: int, far: float) -> None:
    """y − x is a multiple of the gradient at x, where the function is 0."""
    value, gradient = function(n)
    y = far * np.random.default_rng(n + 1).normal(size=n)
    x = cocopt.project(cocopt.Space(n), constraints.Function(value, gradient), y)
    assert abs(value(x)) <= BLACK_BOX
    slope, away = gradient(x), y - x
    beside = away - (away @ slope) / (slope @ slope) * slope
    assert np.linalg.norm(beside) <= 1e-5 * np.linalg.norm(away)
