"""Whatever goes wrong in `tell`, all of the learner is as it was: what it shows and stores, and how it goes on."""

from __future__ import annotations

import numpy as np
import pytest
from streams import content

from cocopt import CLASP, Box, constraints, losses, steps
from cocopt.errors import CutLimit, InfeasibleRound, InvalidInput, SolverFailure
from cocopt.geometry import ladder, structured
from cocopt.kernels.status import UNCONVERGED
from cocopt.solvers.solution import Solution

nan, inf = np.nan, np.inf
OPTIONS = [
    {},
    {"rows": "worst", "window": 3},
    {"window": None},
    {"steps": steps.Adaptive(1.0), "window": 2},
    {"steps": steps.StronglyConvex(1.0), "infeasible": "nearest"},
]


def good_round(rng, batch):
    f = losses.Distance(rng.normal(size=(*batch, 3)))
    g = constraints.Affine(rng.uniform(0.0, 1.0, (*batch, 2, 3)), rng.uniform(0.2, 0.8, (*batch, 2)))
    return f, g


def make(batch=(), **options):
    """A learner in the middle of its life."""
    rng = np.random.default_rng(1)
    learner = CLASP(Box(0.0, 1.0, dim=3), start=np.full((*batch, 3), 0.5), **options)
    for _ in range(5):
        learner.tell(*good_round(rng, batch))
    return learner


def check_refused(tmp_path, error, options, batch, *arguments, match=None, **keywords):
    """The round is refused, nothing has changed, and the run goes on as if it had not been revealed."""
    learner, twin = make(batch, **options), make(batch, **options)
    before, whole = content(learner, tmp_path / "a.npz"), learner._state
    with pytest.raises(error, match=match):
        learner.tell(*arguments, **keywords)
    assert learner._state is whole
    assert content(learner, tmp_path / "a.npz") == before
    rng = np.random.default_rng(2)
    for _ in range(4):
        f, g = good_round(rng, batch)
        for one, other in zip(learner.tell(f, g), twin.tell(f, g), strict=True):
            np.testing.assert_array_equal(one, other)
    assert content(learner, tmp_path / "a.npz") == content(twin, tmp_path / "b.npz")


def spoiled(shape, value):
    array = np.ones(shape)
    array.flat[-1] = value
    return array


def bad_rounds(batch):
    """(what the message must name, arguments and keywords of tell)."""
    f, g = losses.Linear(np.ones(3)), constraints.Affine(np.ones(3), 1.0)
    for value in (nan, inf, -inf):
        yield "H", (losses.LeastSquares(spoiled((*batch, 2, 3), value), np.ones((*batch, 2))), g), {}
        yield "center", (losses.Distance(spoiled((*batch, 3), value)), g), {}
        yield "A", (f, constraints.Affine(spoiled((*batch, 2, 3), value), np.ones((*batch, 2)))), {}
        yield "center", (f, constraints.NormBall(spoiled((*batch, 3), value), 1.0)), {}
        yield "P", (f, constraints.Quadratic(spoiled((*batch, 3, 3), value), np.ones(3), 0.0)), {}
        yield "d", (f, constraints.SecondOrder(np.eye(3), np.zeros(3), np.zeros(3), -abs(value))), {}
        yield "played", (f, g), {"played": spoiled((*batch, 3), value)}
    yield "b", (f, constraints.Affine(np.ones((*batch, 2, 3)), spoiled((*batch, 2), -inf))), {}
    yield "overflow", (losses.LeastSquares(np.full((2, 3), 1e200), np.zeros(2)), g), {}
    yield "value", (losses.Function(lambda x: nan, lambda x: x), g), {}
    yield "value", (losses.Function(lambda x: "much", lambda x: x), g), {}
    yield "gradient", (losses.Function(lambda x: 0.0, lambda x: x * inf), g), {}
    yield "gradient", (losses.Function(lambda x: 0.0, lambda x: x[:1]), g), {}
    yield "value", (f, constraints.Function(lambda x: inf, lambda x: x)), {}
    yield "gradient", (f, constraints.Function(lambda x: 1.0 + x.sum(), lambda x: x * nan)), {}
    yield "gradient", (f, constraints.Function(lambda x: 1.0 + x.sum(), lambda x: x[:1])), {}
    yield "loss: expected dimension 3", (losses.Linear(np.ones(2)), g), {}
    yield "constraint: expected dimension 3", (f, constraints.Affine(np.ones(4), 1.0)), {}
    yield "loss: expected leading axes", (losses.Linear(np.ones((5, *batch, 3))), g), {}
    yield "constraint: expected leading axes", (f, constraints.NormBall(np.ones((5, *batch, 3)), 1.0)), {}
    yield "played: expected shape", (f, g), {"played": np.ones(4)}
    yield "played: expected shape", (f, g), {"played": np.ones((5, *batch, 3))}
    yield "loss: expected an object", (g, None), {}
    yield "constraint: expected an object", (None, f), {}
    yield "constraint: expected an object", (f, "x ≤ 1"), {}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("case", range(len(list(bad_rounds(())))))
def test_bad_input(tmp_path, case, batch):
    name, arguments, keywords = list(bad_rounds(batch))[case]
    options = OPTIONS[case % len(OPTIONS)]
    check_refused(tmp_path, InvalidInput, options, batch, *arguments, match=name, **keywords)


@pytest.mark.parametrize("answer", [lambda t: -1.0, lambda t: nan, lambda t: "small", lambda t: [1.0, 2.0]])
def test_a_schedule_that_goes_wrong(tmp_path, answer):
    def rule(t):
        return 0.5 if t != 6 or healed else answer(t)

    healed = False
    learner = make(steps=rule)
    before = content(learner, tmp_path / "a.npz")
    f, g = good_round(np.random.default_rng(3), ())
    with pytest.raises(InvalidInput, match=r"steps: expected .* in round 6"):
        learner.tell(f, g)
    assert content(learner, tmp_path / "a.npz") == before
    healed = True
    assert learner.tell(f, g).step == 0.5


@pytest.mark.parametrize("options", [options for options in OPTIONS if "infeasible" not in options], ids=str)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_an_infeasible_round(tmp_path, options, batch):
    rhs = np.full((*batch, 1), 0.5)
    rhs.flat[-1] = -1.0  # only the last trial's, yet the whole batch stays
    g = constraints.Affine(np.ones((*batch, 1, 3)), rhs)
    check_refused(tmp_path, InfeasibleRound, options, batch, losses.Linear(-np.ones(3)), g)
    with pytest.raises(InfeasibleRound) as caught:
        make(batch, **options).tell(losses.Linear(-np.ones(3)), g)
    assert caught.value.trials == ((2,) if batch else (0,))
    np.testing.assert_allclose(caught.value.least_violation, [1.0])


def test_constraints_that_only_the_window_makes_infeasible(tmp_path):
    learner = CLASP(Box(-1.0, 1.0, dim=1), window=2)
    learner.tell(None, constraints.Affine([1.0], -0.5))
    before = content(learner, tmp_path / "a.npz")
    contrary = constraints.Affine([-1.0], -0.5)
    with pytest.raises(InfeasibleRound):
        learner.tell(None, contrary)
    assert content(learner, tmp_path / "a.npz") == before
    learner.tell()  # the first constraint leaves the window
    learner.tell(None, contrary)
    np.testing.assert_allclose(learner.ask(), [0.5])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("error", [SolverFailure("no method"), CutLimit("cuts", cuts=9, violation=1.0), MemoryError()])
def test_a_method_that_raises(tmp_path, monkeypatch, options, error):
    def failing(*_):
        raise error

    g = constraints.LogSumExp(np.eye(3), np.full(3, 1.2))
    with monkeypatch.context() as patch:
        patch.setattr(ladder, "METHODS", [method._replace(solve=failing) for method in ladder.METHODS])
        learner = make((3,), **options)
        before = content(learner, tmp_path / "a.npz")
        with pytest.raises(type(error)):
            learner.tell(losses.Linear(-np.ones(3)), g)
        assert content(learner, tmp_path / "a.npz") == before
    twin = make((3,), **options)
    learner.tell(losses.Linear(-np.ones(3)), g)
    twin.tell(losses.Linear(-np.ones(3)), g)
    assert content(learner, tmp_path / "a.npz") == content(twin, tmp_path / "b.npz")


def test_methods_that_all_fail(tmp_path, monkeypatch):
    """No method converges, and no least violation is found: an error, not an unchecked point."""

    def lost(request):
        return Solution(request.point, None, UNCONVERGED)

    monkeypatch.setattr(ladder, "METHODS", [method._replace(solve=lost) for method in ladder.METHODS])
    monkeypatch.setattr(structured, "least_violation", lambda *_: None)
    g = constraints.LogSumExp(np.eye(3), np.full(3, 1.2))
    check_refused(tmp_path, SolverFailure, {}, (), losses.Linear(-np.ones(3)), g, match="no method")


class Bomb:
    """½‖x − c‖² − r with a fuse: the so-manieth call of its value or gradient raises."""

    def __init__(self, part, call, error):
        self.part, self.left, self.error = part, call, error

    def burn(self, part):
        self.left -= part == self.part
        if part == self.part and self.left == 0:
            raise self.error

    def value(self, x):
        self.burn("value")
        return float((x - 0.1) @ (x - 0.1)) / 2 - 0.01

    def gradient(self, x):
        self.burn("gradient")
        return x - 0.1


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("part", ["value", "gradient"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
def test_a_loss_that_raises(tmp_path, error, part, batch):
    calls = 2 if batch else 1  # in every trial's turn
    for call in range(1, calls + 1):
        bomb = Bomb(part, call, error())
        f = losses.Function(bomb.value, bomb.gradient)
        g = constraints.Affine(np.ones(3), 1.0)
        check_refused(tmp_path, error, {"window": 3}, batch, f, g)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("part", ["value", "gradient"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_constraint_that_raises_during_the_projection(tmp_path, error, part, options):
    """Before the projection, at its start and in the midst of the cutting planes, until it goes through."""
    learner = make(**options)
    before = content(learner, tmp_path / "a.npz")
    for call in range(1, 1000):
        bomb = Bomb(part, call, error())
        try:
            learner.tell(losses.Linear(np.ones(3)), constraints.Function(bomb.value, bomb.gradient))
        except error:
            if call % 5 == 1:
                assert content(learner, tmp_path / "a.npz") == before
        else:
            break
    assert call > 3
    twin = make(**options)
    calm = Bomb(part, -1, error())
    twin.tell(losses.Linear(np.ones(3)), constraints.Function(calm.value, calm.gradient))
    np.testing.assert_array_equal(learner.ask(), twin.ask())
    assert learner.ledger == twin.ledger
    assert learner.certificate() == twin.certificate()
