"""argmin over K of ⟨c, x⟩ + penalty(x) + ρ‖x − x0‖²: closed forms, optimality, CVXPY; caps binding and not."""

from __future__ import annotations

from typing import Any

import fuzzing
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from instances import SETS, build, build_set, instance, random_constraint, random_set, stacked
from reference import projections as reference
from reference.least_squares import nnls
from reference.projections import Array

import cocopt
from cocopt import Ball, Box, constraints
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.problem import Request
from cocopt.geometry.prox import solve_hinge_prox

CONSTRAINTS = ("row", "rows", "NormBall", "Quadratic", "SecondOrder", "Stack", "from_cvxpy")
CAPS = ("each", "sum")
POSITION = 1e-7
seeds = st.integers(0, 2**32 - 1)


def line(rows: int = 1) -> tuple[Box, constraints.Affine]:
    """x ≤ 1 (rows times) in the interval [−100, 100]."""
    return Box(-100.0, 100.0, dim=1), constraints.Affine(np.ones((rows, 1)), np.ones(rows))


def minimiser(*problem: Any) -> Array:
    """The reference's, where it has one."""
    try:
        return reference.hinge_prox(*problem)
    except reference.BadlyConditioned:  # about one in 500
        reject()


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0.0, 4.0),  # no penalty: x0 − c/(2ρ)
        (2.0, 3.5),  # the cap binds: x0 − (c + w)/(2ρ)
        (11.0, 1.25),  # binds still
        (12.0, 1.0),  # the least weight that reaches the row
        (13.0, 1.0),  # does not bind: the multiplier is 12
        (1e12, 1.0),
        (np.inf, 1.0),
    ],
)
def test_one_row_in_closed_form(cap: str, weight: float, expected: float) -> None:
    K, g = line()
    x = cocopt.hinge_prox(K, g, [5.0], linear=[4.0], weight=weight, cap=cap, rho=2.0)
    np.testing.assert_allclose(x, [expected], rtol=0, atol=1e-12)


def test_the_caps_differ_on_equal_rows() -> None:
    """Twice the row x ≤ 1: with a bound for each the multipliers add up, with one on the sum they share it."""
    K, g = line(rows=2)
    np.testing.assert_allclose(cocopt.hinge_prox(K, g, [5.0], weight=1.0, cap="each"), [3.0], atol=1e-12)
    np.testing.assert_allclose(cocopt.hinge_prox(K, g, [5.0], weight=1.0, cap="sum"), [4.0], atol=1e-12)


def test_some_caps_bind_and_others_do_not() -> None:
    """Orthogonal rows x_i ≤ 0 pull on their own coordinate alone: x_i = max(0, 3 − w_i)."""
    K, g = Box(-10.0, 10.0, dim=4), constraints.Affine(np.eye(4), np.zeros(4))
    x = cocopt.hinge_prox(K, g, np.full(4, 3.0), weight=[0.0, 1.0, 3.5, np.inf], cap="each")
    np.testing.assert_allclose(x, [3.0, 2.0, 0.0, 0.0], atol=1e-12)


def test_a_sum_cap_is_shared_out() -> None:
    """Orthogonal rows x_i ≤ 0: the largest coordinates are levelled, their drops adding up to w."""
    K, g = Box(-10.0, 10.0, dim=3), constraints.Affine(np.eye(3), np.zeros(3))
    y = np.array([3.0, 2.0, 0.5])
    for weight, expected in [
        (0.5, [2.5, 2.0, 0.5]),
        (2.0, [1.5, 1.5, 0.5]),
        (4.0, [0.5, 0.5, 0.5]),
        (5.5, [0.0, 0.0, 0.0]),
        (50.0, [0.0, 0.0, 0.0]),
    ]:
        np.testing.assert_allclose(cocopt.hinge_prox(K, g, y, weight=weight, cap="sum"), expected, atol=1e-12)


@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Stack", "Function"])
@pytest.mark.parametrize("cap", CAPS)
def test_the_cap_at_infinity_is_the_projection(cap: str, constraint: str) -> None:
    for seed, kind in enumerate(SETS):
        case = instance(kind, constraint, 4, seed)
        K, g = build_set(case.K), build(case.g)
        rng = np.random.default_rng(seed)
        point, linear = case.z + 2 * rng.normal(size=(3, 4)), rng.normal(size=4)
        x = cocopt.hinge_prox(K, g, point, linear=linear, weight=np.inf, cap=cap, rho=0.7)
        expected = cocopt.project(K, g, point - linear / 1.4)
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("cap", CAPS)
def test_a_large_enough_cap_is_the_projection(cap: str) -> None:
    """The cap does not bind once it exceeds the multipliers, which are at most ‖y − x‖·‖z − x‖/slack here."""
    for seed, kind in enumerate(SETS):
        case = instance(kind, "rows", 4, seed)
        K, g = build_set(case.K), build(case.g)
        y = case.z + 2 * np.random.default_rng(seed).normal(size=4)
        x = cocopt.project(K, g, y)
        enough = np.linalg.norm(y - x) * np.linalg.norm(case.z - x) / 0.1 + 1.0
        np.testing.assert_allclose(cocopt.hinge_prox(K, g, y, weight=enough, cap=cap), x, rtol=0, atol=1e-8)


@pytest.mark.parametrize("cap", CAPS)
def test_no_weight_is_the_projection_onto_K(cap: str) -> None:
    for seed, kind in enumerate(SETS):
        case = instance(kind, "rows", 4, seed)
        K = build_set(case.K)
        y = case.z + 2 * np.random.default_rng(seed).normal(size=(5, 4))
        x = cocopt.hinge_prox(K, build(case.g), y, linear=np.ones(4), weight=0.0, cap=cap, rho=2.0)
        np.testing.assert_allclose(x, K.project(y - 0.25), rtol=0, atol=1e-9)


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=3)
@given(
    n=st.integers(1, 5),
    seed=seeds,
    weight=st.sampled_from([0.03, 0.3, 1.0, 30.0]),
    rho=st.sampled_from([0.1, 0.5, 5.0]),
)
def test_it_is_the_minimiser(
    kind: str, constraint: str, cap: str, n: int, seed: int, weight: float, rho: float
) -> None:
    """Its optimality conditions hold; and F, 2ρ-strongly convex, has F(z) ≥ F(x) + ρ‖z − x‖² on K."""
    case = instance(kind, constraint, n, seed)
    K, g = build_set(case.K), build(case.g)
    rng = np.random.default_rng([seed, 2])
    point, linear = case.z + 2 * rng.normal(size=n), rng.normal(size=n)
    weights: Any = weight * rng.uniform(0.5, 2.0, g.row_count) if cap == "each" else weight
    x = cocopt.hinge_prox(K, g, point, linear=linear, weight=weights, cap=cap, rho=rho)
    data = (point, linear, weights, cap, rho)
    unit = 1 + max(float(np.linalg.norm(p)) for p in (point, case.z, linear / rho, x))
    assert reference.outside(case.K, x) <= 1e-9 * unit

    def objective(z: Array) -> float:
        return reference.hinge_objective(case.g, z, *data)

    size = rho * unit**2 + weight * reference.size(case.g, unit)
    for z in (case.z, *K.project(x + 0.1 * rng.normal(size=(5, n))), *K.project(3 * rng.normal(size=(5, n)))):
        assert objective(z) >= objective(x) + rho * (z - x) @ (z - x) - 1e-9 * size
    described = case.g[1] if constraint == "from_cvxpy" else case.g
    parts = (*case.K, [reference.dimension(part) for part in case.K[1]]) if kind == "Product" else case.K
    caps = fuzzing.Caps(np.asarray(weights) / (2.0 * rho), cap == "sum")
    assert fuzzing.judge(parts, described, point - linear / (2.0 * rho), x, caps) is None


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=3)
@given(n=st.integers(1, 4), seed=seeds, weight=st.sampled_from([0.3, 3.0]))
def test_a_black_box_by_cuts(kind: str, cap: str, n: int, seed: int, weight: float) -> None:
    case = instance(kind, "Function", n, seed)
    rng = np.random.default_rng([seed, 2])
    point, linear = case.z + 2 * rng.normal(size=n), rng.normal(size=n)
    x = cocopt.hinge_prox(build_set(case.K), build(case.g), point, linear=linear, weight=weight, cap=cap)
    data = (point, linear, weight, "sum", 0.5)  # a black box is one row, the largest of what it holds
    expected = minimiser(case.K, case.g, *data)
    unit = 1 + max(float(np.linalg.norm(p)) for p in (point, case.z, linear, x))
    assert reference.outside(case.K, x) <= 1e-9 * unit
    least = reference.hinge_objective(case.g, expected, *data)
    assert reference.hinge_objective(case.g, x, *data) <= least + 1e-6 * unit**2


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("constraint", ["row", "rows", "NormBall", "Stack"])
@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=2)
@given(n=st.integers(1, 4), seed=seeds)
def test_a_batch_equals_singles(kind: str, constraint: str, cap: str, n: int, seed: int) -> None:
    """Every argument with its own value per trial, among them weights that bind, that do not, 0 and infinity."""
    rng = np.random.default_rng(seed)
    described, z = random_set(kind, n, rng)
    K = build_set(described)
    singles = [random_constraint(constraint, z, rng, slack=0.1) for _ in range(5)]
    g = build(stacked(singles))
    point, linear = z + 2 * rng.normal(size=(5, n)), rng.normal(size=(5, n))
    weight = np.array([0.0, 0.1, 1.0, 100.0, np.inf])
    weights = np.repeat(weight[:, None], g.row_count, axis=1) if cap == "each" else weight
    together = cocopt.hinge_prox(K, g, point, linear=linear, weight=weights, cap=cap, rho=0.8)
    for i, single in enumerate(singles):
        alone = cocopt.hinge_prox(K, build(single), point[i], linear=linear[i], weight=weights[i], cap=cap, rho=0.8)
        np.testing.assert_allclose(together[i], alone, rtol=0, atol=1e-8 * (1 + np.linalg.norm(point)))


def test_idle_zero_and_repeated_rows() -> None:
    K = Box(-10.0, 10.0, dim=2)
    g = constraints.Affine([[1.0, 0.0], [5.0, 5.0], [0.0, 0.0], [0.0, 0.0]], [0.0, np.inf, -1.0, 1.0])
    for cap, expected in (("each", 0.4), ("sum", 0.9)):  # 0·x ≤ −1 costs a constant; it is the largest row here
        x = cocopt.hinge_prox(K, g, [0.9, 3.0], weight=0.5, cap=cap)
        np.testing.assert_allclose(x, [expected, 3.0], atol=1e-12)


def test_a_huge_finite_weight_is_the_projection() -> None:
    """The penalties of RECOO grow without bound: 1e15 must act as the projection."""
    rng = np.random.default_rng(0)
    A, b, y = rng.uniform(0, 2, (50, 4, 10)), rng.uniform(0, 1, (50, 4)), rng.uniform(-1, 2, (50, 10))
    K, g = Box(0.0, 1.0, dim=10), constraints.Affine(A, b)
    expected = cocopt.project(K, g, y)
    for cap in CAPS:
        np.testing.assert_allclose(cocopt.hinge_prox(K, g, y, weight=1e15, cap=cap), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("cap", CAPS)
def test_units_of_length_do_not_matter(cap: str, unit: float) -> None:
    """In another unit of length x, b and w (a multiplier of rows in that unit) all change by the same factor."""
    for seed, constraint in enumerate(("row", "rows", "NormBall")):
        case = instance("Box", constraint, 4, seed)
        rng = np.random.default_rng(seed)
        point = case.z + 2 * rng.normal(size=4)
        x = cocopt.hinge_prox(build_set(case.K), build(case.g), point, weight=0.5, cap=cap)
        K = Box(case.K[1] * unit, case.K[2] * unit)
        kind, first, second = case.g
        g = build((kind, first, second * unit) if kind == "Affine" else (kind, first * unit, second * unit))
        scaled = cocopt.hinge_prox(K, g, point * unit, weight=0.5 * unit, cap=cap)
        np.testing.assert_allclose(scaled / unit, x, rtol=0, atol=POSITION * (1 + np.linalg.norm(point)))


def test_an_infeasible_row_with_a_finite_weight_is_no_error() -> None:
    """x ≥ 7 cannot be met in [0, 1]; a finite weight pulls toward it, and infinity is an error."""
    K, g = Box(0.0, 1.0, dim=1), constraints.Affine([-1.0], -7.0)
    np.testing.assert_allclose(cocopt.hinge_prox(K, g, [0.25], weight=0.5), [0.75], atol=1e-12)
    np.testing.assert_allclose(cocopt.hinge_prox(K, g, [0.25], weight=9.0), [1.0], atol=1e-12)
    with pytest.raises(cocopt.errors.InfeasibleRound) as caught:
        cocopt.hinge_prox(K, g, [0.25], weight=np.inf)
    np.testing.assert_allclose(caught.value.least_violation, [6.0], rtol=1e-9)


@pytest.mark.parametrize("reach", [1.0, 300.0, 1e4])
@pytest.mark.parametrize("K", [Box(0.0, 1.0, dim=4), Ball(0.0, 1.0, dim=4)], ids=["box", "ball"])
def test_multipliers_at_their_bounds_stay_there_however_far_the_target(K, reach):
    """No point of K near the result is better; far targets are projected twice; multipliers stay at bounds."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 3, 4)) * 10 ** rng.uniform(-1, 1, (500, 3, 1))
    y = reach * rng.normal(size=(500, 4))
    b, w = np.matvec(A, K.project(y)) - rng.uniform(0, 0.5, (500, 3)), reach * rng.uniform(0, 0.3, (500, 3))

    def objective(x):
        hinges = np.maximum(np.matvec(A, x) - b, 0.0)
        return 0.5 * ((x - y) ** 2).sum(axis=-1) + (w * hinges).sum(axis=-1)

    x = cocopt.hinge_prox(K, constraints.Affine(A, b), y, weight=w, rho=0.5, cap="each")
    best = objective(x)
    for size in (1.0, 0.1, 0.01) * 20:
        other = K.project(x + size * rng.normal(size=x.shape))
        assert (objective(other) >= best - 1e-12 * reach * reach).all()


@pytest.mark.parametrize("reach", [1.0, 300.0])
@pytest.mark.parametrize(("K", "cap"), [(Box(0.0, 1.0, dim=4), "each"), (Box(0.0, 1.0, dim=4), "sum"),
                                        (Ball(0.0, 1.0, dim=4), "each"), (Ball(0.0, 1.0, dim=4), "sum")])  # fmt: skip
def test_ordinary_problems_never_leave_the_kernel(K, cap, reach):
    """Rows that exclude one another are ordinary here: their multipliers reach the bounds, one by one or together."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 3, 4)) * 10 ** rng.uniform(-1, 1, (500, 3, 1))
    y = reach * rng.normal(size=(500, 4))
    b, w = np.matvec(A, K.project(y)) - rng.uniform(0, 0.5, (500, 3)), reach * rng.uniform(0, 0.3, (500, 3))
    weight = w if cap == "each" else w.sum(axis=-1)
    assert solve_hinge_prox(K, constraints.Affine(A, b), y, weight, cap).method == "kernel"


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_neither_units_of_length_nor_of_a_curved_constraint_matter(length, unit):
    """½ unit ‖x‖² divides the target by 1 + weight·unit; unit (‖x‖ − length) moves it by its weight·unit."""
    y = length * np.array([0.9, -1.2, 2.0])
    K = Box(-10.0 * length, 10.0 * length, dim=3)
    square = constraints.Quadratic(unit * np.eye(3), np.zeros(3), -1e-3 * unit * length**2)
    x = cocopt.hinge_prox(K, square, y, weight=0.7 / unit)
    np.testing.assert_allclose(x, y / 1.7, rtol=1e-9)
    cone = constraints.SecondOrder(unit * np.eye(3), np.zeros(3), np.zeros(3), unit * length)
    x = cocopt.hinge_prox(K, cone, y, weight=0.5 * length / unit)
    np.testing.assert_allclose(x, y - 0.5 * length * y / np.linalg.norm(y), rtol=1e-9)


def shortfall(g: constraints.Constraint, y: Array, x: Array, weight: float) -> float:
    """How far x is from argmin ½‖x − y‖² + weight·max_i g_i^+ at most, in units of ‖y − x‖.

    y − x must be Σ ν_i ∇g_i(x), ν ≥ 0, Σ ν_i ≤ weight, over the rows that attain the maximum; all of the weight, if it
    is positive. The problem is strongly convex: what is left over bounds the distance.
    """
    rows, jacobian, unit = g.rows(x), g.jacobian(x), g.magnitude(x)
    highest = max(float(rows.max()), 0.0)
    largest = np.flatnonzero(highest - rows <= 1e-12 * unit)
    force = jacobian[largest].T * weight  # for shares of the weight, which add up to 1 or less
    away = float(np.linalg.norm(y - x))
    spare = float(highest > 1e-12 * unit.max())
    system = np.vstack([force / away, np.full(largest.size, 1e6 * spare)])
    return float(nnls(system, np.append((y - x) / away, 1e6 * spare))[1])


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_a_sum_cap_over_curved_rows_of_different_units(length: float, unit: float) -> None:
    """The rows that share a cap may differ by orders of magnitude; the one that binds must get all of it."""
    K = Box(-1e3 * length, 1e3 * length, dim=3)
    paid = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        P, q, a = np.diag(rng.uniform(0.5, 2.0, 3)), rng.normal(size=3), rng.normal(size=3)
        square = constraints.Quadratic(unit * P / length, unit * q, -0.1 * unit * length)
        g = constraints.Stack([square, constraints.Affine(a, 0.1 * length), constraints.NormBall(np.zeros(3), length)])
        y = 30.0 * length * rng.normal(size=3)
        weight = length * 10.0 ** rng.uniform(-1, 1) / max(unit, 1.0)
        x = cocopt.hinge_prox(K, g, y, weight=weight, cap="sum")
        assert shortfall(g, y, x, weight) <= 1e-9
        paid += bool(g.rows(x).max() > 0.0)
    assert paid >= 4


@pytest.mark.parametrize("offset", [1.0, 1e9])
def test_a_sum_cap_is_met_whatever_the_units_of_K(offset: float) -> None:
    """A row of K that is far away must not make the multiplier inexact."""
    rng = np.random.default_rng(0)
    K, paid = cocopt.Halfspace([1.0, 0.0, 0.0], offset), 0
    for _ in range(20):
        A = 1e-6 * rng.normal(size=(3, 3))
        g, y = constraints.Affine(A, np.zeros(3)), -rng.uniform(0.5, 2.0, 3) * np.array([1.0, -1.0, 1.0])
        weight = 1e6 * 10.0 ** rng.uniform(-2, 0)
        x = cocopt.hinge_prox(K, g, y, weight=weight, cap="sum")
        if g.rows(y).max() > 0:
            assert shortfall(g, y, x, weight) <= 1e-9
            paid += 1
    assert paid > 10


@pytest.mark.parametrize("reach", [1.0, 1e5])
@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("K", [Box(-1.0, 1.0, dim=5), Ball(0.0, 1.0, dim=5), cocopt.Simplex(5)], ids=repr)
def test_hundreds_of_rows_with_caps(K: Any, cap: str, reach: float) -> None:
    """The kernels, after which no other exact method comes here, agree with the conic method from near and far."""
    rng, agreed = np.random.default_rng(1), 0
    for _ in range(3):
        A, z = rng.normal(size=(200, 5)), K.project(rng.normal(size=5))
        g, y = constraints.Affine(A, A @ z + 0.1 * rng.random(200)), z + reach * rng.normal(size=5)
        weight = np.asarray(reach * (rng.uniform(0.0, 0.2, 200) if cap == "each" else rng.uniform(0.1, 1.0, 1)[0]))
        found = solve_hinge_prox(K, g, y, weight, cap)
        assert found.method == "kernel"
        each, of_sum = (weight, None) if cap == "each" else (None, weight)
        by_cones = solve_conic(Request(K, g, y, each, of_sum))
        if by_cones.status == 0:
            agreed += 1
            np.testing.assert_allclose(found.point, by_cones.point, rtol=0, atol=1e-7)
    assert agreed >= 2


@pytest.mark.parametrize("count", [20, 200])
@pytest.mark.parametrize("reach", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("K", [Box(-1.0, 1.0, dim=2), Ball(0.0, 1.0, dim=2)], ids=repr)
def test_a_sum_cap_from_far_away_moves_by_all_of_it(K: Any, reach: float, count: int) -> None:
    """Where one row is the largest by far, x = y − weight·a, however large both are."""
    z = np.array([0.3, -0.2])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(count, 2))
        A /= np.linalg.norm(A, axis=1)[:, None]
        values = 0.2 - np.append(0.0, rng.exponential(size=count - 1) + 1e-3)
        x = cocopt.hinge_prox(K, constraints.Affine(A, A @ z - values), z + reach * A[0], weight=reach, cap="sum")
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-15 * reach + 1e-12)


@pytest.mark.parametrize("distance", [1e-8, 1.0, 100.0])
@pytest.mark.parametrize("K", [Ball(0.0, 3.0, dim=4), cocopt.L1Ball(np.zeros(4), 6.0)], ids=repr)
def test_caps_of_a_curved_row_that_comes_twice(K: Any, distance: float) -> None:
    """Both copies push as far as their caps let them; that one more row just touches x changes nothing."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        z, P = 0.5 * rng.normal(size=4), np.diag(rng.uniform(0.5, 2.0, 4))
        normal = rng.normal(size=4)
        normal /= np.linalg.norm(normal)
        square = constraints.Quadratic(P, normal - P @ z, 0.5 * z @ P @ z - normal @ z)  # 0 at z, with this slope
        touching = constraints.NormBall(z + 0.7 * normal, 0.7)
        g = constraints.Stack([square, square, touching])
        x = cocopt.hinge_prox(K, g, z + distance * normal, weight=distance * np.array([0.3, 0.9, 0.0]))
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-9)
