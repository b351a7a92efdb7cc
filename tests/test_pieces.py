"""Piecewise linear rows beside curved ones, over all trials at once, judged in higher precision and beside CVXPY."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import fuzzing
import numpy as np
import pytest

import cocopt
from cocopt import Ball, Box, Simplex, constraints
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection
from cocopt.geometry.pieces import solve_pieces
from cocopt.geometry.problem import Request

Array = np.ndarray[Any, np.dtype[np.float64]]

#: a limit on turnover, on single weights, on the tail of the losses; beside them others
PIECEWISE = ("Norm1", "NormInf", "CVaR")
OTHERS = ("Affine", "Equality", "NormBall", "Diagonal", "Quadratic", "SecondOrder")


def method_of(K: cocopt.ConvexSet, g: constraints.Constraint, y: Array) -> str:
    return solve_projection(K, g, y).method


# ---------------------------------------------------------------------------------------- beside independent solutions


def stacked_case(seed: int) -> fuzzing.Case:
    """One to three constraints, a piecewise linear one first; some targets near, some far, some sets thin."""
    rng = np.random.default_rng(seed)
    n, trials = int(rng.choice([1, 2, 3, 5, 10, 20])), int(rng.choice([1, 1, 6]))
    s = 10.0 ** int(rng.choice([0, 0, 0, -3, 3]))
    K, z = fuzzing.random_set(str(rng.choice([k for k in fuzzing.SETS if k != "Product"])), n, s, rng)
    names = [str(rng.choice(PIECEWISE)), *(str(rng.choice(PIECEWISE + OTHERS)) for _ in range(rng.integers(0, 3)))]
    slack = float(rng.choice([0.1, 0.01, 1.0, 0.0]))
    if K[0] == "Orthant" and not z.any():  # rows through the apex would leave nothing with a unit of length
        slack = max(slack, 0.01)

    parts = [fuzzing.random_constraint(name, z, s, slack, rng, rounded=False) for name in names]
    g = parts[0] if len(parts) == 1 else ("Stack", parts)
    y = z + s * 10.0 ** int(rng.choice([-3, -1, 0, 0, 1, 2, 3])) * rng.normal(size=(trials, n))
    return fuzzing.Case(K, [g], y, None, True, False, f"{K[0]} ∩ {'+'.join(names)}")


@pytest.mark.parametrize("part", range(4))
def test_projections_are_optimal(part: int) -> None:
    """By their optimality conditions, in double-double arithmetic."""
    solved = 0
    for seed in range(1000 * part, 1000 * part + 60):
        case = stacked_case(seed)
        assert fuzzing.failures(case) == [], f"stacked_case({seed}): {case.label}"
        found = solve_pieces(Request(fuzzing.build_set(case.K), fuzzing.build_constraint(case.g), case.y))
        solved += found is not None and bool((found[2] == 0).all())
    assert solved >= 25  # a set or a single row of another method takes some of the others


@pytest.mark.slow
def test_many_projections_are_optimal() -> None:
    for seed in range(100_000, 110_000):
        case = stacked_case(seed)
        assert fuzzing.failures(case) == [], f"stacked_case({seed}): {case.label}"


def portfolio(n: int, rng: np.random.Generator) -> tuple[list[constraints.Constraint], Callable[[Any], list[Any]]]:
    """Limits on the variance, the turnover and the tail, which a point in the middle meets; the same for CVXPY."""
    middle, held = np.full(n, 1.0 / n), rng.dirichlet(np.full(n, 0.5))
    held[rng.uniform(size=n) < 0.3] = 1.0 / n
    F, S = rng.normal(size=(n, n)) / np.sqrt(n), 0.05 + 0.3 * rng.normal(size=(40, n))
    P = F @ F.T + 0.1 * np.eye(n)
    r = -0.55 * middle @ P @ middle
    turnover = 1.1 * np.abs(middle - held).sum()
    tail = float(np.sort(-S @ middle)[-4:].mean()) + 0.01

    def conditions(x: Any) -> list[Any]:
        eta = cp.Variable()
        return [
            0.5 * cp.quad_form(x, P, assume_PSD=True) + r <= 0,
            cp.norm1(x - held) <= turnover,
            eta + cp.sum(cp.pos(-S @ x - eta)) / 4 <= tail,
        ]

    rows = constraints.Quadratic(P, np.zeros(n), r), constraints.Norm1(held, turnover), constraints.CVaR(S, 0.9, tail)
    return list(rows), conditions


@pytest.mark.parametrize("n", [3, 20])
def test_limits_of_a_portfolio_against_cvxpy(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(4):
        rows, conditions = portfolio(n, rng)
        y = 1.0 / n + 0.3 * rng.normal(size=n)
        x = cp.Variable(n)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(x - y)), [x >= 0, cp.sum(x) == 1, *conditions(x)])
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
        assert x.value is not None
        found = solve_projection(Simplex(n), constraints.Stack(rows), y)
        assert found.method == "pieces"
        np.testing.assert_allclose(found.point, x.value, atol=1e-5)


# ------------------------------------------------------------------------------------------------ batches, multipliers


def test_a_batch_is_its_trials() -> None:
    """Leading axes in any of the arguments; the trials differ in their number of changes, and some are feasible."""
    rng, n = np.random.default_rng(0), 8
    rows = [portfolio(n, rng)[0] for _ in range(6)]
    y = 1.0 / n + rng.choice([0.0, 0.01, 1.0], (6, 1)) * rng.normal(size=(6, n))
    P, q, r = (np.stack([getattr(part[0], name) for part in rows]) for name in ("P", "q", "r"))
    center, radius = (np.stack([getattr(part[1], name) for part in rows]) for name in ("center", "radius"))
    S, limit = (np.stack([getattr(part[2], name) for part in rows]) for name in ("scenarios", "limit"))
    g = constraints.Stack(
        [constraints.Quadratic(P, q, r), constraints.Norm1(center, radius), constraints.CVaR(S, 0.9, limit)]
    )
    for K in (Simplex(n), Box(0.0, 0.5, dim=n), Ball(0.0, 1.0, dim=n), cocopt.L1Ball(0.0, 1.0, dim=n)):
        found = solve_projection(K, g, y)
        assert found.method == "pieces"
        for i in range(6):
            one = solve_projection(K, constraints.Stack(rows[i]), y[i])
            np.testing.assert_allclose(found.point[i], one.point, rtol=0, atol=1e-12)
            assert found.multipliers is not None
            if one.method == "pieces":
                np.testing.assert_allclose(found.multipliers[i], one.multipliers, rtol=1e-7, atol=1e-7)
        shared = constraints.Stack([rows[0][0], constraints.Norm1(center, radius), rows[0][2]])
        wide = cocopt.project(K, shared, y[:, None, None, :])
        assert wide.shape == (6, 1, 6, n)
        for i, j in itertools.product(range(6), range(6)):
            part = constraints.Stack([rows[0][0], rows[j][1], rows[0][2]])
            np.testing.assert_allclose(wide[i, 0, j], cocopt.project(K, part, y[i]), rtol=0, atol=1e-12)


def test_the_results_of_a_batch_do_not_depend_on_its_order_in_memory() -> None:
    rng, n = np.random.default_rng(1), 6
    A, center = rng.normal(size=(3, n)), rng.normal(size=(40, n))
    y = 3.0 * rng.normal(size=(40, n))
    g = constraints.Stack([constraints.Affine(A, A @ center[0] + 1.0), constraints.Norm1(center, 5.0)])
    other = constraints.Stack(
        [
            constraints.Affine(np.asfortranarray(A), A @ center[0] + 1.0),
            constraints.Norm1(np.asfortranarray(center), 5.0),
        ]
    )
    K = cocopt.L1Ball(np.full(n, 0.1), 2.0)
    np.testing.assert_array_equal(
        cocopt.project(K, g, y, infeasible="nearest"),
        cocopt.project(K, other, np.asfortranarray(y), infeasible="nearest"),
    )
    tail, ball = constraints.CVaR(0.05 * rng.normal(size=(30, n)), 0.9, 0.04), Ball(np.zeros(n), 0.5)
    z = rng.normal(size=(20, 3, 4, n))
    np.testing.assert_array_equal(cocopt.project(ball, tail, z), cocopt.project(ball, tail, np.asfortranarray(z)))


@pytest.mark.parametrize("seed", range(6))
def test_multipliers(seed: int) -> None:
    """y − x is a multiple of each row's subgradients: the function ½‖x − y‖² + Σ ν_i g_i is least over K at x."""
    rng, n = np.random.default_rng(seed), 5
    middle = rng.uniform(0.2, 0.8, n)
    center, near = middle + 0.2 * rng.normal(size=(2, n))
    S = rng.normal(size=(12, n))
    g = constraints.Stack(
        [
            constraints.Norm1(center, np.abs(middle - center).sum() + 0.01),
            constraints.NormBall(near, float(np.linalg.norm(middle - near)) + 0.01),
            constraints.NormInf(middle, 0.05),
            constraints.CVaR(S, 0.75, float(np.sort(-S @ middle)[-3:].mean()) + 0.01),
        ]
    )
    K, y = Box(0.0, 1.0, dim=n), middle + 2.0 * rng.normal(size=n)
    found = solve_projection(K, g, y)
    x, nu = found.point, found.multipliers
    assert found.method == "pieces"
    assert nu is not None
    assert (nu >= 0.0).all()
    np.testing.assert_allclose(nu * g.rows(x), 0.0, atol=1e-9)

    def lagrangian(z: Array) -> float:
        return float(0.5 * (z - y) @ (z - y) + nu @ g.rows(z))

    for z in [*rng.uniform(size=(300, n)), *K.project(x + 1e-3 * rng.normal(size=(300, n)))]:
        assert lagrangian(z) >= lagrangian(x) - 1e-9


# ----------------------------------------------------------------------------------- cells without a point, and the end


def test_the_cell_of_the_target_may_have_no_feasible_point() -> None:
    """The target is at negative coordinates; the rows demand positive ones."""
    g = constraints.Stack([constraints.Norm1([0.0, 0.0], 1.0), constraints.Affine([-1.0, -2.0], -0.5)])
    found = solve_projection(Box(-5.0, 5.0, dim=2), g, np.array([-4.0, -3.0]))
    assert found.method == "pieces"
    np.testing.assert_allclose(found.point, [-0.5, 0.5], atol=1e-12)


def test_many_coordinates_end_at_kinks() -> None:
    """As those of a portfolio do that are not traded; the target is on the other side of some."""
    rng, n = np.random.default_rng(2), 50
    held = rng.dirichlet(np.ones(n))
    P = np.diag(rng.uniform(0.5, 2.0, n)) + 0.1 * np.ones((n, n))
    y = held + 0.02 * rng.normal(size=n)
    g = constraints.Stack(
        [constraints.Norm1(held, 0.1), constraints.Quadratic(P, np.zeros(n), -0.495 * held @ P @ held)]
    )
    found = solve_projection(Simplex(n), g, y)
    assert found.method == "pieces"
    assert 10 < (found.point == held).sum() < n
    assert g.value(found.point) <= 1e-12


def test_rows_that_are_switched_off() -> None:
    y = np.array([2.0, -1.0, 0.5])
    K, ball = Ball(0.0, 1.0, dim=3), constraints.NormBall([0.5, 0.0, 0.0], 0.8)
    for off in (
        constraints.Norm1(np.zeros(3), np.inf),
        constraints.NormInf(np.zeros(3), np.inf),
        constraints.CVaR(np.eye(3), 0.5, np.inf),
    ):
        assert method_of(K, constraints.Stack([off, ball]), y) == "pieces"
        np.testing.assert_allclose(
            cocopt.project(K, constraints.Stack([off, ball]), y), cocopt.project(K, ball, y), atol=1e-12
        )


def test_an_empty_round_and_a_feasible_target() -> None:
    g = constraints.Stack([constraints.Norm1([0.0, 0.0], 1.0), constraints.CVaR([[1.0, 0.0], [0.0, 1.0]], 0.0, -2.0)])
    K = Ball(0.0, 3.0, dim=2)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, g, [[0.0, 0.0], [3.0, 3.0]])
    np.testing.assert_allclose(caught.value.least_violation, [1.0, 1.0], atol=1e-7)
    inside = np.array([0.1, 0.2])
    met = constraints.Stack([constraints.Norm1([0.0, 0.0], 1.0), constraints.NormBall([0.0, 0.0], 1.0)])
    assert np.array_equal(cocopt.project(K, met, inside), inside)


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (constraints.Norm1([np.nan, 0.0], 1.0), "center"),
        (constraints.Norm1([0.0, 0.0], np.nan), "radius"),
        (constraints.NormInf([0.0, np.nan], 1.0), "center"),
        (constraints.CVaR([[1.0, np.nan], [0.0, 1.0]], 0.0, 0.1), "scenarios"),
        (constraints.CVaR([[1.0, 0.0], [0.0, 1.0]], 0.0, np.nan), "limit"),
    ],
    ids=repr,
)
def test_data_that_are_not_finite_are_named(bad: constraints.Constraint, name: str) -> None:
    for K in (Ball(0.0, 1.0, dim=2), Simplex(2)):
        with pytest.raises(InvalidInput, match=name):
            cocopt.project(K, constraints.Stack([bad, constraints.NormBall([0.0, 0.0], 1.0)]), [3.0, 1.0])


@pytest.mark.parametrize("far", [1e3, 1e4, 1e5, 1e6, 1e9])
def test_far_targets_of_a_small_set(far: float) -> None:
    """A small ball is all that is left of K; a 1-norm that never binds stands beside it."""
    K, rng = cocopt.Intersection([Box(-1.0, 1.0, dim=2), Ball([0.0, 0.0], 1.5)]), np.random.default_rng(5)
    for _ in range(20):
        ball = constraints.NormBall(K.project(2.0 * rng.normal(size=2)), 1e-4)
        g, y = constraints.Stack([constraints.Norm1([0.0, 0.0], 6.0), ball]), far * rng.normal(size=2)
        np.testing.assert_allclose(cocopt.project(K, g, y), cocopt.project(K, ball, y), rtol=0, atol=1e-10)


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
def test_far_targets_at_kinks(far: float) -> None:
    """Along a coordinate axis all others stay at their kinks; a little beside it one leaves."""
    n = 6
    center = np.linspace(0.1, 0.3, n)
    g = constraints.Stack([constraints.Norm1(center, 0.4), constraints.NormBall(center, 0.3)])
    y = center + far * np.eye(n)[2]
    np.testing.assert_allclose(cocopt.project(Ball(0.0, 2.0, dim=n), g, y), center + 0.3 * np.eye(n)[2], atol=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        constraints.CVaR([[1.0, 0.0], [0.0, 1.0]], 0.5, -np.inf),
        constraints.Norm1([0.0, 0.0], -np.inf),
        constraints.NormInf([0.0, 0.0], -np.inf),
        constraints.Stack([constraints.Norm1([0.0, 0.0], 9.0), constraints.Affine([1.0, 1.0], -np.inf)]),
    ],
    ids=repr,
)
def test_a_limit_of_minus_infinity_is_refused(bad: constraints.Constraint) -> None:
    with pytest.raises(InvalidInput, match="expected finite numbers, got -inf"):
        cocopt.project(Ball([0.0, 0.0], 1.0), bad, [3.0, 4.0])


def test_boxes_that_share_a_face_share_its_multiplier() -> None:
    g = constraints.Stack([constraints.NormInf([0.0], 1.0), constraints.NormInf([0.5], 0.5)])
    found = solve_projection(cocopt.Space(1), g, np.array([3.0]))
    assert found.multipliers is not None
    assert found.multipliers.sum() == pytest.approx(2.0)


def test_rounds_of_a_learner_with_a_window_of_turnover_limits() -> None:
    rng, n = np.random.default_rng(3), 6
    learner = cocopt.CLASP(Simplex(n), window=3)
    for _ in range(30):
        x = learner.ask()
        g = constraints.Stack([constraints.Norm1(x, 0.2), constraints.CVaR(0.1 + rng.normal(size=(8, n)), 0.5, 1.5)])
        record = learner.tell(cocopt.losses.Linear(rng.normal(size=n)), g)
        assert record.method in ("pieces", "set")
        assert g.value(learner.ask()) <= 1e-9


def test_explain() -> None:
    g = constraints.Stack([constraints.Norm1([0.0, 0.0], 1.0), constraints.NormBall([0.0, 0.0], 1.0)])
    assert cocopt.explain(Simplex(2), g) == "pieces: compiled, Newton's method on the pieces of 2 rows"
    assert (
        cocopt.explain(cocopt.L1Ball(0.0, 1.0, dim=2), constraints.Quadratic(np.ones((2, 2)), [1.0, 0.0], 0.0))[:6]
        == "pieces"
    )
