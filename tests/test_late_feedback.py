"""Feedback that comes late, out of order, in parts or never."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from reference import late_feedback as naive

import cocopt
from cocopt import CLASP, CLASPF, RECOO, AdaGrad, Box, Simplex, constraints, losses, steps
from cocopt.errors import InfeasibleRound, InvalidInput, SuspiciousInput

N = 3
K = Box(0.0, 1.0, dim=N)
SCHEDULES = {
    "adaptive": (lambda: {}, lambda k, squares: np.sqrt(N / 2) / np.sqrt(squares)),
    "power": (lambda: {"beta": 0.5}, lambda k, squares: k**-0.5),
    "strongly convex": (lambda: {"m": 1.0}, lambda k, squares: 1 / k),
}


def random_events(seed: int, rounds: int, *, missing: bool = True, known: bool = True) -> list[Any]:
    """Plays and feedback with random delays; some halves come apart, some never. All rows hold at a common point."""
    rng = np.random.default_rng(seed)
    common = rng.uniform(0.2, 0.6, N)

    def row() -> Any:
        a = rng.normal(size=N)
        return a, float(a @ common) + rng.uniform(0.0, 0.1)

    events: list[tuple[float, int, Any]] = []
    order = itertools.count()
    for s in range(1, rounds + 1):
        events.append((float(s), next(order), ("play", row() if known and rng.random() < 0.3 else None)))
        center, constraint = rng.uniform(0, 1, N), row()
        when = s + 0.5 + rng.exponential(3.0)
        kind = rng.choice(["both", "apart", "loss", "constraint", "never"] if missing else ["both"])
        if kind == "both":
            events.append((when, next(order), ("tell", s, center, constraint)))
        if kind in ("apart", "loss"):
            events.append((when, next(order), ("tell", s, center, None)))
        if kind in ("apart", "constraint"):
            events.append((s + 0.5 + rng.exponential(3.0), next(order), ("tell", s, None, constraint)))
    return [event for _, _, event in sorted(events, key=lambda one: one[:2])]


def play(learner: Any, events: list[Any]) -> dict[int, np.ndarray]:
    """The actions by round."""
    actions = {}
    for event in events:
        if event[0] == "play":
            number, x = learner.play(known=None if event[1] is None else constraints.Affine(*event[1]))
            actions[number] = x
        else:
            _, number, center, row = event
            loss = None if center is None else losses.Distance(center)
            learner.tell(loss, None if row is None else constraints.Affine(*row), round=number)
    return actions


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(4))
def test_late_feedback_is_its_formula_and_the_certificate_a_proof(seed: int, schedule: str) -> None:
    options, step = SCHEDULES[schedule]
    events = random_events(seed, 25)
    learner = CLASP(K, start=np.full(N, 0.9), **options())
    actions = play(learner, events)
    expected, x, convex, strong = naive.run(np.full(N, 0.9), events, step)
    for number, action in expected.items():
        np.testing.assert_allclose(actions[number], action, rtol=0, atol=1e-7)
    np.testing.assert_allclose(learner.ask(), x, rtol=0, atol=1e-7)
    certificate = learner.certificate()
    assert certificate.value == pytest.approx(strong if schedule == "strongly convex" else convex, rel=1e-5)
    revealed = [event for event in events if event[0] == "tell"]
    with_loss = [(number, center) for _, number, center, _ in revealed if center is not None]
    applied = [row for *_, row in revealed if row is not None]
    known = [event[1] for event in events if event[0] == "play" and event[1] is not None]
    paid = sum(0.5 * (actions[number] - center) @ (actions[number] - center) for number, center in with_loss)
    assert learner.ledger.loss == pytest.approx(paid)
    assert certificate.value >= paid - naive.best_loss([center for _, center in with_loss], applied + known) - 1e-9
    violations = [
        max(0.0, *(a @ actions[number] - b for a, b in [row])) for _, number, _, row in revealed if row is not None
    ]
    assert learner.ledger.ccv1 == pytest.approx(sum(violations))
    assert learner.ledger.rounds == len({number for _, number, *_ in revealed})


def test_without_delay_it_is_the_ordinary_method() -> None:
    rng = np.random.default_rng(0)
    plain, late = CLASP(K), CLASP(K)
    for t in range(1, 40):
        f, g = losses.Distance(rng.uniform(0, 1, N)), constraints.Affine(rng.uniform(0, 1, N), 0.8)
        number, x = late.play()
        assert number == t
        np.testing.assert_allclose(x, plain.ask(), rtol=0, atol=1e-12)  # one of them by one compiled call
        record, again = plain.tell(f, g), late.tell(f, g, round=number)
        assert record[0] == again[0] == t
        np.testing.assert_allclose(record.rows, again.rows, rtol=0, atol=1e-12)
    for name, value in plain.ledger.as_dict().items():
        assert late.ledger.as_dict()[name] == pytest.approx(value, abs=1e-10)
    assert late.certificate().value == pytest.approx(plain.certificate().value)


@pytest.mark.parametrize("make", [CLASPF, RECOO])
def test_other_algorithms_step_from_the_iterate(make: Any) -> None:
    """A loss of round 1 that comes after that of round 2: along ∇f_1(x_1), from where round 2 led."""
    learner, reference = make(K, start=np.full(N, 0.5)), make(K, start=np.full(N, 0.5))
    (first, x), (second, _) = learner.play(), learner.play()
    c, d = np.array([1.0, 0.0, 0.2]), np.array([0.1, 0.9, 0.3])
    learner.tell(losses.Distance(d), round=second)
    learner.tell(losses.Distance(c), round=first)
    reference.tell(losses.Linear(x - d))
    reference.tell(losses.Linear(x - c))
    np.testing.assert_allclose(learner.ask(), reference.ask(), atol=1e-15)


def test_a_batch_equals_single_streams() -> None:
    rng = np.random.default_rng(3)
    starts = rng.uniform(0, 1, (2, N))
    together, apart = CLASP(K, start=starts), [CLASP(K, start=start) for start in starts]
    c, a, b = rng.uniform(0, 1, (4, 2, N)), rng.uniform(0, 1, (4, 2, 1, N)), rng.uniform(0.5, 1, (4, 2, 1))
    for learner in (together, *apart):
        for _ in range(4):
            learner.play()
    for s in (3, 1, 4, 2):
        together.tell(losses.Distance(c[s - 1]), constraints.Affine(a[s - 1], b[s - 1]), round=s)
        for i, learner in enumerate(apart):
            learner.tell(losses.Distance(c[s - 1, i]), constraints.Affine(a[s - 1, i], b[s - 1, i]), round=s)
    for i, learner in enumerate(apart):
        np.testing.assert_allclose(together.ask()[i], learner.ask(), atol=1e-12)


def test_pending_rounds_are_refused_or_given_up() -> None:
    learner = CLASP(K)
    f, g = losses.Linear(np.ones(N)), constraints.Affine(np.ones(N), 1.0)
    for s in (1, 2, 3):
        assert learner.play()[0] == s
    assert learner.pending == (1, 2, 3)
    with pytest.raises(InvalidInput, match=r"round: expected one of the pending rounds 1, 2, 3, got None"):
        learner.tell(f, g)
    learner.tell(f, g, round=2)
    for again in (2, 9, 0, "1", 1.0, None.__class__):
        with pytest.raises(InvalidInput, match="round: expected one of the pending rounds 1, 3"):
            learner.tell(f, g, round=again)
    with pytest.raises(InvalidInput, match="whose feedback has come or was given up"):
        learner.forget(2)
    with pytest.raises(InvalidInput, match="expected a loss or a constraint"):
        learner.tell(round=1)
    learner.tell(f, round=1)
    with pytest.raises(InvalidInput, match="loss: expected none, since that of round 1 has come"):
        learner.tell(f, g, round=1)
    assert learner.pending == (1, 3)
    learner.tell(constraint=g, round=1)
    learner.forget(3)
    assert learner.pending == ()
    assert learner.t == learner.ledger.rounds == 2
    learner.tell(f, g)
    assert learner.play()[0] == 5


def test_a_failed_tell_changes_nothing(tmp_path: Any) -> None:
    learner = CLASP(K, start=np.full(N, 0.5))
    learner.play(), learner.play()
    before = learner.dumps()
    with pytest.raises(InfeasibleRound):
        learner.tell(losses.Linear(np.ones(N)), constraints.Affine(np.ones(N), -1.0), round=1)
    with pytest.raises(InvalidInput, match="c"):
        learner.tell(losses.Linear([np.nan, 0.0, 0.0]), round=1)
    assert learner.dumps() == before


def test_pending_rounds_are_stored() -> None:
    learner = CLASP(K, start=np.full(N, 0.5))
    first, _ = learner.play(known=constraints.Equality(np.ones(N), 1.2))
    second, _ = learner.play()
    learner.tell(losses.Linear(np.arange(3.0)), round=second)
    again = cocopt.loads(learner.dumps())
    assert again.pending == learner.pending == (1, 2)
    for one in (learner, again):
        one.tell(losses.Linear([0.3, -0.2, 0.1]), constraints.Affine([1.0, 0.0, 0.0], 0.2), round=first)
        one.tell(constraint=constraints.Affine([0.0, 1.0, 0.0], 0.4), round=second)
    assert again.dumps() == learner.dumps()
    assert again.pending == ()


def test_memory_is_bounded_by_what_is_pending() -> None:
    learner = CLASP(Box(0.0, 1.0, dim=50))
    f = losses.Linear(np.ones(50))

    def rounds(count: int) -> int:
        for _ in range(count):
            number, _ = learner.play()
            if number > 5:
                learner.tell(f, constraints.Affine(np.ones(50), 10.0), round=number - 5)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    rounds(50)
    tracemalloc.start()
    early, late = rounds(100), rounds(500)
    tracemalloc.stop()
    assert late - early < 20 * 50 * 8  # less than twenty actions, where 500 rounds were played


def test_algorithms_whose_analysis_does_not_cover_it_say_so() -> None:
    learner = AdaGrad(K, 100, 3.0)
    with pytest.raises(
        InvalidInput, match="play: expected an algorithm whose analysis covers feedback that comes late"
    ):
        learner.play()


# ------------------------------------------------------------------------------------------ another action was played


def test_another_action_steps_from_the_iterate_and_keeps_the_certificate() -> None:
    """Regret counts the actions executed; the bound has the drift, and holds against every feasible action."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        learner, centers, paid = CLASP(K, start=np.full(N, 0.5), beta=0.5), [], 0.0
        rows = []
        for t in range(1, 60):
            x = learner.ask()
            played = np.clip(x + 0.2 * rng.normal(size=N), 0, 1) if t % 3 == 0 else x
            c = rng.uniform(0, 1, N)
            a = rng.normal(size=N)
            row = (a, float(a @ np.full(N, 0.4)) + 0.05)
            learner.tell(losses.Distance(c), constraints.Affine(*row), played=played)
            expected = naive.project(x - t**-0.5 * (played - c), [row])
            np.testing.assert_allclose(learner.ask(), expected, atol=1e-7)
            centers.append(c)
            rows.append(row)
            paid += 0.5 * (played - c) @ (played - c)
        assert learner.certificate().valid
        assert learner.certificate().value >= paid - naive.best_loss(centers, rows)
        assert learner.ledger.loss == pytest.approx(paid)


def test_an_action_of_an_earlier_round_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    learner, asked = CLASP(K, start=np.full(N, 0.5)), []

    def late() -> None:
        for t in range(8):
            asked.append(learner.ask())
            learner.tell(losses.Linear(rng.normal(size=N)), played=asked[max(t - 3, 0)] if t >= 3 else None)

    with pytest.warns(SuspiciousInput, match=r"action of 3 rounds before.*use round, x = play") as caught:
        late()
    assert len(caught) == 1
    assert "wrong tool" in CLASP.tell.__doc__


def test_a_simplex_and_an_action_off_its_hull() -> None:
    """The drift counts the whole gradient, since the action may be off the hull of K."""
    learner = CLASP(Simplex(2), start=[0.5, 0.5], steps=steps.Constant(0.1))
    learner.tell(losses.Linear([1.0, 3.0]), played=[1.0, 1.0])
    # D²/(2η) + η‖P_V c‖²/2 + ⟨c, p − x⟩ with P_V c = (−1, 1)
    assert learner.certificate().value == pytest.approx(2.0 / 0.2 + 0.1 * 2.0 / 2 + 2.0)
