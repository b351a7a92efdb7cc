"""The solvers' common functions: a checked result, whichever solver found it."""

from __future__ import annotations

import numpy as np
import pytest
from reference import projections as reference
from scipy import sparse

from cocopt import Polyhedron, kernels
from cocopt.errors import SolverFailure
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.base import Polyhedral
from cocopt.solvers import daqp, polyhedral, sparse_newton
from cocopt.solvers.highs import solve_lp
from cocopt.solvers.qp import solve_qp
from cocopt.solvers.solution import UNBOUNDED, Solution


@pytest.fixture(params=["daqp", "clarabel"])
def solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The solver whose result is used: Clarabel's if DAQP fails."""
    if request.param == "clarabel":
        monkeypatch.setattr(daqp, "solve", lambda *data: Solution(data[-1], np.zeros(len(data[3])), UNCONVERGED))
    return str(request.param)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(5))
def test_solve_qp_finds_the_projection_and_its_multipliers(solver: str, seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    n, M = 4, 6
    lower, upper, A = -unit * rng.uniform(1, 2, n), unit * rng.uniform(1, 2, n), rng.normal(size=(M, n))
    upper[0], lower[1] = np.inf, -np.inf
    b = unit * rng.uniform(0.1, 1.0, M)
    b[2] = np.inf
    y = 5 * unit * rng.normal(size=n)
    x, nu, status, _ = solve_qp(lower, upper, A, b, 0, y)
    assert status == CONVERGED
    eye, high, low = np.eye(n), np.isfinite(upper), np.isfinite(lower)
    rows = np.vstack([np.delete(A, 2, axis=0), eye[high], -eye[low]])
    rhs = np.concatenate([np.delete(b, 2), upper[high], -lower[low]])
    expected = unit * reference.enumerate_active_sets(rows, rhs / unit, y / unit)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-8 * unit)
    assert nu[2] == 0.0
    assert (nu >= 0.0).all()
    inside = (lower + 1e-9 * unit < x) & (x < upper - 1e-9 * unit)
    np.testing.assert_allclose((y - x - A.T @ nu)[inside], 0.0, atol=1e-7 * unit)


def test_solve_qp_meets_equations(solver: str) -> None:
    free = np.full(3, np.inf)
    x, nu, status, _ = solve_qp(-free, free, np.ones((1, 3)), np.ones(1), 1, np.zeros(3))
    assert status == CONVERGED
    np.testing.assert_allclose(x, 1 / 3)
    np.testing.assert_allclose(nu, 1 / 3)


@pytest.mark.parametrize("row", [[0.0, 0.0], [1.0, 1.0]])
def test_solve_qp_reports_that_no_point_satisfies_the_rows(solver: str, row: list[float]) -> None:
    x = solve_qp(np.zeros(2), np.ones(2), np.array([row]), np.array([-1.0]), 0, np.ones(2))
    assert x.status == INFEASIBLE


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_solve_lp_finds_the_optimum_and_its_multipliers(unit: float) -> None:
    A, b = np.array([[1.0, -1.0], [1.0, 1.0], [1.0, 0.0]]), unit * np.array([0.5, 1.0, np.inf])
    x, nu, status, _ = solve_lp(
        np.array([-3.0, -1.0]), Polyhedral(np.zeros(2), np.full(2, np.inf), A, b, equalities=1), unit
    )
    assert status == CONVERGED
    np.testing.assert_allclose(x, unit * np.array([0.75, 0.25]), rtol=1e-9)
    np.testing.assert_allclose(nu, [1.0, 2.0, 0.0], atol=1e-9)


def test_solve_lp_reports_what_has_no_optimum() -> None:
    free, rows = np.full(2, np.inf), np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert solve_lp(np.array([-1.0, -1.0]), Polyhedral(-free, free, rows, np.ones(2))).status == UNBOUNDED
    assert solve_lp(np.array([1.0, 0.0]), Polyhedral(-free, free, rows, -np.ones(2))).status == INFEASIBLE


def unconverged_kernel(point: np.ndarray, *_: object) -> tuple[np.ndarray, None, np.ndarray]:
    """In place of the compiled kernel: it solves no trial."""
    return np.full_like(point, np.nan), None, np.full(point.shape[:-1], UNCONVERGED)


def test_a_polyhedron_projects_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    K = Polyhedron(rng.normal(size=(8, 3)), rng.uniform(0.1, 1.0, 8))
    y = 3 * rng.normal(size=(5, 3))
    expected = K.project(y)
    monkeypatch.setattr(kernels, "box_rows", unconverged_kernel, raising=False)
    np.testing.assert_allclose(K.project(y), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(K.project(y[0]), expected[0], rtol=0, atol=1e-9)


def test_a_polyhedron_returns_no_unchecked_point(monkeypatch: pytest.MonkeyPatch) -> None:
    K = Polyhedron([[1.0, 0.5], [0.5, 1.0]], np.ones(2))
    monkeypatch.setattr(kernels, "box_rows", unconverged_kernel, raising=False)
    monkeypatch.setattr(polyhedral, "solve_qp", lambda *data: Solution(data[-1], np.zeros(2), UNCONVERGED))
    with pytest.raises(SolverFailure, match="failed its optimality check"):
        K.project([3.0, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_sparse_matrices_that_are_singular_by_the_places_of_their_entries(seed: int) -> None:
    """SuperLU crashes on some of them; zeros that are stored are no entries."""
    rng, n = np.random.default_rng(seed), 300
    regular = np.where(rng.random((n, n)) < 0.03, rng.normal(size=(n, n)), 0.0) + 5.0 * np.eye(n)
    lu, rhs = sparse_newton.factorise(sparse.csc_array(regular)), rng.normal(size=n)
    np.testing.assert_allclose(regular @ lu.solve(rhs), rhs, rtol=0, atol=1e-11)
    within = (np.arange(n)[:, None] < 100) | (np.arange(n) < 100)  # the other 200 rows have 100 columns together
    stored = sparse.csc_array(np.where(within, regular, 1.0))
    stored.data[stored.data == 1.0] = 0.0
    for singular in (sparse.csc_array(np.where(within, regular, 0.0)), stored):
        assert sparse_newton.factorise(singular) is None
