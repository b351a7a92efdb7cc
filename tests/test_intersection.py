"""Intersections of sets: refusals, members that are known by their projection alone, learners, hindsight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference.sets import by_cvxpy

import cocopt
from cocopt import (
    Ball,
    Box,
    Ellipsoid,
    Halfspace,
    Intersection,
    L1Ball,
    Orthant,
    Simplex,
    Space,
    constraints,
    hindsight,
)
from cocopt.errors import EmptySet, InvalidInput


class Disc(cocopt.ConvexSet):
    """A ball that is known by its projection alone."""

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        self.dim, self.radius = dim, radius

    def project_unchecked(self, point: Any) -> Any:
        return point * np.minimum(1.0, self.radius / np.maximum(np.linalg.norm(point, axis=-1, keepdims=True), 1e-300))

    def violation_unchecked(self, point: Any) -> Any:
        return np.maximum(np.linalg.norm(point, axis=-1) - self.radius, 0.0)


CURVED = {
    "simplex and ball": lambda: Intersection([Simplex(4), Ball([0.7, 0.1, 0.1, 0.1], 0.4)]),
    "simplex and ellipsoid": lambda: Intersection([Simplex(3), Ellipsoid([0.5, 0.3, 0.2], np.diag([0.1, 0.02, 0.3]))]),
    "two balls": lambda: Intersection([Ball([0.0, 0.0], 1.0), Ball([1.5, 0.0], 1.0)]),
    "l1 ball and ball": lambda: Intersection([L1Ball(0, 1.0, dim=3), Ball([0.3, 0.0, 0.0], 0.6)]),
    "nested": lambda: Intersection([Intersection([Ball(0, 1.0, dim=2), Orthant(2)]), Halfspace([1.0, 2.0], 1.0)]),
}


@pytest.mark.parametrize("name", CURVED)
def test_the_projection_is_that_of_cvxpy(name: str) -> None:
    rng = np.random.default_rng(0)
    K = CURVED[name]()
    for reach in (0.1, 1.0, 10.0, 1e3):
        for y in reach * rng.normal(size=(4, K.dim)):
            x = K.project(y)
            assert K.contains(x)
            if "nested" not in name:
                np.testing.assert_allclose(x, by_cvxpy(K, y), rtol=0, atol=1e-6 * max(1.0, 1e-2 * reach))
            z = K.project(rng.normal(size=(20, K.dim)))
            assert ((z - x) @ (y - x) <= 1e-8 * max(1.0, reach)).all()  # the variational inequality


def test_points_of_all_members_are_returned_bit_for_bit() -> None:
    K = CURVED["two balls"]()
    y = np.array([[0.75, 0.1], [0.7, 0.0]])
    assert np.array_equal(K.project(y), y)


def test_far_targets() -> None:
    """From 1e12 sizes away the corner where both circles meet is found to the promise."""
    K = CURVED["two balls"]()
    corner = np.array([0.75, np.sqrt(1.0 - 0.75**2)])
    for reach in (1e2, 1e6, 1e12):
        np.testing.assert_allclose(K.project([0.75, reach]), corner, rtol=0, atol=1e-7)


def test_members_known_by_their_projection_alone() -> None:
    """By Dykstra's method; the same set in conic form is the reference."""
    K, same = (
        Intersection([disc, Halfspace([1.0, 1.0], 0.5), Box(-0.9, 0.9, dim=2)])
        for disc in (Disc(2), Ball(0, 1.0, dim=2))
    )
    rng = np.random.default_rng(1)
    y = 3.0 * rng.normal(size=(30, 2))
    np.testing.assert_allclose(K.project(y), same.project(y), rtol=0, atol=1e-7)
    assert K.polyhedral() is None
    assert K.cones() is None
    with pytest.raises(EmptySet, match="Dykstra"):
        Intersection([Disc(1), Halfspace([1.0], -2.0)])


def test_members_without_a_common_point_are_refused() -> None:
    for sets, text in [
        ([Box(0.0, 1.0, dim=2), Box(2.0, 3.0, dim=2)], "the bounds of coordinate 0"),
        ([Simplex(2), Halfspace([1.0, 1.0], 0.5)], "no common point"),
        ([Ball(0, 1.0, dim=2), Ball(3.0, 1.0, dim=2)], "no common point"),
        ([Simplex(2), Ball([5.0, 5.0], 1.0)], "no common point"),
    ]:
        with pytest.raises(EmptySet, match=text):
            Intersection(sets)


def test_arguments_are_checked() -> None:
    for sets, text in [
        ([], "at least one set"),
        ([Simplex(2), 3], "got int at index 1"),
        ([Simplex(2), Simplex(3)], "expected dimension 2 as that of the first, got 3"),
    ]:
        with pytest.raises(InvalidInput, match=text):
            Intersection(sets)  # type: ignore[arg-type]


def test_the_affine_hull_of_a_flat_curved_intersection() -> None:
    """That of the simplex; a ball within it is in K."""
    K = CURVED["simplex and ball"]()
    assert not K.full_dimensional
    np.testing.assert_allclose(K.project_direction([1.0, 2.0, 3.0, 6.0]), [-2.0, -1.0, 0.0, 3.0], rtol=0, atol=1e-12)
    rng = np.random.default_rng(3)
    around = K.project_direction(rng.normal(size=(50, 4)))
    around *= 0.999 * K.inner_radius / np.linalg.norm(around, axis=-1, keepdims=True)
    assert K.inner_radius > 0.03
    assert K.contains(K.center + around).all()


def test_members_that_touch_have_no_ball_in_common() -> None:
    """Then no centre is known; the projection still is, to what the position of a single point allows."""
    K = Intersection([Ball([0.0, 0.0], 1.0), Ball([2.0, 0.0], 1.0)])
    np.testing.assert_allclose(K.project([1.0, 3.0]), [1.0, 0.0], rtol=0, atol=1e-4)
    with pytest.raises(InvalidInput, match="interior point"):
        K.center  # noqa: B018


def test_sizes() -> None:
    K = Intersection([Space(2), Ellipsoid(0, np.eye(2)), Ball(0, 2.0, dim=2)])
    assert K.diameter == 2.0
    assert K.outer_radius == pytest.approx(1.0, abs=1e-6)
    assert K.inner_radius == pytest.approx(1.0, abs=1e-6)


def test_the_linear_minimiser_of_a_curved_intersection() -> None:
    K = Intersection([Ball(0, 1.0, dim=2), Halfspace([1.0, 0.0], 0.6)])
    np.testing.assert_allclose(K.minimise_linear([-1.0, -1.0]), [0.6, 0.8], rtol=0, atol=1e-7)
    np.testing.assert_allclose(K.minimise_linear([1.0, 0.0]), [-1.0, 0.0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["two balls", "simplex and ball"])
def test_projection_with_a_constraint_learning_and_hindsight(name: str) -> None:
    """As a set K of its own; the value in hindsight is checked on many points of K."""
    K = CURVED[name]()
    rng = np.random.default_rng(2)
    a = rng.normal(size=K.dim)
    middle = K.project(np.full(K.dim, 0.4))
    g = constraints.Affine(a, float(a @ middle) + 0.01)
    x = cocopt.project(K, g, middle + a)
    assert K.contains(x)
    assert g.value(x) <= 1e-9
    learner = cocopt.CLASP(K)
    losses = [cocopt.losses.Linear(rng.normal(size=K.dim)) for _ in range(5)]
    for loss in losses:
        learner.ask()
        learner.tell(loss, g)
    best = hindsight.best_fixed(K, losses, [g] * 5)
    points = K.project(rng.normal(size=(300, K.dim)))
    values = sum(loss.value(points) for loss in losses)[g.value(points) <= 0.0]
    assert best.value <= values.min() + 1e-6
    assert K.contains(best.point)


def test_it_is_stored_with_its_members(tmp_path: Any) -> None:
    learner = cocopt.CLASP(CURVED["two balls"]())
    learner.ask()
    learner.tell(cocopt.losses.Linear([1.0, 2.0]), None)
    learner.save(tmp_path / "state.npz")
    again = cocopt.load(tmp_path / "state.npz")
    assert np.array_equal(again.ask(), learner.ask())
    assert repr(again.K) == repr(learner.K)
