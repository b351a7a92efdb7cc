"""Projections in 1 to 1000 dimensions and with 1 to 300 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import POSITION, affine_case, build, build_set, random_set
from reference import projections as reference
from reference.projections import Description

import cocopt
from cocopt import Ball, Box, Simplex, constraints


@pytest.mark.parametrize(
    ("K", "low", "high"),
    [
        (Box([-1.0], [2.0]), -1.0, 2.0),
        (Box([-np.inf], [np.inf]), -np.inf, np.inf),
        (Ball([0.5], 1.5), -1.0, 2.0),
        (Simplex(1, 0.5), 0.5, 0.5),
        (cocopt.Halfspace([2.0], 4.0), -np.inf, 2.0),
        (cocopt.Polyhedron([[1.0], [-1.0]], [2.0, 1.0]), -1.0, 2.0),
        (cocopt.L1Ball([0.5], 1.5), -1.0, 2.0),
        (cocopt.Ellipsoid([0.5], [[2.25]]), -1.0, 2.0),
        (cocopt.Product([Box([-1.0], [2.0])]), -1.0, 2.0),
    ],
)
@pytest.mark.parametrize(
    ("g", "bottom"),
    [
        (constraints.Affine([2.0], 1.0), -np.inf),
        (constraints.Affine([[2.0], [1.0], [-1.0]], [1.0, 0.7, 0.75]), -0.75),
        (constraints.NormBall([-0.5], 1.0), -1.5),
        (constraints.Quadratic([[2.0]], [0.0], -0.25), -0.5),
        (constraints.SecondOrder([[1.0]], [0.0], [0.0], 0.5), -0.5),
        (constraints.Function(lambda x: float(x[0] - 0.5), lambda x: np.ones(1)), -np.inf),
    ],
)
def test_one_dimension(K: Any, low: float, high: float, g: Any, bottom: float) -> None:
    """Intervals: {g ≤ 0} = [bottom, ½]."""
    y = np.array([[4.0], [0.5], [0.1], [-0.6], [-7.0]])
    expected = np.clip(y, max(low, bottom), min(high, 0.5))
    np.testing.assert_allclose(cocopt.project(K, g, y), expected, rtol=0, atol=POSITION)


@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex"])
def test_a_thousand_dimensions(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 1000, count, count)
    x = cocopt.project(build_set(described), constraints.Affine(A, b), y)
    expected = reference.by_cvxpy(described, ("Affine", A, b), y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * np.linalg.norm(y))


def test_a_norm_ball_in_a_thousand_dimensions() -> None:
    rng = np.random.default_rng(0)
    described: Description = ("Box", np.zeros(1000), np.ones(1000))
    g: Description = ("NormBall", rng.uniform(0, 1, 1000), 2.0)
    y = rng.uniform(-1, 2, 1000)
    x = cocopt.project(build_set(described), build(g), y)
    expected = reference.by_cvxpy(described, g, y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * np.linalg.norm(y))


@pytest.mark.parametrize("kind", ["Box", "Simplex", "Polyhedron"])
def test_from_one_row_to_a_hundred(kind: str) -> None:
    """Every M, so every change of method, against an active-set solver; half of the M in batches."""
    for count in range(1, 101):
        rng = np.random.default_rng(count)
        described, z = random_set(kind, 6, rng)
        K = build_set(described)
        A = rng.normal(size=(3, count, 6))
        b = A @ z + rng.uniform(0.05, 0.3, (3, count))
        y = z + 2 * rng.normal(size=(3, 6))
        x = cocopt.project(K, constraints.Affine(A, b), y)
        for i in range(3):
            expected = reference.least_distance(*reference.all_rows(described, ("Affine", A[i], b[i])), y[i])
            np.testing.assert_allclose(x[i], expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16, 32, 64, 100, 300])
@pytest.mark.parametrize("kind", ["Ball", "Ellipsoid", "L1Ball", "Product"])
def test_many_rows_in_other_sets(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 6, count, count)
    x = cocopt.project(build_set(described), constraints.Affine(A, b), y)
    expected = reference.project(described, ("Affine", A, b), y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))
