"""The conic method beside the kernels, and its optimality conditions."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import cocopt
from cocopt import Ball, Box, Simplex, constraints
from cocopt.cones import stack
from cocopt.geometry.batch import solve_batch
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.problem import Request
from cocopt.geometry.scaled import ScaledProblem
from cocopt.solvers.cone_program import Candidate


@pytest.mark.parametrize("reach", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("K", [Box(0.0, 1.0, dim=6), Ball(0.0, 1.0, dim=6), Simplex(6)], ids=["Box", "Ball", "Simplex"])
def test_the_conic_method_agrees_with_the_kernels_for_far_targets(K: Any, reach: float) -> None:
    """On faces too, where the target differs from the face mostly along its normal; with and without max_multiplier."""
    rng = np.random.default_rng(0)
    solved = 0
    for k in range(30):
        A, z = rng.normal(size=(3, 6)), K.project(rng.normal(size=6))
        b, y = A @ z + 0.1 * rng.random(3), z + reach * np.abs(rng.normal(size=2)) @ A[:2] + 0.3 * rng.normal(size=6)
        max_multiplier = np.full(3, np.inf) if k % 2 else reach * rng.uniform(0.0, 2.0, 3)
        x, _, status, _ = solve_batch(Request(K, constraints.Affine(A, b), y, max_multiplier))
        by_cones = solve_conic(Request(K, constraints.Affine(A, b), y, max_multiplier))
        if status == 0 and by_cones.status == 0:
            solved += 1
            np.testing.assert_allclose(by_cones.point, x, rtol=0, atol=1e-7)
    assert solved >= 15


@pytest.mark.parametrize(("y", "normal"), [([-3.0, 0.5], True), ([1.0, 3.0], False)])
def test_at_the_tip_of_a_cone_multipliers_must_be_in_its_dual(y: list[float], normal: bool) -> None:
    """At the tip every target has multipliers; only those of targets in the normal cone of {‖x‖ ≤ 2 x_1} are valid."""
    K, g = Box(-10.0, 10.0, dim=2), constraints.SecondOrder(np.eye(2), np.zeros(2), [2.0, 0.0], 0.0)
    scaled = ScaledProblem.of(Request(K, g, np.array(y)), stack([K.cones(), g.cones()], 2), None)
    v, z = -np.array(y) / scaled.unit, np.zeros(len(scaled.cones.b))
    z[-3:] = np.linalg.lstsq(scaled.cones.A[-3:].T, -v, rcond=None)[0]
    assert (scaled.check(Candidate(v, z, None, 0.0, infeasible=False)) is not None) == normal


def assert_optimal(K: Box, g: constraints.Constraint, y: np.ndarray, x: np.ndarray, multipliers: np.ndarray) -> None:
    """The optimality conditions of the projection, which prove it: all is convex."""
    rows = g.rows(x)
    assert K.violation(x) <= 1e-9
    assert (rows <= 1e-9).all()
    assert (multipliers >= -1e-9).all()
    assert (np.abs(multipliers * rows) <= 1e-8).all()
    rest = y - x - multipliers @ g.jacobian(x)  # what is left for the bounds
    assert (rest[x > K.lower + 1e-9] >= -1e-8).all()
    assert (rest[x < K.upper - 1e-9] <= 1e-8).all()


@pytest.mark.parametrize("n", [6, 60, 300])
@pytest.mark.parametrize("kind", ["balls", "exponentials", "quadratics", "cone", "mixed"])
def test_conic_projections_satisfy_the_optimality_conditions(kind: str, n: int) -> None:
    """For small systems of Newton's method, which are dense, and for large ones, which may be sparse."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        z = 0.3 * rng.random(n)
        y = z + 3.0 * rng.normal(size=n)
        ball = constraints.NormBall(z + 0.1 * rng.normal(size=n), 0.1 * np.sqrt(n) + 0.2)
        F, A = rng.normal(size=(n, n)) / np.sqrt(n), rng.normal(size=(5, n)) / np.sqrt(n)
        P = F.T @ F + 0.1 * np.eye(n)
        quadratic = constraints.Quadratic(P, A[0], -0.5 * z @ P @ z - A[0] @ z - 0.1)
        cone = constraints.SecondOrder(F, np.zeros(n), A[1], float(np.linalg.norm(F @ z) - A[1] @ z) + 0.1)
        exponentials = constraints.LogSumExp(A, A @ z + np.log(5.0) + 0.1)
        members = {
            "balls": [ball, constraints.NormBall(z, 0.2 * np.sqrt(n))],
            "exponentials": [exponentials],
            "quadratics": [quadratic, constraints.Quadratic(np.eye(n), A[2], -0.5 * z @ z - A[2] @ z - 0.1)],
            "cone": [cone, constraints.Affine(A[3:], A[3:] @ z + 0.05)],
            "mixed": [quadratic, ball, exponentials],
        }[kind]
        K, g = Box(-1.0, 1.0, dim=n), constraints.Stack(members)
        found = solve_conic(Request(K, g, y))
        assert found.status == 0
        assert_optimal(K, g, y, found.point, found.multipliers)


def test_a_large_sparse_problem_needs_no_dense_matrix() -> None:
    """Box ∩ two balls, n = 1500: a dense matrix of the bounds alone would have 36 MB."""
    n = 1500
    rng = np.random.default_rng(0)
    K = Box(-1.0, 1.0, dim=n)
    g = constraints.Stack([constraints.NormBall(np.zeros(n), 10.0), constraints.NormBall(np.full(n, 0.1), 11.0)])
    y = 2.0 * rng.normal(size=n)
    solve_conic(Request(K, g, y))  # what is loaded and cached at first use does not count
    tracemalloc.start()
    found = solve_conic(Request(Box(-1.0, 1.0, dim=n), g, y))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert_optimal(K, g, y, found.point, found.multipliers)
    assert peak < 8e6


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rhs", [1e-6, 1.0, 1e12])
def test_a_row_of_zeros_that_holds_changes_nothing(length: float, rhs: float) -> None:
    """However large its right-hand side is beside the lengths."""
    ones, ball = np.ones((1, 3)) / length, constraints.Norm1(np.zeros(3), 0.9 * length)
    with_row = constraints.Stack([constraints.Affine(np.vstack([ones, np.zeros((1, 3))]), [1.0, rhs]), ball])
    K, y = cocopt.Box(0.0, length, dim=3), length * np.array([1.0, 0.8, 0.5])
    expected = cocopt.project(K, constraints.Stack([constraints.Affine(ones, [1.0]), ball]), y)
    np.testing.assert_allclose(cocopt.project(K, with_row, y), expected, rtol=0, atol=1e-9 * length)
