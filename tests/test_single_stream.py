"""One compiled call per round of one stream finds what the ordinary way finds, and leaves to it whatever is unusual."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from reference import projections as reference

import cocopt
from cocopt import CLASP, Ball, Box, Simplex, constraints, losses, steps
from cocopt.errors import InfeasibleRound, InvalidInput

N = 5
SETS = {
    "box": Box(np.linspace(-1.0, 0.0, N), [0.5, 1.0, np.inf, 2.0, 1.0]),
    "ball": Ball(np.full(N, 0.2), 1.5),
    "simplex": Simplex(N, total=2.0),
}
SCHEDULES = {
    "power": steps.Power(0.4, 2.0),
    "constant": steps.Constant(0.3),
    "strongly-convex": steps.StronglyConvex(0.7),
    "adaptive": steps.Adaptive(2.0, 0.5),
    "function": steps.Function(lambda t: 1.0 / (2.0 + t)),
}


def draw_losses(rng: np.random.Generator) -> list[losses.Loss]:
    """One loss of every kind; some data in Fortran order or strided."""
    H, u = rng.normal(size=(3, N)), rng.normal(size=2 * N)[::2]
    root = rng.normal(size=(N, N))
    return [
        losses.Norm(H, rng.normal(size=3)),
        losses.Norm(np.asfortranarray(H), rng.normal(size=6)[::2]),
        losses.LeastSquares(H[:, ::-1], rng.normal(size=3)),
        losses.Quadratic(root @ root.T, u, rng.normal()),
        losses.Distance(u),
        losses.Linear(u),
        losses.Hinge(u, rng.choice([-1.0, 1.0])),
        losses.Logistic(u, 30.0 * rng.choice([-1.0, 1.0])),
        losses.Absolute(u, rng.normal()),
        losses.Huber(u, rng.normal(), 0.3),
        losses.Quantile(u, rng.normal(), 0.8),
    ]


def draw_rows(rng: np.random.Generator, inside: np.ndarray, M: int) -> constraints.Affine:
    """Rows that the point ``inside`` satisfies."""
    A = rng.normal(size=(M, N))
    return constraints.Affine(A, A @ inside + rng.uniform(0.0, 0.3, M))


def count_compiled(learner: CLASP, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A list that gets one entry per round that was asked for: whether it was played by the kernel."""
    play, used = learner.stream.play, []

    def counting(*arguments):
        done = play(*arguments)
        used.append(done is not None)
        return done

    monkeypatch.setattr(learner.stream, "play", counting)
    return used


def ordinary(*arguments, **options) -> CLASP:
    learner = CLASP(*arguments, **options)
    learner.stream = None
    return learner


def assert_same(one: CLASP, other: CLASP, tol: float = 1e-11) -> None:
    np.testing.assert_allclose(one.ask(), other.ask(), rtol=0, atol=tol)
    assert one.t == other.t
    for name, value in one.ledger.as_dict().items():
        assert value == pytest.approx(getattr(other.ledger, name), rel=1e-10, abs=1e-10), name
    assert float(one.certificate().value) == pytest.approx(float(other.certificate().value), rel=1e-10)
    assert one.certificate().reasons == other.certificate().reasons


@pytest.mark.parametrize("rows", ["all", "worst"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", SETS)
def test_equals_the_ordinary_way(kind, schedule, rows, monkeypatch):
    K, rng = SETS[kind], np.random.default_rng(3)
    inside = K.project(np.full(N, 0.3))
    options = {"start": K.project(rng.normal(size=N)), "steps": SCHEDULES[schedule], "rows": rows}
    fast, slow = CLASP(K, **options), ordinary(K, **options)
    used, played = count_compiled(fast, monkeypatch), 0
    for t in range(12):
        for loss in draw_losses(rng):
            constraint = draw_rows(rng, inside, M=(1, 4, 7)[t % 3])
            mine, theirs = fast.tell(loss, constraint), slow.tell(loss, constraint)
            played += 1
            assert mine.t == theirs.t == played
            assert mine.method == theirs.method == "kernel"
            assert mine.feasible is theirs.feasible
            for name in ("loss", "rows", "violation", "step"):
                got, expected = getattr(mine, name), getattr(theirs, name)
                assert type(got) is type(expected), name
                np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-11, err_msg=f"{name} {loss!r}")
    assert_same(fast, slow)
    assert used == [True] * played


def test_negative_log_over_a_simplex(monkeypatch):
    K, rng = Simplex(N), np.random.default_rng(0)
    fast, slow = CLASP(K), ordinary(K)
    used = count_compiled(fast, monkeypatch)
    for _ in range(30):
        returns, row = rng.uniform(0.5, 1.5, N), np.eye(N)[rng.integers(N)]
        for learner in (fast, slow):
            learner.tell(losses.NegativeLog(returns), constraints.Affine(row, 0.4))
    assert_same(fast, slow)
    assert all(used)


DESCRIPTIONS = {
    "box": ("Box", SETS["box"].lower, SETS["box"].upper),
    "ball": ("Ball", SETS["ball"].center, SETS["ball"].radius),
    "simplex": ("Simplex", N, 2.0),
}


@pytest.mark.parametrize("M", [1, 3])
@pytest.mark.parametrize("kind", SETS)
def test_equals_a_naive_loop(kind, M, monkeypatch):
    """Loss, step and projection as one writes them; the projection by CVXPY, polished."""
    K, rng = SETS[kind], np.random.default_rng(5)
    inside = K.project(np.full(N, 0.3))
    x, total, ccv2 = inside, 0.0, 0.0
    learner = CLASP(K, start=x, beta=0.5)
    used = count_compiled(learner, monkeypatch)
    for t in range(1, 16):
        H, y, constraint = rng.normal(size=(2, N)), rng.normal(size=2), draw_rows(rng, inside, M)
        residual, rows = H @ x - y, constraint.A @ x - constraint.b
        total, ccv2 = total + np.linalg.norm(residual), ccv2 + max(rows.max(), 0.0) ** 2
        target = x - t**-0.5 * H.T @ residual / np.linalg.norm(residual)
        x = reference.project(DESCRIPTIONS[kind], ("Affine", constraint.A, constraint.b), target)
        learner.tell(losses.Norm(H, y), constraint)
        np.testing.assert_allclose(learner.ask(), x, atol=1e-9)
    assert float(learner.ledger.loss) == pytest.approx(total, rel=1e-9)
    assert float(learner.ledger.ccv2) == pytest.approx(ccv2, rel=1e-8)
    assert used == [True] * 15


LOSS, ROW = losses.Linear(np.ones(N)), constraints.Affine(np.ones((2, N)), [1.0, 2.0])
BAD = {
    "a NaN in the loss": (losses.Norm(np.full((2, N), np.nan), np.zeros(2)), ROW),
    "an infinite gradient": (losses.Linear(np.full(N, 1e200)), ROW),
    "a NaN in a row": (LOSS, constraints.Affine(np.full((2, N), np.nan), [1.0, 2.0])),
    "another dimension": (losses.Linear(np.ones(N + 1)), ROW),
    "rows of another dimension": (LOSS, constraints.Affine(np.ones((2, N + 1)), [1.0, 2.0])),
    "a batch": (losses.Linear(np.ones((3, N))), ROW),
    "an indefinite quadratic": (losses.Quadratic(-np.eye(N), np.zeros(N)), ROW),
    "an empty round": (LOSS, constraints.Affine(np.ones((2, N)), [-100.0, 2.0])),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_unusual_is_left_to_the_ordinary_way(what):
    """The same error, the learner unchanged, and the same next round."""
    start = np.full(N, 0.3)
    fast, slow = (make(Box(-1.0, 1.0, dim=N), start=start) for make in (CLASP, ordinary))
    for learner in (fast, slow):
        learner.tell(losses.Distance(np.full(N, 0.2)), ROW)
    before, ledger = fast.ask(), fast.ledger
    errors = []
    for learner in (fast, slow):
        with np.errstate(all="ignore"), pytest.raises((InvalidInput, InfeasibleRound)) as caught:
            learner.tell(*BAD[what])
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert fast.ask() is before
    assert fast.ledger is ledger
    for learner in (fast, slow):
        learner.tell(LOSS, ROW)
    assert_same(fast, slow)


def test_unusual_rounds_in_between():
    """A switched-off row, a round without a loss or a constraint, another action, an infeasible round, and back."""
    rng, K = np.random.default_rng(8), Box(-1.0, 1.0, dim=N)
    options = {"steps": steps.Adaptive(1.0), "infeasible": "nearest"}
    fast, slow = CLASP(K, **options), ordinary(K, **options)
    idle = constraints.Affine(np.ones((2, N)), [0.5, np.inf])
    empty = constraints.Affine(np.ones((2, N)), [-50.0, 1.0])
    for t in range(40):
        loss, row = draw_losses(rng)[t % 11], draw_rows(rng, np.zeros(N), 2)
        revealed = [(loss, row), (None, row), (loss, None), (loss, idle), (loss, empty), (None, None)][t % 6]
        played = {"played": np.zeros(N)} if t % 7 == 3 else {}
        for learner in (fast, slow):
            learner.tell(*revealed, **played)
    assert_same(fast, slow)
    assert fast.ledger.infeasible_rounds > 0


def test_no_step_while_gradients_vanish():
    fast, slow = (make(Box(-1.0, 1.0, dim=N), steps=steps.Adaptive(1.0)) for make in (CLASP, ordinary))
    for center in (np.zeros(N), np.zeros(N), np.ones(N)):
        records = [learner.tell(losses.Distance(center), ROW) for learner in (fast, slow)]
        assert records[0].step == records[1].step
    assert_same(fast, slow)


def test_continues_bit_for_bit_after_loading(tmp_path):
    rng = np.random.default_rng(2)
    rounds = [(loss, draw_rows(rng, np.zeros(N), 3)) for loss in draw_losses(rng)]
    whole = CLASP(Box(-1.0, 1.0, dim=N), steps=steps.Adaptive(1.0))
    half = CLASP(Box(-1.0, 1.0, dim=N), steps=steps.Adaptive(1.0))
    for k, revealed in enumerate(rounds):
        whole.tell(*revealed)
        if k == 5:
            half.save(tmp_path / "state.npz")
            half = cocopt.load(tmp_path / "state.npz")
        half.tell(*revealed)
    assert whole.ask().tobytes() == half.ask().tobytes()
    assert whole.ledger == half.ledger
    assert whole.certificate() == half.certificate()


def test_results_are_independent_of_later_rounds():
    """What a round returned stays as it was, and what `ask` gave is read-only."""
    rng, learner = np.random.default_rng(4), CLASP(Box(-1.0, 1.0, dim=N))
    first = learner.tell(LOSS, ROW)
    x, ledger, rows = learner.ask(), learner.ledger, first.rows.copy()
    kept, sums = x.copy(), ledger.as_dict()
    for _ in range(5):
        learner.tell(draw_losses(rng)[0], draw_rows(rng, np.zeros(N), 2))
    assert not x.flags.writeable
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(first.rows, rows)
    assert ledger.as_dict() == sums


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
def test_a_copy_goes_on_by_itself(duplicate, monkeypatch):
    rng, learner = np.random.default_rng(6), CLASP(Box(-1.0, 1.0, dim=N))
    rounds = [(draw_losses(rng)[0], draw_rows(rng, np.zeros(N), 3)) for _ in range(6)]
    for loss, row in rounds[:3]:
        learner.tell(loss, row)
    twin = duplicate(learner)
    for loss, row in rounds[3:]:
        twin.tell(loss, row)
    assert (learner.t, twin.t) == (3, 6)
    used = count_compiled(learner, monkeypatch)
    for loss, row in rounds[3:]:
        learner.tell(loss, row)
    assert used == [True] * 3
    assert learner.ask().tobytes() == twin.ask().tobytes()
    assert learner.ledger == twin.ledger


def test_a_subclass_that_updates_otherwise_is_asked():
    class Lazy(CLASP):
        def update(self, memory, feedback):
            return super().update(memory, feedback)._replace(x=feedback.x)

    learner = Lazy(Box(-1.0, 1.0, dim=N), start=np.full(N, 0.1))
    learner.tell(LOSS, ROW)
    np.testing.assert_array_equal(learner.ask(), np.full(N, 0.1))
