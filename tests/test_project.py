"""P_{K ∩ {g ≤ 0}} for every set and every kind of constraint: the theory's identities, and naive references."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from instances import CONSTRAINTS, SETS, Instance, build, build_set, instance, random_constraint, random_set, stacked
from reference import projections as reference
from reference.projections import Array

import cocopt
from cocopt import constraints
from cocopt.geometry import ladder, solve_projection
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.problem import Request

FEASIBLE = 1e-9  # what is promised of violations, relative to the size of the data
POSITION = 1e-7  # and of positions, where the active set is well conditioned
BLACK_BOX = 1e-7  # the default tolerance in violation of cutting planes
BLACK_BOX_POSITION = 1e-6  # of black boxes whose data are of order 1
SLACK = 0.1  # every instance has a point z of K with g(z) ≤ −SLACK

seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 5)
every_set = pytest.mark.parametrize("kind", SETS)
every_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS)
few = settings(max_examples=3)


def targets(case: Instance, seed: int, count: int) -> Array:
    """Random points near and far."""
    rng = np.random.default_rng([seed, 1])
    return case.z + rng.normal(size=(count, len(case.z))) * rng.uniform(0.1, 3.0, size=(count, 1))


def length(case: Instance, *points: Array) -> float:
    """The unit of lengths in an instance."""
    return 1.0 + max(float(np.linalg.norm(p)) for p in (case.z, *points))


def nearly(case: Instance, exact: float, size: float) -> float:
    """The tolerance of an identity that holds for the exact projection.

    A black box is met to BLACK_BOX in violation, so by convexity to η = BLACK_BOX·size/SLACK in distance; since cutting
    planes project exactly onto a larger set, the identities lose no more than size·η.
    """
    return 4 * BLACK_BOX * size**2 / SLACK if case.g[0] == "Function" else exact * size**2


def assert_feasible(case: Instance, x: Array, y: Array) -> None:
    unit = length(case, x, y)
    assert reference.outside(case.K, x) <= FEASIBLE * unit
    limit = BLACK_BOX if case.g[0] == "Function" else FEASIBLE * reference.size(case.g, unit)
    assert reference.rows(case.g, x).max() <= limit


@every_constraint
@every_set
@few
@given(n=dimensions, seed=seeds, slack=st.sampled_from([SLACK, 0.0]))
def test_the_projection_is_feasible(kind: str, constraint: str, n: int, seed: int, slack: float) -> None:
    case = instance(kind, constraint, n, seed, slack=slack)
    (y,) = targets(case, seed, 1)
    x = cocopt.project(build_set(case.K), build(case.g), y)
    assert x.shape == (n,)
    assert_feasible(case, x, y)


@every_constraint
@every_set
@few
@given(n=dimensions, seed=seeds)
def test_projecting_twice_changes_nothing(kind: str, constraint: str, n: int, seed: int) -> None:
    case = instance(kind, constraint, n, seed)
    K, g = build_set(case.K), build(case.g)
    (y,) = targets(case, seed, 1)
    x = cocopt.project(K, g, y)
    unit = length(case, x, y)
    moved = np.linalg.norm(cocopt.project(K, g, x) - x)
    assert moved <= (2 * BLACK_BOX * unit / SLACK if constraint == "Function" else 10 * FEASIBLE * unit)


@every_constraint
@every_set
@few
@given(n=dimensions, seed=seeds)
def test_the_projection_is_firmly_nonexpansive(kind: str, constraint: str, n: int, seed: int) -> None:
    case = instance(kind, constraint, n, seed)
    y = targets(case, seed, 2)
    x = cocopt.project(build_set(case.K), build(case.g), y)
    difference = x[0] - x[1]
    assert difference @ difference <= difference @ (y[0] - y[1]) + nearly(case, 1e-8, length(case, *x, *y))


@every_constraint
@every_set
@few
@given(n=dimensions, seed=seeds)
def test_the_variational_inequality(kind: str, constraint: str, n: int, seed: int) -> None:
    """⟨y − x, z − x⟩ ≤ 0 for every z in K ∩ {g ≤ 0} characterises x = P(y)."""
    case = instance(kind, constraint, n, seed)
    K, g = build_set(case.K), build(case.g)
    y, *others = targets(case, seed, 8)
    x = cocopt.project(K, g, y)
    feasible = np.vstack([case.z, cocopt.project(K, g, np.array(others))])
    assert ((feasible - x) @ (y - x)).max() <= nearly(case, 1e-8, length(case, x, y, *feasible))


@every_constraint
@every_set
@few
@given(n=dimensions, seed=seeds)
def test_it_equals_cvxpy(kind: str, constraint: str, n: int, seed: int) -> None:
    case = instance(kind, constraint, n, seed)
    (y,) = targets(case, seed, 1)
    x = cocopt.project(build_set(case.K), build(case.g), y)
    try:
        expected = reference.project(case.K, case.g, y)
    except reference.BadlyConditioned:  # about one in 500
        reject()
    limit = BLACK_BOX_POSITION if constraint == "Function" else POSITION * length(case, x, y)
    assert np.abs(x - expected).max() <= limit


@pytest.mark.parametrize("kind", ["Box", "Simplex", "Halfspace", "Polyhedron", "L1Ball", "Product"])
@settings(max_examples=10)
@given(
    n=st.integers(1, 3), seed=seeds, constraint=st.sampled_from(["row", "rows"]), slack=st.sampled_from([SLACK, 0.0])
)
def test_it_equals_the_enumeration_of_active_sets(kind: str, n: int, seed: int, constraint: str, slack: float) -> None:
    """Slack 0 makes all four rows meet in one point, which is often the only feasible one."""
    case = instance(kind, constraint, n, seed, slack=slack)
    if not reference.polyhedral(case.K):
        case = instance("Box", constraint, n, seed, slack=slack)
    (y,) = targets(case, seed, 1)
    x = cocopt.project(build_set(case.K), build(case.g), y)
    expected = reference.enumerate_active_sets(*reference.all_rows(case.K, case.g), y)
    assert np.abs(x - expected).max() <= POSITION * length(case, x, y)


@pytest.mark.parametrize("kind", ["Box", "Simplex", "Halfspace", "Polyhedron"])
@settings(max_examples=20)
@given(n=st.integers(4, 20), seed=seeds, count=st.integers(1, 40))
def test_it_equals_an_active_set_solver(kind: str, n: int, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, n, rng)
    A = rng.normal(size=(count, n))
    case = Instance(K, ("Affine", A, A @ z + SLACK * rng.uniform(1.0, 4.0, count)), z)
    (y,) = targets(case, seed, 1)
    x = cocopt.project(build_set(K), build(case.g), y)
    assert np.abs(x - reference.least_distance(*reference.all_rows(K, case.g), y)).max() <= POSITION * length(
        case, x, y
    )


@every_constraint
@every_set
@few
@given(n=dimensions, seed=seeds)
def test_a_batch_of_points_equals_singles(kind: str, constraint: str, n: int, seed: int) -> None:
    case = instance(kind, constraint, n, seed)
    K, g = build_set(case.K), build(case.g)
    y = targets(case, seed, 6).reshape(2, 3, n)
    together = cocopt.project(K, g, y)
    alone = np.array([[cocopt.project(K, g, point) for point in line] for line in y])
    assert together.shape == y.shape
    assert np.abs(together - alone).max() <= 1e-9 * length(case, y)


@pytest.mark.parametrize("shared", [False, True], ids=["own target", "one target"])
@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Quadratic", "SecondOrder", "Stack"])
@every_set
@few
@given(n=dimensions, seed=seeds)
def test_a_batch_of_constraints_equals_singles(kind: str, constraint: str, shared: bool, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    described, z = random_set(kind, n, rng)
    K = build_set(described)
    singles = [random_constraint(constraint, z, rng, slack=SLACK) for _ in range(3)]
    y = z + 2 * rng.normal(size=n if shared else (3, n))
    together = cocopt.project(K, build(stacked(singles)), y)
    alone = np.array([cocopt.project(K, build(g), np.broadcast_to(y, (3, n))[i]) for i, g in enumerate(singles)])
    assert together.shape == (3, n)
    assert np.abs(together - alone).max() <= 1e-9 * (1 + np.linalg.norm(z) + np.linalg.norm(y))


@every_set
@few
@given(n=dimensions, seed=seeds)
def test_a_stack_may_hold_a_black_box(kind: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, n, rng)
    rows, ball = (random_constraint(g, z, rng, slack=SLACK) for g in ("rows", "NormBall"))
    case = Instance(K, ("Function", ("Stack", [rows, ball])), z)
    (y,) = targets(case, seed, 1)
    x = cocopt.project(build_set(K), constraints.Stack([build(rows), build(("Function", ball))]), y)
    assert_feasible(case, x, y)
    try:
        expected = reference.project(K, case.g, y)
    except reference.BadlyConditioned:
        reject()
    assert np.abs(x - expected).max() <= BLACK_BOX_POSITION


# --------------------------------------------------------------------------------------------------------- black boxes

SMOOTH = ("NormBall", "Quadratic", "SecondOrder", "Exponential")
KINKED = ("one kink", "kinks")


def black_box(kind: str, shape: str, n: int, seed: int) -> tuple[Instance, Array, Any, Any]:
    """K and {g ≤ 0}, a target, and callables: the value of a function with that sublevel set, and a subgradient."""
    rng = np.random.default_rng([seed, n])
    K, z = random_set(kind, n, rng)
    names = {"one kink": ("NormBall", "rows"), "kinks": ("rows", "NormBall", "Quadratic", "SecondOrder", "NormBall")}
    parts = names.get(shape, ("NormBall" if shape == "Exponential" else shape,))
    g = ("Stack", [random_constraint(part, z, rng, slack=SLACK) for part in parts])
    case = Instance(K, g, z)

    def value(x: Array) -> float:
        largest = float(reference.rows(g, x).max())
        return float(np.expm1(largest)) if shape == "Exponential" else largest

    def gradient(x: Array) -> Array:
        subgradient = reference.subgradient(g, x)
        return subgradient * (1.0 + value(x)) if shape == "Exponential" else subgradient

    return case, targets(case, seed, 1)[0], value, gradient


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", SMOOTH + KINKED)
@every_set
def test_the_position_of_a_black_box(kind: str, shape: str, seed: int) -> None:
    for n in (1, 2, 3, 5, 10):
        case, y, value, gradient = black_box(kind, shape, n, seed)
        K = build_set(case.K)
        asked: list[Array] = []

        def recorded(x: Array, value: Any = value, asked: list[Array] = asked) -> float:
            asked.append(x)
            return float(value(x))

        result = solve_projection(K, constraints.Function(recorded, gradient), y)
        assert np.asarray(K.contains(np.array(asked), tol=2e-9)).all()  # a callable need not be defined elsewhere
        assert result.cuts <= 200
        assert value(result.point) <= BLACK_BOX
        try:
            expected = reference.project(case.K, case.g, y)
        except reference.BadlyConditioned:
            continue
        assert np.abs(result.point - expected).max() <= BLACK_BOX_POSITION, n


@pytest.mark.parametrize("kind", ["Box", "Simplex", "Halfspace", "Polyhedron"])
def test_the_position_of_a_black_box_needs_no_more_cuts_than_its_violation(kind: str) -> None:
    """Cuts taken where the curvature points to reach the position with what Kelley's method spends on violation."""
    used, plain = 0, 0
    for shape, n, seed in [(shape, n, seed) for shape in SMOOTH for n in (2, 3, 5, 10) for seed in range(6)]:
        case, y, value, gradient = black_box(kind, shape, n, seed)
        used += solve_projection(build_set(case.K), constraints.Function(value, gradient), y).cuts
        plain += reference.kelley(case.K, value, gradient, y)
    assert 0 < used <= 1.05 * plain


def test_the_tolerance_of_a_black_box_bounds_the_position_too() -> None:
    used = []
    for tol in (1e-2, 1e-4, 1e-7):
        used.append(0)
        for seed in range(20):
            case, y, value, gradient = black_box("Box", "Quadratic", 5, seed)
            result = solve_projection(build_set(case.K), constraints.Function(value, gradient), y, tol=tol)
            expected = reference.project(case.K, case.g, y)
            assert np.linalg.norm(result.point - expected) <= tol * length(case, y), seed
            used[-1] += result.cuts
    assert used[0] < used[1] < used[2]


@pytest.mark.parametrize("constraint", ["NormBall", "Quadratic", "row"])
@settings(max_examples=10)
@given(n=dimensions, seed=seeds)
def test_the_multipliers_of_cones_are_those_of_the_rows(constraint: str, n: int, seed: int) -> None:
    """Without K, y − x = ν ∇g(x)."""
    g = random_constraint(constraint, np.zeros(n), np.random.default_rng(seed), slack=SLACK)
    y = 2 * np.random.default_rng([seed, 1]).normal(size=n)
    solution = solve_conic(Request(cocopt.Box(-np.inf, np.inf, dim=n), build(g), y))
    step = solution.multipliers[0] * reference.subgradient(g, solution.point)
    assert np.abs(y - solution.point - step).max() <= 1e-6 * (1 + np.linalg.norm(y))


@every_set
def test_without_a_constraint_it_is_the_projection_onto_K(kind: str) -> None:
    rng = np.random.default_rng(0)
    K = build_set(random_set(kind, 4, rng)[0])
    y = 3 * rng.normal(size=(5, 4))
    np.testing.assert_array_equal(cocopt.project(K, None, y), K.project(y))


def test_explain_names_the_method() -> None:
    box, ball = cocopt.Box(0.0, 1.0, dim=3), cocopt.Ball(0.0, 1.0, dim=3)
    many = constraints.Affine(np.ones((4001, 3)), np.ones(4001))
    black_box = constraints.Function(lambda x: float(x[0]), lambda x: np.array([1.0, 0.0, 0.0]))
    for K, g, method in [
        (box, constraints.Affine(np.ones(3), 1.0), "kernel"),
        (ball, constraints.Affine(np.ones(3), 1.0), "kernel"),
        (cocopt.Simplex(3), constraints.Affine(np.ones(3), 1.0), "kernel"),
        (box, many, "daqp"),
        (cocopt.Polyhedron(np.eye(3), np.ones(3)), many, "daqp"),
        (box, constraints.NormBall(np.zeros(3), 1.0), "curved"),
        (box, constraints.Quadratic(np.diag([0.0, 1.0, 2.0]), np.ones(3), -1.0), "curved"),
        (box, constraints.Quadratic(np.ones((3, 3)), np.ones(3), -1.0), "newton"),
        (cocopt.L1Ball(0.0, 1.0, dim=3), constraints.Affine(np.ones(3), 1.0), "curved"),
        (cocopt.Halfspace(np.ones(3), 1.0), constraints.NormBall(np.zeros(3), 1.0), "curved"),
        (box, constraints.Norm1(np.zeros(3), 1.0), "curved"),
        (cocopt.Simplex(3), constraints.NormInf(np.zeros(3), 1.0), "curved"),
        (ball, constraints.Norm1(np.zeros(3), 1.0), "pieces"),
        (ball, constraints.LogSumExp(np.eye(3), np.ones(3)), "clarabel"),
        (cocopt.Ellipsoid(np.zeros(3), np.eye(3)), many, "clarabel"),
        (box, black_box, "cuts"),
        (ball, constraints.Stack([many, black_box]), "cuts"),
    ]:
        name, _, sentence = cocopt.explain(K, g).partition(": ")
        assert (name, bool(sentence)) == (method, True), (K, g)


class KnownByProjection(cocopt.ConvexSet):
    """A set of which only the projection is known."""

    def __init__(self, K: cocopt.ConvexSet) -> None:
        self.K, self.dim = K, K.dim

    def project_unchecked(self, point: Array) -> Array:
        return self.K.project_unchecked(point)

    def violation_unchecked(self, point: Array) -> Array:
        return self.K.violation_unchecked(point)


@pytest.mark.parametrize("structure", [True, False], ids=["known", "by projection alone"])
@every_constraint
@every_set
def test_explain_names_the_method_that_is_tried_first(
    kind: str, constraint: str, structure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def recorded(method: ladder.Method) -> ladder.Method:
        def solve(request: ladder.Request) -> Any:
            tried.append(method.name)
            return method.solve(request)  # type: ignore[misc]

        return method if method.solve is None else method._replace(solve=solve)

    monkeypatch.setattr(ladder, "METHODS", tuple(map(recorded, ladder.METHODS)))
    for seed in range(3):
        case = instance(kind, constraint, 3, seed)
        K, g = build_set(case.K), build(case.g)
        K = K if structure else KnownByProjection(K)
        (y,) = targets(case, seed, 1)
        tried.clear()
        method = solve_projection(K, g, case.z + 5 * (y - case.z)).method
        if method != "set":  # whose projection violates nothing
            assert cocopt.explain(K, g).partition(": ")[0] == (tried[0] if tried else method)


@pytest.mark.parametrize(
    ("K", "count", "method"),
    [
        (cocopt.Box(-1.0, 1.0, dim=5), 4000, "kernel"),
        (cocopt.Box(-1.0, 1.0, dim=5), 4001, "daqp"),
        (cocopt.Simplex(5), 3999, "kernel"),
        (cocopt.Simplex(5), 4000, "daqp"),
        (cocopt.Ball(0.0, 1.0, dim=5), 4000, "kernel"),
        (cocopt.Ball(0.0, 1.0, dim=5), 4001, "clarabel"),
        (cocopt.L1Ball(0.0, 1.0, dim=2001), 2, "dual"),
    ],
    ids=str,
)
def test_explain_names_the_method_of_many_rows_and_dimensions(K: Any, count: int, method: str) -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(count, K.dim))
    g = constraints.Affine(A, A @ K.project(np.zeros(K.dim)) + 0.3)
    assert cocopt.explain(K, g).partition(": ")[0] == method
    assert solve_projection(K, g, A.sum(axis=0)).method == method


@pytest.mark.parametrize(
    ("K", "g"),
    [
        (cocopt.Box(-1.0, 1.0, dim=3), constraints.NormBall(np.zeros(3), 1.0)),
        (cocopt.Box(-1.0, 1.0, dim=3), constraints.Quadratic(np.ones((3, 3)) + np.eye(3), np.zeros(3), -1.0)),
        (cocopt.Box(-1.0, 1.0, dim=3), constraints.Equality(np.ones(3), 0.5)),
        (cocopt.Ball(0.0, 0.0, dim=3), constraints.SecondOrder(np.eye(3), np.zeros(3), np.zeros(3), 1.0)),
    ],
    ids=str,
)
def test_explain_names_the_method_of_rows_that_yield(K: cocopt.ConvexSet, g: constraints.Constraint) -> None:
    y = np.array([3.0, 2.0, -1.0])
    for constraint in (g, constraints.Soft(g, 2.0)):
        method = solve_projection(K, constraint, y).method
        assert method == "set" or cocopt.explain(K, constraint).partition(":")[0] == method


@pytest.mark.parametrize("kind", [cocopt.Box, cocopt.Ball, cocopt.Simplex, cocopt.L1Ball])
def test_explaining_costs_no_square_matrix(kind: Any) -> None:
    n = 50_000
    K = kind(n) if kind is cocopt.Simplex else kind(0.0, 1.0, dim=n)
    g = constraints.NormBall(np.zeros(n), 1.0)
    tracemalloc.start()
    try:
        assert cocopt.explain(K, g).startswith("curved: ")
        with_row = cocopt.explain(K, constraints.Stack([g, constraints.Affine(np.ones(n), 1.0)]))
        assert with_row.startswith("curved: " if K.polyhedral() else "cuts: ")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 100 * 8 * n  # some vectors; a square matrix would be 20 GB


def test_a_curved_constraint_in_many_dimensions_costs_no_square_matrix() -> None:
    n = 4000
    y = np.random.default_rng(0).normal(size=n)
    tracemalloc.start()
    try:
        x = cocopt.project(cocopt.Box(-1.0, 1.0, dim=n), constraints.NormBall(np.zeros(n), 10.0), y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(x, 10.0 * y / np.linalg.norm(y), rtol=0, atol=1e-6)  # the box does not bind
    assert peak < 8 * n * n


def test_the_inputs_are_not_changed() -> None:
    A, b, y = np.array([[1.0, 2.0], [1e6, 0.0]]), np.array([1.0, np.inf]), np.array([3.0, 4.0])
    copies = A.copy(), b.copy(), y.copy()
    x = cocopt.project(cocopt.Box(0.0, 1.0, dim=2), constraints.Affine(A, b), y)
    for array, copy in zip((A, b, y), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert not np.shares_memory(x, y)
