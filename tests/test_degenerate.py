"""Projections in degenerate cases: redundant and dependent rows, single feasible points, tangency, equal bounds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from instances import CONSTRAINTS, POSITION, SETS, affine_case, build, build_set, instance
from reference import projections as reference
from reference.least_squares import nnls
from reference.projections import Description

import cocopt
from cocopt import Ball, Box, Ellipsoid, L1Ball, Simplex, constraints
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry.batch import solve_batch
from cocopt.geometry.problem import Request


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(
    "extend",
    [
        pytest.param(lambda A, b: (np.vstack([A, A]), np.tile(b, 2)), id="duplicate"),
        pytest.param(lambda A, b: (np.vstack([A, 3 * A]), np.concatenate([b, 3 * b])), id="duplicate, scaled"),
        pytest.param(lambda A, b: (np.vstack([A, A]), np.concatenate([b, b + 0.5])), id="parallel"),
        pytest.param(lambda A, b: (np.vstack([A, -A]), np.concatenate([b, 50 - b])), id="opposite"),
        pytest.param(lambda A, b: (np.vstack([A, A.sum(axis=0)]), np.append(b, b.sum())), id="redundant"),
        pytest.param(lambda A, b: (np.vstack([A, 0 * A]), np.concatenate([b, 0 * b])), id="zero"),
        pytest.param(lambda A, b: (np.vstack([A, A[::-1]]), np.append(b, np.full(len(b), np.inf))), id="+inf"),
        pytest.param(lambda A, b: (np.vstack([A, 0 * A]), np.append(b, np.full(len(b), np.inf))), id="zero and +inf"),
    ],
)
def test_rows_that_add_nothing_change_nothing(kind: str, extend: Any) -> None:
    for seed, count in enumerate((1, 2, 3)):
        described, A, b, y = affine_case(kind, 4, count, seed)
        K = build_set(described)
        expected = reference.project(described, ("Affine", A, b), y)
        x = cocopt.project(K, constraints.Affine(*extend(A, b)), y)
        np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("kind", SETS)
def test_rows_without_a_bound_leave_the_projection_onto_K(kind: str) -> None:
    described, A, _, y = affine_case(kind, 3, 2, 0)
    K = build_set(described)
    for rows in (A, 0 * A):
        x = cocopt.project(K, constraints.Affine(rows, np.full(2, np.inf)), y)
        np.testing.assert_allclose(x, K.project(y), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_zero_row_with_negative_right_hand_side_is_infeasible(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 3, count, 0)
    A[-1], b[-1] = 0.0, -0.25
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(build_set(described), constraints.Affine(A, b), y)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], rtol=1e-7)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", SETS)
def test_a_feasible_target_is_returned_bit_for_bit(kind: str, constraint: str) -> None:
    for seed in range(3):
        case = instance(kind, constraint, 4, seed)
        K = build_set(case.K)
        inside = K.project(case.z)
        np.testing.assert_array_equal(cocopt.project(K, build(case.g), inside), inside)
        batch = np.stack([inside, case.z + 3.0])
        np.testing.assert_array_equal(cocopt.project(K, build(case.g), batch)[0], inside)


@pytest.mark.parametrize(
    ("K", "g", "point"),
    [
        (Box(0.0, 1.0, dim=4), constraints.Affine(-np.ones(4), -4.0), np.ones(4)),
        (Box([0.0, 1.0], [1.0, 1.0]), constraints.Affine([-1.0, 0.0], -1.0), [1.0, 1.0]),
        (Box(-np.inf, np.inf, dim=2), constraints.Affine([[1, 0], [-1, 0], [0, 1], [0, -1]], [3, -3, 4, -4]), [3, 4]),
        (Simplex(4), constraints.Affine([-1.0, 0.0, 0.0, 0.0], -1.0), [1.0, 0.0, 0.0, 0.0]),
        (Simplex(3), constraints.Affine([3.0, 2.0, 1.0], 1.0), [0.0, 0.0, 1.0]),
        (cocopt.Halfspace([1.0, 0.0], 1.0), constraints.Affine([[-1, 0], [0, 1], [0, -1]], [-1, 2, -2]), [1.0, 2.0]),
        (
            cocopt.Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)),
            constraints.Affine([-1.0, -1.0], -2.0),
            [1.0, 1.0],
        ),
        (cocopt.L1Ball([0.0, 0.0], 2.0), constraints.Affine([-1.0, 0.0], -2.0), [2.0, 0.0]),
    ],
)
def test_a_single_feasible_point_is_found(K: Any, g: Any, point: Any) -> None:
    targets = np.random.default_rng(0).normal(size=(20, K.dim)) * 3
    x = cocopt.project(K, g, targets)
    np.testing.assert_allclose(x, np.broadcast_to(np.asarray(point, float), x.shape), rtol=0, atol=POSITION)


@pytest.mark.parametrize(
    ("K", "g", "point"),
    [
        (Ball(0.0, 5.0, dim=2), constraints.Affine([-3.0, -4.0], -25.0), [3.0, 4.0]),
        (
            Ball(0.0, 5.0, dim=2),
            constraints.Affine([[-3.0, -4.0], [-6.0, -8.0], [1.0, 0.0]], [-25.0, -50.0, 9.0]),
            [3, 4],
        ),
        (Box(0.0, 1.0, dim=2), constraints.NormBall([2.0, 0.5], 1.0), [1.0, 0.5]),
        (Ball(0.0, 1.0, dim=2), constraints.NormBall([3.0, 0.0], 2.0), [1.0, 0.0]),
        (Simplex(2, 2.0), constraints.NormBall([2.0, 2.0], 2**0.5), [1.0, 1.0]),
        (cocopt.Ellipsoid([0.0, 0.0], np.diag([4.0, 1.0])), constraints.Affine([0.0, -1.0], -1.0), [0.0, 1.0]),
        (Box(-1.0, 1.0, dim=2), constraints.Quadratic(2 * np.eye(2), [-4.0, 0.0], 3.0), [1.0, 0.0]),
        (Box(-1.0, 1.0, dim=2), constraints.SecondOrder(np.eye(2), [-2.0, 0.0], [0.0, 0.0], 1.0), [1.0, 0.0]),
        (Ball([3.0, 4.0], 0.0), constraints.Affine([1.0, 1.0], 7.0), [3.0, 4.0]),
    ],
)
def test_the_only_feasible_point_where_two_boundaries_touch(K: Any, g: Any, point: Any) -> None:
    """One feasible point, where two boundaries touch: violations ε move it by √(4rε) along the tangent."""
    targets = np.random.default_rng(0).normal(size=(8, 2)) * 3
    x = cocopt.project(K, g, targets)
    np.testing.assert_allclose(x, np.broadcast_to(np.asarray(point, float), x.shape), rtol=0, atol=4e-4)
    assert K.violation(x).max() <= 1e-9 * 5
    assert (g.rows(x) / g.magnitude(x)).max() <= 1e-9


@pytest.mark.parametrize("target", [0.0, 1e-6, 1.0, 1e3, 1e9])
def test_a_tiny_polyhedron_that_two_rows_leave_one_point_of(target: float) -> None:
    """{x ≥ 0, Σ x_i ≤ 1e-6, Σ i x_i ≥ 4e-6} in four dimensions is the point (0, 0, 0, 1e-6), where rows touch."""
    A, b = np.vstack([np.ones(4), -np.arange(1.0, 5.0)]), np.array([1e-6, -4e-6])
    whole = cocopt.Polyhedron(np.vstack([-np.eye(4), A]), np.append(np.zeros(4), b))
    expected = np.array([0.0, 0.0, 0.0, 1e-6])
    for x in (
        whole.project(np.full(4, target)),
        cocopt.project(cocopt.Orthant(4), constraints.Affine(A, b), np.full(4, target)),
        cocopt.project(whole, constraints.Affine(A, b), np.full((3, 4), target)),
    ):
        np.testing.assert_allclose(x, np.broadcast_to(expected, x.shape), rtol=0, atol=1e-13)
    with pytest.raises(cocopt.errors.EmptySet, match="no common point"):
        cocopt.Polyhedron(np.vstack([-np.eye(4), A]), np.append(np.zeros(4), b * [1.0, 1.1]))


def test_a_ball_and_a_row_that_meet_at_an_angle_are_solved_exactly() -> None:
    """The optimum lies where the ball and the row meet at a right angle to the target: well conditioned, so exact."""
    x = cocopt.project(Ball(0.0, 1.0, dim=2), constraints.Affine([1.0, 0.0], 0.6), [5.0, 0.8])
    np.testing.assert_allclose(x, [0.6, 0.8], atol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 12, 60])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([0.0, 0.5, -1.0, 0.3], [1.0, 0.5, 1.0, 0.3]),
        ([0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]),
        ([-np.inf, 0.0, -np.inf, 0.0], [1.0, np.inf, np.inf, 1.0]),
        ([-np.inf] * 4, [np.inf] * 4),
        ([0.0] * 4, [np.inf] * 4),
        ([-np.inf, 0.5, 0.0, 0.0], [np.inf, 0.5, np.inf, 1.0]),
    ],
)
def test_equal_and_infinite_bounds(lower: list[float], upper: list[float], count: int) -> None:
    described: Description = ("Box", np.array(lower), np.array(upper))
    rng = np.random.default_rng(count)
    A = rng.normal(size=(count, 4))
    z = np.array([0.5, 0.5, 0.5, 0.3 if upper[3] == 0.3 else 0.5])
    g: Description = ("Affine", A, A @ z + rng.uniform(0, 0.2, count))
    y = 3 * rng.normal(size=4)
    x = cocopt.project(build_set(described), build(g), y)
    expected = reference.least_distance(*reference.all_rows(described, g), y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))
    np.testing.assert_array_equal(x[np.equal(lower, upper)], np.array(lower)[np.equal(lower, upper)])


@pytest.mark.parametrize("reach", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("K", [L1Ball(0.1, 2.0, dim=3), Ellipsoid(np.full(3, 0.1), np.eye(3)), Ball(0.1, 2.0, dim=3)])
def test_the_tip_of_a_cone_at_the_origin(K: Any, reach: float) -> None:
    """Rows without rhs-hand sides leave nothing at 0 that could measure a violation but the scale of K."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        A = rng.normal(size=(3, 3))
        rows = constraints.Stack([constraints.Affine(A, np.zeros(3)), constraints.NormBall(np.zeros(3), 1.0)])
        x = cocopt.project(K, rows, reach * rng.uniform(0.1, 1.0, 3) @ A)  # normal to the cone at its tip
        np.testing.assert_allclose(x, np.zeros(3), rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_overflow_inside_a_kernel_is_no_error(n: int) -> None:
    """The rows leave one point, where they touch the ball: there is no finite multiplier."""
    c = np.full(n, 0.55)
    A = 1e-9 * np.vstack([np.eye(n), -np.eye(n)])
    K, g = Ball(0.0, float(np.linalg.norm(c)), dim=n), constraints.Affine(A, A @ c)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_batch(Request(K, g, c - 1e12))  # the kernel itself is silent
        np.testing.assert_allclose(cocopt.project(K, g, c - 1e12), c, rtol=1e-9)


@pytest.mark.parametrize("seed", [34, 50, 57])
def test_many_dependent_rows_do_not_overflow(seed: int) -> None:
    """On the way several active rows depend on others in the few coordinates between their bounds."""
    rng = np.random.default_rng(seed)
    A, z = rng.normal(size=(20, 100, 50)), np.clip(rng.uniform(-1, 2, (20, 50)), 0.0, 1.0)
    y = rng.uniform(-1, 2, (20, 50))
    g = constraints.Affine(A, np.matvec(A, z) + 0.02 * rng.uniform(size=(20, 100)))
    K = Box(0.0, 1.0, dim=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_batch(Request(K, g, y))
    assert found is not None
    x, nu, status, _ = found
    assert not status.any()
    # KKT: the point follows from its multipliers, and only active rows have any
    np.testing.assert_allclose(x, np.clip(y - np.vecmat(nu, A), 0.0, 1.0), atol=1e-12)
    rows = g.rows(x)
    assert nu.min() >= 0.0
    assert rows.max() <= 1e-12
    assert np.abs(nu * rows).max() <= 1e-11


@pytest.mark.parametrize("apart", [None, 1e-5, 1e-9], ids=["independent", "near-copies", "nearer-copies"])
@pytest.mark.parametrize(("n", "M"), [(2, 40), (10, 32), (10, 100), (30, 100), (40, 60)])
def test_rows_that_nearly_all_bind(n: int, M: int, apart: float | None) -> None:
    """Rows come and go, and bounds are met and left, many times before the active set is found."""
    rng = np.random.default_rng(n + M)
    A, y, inside = rng.normal(size=(60, M, n)), rng.uniform(-1, 2, (60, n)), rng.uniform(size=(60, n))
    if apart is not None:
        A[:, M // 2 :] = A[:, : M - M // 2] + apart * rng.normal(size=(60, M - M // 2, n))
    g, K = constraints.Affine(A, np.matvec(A, inside) + 0.02 * rng.uniform(size=(60, M))), Box(0.0, 1.0, dim=n)
    found = solve_batch(Request(K, g, y))
    assert found is not None
    x, nu, status, method = found
    assert method == "kernel"
    assert not status.any()
    np.testing.assert_allclose(x, np.clip(y - np.vecmat(nu, A), 0.0, 1.0), atol=1e-12 * (1 + np.abs(nu).max()))
    rows = g.rows(x)
    assert nu.min() >= 0.0
    assert rows.max() <= 1e-12 * (1 + np.abs(nu).max())
    assert np.abs(nu * rows).max() <= 1e-11 * (1 + np.abs(nu).max()) ** 2


@pytest.mark.parametrize("far", [10.0, 1e3])
@pytest.mark.parametrize("outside", [1e-12, 1e-10, 1e-7])
def test_a_vertex_of_the_rows_just_outside_a_ball(outside: float, far: float) -> None:
    """From far away the vertex is the nearest point of the rows, whatever the ball's multiplier, but for large ones."""
    rng, solved = np.random.default_rng(0), 0
    for n in (2, 4, 6):
        vertex = rng.normal(size=(80, n))
        vertex *= (1.0 + outside) / np.linalg.norm(vertex, axis=-1, keepdims=True)
        A = rng.normal(size=(80, n, n))
        y = vertex + far * np.vecmat(rng.uniform(0.1, 1.0, (80, n)), A)
        for k in range(80):
            g = constraints.Affine(A[k], A[k] @ vertex[k])
            try:
                x = cocopt.project(Ball(0.0, 1.0, dim=n), g, y[k])
            except InfeasibleRound:
                continue  # the rows and the ball may have no point in common
            solved += 1
            assert (g.rows(x) / np.linalg.norm(A[k], axis=-1)).max() <= 1e-9
            assert np.linalg.norm(x) <= 1.0 + 1e-9
            normals = np.vstack([A[k][g.rows(x) >= -1e-7], x])
            _, residual = nnls(normals.T, y[k] - x)
            assert residual <= 1e-6 * np.linalg.norm(y[k] - x)
    assert solved > 120  # of 240


@pytest.mark.parametrize("K", [Box(0.0, 1.0, dim=2), Ball(0.0, 1.0, dim=2)], ids=["box", "ball"])
def test_rows_whose_squares_overflow_are_named(K: Any) -> None:
    A = np.array([1e-160, 1e160, 1.0, 1.0])[:, None] * np.vstack([np.eye(2), -np.eye(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="the data may overflow"):
            cocopt.project(K, constraints.Affine(A, A @ [0.2, 0.7]), [0.5, 0.5])
