"""What projection-free algorithms ask of a set, by its definition: every registered set, and random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from reference.sets import conditions

import cocopt
from cocopt import (
    Ball,
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    Halfspace,
    Intersection,
    L1Ball,
    Polyhedron,
    Product,
    Simplex,
    registry,
)
from cocopt.errors import InvalidInput
from cocopt.geometry.infeasible import project_by_linear_oracle, project_by_separation
from cocopt.sets import Polyhedral

inf = np.inf
OWN = (Ball, Box, CappedSimplex, Ellipsoid, Halfspace, Intersection, L1Ball, Polyhedron, Product, Simplex)
ORACLES: dict[str, Callable[[ConvexSet], object]] = {
    "minimise_linear": lambda K: K.minimise_linear(np.zeros(K.dim)),
    "separate": lambda K: K.separate(np.zeros(K.dim)),
    "center": lambda K: K.center,
    "inner_radius": lambda K: K.inner_radius,
    "outer_radius": lambda K: K.outer_radius,
}
MESSAGE = "K: expected a set that defines {}"


def flat_polyhedron(rng: Any, n: int, unit: float) -> Polyhedron:
    """A box cut by equalities, each of them two inequalities, turned."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    middle = unit * rng.normal(size=n)
    half = unit * np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0.5, 2.0, n))
    return Polyhedron(np.concatenate([Q, -Q]), np.concatenate([Q @ middle + half, half - Q @ middle]))


def random_polyhedron(rng: Any, n: int, unit: float) -> Polyhedron:
    A = rng.normal(size=(3 * n, n)) * 10 ** rng.uniform(-2, 2, (3 * n, 1))
    return Polyhedron(A, unit * (A @ rng.normal(size=n) + np.linalg.norm(A, axis=1) * rng.uniform(0.1, 1, 3 * n)))


def random_ellipsoid(rng: Any, n: int, unit: float) -> Ellipsoid:
    root = np.linalg.qr(rng.normal(size=(n, n)))[0] * np.logspace(0, -2, n)
    return Ellipsoid(unit * rng.normal(size=n), unit**2 * root @ root.T)


# (random generator, dimension, unit of length) → set
RANDOM: dict[str, Callable[[Any, int, float], ConvexSet]] = {
    "box": lambda r, n, s: Box(s * r.uniform(-2, 0, n), s * r.uniform(0, 2, n)),
    "box, fixed coordinates": lambda r, n, s: Box(s * np.where(r.random(n) < 0.5, 1.0, 0.0), s),
    "box, half open": lambda r, n, s: Box(np.where(r.random(n) < 0.5, -inf, -s), np.where(r.random(n) < 0.5, inf, s)),
    "ball": lambda r, n, s: Ball(s * r.normal(size=n), s * r.uniform(0.1, 2)),
    "ball, one point": lambda r, n, s: Ball(s * r.normal(size=n), 0.0),
    "simplex": lambda r, n, s: Simplex(n, s * r.uniform(0.1, 2)),
    "capped simplex": lambda r, n, s: CappedSimplex(n, s * r.uniform(1, 2, n) * 2 / n, s),
    "l1 ball": lambda r, n, s: L1Ball(s * r.normal(size=n), s * r.uniform(0.1, 2)),
    "ellipsoid": random_ellipsoid,
    "halfspace": lambda r, n, s: Halfspace(r.normal(size=n) * 10 ** r.uniform(-3, 3), s * r.normal()),
    "polyhedron": random_polyhedron,
    "polyhedron, flat": flat_polyhedron,
    "product": lambda r, n, s: Product(
        [Simplex(n, s), random_ellipsoid(r, n, s), Product([flat_polyhedron(r, n, s), Ball(s, 0.0, dim=1)])]
    ),
    "intersection, flat": lambda r, n, s: Intersection(
        [Simplex(n + 1, s), Halfspace(r.normal(size=n + 1), s), Box(0.0, s * 2.0 / (n + 1), dim=n + 1)]
    ),
    "intersection, curved": lambda r, n, s: Intersection(
        [Ball(s * r.normal(size=n) / 2 / n, s), Box(-0.7 * s, 0.7 * s, dim=n), Halfspace(r.normal(size=n), 0.3 * s)]
    ),
}


def lacks(K: ConvexSet, oracle: str) -> bool:
    """Whether K says that it does not offer this; the sets of OWN offer everything."""
    try:
        ORACLES[oracle](K)
    except InvalidInput as error:
        if isinstance(K, OWN) or not str(error).startswith(MESSAGE.format(oracle)):
            raise
        return True
    return False


EXAMPLES = [(name, i) for name, cls in registry.classes("set").items() for i in range(len(cls.examples()))]
FIXED: dict[str, ConvexSet] = {f"{name}-{i}": registry.classes("set")[name].examples()[i] for name, i in EXAMPLES}
UNITS = (1e-6, 1.0, 1e6)


def cases(oracle: str | None) -> Any:
    """A test of (K, rng): on the examples of all registered classes that offer the oracle, and on random sets."""

    def decorate(check: Callable[[ConvexSet, Any], None]) -> Any:
        makers = {
            **{name: (lambda r, n, s, K=K: K) for name, K in FIXED.items() if oracle is None or not lacks(K, oracle)},
            **RANDOM,
        }

        @pytest.mark.parametrize("name", makers)
        def test(name: str) -> None:
            count = 2 if name in FIXED else 6
            for seed in range(count):
                rng = np.random.default_rng(seed)
                check(makers[name](rng, 1 + seed % 4, UNITS[seed % 3]), rng)

        return test

    return decorate


def size(K: ConvexSet, *points: Any) -> float:
    return max([K.scale, *(float(np.abs(p).max()) for p in points)])


def middle_of(K: ConvexSet) -> Any:
    return K.project(np.zeros(K.dim))


def members(K: ConvexSet, rng: Any, count: int = 100) -> Any:
    """Points of K, some inside and many on the boundary."""
    length = 3 * K.scale if np.isinf(K.diameter) else 3 * max(K.diameter, 1e-3 * K.scale)
    z = K.project(middle_of(K) + length * rng.normal(size=(count, K.dim)) * rng.random((count, 1)))
    return np.concatenate([z, (z + z[::-1]) / 2])


def targets(K: ConvexSet, rng: Any, count: int = 40) -> Any:
    """Points near K and far from it."""
    return middle_of(K) + K.scale * rng.normal(size=(count, K.dim)) * 10 ** rng.uniform(-2, 2, (count, 1))


def directions(K: ConvexSet, rng: Any, count: int = 12) -> Any:
    """Random ones of any length, along axes, with ties, and zero."""
    d = rng.normal(size=(count, K.dim)) * 10 ** rng.uniform(-9, 9, (count, 1))
    d[0], d[1], d[2], d[3] = 0.0, 1.0, -1.0, np.eye(K.dim)[-1]
    return d


# -------------------------------------------------------------------------------------------------------- the minimiser


@cases("minimise_linear")
def test_the_linear_minimiser(K: ConvexSet, rng: Any) -> None:
    d = directions(K, rng)
    if not K.bounded:  # directions in which K is bounded: its normals
        d = -K.separate(targets(K, rng, 12))
    w = K.minimise_linear(d)
    assert w.shape == d.shape
    assert K.contains(w).all()
    z = members(K, rng)
    tolerance = 1e-9 * np.linalg.norm(d, axis=-1) * size(K, z)
    assert (np.vecdot(d, w) <= (d @ z.T).min(axis=-1) + tolerance).all()
    # w minimises ⟨d, x⟩ over K if and only if it is the projection of w − t·d, for any t > 0
    length = np.linalg.norm(d, axis=-1, keepdims=True)
    step = K.scale * d / np.where(length > 0, length, 1.0)
    np.testing.assert_allclose(K.project(w - step), w, rtol=0, atol=1e-7 * size(K, w))


@pytest.mark.parametrize("name", RANDOM)
def test_the_linear_minimum_is_that_of_cvxpy(name: str) -> None:
    rng = np.random.default_rng(5)
    K = RANDOM[name](rng, 3, 1.0)
    if not K.bounded:
        return  # checked above
    for d in rng.normal(size=(3, K.dim)):
        x = cp.Variable(K.dim)
        least = cp.Problem(cp.Minimize(d @ x), conditions(K, x, 1.0)).solve(solver=cp.CLARABEL)
        assert d @ K.minimise_linear(d) == pytest.approx(least, abs=1e-6 * size(K))


def test_ties_go_to_the_lower_bound_and_to_the_lowest_index() -> None:
    assert Box(0.0, 1.0, dim=3).minimise_linear([0.0, -1.0, 1.0]).tolist() == [0.0, 1.0, 0.0]
    assert Box([-inf, -inf, 2.0], [inf, 3.0, inf]).minimise_linear(np.zeros(3)).tolist() == [0.0, 3.0, 2.0]
    assert Simplex(3, 2.0).minimise_linear([1.0, 0.0, 0.0]).tolist() == [0.0, 2.0, 0.0]
    assert L1Ball(0, 2.0, dim=3).minimise_linear([1.0, -3.0, 3.0]).tolist() == [0.0, 2.0, 0.0]
    for sign in (0.0, -0.0):
        assert L1Ball(0, 2.0, dim=2).minimise_linear([sign, sign]).tolist() == [2.0, 0.0]
    assert Ball([1.0, 2.0], 3.0).minimise_linear([0.0, 0.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("length", [1e-200, 1e-300, 1e200, 1e300])
@pytest.mark.parametrize("name", ["ball", "ellipsoid", "l1 ball", "simplex", "box", "polyhedron"])
def test_the_length_of_a_direction_does_not_matter(name: str, length: float) -> None:
    K, d = RANDOM[name](np.random.default_rng(1), 3, 1.0), np.array([1.0, -0.5, 0.25])
    np.testing.assert_allclose(K.minimise_linear(length * d), K.minimise_linear(d), rtol=1e-12, atol=1e-12)


def test_a_polyhedron_is_minimised_at_a_vertex() -> None:
    square = Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, 0.0, 1.0, 0.0])
    for d in ([1.0, 0.0], [0.0, -1.0], [-1.0, -1.0]):
        assert set(square.minimise_linear(d)) <= {0.0, 1.0}


UNBOUNDED = [
    (Box([0.0, 0.0], [1.0, inf]), [1.0, -2.0], r"got -2.0 at index \(1,\), along which Box\(.* is unbounded"),
    (Box(-inf, 0.0, dim=2), [[-1.0, -1.0], [3.0, 0.0]], r"got 3.0 at index \(1, 0\), along which Box\("),
    (Halfspace([1.0, 0.0], 1.0), [1.0, 0.0], r"along which Halfspace\("),
    (Halfspace([1.0, 0.0], 1.0), [-1.0, 1e-3], r"along which Halfspace\("),
    (Polyhedron([[1.0, 0.0]], [1.0]), [0.0, 1.0], r"along which Polyhedron\("),
    (Polyhedron([[0.0, 0.0]], [1.0]), [0.0, 1.0], r"along which Polyhedron\("),
    (Product([Simplex(2), Halfspace([1.0], 1.0)]), [1.0, 1.0, 1.0], r"along which Halfspace\("),
]


@pytest.mark.parametrize(("K", "direction", "message"), UNBOUNDED)
def test_a_direction_without_a_minimum_is_refused(K: ConvexSet, direction: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"direction: expected one in which K has a linear minimiser, .*{message}"):
        K.minimise_linear(direction)
    w = K.minimise_linear(np.zeros(K.dim))
    assert K.contains(w)
    assert K.outer_radius == inf
    for project in (
        lambda: project_by_separation(K, w, delta=0.5),
        lambda: project_by_linear_oracle(K, w, w, eps=0.5),
    ):
        with pytest.raises(InvalidInput, match="K: expected a bounded set, got"):
            project()


# ---------------------------------------------------------------------------------------------- separating hyperplanes


@cases("separate")
def test_the_separating_hyperplane(K: ConvexSet, rng: Any) -> None:
    y, z = targets(K, rng), members(K, rng)
    far = size(K, y)
    n = K.separate(y)
    assert n.shape == y.shape
    inside, outside = K.violation(y) == 0, K.violation(y) > 1e-12 * far
    assert not n[inside].any()
    assert n[outside].any(axis=-1).all()
    assert (np.vecdot(n, y)[outside] > (n @ z.T).max(axis=-1)[outside]).all()
    if K.bounded:  # over all of K
        assert (np.vecdot(n, y - K.minimise_linear(-n))[outside] > 0).all()
    # of a point of the affine hull, the part along the hull separates too
    y = K.project_affine_hull(y)
    n, outside = K.separate(y), K.violation(y) > 1e-12 * far
    along = K.project_direction(n)
    assert (np.vecdot(along, y)[outside] > (along @ z.T).max(axis=-1)[outside]).all()


@cases("center")
def test_points_well_inside_are_not_separated(K: ConvexSet, rng: Any) -> None:
    z = K.project_affine_hull(K.center + 0.999 * (members(K, rng) - K.center))
    assert not K.separate(z).any()
    assert not K.separate(K.center).any()


# -------------------------------------------------------------------------------------------------- centre and radii


@cases("center")
def test_the_radii(K: ConvexSet, rng: Any) -> None:
    c, r, R = K.center, K.inner_radius, K.outer_radius
    z = members(K, rng)
    assert c.shape == (K.dim,)
    assert not c.flags.writeable
    assert 0 <= r < inf
    assert r <= R * (1 + 1e-12)
    assert np.isinf(R) == np.isinf(K.diameter)
    assert K.contains(c)
    u = K.project_direction(rng.normal(size=(300, K.dim)))
    u = u / np.maximum(np.linalg.norm(u, axis=-1, keepdims=True), 1e-300)
    assert K.contains(c + r * u, tol=1e-12).all()
    assert (np.linalg.norm(z - c, axis=-1) <= R + 1e-9 * size(K, z)).all()
    assert (r == 0) == (np.ptp(z, axis=0).max() <= 1e-9 * size(K, z))  # only a single point has no ball


@pytest.mark.parametrize("unit", UNITS)
def test_the_radii_of_some_sets(unit: float) -> None:
    def check(K: ConvexSet, inner: float, outer: float) -> None:
        assert (K.inner_radius, K.outer_radius) == pytest.approx((inner * unit, outer * unit), rel=1e-9)

    check(Box(0.0, [2 * unit, 4 * unit]), 1.0, 5**0.5)
    check(Box([unit, 0.0], [unit, 4 * unit]), 2.0, 2.0)
    check(L1Ball(0, unit, dim=8), 8**-0.5, 1.0)
    check(Ellipsoid(0, unit**2 * np.diag([1.0, 9.0])), 1.0, 3.0)
    check(Simplex(3, unit), 6**-0.5, (2 / 3) ** 0.5)
    check(Product([Ball(0, 5 * unit, dim=3), Box(0.0, 4 * unit, dim=1), Simplex(1, unit)]), 2.0, 29**0.5)
    # the incircle of the triangle with sides 3, 4, 5 has radius 1 and centre (1, 1)
    triangle = Polyhedron([[-1.0, 0.0], [0.0, -1.0], [4.0, 3.0]], [0.0, 0.0, 12 * unit])
    check(triangle, 1.0, 13**0.5)
    np.testing.assert_allclose(triangle.center, [unit, unit], rtol=1e-9)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_simplex_by_inequalities_is_the_simplex(n: int, unit: float) -> None:
    K, same = (
        Polyhedron(np.vstack([np.ones(n), -np.ones(n), -np.eye(n)]), [unit, -unit, *np.zeros(n)]),
        Simplex(n, unit),
    )
    rng = np.random.default_rng(n)
    v = rng.normal(size=(5, n))
    assert K.full_dimensional is False
    np.testing.assert_allclose(K.center, same.center, rtol=0, atol=1e-9 * unit)
    assert K.inner_radius == pytest.approx(same.inner_radius, rel=1e-9, abs=1e-15 * unit)
    np.testing.assert_allclose(K.project_direction(v), same.project_direction(v), rtol=0, atol=1e-12)
    np.testing.assert_allclose(K.project_affine_hull(v), same.project_affine_hull(v), rtol=0, atol=1e-12 * max(unit, 1))
    np.testing.assert_allclose(K.minimise_linear(v), same.minimise_linear(v), rtol=0, atol=1e-9 * unit)


# ------------------------------------------------------------------------------------------------------ the affine hull


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_equalities_that_several_inequalities_imply(n: int, unit: float) -> None:
    """x ≥ 0, Σ x_i ≤ unit and Σ i·x_i ≥ n·unit have only (0, …, 0, unit) in common; times an interval."""
    rows = np.vstack([np.ones(n), -np.eye(n), -np.arange(1.0, n + 1)])
    A = np.block([[rows, np.zeros((n + 2, 1))], [np.zeros((2, n)), np.array([[1.0], [-1.0]])]])
    K = Polyhedron(A, [unit, *np.zeros(n), -n * unit, 3 * unit, -unit])
    np.testing.assert_allclose(K.center, [*np.zeros(n - 1), unit, 2 * unit], rtol=0, atol=1e-9 * unit)
    assert (K.inner_radius, K.outer_radius) == pytest.approx((unit, unit), rel=1e-9)
    assert not K.full_dimensional
    np.testing.assert_allclose(K.project_direction(np.eye(n + 1)), np.diag([*np.zeros(n), 1.0]), rtol=0, atol=1e-12)
    w = K.minimise_linear(np.ones(n + 1))
    np.testing.assert_allclose(w, [*np.zeros(n - 1), unit, unit], rtol=0, atol=1e-9 * unit)
    y = project_by_separation(K, np.full(n + 1, 5 * unit), delta=0.1)
    np.testing.assert_allclose(y[:-1], w[:-1], rtol=0, atol=1e-9 * unit)
    assert unit <= y[-1] <= 3 * unit


@cases(None)
def test_the_direction_space(K: ConvexSet, rng: Any) -> None:
    z, v = members(K, rng), rng.normal(size=(20, K.dim))
    p = K.project_direction(v)
    assert p.shape == v.shape
    np.testing.assert_allclose(K.project_direction(p), p, rtol=0, atol=1e-13)  # idempotent
    np.testing.assert_allclose(p @ v.T, v @ p.T, rtol=0, atol=1e-12)  # symmetric
    np.testing.assert_allclose(K.project_direction(v[0] - 2 * v[1]), p[0] - 2 * p[1], rtol=0, atol=1e-13)  # linear
    moved = z - z[0]
    np.testing.assert_allclose(p @ moved.T, v @ moved.T, rtol=0, atol=1e-9 * size(K, z))
    assert K.full_dimensional == np.array_equal(p, v)
    if not isinstance(K, OWN) and K.polyhedral() is None:
        return  # one that is known by its projection alone may return the vector itself
    # no larger than the directions that K has
    rank = np.linalg.matrix_rank(K.project_direction(np.eye(K.dim)), tol=1e-9)
    assert rank == np.linalg.matrix_rank(moved, tol=1e-7 * size(K, moved))


@cases("center")
def test_the_affine_hull(K: ConvexSet, rng: Any) -> None:
    y, z = targets(K, rng), members(K, rng)
    h = K.project_affine_hull(y)
    np.testing.assert_allclose(K.project_affine_hull(z), z, rtol=0, atol=1e-9 * size(K, z))  # K lies in it
    off = K.center + K.project_direction(h - K.center) - h
    np.testing.assert_allclose(off, 0, rtol=0, atol=1e-12 * size(K, y))
    assert np.abs((y - h) @ (z - z[0]).T).max() <= 1e-9 * size(K, y) * size(K, z)  # the nearest point of it


# ------------------------------------------------------------------------------------------------- trials and arguments


@cases("minimise_linear")
def test_batches_equal_singles(K: ConvexSet, rng: Any) -> None:
    y = targets(K, rng, 6)
    d = directions(K, rng, 6) if K.bounded else -K.separate(y)
    for method, argument in (
        (K.minimise_linear, d),
        (K.separate, y),
        (K.project_direction, y),
        (K.project_affine_hull, y),
    ):
        before = argument.copy()
        batch = method(argument.reshape(2, 3, K.dim))
        assert batch.shape == (2, 3, K.dim)
        for i in range(6):
            single = method(argument[i])
            assert single.shape == (K.dim,)
            np.testing.assert_allclose(single, batch.reshape(6, K.dim)[i], rtol=1e-12, atol=1e-12 * size(K, y))
        assert np.array_equal(argument, before)


METHODS = [
    ("minimise_linear", "direction"),
    ("separate", "point"),
    ("project_direction", "vector"),
    ("project_affine_hull", "point"),
]


@pytest.mark.parametrize(("method", "argument"), METHODS)
@pytest.mark.parametrize("name", FIXED)
def test_bad_arguments_are_refused(name: str, method: str, argument: str) -> None:
    K = FIXED[name]
    with pytest.raises(InvalidInput, match=rf"{argument}: expected shape \(\.\.\., {K.dim}\), got"):
        getattr(K, method)(np.zeros(K.dim + 1))
    with pytest.raises(InvalidInput, match=f"{argument}: expected finite numbers, got nan"):
        getattr(K, method)(np.full(K.dim, np.nan))


class Disc(ConvexSet):
    """The unit ball, which defines only what it must."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def project_unchecked(self, point: Any) -> Any:
        return point / np.maximum(np.linalg.norm(point, axis=-1, keepdims=True), 1.0)

    def violation_unchecked(self, point: Any) -> Any:
        return np.maximum(np.linalg.norm(point, axis=-1) - 1.0, 0.0)


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_set_that_defines_no_oracle_says_so(oracle: str) -> None:
    for K in (Disc(2), Product([Simplex(2), Disc(2)])):
        with pytest.raises(InvalidInput, match=MESSAGE.format(oracle) + r".*, got Disc\(dim=2\)"):
            ORACLES[oracle](K)
    assert lacks(Disc(2), oracle)


def test_a_set_that_defines_no_direction_space_returns_the_vector() -> None:
    v = np.array([[1.0, 2.0]])
    assert Disc(2).full_dimensional
    assert np.array_equal(Disc(2).project_direction(v), v)
    assert np.array_equal(Disc(2).project_affine_hull(v), v)


def test_a_set_of_the_users_own_may_set_center_and_radii() -> None:
    class DiscWithRadii(Disc):
        def __init__(self, dim: int) -> None:
            super().__init__(dim)
            self.center, self.inner_radius, self.outer_radius = np.zeros(dim), 1.0, 1.0

        def separate_unchecked(self, point: Any) -> Any:
            return np.where(self.violation_unchecked(point)[..., None] > 1e-12, point, 0.0)

        def minimise_linear_unchecked(self, direction: Any) -> Any:
            return -direction / np.linalg.norm(direction, axis=-1, keepdims=True)

    K, y = DiscWithRadii(3), 3 * np.random.default_rng(0).normal(size=(5, 3))
    assert K.contains(project_by_separation(K, y, delta=0.2)).all()
    assert K.contains(project_by_linear_oracle(K, np.zeros(3), y, eps=0.1)[0]).all()


def test_bounds_and_rows_are_enough() -> None:
    """A set of one's own with `polyhedral` has every oracle: {x_1 + x_2 = 1, x_3 = 2, 0 ≤ x ≤ 5, x_1 ≤ 0.5}."""

    class Segment(cocopt.ConvexSet):
        dim = 3

        def project_unchecked(self, point: Any) -> Any:
            first = np.clip((point[..., 0] - point[..., 1] + 1.0) / 2, 0.0, 0.5)
            return np.stack([first, 1.0 - first, np.full_like(first, 2.0)], axis=-1)

        def violation_unchecked(self, point: Any) -> Any:
            return np.linalg.norm(point - self.project_unchecked(point), axis=-1)

        def polyhedral(self) -> Polyhedral:
            A = np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
            upper = np.array([5.0, 5.0, 2.0])
            return Polyhedral(np.array([0.0, 0.0, 2.0]), upper, A, np.array([2.0, 3.0, 2.0, inf]), equalities=1)

    K = Segment()
    np.testing.assert_allclose(K.center, [0.25, 0.75, 2.0], atol=1e-12)
    assert K.inner_radius == pytest.approx(0.25 * 2**0.5)
    assert K.outer_radius == pytest.approx(0.25 * 2**0.5)
    assert not K.full_dimensional
    np.testing.assert_allclose(K.project_direction([1.0, 0.0, 7.0]), [0.5, -0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(K.minimise_linear([1.0, 0.0, 3.0]), [0.0, 1.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(K.minimise_linear([-1.0, 0.0, 3.0]), [0.5, 0.5, 2.0], atol=1e-12)
    y = project_by_separation(K, np.array([3.0, 0.0, 0.0]), delta=0.1)
    assert K.contains(y)


# ----------------------------------------------------------------------------------------------- infeasible projections


def without_projection(K: ConvexSet) -> ConvexSet:
    """The same set; its projection, and those of its parts, raise."""

    def refuse(self: Any, point: Any) -> Any:
        raise AssertionError("the projection was called")

    cls = type(K)
    refusing = type(cls.__name__, (cls,), {"project": refuse, "project_unchecked": refuse})
    parameters = K.parameters()
    if isinstance(K, Product):
        parameters = {"sets": [without_projection(part) for part in K.sets]}
    made: ConvexSet = refusing(**parameters)
    return made


def shrunk(K: ConvexSet, z: Any, delta: float) -> Any:
    return K.center + (1 - delta) * (z - K.center)


BOUNDED = {name: K for name, K in FIXED.items() if isinstance(K, OWN) and K.bounded}


def check_infeasible_projections(K: ConvexSet, rng: Any, delta: float, share: float) -> None:
    z, same = members(K, rng), without_projection(K)
    radius = max(K.outer_radius, 1e-3 * K.scale)
    y0 = K.center + radius * rng.normal(size=(6, K.dim))
    far = 1e-9 * size(K, z, y0)
    y = project_by_separation(same, y0, delta=delta)
    assert y.shape == y0.shape
    assert K.contains(y).all()
    closer = shrunk(K, z, delta)
    distance = np.linalg.norm(y[:, None] - closer, axis=-1)
    assert (distance <= np.linalg.norm(y0[:, None] - closer, axis=-1) + far).all()
    eps = share * radius**2
    x, y = project_by_linear_oracle(same, K.center, y0, eps=eps)
    assert K.contains(x).all()
    near = np.linalg.norm(K.center - y0, axis=-1) ** 2 <= 3 * eps
    assert ((np.vecdot(x - y, x - y) <= 3 * eps * (1 + 1e-9)) | near).all()
    distance = np.linalg.norm(y[:, None] - z, axis=-1)
    assert (distance <= np.linalg.norm(y0[:, None] - z, axis=-1) + far).all()


@pytest.mark.parametrize("name", BOUNDED)
def test_infeasible_projections_never_project(name: str) -> None:
    check_infeasible_projections(BOUNDED[name], np.random.default_rng(0), 0.2, 0.1)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["box, fixed coordinates", "ball", "ball, one point", "simplex", "l1 ball"])
def test_infeasible_projections_onto_random_sets(name: str, unit: float) -> None:
    for n in (1, 2, 5):
        rng = np.random.default_rng(n)
        check_infeasible_projections(RANDOM[name](rng, n, unit), rng, rng.uniform(0.1, 0.9), 0.1)


@pytest.mark.parametrize("name", BOUNDED)
def test_infeasible_projections_of_far_points(name: str) -> None:
    K, rng = BOUNDED[name], np.random.default_rng(1)
    assert K.contains(project_by_separation(K, 1e6 * size(K) * rng.normal(size=(5, K.dim)), delta=0.3)).all()


def test_infeasible_projections_of_a_single_point_check_their_arguments() -> None:
    K, y = Ball([1.0, 2.0], 0.0), np.zeros((3, 2))
    assert np.array_equal(project_by_separation(K, y, delta=0.5), np.tile([1.0, 2.0], (3, 1)))
    for x in project_by_linear_oracle(K, K.center, y, eps=0.5):
        assert np.array_equal(x, np.tile([1.0, 2.0], (3, 1)))
    for delta in (0.0, 1.0):
        with pytest.raises(InvalidInput, match="delta: expected"):
            project_by_separation(K, y, delta=delta)
    with pytest.raises(InvalidInput, match="eps: expected"):
        project_by_linear_oracle(K, K.center, y, eps=0.0)
    with pytest.raises(InvalidInput, match="point: expected finite"):
        project_by_separation(K, y + np.nan, delta=0.5)
