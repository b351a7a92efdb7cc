"""Newton's method for curved rows: dense quadratics, cones and balls, alone or with affine rows, over all trials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import build, build_set
from reference import projections as reference

import cocopt
from cocopt import constraints
from cocopt.constraints import Affine, Constraint, NormBall, Quadratic, SecondOrder, Shifted, Stack
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection
from cocopt.geometry.dense import solve_dense
from cocopt.geometry.problem import Request
from cocopt.kernels.status import CONVERGED, NONFINITE

Array = np.ndarray[Any, np.dtype[np.float64]]
Description = tuple[Any, ...]

SETS = ["Box", "Simplex", "Ball"]
CURVED = ["quadratic", "cone", "low rank", "Stack"]
POSITION = 1e-7  # docs/design.md; CVXPY's own solution is polished to more


def some_set(kind: str, n: int) -> tuple[Description, Array]:
    """A set, and a point inside it."""
    match kind:
        case "Box":
            return ("Box", np.full(n, -0.5), np.full(n, 0.75)), np.full(n, 0.125)
        case "Simplex":
            return ("Simplex", n, 1.0), np.full(n, 1.0 / n)
        case _:
            return ("Ball", np.full(n, 0.1), 1.0), np.full(n, 0.1)


def some_rows(kind: str, z: Array, rng: np.random.Generator, slack: float = 0.1) -> Description:
    """A constraint that z satisfies with this slack."""
    n = z.size
    match kind:
        case "quadratic" | "low rank":
            F, q = rng.normal(size=(n if kind == "quadratic" else 1, n)) / np.sqrt(n), 0.3 * rng.normal(size=n)
            P = F.T @ F
            return ("Quadratic", P, q, float(-(0.5 * z @ P @ z + q @ z) - slack))
        case "cone":
            A, b, c = rng.normal(size=(n, n)) / np.sqrt(n), 0.3 * rng.normal(size=n), 0.2 * rng.normal(size=n)
            return ("SecondOrder", A, b, c, float(np.linalg.norm(A @ z + b) - c @ z + slack))
        case "ball":
            center = z + 0.1 * rng.normal(size=n)
            return ("NormBall", center, float(np.linalg.norm(z - center) + slack))
        case "Affine":
            A = rng.normal(size=(4, n))
            return ("Affine", A, A @ z + slack * rng.uniform(0.5, 1.0, size=4))
        case "Stack":
            return ("Stack", [some_rows(part, z, rng, slack) for part in ("Affine", "quadratic")])
        case _:  # "window": several curved constraints
            return ("Stack", [some_rows(part, z, rng, slack) for part in ("quadratic", "cone", "ball", "quadratic")])


def newton(K: Any, g: Constraint, y: Any, **bounds: Any) -> tuple[Array, Array, Any]:
    """Points, multipliers and statuses of the method by itself."""
    found = solve_dense(Request(K, g, np.asarray(y, dtype=np.float64), **bounds))
    assert found is not None
    assert found[3] == "newton"
    return found[0], found[1], found[2]


@pytest.mark.parametrize("kind", [*CURVED, "window"])
@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_projections_are_those_of_cvxpy(K_kind: str, kind: str, n: int) -> None:
    rng = np.random.default_rng([n, len(K_kind), len(kind)])
    K, z = some_set(K_kind, n)
    for _ in range(3):
        g, y = some_rows(kind, z, rng), z + rng.normal(size=n)
        x, _, status = newton(build_set(K), build(g), y)
        assert status == CONVERGED
        np.testing.assert_allclose(x, reference.project(K, g, y), rtol=0, atol=POSITION)
        assert (reference.rows(g, x) <= 1e-12 * reference.size(g, 1.0 + float(np.linalg.norm(x)))).all()
        assert reference.outside(K, x) <= 1e-12


@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("kind", ["quadratic", "cone"])
@pytest.mark.parametrize("n", [40, 100])
def test_large_projections_are_those_of_cvxpy(K_kind: str, kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    K, z = some_set(K_kind, n)
    g, y = some_rows(kind, z, rng, slack=0.02), z + rng.normal(size=n) / np.sqrt(n)
    x, _, status = newton(build_set(K), build(g), y)
    assert status == CONVERGED
    np.testing.assert_allclose(x, reference.project(K, g, y), rtol=0, atol=POSITION)


@pytest.mark.parametrize("kind", [*CURVED, "window"])
@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("cap", ["each", "sum"])
@pytest.mark.parametrize("weight", [0.05, 0.7, 1e6])
def test_hinge_proxes_are_those_of_cvxpy(K_kind: str, kind: str, cap: Any, weight: float) -> None:
    rng = np.random.default_rng([len(kind), int(100 * weight)])
    K, z = some_set(K_kind, 4)
    g, y = some_rows(kind, z, rng), z + rng.normal(size=4)
    M = reference.rows(g, y).size
    weights = rng.uniform(0.5, 1.0, size=M) * weight if cap == "each" else np.array(weight)
    x = cocopt.hinge_prox(build_set(K), build(g), y, weight=weights, cap=cap)
    expected = reference.hinge_prox(K, g, y, np.zeros(4), weights, cap, 0.5)
    np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION)


@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("cap", ["each", "sum"])
def test_a_weight_of_zero_leaves_the_projection_onto_the_set(K_kind: str, cap: Any) -> None:
    rng = np.random.default_rng(1)
    K, z = some_set(K_kind, 4)
    for kind in [*CURVED, "window"]:
        g, y = some_rows(kind, z, rng), z + rng.normal(size=4)
        x = cocopt.hinge_prox(build_set(K), build(g), y, weight=0.0, cap=cap)
        np.testing.assert_allclose(x, reference.by_cvxpy(K, None, y), rtol=0, atol=POSITION)


@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("kind", [*CURVED, "window"])
def test_projections_are_firmly_nonexpansive_idempotent_and_satisfy_the_variational_inequality(
    K_kind: str, kind: str
) -> None:
    rng = np.random.default_rng(7)
    description, z = some_set(K_kind, 5)
    K, g = build_set(description), build(some_rows(kind, z, rng))
    y = z + rng.normal(size=(60, 5)) * 10.0 ** rng.uniform(-1, 1, size=(60, 1))
    x = cocopt.project(K, g, y)
    np.testing.assert_allclose(cocopt.project(K, g, x), x, rtol=0, atol=1e-12)
    assert (g.rows(x) <= 1e-12 * g.magnitude(x)).all()
    assert K.violation(x).max() <= 1e-12
    d, e = x[:, None] - x, y[:, None] - y
    assert (np.vecdot(d, d) <= np.vecdot(d, e) + 1e-9).all()
    # ⟨y − x, v − x⟩ ≤ 0 for every feasible v, here all the others' projections and z
    others = np.concatenate([x, z[None]])
    assert (
        np.vecdot((y - x)[:, None], others[None] - x[:, None]) <= 1e-9 * np.linalg.norm(y - x, axis=-1)[:, None]
    ).all()


def test_multipliers_explain_the_step() -> None:
    rng = np.random.default_rng(5)
    K, z = cocopt.Space(6), np.zeros(6)
    g = build(("Stack", [some_rows(kind, z, rng) for kind in ("Affine", "quadratic", "ball", "cone")]))
    y = rng.normal(size=(20, 6))
    x, nu, status = newton(K, g, y)
    assert (status == CONVERGED).all()
    np.testing.assert_allclose(y - x, np.vecmat(nu, g.jacobian(x)), rtol=0, atol=1e-10)
    assert (nu >= 0.0).all()
    np.testing.assert_allclose(nu * g.rows(x), 0.0, rtol=0, atol=1e-10)


def test_a_feasible_target_is_returned_bit_for_bit() -> None:
    rng = np.random.default_rng(2)
    for kind in SETS:
        K, z = some_set(kind, 6)
        for rows in [*CURVED, "window"]:
            y = z if kind == "Simplex" else z + 1e-3 * rng.normal(size=(4, 6))
            np.testing.assert_array_equal(cocopt.project(build_set(K), build(some_rows(rows, z, rng)), y), y)


def test_leading_axes_broadcast_and_a_batch_is_its_trials() -> None:
    rng = np.random.default_rng(3)
    P = np.array([(F := rng.normal(size=(4, 4))).T @ F for _ in range(3)])[:, None]
    shared = SecondOrder(rng.normal(size=(4, 4)), np.zeros(4), np.zeros(4), 1.0)
    g = Stack(
        [Quadratic(P, rng.normal(size=(5, 4)), -1.0), shared, Affine(rng.normal(size=(5, 2, 4)), 0.5 * np.ones((5, 2)))]
    )
    K, y = cocopt.Box(-1.0, 1.0, dim=4), 3 * rng.normal(size=(2, 1, 1, 4))
    x = cocopt.project(K, g, y)
    assert x.shape == (2, 3, 5, 4)
    for index in np.ndindex(2, 3, 5):
        np.testing.assert_array_equal(cocopt.project(K, g.trials(index[1:]), y[index[0], 0, 0]), x[index])


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("kind", ["quadratic", "cone", "Stack", "window"])
def test_units_do_not_matter(kind: str, scale: float) -> None:
    rng = np.random.default_rng(11)
    z = np.full(5, 0.125)
    g, y = some_rows(kind, z, rng), z + rng.normal(size=(10, 5))
    K, scaled = cocopt.Box(-0.5, 0.75, dim=5), cocopt.Box(-0.5 * scale, 0.75 * scale, dim=5)
    x, _, status = newton(scaled, build(in_units(g, scale)), scale * y)
    assert (status == CONVERGED).all()
    np.testing.assert_allclose(x / scale, cocopt.project(K, build(g), y), rtol=0, atol=1e-9)


def in_units(g: Description, scale: float) -> Description:
    """The constraint on scale·x."""
    match g:
        case ("Stack", parts):
            return ("Stack", [in_units(part, scale) for part in parts])
        case ("Quadratic", P, q, r):
            return ("Quadratic", P, q * scale, r * scale**2)
        case ("SecondOrder", A, b, c, d):
            return ("SecondOrder", A, b * scale, c, d * scale)
        case (name, first, second):
            return (name, first, second * scale) if name == "Affine" else (name, first * scale, second * scale)
    raise AssertionError(g)


@pytest.mark.parametrize("n", [2, 10, 40])
def test_an_ill_conditioned_quadratic(n: int) -> None:
    rng = np.random.default_rng(n)
    axes, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = 10.0 ** np.linspace(-4, 4, n)
    g = Quadratic((axes * eigenvalues) @ axes.T, np.zeros(n), -0.5)
    y = rng.normal(size=(8, n))
    x = cocopt.project(cocopt.Space(n), g, y)
    # in the frame of the axes the projection is y/(1 + ν λ), ν the root of one equation: bisection
    w = y @ axes
    lo, hi = np.zeros((8, 1)), np.full((8, 1), 1e12)
    for _ in range(200):
        middle = 0.5 * (lo + hi)
        excess = ((eigenvalues * (w / (1.0 + middle * eigenvalues)) ** 2).sum(axis=-1, keepdims=True)) > 1.0
        lo, hi = np.where(excess, middle, lo), np.where(excess, hi, middle)
    np.testing.assert_allclose(x, (w / (1.0 + hi * eigenvalues)) @ axes.T, rtol=0, atol=1e-9)


@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("kind", ["quadratic", "cone", "Stack"])
@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9])
def test_far_targets(K_kind: str, kind: str, distance: float) -> None:
    rng = np.random.default_rng(int(np.log10(distance)))
    description, z = some_set(K_kind, 4)
    K, g = build_set(description), build(some_rows(kind, z, rng))
    y = z + distance * rng.normal(size=(5, 4))
    x = cocopt.project(K, g, y)
    assert (g.rows(x) <= 1e-9 * g.magnitude(x)).all()
    # x is also the projection of every point between it and the target
    near = x + (y - x) / np.linalg.norm(y - x, axis=-1, keepdims=True)
    np.testing.assert_allclose(cocopt.project(K, g, near), x, rtol=0, atol=POSITION)


def test_degenerate_rows_and_sets() -> None:
    y = np.array([2.0, -1.0])
    flat = Quadratic(np.zeros((2, 2)), [1.0, 0.0], -0.25)  # P = 0: a half-space
    np.testing.assert_allclose(cocopt.project(cocopt.Space(2), flat, y), [0.25, -1.0], atol=1e-12)
    slab = Quadratic([[1.0, 0.0], [0.0, 0.0]], [0.0, 0.0], -0.125)  # rank 1: |x_1| ≤ ½
    np.testing.assert_allclose(cocopt.project(cocopt.Box(-0.75, 3.0, dim=2), slab, y), [0.5, -0.75], atol=1e-12)
    icecream = SecondOrder([[0.0, 1.0]], [0.0], [1.0, 0.0], 0.0)  # |x_2| ≤ x_1, whose apex is the nearest point
    np.testing.assert_allclose(cocopt.project(cocopt.Space(2), icecream, [-3.0, 1.0]), [0.0, 0.0], atol=1e-9)
    point = cocopt.Box([0.5, 0.5], [0.5, 0.5])
    np.testing.assert_array_equal(cocopt.project(point, slab, y), [0.5, 0.5])
    edge = cocopt.Box([-1.0, 0.25], [1.0, 0.25])
    np.testing.assert_allclose(cocopt.project(edge, slab, y), [0.5, 0.25], atol=1e-12)
    twice = Stack([slab, slab, Affine([[1.0, 0.0], [2.0, 0.0]], [0.5, 1.0])])  # all the same on the right
    np.testing.assert_allclose(cocopt.project(cocopt.Space(2), twice, y), [0.5, -1.0], atol=1e-12)
    unit = Quadratic(2 * np.eye(2), [0.0, 0.0], -1.0)
    tangent = Stack([unit, Affine([-1.0, 0.0], -1.0)])  # the disc and a half-plane that touches it
    np.testing.assert_allclose(cocopt.project(cocopt.Space(2), tangent, [2.0, 3.0]), [1.0, 0.0], atol=1e-4)


def test_rows_that_never_bind_and_balls_of_radius_zero() -> None:
    y = np.array([2.0, 1.0])
    K = cocopt.Box(-1.0, 1.5, dim=2)
    idle = [
        Quadratic(np.eye(2), [0.0, 0.0], -np.inf),
        SecondOrder(np.eye(2), [0.0, 0.0], [0.0, 0.0], np.inf),
        NormBall([0.0, 0.0], np.inf),
        Affine([1.0, 0.0], np.inf),
    ]
    np.testing.assert_array_equal(cocopt.project(K, Stack(idle), y), [1.5, 1.0])
    disc = Quadratic(2 * np.eye(2), [0.0, 0.0], -1.0)
    np.testing.assert_allclose(cocopt.project(K, Stack([*idle, disc]), y), y / np.sqrt(5), atol=1e-12)
    single = Stack([NormBall([0.25, 0.0], 0.0), disc])
    np.testing.assert_allclose(cocopt.project(K, single, y), [0.25, 0.0], atol=1e-9)


def test_infeasible_trials_in_a_mixed_batch() -> None:
    K, y = cocopt.Box(0.0, 1.0, dim=2), np.array([[2.0, 2.0], [0.25, 0.25], [2.0, 0.0]])
    g = Quadratic(2 * np.eye(2), np.zeros(2), [-0.5, -1.0, 0.5])  # the last has no point
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, g, y)
    assert caught.value.trials == (2,)
    np.testing.assert_allclose(caught.value.least_violation, [0.5], atol=1e-8)
    found = solve_projection(K, g, y, infeasible="nearest")
    np.testing.assert_array_equal(found.feasible, [True, True, False])
    np.testing.assert_allclose(found.point, [[0.5, 0.5], [0.25, 0.25], [0.0, 0.0]], atol=1e-4)
    np.testing.assert_allclose(found.point[:2], [[0.5, 0.5], [0.25, 0.25]], atol=1e-12)


def test_data_that_are_not_finite_are_named() -> None:
    K, y = cocopt.Box(-1.0, 1.0, dim=2), np.array([2.0, 1.0])
    P = np.array([[1.0, np.nan], [np.nan, 1.0]])
    for g, name in [
        (Quadratic(np.eye(2), [np.nan, 0.0], -1.0), "q"),
        (SecondOrder(np.eye(2), [0.0, np.inf], [0.0, 0.0], 1.0), "b"),
        (Stack([Affine([1.0, 0.0], 0.5), NormBall([np.nan, 0.0], 1.0)]), "center"),
    ]:
        assert newton(K, g, y)[2] == NONFINITE
        with pytest.raises(InvalidInput, match=f": {name}: expected finite numbers"):
            cocopt.project(K, g, y)
    with pytest.raises(InvalidInput, match="P: expected"):
        cocopt.project(K, Quadratic(P, [0.0, 0.0], -1.0), y)
    with pytest.raises(InvalidInput, match="point: expected finite numbers"):
        cocopt.project(K, Quadratic(np.eye(2), [0.0, 0.0], -1.0), [np.nan, 0.0])


def test_what_is_left_to_other_methods() -> None:
    box, y = cocopt.Box(-1.0, 1.0, dim=2), np.zeros(2)
    disc = NormBall([0.0, 0.0], 0.5)
    black_box = constraints.Function(lambda x: float(x @ x) - 1.0, lambda x: 2 * x)
    for K, g in [
        (box, Affine([1.0, 0.0], 0.5)),
        (box, Stack([Affine([1.0, 0.0], 0.5)])),
        (box, black_box),
        (box, Stack([disc, black_box])),
        (box, Stack([disc] * 13)),
        (box, Stack([disc, Affine(np.ones((40, 2)), np.ones(40))])),
        (cocopt.L1Ball(0.0, 1.0, dim=2), disc),
        (box, Shifted(constraints.Norm1([0.0, 0.0], 1.0), [0.5])),
    ]:
        assert solve_dense(Request(K, g, y)) is None
    dense = Quadratic([[2.0, 1.0], [1.0, 2.0]], y, -1.0)
    assert cocopt.explain(box, dense).startswith("newton: ")
    assert cocopt.explain(box, Stack([dense, Affine([1.0, 0.0], 0.5), disc])).startswith("newton: ")


def test_shifted_rows_ellipsoids_and_cones_of_several_sizes() -> None:
    rng = np.random.default_rng(8)
    K, z = ("Ellipsoid", np.array([0.1, 0.0, -0.1]), np.diag([0.5, 1.0, 2.0])), np.array([0.1, 0.0, -0.1])
    parts = [some_rows(kind, z, rng) for kind in ("quadratic", "cone", "ball", "Affine")]
    small = ("SecondOrder", np.array([[1.0, 0.5, 0.0]]), np.zeros(1), np.array([0.0, 0.0, 0.1]), 0.5)
    shift = np.array([0.02])
    g = Stack(
        [
            *(Shifted(build(part), -shift[:1] if part[0] != "Affine" else np.full(4, -0.02)) for part in parts),
            build(small),
        ]
    )
    moved = [(*part[:-1], part[-1] + 0.02) for part in parts[1:]]
    quadratic = ("Quadratic", *parts[0][1:3], parts[0][3] - 0.02)
    for y in 2 * rng.normal(size=(3, 3)):
        x, _, status = newton(build_set(K), g, y)
        assert status == CONVERGED
        expected = reference.project(K, ("Stack", [quadratic, *moved, small]), y)
        np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION)


@pytest.mark.parametrize("window", [3, None])
def test_a_learner_with_curved_constraints_projects_onto_all_that_it_remembers(window: int | None) -> None:
    rng = np.random.default_rng(4)
    K, n = cocopt.Box(-1.0, 1.0, dim=4), 4
    learner = cocopt.CLASP(K, beta=0.5, window=window)
    kept: list[Constraint] = []
    for t in range(6):
        F, c = rng.normal(size=(n, n)), rng.normal(size=n)
        g = Quadratic(F.T @ F, np.zeros(n), -0.5 - 0.1 * rng.random())
        kept = [*kept, g][-(window or 100) :]
        x, step = learner.ask(), 1.0 / np.sqrt(t + 1)
        learner.tell(cocopt.losses.Linear(c), g)
        y = x - step * c
        members = [("Quadratic", h.P, h.q, float(h.r)) for h in kept]
        expected = reference.project(("Box", np.full(n, -1.0), np.full(n, 1.0)), ("Stack", members), y)
        np.testing.assert_allclose(learner.ask(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["Affine", "ball", "quadratic", "cone"])
def test_products_and_intersections_with_balls(kind: str) -> None:
    """A ball of some of the coordinates is a quadratic row; of an intersection every member adds its rows."""
    rng = np.random.default_rng(len(kind))
    z = np.full(6, 1.0 / 3.0)
    parts = [("Box", np.zeros(2), np.ones(2)), ("Ball", np.full(2, 0.5), 0.7), ("Simplex", 2, 2.0 / 3.0)]
    for _ in range(3):
        g, y = some_rows(kind, z, rng, slack=0.02), z + 2 * rng.normal(size=6)
        x, _, status = newton(build_set(("Product", parts)), build(g), y)
        assert status == CONVERGED
        np.testing.assert_allclose(x, reference.project(("Product", parts), g, y), rtol=0, atol=POSITION)
        K = cocopt.Intersection([cocopt.Box(-0.5, 0.75, dim=6), cocopt.Ball(z, 0.6)])
        x, _, status = newton(K, build(g), y)
        assert status == CONVERGED
        both = ("Stack", [g, ("NormBall", z, 0.6)])
        expected = reference.project(("Box", np.full(6, -0.5), np.full(6, 0.75)), both, y)
        np.testing.assert_allclose(x, expected, rtol=0, atol=POSITION)
    far = cocopt.Product([cocopt.Box(0.0, 1.0, dim=2), cocopt.Ball(np.full(2, 1e3), 1.0)])
    assert solve_dense(Request(far, NormBall(np.zeros(4), 1e4), np.zeros(4))) is None  # it would lose digits


def test_more_violated_rows_than_free_coordinates() -> None:
    """At a corner of K few coordinates are free, and the rows depend on one another there."""
    rng = np.random.default_rng(0)
    K, z = ("Box", np.zeros(2), np.ones(2)), np.full(2, 0.4)
    for _ in range(10):
        A = rng.normal(size=(8, 2))
        rows = ("Affine", A, A @ z + 0.3 * np.abs(rng.normal(size=8)))
        g, y = ("Stack", [some_rows("quadratic", z, rng, 0.05), rows]), rng.uniform(-1, 2, 2)
        np.testing.assert_allclose(
            cocopt.project(build_set(K), build(g), y), reference.project(K, g, y), rtol=0, atol=POSITION
        )


def test_rows_of_the_set_beside_rows_of_each_trial() -> None:
    """Joined, they must lie in memory as the kernel reads them."""
    rng = np.random.default_rng(7)
    polyhedron = ("Polyhedron", np.array([[0.9, 0.8], [-0.2, -0.4]]), np.array([1.0, 0.5]))
    K = ("Product", [polyhedron, ("Ball", np.zeros(3), 1.0)])
    A, b, y = rng.normal(size=(9, 1, 5)), rng.uniform(-0.2, 0.2, (9, 1)), 3.0 * rng.normal(size=(9, 5))
    x = cocopt.project(build_set(K), Affine(A, b), y)
    expected = [reference.project(K, ("Affine", A[k], b[k]), y[k]) for k in range(9)]
    np.testing.assert_allclose(x, expected, atol=POSITION)


@pytest.mark.parametrize("K_kind", SETS)
@pytest.mark.parametrize("n", [1, 3, 10])
def test_diagonal_quadratics_are_solved_as_dense_ones(K_kind: str, n: int) -> None:
    """The same rows, with the diagonal known and not: an entry of 1e-300 makes the matrix one that is not diagonal."""
    rng = np.random.default_rng(n)
    described, z = some_set(K_kind, n)
    K, y = build_set(described), z + rng.normal(size=(20, n))
    P, q, A = (
        rng.uniform(0.0, 3.0, (20, n))[..., None] * np.eye(n),
        0.3 * rng.normal(size=(20, n)),
        rng.normal(size=(3, n)),
    )
    full = P.copy()
    full[..., 0, -1] = full[..., -1, 0] = np.where(n > 1, 1e-300, full[..., 0, 0])
    r = -(0.5 * np.vecdot(z, np.matvec(P, z)) + q @ z) - 0.05
    affine = Affine(A, A @ z + 0.05)
    one, other = Quadratic(P, q, r), Quadratic(full, q, r)
    assert one.diagonal is not None
    assert n == 1 or other.diagonal is None
    x, _, status = newton(K, Stack([affine, one]), y)
    dense_x, _, dense_status = newton(K, Stack([affine, other]), y)
    assert (status == CONVERGED).all()
    assert (dense_status == CONVERGED).all()
    np.testing.assert_allclose(x, dense_x, rtol=0, atol=1e-10)
    for i in range(3):
        g = ("Stack", [("Affine", A, A @ z + 0.05), ("Quadratic", P[i], q[i], float(r[i]))])
        np.testing.assert_allclose(x[i], reference.project(described, g, y[i]), rtol=0, atol=POSITION)


def test_the_diagonal_is_found_in_any_memory_and_with_negative_zeros() -> None:
    P = np.array([np.diag([1.0, 2.0, 3.0]), np.diag([4.0, 0.0, 5.0])])
    negative = P.copy()
    negative[1, 1, 2] = negative[1, 2, 1] = -0.0
    for matrix in (P, negative, np.asfortranarray(P), np.repeat(P, 2, axis=0)[::2]):
        found = Quadratic(matrix, np.ones(3), -1.0).diagonal
        np.testing.assert_array_equal(found, np.diagonal(matrix, axis1=-2, axis2=-1))
    for i, j in ((0, 1), (1, 2), (0, 2)):
        mixed = P.copy()
        mixed[1, i, j] = mixed[1, j, i] = 5e-324
        assert Quadratic(mixed, np.ones(3), -1.0).diagonal is None
