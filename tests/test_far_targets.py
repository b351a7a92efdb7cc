"""Projections of targets that are far away compared with the size of the set."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import cocopt
from cocopt import Ball, Box, Ellipsoid, Halfspace, Simplex, constraints
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection
from cocopt.solvers import daqp


def test_a_far_target() -> None:
    """‖y‖ = 1e8 beside a unit set: the result is in K, and on the row to a few units in the last place of y."""
    rng = np.random.default_rng(0)
    for K in (Box(0.0, 1.0, dim=5), Ball(0.0, 1.0, dim=5), Simplex(5)):
        y = 1e8 * rng.normal(size=(50, 5))
        A = rng.normal(size=5)
        g = constraints.Affine(A, A @ K.project(rng.normal(size=5)) + 0.01)
        x = cocopt.project(K, g, y)
        assert K.violation(x).max() <= 1e-9
        assert g.value(x).max() <= 4 * np.spacing(np.abs(y).max()) * np.linalg.norm(A)


@pytest.mark.parametrize("count", [20, 4000], ids=["kernel", "daqp"])
def test_targets_in_the_normal_cone_of_a_vertex_project_onto_it(count: int) -> None:
    """z + Nᵀλ with λ ≥ 0 and N the rows that bind at z, up to 10^6 times as far away as z is long."""
    solved = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, reach = 6, 10.0 ** rng.integers(0, 7)
        z, N, A = rng.normal(size=n), rng.normal(size=(n, n)), rng.normal(size=(count, n))
        if np.linalg.cond(N) > 100:
            continue
        g = constraints.Affine(np.concatenate([N, A]), np.concatenate([N @ z, A @ z + rng.uniform(0.1, 1.0, count)]))
        found = solve_projection(Box(-10.0, 10.0, dim=n), g, z + reach * rng.uniform(0.1, 1.0, n) @ N)
        solved += 1
        np.testing.assert_allclose(found.point, z, rtol=0, atol=1e-11)
        assert found.method == ("kernel" if count == 20 else "daqp")
    assert solved > 10


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e6])
@pytest.mark.parametrize("offset", [1.0, 1e3])
@pytest.mark.parametrize("kind", ["Ball", "Box", "unbounded"])
def test_small_curved_sets_far_from_the_origin_and_from_the_target(kind: str, offset: float, reach: float) -> None:
    """z + λ·(its normals) projects onto z, where surfaces of a set of size 1 meet, however far away both are."""
    n = 4
    for seed in range(3):
        rng = np.random.default_rng(seed)
        center, normals = offset * rng.normal(size=n), np.linalg.qr(rng.normal(size=(n, n)))[0]
        z = center + rng.normal(size=n)
        P = np.diag(rng.uniform(0.5, 2.0, n))  # ½(x − z)ᵀP(x − z) + ⟨normal, x − z⟩ ≤ 0 has z on its boundary
        square = constraints.Quadratic(P, normals[0] - P @ z, 0.5 * z @ P @ z - normals[0] @ z)
        g = constraints.Stack([square, constraints.NormBall(z - normals[1], 1.0)])
        K: Any = Box(-np.inf, np.inf, dim=n)
        if kind == "Ball":
            K = Ball(z - 1.5 * normals[2], 1.5)
        elif kind == "Box":
            K, normals[2] = Box(z - 1.0, z + np.array([0.0, 1.0, 1.0, 1.0])), np.eye(n)[0]
        used = normals[: 2 if kind == "unbounded" else 3]
        y = z + reach * rng.uniform(0.2, 1.0, len(used)) @ used
        x = cocopt.project(K, g, y)
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-8 * np.abs(z).max() + 1e-14 * reach)


@pytest.mark.parametrize("reach", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Product"])
def test_targets_in_the_normal_cone_of_curved_surfaces_project_onto_their_intersection(kind: str, reach: float) -> None:
    """As for a vertex, with cones, quadratics and bounds through z, some of them with a multiplier of 0."""
    n = 8
    for seed in range(15):
        rng = np.random.default_rng(seed)
        z, P = rng.normal(size=n), np.diag(rng.uniform(0.1, 2.0, n))
        slopes = rng.normal(size=(2, n))
        square = constraints.Quadratic(P, slopes[0] - P @ z, 0.5 * z @ P @ z - slopes[0] @ z)
        A, b, c = rng.normal(size=(3, n)), rng.normal(size=3), rng.normal(size=n)
        tail = A @ z + b
        slopes[1] = tail @ A / np.linalg.norm(tail) - c
        cone = constraints.SecondOrder(A, b, c, np.linalg.norm(tail) - c @ z)
        lower, upper = z - rng.uniform(0.1, 1.0, n), z + rng.uniform(0.1, 1.0, n)
        lower[0], upper[1] = z[0], z[1]  # the first two bind
        normals = [*slopes, -np.eye(n)[0], np.eye(n)[1]]
        K: Any = Box(lower, upper)
        if kind == "Ball":
            K, normals[2:] = Ball(z - 2.0 * slopes[0], 2.0 * np.linalg.norm(slopes[0])), [slopes[0]]
        elif kind == "Product":
            K = cocopt.Product([Box(lower[:4], upper[:4]), Box(lower[4:], upper[4:])])
        weights = rng.uniform(0.2, 1.0, len(normals)) * (rng.random(len(normals)) < 0.7)
        direction = weights @ np.array(normals)
        y = z + reach * direction / max(float(np.linalg.norm(direction)), 1e-12)
        x = cocopt.project(K, constraints.Stack([square, cone]), y)
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-8)


def test_multipliers_are_as_accurate_as_the_point_for_far_targets() -> None:
    """point − x = Aᵀν to rounding of the point, also where x was refined from a nearer target."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, M = 8, 30
        A, free = rng.normal(size=(1, M, n)), np.full(n, np.inf)
        point = 10.0 ** rng.integers(0, 8) * rng.normal(size=(1, n))
        x, nu, status = daqp.project(-free, free, A, np.ones((1, M)), 0, point)
        assert status[0] == 0
        residual = np.abs(point - x - np.vecmat(nu, A)).max()
        assert residual <= 1e-13 * np.abs(point).max()


@pytest.mark.parametrize("seed", range(6))
def test_a_single_feasible_point_far_from_the_target(seed: int) -> None:
    """So many rows through one point that no other is feasible, which a solver may mistake for infeasibility."""
    rng = np.random.default_rng(seed)
    n = 40
    z, A = rng.dirichlet(np.ones(n)), rng.normal(size=(110, n))
    x = cocopt.project(Simplex(n), constraints.Affine(A, A @ z), z + 1e6 * rng.normal(size=(4, n)))
    np.testing.assert_allclose(x, np.broadcast_to(z, (4, n)), rtol=0, atol=1e-7)


@pytest.mark.parametrize("reach", [1.0, 1e2, 1e4, 1e6])
def test_curved_constraints_and_far_targets(reach: float) -> None:
    """A ball inside a box, and one that a plane cuts, where the projection has a formula."""
    rng, cut = np.random.default_rng(0), 0
    for _ in range(10):
        n = int(rng.integers(2, 12))
        c, y = rng.uniform(-0.3, 0.3, n), reach * rng.normal(size=n)
        x = cocopt.project(Box(-1.0, 1.0, dim=n), constraints.NormBall(c, 0.5), y)
        np.testing.assert_allclose(x, c + 0.5 * (y - c) / np.linalg.norm(y - c), rtol=0, atol=1e-9)
        y = c + np.append((y - c)[:-1], reach)  # first to the upper plane, then within it
        g = constraints.Stack([constraints.NormBall(c, 0.5), constraints.Affine(np.eye(n)[-1], c[-1] + 0.3)])
        x = cocopt.project(Box(-1.0, 1.0, dim=n), g, y)
        away = (y - c)[:-1]
        within = min(0.4, float(np.linalg.norm(away))) * away / np.linalg.norm(away)
        if np.linalg.norm(y - c) * 0.3 <= reach * 0.5:  # the plane is active
            cut += 1
            np.testing.assert_allclose(x, c + np.append(within, 0.3), rtol=0, atol=1e-9)
    assert cut > 0


@pytest.mark.parametrize("reach", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("K", [Halfspace([1.0, 0.0, 0.0], 0.1), Box(-np.inf, np.inf, dim=3)], ids=["Halfspace", "Box"])
def test_an_unbounded_set_and_a_ball_and_far_targets(K: Any, reach: float) -> None:
    """The target's projection onto K is as far away as the target; the result is that onto the ball or a disc of it."""
    for y in reach * np.random.default_rng(0).normal(size=(10, 3)):
        x = cocopt.project(K, constraints.NormBall(np.zeros(3), 1.0), y)
        expected = y / max(1.0, float(np.linalg.norm(y)))
        if not K.contains(expected):
            rim = np.sqrt(1.0 - 0.1**2)
            expected = np.append(0.1, y[1:] * min(1.0, rim / float(np.linalg.norm(y[1:]))))
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("reach", [1e4, 1e6, 1e8])
def test_a_ball_and_a_row_and_targets_far_along_its_normal(reach: float) -> None:
    """y − ν a cancels all but a few digits of x; the row holds to rounding nevertheless."""
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(300, 2)), 0.3 * rng.normal(size=(300, 2))
    g = constraints.Affine(a[:, None], 0.1 * np.linalg.norm(a, axis=1)[:, None])
    K = Ball(0.0, 1.0, dim=2)
    x = cocopt.project(K, g, y + reach * a)
    assert g.value(x).max() <= 1e-10
    assert K.violation(x).max() <= 1e-10


def test_a_least_violation_below_zero_is_no_proof_of_emptiness() -> None:
    A = [[0.88, 0.49], [-0.45, -0.02], [-0.65, -2.2], [0.21, 0.38]]
    A, b = np.array([*A, [-0.42, -0.56], [-1.37, -1.05], [0.7, 0.94]]), [-7.5e-10, 5e-3, -6e-10, 4e-3, 2e-3, 1e-2, 5e-3]
    K = Ellipsoid([0.105, -0.313], [[0.0776, -0.0492], [-0.0492, 0.84]])
    x = cocopt.project(K, constraints.Affine(A, b), [9.8e7, 1.8e7])
    assert K.contains(x)
    assert (A @ x - b).max() <= 1e-9


@pytest.mark.parametrize("reach", [1e3, 1e6, 1e8])
@pytest.mark.parametrize(
    "g",
    [
        constraints.Quadratic(np.eye(3), np.zeros(3), -0.25),
        constraints.NormBall(np.zeros(3), 0.8),
        constraints.SecondOrder(np.eye(3), np.zeros(3), np.zeros(3), 0.8),
    ],
)
@pytest.mark.parametrize("K", [cocopt.Halfspace([1.0, 1.0, 1.0], 1.0), Box(-1.0, 1.0, dim=3)])
def test_violations_are_not_measured_in_units_of_a_far_target(K: Any, g: Any, reach: float) -> None:
    """The projection onto K is as far away as the target: tolerances must not be measured there."""
    x = cocopt.project(K, g, reach * np.array([1.0, 1.0, -0.3]))
    assert (g.rows(x) <= 1e-9 * g.magnitude(x)).all()
    assert K.violation(x) <= 1e-9
    radius = np.linalg.norm(x)
    np.testing.assert_allclose(x / radius, np.array([1.0, 1.0, -0.3]) / np.sqrt(2.09), atol=2e-3)


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e7])
def test_a_ball_and_rows_hold_to_rounding_for_far_targets(reach: float) -> None:
    rng = np.random.default_rng(0)
    K = Ball(0.0, 1.0, dim=4)
    A = rng.normal(size=(60, 40, 4))
    g = constraints.Affine(A, 0.3 * np.linalg.norm(A, axis=-1) * rng.uniform(size=(60, 40)))
    x = cocopt.project(K, g, reach * rng.normal(size=(60, 4)))
    assert np.linalg.norm(x, axis=-1).max() <= 1.0 + 1e-12
    assert (g.rows(x) <= 1e-12 * g.magnitude(x)).all()


FAR = [1e11, 1e14, 1e15, 1e16, 1e18, 1e30, 1e100, 1e140]


@pytest.mark.parametrize("reach", FAR)
@pytest.mark.parametrize("trials", [1, 9])
def test_a_vertex_of_each_kind_of_set_is_found_from_any_distance(reach: float, trials: int) -> None:
    """The direction is inside the normal cone of the vertex, however long it is made."""
    one, two = constraints.Affine([[1.0, 0.0]], [0.4]), constraints.Affine([[1.0, 0.0], [0.0, 1.0]], [0.4, 0.8])
    square = cocopt.Polyhedron([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0, 1.0, 1.0])
    down, up = np.array([reach, -0.5 * reach]), np.array([reach, 0.5 * reach])
    for K, g, y, vertex in [
        (Simplex(2), one, down, [0.4, 0.6]),
        (Simplex(2), two, down, [0.4, 0.6]),
        (cocopt.CappedSimplex(2, 0.9), one, down, [0.4, 0.6]),
        (Box(0.0, 1.0, dim=2), one, down, [0.4, 0.0]),
        (Box(0.0, 1.0, dim=2), two, up, [0.4, 0.8]),
        (square, two, up, [0.4, 0.8]),
        (Ball(0, 1.0, dim=2), constraints.Affine([[1.0, 0.0]], [0.6]), up, [0.6, 0.8]),
        (Ball(0, 1.0, dim=2), constraints.Affine([[1.0, 0.0], [0.0, 1.0]], [0.6, 0.5]), up, [0.6, 0.5]),
        (Ellipsoid(0, np.diag([4.0, 1.0])), constraints.Affine([[1.0, 0.0]], [1.2]), up, [1.2, 0.8]),
        (cocopt.L1Ball(0, 1.0, dim=2), constraints.Affine([[1.0, 0.0]], [0.6]), up, [0.6, 0.4]),
        (Box(0.0, 1.0, dim=2), constraints.NormBall([0.0, 0.0], 0.5), up, [0.2 * 5**0.5, 0.1 * 5**0.5]),
    ]:
        x = cocopt.project(K, g, np.tile(y, (trials, 1)))
        np.testing.assert_allclose(x, np.tile(vertex, (trials, 1)), rtol=0, atol=1e-7, err_msg=repr((K, g)))


@pytest.mark.parametrize("reach", FAR)
@pytest.mark.parametrize("count", [20, 150], ids=["kernel", "daqp"])
def test_targets_in_the_normal_cone_of_a_vertex_at_any_distance(count: int, reach: float) -> None:
    """As above, but from where the rounding of the target exceeds the polyhedron."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 6
        z, N, A = rng.normal(size=n), np.linalg.qr(rng.normal(size=(n, n)))[0], rng.normal(size=(count, n))
        g = constraints.Affine(np.concatenate([N, A]), np.concatenate([N @ z, A @ z + rng.uniform(0.1, 1.0, count)]))
        x = cocopt.project(Box(-10.0, 10.0, dim=n), g, z + reach * rng.uniform(0.1, 1.0, n) @ N)
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-10)


@pytest.mark.parametrize("reach", FAR)
def test_one_curved_row_over_a_simplex_from_any_distance(reach: float) -> None:
    """The same point from every distance: that of a target which is near, in the same direction."""
    tail = constraints.SecondOrder([[-0.17, 0.33]], [1.655], [0.016, 0.187], 1.559)
    direction = np.array([0.17, 1.0])
    near = cocopt.project(Simplex(2), tail, 1e3 * direction)
    np.testing.assert_allclose(cocopt.project(Simplex(2), tail, reach * direction), near, rtol=0, atol=1e-7)


def test_far_targets_beside_an_interval() -> None:
    """Where x = y − ν a is lost in the rounding of y altogether."""
    interval = constraints.Affine([[1.0], [-1.0]], [-0.55, 5.0])
    assert cocopt.project(Box(-np.inf, np.inf, dim=1), interval, [1e16]) == pytest.approx([-0.55])
    assert cocopt.project(Halfspace([1.0], -0.55), constraints.Affine([[1.0]], [-1.0]), [1e16]) == pytest.approx([-1.0])


def test_the_apex_of_a_cone_is_found_from_any_distance() -> None:
    """No number in the data says what is small beside it."""
    cone = constraints.Affine([[1.0, 0.3], [-0.2, 1.0]], [0.0, 0.0])
    for reach in (1e-20, 1.0, 1e16, 1e100):
        x = cocopt.project(Box(-np.inf, np.inf, dim=2), cone, reach * np.array([1.0, 1.3]))
        assert np.abs(x).max() <= 1e-15 * min(reach, 1.0)


def test_a_step_of_any_length_ends_at_a_vertex() -> None:
    """CLASP over a polyhedron, and with persistent constraints, which have a kernel of their own."""
    square = cocopt.Polyhedron([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 1.0, 1.0, 1.0])
    for K in (square, Box(-1.0, 1.0, dim=2)):
        for window in (1, None):
            for size in (1e16, 1e18, 1e40):
                learner = cocopt.CLASP(K, beta=0.5, window=window)
                learner.ask()
                learner.tell(cocopt.losses.Linear([-size, 0.5 * size]), constraints.Affine([[1.0, 0.0]], [0.75]))
                np.testing.assert_allclose(learner.ask(), [0.75, -1.0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [2, 5, 40, 300])
@pytest.mark.parametrize("reach", [1e100, 1e149, 1.1e150, 1e154, 1e200, 1e300])
def test_a_simplex_and_huge_targets_without_a_warning_of_overflow(n: int, reach: float) -> None:
    """The vertex, or an error that says why not; squares of such numbers overflow, products with slopes too."""
    row = constraints.Affine(np.linspace(1.0, 0.0, n)[None], [0.4])
    y = reach * np.linspace(1.0, -0.5, n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for g, first in ((None, 1.0), (row, 0.4), (constraints.NormBall(np.full(n, 1.0 / n), 0.3), None)):
            try:
                x = cocopt.project(Simplex(n), g, y)
            except InvalidInput as error:
                assert reach > 1e149
                assert "too" in str(error)  # noqa: PT017
                continue
            assert x.sum() == pytest.approx(1.0, rel=1e-12)
            if first is not None and n == 2:
                assert x[0] == pytest.approx(first, abs=1e-9)
            elif g is row:
                assert row.value(x) <= 1e-9


def test_a_target_too_far_to_be_projected_exactly_is_refused() -> None:
    """Beyond what can be computed, an error says so."""
    for K in (Box(0.0, 1.0, dim=2), Ball(0, 1.0, dim=2), Ellipsoid(0, np.diag([4.0, 1.0]))):
        with pytest.raises(InvalidInput, match="too far away"):
            cocopt.project(K, constraints.SecondOrder(np.eye(2), np.zeros(2), [0.1, 0.0], 0.5), [1e160, -0.5e160])
        with pytest.raises(InvalidInput, match="too large"):
            cocopt.project(K, None, [1e160, -0.5e160])


@pytest.mark.parametrize("reach", [1e4, 1e9, 1e15])
def test_an_empty_round_far_away_is_recognised(reach: float) -> None:
    """A failure in a step of one method leaves the trial to the next; the least violation decides."""
    K, g = Ellipsoid(0, np.diag([0.25, 1.0])), constraints.NormBall([0.0, 5.0], 0.5)
    with pytest.raises(InfeasibleRound, match=r"3\.5"):
        cocopt.project(K, g, [reach, reach])
    x = cocopt.project(K, g, [reach, reach], infeasible="nearest")
    np.testing.assert_allclose(x, [0.0, 1.0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("reach", [1e4, 1e6])
@pytest.mark.parametrize(
    "K", [Simplex(3, 2.5), Ball(1.0, 1.0, dim=3), Box(0.0, np.inf, dim=3)], ids=["Simplex", "Ball", "Box"]
)
def test_pieces_that_are_equal_at_the_projection_and_all_along_the_way_to_the_target(K: Any, reach: float) -> None:
    """Two entries of |x − c| are the largest there; neither slope alone has a normal that the target agrees with."""
    center, radius = np.array([2.25, 2.25, 0.0]), 1.352236810506596
    y = reach * np.array([0.048, 0.048, 0.367])
    g = constraints.NormInf(center, radius)
    x = cocopt.project(K, g, y)
    assert K.violation(x) <= 1e-9
    assert g.value(x) <= 1e-9
    assert x[0] == pytest.approx(x[1], abs=1e-9)
    rows = constraints.Affine(np.concatenate([np.eye(3), -np.eye(3)]), np.concatenate([center, -center]) + radius)
    np.testing.assert_allclose(x, cocopt.project(K, rows, y), rtol=0, atol=1e-7)
