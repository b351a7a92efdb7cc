"""Sparse rows: `Affine` of SciPy's sparse arrays, in every format, and whatever meets such a constraint."""

from __future__ import annotations

import copy
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from forging import forge, load
from reference.projections import Array, least_distance

import cocopt
from cocopt import Ball, Box, L1Ball, Polyhedron, Product, Simplex, constraints, errors, hindsight, losses, state
from cocopt.geometry import solve_projection, structured
from cocopt.geometry.problem import Request
from cocopt.geometry.sparse import solve_sparse

FORMATS = ("csr", "csc", "coo", "dia", "bsr", "lil", "dok")


def random_rows(rng: np.random.Generator, M: int, n: int, density: float = 0.4) -> Array:
    return rng.normal(size=(M, n)) * (rng.uniform(size=(M, n)) < density)


def pair(A: Array, b: Array) -> tuple[Any, Any]:
    """The same rows, sparse and dense."""
    return constraints.Affine(sp.csr_array(A), b), constraints.Affine(A, b)


def sparse_problem(n: int, M: int, density: float, seed: int = 0) -> tuple[sp.csr_array, Array, Array]:
    """Rows with a common point within [0, 1]^n, and a target outside."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.random_array((M, n), density=density, rng=rng))
    return A, A @ rng.uniform(0.2, 0.8, n) + 0.01 * rng.uniform(size=M), rng.uniform(-1, 2, n)


def assert_kkt(A: sp.csr_array, b: Array, y: Array, lower: float, upper: float, x: Array, nu: Array) -> None:
    """x = clip(y − Aᵀν), A x ≤ b, ν ≥ 0 and ν_i = 0 where row i has slack."""
    np.testing.assert_allclose(x, np.clip(y - A.T @ nu, lower, upper), rtol=0, atol=1e-12)
    slack = b - A @ x
    assert slack.min() >= -1e-11
    assert nu.min() >= 0.0
    assert np.abs(nu * slack).max() <= 1e-11


# ---------------------------------------------------------------- construction


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("matrix", [False, True], ids=["array", "matrix"])
def test_every_format_has_the_same_rows(kind: str, matrix: bool) -> None:
    rng = np.random.default_rng(0)
    A, b, x = random_rows(rng, 4, 6), rng.normal(size=4), rng.normal(size=(5, 6))
    given = (sp.csr_matrix(A) if matrix else sp.csr_array(A)).asformat(kind)
    g, dense = constraints.Affine(given, b), constraints.Affine(A, b)
    assert isinstance(g, constraints.SparseAffine)
    assert (g.dim, g.row_count, g.batch) == (6, 4, ())
    np.testing.assert_allclose(g.rows(x), dense.rows(x), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(g.gradient(x), dense.gradient(x))
    np.testing.assert_array_equal(g.jacobian(x[0]), A)
    np.testing.assert_allclose(g.magnitude(x), dense.magnitude(x), rtol=1e-14)
    assert g.equals(constraints.Affine(sp.csr_array(A), b))
    assert not g.equals(constraints.Affine(sp.csr_array(2 * A), b))
    assert not g.equals(dense)


def test_what_is_not_canonical_is_accepted() -> None:
    # duplicates, unsorted columns, an explicit zero, integers of 64 bits
    row, column = np.array([0, 0, 0, 1, 1], dtype=np.int64), np.array([2, 0, 2, 1, 0], dtype=np.int64)
    A = sp.coo_array((np.array([1, 5, 2, 0, 7]), (row, column)), shape=(2, 3))
    g = constraints.Affine(A, [1, 2])
    np.testing.assert_array_equal(g.jacobian(np.zeros(3)), [[5.0, 0.0, 3.0], [7.0, 0.0, 0.0]])
    assert g.sparse_rows().values.size == 3
    unsorted = sp.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    g = constraints.Affine(unsorted, 1.0)
    np.testing.assert_array_equal(g.rows([1.0, 1.0, 10.0]), [11.0])
    assert unsorted.indices.tolist() == [2, 0]  # the user's own is left as it is
    one = constraints.Affine(sp.coo_array(np.array([0.0, 2.0, 0.0])), 1.0)  # an array of one axis is a single row
    np.testing.assert_array_equal(one.rows([1.0, 1.0, 1.0]), [1.0])
    assert one.row_count == 1


def test_later_changes_of_the_matrix_do_not_matter() -> None:
    A = sp.csr_array([[1.0, 2.0]])
    g = constraints.Affine(A, [1.0])
    A.data[:] = 100.0
    np.testing.assert_array_equal(g.rows([1.0, 1.0]), [2.0])


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        (sp.csr_array(np.eye(2) * 1j), [1.0, 1.0], "A: expected an array of real numbers"),
        (sp.csr_array(np.eye(2)), [1.0], r"b: expected shape \(2,\)"),
        (sp.csr_array(np.eye(2)), 1.0, r"b: expected shape \(2,\)"),
        (sp.csr_array(np.eye(2)), [[1.0, 1.0]], r"b: expected shape \(2,\)"),
        (sp.csr_array((0, 3)), [], "b: expected at least one number"),
        (sp.csr_array((2, 0)), [1.0, 1.0], "A: expected a sparse array of shape"),
        (sp.csr_array(np.eye(2)), "text", "b: expected an array of real numbers"),
    ],
)
def test_bad_arguments_are_named(A: Any, b: Any, message: str) -> None:
    with pytest.raises(errors.InvalidInput, match=message):
        constraints.Affine(A, b)


def test_numbers_that_are_not_finite_are_named() -> None:
    K = Box(0.0, 1.0, dim=3)
    bad = constraints.Affine(sp.csr_array([[1.0, 0.0, 0.0], [0.0, 0.0, np.nan]]), [1.0, 1.0])
    for call in (lambda: bad.rows(np.ones(3)), lambda: cocopt.project(K, bad, np.ones(3))):
        with pytest.raises(errors.InvalidInput, match=r"A: expected finite numbers, got nan at index \(1, 2\)"):
            call()
    for value in (np.nan, -np.inf):
        bad = constraints.Affine(sp.csr_array(np.eye(3)), [0.0, value, 0.0])
        with pytest.raises(errors.InvalidInput, match="b: expected finite numbers"):
            cocopt.project(K, bad, np.ones(3))
    good = constraints.Affine(sp.csr_array(np.eye(3)), [0.5, np.inf, 0.5])
    with pytest.raises(errors.InvalidInput, match="point: expected finite numbers"):
        cocopt.project(K, good, [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(cocopt.project(K, good, np.ones(3)), [0.5, 1.0, 0.5])


def test_equations_refuse_a_sparse_matrix_kindly() -> None:
    with pytest.raises(errors.InvalidInput, match="A: expected a dense array, got a sparse one"):
        constraints.Equality(sp.csr_array(np.eye(2)), [1.0, 1.0])


def test_copies_and_their_arguments() -> None:
    g, dense = pair(np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([1.0, 0.5]))
    for same in (copy.copy(g), copy.deepcopy(g), constraints.SparseAffine(**g.parameters()), copy.deepcopy(dense)):
        np.testing.assert_array_equal(same.rows([1.0, 1.0]), [1.0, 0.5])
    assert repr(g) == "SparseAffine(2 rows with 2 entries in dimension 2)"


# ---------------------------------------------------------------- projections


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["box", "unbounded", "simplex", "polyhedron", "product"])
def test_projections_are_those_of_the_rows(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    n = 5
    E, e = np.concatenate([np.eye(n), -np.eye(n)]), np.concatenate([np.ones(n), np.zeros(n)])
    K: cocopt.ConvexSet = Box(0.0, 1.0, dim=n)
    inside = rng.uniform(0.2, 0.8, n)
    if kind == "unbounded":
        K, E, e = Box(-np.inf, np.inf, dim=n), np.zeros((0, n)), np.zeros(0)
    elif kind == "simplex":
        K, inside = Simplex(n), np.full(n, 1.0 / n)
        E, e = np.concatenate([E[n:], np.ones((1, n)), -np.ones((1, n))]), np.append(e[n:], [1.0, -1.0])
    elif kind == "polyhedron":
        inside = np.full(n, 0.2)
        E, e = np.concatenate([E, np.ones((1, n))]), np.append(e, 2.0)
        K = Polyhedron(E, e)
    elif kind == "product":
        K = Product([Box(0.0, 1.0, dim=2), Box(0.0, 1.0, dim=3)])
    A = random_rows(rng, 7, n)
    A[np.arange(7), rng.integers(0, n, 7)] = rng.choice([-1.0, 1.0], 7)  # no row is 0
    b, y = A @ inside + rng.choice([0.0, 0.1]), inside + 2.0 * rng.normal(size=n)
    found = solve_projection(K, constraints.Affine(sp.csr_array(A), b), y)
    assert found.method == "sparse"
    expected = least_distance(np.concatenate([A, E]), np.concatenate([b, e]), y)
    np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_projections_onto_a_ball(seed: int) -> None:
    """x is nearest if y − x is a sum of normals, of the rows that bind and of the ball, with weights ≥ 0."""
    rng = np.random.default_rng([seed, 8])
    n, M = 6, 5
    A = random_rows(rng, M, n)
    inside = 0.3 * rng.normal(size=n)
    inside *= min(1.0, 0.9 / np.linalg.norm(inside))
    b, y = A @ inside + 0.05, 3.0 * rng.normal(size=n)
    found = solve_projection(Ball(0.0, 1.0, dim=n), constraints.Affine(sp.csr_array(A), b), y)
    x, nu = found.point, found.multipliers
    assert found.method == "sparse"
    assert nu is not None
    assert np.linalg.norm(x) <= 1 + 1e-12
    assert (A @ x - b).max() <= 1e-11
    assert nu.min() >= 0.0
    assert np.abs(nu * (b - A @ x)).max() <= 1e-10
    rest = y - x - A.T @ nu
    weight = float(rest @ x) if np.linalg.norm(x) > 1 - 1e-9 else 0.0
    assert weight >= -1e-12
    np.testing.assert_allclose(rest, weight * x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("M", [50, 500])
def test_ten_thousand_dimensions_are_exact_and_never_dense(M: int) -> None:
    n = 10_000
    A, b, y = sparse_problem(n, M, 0.001)
    g, K = constraints.Affine(A, b), Box(0.0, 1.0, dim=n)
    found = solve_projection(K, g, y)  # compiles, too
    tracemalloc.start()
    try:
        found = solve_projection(K, constraints.Affine(A, b), y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.method == "sparse"
    assert peak <= 60 * 8 * n  # some vectors; the dense rows alone have M
    assert (found.multipliers > 0).sum() > M / 5
    assert_kkt(A, b, y, 0.0, 1.0, found.point, found.multipliers)


@pytest.mark.parametrize("M", [100, 200])
def test_rows_that_push_nearly_all_their_coordinates_to_bounds(M: int) -> None:
    """Nearly all rows bind, and at times none of a row's coordinates is between its bounds."""
    n = 10_000
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = 2.0 * sp.csr_array(sp.random_array((M, n), density=0.001, rng=rng))
        b, y = rng.uniform(size=M), rng.uniform(-1, 2, n)
        found = solve_projection(Box(0.0, 1.0, dim=n), constraints.Affine(A, b), y)
        assert (found.multipliers > 0).sum() > 0.9 * M
        assert_kkt(A, b, y, 0.0, 1.0, found.point, found.multipliers)


@pytest.mark.parametrize(("n", "M", "density"), [(40, 120, 0.1), (100, 300, 0.05), (60, 30, 0.5)])
def test_crowded_rows(n: int, M: int, density: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = sp.csr_array(random_rows(rng, M, n, density))
        b = A @ rng.uniform(0.2, 0.8, n) + 0.02 * rng.uniform(size=M)
        y = rng.uniform(-1, 2, n)
        found = solve_projection(Box(0.0, 1.0, dim=n), constraints.Affine(A, b), y)
        assert_kkt(A, b, y, 0.0, 1.0, found.point, found.multipliers)


def test_the_second_stage_starts_from_an_interior_point() -> None:
    """What the compiled method did not solve is solved from the multipliers of Clarabel's solution."""
    A, b, y = sparse_problem(200, 60, 0.05)
    for K in (Box(0.0, 1.0, dim=200), Ball(0.5, 3.0, dim=200), Simplex(200, total=100.0)):
        request = Request(K, constraints.Affine(A, b), y)
        solution = solve_sparse(request)
        assert solution.status == 0
        np.testing.assert_allclose(solution.point, cocopt.project(K, request.constraint, y), rtol=0, atol=1e-9)
    empty = constraints.Affine(sp.csr_array([[1.0, 0.0], [-1.0, 0.0]]), [0.2, -0.4])
    assert solve_sparse(Request(Box(0.0, 1.0, dim=2), empty, np.ones(2))).status == 2


def test_a_batch_is_each_trial_by_itself() -> None:
    A, b, _ = sparse_problem(50, 20, 0.2)
    y = np.random.default_rng(1).uniform(-1, 2, (2, 3, 50))
    for K in (Box(0.0, 1.0, dim=50), Ball(0.5, 1.0, dim=50), Simplex(50, total=25.0)):
        g = constraints.Affine(A, b)
        together = cocopt.project(K, g, y)
        for index in np.ndindex(2, 3):
            np.testing.assert_array_equal(together[index], cocopt.project(K, g, y[index]))


def test_a_feasible_target_is_returned_bit_for_bit() -> None:
    A, b, _ = sparse_problem(50, 20, 0.2)
    y = np.full(50, 1e-3) * np.random.default_rng(0).uniform(size=50)
    np.testing.assert_array_equal(cocopt.project(Box(0.0, 1.0, dim=50), constraints.Affine(A, b), y), y)


@pytest.mark.parametrize(
    "K", [Box(0.0, 1.0, dim=3), Ball(0.5, 1.0, dim=3), Simplex(3), L1Ball(0.0, 1.0, dim=3)], ids=repr
)
def test_rows_without_a_common_point(K: cocopt.ConvexSet) -> None:
    A, b = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), np.array([0.2, -0.6])
    g, dense = pair(A, b)
    for constraint in (g, dense):
        with pytest.raises(errors.InfeasibleRound) as error:
            cocopt.project(K, constraint, np.ones(3))
        assert abs(error.value.least_violation[0] - 0.2) <= 1e-8
    near = [cocopt.project(K, constraint, np.ones(3), infeasible="nearest") for constraint in (g, dense)]
    np.testing.assert_allclose(near[0], near[1], rtol=0, atol=1e-7)


def test_rows_of_zeros_and_rows_that_depend_on_one_another() -> None:
    K = Box(-1.0, 1.0, dim=3)
    A = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]])
    b = np.array([0.5, 1.0, 0.0, np.inf, -0.5])
    x = cocopt.project(K, constraints.Affine(sp.csr_array(A), b), [1.0, 0.5, 2.0])
    np.testing.assert_allclose(x, [0.5, 0.0, 1.0], rtol=0, atol=1e-10)
    b[2] = -1.0  # 0 ≤ −1
    with pytest.raises(errors.InfeasibleRound):
        cocopt.project(K, constraints.Affine(sp.csr_array(A), b), [1.0, 0.5, 2.0])
    everything = constraints.Affine(sp.csr_array((2, 3)), [1.0, np.inf])  # no entries at all
    np.testing.assert_array_equal(cocopt.project(K, everything, [3.0, 0.5, -2.0]), [1.0, 0.5, -1.0])


@pytest.mark.parametrize("reach", [1e3, 1e6, 1e9])
def test_far_targets(reach: float) -> None:
    rng = np.random.default_rng(0)
    n = 6
    N = np.eye(n) + 0.3 * random_rows(rng, n, n)
    z = rng.normal(size=n)
    y = z + reach * rng.uniform(0.1, 1.0, n) @ N
    x = cocopt.project(Box(-10.0, 10.0, dim=n), constraints.Affine(sp.csr_array(N), N @ z), y)
    np.testing.assert_allclose(x, z, rtol=0, atol=1e-11)


def test_a_set_that_is_known_by_its_projection() -> None:
    class Shifted(cocopt.ConvexSet):
        dim = 4

        def project_unchecked(self, point: Array) -> Array:
            return np.clip(point, 0.0, 1.0)

        def violation_unchecked(self, point: Array) -> Array:
            return np.maximum(np.maximum(-point, point - 1.0).max(axis=-1), 0.0)

    g, dense = pair(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]]), np.array([0.7, 1.1]))
    y = np.array([1.0, 0.8, 0.9, 2.0])
    found = solve_projection(Shifted(), g, y)
    assert found.method == "dual"
    np.testing.assert_allclose(found.point, cocopt.project(Box(0.0, 1.0, dim=4), dense, y), rtol=0, atol=1e-9)


def test_explain_names_the_method() -> None:
    g = constraints.Affine(sp.csr_array(np.eye(3)), np.ones(3))
    for K in (Box(0.0, 1.0, dim=3), Ball(0.0, 1.0, dim=3), Simplex(3)):
        assert cocopt.explain(K, g) == "sparse: compiled, Newton's method on the dual of 3 rows with 3 entries"
    assert [method.name for method in structured.STRUCTURED][:2] == ["kernel", "sparse"]


@pytest.mark.parametrize("bound", [np.inf, 1e7])
@pytest.mark.parametrize(("unit", "seed"), [(1.0, 0), (1e-6, 1), (1e6, 2)])
def test_far_targets_where_many_rows_bind_are_solved_by_the_sparse_method(unit: float, seed: int, bound: float) -> None:
    """From nearer targets, and not by the conic form, which takes several times as long."""
    rng, n, M = np.random.default_rng(seed), 120, 120
    A = sp.random_array((M, n), density=0.05, rng=rng, format="csr", data_sampler=lambda size: rng.normal(size=size))
    b = unit * (A @ rng.uniform(0.2, 0.8, n))
    y = unit * 1e6 * rng.normal(size=n)
    most = np.full(M, unit * bound)  # multipliers are in units of the target; most bounds are not reached
    request = Request(Box(0.0, unit, dim=n), constraints.Affine(A, b), y, max_multiplier=most)
    found = solve_sparse(request)
    assert found.status == 0
    nu, K = found.multipliers, request.K
    # x is also the projection of nearer points on the ray to y - Aᵀν, and there are digits left for them
    x, normal = found.point, y - A.T @ nu - found.point
    np.testing.assert_allclose(K.project(x + normal / 1e6), x, rtol=0, atol=1e-9 * unit)
    assert ((nu >= 0.0) & (nu <= most)).all()
    rows = A @ x - b
    assert rows[nu < most].max() <= 1e-9 * unit
    assert np.abs(rows[(nu > 0.0) & (nu < most)]).max() <= 1e-9 * unit


@pytest.mark.parametrize("seed", [1, 9, 13])
def test_far_targets_where_coordinates_are_free(seed: int) -> None:
    """The projection is nearly as far away as its target: only targets much nearer than its size are near."""
    rng, n = np.random.default_rng(seed), 150
    A = sp.random_array((n, n), density=0.03, rng=rng, format="csr", data_sampler=lambda size: rng.normal(size=size))
    b, y = A @ rng.uniform(0.2, 0.8, n), 1e5 * rng.normal(size=n)
    K = Box(np.where(rng.uniform(size=n) < 0.5, -np.inf, 0.0), np.where(rng.uniform(size=n) < 0.5, np.inf, 1.0))
    found = solve_sparse(Request(K, constraints.Affine(A, b), y))
    assert found.status == 0
    size = np.abs(found.point).max()
    expected = cocopt.project(K, constraints.Affine(A.toarray(), b), y)
    np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-7 * size)


# ---------------------------------------------------------------- hinge prox


@pytest.mark.parametrize("seed", range(5))
def test_the_hinge_prox_is_that_of_the_dense_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    g, dense = pair(random_rows(rng, 8, 5), rng.normal(size=8))
    y, weight = rng.normal(size=(3, 5)), rng.choice([0.0, 0.1, 1.0, np.inf], 8, p=[0.2, 0.4, 0.3, 0.1])
    for K in (Box(-9.0, 9.0, dim=5), Ball(0.0, 9.0, dim=5), Simplex(5)):
        if np.isinf(weight).any() and K.dim == 5 and isinstance(K, Simplex):
            continue  # such rows may have no common point with it
        expected = cocopt.hinge_prox(K, dense, y, weight=weight)
        np.testing.assert_allclose(cocopt.hinge_prox(K, g, y, weight=weight), expected, rtol=0, atol=1e-9)
        expected = cocopt.hinge_prox(K, dense, y, weight=0.3, cap="sum")
        np.testing.assert_allclose(cocopt.hinge_prox(K, g, y, weight=0.3, cap="sum"), expected, rtol=0, atol=1e-6)


# ---------------------------------------------------------------- stacks, rows and shifts


def test_stacks() -> None:
    rng = np.random.default_rng(0)
    g, dense = pair(random_rows(rng, 3, 4), np.full(3, 0.2))
    row, K, y = constraints.Affine(np.ones(4), 1.0), Box(-1.0, 1.0, dim=4), 2.0 * rng.normal(size=(3, 4))
    sparse, plain = constraints.Stack([row, g, g]), constraints.Stack([row, dense, dense])
    assert sparse.sparse_rows().row_count == 7
    assert solve_projection(K, sparse, y).method == "sparse"
    np.testing.assert_allclose(cocopt.project(K, sparse, y), cocopt.project(K, plain, y), rtol=0, atol=1e-10)
    np.testing.assert_allclose(sparse.gradient(y), plain.gradient(y))
    np.testing.assert_array_equal(sparse.select(2).rows(y), plain.select(2).rows(y))
    np.testing.assert_array_equal(sparse.select([0, 2, 5]).rows(y), plain.select([0, 2, 5]).rows(y))
    weights = rng.uniform(size=(3, 7))
    np.testing.assert_allclose(sparse.combine_unchecked(y, weights), plain.combine_unchecked(y, weights))
    ball = constraints.NormBall(np.zeros(4), 0.8)
    mixed, curved = constraints.Stack([g, ball]), constraints.Stack([dense, ball])
    np.testing.assert_allclose(cocopt.project(K, mixed, y), cocopt.project(K, curved, y), rtol=0, atol=1e-9)
    trials = constraints.Affine(np.ones((3, 1, 4)), np.array([[1.0], [0.5], [2.0]]))
    both, each = constraints.Stack([trials, g]), constraints.Stack([trials, dense])
    np.testing.assert_allclose(cocopt.project(K, both, y), cocopt.project(K, each, y), rtol=0, atol=1e-10)


def test_single_rows_are_dense_and_of_the_length_of_a_point() -> None:
    rng = np.random.default_rng(0)
    g, dense = pair(random_rows(rng, 3, 4), np.full(3, 0.2))
    x = rng.normal(size=(5, 4))
    for row in (1, [0, 2, 1, 1, 0]):
        assert isinstance(g.select(row), constraints.Affine)
        np.testing.assert_allclose(g.select(row).rows(x), dense.select(row).rows(x))


def test_shifted_rows() -> None:
    g, dense = pair(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.5, 0.5]))
    K, y = Box(-1.0, 1.0, dim=2), np.array([1.0, 1.0])
    shifted = constraints.Shifted(g, [0.25, 0.0])
    np.testing.assert_allclose(cocopt.project(K, shifted, y), [0.25, 0.25], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(shifted.gradient(y), constraints.Shifted(dense, [0.25, 0.0]).gradient(y))


def test_a_jacobian_too_large_to_be_dense_is_refused() -> None:
    n = 200_000
    g = constraints.Affine(sp.eye_array(1000, n, format="csr"), np.ones(1000))
    with pytest.raises(errors.InvalidInput, match="`gradient` returns that of the largest row alone"):
        g.jacobian(np.zeros(n))
    assert g.gradient(np.zeros(n)).shape == (n,)
    assert g.cones() is None


# ---------------------------------------------------------------- learners, states, hindsight


STATIC = cocopt.Mahdavi, cocopt.YuNeely, cocopt.YuanLamperski  # for the same constraint in every round


def play(learner: Any, sparse: bool, rounds: int = 5) -> Array:
    rng = np.random.default_rng(3)
    A, b = random_rows(rng, 4, 5), rng.uniform(0.1, 0.4, 4)
    for _ in range(rounds):
        if not isinstance(learner, STATIC):
            A, b = random_rows(rng, 4, 5), rng.uniform(0.1, 0.4, 4)
        loss = losses.Linear(rng.normal(size=5))
        learner.tell(loss, constraints.Affine(sp.csr_array(A) if sparse else A, b))
    return np.array(learner.ask())


START = np.array([[0.5, 0.1, 0.2, 0.3, 0.4], [0.0, 0.9, 0.1, 0.8, 0.2]])
LEARNERS: dict[str, Any] = {
    "CLASP": lambda K, start: cocopt.CLASP(K, start=start),
    "CLASP, worst row": lambda K, start: cocopt.CLASP(K, start=start, rows="worst"),
    "CLASP, window": lambda K, start: cocopt.CLASP(K, start=start, window=3),
    "CLASP, all": lambda K, start: cocopt.CLASP(K, start=start, window=None),
    "CLASP, worst row of all": lambda K, start: cocopt.CLASP(K, start=start, window=None, rows="worst"),
    "CLASPF": lambda K, start: cocopt.CLASPF(K, start=start),
    "RECOO": lambda K, start: cocopt.RECOO(K, start=start),
    "AdaGrad": lambda K, start: cocopt.AdaGrad(K, 100, 2.0, start=start),
    "Mahdavi": lambda K, start: cocopt.Mahdavi(K, 100, 4.0, 2.0, start=start),
    "YuNeely": lambda K, start: cocopt.YuNeely(K, 100, 4.0, start=start),
    "DriftPlusPenalty": lambda K, start: cocopt.DriftPlusPenalty(K, start=start),
    "YuanLamperski": lambda K, start: cocopt.YuanLamperski(K, 4.0, start=start),
    "Yi2023": lambda K, start: cocopt.Yi2023(K, start=start),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_play_the_same(name: str) -> None:
    K = Box(0.0, 1.0, dim=5)
    for start in (START[0], START):
        sparse, dense = (play(LEARNERS[name](K, start), kind) for kind in (True, False))
        np.testing.assert_allclose(sparse, dense, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["CLASP, window", "CLASP, all"])
def test_states_keep_sparse_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    learner = LEARNERS[name](Box(0.0, 1.0, dim=5), START)
    play(learner, sparse=True)
    learner.save(path)
    again = cocopt.load(path)
    np.testing.assert_array_equal(play(again, True, 2), play(learner, True, 2))


@pytest.mark.parametrize("name", ["values", "places"])
def test_ragged_entries_are_named(name: str) -> None:
    parts = {"values": [1.0, 2.0], "places": [0, 1], "start": [0, 2], "b": [1.0], "dim": 2}
    with pytest.raises(cocopt.errors.InvalidInput, match=f"{name}: expected"):
        constraints.SparseAffine(**(parts | {name: [[0, 1], [0]]}))


def test_forged_sparse_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    learner = cocopt.CLASP(Box(0.0, 1.0, dim=3), window=2)
    learner.tell(
        losses.Linear(np.ones(3)), constraints.Affine(sp.csr_array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]), [9.0, 9.0])
    )
    learner.save(path)
    header, arrays = state.read(path)
    assert type(load(path, forge(header, arrays))) is cocopt.CLASP

    def name_of(part: str) -> str:
        (found,) = [name for name in arrays if name.endswith(f".{part}")]
        return found

    forgeries: list[tuple[str, Any]] = [
        ("places", np.array([0, 3, 2])),
        ("places", np.array([0, -1, 2])),
        ("places", np.array([1, 0, 2])),
        ("places", np.array([1, 1, 2])),
        ("places", np.array([0, 1])),
        ("places", np.array([0.0, 1.0, 2.0])),
        ("places", np.array([[0, 1, 2]])),
        ("start", np.array([0, 2, 4])),
        ("start", np.array([0, 4, 3])),
        ("start", np.array([1, 2, 3])),
        ("start", np.array([0, 3])),
        ("start", np.array([0, 2**62, 3])),
        ("values", np.array([1.0, np.nan, 3.0])),
        ("values", np.array([1.0, 2.0])),
        ("b", np.array([1.0, 1.0, 1.0])),
        ("b", np.array([1.0, np.nan])),
    ]
    for part, value in forgeries:
        found = load(path, forge(header, {**arrays, name_of(part): value}))
        assert isinstance(found, errors.StateError), (part, value)


def test_the_best_fixed_action_is_that_of_the_dense_rows() -> None:
    rng = np.random.default_rng(0)
    K, n = Box(0.0, 1.0, dim=4), 4
    f = [losses.Distance(rng.uniform(0, 2, n)) for _ in range(6)]
    pairs = [pair(np.abs(random_rows(rng, 3, n)), rng.uniform(0.3, 0.6, 3)) for _ in range(6)]
    sparse, dense = ([one[k] for one in pairs] for k in (0, 1))
    for find in (hindsight.best_fixed, hindsight.best_dynamic, hindsight.best_in_expectation):
        mine, expected = find(K, f, sparse), find(K, f, dense)
        np.testing.assert_allclose(mine.value, expected.value, rtol=1e-6)
        np.testing.assert_allclose(mine.point, expected.point, rtol=0, atol=1e-4)


@pytest.mark.parametrize("reach", [1e3, 1e15, 1e21, 1e30])
def test_a_point_that_the_rounding_of_a_far_target_makes_0(reach: float) -> None:
    """x_2 ≤ 0 pulls a target back that is lower in x_1: far out what x_1 has left is less than rounding."""
    K, A = cocopt.Orthant(3), sp.csr_array(np.array([[0.0, 0.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.1, -0.2]]))
    g = constraints.Affine(A, np.array([0.0, 4.0, 1.0]))
    y = np.array([[-1.0, 0.7, -0.7], [-2.0, 0.5, 0.4], [1.0, 0.5, 0.4], [-1.0, -1.0, 0.1]])
    expected = [[0.0, 10.0, 0.0], [0.0, 10.0, 0.0], [8.0, 10.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(cocopt.project(K, g, reach * y), expected, rtol=1e-12, atol=1e-12)
