"""Hundreds of rows, and sets that are bounds in another form: rows with one entry, and products."""

from __future__ import annotations

import numpy as np
import pytest
from reference.projections import Array, least_distance

import cocopt
from cocopt import Ball, Box, Polyhedron, Product, Simplex, constraints, errors
from cocopt.geometry import solve_projection


def problem(n: int, M: int, seed: int, crowded: bool) -> tuple[Array, Array, Array]:
    """Rows with a common point within [0, 1]^n, and a target; if crowded, about n of them bind."""
    rng = np.random.default_rng(seed)
    inside, y = rng.uniform(0.2, 0.8, n), rng.uniform(-1, 2, n)
    A = rng.normal(size=(M, n)) if crowded else rng.uniform(0, 2, (M, n))
    return A, A @ inside + rng.uniform(0, 0.02 if crowded else 0.5 * n, M), y


def rows_of_box(n: int) -> tuple[Array, Array]:
    return np.concatenate([np.eye(n), -np.eye(n)]), np.concatenate([np.ones(n), np.zeros(n)])


@pytest.mark.parametrize("crowded", [False, True], ids=["some bind", "n bind"])
@pytest.mark.parametrize(("n", "M"), [(2, 129), (3, 1000), (12, 300), (30, 150), (40, 500), (60, 200)])
def test_hundreds_of_rows_over_a_box(n: int, M: int, crowded: bool) -> None:
    K, (E, e) = Box(0.0, 1.0, dim=n), rows_of_box(n)
    for seed in range(3):
        A, b, y = problem(n, M, seed, crowded)
        found = solve_projection(K, constraints.Affine(A, b), y)
        assert found.method == "kernel"
        expected = least_distance(np.concatenate([A, E]), np.concatenate([b, e]), y)
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("narrow", [0, 10, 40])
def test_crowded_rows_where_bounds_bind_too(narrow: int) -> None:
    """The start without bounds is outside of those that are narrow."""
    n, M = 60, 200
    E, e = rows_of_box(n)
    for seed in range(2):
        A, b, y = problem(n, M, seed, crowded=True)
        inside = np.linalg.lstsq(A, b - 0.01, rcond=None)[0]  # close to a point that satisfies the rows
        lower, upper = np.zeros(n), np.ones(n)
        lower[:narrow], upper[:narrow] = inside[:narrow] - 1e-4, inside[:narrow] + 1e-4
        b = np.maximum(b, A @ np.clip(inside, lower, upper))
        e = np.concatenate([upper, -lower])
        found = solve_projection(Box(lower, upper), constraints.Affine(A, b), y)
        assert found.method == "kernel"
        expected = least_distance(np.concatenate([A, E]), np.concatenate([b, e]), y)
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9)


def test_crowded_rows_without_a_common_point() -> None:
    n, M = 60, 200
    A, b, y = problem(n, M, 0, crowded=True)
    A, b = np.concatenate([A, -A[:1]]), np.append(b, -b[0] - 0.1)
    with pytest.raises(errors.InfeasibleRound):
        cocopt.project(Box(0.0, 1.0, dim=n), constraints.Affine(A, b), y)


@pytest.mark.parametrize("kind", ["simplex", "polyhedron", "product"])
@pytest.mark.parametrize(("n", "M"), [(4, 200), (20, 300), (30, 129), (60, 200)])
def test_hundreds_of_rows_over_other_polyhedra(kind: str, n: int, M: int) -> None:
    for seed in range(3):
        A, b, y = problem(n, M, seed, crowded=True)
        E, e = rows_of_box(n)
        if kind == "simplex":
            K: cocopt.ConvexSet = Simplex(n, total=0.5 * n)
            E, e = np.concatenate([E[n:], np.ones((1, n)), -np.ones((1, n))]), np.append(e[n:], [0.5 * n, -0.5 * n])
        elif kind == "polyhedron":
            E, e = np.concatenate([E, np.ones((1, n))]), np.append(e, 0.6 * n)
            K = Polyhedron(E, e)
        else:
            of_part, limits = rows_of_box(n - 1)
            part = Polyhedron(np.concatenate([of_part, np.ones((1, n - 1))]), np.append(limits, n))
            K = Product([Box(0.0, 1.0, dim=1), part])
        inside = np.full(n, 0.5)
        b = np.maximum(b, A @ inside)  # a point of K that satisfies the rows
        found = solve_projection(K, constraints.Affine(A, b), y)
        assert found.method == "kernel"
        expected = least_distance(np.concatenate([A, E]), np.concatenate([b, e]), y)
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9)


def test_a_batch_of_many_rows_is_each_trial_by_itself() -> None:
    n, M = 10, 300
    A, b, y = map(np.stack, zip(*(problem(n, M, seed, True) for seed in range(5)), strict=True))
    for K in (Box(0.0, 1.0, dim=n), Ball(0.5, 2.0, dim=n), Product([Box(0.0, 1.0, dim=4), Box(0.0, 1.0, dim=6)])):
        together = cocopt.project(K, constraints.Affine(A, b), y)
        alone = [cocopt.project(K, constraints.Affine(A[i], b[i]), y[i]) for i in range(5)]
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_many_rows_without_a_common_point_are_infeasible() -> None:
    A, b, y = problem(5, 300, 0, True)
    A, b = np.concatenate([A, -A[:1]]), np.append(b, -b[0] - 0.1)
    with pytest.raises(errors.InfeasibleRound) as error:
        cocopt.project(Box(0.0, 1.0, dim=5), constraints.Affine(A, b), y)
    assert error.value.least_violation[0] > 0.0


# ---------------------------------------------------------------- rows with one entry


def test_the_tightest_of_the_rows_with_one_entry_are_bounds() -> None:
    A = [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, -3.0, 0.0], [0.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    K = Polyhedron(A, [2.0, 4.0, 3.0, 5.0, 7.0, np.inf])
    form = K.polyhedral()
    np.testing.assert_array_equal(form.lower, [-np.inf, -1.0, -np.inf])
    np.testing.assert_array_equal(form.upper, [1.0, np.inf, np.inf])
    np.testing.assert_allclose(form.A, [[0.5**0.5, 0.5**0.5, 0.0]])
    np.testing.assert_allclose(form.b, [7.0 * 0.5**0.5])
    np.testing.assert_array_equal(K.parameters()["A"], A)  # the rows themselves stay


@pytest.mark.parametrize("seed", range(10))
def test_a_polyhedron_with_single_entry_rows_projects_as_its_rows_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 4
    single = np.eye(n)[rng.integers(0, n, 8)] * rng.choice([-2.0, -1.0, 0.5, 3.0], (8, 1))
    dense = rng.normal(size=(3, n))
    A = rng.permutation(np.concatenate([single, dense]))
    b = np.abs(A @ rng.normal(size=n)) + rng.choice([0.0, 1.0], len(A))
    K, y = Polyhedron(A, b), 3.0 * rng.normal(size=n)
    np.testing.assert_allclose(K.project(y), least_distance(A, b, y), rtol=0, atol=1e-9)
    row, limit = rng.normal(size=n), 0.1
    x = cocopt.project(K, constraints.Affine(row, limit), y)
    np.testing.assert_allclose(x, least_distance(np.vstack([A, row]), np.append(b, limit), y), rtol=0, atol=1e-9)


def test_equal_bounds_fix_a_coordinate() -> None:
    K = Polyhedron([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]], [0.3, -0.3, 1.0])
    np.testing.assert_allclose(K.project([5.0, 5.0]), [0.3, 0.7], rtol=0, atol=1e-12)
    assert K.project_direction([1.0, 1.0]).round(12).tolist() == [0.0, 1.0]
    assert not K.full_dimensional


def test_bounds_that_contradict_one_another_by_rounding_are_relaxed() -> None:
    K = Polyhedron([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0 - 1e-12])
    form = K.polyhedral()
    assert form.lower[0] <= form.upper[0]
    assert abs(float(K.project([7.0, 7.0])[0]) - 1.0) <= 1e-11


def test_bounds_that_contradict_one_another_are_refused() -> None:
    with pytest.raises(errors.EmptySet, match="no common point"):
        Polyhedron([[1.0, 0.0], [-2.0, 0.0]], [1.0, -4.0])


def test_a_box_as_a_polyhedron_is_that_box() -> None:
    rng = np.random.default_rng(0)
    n = 6
    A, b = rows_of_box(n)
    K, box = Polyhedron(A, b), Box(0.0, 1.0, dim=n)
    y, rows = rng.uniform(-1, 2, (20, n)), rng.uniform(0, 2, (20, 3, n))
    for M in (1, 3):
        g = constraints.Affine(rows[:, :M], rng.uniform(0, 1, (20, M)))
        np.testing.assert_array_equal(cocopt.project(K, g, y), cocopt.project(box, g, y))
    np.testing.assert_array_equal(K.project(y), box.project(y))


# ---------------------------------------------------------------- products


def test_a_product_keeps_its_form_and_shows_it_read_only() -> None:
    K = Product([Box(0.0, 1.0, dim=2), Simplex(3), Polyhedron([[1.0, 0.0], [1.0, 1.0]], [0.5, 1.0])])
    form = K.polyhedral()
    assert form is not None
    assert form is K.polyhedral()
    np.testing.assert_array_equal(form.lower, [0.0, 0.0, 0.0, 0.0, 0.0, -np.inf, -np.inf])
    np.testing.assert_array_equal(form.upper, [1.0, 1.0, np.inf, np.inf, np.inf, 0.5, np.inf])
    assert form.equalities == 1
    np.testing.assert_allclose(form.A, [[0, 0, 1, 1, 1, 0, 0], np.array([0, 0, 0, 0, 0, 1, 1]) * 0.5**0.5])
    for part in form[:4]:
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 0.0
    assert Product([Box(0.0, 1.0, dim=2), Ball(0.0, 1.0, dim=2)]).polyhedral() is None


@pytest.mark.parametrize("seed", range(5))
def test_rows_over_a_product_of_polyhedra(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corner = Polyhedron([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 0.0, 0.0])
    K = Product([Box(0.0, 1.0, dim=2), Simplex(3), corner])
    E = np.zeros((12, 7))
    E[:4, :2], E[4:7, 2:5] = np.concatenate([np.eye(2), -np.eye(2)]), -np.eye(3)
    E[7, 2:5], E[8, 2:5], E[9, 5:], E[10, 5], E[11, 6] = 1.0, -1.0, 1.0, -1.0, -1.0
    e = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 1.0, 0.0, 0.0])
    inside = np.array([0.5, 0.5, 0.3, 0.3, 0.4, 0.3, 0.3])
    A = rng.normal(size=(4, 7))
    b, y = A @ inside + 0.05, 2.0 * rng.normal(size=7)
    x = cocopt.project(K, constraints.Affine(A, b), y)
    np.testing.assert_allclose(x, least_distance(np.concatenate([A, E]), np.concatenate([b, e]), y), rtol=0, atol=1e-9)
