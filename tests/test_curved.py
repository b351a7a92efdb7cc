"""Kernels: one curved row over a set, one affine row over a curved set, a norm ball with affine rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st
from instances import build, build_set, instance
from reference import curved
from reference import projections as reference
from reference.projections import Array

import cocopt
from cocopt import Ball, Box, CappedSimplex, Ellipsoid, Halfspace, L1Ball, Orthant, Simplex, Space, constraints, errors
from cocopt.geometry import solve_projection
from cocopt.geometry.curved import solve_curved
from cocopt.geometry.problem import Request
from cocopt.geometry.prox import solve_hinge_prox

SETS = ("Box", "Ball", "Simplex", "L1Ball", "Ellipsoid")
POSITION = 1e-7
seeds = st.integers(0, 2**32 - 1)
FAR = (1.0, 1e4, 1e8)


def a_set(kind: str, n: int, rng: np.random.Generator, unit: float = 1.0) -> tuple[Any, curved.Projector]:
    """A set of about the given size, and a naive projection onto it."""
    center = 0.2 * unit * rng.normal(size=n)
    match kind:
        case "Box":
            lower, upper = center - unit * rng.uniform(0.2, 1, n), center + unit * rng.uniform(0.2, 1, n)
            return Box(lower, upper), curved.onto_box(lower, upper)
        case "Ball":
            return Ball(center, unit), curved.onto_ball(center, unit)
        case "Simplex":
            return Simplex(n, 1.5 * unit), curved.onto_simplex(1.5 * unit)
        case "L1Ball":
            return L1Ball(center, 1.5 * unit), curved.onto_l1_ball(center, 1.5 * unit)
    root = rng.normal(size=(n, n))
    P = unit**2 * (root @ root.T / n + 0.1 * np.eye(n))
    return Ellipsoid(center, P), curved.onto_ellipsoid(center, P)


def a_norm_ball(project: curved.Projector, y: Array, rng: np.random.Generator, unit: float) -> tuple[Array, float]:
    """A center, in K or not, and a radius between the least possible and the distance of y's projection."""
    c = unit * rng.normal(size=y.size) / np.sqrt(y.size)
    if rng.uniform() < 0.5:
        c = project(c)
    near, far = (float(np.linalg.norm(project(v) - c)) for v in (c, y))
    return c, near + rng.uniform(0.1, 0.9) * (far - near)


@pytest.mark.parametrize("weight", [np.inf, 0.0, 1e-3, 0.3, 20.0])
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", SETS)
def test_a_norm_ball_against_bisection(kind: str, unit: float, far: float, weight: float) -> None:
    rng = np.random.default_rng([SETS.index(kind), int(far), 7])
    for n in (1, 2, 3, 10, 60):
        K, project = a_set(kind, n, rng, unit)
        y = 2 * far * unit * rng.normal(size=n) / np.sqrt(n)
        c, radius = a_norm_ball(project, y, rng, unit)
        w = weight * unit
        found = solve_hinge_prox(K, constraints.NormBall(c, radius), y, np.array(w), "each")
        expected = curved.norm_ball_prox(project, y, c, radius, w)
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9 * unit)
        assert found.method == "curved"
        assert K.violation(found.point) <= 1e-12 * unit
        if weight == np.inf:
            assert np.linalg.norm(found.point - c) <= radius + 1e-12 * unit


@pytest.mark.parametrize("far", [0.5, *FAR])
@pytest.mark.parametrize("from_center", [0.0, 1e-9, 0.5, 1.0 - 1e-6, 1.0 + 1e-6, 3.0])
@pytest.mark.parametrize("line", [False, True])
def test_the_hinge_prox_of_a_ball_over_a_ball_against_bisection(line: bool, from_center: float, far: float) -> None:
    """Wherever the row's center is, also on one line with K's center and the target, between them or not."""
    rng = np.random.default_rng(3)
    for n in (1, 2, 10):
        K, project = a_set("Ball", n, rng)
        for share in (1e-3, 0.1, 0.5, 0.9, 1.1):
            away, towards = rng.normal(size=(2, n))
            away /= np.linalg.norm(away)
            towards = rng.choice([-1.0, 1.0]) * away if line else towards / np.linalg.norm(towards)
            c, y = K.center + from_center * away, K.center + 2.0 * far * towards
            weight = share * float(np.linalg.norm(y - c))
            for radius in (0.0, 0.1, 0.5):
                found = solve_hinge_prox(K, constraints.NormBall(c, radius), y, np.array(weight), "each")
                expected = curved.norm_ball_prox(project, y, c, radius, weight)
                np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9)
                assert found.method == "curved"


@pytest.mark.parametrize("weight", [np.inf, 0.0, 1e-3, 0.3, 20.0])
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("kind", ["L1Ball", "Ellipsoid"])
def test_an_affine_row_against_bisection(kind: str, far: float, weight: float) -> None:
    rng = np.random.default_rng([SETS.index(kind), int(far), 8])
    for n in (2, 3, 10, 60):
        K, project = a_set(kind, n, rng)
        y, a = 2 * far * rng.normal(size=n) / np.sqrt(n), rng.normal(size=n)
        least, most = a @ K.minimise_linear(a), a @ project(y)
        b = least + rng.uniform(0.2, 0.8) * (most - least)
        found = solve_hinge_prox(K, constraints.Affine(a, b), y, np.array(weight), "each")
        expected = curved.multiplier_prox(lambda nu: project(y - nu * a), lambda x: float(a @ x - b), weight)  # noqa: B023
        # a multiplier of the size of the target leaves the bisection fewer digits
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=max(1e-9, 2e-15 * far))
        assert found.method == "curved"
        assert K.violation(found.point) <= 1e-12


@pytest.mark.parametrize("weight", [np.inf, 0.0, 1e-3, 0.3, 20.0])
@pytest.mark.parametrize("far", FAR)
def test_a_diagonal_quadratic_against_bisection(far: float, weight: float) -> None:
    rng = np.random.default_rng([int(far), 9])
    for n in (1, 2, 3, 10, 60):
        K, project = a_set("Box", n, rng)
        p, q = rng.uniform(0.0, 2.0, n), rng.normal(size=n)
        p[rng.uniform(size=n) < 0.2] = 0.0
        inside, y = project(0.2 * rng.normal(size=n)), 2 * far * rng.normal(size=n)
        r = -float((0.5 * p * inside + q) @ inside) - 1e-3
        found = solve_hinge_prox(K, constraints.Quadratic(np.diag(p), q, r), y, np.array(weight), "each")
        expected = curved.multiplier_prox(
            lambda nu: project((y - nu * q) / (1.0 + nu * p)),  # noqa: B023
            lambda x: float((0.5 * p * x + q) @ x + r),  # noqa: B023
            weight,
        )
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=max(1e-9, 2e-15 * far))
        assert found.method == "curved"


@pytest.mark.parametrize("far", [1e10, 1e13, 1e16, 1e100])
@pytest.mark.parametrize("kind", SETS)
def test_targets_beyond_all_sizes(kind: str, far: float) -> None:
    """The path from the center needs no difference of large numbers; a method that does says where it fails."""
    rng = np.random.default_rng(4)
    for n in (2, 5):
        K, project = a_set(kind, n, rng)
        direction, c = rng.normal(size=n), project(0.3 * rng.normal(size=n))
        # on a line through the center, in the limit, x depends on the direction alone
        radius = 0.3 * float(np.linalg.norm(project(c + 1e6 * direction) - c))
        expected = curved.norm_ball_prox(project, c + 1e6 * direction, c, radius)
        x = cocopt.project(K, constraints.NormBall(c, radius), c + far * direction)
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-7)
        a = rng.normal(size=n)
        g = constraints.Affine(a, a @ c)
        try:
            x = cocopt.project(K, g, far * direction)
        except errors.SolverFailure:
            continue
        assert K.violation(x) <= 1e-9
        assert g.value(x) <= 1e-9


def with_rows(kind: str, n: int, rows: int, seed: int) -> tuple[Any, Any, Array]:
    """A set, a norm ball with affine rows (the ball in the middle of them), and a target."""
    case = instance(kind, "rows", n, seed)
    rng = np.random.default_rng([seed, 1])
    A = rng.normal(size=(rows, n))
    c = case.z + 0.1 * rng.normal(size=n)
    ball = ("NormBall", c, float(np.linalg.norm(case.z - c)) + 0.3)
    half = rows // 2
    b = A @ case.z + 0.1
    g = ("Stack", [("Affine", A[:half], b[:half]), ball, ("Affine", A[half:], b[half:])])
    return case.K, g, case.z + 2 * rng.normal(size=n)


@pytest.mark.parametrize("kind", ["Box", "Simplex", "Halfspace", "Polyhedron"])
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_a_norm_ball_with_rows_against_cvxpy(kind: str, seed: int) -> None:
    K, g, y = with_rows(kind, 4, 5, seed)
    try:
        expected = reference.project(K, g, y)
    except reference.BadlyConditioned:
        reject()
    found = solve_projection(build_set(K), build(g), y)
    np.testing.assert_allclose(found.point, expected, rtol=0, atol=POSITION * (1 + np.abs(expected).max()))
    assert found.method == "curved"
    # y − x is the sum of the rows' gradients, by their multipliers, and of a normal of K
    jacobian = build(g).jacobian(found.point)
    moved = found.point + (y - found.point - found.multipliers @ jacobian)
    np.testing.assert_allclose(build_set(K).project(moved), found.point, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["Box", "Simplex"])
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_the_hinge_prox_of_a_norm_ball_with_rows_against_cvxpy(kind: str, seed: int) -> None:
    K, g, y = with_rows(kind, 4, 4, seed)
    weight = 10.0 ** np.random.default_rng([seed, 2]).uniform(-2, 1, 5)
    try:
        expected = reference.hinge_prox(K, g, y, np.zeros(4), weight, "each", 0.5)
    except reference.BadlyConditioned:
        reject()
    x = cocopt.hinge_prox(build_set(K), build(g), y, weight=weight)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("kind", [*SETS, "rows"])
@settings(max_examples=15, deadline=None)
@given(seed=seeds)
@example(seed=99)  # over the 1-norm ball: a point that is in K but for rounding
def test_what_makes_a_projection(kind: str, seed: int) -> None:
    """Feasible, idempotent bit for bit or to rounding, firmly non-expansive, and y − x makes an obtuse angle with K."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    K, project = a_set("Box" if kind == "rows" else kind, n, rng)
    inside = project(0.5 * rng.normal(size=n))
    c = inside + 0.3 * rng.normal(size=n)
    g: Any = constraints.NormBall(c, np.linalg.norm(inside - c) + 0.1)
    if kind == "rows":
        A = rng.normal(size=(3, n))
        g = constraints.Stack([g, constraints.Affine(A, A @ inside + 0.1)])
    y = project(inside) + rng.normal(size=(6, n)) * 10.0 ** rng.uniform(-2, 2, size=(6, 1))
    x = cocopt.project(K, g, y)
    assert K.violation(x).max() <= 1e-12
    assert g.value(x).max() <= 1e-12
    np.testing.assert_allclose(cocopt.project(K, g, x), x, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(cocopt.project(K, g, inside), inside)
    moved, targets = x[:3] - x[3:], y[:3] - y[3:]
    assert (np.vecdot(moved, moved) <= np.vecdot(moved, targets) + 1e-9).all()
    for other in (inside, *x):
        assert (np.vecdot(y - x, other - x) <= 1e-9 * (1 + np.linalg.norm(y, axis=-1))).all()


@pytest.mark.parametrize("kind", SETS)
def test_trials_with_different_outcomes(kind: str) -> None:
    """Feasible, on the row, off (radius inf), tangent and empty trials in one batch; leading axes broadcast."""
    rng = np.random.default_rng(3)
    n = 4
    K, project = a_set(kind, n, rng)
    y = project(rng.normal(size=n)) + 0.5
    c = project(y) + 3.0
    near = float(np.linalg.norm(project(c) - c))
    far = float(np.linalg.norm(project(y) - c))
    radii = np.array([[2 * far, np.inf, 0.5 * (near + far)], [near, near - 0.5, -1.0]])
    found = solve_projection(K, constraints.NormBall(c, radii), y, infeasible="nearest")
    assert found.method == "curved"
    np.testing.assert_array_equal(found.feasible, [[True, True, True], [True, False, False]])
    np.testing.assert_allclose(found.least_violation, [[0, 0, 0], [0, 0.5, near + 1.0]], rtol=0, atol=1e-12)
    expected = [[project(y), project(y), curved.norm_ball_prox(project, y, c, radii[0, 2])], [project(c)] * 3]
    np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-7)
    with pytest.raises(errors.InfeasibleRound) as caught:
        cocopt.project(K, constraints.NormBall(c, radii), y)
    assert caught.value.trials == (4, 5)
    alone = [[cocopt.project(K, constraints.NormBall(c, r), y, infeasible="nearest") for r in row] for row in radii]
    np.testing.assert_array_equal(found.point, alone)


def test_an_empty_quadratic_or_ellipsoidal_round() -> None:
    """The least of ½x₁² − x₂ + r over the unit box is at (0, 1), whatever x₃ is; that of x₁ over an ellipsoid at −2."""
    box, g = Box(-1.0, 1.0, dim=3), constraints.Quadratic(np.diag([1.0, 0.0, 0.0]), [0.0, -1.0, 0.0], [1.5, 1.0, 0.5])
    found = solve_projection(box, g, [0.7, 0.2, 0.3], infeasible="nearest")
    np.testing.assert_array_equal(found.feasible, [False, True, True])
    np.testing.assert_allclose(found.least_violation, [0.5, 0.0, 0.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.point[:2], [[0.0, 1.0, 0.3]] * 2, rtol=0, atol=1e-7)
    K = Ellipsoid(0, np.diag([4.0, 1.0]))
    found = solve_projection(K, constraints.Affine([1.0, 0.0], -3.0), [1.0, 1.0], infeasible="nearest")
    np.testing.assert_allclose(found.point, [-2.0, 0.0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.least_violation, 1.0, rtol=1e-12)
    found = solve_projection(
        L1Ball(0.0, 1.0, dim=2), constraints.Affine([1.0, 0.5], -3.0), [1.0, 1.0], infeasible="nearest"
    )
    assert found.method == "curved"  # the corner where the row is least
    np.testing.assert_array_equal(found.point, [-1.0, 0.0])
    np.testing.assert_allclose(found.least_violation, 2.0, rtol=1e-12)


@pytest.mark.parametrize("kind", SETS)
def test_degenerate_balls(kind: str) -> None:
    """Radius 0, the target at the center, and K tangent to the ball."""
    rng = np.random.default_rng(5)
    n = 3
    K, project = a_set(kind, n, rng)
    c, y = project(rng.normal(size=n)), 3 * rng.normal(size=n)
    np.testing.assert_allclose(cocopt.project(K, constraints.NormBall(c, 0.0), y), c, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(cocopt.project(K, constraints.NormBall(c, 0.5), c), c)
    outside = c + 5.0
    near = float(np.linalg.norm(project(outside) - outside))
    g = constraints.NormBall(outside, near)
    np.testing.assert_allclose(cocopt.project(K, g, y), project(outside), rtol=0, atol=1e-6)
    np.testing.assert_allclose(cocopt.project(K, g, outside), project(outside), rtol=0, atol=1e-9)


@pytest.mark.parametrize("K", [Box(0.5, 0.5, dim=2), Ball([0.5, 0.5], 0.0), L1Ball([0.5, 0.5], 0.0)])
def test_a_set_of_one_point(K: Any) -> None:
    found = solve_projection(K, constraints.NormBall([0.0, 0.0], [1.0, 0.1]), [3.0, 1.0], infeasible="nearest")
    np.testing.assert_allclose(found.point, [[0.5, 0.5]] * 2, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(found.feasible, [True, False])


def test_ties_on_a_simplex_and_equal_bounds() -> None:
    x = cocopt.project(Simplex(4), constraints.NormBall([0.25] * 4, 0.25), [5.0, 5.0, 1.0, 1.0])
    np.testing.assert_allclose(x, [0.375, 0.375, 0.125, 0.125], rtol=0, atol=1e-15)
    x = cocopt.project(
        Box([0.0, 1.0, 0.0], [2.0, 1.0, 2.0]), constraints.NormBall([0.0, 0.0, 0.0], 1.5), [2.0, 9.0, 2.0]
    )
    np.testing.assert_allclose(x, [0.625**0.5, 1.0, 0.625**0.5], rtol=0, atol=1e-15)


def test_sets_that_are_boxes_or_polyhedra() -> None:
    """The unit ball around 0 cut by the set, in closed form."""
    g = constraints.NormBall([0.0, 0.0], 1.0)
    np.testing.assert_allclose(cocopt.project(Space(2), g, [3.0, -4.0]), [0.6, -0.8], rtol=0, atol=1e-15)
    np.testing.assert_allclose(cocopt.project(Orthant(2), g, [3.0, -4.0]), [1.0, 0.0], rtol=0, atol=1e-15)
    half = Halfspace([0.0, 1.0], -0.6)
    np.testing.assert_allclose(cocopt.project(half, g, [3.0, 4.0]), [0.8, -0.6], rtol=0, atol=1e-12)
    capped = CappedSimplex(2, 0.9)
    np.testing.assert_allclose(
        cocopt.project(capped, constraints.NormBall([0.5, 0.5], np.sqrt(0.02)), [3.0, 0.0]),
        [0.6, 0.4],
        rtol=0,
        atol=1e-12,
    )


def test_leading_axes_of_everything() -> None:
    """Weights, targets and data with leading axes of their own, against one trial at a time."""
    rng = np.random.default_rng(11)
    n = 5
    y, c = rng.normal(size=(3, 1, n)) * 3, rng.normal(size=(2, n))
    radius, weight = rng.uniform(0.5, 1.5, size=(3, 2)), rng.uniform(0.1, 3.0, size=(3, 2))
    P, q = np.diag(rng.uniform(0.0, 1.0, n)), rng.normal(size=(2, n))
    stacked = constraints.Stack(
        [constraints.Affine(rng.normal(size=(2, 2, n)), np.ones((2, 2))), constraints.NormBall(c, radius)]
    )
    for K in (Box(-1.0, 1.0, dim=n), Simplex(n), Ball(0.0, 1.0, dim=n), L1Ball(0.0, 1.0, dim=n)):
        for g, w in [
            (constraints.NormBall(c, radius), weight[..., None]),
            (constraints.Quadratic(np.stack([P, 2 * P]), q, -0.1), weight[..., None]),
            (stacked, np.repeat(weight[..., None], 3, axis=-1)),
        ]:
            together = cocopt.hinge_prox(K, g, y, weight=w)
            for i, j in np.ndindex(3, 2):
                own = g.trials((i, j)) if len(g.batch) == 2 else g.trials(j)
                single = cocopt.hinge_prox(K, own, y[i, 0], weight=w[i, j])
                np.testing.assert_allclose(together[i, j], single, rtol=0, atol=1e-12)


def test_a_shifted_row_is_the_row_with_another_radius() -> None:
    """Shifted so far that no x satisfies it, the row is a penalty: y goes towards the center by the weight."""
    ball, box = constraints.NormBall([0.0, 0.0], 1.0), Box(-9.0, 9.0, dim=2)
    x = cocopt.hinge_prox(box, constraints.Shifted(ball, [5.0]), [3.0, 4.0], weight=2.0)
    np.testing.assert_allclose(x, [1.8, 2.4], rtol=0, atol=1e-15)
    x = cocopt.hinge_prox(box, constraints.Shifted(ball, [5.0]), [3.0, 4.0], weight=6.0)
    np.testing.assert_allclose(x, [0.0, 0.0], rtol=0, atol=1e-12)
    square = constraints.Quadratic(2 * np.eye(2), np.zeros(2), -1.0)
    np.testing.assert_allclose(
        cocopt.project(box, constraints.Shifted(square, [-3.0]), [3.0, 4.0]), [1.2, 1.6], rtol=0, atol=1e-14
    )


def test_multipliers() -> None:
    """Over the whole space y − x = ν ∇g(x)."""
    y = np.array([3.0, 4.0])
    found = solve_projection(Space(2), constraints.NormBall([0.0, 0.0], 1.0), y)
    np.testing.assert_allclose(found.multipliers, [4.0], rtol=1e-14)
    g = constraints.Quadratic(np.diag([2.0, 0.0]), [0.0, 1.0], -1.0)
    found = solve_projection(Space(2), g, y)
    np.testing.assert_allclose(found.point + found.multipliers * g.gradient(found.point), y, rtol=1e-12)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("name", ["point", "center", "radius"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_data_that_are_not_finite_are_named(kind: str, name: str, bad: float) -> None:
    K, _ = a_set(kind, 3, np.random.default_rng(0))
    arguments: dict[str, Any] = {"point": np.ones(3), "center": np.zeros(3), "radius": np.array(1.0)}
    arguments[name] = np.full_like(arguments[name], bad)
    with pytest.raises(errors.InvalidInput, match=name):
        cocopt.project(K, constraints.NormBall(arguments["center"], arguments["radius"]), arguments["point"])


def test_a_quadratic_that_is_not_convex_or_not_diagonal() -> None:
    box = Box(-1.0, 1.0, dim=2)
    with pytest.raises(errors.InvalidInput, match="positive semidefinite"):
        cocopt.project(box, constraints.Quadratic(np.diag([1.0, -1.0]), [5.0, 0.0], 0.0), [1.0, 1.0])
    assert constraints.Quadratic([[1.0, 0.1], [0.1, 1.0]], [0.0, 0.0], -1.0).diagonal is None
    np.testing.assert_array_equal(constraints.Quadratic(np.diag([1.0, 0.0]), [0.0, 0.0], -1.0).diagonal, [1.0, 0.0])
    off = constraints.Quadratic(np.eye(2), [0.0, 0.0], -np.inf)
    np.testing.assert_array_equal(cocopt.project(box, off, [3.0, 0.5]), [1.0, 0.5])


def test_requests_that_have_no_kernel() -> None:
    box, ball = Box(-1.0, 1.0, dim=2), constraints.NormBall([0.0, 0.0], 1.0)
    dense = constraints.Quadratic([[1.0, 0.5], [0.5, 1.0]], [0.0, 0.0], -1.0)
    affine = constraints.Affine([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    y = np.ones(2)
    for K, g in [
        (box, dense),
        (box, constraints.Stack([ball, ball])),
        (box, constraints.Stack([dense, affine])),
        (box, constraints.Shifted(dense, [1.0])),
        (Ball(0.0, 1.0, dim=2), constraints.Stack([ball, affine])),
        (Ellipsoid(0, np.eye(2)), affine),
    ]:
        assert solve_curved(Request(K, g, y)) is None
    assert solve_curved(Request(box, constraints.Stack([ball, affine]), y, None, np.array(1.0))) is None


@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "L1Ball"])
def test_many_coordinates(kind: str) -> None:
    rng = np.random.default_rng(2)
    n = 20_011
    K, project = a_set(kind, n, rng)
    y = rng.normal(size=n)
    c, radius = a_norm_ball(project, y, rng, 1.0)
    found = solve_projection(K, constraints.NormBall(c, radius), y)
    np.testing.assert_allclose(found.point, curved.norm_ball_prox(project, y, c, radius), rtol=0, atol=1e-10)
    assert found.method == "curved"


def bounds_and_sum(kind: str, n: int, rng: np.random.Generator) -> tuple[Any, Array, Array, float | None]:
    """A set that is bounds with or without a sum, and these."""
    match kind:
        case "Box":
            lower, upper = -rng.uniform(0.2, 1, n), rng.uniform(0.2, 1, n)
            return Box(lower, upper), lower, upper, None
        case "Simplex":
            return Simplex(n, 1.5), np.zeros(n), np.full(n, np.inf), 1.5
    caps = rng.uniform(1.5 / n, 3.0 / n, n)
    return CappedSimplex(n, caps, 1.2), np.zeros(n), caps, 1.2


BOUNDS = ("Box", "Simplex", "CappedSimplex")


@pytest.mark.parametrize("weight", [np.inf, 0.0, 0.05, 0.5])
@pytest.mark.parametrize("far", [1.0, 100.0])
@pytest.mark.parametrize("kind", BOUNDS)
def test_a_ball_of_the_1_norm_against_bisection(kind: str, far: float, weight: float) -> None:
    rng = np.random.default_rng([len(kind), int(far)])
    for n in (1, 2, 5, 30):
        K, lower, upper, total = bounds_and_sum(kind, n, rng)
        y, c = far * rng.normal(size=n), 0.5 * rng.normal(size=n)
        c = K.project(c) if n % 2 else c
        point_at = curved.norm1_points(lower, upper, total, c, y)
        near, beyond = (float(np.abs(point_at(nu) - c).sum()) for nu in (1e4 * far, 0.0))
        radius = near + rng.uniform(0.1, 0.9) * (beyond - near) + 1e-9 * far  # (a simplex with n = 1 is a point)
        expected = curved.multiplier_prox(point_at, lambda x, c=c, r=radius: float(np.abs(x - c).sum()) - r, weight)
        found = solve_curved(Request(K, constraints.Norm1(c, radius), y, max_multiplier=np.array([weight])))
        assert found is not None
        assert found[2] == 0
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-9 * far)
        np.testing.assert_allclose(point_at(float(found[1][0])), expected, rtol=0, atol=1e-9 * far)


@pytest.mark.parametrize("far", [1.0, 100.0])
@pytest.mark.parametrize("kind", BOUNDS)
def test_a_ball_of_the_maximum_norm_against_bisection(kind: str, far: float) -> None:
    """It is a box around its center; its multiplier is what the coordinates that it holds are pulled by."""
    rng = np.random.default_rng([len(kind), int(far)])
    for n in (1, 2, 5, 30):
        K, lower, upper, total = bounds_and_sum(kind, n, rng)
        y, inside = far * rng.normal(size=n), K.project(rng.normal(size=n))
        c = inside + 0.1 * rng.uniform(-1, 1, n)
        radius = float(np.abs(inside - c).max()) + 0.05
        expected = curved.norm1_points(np.maximum(lower, c - radius), np.minimum(upper, c + radius), total, c, y)(0.0)
        found = solve_projection(K, constraints.NormInf(c, radius), y)
        assert found.method == "curved"
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9 * far)
        assert found.multipliers is not None
        relaxed = cocopt.hinge_prox(K, constraints.NormInf(c, radius), y, weight=float(found.multipliers[0]) + 1e-6)
        np.testing.assert_allclose(relaxed, expected, rtol=0, atol=1e-6 * far)
        if float(found.multipliers[0]) > 1e-3:  # with a smaller weight the row is not worth meeting
            relaxed = cocopt.hinge_prox(K, constraints.NormInf(c, radius), y, weight=0.9 * float(found.multipliers[0]))
            assert float(np.abs(relaxed - c).max()) > radius


@pytest.mark.parametrize("kind", BOUNDS)
def test_empty_feasible_and_switched_off_balls_of_other_norms(kind: str) -> None:
    rng = np.random.default_rng(2)
    K, lower, upper, total = bounds_and_sum(kind, 5, rng)
    inside, c = K.project(rng.normal(size=5)), np.full(5, 2.0)
    for norm in (constraints.Norm1, constraints.NormInf):
        np.testing.assert_array_equal(cocopt.project(K, norm(inside + 0.01, 0.5), inside), inside)
        y = 3 * rng.normal(size=5)
        np.testing.assert_allclose(cocopt.project(K, norm(c, np.inf), y), K.project(y), rtol=0, atol=1e-12)
        with pytest.raises(errors.InvalidInput, match="radius: expected finite"):
            cocopt.project(K, norm(c, np.nan), y)
        least = curved.norm1_points(lower, upper, total, c, y)(1e6) - c
        found = solve_projection(K, norm(c, 0.1), y, infeasible="nearest")
        assert not found.feasible
        if norm is constraints.Norm1:
            np.testing.assert_allclose(found.least_violation, np.abs(least).sum() - 0.1, rtol=1e-9)
            np.testing.assert_allclose(found.point, c + least, rtol=0, atol=1e-9)
    shifted = constraints.Shifted(constraints.Norm1(inside, 0.7), [0.2])
    same = constraints.Norm1(inside, 0.5)
    expected = cocopt.project(K, same, 2 * c)
    np.testing.assert_allclose(cocopt.project(K, shifted, 2 * c), expected, rtol=0, atol=1e-12)
    assert cocopt.explain(K, same).startswith("curved: compiled, a ball of the 1-norm over bounds")


@pytest.mark.parametrize("seed", range(60))
def test_a_quadratic_row_through_a_vertex_of_the_box(seed: int) -> None:
    """There the row is flat at its root, and Newton's method proposes no number."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    lower = rng.normal(size=n)
    upper = lower + rng.exponential(size=n)
    P, q = np.diag(rng.uniform(0.1, 2.0, n) * (seed % 3 > 0)), rng.normal(size=n)
    vertex = np.where(rng.random(n) < 0.5, lower, upper)
    g = constraints.Quadratic(P, q, -(0.5 * vertex @ P @ vertex + q @ vertex))
    y = vertex + rng.normal(size=n)
    x = cocopt.project(cocopt.Box(lower, upper), g, y)
    assert g.value(x) <= 1e-9 * float(g.magnitude(x)[0])
    assert np.linalg.norm(x - y) <= np.linalg.norm(vertex - y) * (1.0 + 1e-9)  # the vertex is feasible


def test_a_quadratic_row_that_is_flat_at_its_root() -> None:
    K = cocopt.Box([-0.28074959762462937, -0.7298758571462248], [-0.014104497269692262, 0.06106480115309221])
    g = constraints.Quadratic(np.zeros((2, 2)), [1.4334892447639696, -1.1285167758823162], 0.089131297656089)
    x = cocopt.project(K, g, [0.5159658877009865, 0.04716309469180385])
    np.testing.assert_allclose(x, K.upper, atol=1e-12)


@pytest.mark.parametrize(
    ("K", "center", "expected"),
    [
        (cocopt.Simplex(1), [0.5], [1.0]),
        (cocopt.Box(1.0, 1.0, dim=1), [0.5], [1.0]),
        (cocopt.Box([1.0, 0.0], [1.0, 0.0]), [0.5, 0.5], [1.0, 0.0]),
    ],
)
def test_a_penalty_is_finite_where_the_constraint_cannot_be_met(
    K: Any, center: list[float], expected: list[float]
) -> None:
    x = cocopt.hinge_prox(K, constraints.Norm1(center, 0.25), np.zeros(len(center)), weight=1.0, rho=0.05)
    np.testing.assert_allclose(x, expected, atol=1e-12)
