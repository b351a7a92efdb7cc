"""Sets of the user's own: known by their projection alone, or by bounds as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import POSITION
from reference.projections import Array

import cocopt
from cocopt import Ball, Box, checks, constraints
from cocopt.errors import InfeasibleRound
from cocopt.sets import Polyhedral


class BallByProjection(cocopt.ConvexSet):
    """The unit ball, known by its projection alone."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def project_unchecked(self, point: Array) -> Array:
        return point / np.maximum(np.linalg.norm(point, axis=-1, keepdims=True), 1.0)

    def violation_unchecked(self, point: Array) -> Array:
        return np.maximum(np.linalg.norm(point, axis=-1) - 1.0, 0.0)


class OrthantByProjection(cocopt.ConvexSet):
    """x ≥ 0, known by its projection alone."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def project_unchecked(self, point: Array) -> Array:
        return np.maximum(point, 0.0)

    def violation_unchecked(self, point: Array) -> Array:
        return np.maximum(-point.min(axis=-1), 0.0)


class OrthantWithBounds(OrthantByProjection):
    """x ≥ 0, known by its bounds as well."""

    def polyhedral(self) -> Polyhedral:
        return Polyhedral(np.zeros(self.dim), np.full(self.dim, np.inf), np.zeros((0, self.dim)), np.zeros(0))


@pytest.mark.parametrize("count", [1, 2, 4, 10])
@pytest.mark.parametrize(
    ("own", "builtin"),
    [(BallByProjection(4), Ball(0.0, 1.0, dim=4)), (OrthantByProjection(4), Box(0.0, np.inf, dim=4))],
    ids=["disc", "orthant"],
)
def test_a_set_known_by_its_projection_alone(own: Any, builtin: Any, count: int) -> None:
    rng = np.random.default_rng(count)
    z = builtin.project(0.4 * rng.normal(size=4))
    A = rng.normal(size=(8, count, 4))
    g = constraints.Affine(A, A @ z + rng.uniform(0.02, 0.2, (8, count)))
    y = z + 2 * rng.normal(size=(8, 4))
    assert cocopt.explain(own, g).startswith("dual: ")
    x = cocopt.project(own, g, y)
    np.testing.assert_allclose(x, cocopt.project(builtin, g, y), rtol=0, atol=POSITION)
    assert own.violation(x).max() <= 1e-9
    assert g.value(x).max() <= 1e-9 * 10


def test_a_set_known_by_its_projection_alone_can_be_infeasible() -> None:
    g = constraints.Affine([[-1.0, 0.0], [0.0, 1.0]], [-2.0, 5.0])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(BallByProjection(2), g, [0.3, 0.4])
    np.testing.assert_allclose(caught.value.least_violation, [1.0], rtol=1e-5)


def test_a_user_defined_polyhedron_has_cones() -> None:
    own, builtin, y = OrthantWithBounds(3), Box(0.0, np.inf, dim=3), np.array([2.0, -1.0, 1.0])
    checks.check_set(own)
    assert own.conic
    diamond = constraints.Norm1([0.5, -0.5, 0.0], 1.0)
    assert cocopt.explain(own, diamond).startswith("pieces: ")
    smooth = constraints.LogSumExp(np.eye(3), [1.0, 1.5, 1.0])
    assert cocopt.explain(own, smooth).startswith("clarabel: ")
    np.testing.assert_allclose(cocopt.project(own, smooth, y), cocopt.project(builtin, smooth, y), atol=1e-8)
    np.testing.assert_allclose(cocopt.project(own, diamond, y), cocopt.project(builtin, diamond, y), rtol=0, atol=1e-12)
    with pytest.raises(InfeasibleRound) as caught:  # a black box, for which the least violation comes from cuts
        cocopt.project(own, constraints.Function(lambda x: x @ x + 0.25, lambda x: 2 * x), y)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], rtol=1e-5)
