"""The comparators in hindsight: compared with CVXPY, with closed forms, and with one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import build, build_set, random_constraint, random_set
from reference import comparators as reference
from streams import build_loss, random_loss

from cocopt import CLASP, RECOO, Ball, Box, Simplex, constraints, hindsight, losses, problems, steps, theory
from cocopt.errors import InvalidInput, SolverFailure
from cocopt.hindsight import dynamic as dynamic_module

N, T = 3, 8
KINDS = ("Norm", "LeastSquares", "Linear", "Distance", "Quadratic", "Hinge", "Logistic")


class Stored(problems.Problem):
    """Given rounds, the same in every trial but for trial 1, which has them in reverse order."""

    def __init__(self, K: Any, stored: list[tuple[Any, Any]]) -> None:
        self.K, self.rounds, self.stored = K, len(stored), stored

    def _draw_trial(self, rng: Any, trial: int, first: int, count: int) -> Any:
        columns = np.empty((count, 2), dtype=object)
        for k in range(count):
            t = first + k - 1
            columns[k] = self.stored[t if trial == 0 else len(self.stored) - 1 - t]
        return columns[:, 0], columns[:, 1]


def random_rounds(
    kind: str, loss: str, limit: str, seed: int, slack: float = 0.05
) -> tuple[reference.Description, list[reference.Round]]:
    """K and T rounds whose constraints hold at one point with slack, or, if it is negative, are violated there."""
    rng = np.random.default_rng(seed)
    K, z = random_set(kind, N, rng)
    rounds: list[reference.Round] = []
    for _ in range(T):
        if loss == "Quadratic":
            F = rng.normal(size=(2, N))
            f: Any = ("Quadratic", F.T @ F, rng.normal(size=N), 0.5)
        else:
            f = random_loss(loss, z, rng)
        rounds.append((f, None if limit == "none" else random_constraint(limit, z, rng, slack=slack)))
    return K, rounds


def objects(K: Any, rounds: list[reference.Round]) -> tuple[Any, list[Any], list[Any]]:
    f = [None if own is None else build_loss(own) for own, _ in rounds]
    g = [None if own is None else build(own) for _, own in rounds]
    return build_set(K), f, g


def tolerance(K: Any, f: list[Any], value: Any) -> Any:
    """What is promised of a value: 1e-6 of it, or 1e-9 of a round's loss at the point of K nearest to 0."""
    start = K.project(np.zeros(N))
    typical = np.mean([abs(float(own.value(start))) for own in f if own is not None])
    return 1e-6 * np.abs(value) + 1e-9 * typical + 1e-9


def assert_feasible(K: Any, g: Any, point: Any) -> None:
    assert K.contains(point, 1e-8)
    assert g is None or float(g.value(point)) <= 1e-7


# ---------------------------------------------------------------------------------------------------------- dynamic


@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize(
    ("kind", "limit"),
    [("Box", "rows"), ("Simplex", "row"), ("Ball", "rows"), ("Polyhedron", "NormBall"), ("Box", "none")],
)
def test_dynamic_agrees_with_a_program_per_round(kind: str, limit: str, loss: str) -> None:
    description, rounds = random_rounds(kind, loss, limit, seed=3)
    K, f, g = objects(description, rounds)
    best = hindsight.best_dynamic(K, f, g)
    expected = reference.dynamic(description, rounds)
    assert best.feasible.all()
    assert (np.abs(best.value - expected) <= tolerance(K, f, expected)).all()
    for own, limits, point, value in zip(f, g, best.point, best.value, strict=True):
        assert_feasible(K, limits, point)
        assert float(own.value(point)) == pytest.approx(value, rel=1e-12, abs=1e-12)
    lengths = [np.linalg.norm(a - b) for a, b in zip(best.point[1:], best.point, strict=False)]
    assert best.path_length == pytest.approx(sum(lengths), rel=1e-12)
    assert best.increments == pytest.approx([0.0, *lengths], rel=1e-12)
    assert best.running_value == pytest.approx(np.cumsum(best.value), rel=1e-12)


def test_dynamic_takes_black_boxes_and_mixtures() -> None:
    rng = np.random.default_rng(0)
    K = ("Box", -np.ones(N), np.ones(N))
    kinds = ["Norm", "Distance", "Hinge", "Distance", "Linear", "Linear"]
    limits = ["Function", "rows", "NormBall", "Function", "none", "Quadratic"]
    rounds = [
        (random_loss(f, np.zeros(N), rng), None if g == "none" else random_constraint(g, np.zeros(N), rng, slack=0.1))
        for f, g in zip(kinds, limits, strict=True)
    ]
    rounds.append((None, random_constraint("rows", np.zeros(N), rng, slack=0.1)))
    rounds.append((None, None))
    built, f, g = objects(K, rounds)
    best = hindsight.best_dynamic(built, f, g)
    expected = reference.dynamic(K, rounds)
    assert (np.abs(best.value - expected) <= tolerance(built, f, expected)).all()
    assert best.value[-2:] == pytest.approx([0.0, 0.0], abs=0.0)
    for own, point in zip(g, best.point, strict=True):
        assert_feasible(built, own, point)


@pytest.mark.parametrize("loss", ["Distance", "LeastSquares", "Hinge"])
def test_rounds_without_a_feasible_point_are_left_out(loss: str) -> None:
    rng = np.random.default_rng(1)
    K = Box(0.0, 1.0, dim=N)
    f = [build_loss(random_loss(loss, np.full(N, 0.5), rng)) for _ in range(5)]
    possible, impossible = constraints.Affine(np.ones(N), 1.0), constraints.Affine(np.ones(N), -1.0)
    g = [impossible, possible, impossible, possible, possible]
    best = hindsight.best_dynamic(K, f, g)
    kept = [1, 3, 4]
    assert best.feasible.tolist() == [t in kept for t in range(5)]
    assert np.isnan(best.value).tolist() == [t not in kept for t in range(5)]
    assert np.isnan(best.point).all(axis=-1).tolist() == [t not in kept for t in range(5)]
    alone = hindsight.best_dynamic(K, [f[t] for t in kept], [g[t] for t in kept])
    assert best.value[kept] == pytest.approx(alone.value, abs=0.0)
    assert best.path_length == pytest.approx(alone.path_length, rel=1e-14)
    assert best.running_value[-1] == pytest.approx(alone.value.sum(), rel=1e-14)
    assert best.increments[[0, 1, 2]].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("loss", ["norm", "squared"])
def test_the_fast_method_solves_the_regression(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search, which takes every round by itself, finds the same optima."""
    problem = problems.get("olr", loss=loss)
    fast = hindsight.best_dynamic(problem, 0, [0, 5], 20)
    monkeypatch.setattr(dynamic_module, "minimise_quadratics", lambda *_: None)
    slow = hindsight.best_dynamic(problem, 0, [0, 5], 20)
    assert fast.feasible.all()
    assert fast.value == pytest.approx(slow.value, rel=3e-7)


def test_the_fast_method_names_what_is_not_finite() -> None:
    K = Box(0.0, 1.0, dim=2)
    with pytest.raises(InvalidInput, match=r"losses\.Linear: c: expected finite numbers, got nan"):
        hindsight.best_dynamic(K, [losses.Linear([0.0, np.nan])], [None])
    with pytest.raises(InvalidInput, match=r"losses\.Distance: center: expected finite numbers, got nan"):
        hindsight.best_dynamic(K, [losses.Distance([0.0, np.nan])], [None])
    with pytest.raises(InvalidInput, match=r"constraints\.Affine: A: expected finite numbers, got inf"):
        hindsight.best_dynamic(K, [losses.Linear([0.0, 1.0])], [constraints.Affine([np.inf, 0.0], 1.0)])


def test_a_failing_search_names_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fails:
        def __init__(self, *_: Any) -> None: ...
        def minimise(self, _: int) -> Any:
            raise SolverFailure("too thin")

    monkeypatch.setattr(dynamic_module, "Search", Fails)
    f = [losses.Distance([0.0, 0.0]), losses.Hinge([1.0, 0.0], 1.0)]
    with pytest.raises(SolverFailure, match="round 2: too thin"):
        hindsight.best_dynamic(Box(0.0, 1.0, dim=2), f)


# -------------------------------------------------------------------------------------------------- fixed, piecewise


@pytest.mark.parametrize(("kind", "loss", "limit"), [("Box", "Norm", "rows"), ("Ball", "LeastSquares", "NormBall")])
def test_lists_and_problems_agree(kind: str, loss: str, limit: str) -> None:
    description, rounds = random_rounds(kind, loss, limit, seed=5)
    K, f, g = objects(description, rounds)
    problem, marks = Stored(K, list(zip(f, g, strict=True))), [3, T, 1]
    for name, options in {
        "best_fixed": {},
        "best_in_expectation": {},
        "best_piecewise": {"breakpoints": [2, 5]},
    }.items():
        find = getattr(hindsight, name)
        drawn = find(problem, 0, [0, 1], marks, **options)
        forward = find(K, f, g, marks, **options)
        backward = find(K, f[::-1], g[::-1], marks, **options)
        for part, one, other in zip(drawn, forward, backward, strict=True):
            np.testing.assert_array_equal(part, np.stack([one, other]))
        last = find(K, f, g, **options)  # without checkpoints, after the last round
        for part, whole in zip(forward, last, strict=True):
            assert np.shape(whole) == part.shape[1:]
            np.testing.assert_allclose(part[1], whole, rtol=1e-5, atol=1e-5)
    drawn = hindsight.best_dynamic(problem, 0, [0, 1])
    for part, one, other in zip(
        drawn, hindsight.best_dynamic(K, f, g), hindsight.best_dynamic(K, f[::-1], g[::-1]), strict=True
    ):
        np.testing.assert_array_equal(part, np.stack([one, other]))


def test_leading_axes_of_losses_and_constraints_are_trials() -> None:
    rng = np.random.default_rng(2)
    K, shape = Box(-1.0, 1.0, dim=N), (2, 3)
    H, y, A, b = rng.normal(size=(T, *shape, 2, N)), rng.normal(size=(T, *shape, 2)), rng.normal(size=(T, 3, 1, N)), 0.2
    u, v = rng.normal(size=(T, N)), rng.choice([-1.0, 1.0], size=(T, 2, 1))
    f = [losses.Norm(H[t], y[t]) if t % 2 else losses.Logistic(u[t], v[t]) for t in range(T)]
    g = [constraints.Affine(A[t], np.full((3, 1), b)) for t in range(T)]
    found = {
        name: getattr(hindsight, name)(K, f, g, **options)
        for name, options in {
            "best_fixed": {},
            "best_dynamic": {},
            "best_in_expectation": {},
            "best_piecewise": {"breakpoints": [4]},
        }.items()
    }
    assert found["best_fixed"].value.shape == shape
    assert found["best_fixed"].point.shape == (*shape, N)
    assert found["best_dynamic"].point.shape == (*shape, T, N)
    assert found["best_dynamic"].path_length.shape == shape
    assert found["best_piecewise"].end.shape == (*shape, 2)
    for i, j in [(0, 2), (1, 1)]:
        alone = [losses.Norm(H[t, i, j], y[t, i, j]) if t % 2 else losses.Logistic(u[t], v[t, i, 0]) for t in range(T)]
        limits = [constraints.Affine(A[t, j], [b]) for t in range(T)]
        for name, best in found.items():
            options = {"breakpoints": [4]} if name == "best_piecewise" else {}
            for part, own in zip(best, getattr(hindsight, name)(K, alone, limits, **options), strict=True):
                np.testing.assert_array_equal(part[i, j], own)


@pytest.mark.parametrize(("loss", "limit"), [("Distance", "rows"), ("Norm", "row"), ("Hinge", "NormBall")])
def test_piecewise_agrees_with_a_program_per_block(loss: str, limit: str) -> None:
    description, rounds = random_rounds("Box", loss, limit, seed=7)
    K, f, g = objects(description, rounds)
    breakpoints, marks = [2, 3, 6], [1, 3, 7, T]
    best = hindsight.best_piecewise(K, f, g, marks, breakpoints=breakpoints)
    for c, mark in enumerate(marks):
        inner = [end for end in breakpoints if end < mark]
        expected = reference.piecewise(description, rounds[:mark], inner)
        assert abs(best.value[c] - expected) <= tolerance(K, f, expected)
        assert best.end[c].tolist() == [*inner, mark, *[0] * (len(breakpoints) - len(inner))]
        start = 0
        for j, end in enumerate([*inner, mark]):
            for own in g[start:end]:
                assert_feasible(K, own, best.point[c, j])
            start = end
    moves = np.linalg.norm(np.diff(best.point[-1], axis=0), axis=-1)
    assert best.path_length[-1] == pytest.approx(moves.sum())
    assert best.path_length[0] == 0.0


@pytest.mark.parametrize("switches", [0, 1, 9])
def test_the_best_switches_agree_with_trying_all(switches: int) -> None:
    description, rounds = random_rounds("Box", "Distance", "row", seed=11)
    K, f, g = objects(description, rounds)
    breakpoints, marks = [1, 3, 6], [4, T]
    best = hindsight.best_piecewise(K, f, g, marks, breakpoints=breakpoints, switches=switches)
    assert best.end.shape == (2, min(switches, 3) + 1)
    for c, mark in enumerate(marks):
        inner = [end for end in breakpoints if end < mark]
        expected = reference.switching(description, rounds[:mark], inner, switches)
        assert abs(best.value[c] - expected) <= tolerance(K, f, expected)
        ends = [0, *best.end[c][best.end[c] > 0].tolist()]
        assert ends[-1] == mark
        own = reference.piecewise(description, rounds[:mark], ends[1:-1])
        assert abs(best.value[c] - own) <= tolerance(K, f, own)


def test_switches_avoid_constraints_that_contradict_each_other() -> None:
    """No action meets both limits: the change comes after round 1 or 2, and the losses prefer round 1."""
    K, f = Box(0.0, 1.0, dim=1), [losses.Distance([c]) for c in (0.0, 1.0, 0.0, 1.0)]
    low, high = constraints.Affine([1.0], 0.25), constraints.Affine([-1.0], -0.75)
    best = hindsight.best_piecewise(K, f, [low, None, high, None], breakpoints=[1, 2, 3], switches=1)
    assert best.end.tolist() == [1, 4]
    assert best.point.ravel() == pytest.approx([0.0, 0.75], abs=1e-6)
    both = hindsight.best_piecewise(K, f, [low, high, high, None], breakpoints=[2])
    assert not both.feasible
    assert np.isnan(both.value)
    assert np.isnan(both.path_length)
    assert np.isnan(both.point).all()


def test_no_breakpoints_leave_the_best_fixed_action() -> None:
    description, rounds = random_rounds("Ball", "LeastSquares", "rows", seed=4)
    K, f, g = objects(description, rounds)
    best, one = hindsight.best_piecewise(K, f, g, breakpoints=[]), hindsight.best_fixed(K, f, g)
    assert best.value == one.value
    np.testing.assert_array_equal(best.point[0], one.point)


def test_comparators_are_ordered() -> None:
    """Each may choose among more actions than the next."""
    problem, marks = problems.get("olr"), [10, 40]
    fixed = hindsight.best_fixed(problem, 0, [0, 1], marks).value
    blocks = hindsight.best_piecewise(problem, 0, [0, 1], marks, breakpoints=[10, 20, 30])
    dynamic = hindsight.best_dynamic(problem, 0, [0, 1], 40)
    mean = hindsight.best_in_expectation(problem, 0, [0, 1], marks, rows="each").value
    largest = hindsight.best_in_expectation(problem, 0, [0, 1], marks, rows="max").value
    slack = 1.0 + 1e-6
    assert (blocks.value <= fixed * slack).all()
    assert (dynamic.running_value[:, [9, 39]] <= blocks.value * slack).all()
    assert (mean <= largest * slack).all()
    assert (largest <= fixed * slack).all()
    assert (mean[:, 1] < fixed[:, 1] - 1.0).all()


# ---------------------------------------------------------------------------------------------------- in expectation


@pytest.mark.parametrize("rows", ["each", "max"])
@pytest.mark.parametrize(
    ("kind", "loss", "limit"),
    [
        ("Box", "Linear", "rows"),
        ("Ball", "Norm", "row"),
        ("Simplex", "LeastSquares", "rows"),
        ("Box", "Distance", "NormBall"),
    ],
)
def test_the_average_agrees_with_one_program(kind: str, loss: str, limit: str, rows: str) -> None:
    description, rounds = random_rounds(kind, loss, limit, seed=13, slack=-0.02 if limit == "rows" else 0.05)
    K, f, g = objects(description, rounds)
    marks = [2, 5, T]
    best = hindsight.best_in_expectation(K, f, g, marks, rows=rows)
    for c, mark in enumerate(marks):
        expected = reference.in_expectation(description, rounds[:mark], rows)
        if np.isinf(expected):
            assert not best.feasible[c]
            assert np.isnan(best.value[c])
            continue
        assert abs(best.value[c] - expected) <= tolerance(K, f, expected)
        point = best.point[c]
        values = np.array([own.rows(point) for own in g[:mark]])
        total = values.sum(axis=0).max() if rows == "each" else values.max(axis=1).sum()
        assert total <= 1e-7 * mark


def test_an_average_that_no_action_satisfies() -> None:
    """The average of the second half makes the whole feasible again: sets of averages are not nested."""
    K, f = Box(0.0, 1.0, dim=1), [losses.Distance([0.0])] * 4
    g = [constraints.Affine([-1.0], b) for b in (-1.5, -1.2, -0.2, 0.5)]
    best = hindsight.best_in_expectation(K, f, g, [1, 2, 3, 4])
    assert best.feasible.tolist() == [False, False, True, True]
    assert np.isnan(best.value).tolist() == [True, True, False, False]
    assert best.point[2:, 0] == pytest.approx([2.9 / 3, 2.4 / 4], abs=1e-8)


def test_rows_that_are_switched_off_add_nothing() -> None:
    K, f = Box(0.0, 1.0, dim=2), [losses.Linear([-1.0, -1.0])] * 3
    g = [
        constraints.Affine(np.eye(2), [0.5, np.inf]),
        None,
        constraints.Affine(np.eye(2), [0.1, 0.4]),
    ]
    assert hindsight.best_in_expectation(K, f, g).point == pytest.approx([0.3, 0.4], abs=1e-8)
    curved = [constraints.Function(lambda x: float(x[0]) - 0.5, lambda x: np.eye(2)[0]), None, g[2].select(0)]
    assert hindsight.best_in_expectation(K, f, curved).point == pytest.approx([0.3, 1.0], abs=1e-6)
    assert hindsight.best_in_expectation(K, f).point == pytest.approx([1.0, 1.0], abs=1e-8)


def test_different_numbers_of_rows_can_only_be_summed_by_the_largest() -> None:
    K, f = Box(0.0, 1.0, dim=2), [losses.Linear([-1.0, -1.0])] * 2
    g = [constraints.Affine(np.eye(2), [0.5, 0.5]), constraints.Affine([1.0, 0.0], 0.1)]
    with pytest.raises(InvalidInput, match=r'rows: expected "max", since .* different numbers of rows \(\[1, 2\]\)'):
        hindsight.best_in_expectation(K, f, g)
    best = hindsight.best_in_expectation(K, f, g, rows="max")
    assert best.value == pytest.approx(-2.0 * (0.3 + 0.3 + 0.0), abs=0.9)
    assert max(best.point) - 0.5 + best.point[0] - 0.1 <= 1e-8


# ------------------------------------------------------------------------------------------------ one point, mistakes


@pytest.mark.parametrize("K", [Box(0.5, 0.5, dim=2), Ball([0.5, 0.5], 0.0), Simplex(1)], ids=["box", "ball", "simplex"])
def test_a_set_of_one_point(K: Any) -> None:
    n = K.dim
    x = np.full(n, 0.5) if n == 2 else np.ones(1)
    norm = losses.Norm(np.eye(n), np.zeros(n))
    black_box = losses.Function(lambda y: float(np.sum(y)), lambda y: np.ones(n))
    possible, impossible = constraints.Affine(np.ones(n), x.sum()), constraints.Affine(np.ones(n), 0.9 * x.sum())
    f, g = [norm, black_box, losses.Distance(np.zeros(n))], [possible, None, possible]
    sums = np.cumsum([np.linalg.norm(x), x.sum(), x @ x / 2])
    fixed = hindsight.best_fixed(K, f, g, [1, 3])
    assert fixed.value == pytest.approx(sums[[0, 2]], rel=1e-14)
    np.testing.assert_array_equal(fixed.point, np.stack([x, x]))
    dynamic = hindsight.best_dynamic(K, f, g)
    assert dynamic.running_value == pytest.approx(sums, rel=1e-14)
    assert dynamic.path_length == 0.0
    assert hindsight.best_in_expectation(K, f, g).value == pytest.approx(sums[-1], rel=1e-14)
    assert hindsight.best_piecewise(K, f, g, breakpoints=[1]).value == pytest.approx(sums[-1], rel=1e-14)
    g[2] = impossible
    assert hindsight.best_fixed(K, f, g, [2, 3]).feasible.tolist() == [True, False]
    assert hindsight.best_dynamic(K, f, g).feasible.tolist() == [True, True, False]
    assert not hindsight.best_in_expectation(K, f, g).feasible


K2, F2, OLR = Box(0.0, 1.0, dim=2), [losses.Distance([0.0, 0.0])] * 3, problems.get("olr")
FIXED, DYNAMIC, PIECEWISE = hindsight.best_fixed, hindsight.best_dynamic, hindsight.best_piecewise
WRONG: dict[str, tuple[Any, list[Any], dict[str, Any], str]] = {
    "first argument": (FIXED, [3, F2], {}, "best_fixed: expected a problem, or a set K and lists, got int 3"),
    "nothing": (DYNAMIC, [], {}, "best_dynamic: expected a problem, or a set K and lists, got None"),
    "seed": (FIXED, [OLR, -1, [0], [3]], {}, "seed: expected a non-negative integer, got int -1"),
    "word as seed": (DYNAMIC, [OLR, "a", [0]], {}, "seed: expected a non-negative integer, got str 'a'"),
    "trials": (DYNAMIC, [OLR, 0, [-1]], {}, "trials: expected trial numbers from 0 on"),
    "rounds": (DYNAMIC, [OLR, 0, [0], 0], {}, "rounds: expected a positive integer, got int 0"),
    "checkpoints": (FIXED, [OLR, 0, [0], [0]], {}, "checkpoints: expected numbers of rounds from 1 on"),
    "late checkpoints": (FIXED, [K2, F2, None, [4]], {}, "checkpoints: expected at most 3, the rounds given, got 4"),
    "lengths": (FIXED, [K2, F2, [None]], {}, "constraints: expected 3 entries, as many as there are losses, got 1"),
    "no rounds": (FIXED, [K2, []], {}, "the number of rounds: expected a positive integer, got int 0"),
    "a single loss": (DYNAMIC, [K2, F2[0]], {}, "losses: expected a list with an entry per round, got Distance"),
    "not a loss": (DYNAMIC, [K2, [F2[0], 1.0]], {}, r"losses\[1\]: expected a Loss or None, got float 1.0"),
    "a loss as constraint": (DYNAMIC, [K2, F2, F2], {}, r"constraints\[0\]: expected a Constraint or None, got Dist"),
    "dimension": (DYNAMIC, [K2, [losses.Linear([1.0])]], {}, r"losses\[0\]: expected dimension 2 as that of K, got 1"),
    "trials that do not fit": (
        DYNAMIC,
        [K2, [losses.Linear(np.ones((2, 2))), losses.Linear(np.ones((3, 2)))]],
        {},
        r"losses\[1\]: expected leading axes that broadcast with \(2,\), got \(3,\)",
    ),
    "unbounded": (DYNAMIC, [Box(0.0, np.inf, dim=2), F2], {}, "K: expected a set of finite diameter, got Box"),
    "late breakpoint": (PIECEWISE, [K2, F2], {"breakpoints": [3]}, "breakpoints: expected rounds before the last, 3"),
    "unsorted breakpoints": (PIECEWISE, [K2, F2], {"breakpoints": [2, 1]}, "breakpoints: expected .* increasing order"),
    "switches": (
        PIECEWISE,
        [K2, F2],
        {"breakpoints": [1], "switches": -1},
        "switches: expected a non-negative integer",
    ),
    "rows": (hindsight.best_in_expectation, [K2, F2], {"rows": "all"}, 'rows: expected "each" or "max", got str'),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case: str) -> None:
    find, arguments, options, message = WRONG[case]
    with pytest.raises(InvalidInput, match=message):
        find(*arguments, **options)


def test_a_missing_argument_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="best_fixed: missing a required argument: 'trials'"):
        hindsight.best_fixed(problems.get("olr"), 0)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="best_dynamic: got an unexpected keyword argument 'seed'"):
        hindsight.best_dynamic(K2, F2, seed=0)  # type: ignore[call-overload]


def test_losses_can_be_divided_into_trials() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 4))
    for f in (
        losses.Norm(rng.normal(size=(2, 3, 5, 4)), rng.normal(size=(2, 3, 5))),
        losses.LeastSquares(rng.normal(size=(3, 5, 4)), rng.normal(size=(3, 5))),
        losses.Hinge(rng.normal(size=(2, 1, 4)), rng.choice([-1.0, 1.0], size=3)),
        losses.Logistic(rng.normal(size=4), rng.choice([-1.0, 1.0], size=(2, 3))),
        losses.Quadratic(np.eye(4), rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 1))),
        losses.Linear(rng.normal(size=(2, 3, 4))),
        losses.Distance(rng.normal(size=(2, 3, 4))),
    ):
        whole = f.value(x)
        index = (1, 2)[2 - len(f.batch) :]
        one = f.trials(index)
        assert one.batch == ()
        assert float(one.value(x[1, 2])) == pytest.approx(float(whole[1, 2]), rel=1e-14)
        assert one.trials(0) is one

    class Custom(losses.Linear):
        data_axes = ()

    with pytest.raises(InvalidInput, match="Custom does not say the axes of its data"):
        Custom(np.ones((2, 3))).trials(0)


# ------------------------------------------------------------------------------------------------- bounds of the theory


class Moving:
    """Random losses and constraints, each of which some point of K satisfies; one stream per trial."""

    def __init__(self, seed: int, loss: str, rounds: int = 80, trials: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.K, self.start = Box(-1.0, 1.0, dim=N), np.zeros((trials, N))
        drift = np.cumsum(0.2 * rng.normal(size=(rounds, trials, N)), axis=0)
        inner = self.K.project(0.7 * drift)
        A = rng.normal(size=(rounds, trials, 2, N))
        b = np.matvec(A, inner) + rng.uniform(0.0, 0.1, (rounds, trials, 2))
        kind = losses.Distance if loss == "Distance" else losses.Linear
        self.losses = [kind(c) for c in (drift if loss == "Distance" else rng.normal(size=drift.shape))]
        self.constraints = [constraints.Affine(*own) for own in zip(A, b, strict=True)]
        self.lipschitz = max(float(np.linalg.norm(f.gradient(self.start), axis=-1).max()) for f in self.losses)
        self.lipschitz += np.sqrt(N) if loss == "Distance" else 0.0  # the reach of K from 0

    def play(self, learner: Any) -> tuple[Any, Any, Any]:
        """The loss, the step and the norm of the gradient in each round, (trials, rounds)."""
        records, norms = [], []
        for f, g in zip(self.losses, self.constraints, strict=True):
            norms.append(np.linalg.norm(f.gradient(learner.ask()), axis=-1))
            records.append(learner.tell(f, g))
        taken = [np.broadcast_to(own.step, own.loss.shape) for own in records]
        return np.stack([own.loss for own in records], axis=-1), np.stack(taken, axis=-1), np.stack(norms, axis=-1)


LEARNERS: dict[str, Any] = {
    "clasp": lambda s: CLASP(s.K, start=s.start),
    "clasp, constant": lambda s: CLASP(s.K, start=s.start, steps=steps.Constant(0.3)),
    "clasp, worst row": lambda s: CLASP(s.K, start=s.start, rows="worst"),
    "clasp, adaptive": lambda s: CLASP(s.K, start=s.start, steps=steps.Adaptive(D=s.K.diameter)),
    "clasp, callable": lambda s: CLASP(s.K, start=s.start, steps=lambda t: 1.0 / (1.0 + t)),
    "recoo": lambda s: RECOO(s.K, start=s.start),
}
STRONGLY_CONVEX: dict[str, Any] = {
    "clasp, strongly convex": lambda s: CLASP(s.K, start=s.start, steps=steps.StronglyConvex(1.0)),
    "recoo, strongly convex": lambda s: RECOO(s.K, start=s.start, strong_convexity=1.0),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("loss", "name"),
    [
        *((loss, name) for loss in ("Linear", "Distance") for name in LEARNERS),
        *(("Distance", n) for n in STRONGLY_CONVEX),
    ],
)
def test_dynamic_regret_is_below_its_bound_after_every_round(loss: str, name: str, seed: int) -> None:
    stream = Moving(seed, loss)
    learner = (LEARNERS | STRONGLY_CONVEX)[name](stream)
    paid, taken, norms = stream.play(learner)
    best = hindsight.best_dynamic(stream.K, stream.losses, stream.constraints)
    assert best.feasible.all()
    regret = np.cumsum(paid, axis=-1) - best.running_value
    bound = learner.dynamic_bounds(best.increments, lipschitz_f=stream.lipschitz)
    assert bound.shape == regret.shape
    assert (regret <= bound + 1e-9).all()
    observed = theory.dynamic_bounds(taken, best.increments, diameter=stream.K.diameter, lipschitz_f=norms)
    assert (regret <= observed + 1e-9).all()
    if name != "clasp, adaptive" and name in LEARNERS:
        assert (observed <= bound + 1e-9).all()


def test_the_dynamic_bound_without_a_path_is_the_static_one() -> None:
    rounds, constants = np.arange(1, 50), {"diameter": 2.0, "lipschitz_f": 3.0}
    for schedule in (steps.Power(0.5), steps.Constant(0.1), steps.Adaptive(D=2.0)):
        static = theory.bounds(schedule, rounds, lipschitz_g=1.0, **constants).regret
        assert theory.dynamic_bounds(schedule, np.zeros(49), **constants) == pytest.approx(static, rel=1e-12)
    recoo = RECOO(Ball(0.0, 1.0, dim=2))
    static = recoo.bounds(rounds, lipschitz_f=3.0, lipschitz_g=1.0).regret
    assert recoo.dynamic_bounds(np.zeros(49), lipschitz_f=3.0) == pytest.approx(static, rel=1e-12)


def test_steps_of_zero_do_not_count_in_the_dynamic_bound() -> None:
    """Rounds without a gradient before the first step, and between steps."""
    bound = theory.dynamic_bounds(
        [0.0, 0.5, 0.0, 0.25], [0.0, 1.0, 1.0, 1.0], diameter=1.0, lipschitz_f=[0.0, 2.0, 0.0, 2.0]
    )
    assert bound == pytest.approx([0.0, 2.0, 4.0, 7.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"increments": [1.0, 0.0]}, "increments: expected shape .* with 0 as the first"),
        ({"increments": [0.0, -1.0]}, "increments: expected non-negative numbers, got -1.0"),
        ({"increments": [0.0, np.nan]}, "increments: expected finite numbers, got nan"),
        ({"steps": [1.0]}, r"steps: expected shape \(..., 2\) as that of increments, got \(1,\)"),
        ({"steps": [1.0, 2.0]}, "steps: expected steps that never increase"),
        ({"lipschitz_f": [-1.0, 1.0]}, "lipschitz_f: expected non-negative numbers"),
        ({"diameter": -1.0}, "diameter: expected a non-negative number"),
        (
            {"steps": steps.Adaptive(D=1.0), "lipschitz_f": [1.0, 1.0]},
            "lipschitz_f: expected a number for adaptive steps",
        ),
    ],
)
def test_wrong_arguments_of_the_dynamic_bound(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"steps": [1.0, 1.0], "increments": [0.0, 1.0], "diameter": 1.0, "lipschitz_f": 1.0}
    with pytest.raises(InvalidInput, match=message):
        theory.dynamic_bounds(**(arguments | change))


def test_a_window_has_no_dynamic_bound() -> None:
    with pytest.raises(InvalidInput, match="window: expected 1 for a bound on dynamic regret, got None"):
        CLASP(Ball(0.0, 1.0, dim=2), window=None).dynamic_bounds([0.0], lipschitz_f=1.0)
