"""The best fixed action: compared with CVXPY and Clarabel, with closed forms, and where S_T is empty."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocopt import Ball, Box, Intersection, Simplex, constraints, losses, problems
from cocopt.errors import InvalidInput, SolverFailure
from cocopt.hindsight import best_fixed, model, search
from cocopt.hindsight import rounds as hindsight_rounds
from cocopt.sets.base import ConvexSet

N = 4


class Stored(problems.Problem):
    """Given rounds, so that a reference can use the same ones."""

    def __init__(self, K: Any, stored: list[tuple[Any, Any]]) -> None:
        self.K, self.rounds, self.stored = K, len(stored), stored

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return self.stored[t - 1]


def drawn(rng: np.random.Generator, kind: str, limit: str, inside: float = 0.15) -> tuple[Any, Any, Any, Any]:
    """A random loss and constraint, and both again as functions of a CVXPY variable; (inside, …) is feasible."""
    H, y, sign = rng.uniform(-1, 1, (3, N)), rng.normal(size=3), rng.choice([-1.0, 1.0])
    norm = losses.Norm(H, y)
    f, f_cp = {
        "norm": (norm, lambda x: cp.norm(H @ x - y)),
        "absolute": (losses.Norm(H[:1], y[:1]), lambda x: cp.abs(H[0] @ x - y[0])),
        "squares": (losses.LeastSquares(H, y), lambda x: cp.sum_squares(H @ x - y) / 2),
        "linear": (losses.Linear(H[0]), lambda x: H[0] @ x),
        "distance": (losses.Distance(H[0]), lambda x: cp.sum_squares(x - H[0]) / 2),
        "quadratic": (
            losses.Quadratic(np.outer(H[0], H[0]), H[1], 3.0),
            lambda x: cp.square(H[0] @ x) / 2 + H[1] @ x + 3.0,
        ),
        "hinge": (losses.Hinge(3 * H[0], sign), lambda x: cp.pos(1 - sign * 3 * H[0] @ x)),
        "logistic": (losses.Logistic(3 * H[0], sign), lambda x: cp.logistic(-sign * 3 * H[0] @ x)),
        "function": (
            losses.Function(lambda x: float(norm.value(x)), lambda x: norm.gradient(x)),
            lambda x: cp.norm(H @ x - y),
        ),
    }[kind]
    feasible = np.full(N, inside)
    A = rng.uniform(-1, 1, (2, N))
    b = A @ feasible + rng.uniform(0, 0.3, 2)
    center = 0.5 * A[0]
    radius = float(np.linalg.norm(center - feasible)) + 0.05
    ball = constraints.NormBall(center, radius)
    g, g_cp = {
        "affine": (constraints.Affine(A, b), lambda x: [A @ x <= b]),
        "ball": (ball, lambda x: [cp.norm(x - center) <= radius]),
        "function": (
            constraints.Function(lambda x: float(ball.value(x)), lambda x: ball.gradient(x)),
            lambda x: [cp.norm(x - center) <= radius],
        ),
        "none": (None, lambda x: []),
    }[limit]
    return f, g, f_cp, g_cp


def membership(K: Any, x: Any) -> list[Any]:
    if isinstance(K, Box):
        return [x >= K.lower, x <= K.upper]
    if isinstance(K, Ball):
        return [cp.norm(x - K.center) <= K.radius]
    return [x >= 0, cp.sum(x) == 1]


def reference(K: Any, rounds: list[tuple[Any, Any, Any, Any]]) -> float:
    """min over S_T of Σ f_t, by Clarabel."""
    x = cp.Variable(N)
    limits = [limit for _, _, _, g in rounds for limit in g(x)]
    program = cp.Problem(cp.Minimize(cp.sum([f(x) for _, _, f, _ in rounds])), limits + membership(K, x))
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert program.status in ("optimal", "optimal_inaccurate")
    return float(program.value)


def check_against_reference(K: Any, rounds: list[tuple[Any, Any, Any, Any]], marks: list[int]) -> None:
    problem = Stored(K, [(f, g) for f, g, _, _ in rounds])
    best = best_fixed(problem, 0, [0], marks)
    assert best.feasible.all()
    start = K.project(np.zeros(N))
    for value, point, T in zip(best.value[0], best.point[0], marks, strict=True):
        expected = reference(K, rounds[:T])
        typical = max(abs(expected), np.mean([abs(float(f.value(start))) for f, _, _, _ in rounds[:T]]))
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-9 * typical)
        assert K.contains(point, 1e-8)
        assert sum(float(f.value(point)) for f, _, _, _ in rounds[:T]) == pytest.approx(value, abs=1e-9 * typical)
        assert max((float(g.value(point)) for _, g, _, _ in rounds[:T] if g is not None), default=0.0) <= 1e-7


SETS = {"box": Box(-1.0, 1.0, dim=N), "ball": Ball(0.0, 1.0, dim=N), "simplex": Simplex(N)}
EXACT = ["norm", "absolute", "squares", "linear", "distance", "quadratic", "hinge", "logistic"]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("loss", "limit"), [*product(EXACT, ["affine", "ball", "none"])])
@pytest.mark.parametrize("K", SETS)
def test_agrees_with_clarabel(K: str, loss: str, limit: str) -> None:
    inside = 0.25 if K == "simplex" else 0.15  # a point of K
    rng = np.random.default_rng(5)
    check_against_reference(SETS[K], [drawn(rng, loss, limit, inside) for _ in range(20)], [1, 3, 20])


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("loss", "limit"), [("function", "affine"), ("squares", "function"), ("function", "function")])
def test_black_boxes_agree_with_clarabel(loss: str, limit: str) -> None:
    rng = np.random.default_rng(6)
    check_against_reference(SETS["box"], [drawn(rng, loss, limit) for _ in range(8)], [1, 2, 8])


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), K=st.sampled_from(["box", "ball"]), data=st.data())
def test_mixtures_agree_with_clarabel(seed: int, K: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    kinds = data.draw(st.lists(st.tuples(st.sampled_from(EXACT), st.sampled_from(["affine", "none"])), min_size=1))
    check_against_reference(SETS[K], [drawn(rng, *kind) for kind in kinds], [len(kinds)])


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("loss", ["norm", "squared"])
def test_regression_agrees_with_clarabel(loss: str) -> None:
    problem, marks = problems.get("olr-long", loss=loss), [1, 2, 4, 10, 300, 1500]
    best = best_fixed(problem, 0, [3, 8], marks)
    for (i, trial), (c, T) in product(enumerate([3, 8]), enumerate(marks)):
        H, y, A, b = (
            np.concatenate([column[:, 0] for column in columns])
            for columns in zip(*(own for _, own in problem.data_blocks(0, [trial], T)), strict=True)
        )
        x = cp.Variable(10)
        residual = cp.reshape(H.reshape(-1, 10) @ x - y.ravel(), (T, 4), order="C")
        objective = cp.sum(cp.norm(residual, axis=1)) if loss == "norm" else cp.sum_squares(residual) / 2
        program = cp.Problem(cp.Minimize(objective), [A.reshape(-1, 10) @ x <= b.ravel(), x >= 0, x <= 1])
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        assert best.value[i, c] == pytest.approx(program.value, rel=1e-6)
        assert np.max(A.reshape(-1, 10) @ best.point[i, c] - b.ravel()) <= 1e-9


def test_distances_without_constraints_are_least_at_the_mean() -> None:
    class Targets(problems.BlockProblem):
        K = Box(-9.0, 9.0, dim=3)
        rounds = 700

        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            return (rng.normal(size=(count, 3)),)

        def reveal(self, *columns: Any) -> Any:
            return losses.Distance(columns[0]), None

    marks = [700, 3, 300]
    best = best_fixed(Targets(), 1, [4], marks)
    c = np.concatenate([columns[0][:, 0] for _, columns in Targets().data_blocks(1, [4], 700)])
    for value, point, T in zip(best.value[0], best.point[0], marks, strict=True):
        assert point == pytest.approx(c[:T].mean(axis=0), abs=1e-6)
        assert value == pytest.approx(0.5 * T * c[:T].var(axis=0).sum(), rel=1e-9)


def test_accuracy_far_from_the_origin() -> None:
    centers = 1e5 + np.random.default_rng(0).uniform(0.2, 0.8, (50, 2))
    best = best_fixed(
        Stored(Box(1e5, 1e5 + 1.0, dim=2), [(losses.Distance(c), None) for c in centers]), 0, [0], [3, 50]
    )
    for value, T in zip(best.value[0], [3, 50], strict=True):
        expected = 0.5 * ((centers[:T] - centers[:T].mean(axis=0)) ** 2).sum()
        assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("K", ["box", "ball"])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 9, 10, 101, 1200])
def test_absolute_values_along_the_axes_are_least_at_the_medians(K: str, T: int) -> None:
    rng = np.random.default_rng(T)
    c = rng.uniform(-0.5, 0.5, T)
    axis = np.arange(T) % N
    rounds = [(losses.Norm(2.0 * np.eye(N)[[i]], 2.0 * c[[t]]), None) for t, i in enumerate(axis)]
    best = best_fixed(Stored(SETS[K], rounds), 0, [0], [T])
    own = [c[axis == i] for i in range(min(T, N))]
    expected = 2.0 * sum(np.abs(one - np.median(one)).sum() for one in own)
    assert best.value[0, 0] == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("height", [0.3, 1e-3, 1e-6])
def test_the_optimum_of_a_sum_of_distances_may_be_a_kink(height: float) -> None:
    """The Fermat point of a triangle with an angle of at least 120° is that vertex."""
    corners = np.array([[-0.7, 0.0], [0.1, height], [0.6, 0.0]])
    best = best_fixed(Stored(Ball(0.0, 1.0, dim=2), [(losses.Norm(np.eye(2), c), None) for c in corners]), 0, [0], [3])
    assert best.value[0, 0] == pytest.approx(np.linalg.norm(corners - corners[1], axis=1).sum(), rel=1e-9)
    assert best.point[0, 0] == pytest.approx(corners[1], abs=1e-9)


@pytest.mark.parametrize("shape", [(3,), (1,)])
@pytest.mark.parametrize("K", ["box", "ball"])
def test_the_optimum_is_zero_where_all_losses_vanish(K: str, shape: tuple[int]) -> None:
    class Exact(problems.BlockProblem):
        rounds = 1000

        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            return (rng.uniform(-1.0, 1.0, (count, *shape, N)),)

        def reveal(self, *columns: Any) -> Any:
            (H,) = columns
            return losses.Norm(H, H @ np.full(N, 0.3)), None

    problem = Exact()
    problem.K = SETS[K]
    assert best_fixed(problem, 0, [0], [1, 2, 30, 1000]).value == pytest.approx(0.0, abs=1e-9)


def test_equal_losses_are_counted_each_time() -> None:
    """The minimum of 3|x − 0.2| + 2|x − 0.5| is 0.6; of a hundred such sums, 60."""
    rounds = [(losses.Norm([[1.0]], [c]), None) for c in [0.2, 0.5, 0.2, 0.5, 0.2] * 100]
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=1), rounds), 0, [0], [5, 500])
    assert best.value[0] == pytest.approx([0.6, 60.0], rel=1e-7)
    assert best.point[0] == pytest.approx(np.full((2, 1), 0.2), abs=1e-8)


def test_black_boxes_whose_optimum_is_zero_or_cancels() -> None:
    c = np.array([0.3, -0.2])
    box = losses.Function(lambda x: 0.5 * float((x - c) @ (x - c)), lambda x: x - c)
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=2), [(box, None)] * 3), 0, [0], [1, 3])
    assert best.value == pytest.approx(0.0, abs=1e-10)
    constant = losses.Quadratic(np.zeros((2, 2)), np.zeros(2), -100.0)
    box = losses.Function(lambda x: 100.0 + 0.5 * float((x - c) @ (x - c)), lambda x: x - c)
    limit = constraints.Affine([1.0, 0.0], 0.1)
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=2), [(box, limit), (constant, limit)]), 0, [0], [2])
    assert best.value[0, 0] == pytest.approx(0.02, rel=1e-6)


def test_data_drawn_again_in_every_pass_give_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    in_memory = best_fixed(problems.get("olr-long"), 0, [0], [300, 600])
    monkeypatch.setattr(hindsight_rounds, "MAX_BYTES_IN_MEMORY", 1000)
    drawn_again = best_fixed(problems.get("olr-long"), 0, [0], [300, 600])
    assert np.array_equal(in_memory.value, drawn_again.value)


def test_vectorised_functions_get_a_point_for_every_round() -> None:
    class Vectorised(problems.BlockProblem):
        K = Box(-1.0, 1.0, dim=2)
        rounds = 30

        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            return rng.normal(size=(count, 2)), rng.uniform(0.1, 0.5, size=count)

        def reveal(self, *columns: Any) -> Any:
            c, r = columns
            return (
                losses.Function(lambda x: 0.5 * ((x - c) ** 2).sum(axis=-1), lambda x: x - c, 1.0, vectorized=True),
                constraints.Function(lambda x: x[..., 0] - r, lambda x: np.eye(2)[0] + 0 * x, vectorized=True),
            )

    class Plain(Vectorised):
        def reveal(self, *columns: Any) -> Any:
            c, r = columns
            return losses.Distance(c), constraints.Affine(np.eye(2)[:1] + 0 * c[..., None, :], r[..., None])

    boxed, plain = (best_fixed(kind(), 0, [0, 1], [5, 30]) for kind in (Vectorised, Plain))
    assert boxed.value == pytest.approx(plain.value, rel=2e-6)
    assert plain.point[..., 0].max() <= 0.5


def test_an_empty_intersection_is_detected_and_stays_empty() -> None:
    f = losses.Distance([0.0, 0.0])
    limits = [([1.0, 1.0], 0.3), ([0.0, 1.0], 0.2), ([1.0, 0.0], 0.2), ([-1.0, -1.0], -0.5), ([1.0, 0.0], 1.0)]
    for K in (Box(0.0, 1.0, dim=2), Ball(0.0, 1.0, dim=2)):
        best = best_fixed(Stored(K, [(f, constraints.Affine(*g)) for g in limits]), 0, [0], [5, 3, 1, 4])
        assert best.feasible.tolist() == [[False, True, True, False]]
        assert np.isnan(best.value).tolist() == [[True, False, False, True]]
        assert np.isnan(best.point[0, 0]).all()


@pytest.mark.parametrize("distance", [0.0, 1e-6, 0.1])
def test_sets_that_touch_have_a_common_point(distance: float) -> None:
    """Two balls that touch have a point in common; at a distance of 1e-6 or more they have none."""
    first, second = constraints.NormBall([-1.0, 0.0], 1.0), constraints.NormBall([1.0 + distance, 0.0], 1.0)
    f = losses.Linear([0.0, 1.0])
    best = best_fixed(Stored(Box(-3.0, 3.0, dim=2), [(f, first), (f, second)]), 0, [0], [1, 2])
    assert best.feasible.tolist() == [[True, distance == 0.0]]


@pytest.mark.parametrize(
    "K",
    [Ball([0.5, 0.5], 0.0), Box([0.5, 0.5], [0.5, 0.5]), Intersection([Box(0.5, 1.0, dim=2), Simplex(2)])],
    ids=repr,
)
def test_a_set_of_one_point_has_one_action(K: Any) -> None:
    """Its size is 0, in units of which nothing can be measured."""
    feasible, empty = constraints.Affine([1.0, 1.0], 1.5), constraints.Affine([1.0, 1.0], 0.5)
    rounds = [(losses.Linear([1.0, 2.0]), feasible), (losses.Distance([0.5, 0.0]), feasible)]
    best = best_fixed(Stored(K, [*rounds, (losses.Linear([0.0, 0.0]), empty)]), 0, [0], [1, 2, 3])
    assert best.feasible.tolist() == [[True, True, False]]
    np.testing.assert_allclose(best.value[0, :2], [1.5, 1.625], rtol=1e-12)
    np.testing.assert_allclose(best.point[0, :2], np.full((2, 2), 0.5), rtol=0, atol=1e-9)


@pytest.mark.parametrize("K", [Box(-3.0, 3.0, dim=2), Ball(0.0, 3.0, dim=2)], ids=["box", "ball"])
@pytest.mark.parametrize("distance", [10.0**e for e in (-10, -9.5, -9, -8.75, -8.5, -8, -7.5, -7)])
def test_sets_that_nearly_touch_have_a_verdict_or_raise(K: Any, distance: float) -> None:
    """Within rounding of being empty either verdict is right, and so is an error that says that there is none."""
    first, second = constraints.NormBall([-1.0, 0.0], 1.0), constraints.NormBall([1.0 + distance, 0.0], 1.0)
    for f, least in ((losses.Linear([0.0, 1.0]), 0.0), (losses.Distance([0.0, 0.5]), 0.25)):
        try:
            best = best_fixed(Stored(K, [(f, first), (f, second)]), 0, [0], [1, 2])
        except SolverFailure as error:
            assert re.match("the best fixed action .*(was not found|was found only to)", str(error))  # noqa: PT017
        else:
            assert best.feasible[0, 0]
            # a violation of ε lets x move by √ε along the tangent
            assert not best.feasible[0, 1] or best.value[0, 1] == pytest.approx(least, abs=1e-3)


def test_a_feasible_set_of_one_point() -> None:
    f = losses.Distance([2.0, 2.0])
    limits = [
        constraints.Affine([[1.0, 0.0], [-1.0, 0.0]], [0.3, -0.3]),
        constraints.Affine([[0.0, 1.0], [0.0, -1.0]], [0.1, -0.1]),
    ]
    best = best_fixed(Stored(Box(0.0, 1.0, dim=2), [(f, g) for g in limits]), 0, [0], [2])
    assert best.feasible.all()
    assert best.point[0, 0] == pytest.approx([0.3, 0.1], abs=1e-8)


def test_the_wine_svm_is_infeasible_from_some_round_on() -> None:
    best = best_fixed(problems.get("svm"), 0, [0, 1], [1, 10, 100, 6497])
    assert best.feasible[:, :2].all()
    assert not best.feasible[:, 2:].any()
    assert np.isnan(best.value[:, 2:]).all()


def test_no_feasible_point_has_a_smaller_sum_of_losses() -> None:
    problem = problems.get("tracking")
    best = best_fixed(problem, 0, [0], [500])
    rng = np.random.default_rng(0)
    others = np.vstack([best.point[0], problem.K.project(0.1 * rng.normal(size=(200, 10)))])
    total, worst = np.zeros(201), np.full(201, -np.inf)
    for _, count, reveal in problem.blocks(0, [0], 500):
        for k in range(count):
            loss, constraint = reveal(k)
            total += loss.value(others[:, None])[:, 0]
            worst = np.maximum(worst, constraint.value(others[:, None])[:, 0])
    assert worst[0] <= 1e-9
    assert best.value[0, 0] == pytest.approx(total[0], rel=1e-12)
    feasible = worst[1:] <= 0
    assert feasible.sum() > 10
    assert (total[1:][feasible] > total[0]).all()


class ProjectedBall(ConvexSet):
    """A ball that is known by its projection alone."""

    dim = N

    def project_unchecked(self, point: Any) -> Any:
        return point / np.maximum(1.0, np.linalg.norm(point, axis=-1, keepdims=True))

    def violation_unchecked(self, point: Any) -> Any:
        return np.maximum(np.linalg.norm(point, axis=-1) - 1.0, 0.0)

    @property
    def diameter(self) -> float:
        return 2.0


@pytest.mark.parametrize("loss", ["squares", "linear", "norm"])
def test_a_set_known_by_its_projection_alone(loss: str) -> None:
    rng = np.random.default_rng(8)
    rounds = [drawn(rng, loss, "affine")[:2] for _ in range(20)]
    cones, projection = (best_fixed(Stored(K, rounds), 0, [0], [3, 20]) for K in (SETS["ball"], ProjectedBall()))
    assert projection.value == pytest.approx(cones.value, rel=2e-6)


def test_limits_of_the_search_raise_solver_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.get("olr")
    monkeypatch.setattr(search, "MAX_STEPS", 1)
    with pytest.raises(SolverFailure, match=r"the best fixed action of 100 rounds was found only to .* of its value"):
        best_fixed(problem, 0, [0], [100])
    monkeypatch.setattr(model, "MAX_PROGRAMS", 1)
    with pytest.raises(SolverFailure, match="the best fixed action of 100 rounds needs more than 1 cuts in a step"):
        best_fixed(problem, 0, [0], [100])


def test_a_growing_proximal_weight_leads_to_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.get("olr")
    expected = best_fixed(problem, 0, [0, 1], [100]).value
    monkeypatch.setattr(model, "PROGRAMS_PER_WEIGHT", 1)
    assert best_fixed(problem, 0, [0, 1], [100]).value == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("outcome", [None, SolverFailure("the program failed")])
def test_steps_with_exact_kinks_are_optional(outcome: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they fail, decreasing smoothing leads to the same optimum."""
    failures = []
    minimise_model = search.minimise_model

    def without_kinks(working_set: Any, objective: Any, at: Any, *arguments: Any) -> Any:
        if not at.local.kinks:
            return minimise_model(working_set, objective, at, *arguments)
        failures.append(at)
        if outcome is None:
            return None
        raise outcome

    monkeypatch.setattr(search, "minimise_model", without_kinks)
    c = np.random.default_rng(2).uniform(-0.5, 0.5, 50)
    rounds = [(losses.Norm([[1.0]], [one]), None) for one in c]
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=1), rounds), 0, [0], [50])
    assert failures
    assert best.value[0, 0] == pytest.approx(np.abs(c - np.median(c)).sum(), rel=2e-6)


@pytest.mark.parametrize("marks", [[], [0], [1.5], 3, [[1]]])
def test_bad_checkpoints_are_refused(marks: Any) -> None:
    with pytest.raises(InvalidInput, match="checkpoints: expected numbers of rounds"):
        best_fixed(problems.get("olr"), 0, [0], marks)


def test_an_unbounded_set_is_refused() -> None:
    problem = Stored(Box(0.0, np.inf, dim=2), [(losses.Linear([1.0, 1.0]), None)])
    with pytest.raises(InvalidInput, match="K: expected a set of finite diameter"):
        best_fixed(problem, 0, [0], [1])


@pytest.mark.parametrize("where", ["H", "y", "A", "b"])
def test_data_that_are_not_finite_are_named(where: str) -> None:
    class WithNaN(problems.Regression):
        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            columns = dict(zip("HyAb", super().draw(rng, first, count), strict=True))
            columns[where][36] = np.nan
            return tuple(columns.values())

    assert best_fixed(WithNaN(), 0, [0], [36]).feasible.all()
    with pytest.raises(InvalidInput, match=rf"{where}: expected finite numbers, got nan at index \(36, "):
        best_fixed(WithNaN(), 0, [0], [37])


def test_rows_that_are_switched_off_do_not_matter() -> None:
    problem = problems.get("tracking", limits="rarely")
    best = best_fixed(problem, 0, [0], [300])
    shown = [
        constraint.A[0, 0]
        for _, count, reveal in problem.blocks(0, [0], 300)
        for _, constraint in map(reveal, range(count))
        if constraint.b[0, 0] < np.inf
    ]
    assert len(shown) < 100
    assert np.max(np.array(shown) @ best.point[0, 0]) == pytest.approx(0.4, abs=1e-9)
