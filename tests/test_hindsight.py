"""The best fixed action: against CVXPY with Clarabel, against closed forms, and when there is none."""

from __future__ import annotations

from itertools import product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocopt.hindsight
from cocopt import Ball, Box, Simplex, constraints, losses, problems
from cocopt.errors import InvalidInput
from cocopt.hindsight import best_fixed

N = 4


class Stored(problems.Problem):
    """Rounds that were made beforehand, for a reference that reads the same ones."""

    def __init__(self, K: Any, stored: list[tuple[Any, Any]]) -> None:
        self.K, self.rounds, self.stored = K, len(stored), stored

    def round(self, rng: np.random.Generator, t: int) -> Any:
        return self.stored[t - 1]


def drawn(rng: np.random.Generator, kind: str, limit: str) -> tuple[Any, Any, Any, Any]:
    """A random loss and constraint of some kinds, and both again as functions of a CVXPY variable."""
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
    inside = np.full(N, 0.15)
    A = rng.uniform(-1, 1, (2, N))
    b = A @ inside + rng.uniform(0, 0.3, 2)
    centre = 0.5 * A[0]
    radius = float(np.linalg.norm(centre - inside)) + 0.05
    ball = constraints.NormBall(centre, radius)
    g, g_cp = {
        "affine": (constraints.Affine(A, b), lambda x: [A @ x <= b]),
        "ball": (ball, lambda x: [cp.norm(x - centre) <= radius]),
        "function": (
            constraints.Function(lambda x: float(ball.value(x)), lambda x: ball.gradient(x)),
            lambda x: [cp.norm(x - centre) <= radius],
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


def agrees(K: Any, rounds: list[tuple[Any, Any, Any, Any]], marks: list[int]) -> None:
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
    if K == "simplex" and limit == "ball":
        limit = "affine"  # the balls about (0.15, …) and the simplex hardly meet
    inside = {"simplex": 0.25}.get(K, 0.15)
    rng = np.random.default_rng(5)
    rounds = [drawn(rng, loss, limit) for _ in range(20)]
    if K == "simplex":  # so that the constraints have a point of it in common
        rounds = [_moved(r, inside) for r in rounds]
    agrees(SETS[K], rounds, [1, 3, 20])


def _moved(r: tuple[Any, Any, Any, Any], inside: float) -> tuple[Any, Any, Any, Any]:
    f, g, f_cp, _ = r
    if g is None:
        return r
    b = g.b + g.A.sum(axis=1) * (inside - 0.15)
    return f, constraints.Affine(g.A, b), f_cp, lambda x: [g.A @ x <= b]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("loss", "limit"), [("function", "affine"), ("squares", "function"), ("function", "function")])
def test_black_boxes_agree_with_what_they_hide(loss: str, limit: str) -> None:
    rng = np.random.default_rng(6)
    agrees(SETS["box"], [drawn(rng, loss, limit) for _ in range(8)], [1, 2, 8])


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), K=st.sampled_from(["box", "ball"]), data=st.data())
def test_mixtures_agree_with_clarabel(seed: int, K: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    kinds = data.draw(st.lists(st.tuples(st.sampled_from(EXACT), st.sampled_from(["affine", "none"])), min_size=1))
    agrees(SETS[K], [drawn(rng, *kind) for kind in kinds], [len(kinds)])


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("loss", ["norm", "squared"])
def test_the_regression_agrees_with_clarabel(loss: str) -> None:
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


def test_a_moving_target_without_limits_is_best_met_at_its_mean() -> None:
    class Free(problems.BlockProblem):
        K = Box(-9.0, 9.0, dim=3)
        rounds = 700

        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            return (rng.normal(size=(count, 3)),)

        def reveal(self, *columns: Any) -> Any:
            return losses.Distance(columns[0]), None

    marks = [700, 3, 300]
    best = best_fixed(Free(), 1, [4], marks)
    c = np.concatenate([columns[0][:, 0] for _, columns in Free().data_blocks(1, [4], 700)])
    for value, point, T in zip(best.value[0], best.point[0], marks, strict=True):
        assert point == pytest.approx(c[:T].mean(axis=0), abs=1e-6)
        assert value == pytest.approx(0.5 * T * c[:T].var(axis=0).sum(), rel=1e-9)


def test_far_from_the_origin_no_digits_are_lost() -> None:
    centres = 1e5 + np.random.default_rng(0).uniform(0.2, 0.8, (50, 2))
    best = best_fixed(
        Stored(Box(1e5, 1e5 + 1.0, dim=2), [(losses.Distance(c), None) for c in centres]), 0, [0], [3, 50]
    )
    for value, T in zip(best.value[0], [3, 50], strict=True):
        expected = 0.5 * ((centres[:T] - centres[:T].mean(axis=0)) ** 2).sum()
        assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("K", ["box", "ball"])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 9, 10, 101, 1200])
def test_distances_along_each_axis_are_least_at_the_medians(K: str, T: int) -> None:
    rng = np.random.default_rng(T)
    c = rng.uniform(-0.5, 0.5, T)
    axis = np.arange(T) % N
    rounds = [(losses.Norm(2.0 * np.eye(N)[[i]], 2.0 * c[[t]]), None) for t, i in enumerate(axis)]
    best = best_fixed(Stored(SETS[K], rounds), 0, [0], [T])
    own = [c[axis == i] for i in range(min(T, N))]
    expected = 2.0 * sum(np.abs(one - np.median(one)).sum() for one in own)
    assert best.value[0, 0] == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("height", [0.3, 1e-3, 1e-6])
def test_the_point_of_least_distance_may_be_one_of_the_points(height: float) -> None:
    """From a corner of 120° or more, all ways to it are least (Fermat); its subgradient is nothing but a multiplier."""
    corners = np.array([[-0.7, 0.0], [0.1, height], [0.6, 0.0]])
    best = best_fixed(Stored(Ball(0.0, 1.0, dim=2), [(losses.Norm(np.eye(2), c), None) for c in corners]), 0, [0], [3])
    assert best.value[0, 0] == pytest.approx(np.linalg.norm(corners - corners[1], axis=1).sum(), rel=1e-9)
    assert best.point[0, 0] == pytest.approx(corners[1], abs=1e-9)


@pytest.mark.parametrize("shape", [(3,), (1,)])
@pytest.mark.parametrize("K", ["box", "ball"])
def test_losses_that_can_vanish_together_do(K: str, shape: tuple[int]) -> None:
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


def test_equal_losses_count_as_often_as_they_come() -> None:
    """The minimum of 3|x − 0.2| + 2|x − 0.5| is 0.6, whether each comes once or a hundred times."""
    rounds = [(losses.Norm([[1.0]], [c]), None) for c in [0.2, 0.5, 0.2, 0.5, 0.2] * 100]
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=1), rounds), 0, [0], [5, 500])
    assert best.value[0] == pytest.approx([0.6, 60.0], rel=1e-7)
    assert best.point[0] == pytest.approx(np.full((2, 1), 0.2), abs=1e-8)


def test_a_black_box_may_vanish_and_may_nearly_cancel() -> None:
    c = np.array([0.3, -0.2])
    box = losses.Function(lambda x: 0.5 * float((x - c) @ (x - c)), lambda x: x - c)
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=2), [(box, None)] * 3), 0, [0], [1, 3])
    assert best.value == pytest.approx(0.0, abs=1e-10)
    constant = losses.Quadratic(np.zeros((2, 2)), np.zeros(2), -100.0)
    box = losses.Function(lambda x: 100.0 + 0.5 * float((x - c) @ (x - c)), lambda x: x - c)
    limit = constraints.Affine([1.0, 0.0], 0.1)
    best = best_fixed(Stored(Box(-1.0, 1.0, dim=2), [(box, limit), (constant, limit)]), 0, [0], [2])
    assert best.value[0, 0] == pytest.approx(0.02, rel=1e-6)


def test_data_drawn_anew_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    held = best_fixed(problems.get("olr-long"), 0, [0], [300, 600])
    monkeypatch.setattr(cocopt.hindsight, "_HELD", 10)
    anew = best_fixed(problems.get("olr-long"), 0, [0], [300, 600])
    assert np.array_equal(held.value, anew.value)


def test_vectorised_functions_see_all_rounds() -> None:
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


def test_an_empty_intersection_is_found_out_and_stays_empty() -> None:
    f = losses.Distance([0.0, 0.0])
    limits = [([1.0, 1.0], 0.3), ([0.0, 1.0], 0.2), ([1.0, 0.0], 0.2), ([-1.0, -1.0], -0.5), ([1.0, 0.0], 1.0)]
    for K in (Box(0.0, 1.0, dim=2), Ball(0.0, 1.0, dim=2)):
        best = best_fixed(Stored(K, [(f, constraints.Affine(*g)) for g in limits]), 0, [0], [5, 3, 1, 4])
        assert best.feasible.tolist() == [[False, True, True, False]]
        assert np.isnan(best.value).tolist() == [[True, False, False, True]]
        assert np.isnan(best.point[0, 0]).all()


@pytest.mark.parametrize("curve", [0.0, 1e-6, 0.1])
def test_empty_means_empty_beyond_rounding(curve: float) -> None:
    """Two balls that touch have a point in common; drawn apart by anything that counts, they have none."""
    left, right = constraints.NormBall([-1.0, 0.0], 1.0), constraints.NormBall([1.0 + curve, 0.0], 1.0)
    f = losses.Linear([0.0, 1.0])
    best = best_fixed(Stored(Box(-3.0, 3.0, dim=2), [(f, left), (f, right)]), 0, [0], [1, 2])
    assert best.feasible.tolist() == [[True, curve == 0.0]]


def test_a_point_is_a_feasible_set() -> None:
    f = losses.Distance([2.0, 2.0])
    limits = [
        constraints.Affine([[1.0, 0.0], [-1.0, 0.0]], [0.3, -0.3]),
        constraints.Affine([[0.0, 1.0], [0.0, -1.0]], [0.1, -0.1]),
    ]
    best = best_fixed(Stored(Box(0.0, 1.0, dim=2), [(f, g) for g in limits]), 0, [0], [2])
    assert best.feasible.all()
    assert best.point[0, 0] == pytest.approx([0.3, 0.1], abs=1e-8)


def test_no_wine_machine_is_feasible() -> None:
    best = best_fixed(problems.get("svm"), 0, [0, 1], [1, 10, 100, 6497])
    assert best.feasible[:, :2].all()
    assert not best.feasible[:, 2:].any()
    assert np.isnan(best.value[:, 2:]).all()


def test_regret_of_the_best_action_is_least() -> None:
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
    class Spoilt(problems.Regression):
        def draw(self, rng: np.random.Generator, first: int, count: int) -> Any:
            columns = dict(zip("HyAb", super().draw(rng, first, count), strict=True))
            columns[where][36] = np.nan
            return tuple(columns.values())

    assert best_fixed(Spoilt(), 0, [0], [36]).feasible.all()
    with pytest.raises(InvalidInput, match=rf"{where}: expected finite numbers, got nan at index \(36, "):
        best_fixed(Spoilt(), 0, [0], [37])


def test_idle_rows_do_not_matter() -> None:
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
