"""What the paper proves of CLASP: inequalities with constants, checked in every round, and rates of growth."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from instances import build_set, random_set
from reference import projections as reference

import cocopt
from cocopt import CLASP, Ball, constraints, losses, steps, theory

TRIALS, ROUNDS, N = 6, 150, 4
SLACK = 1e-9  # for rounding


class Stream:
    """Random losses of one kind and two rows per round, which a common point z satisfies; one stream per trial."""

    def __init__(self, kind, loss, seed):
        rng = np.random.default_rng(seed)
        self.description, self.z = random_set(kind, N, rng)
        self.K = build_set(self.description)
        self.start = self.K.project(self.z + rng.normal(size=(TRIALS, N)))
        self.loss = loss
        self.c = 2.0 * rng.normal(size=(ROUNDS, TRIALS, N))
        self.c += self.z if loss == "Distance" else 0.0
        self.A = rng.normal(size=(ROUNDS, TRIALS, 2, N))
        self.b = self.A @ self.z + rng.uniform(0.0, 0.2, (ROUNDS, TRIALS, 2))
        D = self.K.diameter
        far = np.linalg.norm(self.c - self.z, axis=-1).max() + D  # bounds ‖x − c_t‖ over K
        self.L_f = far if loss == "Distance" else np.linalg.norm(self.c, axis=-1).max()
        self.L_g = np.linalg.norm(self.A, axis=-1).max()

    def round(self, t):
        kind = losses.Distance if self.loss == "Distance" else losses.Linear
        return kind(self.c[t]), constraints.Affine(self.A[t], self.b[t])

    def gradient(self, t, x):
        return x - self.c[t] if self.loss == "Distance" else self.c[t]

    def least_total(self, T, trial):
        """min of Σ_{t≤T} f_t over K and the constraints of T rounds, by CVXPY."""
        c, g = self.c[:T, trial], ("Affine", self.A[:T, trial].reshape(-1, N), self.b[:T, trial].ravel())
        if self.loss == "Distance":
            best = reference.by_cvxpy(self.description, g, c.mean(axis=0))
            return 0.5 * ((best - c) ** 2).sum()
        x = cp.Variable(N)
        limits = reference.membership(self.description, x) + [e <= 0 for e in reference.expressions(g, x)]
        problem = cp.Problem(cp.Minimize(c.sum(axis=0) @ x), limits)
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return problem.value


SCHEDULES = {
    "Power(0.3)": steps.Power(0.3),
    "Power(0.5)": steps.Power(0.5),
    "Power(0.7, 0.2)": steps.Power(0.7, scale=0.2),
    "Constant": steps.Constant(0.1),
    "Adaptive": steps.Adaptive(1.5),
    "callable": lambda t: 1.0 / (5 + t) ** 0.6,
    "StronglyConvex": steps.StronglyConvex(1.0),
}
CASES = [
    (kind, loss, rule, rows)
    for i, rule in enumerate(SCHEDULES)
    for loss in (("Distance",) if rule == "StronglyConvex" else ("Distance", "Linear"))
    for kind in (
        ("Box", "Ball", "Simplex") if rule in ("Power(0.5)", "StronglyConvex") else ("Box", "Ball")[i % 2 :][:1]
    )
    for rows in ("all", "worst")
]


@pytest.mark.parametrize(("kind", "loss", "rule", "rows"), CASES)
def test_lemmas_and_theorems_hold_in_every_round(kind, loss, rule, rows):
    stream = Stream(kind, loss, seed=len(kind) + len(rule))
    K, D, L_f, L_g = stream.K, stream.K.diameter, stream.L_f, stream.L_g
    learner = CLASP(K, start=stream.start, steps=SCHEDULES[rule], rows=rows)
    from_target, from_x, reach, squares, certificates, total, records = 0.0, 0.0, 0.0, 0.0, [], [], []
    for t in range(ROUNDS):
        f, g = stream.round(t)
        x = learner.ask()
        gradient = stream.gradient(t, x)
        assert (np.linalg.norm(gradient, axis=-1) <= L_f).all()
        record = learner.tell(f, g)
        eta = np.broadcast_to(record.step, TRIALS)
        target, following = x - eta[:, None] * gradient, learner.ask()
        imposed = g if rows == "all" else g.select(record.rows.argmax(axis=-1))
        # K_t is what the round projects onto: distances from it, of x̂_{t+1} and of x_t
        d_target = np.linalg.norm(target - following, axis=-1)
        d_x = np.linalg.norm(x - cocopt.project(K, imposed, x), axis=-1)
        before, after = (np.linalg.norm(point - stream.z, axis=-1) ** 2 for point in (target, following))
        assert (after <= before - d_target**2 + SLACK).all()  # firm non-expansiveness
        assert (d_x <= d_target + eta * L_f + SLACK).all()
        assert (record.violation <= L_g * d_x + SLACK).all()
        from_target, from_x = from_target + d_target**2, from_x + d_x**2
        reach, squares = reach + eta, squares + eta**2
        lemma1 = D**2 + 2 * L_f * D * reach + L_f**2 * squares
        assert (from_target <= lemma1 + SLACK).all()
        assert (from_x <= 2 * lemma1 + 2 * L_f**2 * squares + SLACK).all()  # Lemma 2
        assert (learner.ledger.ccv2 <= L_g**2 * from_x + SLACK).all()  # Lemma 3
        assert (learner.ledger.ccv2 <= L_g**2 * (D**2 + 2 * L_f * D * reach) + SLACK).all()  # sharper, as documented
        certificates.append(learner.certificate())
        total.append(learner.ledger.loss)
        records.append(learner.ledger)
    T = np.arange(1, ROUNDS + 1)
    promised = learner.bounds(T, lipschitz_f=L_f, lipschitz_g=L_g)
    for name in ("ccv1", "ccv2"):
        actual = np.array([getattr(ledger, name) for ledger in records])
        assert (actual <= getattr(promised, name)[:, None] + SLACK).all()
    proved = np.array([proof.value for proof in certificates])
    assert (proved <= promised.regret[:, None] * (1 + 1e-12)).all()  # the certificate is at most the worst case
    for t in (1, 2, 5, 12, 30, 70, ROUNDS):
        for trial in range(0, TRIALS, 2):
            regret = total[t - 1][trial] - stream.least_total(t, trial)
            assert regret <= proved[t - 1, trial] + 1e-6
    assert all(proof.valid.all() for proof in certificates)
    assert (learner.ledger.ccv2 > 1e-2).all()  # the constraints were active


def test_history_adds_nothing_when_all_rows_persist():
    stream = Stream("Box", "Linear", seed=3)
    ledgers = {}
    for rows in ("all", "worst"):
        learner = CLASP(stream.K, start=stream.start, rows=rows, window=None)
        for t in range(60):
            learner.tell(*stream.round(t))
        ledgers[rows] = learner.ledger
    np.testing.assert_allclose(ledgers["all"].ccv2_hist, ledgers["all"].ccv2, rtol=1e-9)
    assert (ledgers["worst"].ccv2_hist > 1.01 * ledgers["worst"].ccv2).any()


# ---------------------------------------------------------------- growth
#
# Theorems bound the worst stream, so growth is measured on adversarial streams. No single one attains both bounds:
# Σ d(x_t, K_t)² ≲ D² + Ση²L² − 2 Σ η_t (f_t(x_t) − f_t(x*)), so violations grow only where regret is
# negative. All streams live in the disc K of radius 2.

K = Ball(0.0, 2.0, dim=2)


def spiral(x, outward, eta):
    """An adversary's constraint ⟨a, x⟩ ≤ 0, which the origin satisfies: projecting restores the norm of x.

    The loss has pushed x outwards to (1 + η·outward) x. The line turns so that the projection onto it moves x sideways
    by d = √(the growth of ‖x‖²): that is of order √η, the most that the potential ‖x‖² allows.
    """
    r = np.linalg.norm(x, axis=-1, keepdims=True)
    u = x / r
    grown = r * (1.0 + eta * outward[:, None])
    d = np.sqrt(grown**2 - r**2)
    across = np.stack([-u[:, 1], u[:, 0]], axis=-1)
    return (d / grown) * u + np.sqrt(1.0 - (d / grown) ** 2) * across


@pytest.mark.long
@pytest.mark.parametrize("first", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_strongly_convex_regret_and_ccv2_grow_like_log_t(first):
    """Increments per decade are constant: n/2 · ln 10 of regret, 2κρ² ln 10 of CCV₂ (κ the push, ρ = ‖x_1‖)."""
    rng = np.random.default_rng(0)
    push = np.array([1.0, 0.5])  # κ of the two spirals; the other trials average random centers
    averaging, start = 6, np.zeros((8, 2))
    start[averaging:, 0] = 1.0
    learner = CLASP(K, start=start, steps=steps.StronglyConvex(1.0))
    decades = [first, 10 * first, 100 * first]
    angles = np.arange(8) * np.pi / 4
    sides = np.stack([np.cos(angles), np.sin(angles)], axis=-1)  # an octagon about the origin
    rhs = np.repeat([[0.8], [0.0]], [averaging, 2], axis=0)
    row, center = np.empty((8, 1, 2)), np.empty((8, 2))
    mean, squares, regret, ccv2 = np.zeros((averaging, 2)), 0.0, [], []
    for t in range(1, decades[-1] + 1):
        x = learner.ask()
        center[:averaging] = rng.integers(0, 2, (averaging, 2)) * 2.0 - 1.0
        center[averaging:] = (1.0 + push[:, None]) * x[averaging:]
        row[:averaging] = sides[t % 8]
        row[averaging:, 0] = spiral(x[averaging:], push, 1.0 / t)
        learner.tell(losses.Distance(center.copy()), constraints.Affine(row.copy(), rhs))
        step = center[:averaging] - mean
        mean = mean + step / t
        squares = squares + (step * (center[:averaging] - mean)).sum(axis=-1)  # Σ ‖c − mean‖², by Welford
        if t in decades:
            assert (sides @ mean.T <= 0.8).all()  # so the mean is the best fixed action in hindsight
            regret.append(learner.ledger.loss[:averaging] - squares / 2)
            ccv2.append(learner.ledger.ccv2)
    np.testing.assert_allclose(np.diff(regret, axis=0).mean(axis=-1), np.log(10), rtol=0.05)
    growth = np.diff(ccv2, axis=0)
    np.testing.assert_allclose(growth[:, averaging:], [2 * push * np.log(10)] * 2, rtol=0.01)
    np.testing.assert_allclose(growth[:, :averaging], 0.0, atol=1e-9)
    assert (regret[-1] <= learner.certificate().value[:averaging] + 1e-6).all()  # rounding of sums of size 10^5


@pytest.mark.parametrize(
    "beta", [pytest.param(0.3, marks=pytest.mark.slow), 0.5, pytest.param(0.7, marks=pytest.mark.slow)]
)
def test_convex_exponents(beta):
    """CCV₂ like T^(1−β), regret like T^max(β, 1−β), and no faster: the rates are attained, on deterministic streams.

    Regret has two sources: a loss whose sign alternates costs η_t per pair of rounds, T^(1−β) in all; and a loss that
    pulls to the other side of K late, from T/2 on, costs about D/η_T rounds, T^β in all (one trial for each T).
    The margins are for terms of lower order, which over this decade lower the fitted exponent by up to 0.03.
    """
    T = np.array([150, 1500, 15_000])
    start = np.array([[1.0, 0.0], [0.0, 0.0], *([[-2.0, 0.0]] * len(T))])
    learner = CLASP(K, start=start, steps=steps.Power(beta))
    slope, row = np.zeros_like(start), np.zeros((len(start), 1, 2))
    rhs = np.array([[0.0], [0.5], *([[0.5]] * len(T))])
    row[1:, 0] = [0.0, 1.0]  # not active but in the first trial
    alternating, late, ccv2 = [], [], []
    for t in range(1, T[-1] + 1):
        x = learner.ask()
        slope[0] = -0.1 * x[0] / np.linalg.norm(x[0])
        slope[1, 0] = 1.0 if t % 2 else -1.0
        slope[2:, 0] = -2.0 * (t > T // 2)
        row[:1, 0] = spiral(x[:1], np.full(1, 0.1), t**-beta)
        learner.tell(losses.Linear(slope.copy()), constraints.Affine(row.copy(), rhs))
        if t in T:
            i = len(ccv2)
            ccv2.append(learner.ledger.ccv2[0])
            alternating.append(learner.ledger.loss[1])  # against any x, as the slopes add up to 0
            late.append(learner.ledger.loss[2 + i] + 4.0 * (T[i] - T[i] // 2))  # against x = (2, 0)
    assert -0.03 <= np.log10(np.diff(ccv2)[1] / np.diff(ccv2)[0]) - (1 - beta) <= 0.005
    assert -0.03 <= np.log10(np.diff(alternating)[1] / np.diff(alternating)[0]) - (1 - beta) <= 0.005
    assert -0.03 <= np.log10(late[2] / late[1]) - beta <= 0.005
    promised = theory.bounds(steps.Power(beta), T, diameter=4.0, lipschitz_f=2.0, lipschitz_g=1.0)
    assert (np.maximum(alternating, late) <= promised.regret).all()
    assert (ccv2 <= promised.ccv2).all()
