"""K ∩ {g ≤ 0} without a point: the least violation, and the nearest point that attains it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from instances import POSITION, affine_case, build, build_set, instance, random_set
from reference import projections as reference
from reference.projections import Description

import cocopt
from cocopt import Ball, Box, Simplex, constraints
from cocopt.errors import InfeasibleRound
from cocopt.geometry import solve_projection


def infeasible_instance(kind: str, constraint: str, seed: int, by: float = 0.5) -> tuple[Description, Description]:
    """A set and a constraint that it can only meet with a violation of ``by``."""
    case = instance(kind, constraint, 4, seed)
    least = reference.least_violation(case.K, case.g)
    return case.K, raised(case.g, by - least)


def raised(g: Description, by: float) -> Description:
    """g + by."""
    match g:
        case ("Affine", A, b):
            return ("Affine", A, b - by)
        case ("NormBall", center, radius):
            return ("NormBall", center, radius - by)
        case ("Quadratic", P, q, r):
            return ("Quadratic", P, q, r + by)
        case ("SecondOrder", A, b, c, d):
            return ("SecondOrder", A, b, c, d - by)
        case ("Stack", parts):
            return ("Stack", [raised(part, by) for part in parts])
        case (kind, inner):
            return (kind, raised(inner, by))
    raise ValueError(g)


@pytest.mark.parametrize("count", [1, 2, 4, 12, 60])
@pytest.mark.parametrize("kind", ["Box", "Simplex", "Polyhedron", "L1Ball"])
def test_the_least_violation_is_that_of_a_linear_program(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 3, count, count)
    b = b + reference.least_violation_lp(described, A, b) - 0.25  # now 0.25 is the least
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(build_set(described), constraints.Affine(A, b), y)
    assert caught.value.trials == (0,)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], rtol=1e-7)


@pytest.mark.parametrize("unit", [1e-6, 1e-5, 1.0, 1e4, 1e5, 1e6])
def test_the_least_violation_of_rows_in_different_units(unit: float) -> None:
    """x ≤ −2 and x ≥ −1 in one unit, x ≤ 5 in another."""
    rows = constraints.Affine([[unit], [-unit], [1 / unit]], [-2 * unit, unit, 5 / unit])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-10.0, 10.0, dim=1), rows, [0.0])
    np.testing.assert_allclose(caught.value.least_violation, [unit / 2], rtol=1e-7)
    x = cocopt.project(Box(-10.0, 10.0, dim=1), rows, [0.0], infeasible="nearest")
    np.testing.assert_allclose(x, [-1.5], rtol=1e-9)


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("rhs", [1.0, 1e3, 1e6, 1e9, 1e11])
@pytest.mark.parametrize("size", [0.1, np.inf])
def test_the_least_violation_beside_a_row_with_much_slack(size: float, rhs: float, slope: float) -> None:
    rows = constraints.Affine([[slope, 0.0], [1.0, 0.0], [-1.0, 0.0]], [rhs, -0.05, -0.05])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-size, size, dim=2), rows, [0.02, 0.03])
    np.testing.assert_allclose(caught.value.least_violation, [0.05], rtol=1e-7)
    x = cocopt.project(Box(-size, size, dim=2), rows, [0.02, 0.03], infeasible="nearest")
    np.testing.assert_allclose(x, [0.0, 0.03], rtol=0, atol=1e-9)


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("rhs", [1.0, 1e6, 1e9, 1e11, 1e13])
def test_the_point_of_least_violation_is_in_K_beside_a_row_with_much_slack(rhs: float, slope: float) -> None:
    """Of {x ≥ 0, x_1 + x_2 ≤ 1, x_3 ≤ 5} with x_1 ≤ 0.5, x_1 ≥ 0.7 and x_1 + x_2 ≥ 1.2."""
    K = cocopt.Polyhedron(np.vstack([[1.0, 1.0, 0.0], -np.eye(3), [0.0, 0.0, 1.0]]), [1.0, 0.0, 0.0, 0.0, 5.0])
    A = [[slope, slope, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [-1.0, -1.0, 0.0]]
    rows = constraints.Affine(A, [rhs, 0.5, -0.7, -1.2])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, rows, [0.2, 0.3, 0.4])
    np.testing.assert_allclose(caught.value.least_violation, [0.2], rtol=1e-7)
    assert K.contains(cocopt.project(K, rows, [0.2, 0.3, 0.4], infeasible="nearest"))


@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Quadratic", "SecondOrder", "Stack", "from_cvxpy"])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "L1Ball", "Ellipsoid", "Product"])
def test_the_least_violation_is_that_of_cvxpy(kind: str, constraint: str) -> None:
    K, g = infeasible_instance(kind, constraint, seed=3)
    with pytest.raises(InfeasibleRound, match="no point in common") as caught:
        cocopt.project(build_set(K), build(g), np.ones(4))
    np.testing.assert_allclose(caught.value.least_violation, [0.5], rtol=1e-7)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Ellipsoid"])
def test_the_infeasible_trials_of_a_batch_are_listed(kind: str, count: int) -> None:
    rng = np.random.default_rng(count)
    described, z = random_set(kind, 3, rng)
    A = rng.normal(size=(6, count, 3))
    b = A @ z + 0.1
    bad = (1, 4)
    for i in bad:
        b[i] += reference.least_violation(described, ("Affine", A[i], b[i])) - 0.1 * i  # now 0.1·i is the least
    for shape in ((6,), (2, 3)):  # trials count along the flattened batch
        g = constraints.Affine(A.reshape(*shape, count, 3), b.reshape(*shape, count))
        with pytest.raises(InfeasibleRound, match="trials 1, 4") as caught:
            cocopt.project(build_set(described), g, rng.normal(size=(*shape, 3)))
        assert caught.value.trials == bad
        np.testing.assert_allclose(caught.value.least_violation, [0.1, 0.4], rtol=1e-7)


@pytest.mark.parametrize(
    ("K", "g"),
    [
        (Box(0.0, 1.0, dim=2), lambda gap: constraints.Affine([-1.0, -1.0], -2.0 - gap)),
        (Box(0.0, 1.0, dim=2), lambda gap: constraints.Affine([[1.0, 0.0], [-1.0, 0.0]], [0.5, -0.5 - 2 * gap])),
        (Ball(0.0, 1.0, dim=2), lambda gap: constraints.Affine([-1.0, 0.0], -1.0 - gap)),
        (Simplex(2), lambda gap: constraints.Affine([-1.0, 0.0], -1.0 - gap)),
        (Box(0.0, 1.0, dim=2), lambda gap: constraints.NormBall([2.0, 0.5], 1.0 - gap)),
        (cocopt.L1Ball([0.0, 0.0], 1.0), lambda gap: constraints.Affine([-1.0, 0.0], -1.0 - gap)),
        (cocopt.Polyhedron(np.eye(2), np.ones(2)), lambda gap: constraints.Affine([-1.0, -1.0], -2.0 - gap)),
    ],
)
def test_just_infeasible_is_relaxed_and_clearly_infeasible_is_not(K: Any, g: Any) -> None:
    """The least violation is ``gap``: at 1e-12 it is rounding, at 1e-6 it is infeasibility."""
    y = np.array([[0.3, 0.4], [-2.0, 3.0]])
    x = cocopt.project(K, g(1e-12), y)
    assert K.violation(x).max() <= 1e-9
    assert g(1e-12).value(x).max() <= 2e-9
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, g(1e-6), y)
    assert caught.value.trials == (0, 1)
    np.testing.assert_allclose(caught.value.least_violation, 1e-6, rtol=1e-3)


@pytest.mark.parametrize("gap", [0.0, -1e-12, -1e-9, -1e-6])
def test_just_feasible_is_feasible(gap: float) -> None:
    """A sliver of width |gap| in the corner (1, 1) of the unit box."""
    g = constraints.Affine([-1.0, -1.0], -2.0 - gap)
    x = cocopt.project(Box(0.0, 1.0, dim=2), g, [[0.3, 0.4], [-2.0, 3.0]])
    assert g.value(x).max() <= 1e-9
    np.testing.assert_allclose(x, 1.0, rtol=0, atol=1e-9 - 2 * gap)


@pytest.mark.parametrize("count", [1, 3, 12, 40])
@pytest.mark.parametrize("kind", ["Box", "Simplex", "Polyhedron", "L1Ball"])
def test_nearest_is_the_nearest_point_of_least_violation(kind: str, count: int) -> None:
    """The linear program's violation, then the enumeration of active sets on the rows relaxed by it."""
    described, A, b, y = affine_case(kind, 3, min(count, 6), count)
    A, b = np.resize(A, (count, 3)), np.resize(b, count)  # rows repeat
    b = b + reference.least_violation_lp(described, A, b) - 0.3
    least = reference.least_violation_lp(described, A, b)  # 0.3, to the last bit
    few = slice(min(count, 6))
    C, d = reference.all_rows(described, ("Affine", A[few], b[few] + least))
    expected = reference.enumerate_active_sets(C, d, y)
    x = cocopt.project(build_set(described), constraints.Affine(A, b), y, infeasible="nearest")
    assert reference.outside(described, x) <= 1e-9 * 5
    assert (A @ x - b).max() <= least + 1e-8
    np.testing.assert_allclose(np.linalg.norm(x - y), np.linalg.norm(expected - y), rtol=1e-6)


@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Stack"])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Ellipsoid", "Product"])
def test_nearest_equals_two_stages_of_cvxpy(kind: str, constraint: str) -> None:
    K, g = infeasible_instance(kind, constraint, seed=5)
    y = 2 * np.random.default_rng(5).normal(size=4)
    expected, least = reference.least_violation_point(K, g, y)
    x = cocopt.project(build_set(K), build(g), y, infeasible="nearest")
    assert reference.outside(K, x) <= 1e-9 * 5
    assert reference.rows(g, x).max() <= least + 1e-8
    # where boundaries touch, the 1e-6 that the reference adds to the violation buys a distance of √(4·1e-6·radius)
    assert -1e-6 <= np.linalg.norm(x - y) - np.linalg.norm(expected - y) <= 5e-3


def test_nearest_keeps_coordinates_that_do_not_change_the_violation() -> None:
    """x_1 ≥ 2 in the unit square: all points with x_1 = 1 are as good, x_2 stays; in the disc only (1, 0) is left."""
    g, y = constraints.Affine([-1.0, 0.0], -2.0), [0.2, 0.7]
    np.testing.assert_allclose(cocopt.project(Box(0.0, 1.0, dim=2), g, y, infeasible="nearest"), [1.0, 0.7], atol=1e-8)
    x = cocopt.project(Ball(0.0, 1.0, dim=2), g, y, infeasible="nearest")
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-4)
    assert g.value(x) <= 1.0 + 1e-8


@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Ellipsoid"])
def test_nearest_changes_only_the_infeasible_trials(kind: str) -> None:
    rng = np.random.default_rng(1)
    described, z = random_set(kind, 3, rng)
    K = build_set(described)
    A = rng.normal(size=(5, 2, 3))
    b = A @ z + 0.1
    for i in (0, 3):
        b[i] += reference.least_violation(described, ("Affine", A[i], b[i])) - 0.5  # now 0.5 is the least
    y = z + 2 * rng.normal(size=(5, 3))
    result = solve_projection(K, constraints.Affine(A, b), y, infeasible="nearest")
    np.testing.assert_array_equal(result.feasible, [False, True, True, False, True])
    np.testing.assert_allclose(result.least_violation, [0.5, 0, 0, 0.5, 0], rtol=1e-6)
    np.testing.assert_array_equal(cocopt.project(K, constraints.Affine(A, b), y, infeasible="nearest"), result.point)
    for i in range(5):
        single = cocopt.project(K, constraints.Affine(A[i], b[i]), y[i], infeasible="nearest")
        np.testing.assert_allclose(result.point[i], single, rtol=0, atol=1e-7)
        if i in (1, 2, 4):
            expected = reference.project(described, ("Affine", A[i], b[i]), y[i])
            np.testing.assert_allclose(result.point[i], expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


def test_two_contradictory_rows_beside_a_redundant_row_of_large_norm() -> None:
    direction = np.array([0.9709785664376475, 0.23916651838978456])
    A = np.array([[973536.2286058294, 0.0], direction, -direction])
    g = constraints.Affine(A, [1284879.8534638598, -0.04666075490966881, -1.9533392450903313])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Simplex(2), g, [0.00195, 1.0137])
    assert caught.value.least_violation == pytest.approx(1.0)  # half the gap between the two


def test_an_infeasible_round_in_one_dimension_raises_without_warnings() -> None:
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(80):
            A = rng.normal(size=(rng.integers(2, 30), 1))
            b = A[:, 0] + np.abs(A[:, 0]) * np.abs(rng.normal(size=len(A))) * (rng.random(len(A)) > 0.2)
            g = constraints.Affine(np.append(A, [[1.0], [-1.0]], axis=0), np.append(b, [0.0, -2.0]))
            with pytest.raises(InfeasibleRound):
                cocopt.project(Simplex(1), g, [2.0 * rng.normal()])


def test_infeasible_data_of_size_1e_minus_12() -> None:
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(0.0, 1e-12, dim=3), constraints.Affine([1.0, 1.0, 1.0], -1e-12), [1e-12, 1e-12, 0.0])
    np.testing.assert_allclose(caught.value.least_violation, [1e-12], rtol=1e-6)


@pytest.mark.parametrize("first", [0.5, 2.0, 1e6])
def test_rows_that_yield_exceed_the_least_violation_by_a_share_of_their_terms_at_the_result(first: float) -> None:
    """The orthant, x_0 ≤ 1 and, soft, x_5 ≤ −1e-3: coordinates without a row are of any length on the way."""
    soft = constraints.Soft(constraints.Affine(np.eye(6)[5:], np.array([-1e-3])))
    g = constraints.Stack([constraints.Affine(np.eye(6)[:1], np.ones(1)), soft])
    y = np.array([first, 0.1, 0.2, -0.1, -0.2, 0.5])
    x = cocopt.project(cocopt.Orthant(6), g, y, infeasible="nearest")
    expected = np.array([min(first, 1.0), 0.1, 0.2, 0.0, 0.0, 0.0])
    assert (g.rows(x) - np.array([0.0, 1e-3]) <= 1e-9 * g.magnitude(expected)).all()
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-9)
