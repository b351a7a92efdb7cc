"""Constraints known only by values and subgradients: cutting planes."""

from __future__ import annotations

import numpy as np
import pytest
from reference.projections import Array

import cocopt
from cocopt import Ball, Box, constraints
from cocopt.errors import CutLimit, InfeasibleRound
from cocopt.geometry import solve_projection


def unit_ball_by_value_and_gradient() -> constraints.Function:
    """‖x‖ ≤ 1, known only by values and subgradients."""
    return constraints.Function(lambda x: float(np.linalg.norm(x) - 1.0), lambda x: x / np.linalg.norm(x))


def test_the_number_of_cuts_is_reported() -> None:
    y = [[3.0, 2.0, 1.0], [0.1, 0.1, 0.1], [0.0, 0.0, 5.0]]
    result = solve_projection(Box(-2.0, 2.0, dim=3), unit_ball_by_value_and_gradient(), np.array(y))
    assert result.method == "cuts"
    assert np.all(np.asarray(result.cuts) <= 500)
    assert np.max(result.cuts) >= 2
    np.testing.assert_allclose(result.point[0], np.array(y[0]) / np.linalg.norm(y[0]), atol=1e-7)
    np.testing.assert_array_equal(result.point[1], y[1])


def test_affine_rows_need_no_cuts() -> None:
    result = solve_projection(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0), np.array([1.0, 0.5]))
    assert result.method == "kernel"
    assert np.max(result.cuts) == 0
    assert bool(np.all(result.feasible))
    assert np.max(result.least_violation) == 0.0


def test_too_few_cuts_are_an_error() -> None:
    K, y = Box(-2.0, 2.0, dim=3), np.array([3.0, 2.0, 1.0])
    needed = int(np.max(solve_projection(K, unit_ball_by_value_and_gradient(), y).cuts))
    with pytest.raises(CutLimit) as caught:
        cocopt.project(K, unit_ball_by_value_and_gradient(), y, cuts=2)
    assert caught.value.cuts == 2
    assert 1e-7 < caught.value.violation < 3.0
    cocopt.project(K, unit_ball_by_value_and_gradient(), y, cuts=needed)


def test_a_looser_tolerance_needs_fewer_cuts() -> None:
    K, y = Box(-2.0, 2.0, dim=3), np.array([3.0, 2.0, 1.0])
    loose, tight = (solve_projection(K, unit_ball_by_value_and_gradient(), y, tol=tol) for tol in (1e-2, 1e-9))
    assert np.max(loose.cuts) < np.max(tight.cuts)
    assert unit_ball_by_value_and_gradient().value(loose.point) <= 1e-2
    assert unit_ball_by_value_and_gradient().value(tight.point) <= 1e-9


def test_a_black_box_that_is_not_smooth() -> None:
    """The sup norm: cuts find its faces and finish exactly."""

    def gradient(x: Array) -> Array:
        i = int(np.argmax(np.abs(x)))
        return np.sign(x[i]) * np.eye(len(x))[i]

    g = constraints.Function(lambda x: float(np.abs(x).max() - 1.0), gradient)
    x = cocopt.project(Ball(0.0, 3.0, dim=4), g, [5.0, -4.0, 0.5, 1.0])
    np.testing.assert_allclose(x, [1.0, -1.0, 0.5, 1.0], atol=1e-7)


def test_a_black_box_without_feasible_points_is_infeasible() -> None:
    g = constraints.Function(lambda x: float(x @ x + 1.0), lambda x: 2 * x)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-1.0, 2.0, dim=2), g, [2.0, 1.0])
    np.testing.assert_allclose(caught.value.least_violation, [1.0], rtol=1e-6)
    x = cocopt.project(Box(-1.0, 2.0, dim=2), g, [2.0, 1.0], infeasible="nearest")
    np.testing.assert_allclose(x, [0.0, 0.0], atol=1e-3)  # √1e-7: the violation is flat there
    assert g.value(x) <= 1.0 + 1e-6
