"""Simplices with upper bounds, the orthant and the whole space."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from reference.sets import by_cvxpy

import cocopt
from cocopt import Box, CappedSimplex, Orthant, Simplex, Space, constraints
from cocopt.errors import EmptySet, InvalidInput


def capped_exactly(point, caps, total):
    """The projection in rational arithmetic: tries θ between each two neighbouring kinks."""
    y, c = [Fraction(float(p)) for p in point], [min(Fraction(float(u)), Fraction(total)) for u in caps]

    def clipped(theta):
        return [min(max(p - theta, Fraction(0)), u) for p, u in zip(y, c, strict=True)]

    kinks = sorted({*y, *(p - u for p, u in zip(y, c, strict=True))})
    for low, high in pairwise(kinks):
        most, least = sum(clipped(low)), sum(clipped(high))
        if most >= total >= least:
            share = (most - total) / (most - least) if most > least else Fraction(0)
            return np.array([float(v) for v in clipped(low + share * (high - low))])
    raise AssertionError("no θ fits")


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_the_projection_onto_a_capped_simplex_is_exact(n):
    rng = np.random.default_rng(n)
    for size in (1e-3, 1.0, 1e3, 1e9, 1e15, 1e18):
        caps = rng.uniform(1.0, 4.0, n) / n
        caps[rng.random(n) < 0.2] = 1.0
        K = CappedSimplex(n, caps)
        y = size * rng.normal(size=(5, n))
        exact = [capped_exactly(p, caps, 1) for p in y]
        np.testing.assert_allclose(K.project(y), exact, atol=1e-14 * n)


def test_the_projection_onto_a_capped_simplex_is_that_of_cvxpy():
    rng = np.random.default_rng(0)
    for n in (2, 5, 11):
        K = CappedSimplex(n, rng.uniform(1.0, 3.0, n) * 2.5 / n, total=2.5)
        y = rng.normal(size=n)
        np.testing.assert_allclose(K.project(y), by_cvxpy(K, y), atol=1e-6)


def test_caps_that_do_not_bind_leave_the_simplex():
    y = np.random.default_rng(1).normal(size=(50, 6))
    for caps in (np.inf, 2.0):
        np.testing.assert_allclose(CappedSimplex(6, caps, 2.0).project(y), Simplex(6, 2.0).project(y), atol=1e-15)


def test_caps_whose_sum_is_the_total_leave_one_point():
    K = CappedSimplex(10, 0.1)  # whose sum is less than 1 in floating-point numbers
    np.testing.assert_allclose(K.project(np.arange(10.0)), 0.1, atol=1e-16)
    assert K.diameter <= 1e-12
    assert K.contains(np.full(10, 0.1))
    g = constraints.Affine(np.ones(10), 2.0)
    np.testing.assert_allclose(cocopt.project(K, g, np.arange(10.0)), 0.1, atol=1e-12)


def test_rows_over_a_capped_simplex():
    K, y = CappedSimplex(4, [0.5, 0.5, 0.3, 1.0]), np.array([2.0, 1.0, 0.0, -1.0])
    rows = constraints.Affine([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, -1.0, 0.0]], [0.6, 0.2])
    polyhedron = cocopt.Polyhedron(
        np.concatenate([np.eye(4), -np.eye(4), np.ones((1, 4)), -np.ones((1, 4))]),
        np.concatenate([K.caps, np.zeros(4), [1.0, -1.0]]),
    )
    np.testing.assert_allclose(cocopt.project(K, rows, y), cocopt.project(polyhedron, rows, y), atol=1e-9)


def test_the_linear_minimiser_of_a_capped_simplex_fills_the_cheapest_coordinates():
    K = CappedSimplex(4, [0.5, 0.25, 1.0, 0.5])
    np.testing.assert_allclose(K.minimise_linear([[1.0, 0.0, 3.0, 2.0], [0.0, 0.0, -1.0, 0.0]]),
                               [[0.5, 0.25, 0.0, 0.25], [0.0, 0.0, 1.0, 0.0]])  # fmt: skip


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CappedSimplex(2, 0.4), EmptySet, "the sum of caps is below the total"),
        (lambda: CappedSimplex(2, 0.0), EmptySet, "the sum of caps is below the total"),
        (lambda: CappedSimplex(2, [1.0, -1.0]), InvalidInput, "caps: expected non-negative"),
        (lambda: CappedSimplex(2, [1.0, 1.0, 1.0]), InvalidInput, "caps: expected a number or shape"),
        (lambda: CappedSimplex(2, [1.0, np.nan]), InvalidInput, "caps: expected finite numbers or infinities"),
        (lambda: CappedSimplex(2, 1.0, 0.0), InvalidInput, "total: expected a positive"),
        (lambda: Orthant(0), InvalidInput, "dim: expected a positive integer"),
        (lambda: Space(1.5), InvalidInput, "dim: expected a positive integer"),
        (lambda: Space(2).minimise_linear([1.0, 0.0]), InvalidInput, "unbounded"),
        (lambda: Orthant(2).minimise_linear([-1.0, 0.0]), InvalidInput, "unbounded"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(("K", "box"), [(Orthant(3), Box(0.0, np.inf, dim=3)), (Space(3), Box(-np.inf, np.inf, dim=3))])
def test_the_orthant_and_the_space_are_boxes(K, box):
    rng = np.random.default_rng(0)
    y, A, b = rng.normal(size=(8, 3)), rng.normal(size=(8, 2, 3)), rng.uniform(size=(8, 2))
    np.testing.assert_array_equal(K.project(y), box.project(y))
    assert not K.bounded
    for rows in (1, 2):
        g = constraints.Affine(A[:, :rows], b[:, :rows])
        np.testing.assert_allclose(cocopt.project(K, g, y), cocopt.project(box, g, y), atol=1e-9)
