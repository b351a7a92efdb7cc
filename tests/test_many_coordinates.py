"""One row over a box, a ball or a simplex of thousands of dimensions, where the kernels look at a sample first.

Correct must not depend on the sample: sorted, periodic, sparse and heavy-tailed data mislead it.
"""

from fractions import Fraction

import numpy as np
import pytest
from reference.least_squares import nnls
from scipy.optimize import brentq

import cocopt
from cocopt import Ball, Box, Simplex, constraints, errors
from cocopt.kernels.simplex import threshold_of

N = 20_011


def data(shape, rng, n=N):
    y, a = rng.uniform(-1, 2, n), rng.uniform(-1, 2, n)
    match shape:
        case "sorted":
            y, a = np.sort(y), np.sort(a)
        case "opposed":
            y, a = np.sort(y), -np.sort(-a)
        case "periodic":  # of the distance between the blocks of a sample
            a = np.where(np.arange(n) // 64 % 32 == np.arange(n) // 2048 % 32, 1e-3, 1.0)
        case "sparse":
            a = np.where(rng.uniform(size=n) < 1e-3, a, 0.0)
        case "heavy":
            y, a = rng.standard_cauchy(n), rng.standard_cauchy(n)
        case "one":
            y, a = np.ones(n), np.ones(n)
        case "spike":
            a = np.where(np.arange(n) == n // 2, 1e3, 1e-6)
        case "head":
            a = np.where(np.arange(n) < n // 50, a, 0.0)
    return y, a


def exact_on(support, y, a, b):
    """x_j = y_j − ν a_j − τ on the support with Σx = 1 and ⟨a, x⟩ = b, in rational arithmetic."""
    ys, as_ = [Fraction(v) for v in y[support]], [Fraction(v) for v in a[support]]
    m, s_y, s_a = len(ys), sum(ys), sum(as_)
    s_aa, s_ay = sum(v * v for v in as_), sum(u * v for u, v in zip(ys, as_, strict=True))
    nu = ((s_y - 1) * s_a - m * (s_ay - Fraction(b))) / (s_a * s_a - m * s_aa)
    tau = (s_y - nu * s_a - 1) / m
    return [float(u - nu * v - tau) for u, v in zip(ys, as_, strict=True)]


SHAPES = ("random", "sorted", "opposed", "periodic", "sparse", "heavy", "one", "spike", "head")


def monotone_root(h, cap):
    """The root of a function that never increases, 0 if it starts below, cap if it ends above."""
    if h(0.0) <= 0:
        return 0.0
    end = 1.0
    while end < cap and h(end) > 0 and end < 1e15:
        end *= 2.0
    end = min(end, cap)
    return cap if h(end) > 0 else brentq(h, 0.0, end, xtol=1e-300, rtol=1e-15, maxiter=2000)


def naive_simplex(z):
    """The projection onto the unit simplex by sorting."""
    s = np.sort(z)[::-1]
    tau = (np.cumsum(s) - 1) / np.arange(1, z.size + 1)
    last = np.flatnonzero(s > tau)[-1]
    return np.maximum(z - tau[last], 0.0)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("shape", SHAPES)
def test_box(shape, share):
    rng = np.random.default_rng(SHAPES.index(shape))
    y, a = data(shape, rng)
    lower, upper = rng.uniform(-0.5, 0.2, N), rng.uniform(0.3, 1.5, N)
    lower[::7], upper[::11] = -np.inf, np.inf
    least = np.sum(a * np.where(a > 0, np.maximum(lower, -3.0), np.minimum(upper, 3.0)))
    b = least + share * (a @ np.clip(y, lower, upper) - least)
    K, g = Box(lower, upper), constraints.Affine(a, b)
    for cap in (np.inf, 0.1):
        nu = monotone_root(lambda v: a @ np.clip(y - v * a, lower, upper) - b, cap)
        wanted = np.clip(y - nu * a, lower, upper)
        x = cocopt.project(K, g, y) if cap == np.inf else cocopt.hinge_prox(K, g, y, weight=cap)
        np.testing.assert_allclose(x, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
        if cap == np.inf:
            assert a @ x - b <= 1e-11 * (np.abs(a) @ np.abs(x) + abs(b))


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("shape", SHAPES)
def test_simplex(shape, share):
    rng = np.random.default_rng(SHAPES.index(shape))
    y, a = data(shape, rng)
    b = a.min() + share * (a @ naive_simplex(y) - a.min())
    nu = monotone_root(lambda v: a @ naive_simplex(y - v * a) - b, np.inf) if np.ptp(a) else 0.0
    x = cocopt.project(Simplex(N), constraints.Affine(a, b + 1e-12 * (np.ptp(a) == 0)), y)
    wanted = naive_simplex(y - nu * a)
    support = np.flatnonzero(wanted)
    if (
        nu > 0 and support.size < 200 and np.ptp(a[support]) > 0
    ):  # few coordinates: ν may be so large that the bisection loses digits
        wanted[support] = exact_on(support, y, a, b)
    np.testing.assert_allclose(x, wanted, rtol=0, atol=1e-9)
    assert abs(x.sum() - 1.0) <= 1e-12 * N
    assert x.min() >= 0.0
    assert a @ x - b <= 1e-10 * (np.abs(a) @ x + abs(b)) + 1e-12


@pytest.mark.parametrize("offset", [0.0, 3.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_ball(shape, offset):
    """The optimality conditions: x + μ(x − c) + ν a = y with μ, ν ≥ 0, both complementary."""
    rng = np.random.default_rng(SHAPES.index(shape))
    y, a = data(shape, rng)
    c = np.full(N, offset)
    for height in (-0.999, -0.3, 0.0, 0.7):
        b = a @ c + height * np.linalg.norm(a)
        x = cocopt.project(Ball(c, 1.0), constraints.Affine(a, b), y)
        d = x - c
        assert np.linalg.norm(d) <= 1.0 + 1e-12
        assert a @ x - b <= 1e-12 * np.linalg.norm(a) * (1.0 + np.linalg.norm(c)) * np.sqrt(N)
        q, r = np.linalg.qr(np.column_stack([d, a]))
        (mu, nu), _ = nnls(r, q.T @ (y - x))
        np.testing.assert_allclose(mu * d + nu * a, y - x, atol=1e-9 * np.linalg.norm(y - c))
        assert mu <= 1e-9 * np.linalg.norm(y) or np.linalg.norm(d) >= 1.0 - 1e-9
        assert nu * np.linalg.norm(a) <= 1e-9 * np.linalg.norm(y) or a @ d >= (height - 1e-9) * np.linalg.norm(a)


def test_rows_without_a_point_are_found_empty():
    n = 9001
    a = np.linspace(0.5, 1.0, n)
    with pytest.raises(errors.InfeasibleRound):
        cocopt.project(Box(0.0, 1.0, dim=n), constraints.Affine(a, -1.0), np.ones(n))
    with pytest.raises(errors.InfeasibleRound):
        cocopt.project(Simplex(n), constraints.Affine(a, 0.4), np.ones(n))


class Counted:
    """An array that counts how often it is read."""

    def __init__(self, *values):
        self.values, self.shape, self.reads = values, (len(values),), 0

    def __getitem__(self, j):
        self.reads += 1
        return self.values[j]


def test_supports_of_the_simplex_that_differ_by_rounding_alone_end_the_search():
    """Three coordinates of sum 2 give τ = 1/3, which the fourth exceeds by one rounding; with it, τ is no smaller.

    In and out it would go, one pass over all coordinates each, until the bound on their number: for ever in practice.
    """
    third = (2.0 - 1.0) / 3.0
    y = Counted(np.nextafter(third, 1.0))
    assert (2.0 + y.values[0] - 1.0) / 4.0 >= y.values[0]
    tau, _, _ = threshold_of.py_func(y, np.zeros(1), 0.0, third, 1.0, (3.0, 2.0, 0.0, 0.0, 0.0))
    assert tau == pytest.approx(third, rel=1e-15)
    assert y.reads <= 5


def test_a_far_target_and_coordinates_that_cannot_move():
    """Half of the breakpoints have no width, and the root lies beyond thousands of pieces that hardly descend."""
    n, rng = 2500, np.random.default_rng(0)
    lower = rng.normal(size=n)
    upper = np.where(rng.uniform(size=n) < 0.5, lower, lower + 1.0)
    y = 2e4 * rng.normal(size=n)
    b = lower.sum() + 1e-6 * (np.clip(y, lower, upper).sum() - lower.sum())
    x = cocopt.project(Box(lower, upper), constraints.Affine(np.ones(n), b), y)
    nu = brentq(lambda nu: np.clip(y - nu, lower, upper).sum() - b, 0.0, 1e6, xtol=1e-12)
    np.testing.assert_allclose(x, np.clip(y - nu, lower, upper), atol=1e-7)
    assert abs(x.sum() - b) <= 1e-10


@pytest.mark.parametrize("K", [Box(-1.0, 1.0, dim=100_000), Ball(0.0, 1.0, dim=100_000)], ids=["box", "ball"])
def test_an_infeasible_row_needs_no_solver(K):
    n = K.dim
    a = np.random.default_rng(0).normal(size=n)
    nearest = -np.sign(a) if isinstance(K, Box) else -a / np.linalg.norm(a)
    g = constraints.Affine(a, a @ nearest - 3.0)
    with pytest.raises(errors.InfeasibleRound) as caught:
        cocopt.project(K, g, np.zeros(n))
    np.testing.assert_allclose(caught.value.least_violation, [3.0], rtol=1e-9)
    np.testing.assert_allclose(cocopt.project(K, g, np.zeros(n), infeasible="nearest"), nearest, atol=1e-12)
