"""The sets: projections by the theory's identities, against naive references, and refusals of what is no set."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.sets import by_cvxpy, ellipsoid_by_bisection, l1_exactly, simplex_exactly

from cocopt import Ball, Box, ConvexSet, Ellipsoid, Halfspace, Intersection, L1Ball, Polyhedron, Product, Simplex
from cocopt.checks import check_set
from cocopt.errors import EmptySet, InvalidInput

inf, nan = np.inf, np.nan


def rotation(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def spd(rng, n, condition):
    root = rotation(rng, n) * np.sqrt(np.logspace(0, -np.log10(condition), n))
    return root @ root.T


def polyhedron(rng, n, rows, unit):
    A = rng.normal(size=(rows, n)) * 10 ** rng.uniform(-3, 3, (rows, 1))
    return Polyhedron(A, unit * (A @ rng.normal(size=n) + np.linalg.norm(A, axis=1) * rng.uniform(0.1, 1, rows)))


# One row a kind of set: (random generator, dimension, unit of length) → set.
TABLE = {
    "box": lambda r, n, s: Box(s * r.uniform(-2, 0, n), s * r.uniform(0, 2, n)),
    "box, half open": lambda r, n, s: Box(np.where(r.random(n) < 0.5, -inf, -s), np.where(r.random(n) < 0.5, inf, s)),
    "box, one point": lambda r, n, s: Box(s, s, dim=n),
    "ball": lambda r, n, s: Ball(s * r.normal(size=n), s * r.uniform(0.1, 2)),
    "ball, one point": lambda r, n, s: Ball(s * r.normal(size=n), 0.0),
    "simplex": lambda r, n, s: Simplex(n, s * r.uniform(0.1, 2)),
    "halfspace": lambda r, n, s: Halfspace(r.normal(size=n) * 10 ** r.uniform(-3, 3), s * r.normal()),
    "polyhedron": lambda r, n, s: polyhedron(r, n, int(r.integers(1, 2 * n + 2)), s),
    "l1 ball": lambda r, n, s: L1Ball(s * r.normal(size=n), s * r.uniform(0.1, 2)),
    "l1 ball, one point": lambda r, n, s: L1Ball(s * r.normal(size=n), 0.0),
    "ellipsoid": lambda r, n, s: Ellipsoid(s * r.normal(size=n), s**2 * spd(r, n, 1e3)),
    "product": lambda r, n, s: Product(
        [Ball(s * r.normal(size=n), s), Simplex(n, s), Product([L1Ball(0, s, dim=n), Box(0.0, s, dim=1)])]
    ),
    "product, polyhedral": lambda r, n, s: Product(
        [Halfspace(r.normal(size=n), s * r.normal()), Simplex(n, s), Box(-inf, s, dim=n), Simplex(1, s)]
    ),
    "intersection, polyhedral": lambda r, n, s: Intersection(
        [Box(-s, s, dim=n), Halfspace(r.normal(size=n), s * r.uniform(0.1, 1)), Box(s * r.uniform(-2, 0, n), inf)]
    ),
    "intersection, curved": lambda r, n, s: Intersection(
        [
            Ball(s * r.uniform(-0.5, 0.5, n) / np.sqrt(n), s),
            Box(-0.7 * s, 0.7 * s, dim=n),
            Halfspace(r.normal(size=n), 0.3 * s),
        ]
    ),
}

every_set = pytest.mark.parametrize("name", TABLE)
cases = given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), unit=st.sampled_from([1e-6, 1.0, 1e6]))


def draw(name, seed, n, unit):
    """A set, and eight points near and far."""
    rng = np.random.default_rng(seed)
    K = TABLE[name](rng, n, unit)
    return K, unit * rng.normal(size=(8, K.dim)) * 10 ** rng.uniform(-1, 3, (8, 1))


def size(K, points):
    return np.maximum(np.abs(points).max(axis=-1), K.scale)


@every_set
@cases
@settings(max_examples=40)
def test_projection_by_its_identities(name, seed, n, unit):
    K, y = draw(name, seed, n, unit)
    p, z = K.project(y), K.project(y[::-1] / 3)
    scale = size(K, y)
    assert K.contains(p).all()
    again = K.project(p)
    if (
        name == "polyhedron" or "intersection" in name
    ):  # its corners are solutions of equations, right to rounding times their condition
        np.testing.assert_allclose(again, p, rtol=0, atol=1e-12 * scale.max())
    else:
        assert np.array_equal(again, p)
    length = np.linalg.norm(y - p, axis=-1) + np.linalg.norm(z - p, axis=-1)
    assert (((y - p) * (z - p)).sum(axis=-1) <= 1e-9 * scale * length).all()  # the variational inequality
    shift, moved = y - y[0], p - p[0]
    length = np.linalg.norm(shift, axis=-1)
    assert ((moved**2).sum(axis=-1) <= (moved * shift).sum(axis=-1) + 1e-9 * scale.max() * length).all()  # firmness


@every_set
@cases
@settings(max_examples=20)
def test_batches_equal_singles(name, seed, n, unit):
    K, y = draw(name, seed, n, unit)
    batch = K.project(y.reshape(2, 4, K.dim)).reshape(8, K.dim)
    violations = K.violation(y.reshape(2, 4, K.dim)).reshape(8)
    for i in range(8):
        np.testing.assert_allclose(K.project(y[i]), batch[i], rtol=0, atol=1e-13 * size(K, y[i]))
        np.testing.assert_allclose(K.violation(y[i]), violations[i], rtol=0, atol=1e-13 * size(K, y[i]))


@every_set
@cases
@settings(max_examples=10)
def test_projection_equals_cvxpy(name, seed, n, unit):
    K, y = draw(name, seed, n, unit)
    for point in y[:2]:
        np.testing.assert_allclose(K.project(point), by_cvxpy(K, point), rtol=0, atol=1e-7 * size(K, point))


@every_set
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("n", [1, 4])
def test_contract(name, n, unit):
    check_set(TABLE[name](np.random.default_rng(n), n, unit), trials=20)


SIZES = {
    "intersection, polyhedral": 30,
    "intersection, curved": 30,
    "ellipsoid": 300,
    "product": 300,
    "product, polyhedral": 300,
    "polyhedron": 30,
}


@every_set
def test_contract_in_many_dimensions(name):
    check_set(TABLE[name](np.random.default_rng(0), SIZES.get(name, 1000), 1.0), trials=4)


@every_set
@cases
@settings(max_examples=5)
def test_cones_describe_the_set(name, seed, n, unit):
    # the least t ≥ 0 by which the cones' own axes must be widened at x, a length: 0 in K, more outside
    K, y = draw(name, seed, n, unit)
    form = K.cones()
    if not form.cones:
        assert (K.violation(y) == 0).all()
        return
    for x in (y[0], K.project(y[0])):
        u, t, at, outside = cp.Variable(max(form.aux, 1)), cp.Variable(), 0, []
        for kind, count in form.cones:
            A, b = form.A[at : at + count], form.b[at : at + count]
            at += count
            steepness = max(float(np.linalg.norm(A, axis=1).max()), 1e-300)  # (the rows may be in any units)
            part = (b - A[:, : K.dim] @ x) / (steepness * unit)
            if form.aux:
                part = part - A[:, K.dim :] @ u / steepness
            absolute, norm, largest = (cp.abs, cp.norm, cp.max) if form.aux else (np.abs, np.linalg.norm, np.max)
            outside.append(
                largest(absolute(part))
                if kind == "zero"
                else largest(-part)
                if kind == "nonneg"
                else norm(part[1:]) - part[0]
            )
        if form.aux:
            least = cp.Problem(cp.Minimize(t), [t >= 0, *(t >= one for one in outside)]).solve(solver=cp.CLARABEL)
        else:
            least = max(0.0, *outside)
        least *= unit
        if K.contains(x):
            assert least <= 1e-6 * size(K, x)
        elif K.violation(x) > 1e-3 * size(K, x):
            assert least > 1e-5 * size(K, x)


finite = st.floats(-1, 1, width=32)


@given(st.lists(finite, min_size=1, max_size=12), st.sampled_from([1e-6, 1.0, 1e6]), st.sampled_from([1e-3, 1.0, 1e8]))
def test_simplex_and_l1_ball_equal_rational_arithmetic(numbers, total, scale):
    y = np.array(numbers) * total * scale
    p = Simplex(y.size, total).project(y)
    np.testing.assert_allclose(p, simplex_exactly(y, total), rtol=0, atol=1e-14 * y.size * total)
    assert abs(p.sum() - total) <= 1e-15 * y.size * total
    q = L1Ball(0, total, dim=y.size).project(y)
    np.testing.assert_allclose(q, l1_exactly(y, np.zeros(y.size), total), rtol=0, atol=1e-14 * y.size * total)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_simplex_far_away(seed):
    y = 1e8 + np.random.default_rng(seed).normal(size=50)
    p = Simplex(50).project(y)
    np.testing.assert_allclose(p, simplex_exactly(y, 1.0), rtol=0, atol=1e-14)
    assert abs(p.sum() - 1) <= 1e-14


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 6),
    condition=st.sampled_from([1.0, 1e4, 1e8, 1e16]),
    unit=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_ellipsoid_equals_bisection(seed, n, condition, unit):
    rng = np.random.default_rng(seed)
    sigma = unit * np.sqrt(np.logspace(0, -np.log10(condition), n))
    z = unit * rng.normal(size=n) * 10 ** rng.uniform(-8, 2, n)
    expected = ellipsoid_by_bisection(z, sigma)
    scale = max(unit, np.abs(z).max())
    np.testing.assert_allclose(Ellipsoid(0, np.diag(sigma**2)).project(z), expected, rtol=0, atol=1e-14 * scale)
    if condition <= 1e8:  # beyond, a turned P no longer holds its short axes in double precision
        Q = rotation(rng, n)
        K = Ellipsoid(unit, (P := (Q * sigma**2) @ Q.T) / 2 + P.T / 2)
        np.testing.assert_allclose(K.project(unit + Q @ z), unit + Q @ expected, rtol=0, atol=1e-11 * scale)


def test_ellipsoid_with_axes_from_1e_minus_8_to_1e8():
    sigma = np.array([1e8, 1.0, 1e-8])
    K = Ellipsoid(0, np.diag(sigma**2))
    for z in ([2e8, 3.0, 1e-8], [1.0, 1.0, 1.0], [0.0, 0.0, 1e-7], [1e8, 1.0, 1e-8]):
        expected = ellipsoid_by_bisection(z, sigma)
        np.testing.assert_allclose(K.project(z), expected, rtol=0, atol=1e-15 * np.abs(z).max())


def test_ellipsoid_that_is_a_ball():
    y = np.random.default_rng(0).normal(size=(100, 4)) * 3
    np.testing.assert_allclose(Ellipsoid(1.0, 4 * np.eye(4)).project(y), Ball(1.0, 2.0, dim=4).project(y), atol=1e-14)


def test_diameters():
    assert Ball([1.0, 2.0], 3.0).diameter == 6
    assert Box([0.0, 0.0], [3.0, 4.0]).diameter == 5
    assert Box(0.0, [3.0, inf]).diameter == inf
    assert Simplex(5, 2.0).diameter == 2 * np.sqrt(2)
    assert Simplex(1, 2.0).diameter == 0
    assert L1Ball(1.0, 2.0, dim=3).diameter == 4
    assert Ellipsoid(0, np.diag([1.0, 9.0])).diameter == 6
    assert Halfspace([1.0], 0.0).diameter == inf
    assert Product([Ball([1.0, 2.0], 1.5), Box(0.0, 4.0, dim=1)]).diameter == 5
    assert Product([Ball([1.0, 2.0], 1.5), Halfspace([1.0], 0.0)]).diameter == inf
    assert not Halfspace([1.0], 0.0).bounded


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_polyhedron_diameter_is_that_of_its_bounding_box(unit):
    triangle = [[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    assert Polyhedron(triangle, [unit, 0.0, 0.0]).diameter == pytest.approx(np.sqrt(2) * unit, rel=1e-12)
    assert Polyhedron(triangle[:2], [unit, 0.0]).diameter == inf
    assert Polyhedron([[1.0], [-1.0]], [unit, -unit]).diameter == pytest.approx(0, abs=1e-15 * unit)


def test_polyhedron_with_idle_zero_and_repeated_rows():
    A = [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1e6, 0.0], [0.0, 1.0]]
    K = Polyhedron(A, [1.0, 0.0, 1.0, 1e6, inf])
    np.testing.assert_allclose(K.project([3.0, 7.0]), [1.0, 7.0], atol=1e-14)
    form = K.polyhedral()
    assert form.A.shape == (0, 2)
    np.testing.assert_array_equal(form.upper, [1.0, inf])
    whole = Polyhedron([[0.0, 0.0], [1.0, 2.0]], [1.0, inf])
    check_set(whole)
    assert np.array_equal(whole.project([3.0, 7.0]), [3.0, 7.0])
    assert whole.diameter == inf


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_polyhedron_of_a_single_point_and_just_empty(unit):
    A = np.array([[1.0], [-1.0]])
    assert Polyhedron(A, [unit, -unit]).project([5 * unit]) == pytest.approx([unit], rel=1e-14)
    assert Polyhedron(A, [unit, -unit * (1 + 1e-12)]).project([5 * unit]) == pytest.approx([unit], rel=1e-11)
    with pytest.raises(EmptySet, match=f"the least possible violation is {unit * 5e-7:g}"):
        Polyhedron(A, [unit, -unit * (1 + 1e-6)])


def test_a_far_row_does_not_hide_a_contradiction():
    with pytest.raises(EmptySet, match=r"the least possible violation is 0\.5"):
        Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, -2.0, 1e12])


def test_product_puts_equality_rows_first():
    form = Product([Halfspace([2.0], 4.0), Simplex(2, 3.0), Box(0.0, 1.0, dim=1)]).polyhedral()
    assert form.equalities == 1
    assert np.array_equal(form.A, [[0, 1, 1, 0], [1, 0, 0, 0]])
    assert np.array_equal(form.b, [3, 2])
    assert np.array_equal(form.lower, [-inf, 0, 0, 0])
    assert np.array_equal(form.upper, [inf, inf, inf, 1])
    assert Product([Simplex(2), Ball(0, 1, dim=2)]).polyhedral() is None


def test_a_product_with_a_part_known_by_projection_alone():
    class Plain(Box):
        def cones(self):
            return None

    assert Product([Box(0.0, 1.0, dim=1), Plain(0.0, 1.0, dim=1)]).cones() is None


def test_violation_is_a_length():
    assert Halfspace([300.0, 400.0], 0.0).violation([3.0, 4.0]) == 5
    assert Polyhedron([[300.0, 400.0]], [0.0]).violation([3.0, 4.0]) == pytest.approx(5)
    assert Ball(0, 1, dim=2).violation([3.0, 4.0]) == 4
    assert L1Ball(0, 1, dim=4).violation([1.0, 1.0, 1.0, 1.0]) == 1.5
    assert Simplex(4).violation([1.0, 1.0, 1.0, 1.0]) == 1.5
    assert Ellipsoid(0, [[4.0, 0.0], [0.0, 1.0]]).violation([5.0, 0.0]) == pytest.approx(3, rel=1e-15)
    assert Product([Ball(0, 1, dim=1), Ball(0, 1, dim=1)]).violation([3.0, -5.0]) == 4


@every_set
def test_sets_are_immutable_and_copy_their_data(name):
    K = TABLE[name](np.random.default_rng(0), 3, 1.0)
    for value in K.parameters().values():
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
    center = np.zeros(2)
    ball = Ball(center, 1.0)
    center[:] = 9.0
    assert np.array_equal(ball.center, [0, 0])


@every_set
def test_bad_points_are_refused(name):
    K = TABLE[name](np.random.default_rng(0), 3, 1.0)
    bad = np.zeros(K.dim)
    bad[-1] = nan
    for method in (K.project, K.violation, K.contains):
        with pytest.raises(InvalidInput, match=rf"point: expected shape \(\.\.\., {K.dim}\), got \({K.dim + 1},\)"):
            method(np.zeros(K.dim + 1))
        with pytest.raises(InvalidInput, match="point: expected finite numbers, got nan"):
            method(bad)
        with pytest.raises(InvalidInput, match="point: expected at least one number"):
            method([])


ERRORS = [
    (lambda: Box(0.0, 1.0), InvalidInput, "dim: expected the dimension, since both bounds are numbers, got None"),
    (lambda: Box([0.0, 0.0], [1.0, 1.0, 1.0]), InvalidInput, "lower: expected a number or shape (3,), got shape (2,)"),
    (lambda: Box(inf, inf, dim=1), EmptySet, "Box: lower is inf at index (0,)"),
    (lambda: Ball(0, 1), InvalidInput, "dim: expected the dimension, since the centre is a number, got None"),
    (lambda: Ball(0, -1, dim=2), InvalidInput, "radius: expected a non-negative number, got -1.0"),
    (lambda: Ball(0, nan, dim=2), InvalidInput, "radius: expected a non-negative number, got nan"),
    (lambda: Ball(0, inf, dim=2), InvalidInput, "radius: expected a non-negative number, got inf"),
    (lambda: Ball([0, nan], 1), InvalidInput, "center: expected finite numbers, got nan at index (1,)"),
    (lambda: Ball([0, 1], 1, dim=3), InvalidInput, "center: expected a number or shape (3,), got shape (2,)"),
    (lambda: Ball([[0, 1]], 1), InvalidInput, "center: expected a number or shape (2,), got shape (1, 2)"),
    (lambda: Ball([], 1), InvalidInput, "center: expected at least one number, got an empty array"),
    (lambda: Ball("middle", 1), InvalidInput, "center: expected an array of real numbers, got str"),
    (lambda: Ball(0, 1, dim=0), InvalidInput, "dim: expected a positive integer, got int 0"),
    (lambda: Simplex(0), InvalidInput, "dim: expected a positive integer, got int 0"),
    (lambda: Simplex(2.5), InvalidInput, "dim: expected a positive integer, got float 2.5"),
    (lambda: Simplex(2, 0), InvalidInput, "total: expected a positive number, got 0.0"),
    (lambda: Simplex(2, -1), InvalidInput, "total: expected a positive number, got -1.0"),
    (lambda: Simplex(2, nan), InvalidInput, "total: expected a positive number, got nan"),
    (lambda: Halfspace([0, 0], -1), EmptySet, "Halfspace: a is zero and b is negative: 0 ≤ -1.0 holds nowhere"),
    (
        lambda: Halfspace([0, 0], 1),
        InvalidInput,
        "a: expected a vector that is not zero, got zero: K would be the whole",
    ),
    (lambda: Halfspace([1, inf], 1), InvalidInput, "a: expected finite numbers, got inf at index (1,)"),
    (lambda: Halfspace([1, 2], inf), InvalidInput, "b: expected a finite number, got inf"),
    (lambda: Halfspace([1, 2], [1, 2]), InvalidInput, "b: expected a finite number, got list [1, 2]"),
    (lambda: Halfspace([[1, 2]], 1), InvalidInput, "a: expected shape (n,), got (1, 2)"),
    (lambda: Polyhedron([1, 2], [1]), InvalidInput, "A: expected shape (M, n), got (2,)"),
    (lambda: Polyhedron([[1, 2]], [1, 2]), InvalidInput, "b: expected shape (1,) to match A of shape (1, 2), got (2,)"),
    (lambda: Polyhedron([[1, nan]], [1]), InvalidInput, "A: expected finite numbers, got nan at index (0, 1)"),
    (lambda: Polyhedron([[1, 2]], [nan]), InvalidInput, "b: expected finite numbers or infinities, got nan"),
    (lambda: Polyhedron([[1, 2]], [-inf]), EmptySet, "Polyhedron: row 0 holds nowhere: ⟨a, x⟩ ≤ -inf"),
    (lambda: Polyhedron([[1], [0]], [1, -1]), EmptySet, "Polyhedron: row 1 holds nowhere: ⟨0, x⟩ ≤ -1.0"),
    (
        lambda: Polyhedron([[1e6], [-1e-6]], [1e6, -3e-6]),
        EmptySet,
        "no common point: the least possible violation is 1",
    ),
    (lambda: Polyhedron(np.zeros((0, 2)), []), InvalidInput, "A: expected at least one number, got an empty array"),
    (lambda: L1Ball(0, -1, dim=2), InvalidInput, "radius: expected a non-negative number, got -1.0"),
    (lambda: L1Ball(0, 1), InvalidInput, "dim: expected the dimension, since the centre is a number, got None"),
    (lambda: Ellipsoid(0, [[1, 2]]), InvalidInput, "P: expected shape (n, n), got (1, 2)"),
    (lambda: Ellipsoid(0, 1.0), InvalidInput, "P: expected shape (n, n), got ()"),
    (lambda: Ellipsoid(0, [[1, nan], [nan, 1]]), InvalidInput, "P: expected finite numbers, got nan at index (0, 1)"),
    (
        lambda: Ellipsoid(0, [[1, 0.5], [0, 1]]),
        InvalidInput,
        "P: expected a symmetric matrix, got 0.5 at (0, 1) but 0.0",
    ),
    (
        lambda: Ellipsoid(0, [[1, 2], [2, 1]]),
        InvalidInput,
        "P: expected a positive definite matrix, got smallest eigenvalue -1",
    ),
    (
        lambda: Ellipsoid(0, [[1, 0], [0, 0]]),
        InvalidInput,
        "P: expected a positive definite matrix, got 0.0 at index (1, 1)",
    ),
    (lambda: Ellipsoid([1, 2, 3], np.eye(2)), InvalidInput, "center: expected a number or shape (2,), got shape (3,)"),
    (lambda: Product([]), InvalidInput, "sets: expected a sequence of at least one set, got []"),
    (lambda: Product(Simplex(2)), InvalidInput, "sets: expected a sequence of at least one set, got Simplex(dim=2"),
    (lambda: Product([Simplex(2), 3]), InvalidInput, "sets: expected sets, got int at index 1"),
]


@pytest.mark.parametrize(("make", "kind", "message"), ERRORS)
def test_what_is_no_set_is_refused(make, kind, message):
    with pytest.raises(kind) as caught:
        make()
    assert type(caught.value) is kind
    assert message in str(caught.value)


class Unit(ConvexSet):
    """The unit disc, to be broken below in one way at a time."""

    dim = 2

    def project_unchecked(self, point):
        norm = np.linalg.norm(point, axis=-1, keepdims=True)
        return np.where(norm > 1 + 1e-14, point / np.maximum(norm, 1), point)

    def violation_unchecked(self, point):
        return np.maximum(np.linalg.norm(point, axis=-1) - 1, 0)

    @property
    def diameter(self):
        return 2.0


def broken(**methods):
    return type("Broken", (Unit,), methods)()


def along_the_first_axis(self, point):
    """Into the disc, but not to its nearest point."""
    y = np.clip(point[..., 1], -1, 1)
    width = np.sqrt(1 - y**2)
    return np.stack([np.clip(point[..., 0], -width, width), y], axis=-1)


BREAKAGES = {
    "does not lie in K": {"project_unchecked": lambda self, p: p},
    "not idempotent": {"project_unchecked": lambda self, p: 0.5 * Unit.project_unchecked(self, p)},
    "not firmly non-expansive": {"project_unchecked": along_the_first_axis},
    "a point that the projection moves counts as inside": {"project_unchecked": lambda self, p: np.clip(p, -0.5, 0.5)},
    "changes its input": {
        "project_unchecked": lambda self, p: np.divide(p, 1 + np.linalg.norm(p, axis=-1, keepdims=True), out=p)
    },
    "wrong shape": {"project_unchecked": lambda self, p: Unit.project_unchecked(self, p)[..., :1]},
    "not finite": {"project_unchecked": lambda self, p: Unit.project_unchecked(self, p) * nan},
    "batch differs": {
        "project_unchecked": lambda self, p: (
            Unit.project_unchecked(self, p) if p.ndim == 1 else Unit.project_unchecked(self, p) * 0
        )
    },
    "wrong shape with two leading axes": {
        "project_unchecked": lambda self, p: (
            Unit.project_unchecked(self, p) if p.ndim < 3 else Unit.project_unchecked(self, p)[0]
        )
    },
    "a point of K is not returned unchanged": {
        "project_unchecked": lambda self, p: Unit.project_unchecked(self, p) * (1 - 1e-14)
    },
    "the violation has a wrong shape": {
        "violation_unchecked": lambda self, p: Unit.violation_unchecked(self, p)[..., None] * [1, 1]
    },
    "counts as inside": {"violation_unchecked": lambda self, p: 0 * p[..., 0]},
    "the violation is negative": {"violation_unchecked": lambda self, p: np.linalg.norm(p, axis=-1) - 1},
    "beyond the diameter": {"diameter": 1.0},
    "contains and violation disagree": {"contains": lambda self, p, tol=1e-9: np.ones(p.shape[:-1], bool)},
    "cones() describes another set": {"cones": lambda self: Ball(0, 2, dim=2).cones()},
    "cones() has arrays of wrong shapes": {"cones": lambda self: Ball(0, 1, dim=3).cones()},
    "polyhedral() describes another set": {"polyhedral": lambda self: Box(-1.0, 1.0, dim=2).polyhedral()},
}


def test_check_set_passes_a_set_that_keeps_the_contract():
    check_set(Unit())


@pytest.mark.parametrize("failure", BREAKAGES)
def test_check_set_finds(failure):
    with pytest.raises(AssertionError) as caught:
        check_set(broken(**BREAKAGES[failure]))
    assert failure in str(caught.value)


def test_check_set_finds_parameters_of_another_set():
    class Forgetful(Ball):
        def parameters(self):
            return {"center": self.center, "radius": 1.0}

    with pytest.raises(AssertionError, match=r"parameters\(\) make another set"):
        check_set(Forgetful(0, 2.0, dim=2))


def test_check_set_finds_a_set_that_is_not_convex():
    class Ring(Unit):
        def project_unchecked(self, point):
            norm = np.linalg.norm(point, axis=-1, keepdims=True)
            return np.where(norm > 0, point / np.where(norm > 0, norm, 1.0), [1.0, 0.0])

        def violation_unchecked(self, point):
            return np.abs(np.linalg.norm(point, axis=-1) - 1)

    with pytest.raises(AssertionError, match="not firmly non-expansive"):
        check_set(Ring())


def test_repr_names_the_parameters():
    assert repr(Simplex(3)) == "Simplex(dim=3, total=1)"
    assert repr(Ball(0, 2, dim=3)) == "Ball(center=0 (shape (3,)), radius=2)"
    assert repr(Product([Simplex(3)])) == "Product(sets=[Simplex(dim=3, total=1)])"
