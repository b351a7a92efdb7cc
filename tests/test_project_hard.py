"""Hard cases of projection: degenerate rows, tangency, bad scaling, emptiness, large n and M, black boxes, own sets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from instances import CONSTRAINTS, SETS, build, build_set, instance, random_set
from reference import projections as reference
from reference.projections import Array, Description
from scipy.optimize import nnls

import cocopt
from cocopt import Ball, Box, Ellipsoid, Halfspace, L1Ball, Simplex, checks, constraints, losses
from cocopt.cones import stack
from cocopt.errors import CutLimit, InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection
from cocopt.geometry.batch import solve_batch
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.problem import Problem
from cocopt.geometry.scaled import _Scaled
from cocopt.sets import Polyhedral
from cocopt.solvers import daqp

POSITION = 1e-7
AFFINE_SETS = ("Box", "Ball", "Simplex", "Halfspace", "Polyhedron", "L1Ball", "Ellipsoid", "Product")


def affine_case(kind: str, n: int, count: int, seed: int) -> tuple[Description, Array, Array, Array]:
    """A set, feasible rows A, b and a target."""
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, n, rng)
    A = rng.normal(size=(count, n))
    return K, A, A @ z + rng.uniform(0.05, 0.3, count), z + 2 * rng.normal(size=n)


# -------------------------------------------------------------------------------------------------------- awkward rows


@pytest.mark.parametrize("kind", AFFINE_SETS)
@pytest.mark.parametrize(
    "extend",
    [
        pytest.param(lambda A, b: (np.vstack([A, A]), np.tile(b, 2)), id="duplicate"),
        pytest.param(lambda A, b: (np.vstack([A, 3 * A]), np.concatenate([b, 3 * b])), id="duplicate, scaled"),
        pytest.param(lambda A, b: (np.vstack([A, A]), np.concatenate([b, b + 0.5])), id="parallel"),
        pytest.param(lambda A, b: (np.vstack([A, -A]), np.concatenate([b, 50 - b])), id="opposite"),
        pytest.param(lambda A, b: (np.vstack([A, A.sum(axis=0)]), np.append(b, b.sum())), id="redundant"),
        pytest.param(lambda A, b: (np.vstack([A, 0 * A]), np.concatenate([b, 0 * b])), id="zero"),
        pytest.param(lambda A, b: (np.vstack([A, A[::-1]]), np.append(b, np.full(len(b), np.inf))), id="+inf"),
        pytest.param(lambda A, b: (np.vstack([A, 0 * A]), np.append(b, np.full(len(b), np.inf))), id="zero and +inf"),
    ],
)
def test_rows_that_add_nothing_change_nothing(kind: str, extend: Any) -> None:
    for seed, count in enumerate((1, 2, 3)):
        described, A, b, y = affine_case(kind, 4, count, seed)
        K = build_set(described)
        expected = reference.project(described, ("Affine", A, b), y)
        x = cocopt.project(K, constraints.Affine(*extend(A, b)), y)
        np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("kind", AFFINE_SETS)
def test_idle_rows_alone_leave_K(kind: str) -> None:
    described, A, _, y = affine_case(kind, 3, 2, 0)
    K = build_set(described)
    for rows in (A, 0 * A):
        x = cocopt.project(K, constraints.Affine(rows, np.full(2, np.inf)), y)
        np.testing.assert_allclose(x, K.project(y), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", AFFINE_SETS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_zero_row_with_negative_right_hand_side_is_infeasible(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 3, count, 0)
    A[-1], b[-1] = 0.0, -0.25
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(build_set(described), constraints.Affine(A, b), y)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], rtol=1e-7)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", SETS)
def test_a_feasible_target_is_returned_bit_for_bit(kind: str, constraint: str) -> None:
    for seed in range(3):
        case = instance(kind, constraint, 4, seed)
        K = build_set(case.K)
        inside = K.project(case.z)
        np.testing.assert_array_equal(cocopt.project(K, build(case.g), inside), inside)
        batch = np.stack([inside, case.z + 3.0])
        np.testing.assert_array_equal(cocopt.project(K, build(case.g), batch)[0], inside)


# ------------------------------------------------------------------------------------------ single points and tangency


@pytest.mark.parametrize(
    ("K", "g", "point"),
    [
        (Box(0.0, 1.0, dim=4), constraints.Affine(-np.ones(4), -4.0), np.ones(4)),
        (Box([0.0, 1.0], [1.0, 1.0]), constraints.Affine([-1.0, 0.0], -1.0), [1.0, 1.0]),
        (Box(-np.inf, np.inf, dim=2), constraints.Affine([[1, 0], [-1, 0], [0, 1], [0, -1]], [3, -3, 4, -4]), [3, 4]),
        (Simplex(4), constraints.Affine([-1.0, 0.0, 0.0, 0.0], -1.0), [1.0, 0.0, 0.0, 0.0]),
        (Simplex(3), constraints.Affine([3.0, 2.0, 1.0], 1.0), [0.0, 0.0, 1.0]),
        (cocopt.Halfspace([1.0, 0.0], 1.0), constraints.Affine([[-1, 0], [0, 1], [0, -1]], [-1, 2, -2]), [1.0, 2.0]),
        (
            cocopt.Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)),
            constraints.Affine([-1.0, -1.0], -2.0),
            [1.0, 1.0],
        ),
        (cocopt.L1Ball([0.0, 0.0], 2.0), constraints.Affine([-1.0, 0.0], -2.0), [2.0, 0.0]),
    ],
)
def test_a_single_feasible_point_is_found(K: Any, g: Any, point: Any) -> None:
    targets = np.random.default_rng(0).normal(size=(20, K.dim)) * 3
    x = cocopt.project(K, g, targets)
    np.testing.assert_allclose(x, np.broadcast_to(np.asarray(point, float), x.shape), rtol=0, atol=POSITION)


@pytest.mark.parametrize(
    ("K", "g", "point"),
    [
        (Ball(0.0, 5.0, dim=2), constraints.Affine([-3.0, -4.0], -25.0), [3.0, 4.0]),
        (
            Ball(0.0, 5.0, dim=2),
            constraints.Affine([[-3.0, -4.0], [-6.0, -8.0], [1.0, 0.0]], [-25.0, -50.0, 9.0]),
            [3, 4],
        ),
        (Box(0.0, 1.0, dim=2), constraints.NormBall([2.0, 0.5], 1.0), [1.0, 0.5]),
        (Ball(0.0, 1.0, dim=2), constraints.NormBall([3.0, 0.0], 2.0), [1.0, 0.0]),
        (Simplex(2, 2.0), constraints.NormBall([2.0, 2.0], 2**0.5), [1.0, 1.0]),
        (cocopt.Ellipsoid([0.0, 0.0], np.diag([4.0, 1.0])), constraints.Affine([0.0, -1.0], -1.0), [0.0, 1.0]),
        (Box(-1.0, 1.0, dim=2), constraints.Quadratic(2 * np.eye(2), [-4.0, 0.0], 3.0), [1.0, 0.0]),
        (Box(-1.0, 1.0, dim=2), constraints.SecondOrder(np.eye(2), [-2.0, 0.0], [0.0, 0.0], 1.0), [1.0, 0.0]),
        (Ball([3.0, 4.0], 0.0), constraints.Affine([1.0, 1.0], 7.0), [3.0, 4.0]),
    ],
)
def test_tangency(K: Any, g: Any, point: Any) -> None:
    """One feasible point, where two boundaries touch: violations ε move it by √(4rε) along the tangent."""
    targets = np.random.default_rng(0).normal(size=(8, 2)) * 3
    x = cocopt.project(K, g, targets)
    np.testing.assert_allclose(x, np.broadcast_to(np.asarray(point, float), x.shape), rtol=0, atol=4e-4)
    assert K.violation(x).max() <= 1e-9 * 5
    assert (g.rows(x) / g.magnitude(x)).max() <= 1e-9


def test_a_curved_set_touched_from_inside_is_no_tangency() -> None:
    """The optimum lies where the ball and the row meet at a right angle to the target: well conditioned, so exact."""
    x = cocopt.project(Ball(0.0, 1.0, dim=2), constraints.Affine([1.0, 0.0], 0.6), [5.0, 0.8])
    np.testing.assert_allclose(x, [0.6, 0.8], atol=1e-12)


# ---------------------------------------------------------------------------------------------------------- dimensions


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
    """Every M, so every hand-over between methods, against an active-set solver; half of the M in batches."""
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


# ------------------------------------------------------------------------------------------------------------- scaling


def scaled_set(K: Description, s: float) -> Description:
    """{s·x : x in K}."""
    match K:
        case ("Simplex", n, total):
            return ("Simplex", n, s * total)
        case ("Halfspace" | "Polyhedron" as kind, A, b):
            return (kind, A, s * b)
        case ("Ellipsoid", center, P):
            return ("Ellipsoid", s * center, s * s * P)
        case ("Product", parts):
            return ("Product", [scaled_set(part, s) for part in parts])
    return (K[0], s * K[1], s * K[2])


def scaled_constraint(g: Description, s: float) -> Description:
    """s·g(x/s): the same constraint in another unit of length."""
    match g:
        case ("Affine", A, b):
            return ("Affine", A, s * b)
        case ("NormBall", center, radius):
            return ("NormBall", s * center, s * radius)
        case ("Quadratic", P, q, r):
            return ("Quadratic", P / s, q, s * r)
        case ("SecondOrder", A, b, c, d):
            return ("SecondOrder", A, s * b, c, s * d)
        case (kind, parts) if kind == "Stack":
            return ("Stack", [scaled_constraint(part, s) for part in parts])
        case (kind, inner):
            return (kind, scaled_constraint(inner, s))
    raise ValueError(g)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("constraint", [kind for kind in CONSTRAINTS if kind != "Function"])
@pytest.mark.parametrize("kind", SETS)
def test_units_of_length_do_not_matter(kind: str, constraint: str, unit: float) -> None:
    case = instance(kind, constraint, 4, 7)
    y = case.z + 2 * np.random.default_rng(7).normal(size=4)
    expected = reference.project(case.K, case.g, y)
    K, g = build_set(scaled_set(case.K, unit)), build(scaled_constraint(case.g, unit))
    x = cocopt.project(K, g, y * unit)
    np.testing.assert_allclose(x / unit, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("constraint", [kind for kind in CONSTRAINTS if kind != "Function"])
@pytest.mark.parametrize("kind", SETS)
def test_units_of_the_constraint_do_not_matter(kind: str, constraint: str, factor: float) -> None:
    """{factor·g ≤ 0} is {g ≤ 0}."""

    def times(g: Description) -> Description:
        match g:
            case ("NormBall", center, radius):
                n = len(center)
                return ("SecondOrder", factor * np.eye(n), -factor * center, np.zeros(n), factor * radius)
            case (name, list(parts)):
                return (name, [times(part) for part in parts])
            case ("from_cvxpy", inner):
                return ("from_cvxpy", times(inner))
        return (g[0], *(factor * argument for argument in g[1:]))

    case = instance(kind, constraint, 4, 8)
    y = case.z + 2 * np.random.default_rng(8).normal(size=4)
    x = cocopt.project(build_set(case.K), build(times(case.g)), y)
    expected = reference.project(case.K, case.g, y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


@pytest.mark.parametrize("count", [2, 4, 13, 40])
@pytest.mark.parametrize("kind", AFFINE_SETS)
def test_row_norms_from_1e_minus_6_to_1e6(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 5, count, count)
    factors = np.logspace(-6, 6, count)
    x = cocopt.project(build_set(described), constraints.Affine(A * factors[:, None], b * factors), y)
    expected = reference.project(described, ("Affine", A, b), y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


def test_a_far_target() -> None:
    """‖y‖ = 1e8 beside a unit set: the result is in K, and on the row to a few units in the last place of y."""
    rng = np.random.default_rng(0)
    for K in (Box(0.0, 1.0, dim=5), Ball(0.0, 1.0, dim=5), Simplex(5)):
        y = 1e8 * rng.normal(size=(50, 5))
        A = rng.normal(size=5)
        g = constraints.Affine(A, A @ K.project(rng.normal(size=5)) + 0.01)
        x = cocopt.project(K, g, y)
        assert K.violation(x).max() <= 1e-9
        assert g.value(x).max() <= 4 * np.spacing(np.abs(y).max()) * np.linalg.norm(A)


@pytest.mark.parametrize("count", [20, 150], ids=["kernel", "daqp"])
def test_what_is_normal_to_a_vertex_projects_onto_it_from_anywhere(count: int) -> None:
    """z + Nᵀλ with λ ≥ 0 and N the rows that bind at z, up to 10^6 times as far away as z is long."""
    solved = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, reach = 6, 10.0 ** rng.integers(0, 7)
        z, N, A = rng.normal(size=n), rng.normal(size=(n, n)), rng.normal(size=(count, n))
        if np.linalg.cond(N) > 100:
            continue
        g = constraints.Affine(np.concatenate([N, A]), np.concatenate([N @ z, A @ z + rng.uniform(0.1, 1.0, count)]))
        found = solve_projection(Box(-10.0, 10.0, dim=n), g, z + reach * rng.uniform(0.1, 1.0, n) @ N)
        solved += 1
        np.testing.assert_allclose(found.point, z, rtol=0, atol=1e-11)
        assert found.method == ("kernel" if count == 20 else "daqp")
    assert solved > 10


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e6])
@pytest.mark.parametrize("offset", [1.0, 1e3])
@pytest.mark.parametrize("kind", ["Ball", "Box", "unbounded"])
def test_small_curved_sets_far_from_the_origin_and_from_the_target(kind: str, offset: float, reach: float) -> None:
    """z + λ·(its normals) projects onto z, where surfaces of a set of size 1 meet, however far away both are."""
    n = 4
    for seed in range(3):
        rng = np.random.default_rng(seed)
        center, normals = offset * rng.normal(size=n), np.linalg.qr(rng.normal(size=(n, n)))[0]
        z = center + rng.normal(size=n)
        P = np.diag(rng.uniform(0.5, 2.0, n))  # ½(x − z)ᵀP(x − z) + ⟨normal, x − z⟩ ≤ 0 has z on its boundary
        square = constraints.Quadratic(P, normals[0] - P @ z, 0.5 * z @ P @ z - normals[0] @ z)
        g = constraints.Stack([square, constraints.NormBall(z - normals[1], 1.0)])
        K: Any = Box(-np.inf, np.inf, dim=n)
        if kind == "Ball":
            K = Ball(z - 1.5 * normals[2], 1.5)
        elif kind == "Box":
            K, normals[2] = Box(z - 1.0, z + np.array([0.0, 1.0, 1.0, 1.0])), np.eye(n)[0]
        used = normals[: 2 if kind == "unbounded" else 3]
        y = z + reach * rng.uniform(0.2, 1.0, len(used)) @ used
        x = cocopt.project(K, g, y)
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-8 * np.abs(z).max() + 1e-14 * reach)


@pytest.mark.parametrize("reach", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Product"])
def test_what_is_normal_to_curved_surfaces_projects_onto_their_meeting(kind: str, reach: float) -> None:
    """As for a vertex, with cones, quadratics and bounds through z, of which some press and others only touch."""
    n = 8
    for seed in range(15):
        rng = np.random.default_rng(seed)
        z, P = rng.normal(size=n), np.diag(rng.uniform(0.1, 2.0, n))
        slopes = rng.normal(size=(2, n))
        square = constraints.Quadratic(P, slopes[0] - P @ z, 0.5 * z @ P @ z - slopes[0] @ z)
        A, b, c = rng.normal(size=(3, n)), rng.normal(size=3), rng.normal(size=n)
        tail = A @ z + b
        slopes[1] = tail @ A / np.linalg.norm(tail) - c
        cone = constraints.SecondOrder(A, b, c, np.linalg.norm(tail) - c @ z)
        lower, upper = z - rng.uniform(0.1, 1.0, n), z + rng.uniform(0.1, 1.0, n)
        lower[0], upper[1] = z[0], z[1]  # the first two bind
        normals = [*slopes, -np.eye(n)[0], np.eye(n)[1]]
        K: Any = Box(lower, upper)
        if kind == "Ball":
            K, normals[2:] = Ball(z - 2.0 * slopes[0], 2.0 * np.linalg.norm(slopes[0])), [slopes[0]]
        elif kind == "Product":
            K = cocopt.Product([Box(lower[:4], upper[:4]), Box(lower[4:], upper[4:])])
        weights = rng.uniform(0.2, 1.0, len(normals)) * (rng.random(len(normals)) < 0.7)
        direction = weights @ np.array(normals)
        y = z + reach * direction / max(float(np.linalg.norm(direction)), 1e-12)
        x = cocopt.project(K, constraints.Stack([square, cone]), y)
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-8)


def test_multipliers_are_as_sharp_as_the_point_from_far_away() -> None:
    """point − x = Aᵀν to rounding of the point, though x may come from a target that is nearer."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, M = 8, 30
        A, free = rng.normal(size=(1, M, n)), np.full(n, np.inf)
        point = 10.0 ** rng.integers(0, 8) * rng.normal(size=(1, n))
        x, nu, status = daqp.project(-free, free, A, np.ones((1, M)), 0, point)
        assert status[0] == 0
        residual = np.abs(point - x - np.vecmat(nu, A)).max()
        assert residual <= 1e-13 * np.abs(point).max()


@pytest.mark.parametrize("seed", range(6))
def test_a_single_feasible_point_far_from_the_target(seed: int) -> None:
    """So many rows through one point that nothing else is feasible, which a solver may take for nothing at all."""
    rng = np.random.default_rng(seed)
    n = 40
    z, A = rng.dirichlet(np.ones(n)), rng.normal(size=(110, n))
    x = cocopt.project(Simplex(n), constraints.Affine(A, A @ z), z + 1e6 * rng.normal(size=(4, n)))
    np.testing.assert_allclose(x, np.broadcast_to(z, (4, n)), rtol=0, atol=1e-7)


@pytest.mark.parametrize("reach", [1.0, 1e2, 1e4, 1e6])
def test_curved_constraints_from_far_away(reach: float) -> None:
    """A ball inside a box, and one that a plane cuts, where the projection has a formula."""
    rng, cut = np.random.default_rng(0), 0
    for _ in range(10):
        n = int(rng.integers(2, 12))
        c, y = rng.uniform(-0.3, 0.3, n), reach * rng.normal(size=n)
        x = cocopt.project(Box(-1.0, 1.0, dim=n), constraints.NormBall(c, 0.5), y)
        np.testing.assert_allclose(x, c + 0.5 * (y - c) / np.linalg.norm(y - c), rtol=0, atol=1e-9)
        y = c + np.append((y - c)[:-1], reach)  # first to the upper plane, then within it
        g = constraints.Stack([constraints.NormBall(c, 0.5), constraints.Affine(np.eye(n)[-1], c[-1] + 0.3)])
        x = cocopt.project(Box(-1.0, 1.0, dim=n), g, y)
        away = (y - c)[:-1]
        within = min(0.4, float(np.linalg.norm(away))) * away / np.linalg.norm(away)
        if np.linalg.norm(y - c) * 0.3 <= reach * 0.5:  # the plane is in the way
            cut += 1
            np.testing.assert_allclose(x, c + np.append(within, 0.3), rtol=0, atol=1e-9)
    assert cut > 0


@pytest.mark.parametrize("reach", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("K", [Halfspace([1.0, 0.0, 0.0], 0.1), Box(-np.inf, np.inf, dim=3)], ids=["Halfspace", "Box"])
def test_an_unbounded_set_and_a_ball_from_far_away(K: Any, reach: float) -> None:
    """The target's foot in K is as far away as the target itself; the projection is that onto the ball, or the disc."""
    for y in reach * np.random.default_rng(0).normal(size=(10, 3)):
        x = cocopt.project(K, constraints.NormBall(np.zeros(3), 1.0), y)
        expected = y / max(1.0, float(np.linalg.norm(y)))
        if not K.contains(expected):
            rim = np.sqrt(1.0 - 0.1**2)
            expected = np.append(0.1, y[1:] * min(1.0, rim / float(np.linalg.norm(y[1:]))))
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("reach", [1e4, 1e6, 1e8])
def test_a_ball_and_a_row_from_far_along_its_normal(reach: float) -> None:
    """y − ν a cancels all but a few digits of x, and yet the row holds."""
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(300, 2)), 0.3 * rng.normal(size=(300, 2))
    g = constraints.Affine(a[:, None], 0.1 * np.linalg.norm(a, axis=1)[:, None])
    K = Ball(0.0, 1.0, dim=2)
    x = cocopt.project(K, g, y + reach * a)
    assert g.value(x).max() <= 1e-10
    assert K.violation(x).max() <= 1e-10


@pytest.mark.parametrize("reach", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("K", [L1Ball(0.1, 2.0, dim=3), Ellipsoid(np.full(3, 0.1), np.eye(3)), Ball(0.1, 2.0, dim=3)])
def test_the_tip_of_a_cone_at_the_origin(K: Any, reach: float) -> None:
    """Rows without right-hand sides leave nothing at 0 that could measure a violation but the scale of K."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        A = rng.normal(size=(3, 3))
        rows = constraints.Stack([constraints.Affine(A, np.zeros(3)), constraints.NormBall(np.zeros(3), 1.0)])
        x = cocopt.project(K, rows, reach * rng.uniform(0.1, 1.0, 3) @ A)  # normal to the cone at its tip
        np.testing.assert_allclose(x, np.zeros(3), rtol=0, atol=1e-9)


def test_a_least_violation_below_zero_is_no_proof_of_emptiness() -> None:
    A = [[0.88, 0.49], [-0.45, -0.02], [-0.65, -2.2], [0.21, 0.38]]
    A, b = np.array([*A, [-0.42, -0.56], [-1.37, -1.05], [0.7, 0.94]]), [-7.5e-10, 5e-3, -6e-10, 4e-3, 2e-3, 1e-2, 5e-3]
    K = Ellipsoid([0.105, -0.313], [[0.0776, -0.0492], [-0.0492, 0.84]])
    x = cocopt.project(K, constraints.Affine(A, b), [9.8e7, 1.8e7])
    assert K.contains(x)
    assert (A @ x - b).max() <= 1e-9


@pytest.mark.parametrize("reach", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("K", [Box(0.0, 1.0, dim=6), Ball(0.0, 1.0, dim=6), Simplex(6)], ids=["Box", "Ball", "Simplex"])
def test_the_conic_rung_agrees_with_the_kernels_from_far_away(K: Any, reach: float) -> None:
    """On faces too, where the target's part along the face is small beside the part across; with and without caps."""
    rng = np.random.default_rng(0)
    solved = 0
    for k in range(30):
        A, z = rng.normal(size=(3, 6)), K.project(rng.normal(size=6))
        b, y = A @ z + 0.1 * rng.random(3), z + reach * np.abs(rng.normal(size=2)) @ A[:2] + 0.3 * rng.normal(size=6)
        cap = np.full(3, np.inf) if k % 2 else reach * rng.uniform(0.0, 2.0, 3)
        x, _, status, _ = solve_batch(K, constraints.Affine(A, b), y, cap)
        by_cones = solve_conic(Problem(K, constraints.Affine(A, b), y, cap))
        if status == 0 and by_cones.status == 0:
            solved += 1
            np.testing.assert_allclose(by_cones.point, x, rtol=0, atol=1e-7)
    assert solved >= 15


# -------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("count", [1, 3, 12, 60])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([0.0, 0.5, -1.0, 0.3], [1.0, 0.5, 1.0, 0.3]),
        ([0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]),
        ([-np.inf, 0.0, -np.inf, 0.0], [1.0, np.inf, np.inf, 1.0]),
        ([-np.inf] * 4, [np.inf] * 4),
        ([0.0] * 4, [np.inf] * 4),
        ([-np.inf, 0.5, 0.0, 0.0], [np.inf, 0.5, np.inf, 1.0]),
    ],
)
def test_equal_and_infinite_bounds(lower: list[float], upper: list[float], count: int) -> None:
    described: Description = ("Box", np.array(lower), np.array(upper))
    rng = np.random.default_rng(count)
    A = rng.normal(size=(count, 4))
    z = np.array([0.5, 0.5, 0.5, 0.3 if upper[3] == 0.3 else 0.5])
    g: Description = ("Affine", A, A @ z + rng.uniform(0, 0.2, count))
    y = 3 * rng.normal(size=4)
    x = cocopt.project(build_set(described), build(g), y)
    expected = reference.least_distance(*reference.all_rows(described, g), y)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))
    np.testing.assert_array_equal(x[np.equal(lower, upper)], np.array(lower)[np.equal(lower, upper)])


# ----------------------------------------------------------------------------------------------------------- emptiness


@pytest.mark.parametrize("count", [1, 2, 4, 12, 60])
@pytest.mark.parametrize("kind", ["Box", "Simplex", "Polyhedron", "L1Ball"])
def test_the_least_violation_is_that_of_a_linear_program(kind: str, count: int) -> None:
    described, A, b, y = affine_case(kind, 3, count, count)
    b = b + reference.least_violation_lp(described, A, b) - 0.25  # now 0.25 is the least
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(build_set(described), constraints.Affine(A, b), y)
    assert caught.value.trials == (0,)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], rtol=1e-7)


@pytest.mark.parametrize("unit", [1e-6, 1e-5, 1.0, 1e4, 1e5, 1e6])
def test_the_least_violation_of_rows_in_other_units_than_the_rest(unit: float) -> None:
    """x ≤ −2 and x ≥ −1 in one unit, x ≤ 5 in another."""
    rows = constraints.Affine([[unit], [-unit], [1 / unit]], [-2 * unit, unit, 5 / unit])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-10.0, 10.0, dim=1), rows, [0.0])
    np.testing.assert_allclose(caught.value.least_violation, [unit / 2], rtol=1e-7)
    x = cocopt.project(Box(-10.0, 10.0, dim=1), rows, [0.0], infeasible="nearest")
    np.testing.assert_allclose(x, [-1.5], rtol=1e-9)


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("right", [1.0, 1e3, 1e6, 1e9, 1e11])
@pytest.mark.parametrize("size", [0.1, np.inf])
def test_the_least_violation_beside_a_row_that_is_met_by_far(size: float, right: float, slope: float) -> None:
    rows = constraints.Affine([[slope, 0.0], [1.0, 0.0], [-1.0, 0.0]], [right, -0.05, -0.05])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-size, size, dim=2), rows, [0.02, 0.03])
    np.testing.assert_allclose(caught.value.least_violation, [0.05], rtol=1e-7)
    x = cocopt.project(Box(-size, size, dim=2), rows, [0.02, 0.03], infeasible="nearest")
    np.testing.assert_allclose(x, [0.0, 0.03], rtol=0, atol=1e-9)


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("right", [1.0, 1e6, 1e9, 1e11, 1e13])
def test_the_point_of_least_violation_stays_in_K_beside_a_row_that_is_met_by_far(right: float, slope: float) -> None:
    """Of {x ≥ 0, x_1 + x_2 ≤ 1, x_3 ≤ 5} with x_1 ≤ 0.5, x_1 ≥ 0.7 and x_1 + x_2 ≥ 1.2."""
    K = cocopt.Polyhedron(np.vstack([[1.0, 1.0, 0.0], -np.eye(3), [0.0, 0.0, 1.0]]), [1.0, 0.0, 0.0, 0.0, 5.0])
    A = [[slope, slope, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [-1.0, -1.0, 0.0]]
    rows = constraints.Affine(A, [right, 0.5, -0.7, -1.2])
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, rows, [0.2, 0.3, 0.4])
    np.testing.assert_allclose(caught.value.least_violation, [0.2], rtol=1e-7)
    assert K.contains(cocopt.project(K, rows, [0.2, 0.3, 0.4], infeasible="nearest"))


@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Quadratic", "SecondOrder", "Stack", "from_cvxpy"])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "L1Ball", "Ellipsoid", "Product"])
def test_the_least_violation_is_that_of_cvxpy(kind: str, constraint: str) -> None:
    K, g = emptied(kind, constraint, seed=3)
    with pytest.raises(InfeasibleRound, match="no point in common") as caught:
        cocopt.project(build_set(K), build(g), np.ones(4))
    np.testing.assert_allclose(caught.value.least_violation, [0.5], rtol=1e-7)


def emptied(kind: str, constraint: str, seed: int, by: float = 0.5) -> tuple[Description, Description]:
    """A set and a constraint that it can only meet with a violation of ``by``."""
    case = instance(kind, constraint, 4, seed)
    least = reference.least_violation(case.K, case.g)
    return case.K, lifted(case.g, by - least)


def lifted(g: Description, by: float) -> Description:
    """g + by."""
    match g:
        case ("Affine", A, b):
            return ("Affine", A, b - by)
        case ("NormBall", center, radius):
            return ("NormBall", center, radius - by)
        case ("Quadratic", P, q, r):
            return ("Quadratic", P, q, r + by)
        case ("SecondOrder", A, b, c, d):
            return ("SecondOrder", A, b, c, d - by)
        case ("Stack", parts):
            return ("Stack", [lifted(part, by) for part in parts])
        case (kind, inner):
            return (kind, lifted(inner, by))
    raise ValueError(g)


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Ellipsoid"])
def test_the_infeasible_trials_of_a_batch_are_listed(kind: str, count: int) -> None:
    rng = np.random.default_rng(count)
    described, z = random_set(kind, 3, rng)
    A = rng.normal(size=(6, count, 3))
    b = A @ z + 0.1
    bad = (1, 4)
    for i in bad:
        b[i] += reference.least_violation(described, ("Affine", A[i], b[i])) - 0.1 * i  # now 0.1·i is the least
    for shape in ((6,), (2, 3)):  # trials count along the flattened batch
        g = constraints.Affine(A.reshape(*shape, count, 3), b.reshape(*shape, count))
        with pytest.raises(InfeasibleRound, match="trials 1, 4") as caught:
            cocopt.project(build_set(described), g, rng.normal(size=(*shape, 3)))
        assert caught.value.trials == bad
        np.testing.assert_allclose(caught.value.least_violation, [0.1, 0.4], rtol=1e-7)


@pytest.mark.parametrize(
    ("K", "g"),
    [
        (Box(0.0, 1.0, dim=2), lambda gap: constraints.Affine([-1.0, -1.0], -2.0 - gap)),
        (Box(0.0, 1.0, dim=2), lambda gap: constraints.Affine([[1.0, 0.0], [-1.0, 0.0]], [0.5, -0.5 - 2 * gap])),
        (Ball(0.0, 1.0, dim=2), lambda gap: constraints.Affine([-1.0, 0.0], -1.0 - gap)),
        (Simplex(2), lambda gap: constraints.Affine([-1.0, 0.0], -1.0 - gap)),
        (Box(0.0, 1.0, dim=2), lambda gap: constraints.NormBall([2.0, 0.5], 1.0 - gap)),
        (cocopt.L1Ball([0.0, 0.0], 1.0), lambda gap: constraints.Affine([-1.0, 0.0], -1.0 - gap)),
        (cocopt.Polyhedron(np.eye(2), np.ones(2)), lambda gap: constraints.Affine([-1.0, -1.0], -2.0 - gap)),
    ],
)
def test_just_infeasible_is_relaxed_and_clearly_infeasible_is_not(K: Any, g: Any) -> None:
    """The least violation is ``gap``: at 1e-12 it is rounding, at 1e-6 it is the user's."""
    y = np.array([[0.3, 0.4], [-2.0, 3.0]])
    x = cocopt.project(K, g(1e-12), y)
    assert K.violation(x).max() <= 1e-9
    assert g(1e-12).value(x).max() <= 2e-9
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, g(1e-6), y)
    assert caught.value.trials == (0, 1)
    np.testing.assert_allclose(caught.value.least_violation, 1e-6, rtol=1e-3)


@pytest.mark.parametrize("gap", [0.0, -1e-12, -1e-9, -1e-6])
def test_just_feasible_is_feasible(gap: float) -> None:
    """A sliver of width |gap| in the corner (1, 1) of the unit box."""
    g = constraints.Affine([-1.0, -1.0], -2.0 - gap)
    x = cocopt.project(Box(0.0, 1.0, dim=2), g, [[0.3, 0.4], [-2.0, 3.0]])
    assert g.value(x).max() <= 1e-9
    np.testing.assert_allclose(x, 1.0, rtol=0, atol=1e-9 - 2 * gap)


@pytest.mark.parametrize("count", [1, 3, 12, 40])
@pytest.mark.parametrize("kind", ["Box", "Simplex", "Polyhedron", "L1Ball"])
def test_nearest_is_the_nearest_point_of_least_violation(kind: str, count: int) -> None:
    """The linear program's violation, then the enumeration of active sets on the rows relaxed by it."""
    described, A, b, y = affine_case(kind, 3, min(count, 6), count)
    A, b = np.resize(A, (count, 3)), np.resize(b, count)  # rows repeat
    b = b + reference.least_violation_lp(described, A, b) - 0.3
    least = reference.least_violation_lp(described, A, b)  # 0.3, to the last bit
    few = slice(min(count, 6))
    C, d = reference.all_rows(described, ("Affine", A[few], b[few] + least))
    expected = reference.enumerate_active_sets(C, d, y)
    x = cocopt.project(build_set(described), constraints.Affine(A, b), y, infeasible="nearest")
    assert reference.outside(described, x) <= 1e-9 * 5
    assert (A @ x - b).max() <= least + 1e-8
    np.testing.assert_allclose(np.linalg.norm(x - y), np.linalg.norm(expected - y), rtol=1e-6)


@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Stack"])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Ellipsoid", "Product"])
def test_nearest_equals_two_stages_of_cvxpy(kind: str, constraint: str) -> None:
    K, g = emptied(kind, constraint, seed=5)
    y = 2 * np.random.default_rng(5).normal(size=4)
    expected, least = reference.nearest(K, g, y)
    x = cocopt.project(build_set(K), build(g), y, infeasible="nearest")
    assert reference.outside(K, x) <= 1e-9 * 5
    assert reference.rows(g, x).max() <= least + 1e-8
    # where boundaries touch, the 1e-6 that the reference adds to the violation buys a distance of √(4·1e-6·radius)
    assert -1e-6 <= np.linalg.norm(x - y) - np.linalg.norm(expected - y) <= 5e-3


def test_nearest_keeps_what_is_free() -> None:
    """x_1 ≥ 2 in the unit square: all points with x_1 = 1 are as good, x_2 stays; in the disc only (1, 0) is left."""
    g, y = constraints.Affine([-1.0, 0.0], -2.0), [0.2, 0.7]
    np.testing.assert_allclose(cocopt.project(Box(0.0, 1.0, dim=2), g, y, infeasible="nearest"), [1.0, 0.7], atol=1e-8)
    x = cocopt.project(Ball(0.0, 1.0, dim=2), g, y, infeasible="nearest")
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-4)
    assert g.value(x) <= 1.0 + 1e-8


@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Ellipsoid"])
def test_nearest_acts_on_the_infeasible_trials_alone(kind: str) -> None:
    rng = np.random.default_rng(1)
    described, z = random_set(kind, 3, rng)
    K = build_set(described)
    A = rng.normal(size=(5, 2, 3))
    b = A @ z + 0.1
    for i in (0, 3):
        b[i] += reference.least_violation(described, ("Affine", A[i], b[i])) - 0.5  # now 0.5 is the least
    y = z + 2 * rng.normal(size=(5, 3))
    result = solve_projection(K, constraints.Affine(A, b), y, infeasible="nearest")
    np.testing.assert_array_equal(result.feasible, [False, True, True, False, True])
    np.testing.assert_allclose(result.least_violation, [0.5, 0, 0, 0.5, 0], rtol=1e-6)
    np.testing.assert_array_equal(cocopt.project(K, constraints.Affine(A, b), y, infeasible="nearest"), result.point)
    for i in range(5):
        alone = cocopt.project(K, constraints.Affine(A[i], b[i]), y[i], infeasible="nearest")
        np.testing.assert_allclose(result.point[i], alone, rtol=0, atol=1e-7)
        if i in (1, 2, 4):
            expected = reference.project(described, ("Affine", A[i], b[i]), y[i])
            np.testing.assert_allclose(result.point[i], expected, rtol=0, atol=POSITION * (1 + np.linalg.norm(y)))


def test_an_empty_black_box_is_found_out() -> None:
    g = constraints.Function(lambda x: float(x @ x + 1.0), lambda x: 2 * x)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(-1.0, 2.0, dim=2), g, [2.0, 1.0])
    np.testing.assert_allclose(caught.value.least_violation, [1.0], rtol=1e-6)
    x = cocopt.project(Box(-1.0, 2.0, dim=2), g, [2.0, 1.0], infeasible="nearest")
    np.testing.assert_allclose(x, [0.0, 0.0], atol=1e-3)  # √1e-7: the violation is flat there
    assert g.value(x) <= 1.0 + 1e-6


# --------------------------------------------------------------------------------------------------------- black boxes


def cylinder() -> constraints.Function:
    """‖x‖ ≤ 1, told by value and subgradient."""
    return constraints.Function(lambda x: float(np.linalg.norm(x) - 1.0), lambda x: x / np.linalg.norm(x))


def test_the_number_of_cuts_is_reported() -> None:
    y = [[3.0, 2.0, 1.0], [0.1, 0.1, 0.1], [0.0, 0.0, 5.0]]
    result = solve_projection(Box(-2.0, 2.0, dim=3), cylinder(), np.array(y))
    assert result.method == "cuts"
    assert np.all(np.asarray(result.cuts) <= 500)
    assert np.max(result.cuts) >= 2
    np.testing.assert_allclose(result.point[0], np.array(y[0]) / np.linalg.norm(y[0]), atol=1e-7)
    np.testing.assert_array_equal(result.point[1], y[1])


def test_an_affine_rung_makes_no_cuts() -> None:
    result = solve_projection(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0), np.array([1.0, 0.5]))
    assert result.method == "kernel"
    assert np.max(result.cuts) == 0
    assert bool(np.all(result.feasible))
    assert np.max(result.least_violation) == 0.0


def test_the_bound_on_cuts_is_an_error() -> None:
    K, y = Box(-2.0, 2.0, dim=3), np.array([3.0, 2.0, 1.0])
    needed = int(np.max(solve_projection(K, cylinder(), y).cuts))
    with pytest.raises(CutLimit) as caught:
        cocopt.project(K, cylinder(), y, cuts=2)
    assert caught.value.cuts == 2
    assert 1e-7 < caught.value.violation < 3.0
    cocopt.project(K, cylinder(), y, cuts=needed)


def test_a_looser_tolerance_needs_fewer_cuts() -> None:
    K, y = Box(-2.0, 2.0, dim=3), np.array([3.0, 2.0, 1.0])
    loose, tight = (solve_projection(K, cylinder(), y, tol=tol) for tol in (1e-2, 1e-9))
    assert np.max(loose.cuts) < np.max(tight.cuts)
    assert cylinder().value(loose.point) <= 1e-2
    assert cylinder().value(tight.point) <= 1e-9


def test_a_black_box_with_a_kink() -> None:
    """The sup norm: cuts find its faces and finish exactly."""

    def gradient(x: Array) -> Array:
        i = int(np.argmax(np.abs(x)))
        return np.sign(x[i]) * np.eye(len(x))[i]

    g = constraints.Function(lambda x: float(np.abs(x).max() - 1.0), gradient)
    x = cocopt.project(Ball(0.0, 3.0, dim=4), g, [5.0, -4.0, 0.5, 1.0])
    np.testing.assert_allclose(x, [1.0, -1.0, 0.5, 1.0], atol=1e-7)


# --------------------------------------------------------------------------------------------------- sets of one's own


class Disc(cocopt.ConvexSet):
    """The unit ball, known by its projection alone."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def project_unchecked(self, point: Array) -> Array:
        return point / np.maximum(np.linalg.norm(point, axis=-1, keepdims=True), 1.0)

    def violation_unchecked(self, point: Array) -> Array:
        return np.maximum(np.linalg.norm(point, axis=-1) - 1.0, 0.0)


class Orthant(cocopt.ConvexSet):
    """x ≥ 0, known by its projection alone."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def project_unchecked(self, point: Array) -> Array:
        return np.maximum(point, 0.0)

    def violation_unchecked(self, point: Array) -> Array:
        return np.maximum(-point.min(axis=-1), 0.0)


@pytest.mark.parametrize("count", [1, 2, 4, 10])
@pytest.mark.parametrize(
    ("own", "builtin"),
    [(Disc(4), Ball(0.0, 1.0, dim=4)), (Orthant(4), Box(0.0, np.inf, dim=4))],
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
        cocopt.project(Disc(2), g, [0.3, 0.4])
    np.testing.assert_allclose(caught.value.least_violation, [1.0], rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_overflow_inside_a_kernel_is_no_error(n: int) -> None:
    """The rows leave one point, where they touch the ball: there is no finite multiplier."""
    c = np.full(n, 0.55)
    A = 1e-9 * np.vstack([np.eye(n), -np.eye(n)])
    K, g = Ball(0.0, float(np.linalg.norm(c)), dim=n), constraints.Affine(A, A @ c)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_batch(K, g, c - 1e12, None)  # the kernel itself is silent
        np.testing.assert_allclose(cocopt.project(K, g, c - 1e12), c, rtol=1e-9)


@pytest.mark.parametrize("seed", [34, 50, 57])
def test_many_dependent_rows_do_not_overflow(seed: int) -> None:
    """On the way several rows that are in depend on others in the few coordinates between their bounds."""
    rng = np.random.default_rng(seed)
    A, z = rng.normal(size=(20, 100, 50)), np.clip(rng.uniform(-1, 2, (20, 50)), 0.0, 1.0)
    y = rng.uniform(-1, 2, (20, 50))
    g = constraints.Affine(A, np.matvec(A, z) + 0.02 * rng.uniform(size=(20, 100)))
    K = Box(0.0, 1.0, dim=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_batch(K, g, y, None)
    assert found is not None
    x, nu, status, _ = found
    assert not status.any()
    # KKT: the point answers its multipliers, which are those of rows that bind
    np.testing.assert_allclose(x, np.clip(y - np.vecmat(nu, A), 0.0, 1.0), atol=1e-12)
    rows = g.rows(x)
    assert nu.min() >= 0.0
    assert rows.max() <= 1e-12
    assert np.abs(nu * rows).max() <= 1e-11


@pytest.mark.parametrize("apart", [None, 1e-5, 1e-9], ids=["independent", "near-copies", "nearer-copies"])
@pytest.mark.parametrize(("n", "M"), [(2, 40), (10, 32), (10, 100), (30, 100), (40, 60)])
def test_rows_that_nearly_all_bind(n: int, M: int, apart: float | None) -> None:
    """Rows come and go, and bounds are met and left, many times before the active set is found."""
    rng = np.random.default_rng(n + M)
    A, y, inside = rng.normal(size=(60, M, n)), rng.uniform(-1, 2, (60, n)), rng.uniform(size=(60, n))
    if apart is not None:
        A[:, M // 2 :] = A[:, : M - M // 2] + apart * rng.normal(size=(60, M - M // 2, n))
    g, K = constraints.Affine(A, np.matvec(A, inside) + 0.02 * rng.uniform(size=(60, M))), Box(0.0, 1.0, dim=n)
    found = solve_batch(K, g, y, None)
    assert found is not None
    x, nu, status, method = found
    assert method == "kernel"
    assert not status.any()
    np.testing.assert_allclose(x, np.clip(y - np.vecmat(nu, A), 0.0, 1.0), atol=1e-12 * (1 + np.abs(nu).max()))
    rows = g.rows(x)
    assert nu.min() >= 0.0
    assert rows.max() <= 1e-12 * (1 + np.abs(nu).max())
    assert np.abs(nu * rows).max() <= 1e-11 * (1 + np.abs(nu).max()) ** 2


def test_two_rows_that_exclude_each_other_and_a_long_one_that_does_not_matter() -> None:
    direction = np.array([0.9709785664376475, 0.23916651838978456])
    A = np.array([[973536.2286058294, 0.0], direction, -direction])
    g = constraints.Affine(A, [1284879.8534638598, -0.04666075490966881, -1.9533392450903313])
    with pytest.raises(InfeasibleRound) as told:
        cocopt.project(Simplex(2), g, [0.00195, 1.0137])
    assert told.value.least_violation == pytest.approx(1.0)  # half of what the two ask for more than there is


def test_an_empty_round_on_a_line_is_told_without_warnings() -> None:
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(80):
            A = rng.normal(size=(rng.integers(2, 30), 1))
            b = A[:, 0] + np.abs(A[:, 0]) * np.abs(rng.normal(size=len(A))) * (rng.random(len(A)) > 0.2)
            g = constraints.Affine(np.append(A, [[1.0], [-1.0]], axis=0), np.append(b, [0.0, -2.0]))
            with pytest.raises(InfeasibleRound):
                cocopt.project(Simplex(1), g, [2.0 * rng.normal()])


@pytest.mark.parametrize("far", [10.0, 1e3])
@pytest.mark.parametrize("outside", [1e-12, 1e-10, 1e-7])
def test_a_vertex_of_the_rows_just_outside_a_ball(outside: float, far: float) -> None:
    """From far away the vertex is the nearest point of the rows, whatever the ball's multiplier, but for large ones."""
    rng, solved = np.random.default_rng(0), 0
    for n in (2, 4, 6):
        vertex = rng.normal(size=(80, n))
        vertex *= (1.0 + outside) / np.linalg.norm(vertex, axis=-1, keepdims=True)
        A = rng.normal(size=(80, n, n))
        y = vertex + far * np.vecmat(rng.uniform(0.1, 1.0, (80, n)), A)
        for k in range(80):
            g = constraints.Affine(A[k], A[k] @ vertex[k])
            try:
                x = cocopt.project(Ball(0.0, 1.0, dim=n), g, y[k])
            except InfeasibleRound:
                continue  # the rows may miss the ball
            solved += 1
            assert (g.rows(x) / np.linalg.norm(A[k], axis=-1)).max() <= 1e-9
            assert np.linalg.norm(x) <= 1.0 + 1e-9
            normals = np.vstack([A[k][g.rows(x) >= -1e-7], x])
            _, rest = nnls(normals.T, y[k] - x)
            assert rest <= 1e-6 * np.linalg.norm(y[k] - x)
    assert solved > 120  # of 240


@pytest.mark.parametrize("K", [Box(0.0, 1.0, dim=2), Ball(0.0, 1.0, dim=2)], ids=["box", "ball"])
def test_rows_whose_squares_overflow_are_named(K: Any) -> None:
    A = np.array([1e-160, 1e160, 1.0, 1.0])[:, None] * np.vstack([np.eye(2), -np.eye(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="the data may overflow"):
            cocopt.project(K, constraints.Affine(A, A @ [0.2, 0.7]), [0.5, 0.5])


class Rows(Orthant):
    """The same, by its bounds as well."""

    def polyhedral(self) -> Polyhedral:
        return Polyhedral(np.zeros(self.dim), np.full(self.dim, np.inf), np.zeros((0, self.dim)), np.zeros(0))


def test_a_polyhedron_of_ones_own_has_cones() -> None:
    own, builtin, y = Rows(3), Box(0.0, np.inf, dim=3), np.array([2.0, -1.0, 1.0])
    checks.check_set(own)
    assert own.conic
    disc = constraints.NormBall([0.5, -0.5, 0.0], 1.0)
    assert cocopt.explain(own, disc).startswith("clarabel: ")
    np.testing.assert_allclose(cocopt.project(own, disc, y), cocopt.project(builtin, disc, y), rtol=0, atol=1e-12)
    with pytest.raises(InfeasibleRound) as caught:  # a black box, for which the least violation comes from cuts
        cocopt.project(own, constraints.Function(lambda x: x @ x + 0.25, lambda x: 2 * x), y)
    np.testing.assert_allclose(caught.value.least_violation, [0.25], rtol=1e-5)


# ------------------------------------------------------------------------------------------------------ memory layouts


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Polyhedron", "Halfspace"])
def test_the_layout_of_arrays_in_memory_does_not_matter(kind: str, count: int) -> None:
    """Kernels read memory without gaps: transposed, strided, reversed and broadcast arrays must reach them whole."""
    rng = np.random.default_rng(count)
    described, z = random_set(kind, 4, rng)
    K = build_set(described)
    A, y = rng.normal(size=(6, count, 4)), z + 2 * rng.normal(size=(6, 4))
    b = A @ z + 0.1
    expected = cocopt.project(K, constraints.Affine(A, b), y)
    for change in (
        np.asfortranarray,
        lambda array: np.repeat(array, 2, axis=0)[::2],
        lambda array: np.repeat(array, 3, axis=-1)[..., ::3],
        lambda array: array[..., ::-1].copy()[..., ::-1],
        lambda array: np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1),
    ):
        x = cocopt.project(K, constraints.Affine(change(A), change(b)), change(y))
        np.testing.assert_array_equal(x, expected)
    shared = cocopt.project(K, constraints.Affine(A[0], b[0]), y)
    spread = constraints.Affine(np.broadcast_to(A[0], A.shape), np.broadcast_to(b[0], b.shape))
    np.testing.assert_array_equal(shared, cocopt.project(K, spread, y))


def test_the_layout_of_a_loss_in_memory_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    H, y, x = rng.normal(size=(5, 3, 4)), rng.normal(size=(5, 3)), rng.normal(size=(5, 4))
    value, gradient = losses.Norm(H, y).value_and_gradient(x)
    turned = losses.Norm(np.asfortranarray(H), np.repeat(y, 2, axis=-1)[..., ::2])
    again = turned.value_and_gradient(np.asfortranarray(x))
    np.testing.assert_array_equal(value, again[0])
    np.testing.assert_array_equal(gradient, again[1])


@pytest.mark.parametrize("reach", [1e3, 1e6, 1e8])
@pytest.mark.parametrize(
    "g",
    [
        constraints.Quadratic(np.eye(3), np.zeros(3), -0.25),
        constraints.NormBall(np.zeros(3), 0.8),
        constraints.SecondOrder(np.eye(3), np.zeros(3), np.zeros(3), 0.8),
    ],
)
@pytest.mark.parametrize("K", [cocopt.Halfspace([1.0, 1.0, 1.0], 1.0), Box(-1.0, 1.0, dim=3)])
def test_a_far_target_of_an_unbounded_set_hides_no_violation(K: Any, g: Any, reach: float) -> None:
    """The foot on K is as far away as the target: tolerances must not be measured there."""
    x = cocopt.project(K, g, reach * np.array([1.0, 1.0, -0.3]))
    assert (g.rows(x) <= 1e-9 * g.magnitude(x)).all()
    assert K.violation(x) <= 1e-9
    radius = np.linalg.norm(x)
    np.testing.assert_allclose(x / radius, np.array([1.0, 1.0, -0.3]) / np.sqrt(2.09), atol=2e-3)


def test_small_data_can_be_infeasible() -> None:
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(Box(0.0, 1e-12, dim=3), constraints.Affine([1.0, 1.0, 1.0], -1e-12), [1e-12, 1e-12, 0.0])
    np.testing.assert_allclose(caught.value.least_violation, [1e-12], rtol=1e-6)


@pytest.mark.parametrize("reach", [1e3, 1e5, 1e7])
def test_a_ball_and_rows_keep_their_promise_for_far_targets(reach: float) -> None:
    rng = np.random.default_rng(0)
    K = Ball(0.0, 1.0, dim=4)
    A = rng.normal(size=(60, 40, 4))
    g = constraints.Affine(A, 0.3 * np.linalg.norm(A, axis=-1) * rng.uniform(size=(60, 40)))
    x = cocopt.project(K, g, reach * rng.normal(size=(60, 4)))
    assert np.linalg.norm(x, axis=-1).max() <= 1.0 + 1e-12
    assert (g.rows(x) <= 1e-12 * g.magnitude(x)).all()


@pytest.mark.parametrize(("y", "normal"), [([-3.0, 0.5], True), ([1.0, 3.0], False)])
def test_at_the_tip_of_a_cone_multipliers_must_be_in_its_dual(y: list[float], normal: bool) -> None:
    """At the tip any force has multipliers; it is the projection only of what is normal to {‖x‖ ≤ 2 x_1} there."""
    K, g = Box(-10.0, 10.0, dim=2), constraints.SecondOrder(np.eye(2), np.zeros(2), [2.0, 0.0], 0.0)
    scaled = _Scaled.of(Problem(K, g, np.array(y), np.full(1, np.inf)), stack([K.cones(), g.cones()], 2), None)
    v, z = -np.array(y) / scaled.unit, np.zeros(len(scaled.cones.b))
    z[-3:] = np.linalg.lstsq(scaled.cones.A[-3:].T, -v, rcond=None)[0]
    assert (scaled.judge(v, z, None, 0.0) is not None) == normal
