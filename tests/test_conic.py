"""The conic method beside the kernels, and its optimality conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
