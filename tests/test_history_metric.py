"""ccv2_hist equals the naive double sum over all rounds and all earlier constraints, however it is found."""

from __future__ import annotations

import numpy as np
import pytest

import cocopt
from cocopt import CLASP, Box, constraints, losses
from cocopt.geometry.persistent import MAX_COUNTED, Archive, PersistentIntersection

N, TRIALS = 4, 3
VARIANTS = {
    "all rows": {},
    "the worst row": {"rows": "worst"},
    "nearest": {"infeasible": "nearest"},
    "nearest, the worst row": {"rows": "worst", "infeasible": "nearest"},
}


def draw(rng: np.random.Generator, t: int, empty: bool) -> tuple[np.ndarray, np.ndarray]:
    """The rows of round t: some are switched off, some repeat the rows of round 2, some cannot be satisfied."""
    A = rng.normal(size=(TRIALS, 3, N))
    b = rng.uniform(0.0, 0.4, (TRIALS, 3))
    if t % 9 == 4:
        b[0, 1] = np.inf
    if t % 11 == 7:
        A, b = np.broadcast_to(np.eye(3, N), A.shape).copy(), np.full(b.shape, 0.2)
    if empty and t == 30:
        A[1, 0], b[1, 0] = 1.0, -50.0
    return A, b


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_naive_sum(variant, elsewhere, tmp_path):
    rng, options = np.random.default_rng(1), VARIANTS[variant]
    learner = CLASP(Box(-1.0, 1.0, dim=N), start=np.zeros((TRIALS, N)), window=None, **options)
    earlier: list[tuple[np.ndarray, np.ndarray]] = []
    total = np.zeros(TRIALS)
    for t in range(1, 81):
        A, b = draw(rng, t, empty="nearest" in variant)
        x = np.array(learner.ask())
        played = {}
        if elsewhere and t % 6 == 0:
            x = rng.uniform(-1.3, 1.3, x.shape)  # not always in K
            played = {"played": x}
        earlier.append((A, b))
        for rows, bounds in earlier:
            worst = (np.matvec(rows, x) - bounds).max(axis=-1)
            total += np.maximum(worst, 0.0) ** 2
        learner.tell(losses.Linear(rng.normal(size=(TRIALS, N))), constraints.Affine(A, b), **played)
        if t == 40:
            learner.save(tmp_path / "state.npz")
            learner = cocopt.load(tmp_path / "state.npz")
    np.testing.assert_allclose(learner.ledger.ccv2_hist, total, rtol=1e-12)


def naive_squares(rounds: list[tuple[np.ndarray, np.ndarray]], x: np.ndarray) -> float:
    return sum(max(float((A @ x - b).max()), 0.0) ** 2 for A, b in rounds)


@pytest.mark.parametrize("count", [3, 2 * MAX_COUNTED])
def test_far_points_and_many_violated_rows(count, monkeypatch):
    """Few violated rows are found without a pass over the archive, many are summed over it."""
    rng, passes = np.random.default_rng(2), []
    whole = Archive.squares
    monkeypatch.setattr(Archive, "squares", lambda self, i, x: passes.append(i) or whole(self, i, x))
    S, rounds = PersistentIntersection.begin(Box(-5.0, 5.0, dim=N), ()), []
    for t in range(400):
        A = rng.normal(size=(2, N))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        b = np.full(2, 0.5 if t < count else 3.0)  # x = 1 violates some of the first rounds alone
        rounds.append((A, b))
        S = S.plus(constraints.Affine(A, b))
    violated = 0
    for _ in range(5):
        x = np.full(N, 0.9) + rng.normal(size=N) / 50
        violated = max(violated, sum(int((A @ x > b).sum()) for A, b in rounds))
        S, found = S.squares(x)
        assert float(found) == pytest.approx(naive_squares(rounds, x), rel=1e-12)
    assert violated > 0
    assert bool(passes) == (violated >= MAX_COUNTED)


def test_no_pass_in_an_ordinary_run(monkeypatch):
    """Neither where all rows are met nor where single rows of several are."""
    passes = []
    monkeypatch.setattr(Archive, "squares", lambda self, i, x: passes.append(i) or 0.0)
    for rows in ("all", "worst"):
        rng = np.random.default_rng(3)
        learner = CLASP(Box(0.0, 1.0, dim=N), start=np.zeros((TRIALS, N)), window=None, rows=rows)
        for _ in range(300):
            H, A = rng.uniform(-1, 1, (TRIALS, 2, N)), rng.uniform(0, 2, (TRIALS, 3, N))
            learner.tell(losses.Norm(H, H.sum(axis=-1)), constraints.Affine(A, rng.uniform(0, 1, (TRIALS, 3))))
        assert passes == []
