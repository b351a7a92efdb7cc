"""RECOO, AdaGrad and CLASP-F: the right points, the promised bounds, and what each does at the edge."""

import itertools
import math
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import rivals as naive

import cocopt
from cocopt import (
    CLASP,
    CLASPF,
    RECOO,
    AdaGrad,
    Ball,
    Box,
    Ellipsoid,
    Halfspace,
    Simplex,
    constraints,
    losses,
    steps,
    theory,
)
from cocopt.algorithms.base import Feedback
from cocopt.algorithms.surrogate import Surrogate, SurrogateMemory
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection
from cocopt.geometry.cutter import cut, largest_row

T = 60


def positive_definite(n):
    """A positive definite matrix with eigenvalues between ¼ and 4."""
    basis, _ = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))
    return basis @ np.diag(np.geomspace(0.25, 4.0, n)) @ basis.T


SETS = {
    "box": (lambda n: Box(0.0, 1.0, dim=n), lambda n: naive.box(np.zeros(n), np.ones(n))),
    "ball": (lambda n: Ball(np.full(n, 0.3), 2.0), lambda n: naive.ball(np.full(n, 0.3), 2.0)),
    "simplex": (lambda n: Simplex(n, total=1.5), lambda n: naive.simplex(1.5)),
    "ellipsoid": (
        lambda n: Ellipsoid(np.full(n, 0.2), positive_definite(n)),
        lambda n: naive.ellipsoid(np.full(n, 0.2), positive_definite(n)),
    ),
}


@cache
def build(name, n):
    """The set, the library's and the naive one."""
    return tuple(make(n) for make in SETS[name])


class Stream:
    """One trial a seed; `rounds` are the library's, `single(k)` those of the k-th trial for the plain loops."""

    def __init__(self, kind, strongly_convex, seeds):
        self.trials = len(seeds)
        if kind == "svm":
            self.A, self.b = map(np.array, zip(*(naive.svm(seed, T) for seed in seeds), strict=True))
            P = np.diag([1.0, 1.0, 1.0, 1.0, 0.0])
            self.n, self.m = 5, 1.0 if strongly_convex else None
            self.loss = lambda t: losses.Quadratic(P, np.zeros(5))
            self.gradient = lambda k, t: naive.quadratic_gradient(P, np.zeros(5))
            return
        H, y, self.A, self.b = map(np.array, zip(*(naive.regression(seed, T) for seed in seeds), strict=True))
        self.n, self.m = 10, 0.5 if strongly_convex else None
        if strongly_convex:
            P, q = H.swapaxes(-1, -2) @ H + 0.5 * np.eye(10), -np.einsum("ktij,kti->ktj", H, y)
            self.loss = lambda t: losses.Quadratic(P[:, t], q[:, t])
            self.gradient = lambda k, t: naive.quadratic_gradient(P[k, t], q[k, t])
        else:
            self.loss = lambda t: losses.Norm(H[:, t], y[:, t])
            self.gradient = lambda k, t: naive.norm_gradient(H[k, t], y[k, t])

    def start(self, K):
        return K.project(np.random.default_rng(7).uniform(0, 1, (self.trials, self.n)))

    def single(self, k):
        return [(self.gradient(k, t), self.A[k, t], self.b[k, t]) for t in range(T)]

    def play(self, learner):
        """x_1 … x_{T+1}, shape (seeds, T + 1, n)."""
        points = [learner.ask()]
        for t in range(T):
            learner.tell(self.loss(t), constraints.Affine(self.A[:, t], self.b[:, t]))
            points.append(learner.ask())
        return np.stack(points, axis=1)


KINDS = list(itertools.product(["regression", "svm"], [False, True]))
MORE = [pytest.param((*kind, (2, 3, 4)), marks=pytest.mark.slow) for kind in KINDS]


@pytest.fixture(params=[*((*kind, (0, 1)) for kind in KINDS), *MORE], ids=str)
def stream(request):
    return Stream(*request.param)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("rows", ["all", "worst"])
def test_recoo_is_its_argmin(stream, name, rows):
    K, plain = build(name, stream.n)
    learner = RECOO(K, start=stream.start(K), strong_convexity=stream.m, epsilon=0.2, rows=rows)
    points = stream.play(learner)
    for k, start in enumerate(stream.start(K)):
        expected = naive.recoo(plain, start, stream.single(k), stream.m, epsilon=0.2, worst=rows == "worst")
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("G", "V"), [(2.0, 1.0), (0.05, 1.0), (8.0, T**-0.5)])
def test_adagrad_is_its_formula(stream, name, G, V):
    K, plain = build(name, stream.n)
    V = V if stream.m is None else 1.0  # the strongly convex form sets its own
    points = stream.play(AdaGrad(K, T, G, start=stream.start(K), strong_convexity=stream.m, weight=V))
    for k, start in enumerate(stream.start(K)):
        expected = naive.adagrad(plain, start, stream.single(k), T, G, K.diameter, stream.m, V)
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("at", ["x", "xb"])
def test_clasp_f_is_its_formula(stream, name, at):
    K, plain = build(name, stream.n)
    schedule = steps.Power(0.5) if stream.m is None else steps.StronglyConvex(stream.m)
    points = stream.play(CLASPF(K, start=stream.start(K), steps=schedule, gradient_at=at))
    for k, start in enumerate(stream.start(K)):
        expected = naive.clasp_f(plain, start, stream.single(k), lambda t: schedule.step(t, 0.0), at == "xb")
        np.testing.assert_allclose(points[k], expected, rtol=0, atol=1e-6)


def multiplier(K, A, b, target):
    """Σν of the projection onto K ∩ {Ax ≤ b}: as the kernels say it, else of one row, by bisection."""
    try:
        found = solve_projection(K, constraints.Affine(A, b), target).multipliers
    except InfeasibleRound:
        return np.inf
    if found is not None:
        return found.sum()
    low, high = 0.0, 1e3
    for _ in range(60):
        nu = (low + high) / 2
        low, high = (nu, high) if A[0] @ K.project(target - nu * A[0]) > b[0] else (low, nu)
    return high


@pytest.mark.parametrize(
    ("name", "M"), [("box", 1), ("box", 4), ("ball", 1), ("ball", 4), ("simplex", 1), ("ellipsoid", 1)]
)
@pytest.mark.parametrize("m", [None, 1.0])
def test_recoo_is_clasp_where_the_multiplier_bound_allows(name, M, m):
    H, y, A, b = naive.regression(11, T)
    K, _ = build(name, 10)
    kinds = set()
    for scale in (1.0, 0.03):
        learner, Q = RECOO(K, start=K.project(np.full(10, 0.5)), strong_convexity=m), 1.0
        for t in range(1, T + 1):
            x, rows, rhs = learner.ask(), scale * A[t - 1, :M], scale * b[t - 1, :M]
            loss, constraint = losses.LeastSquares(H[t - 1], y[t - 1]), constraints.Affine(rows, rhs)
            learner.tell(loss, constraint)
            alpha, gamma = math.sqrt(t) if m is None else m * t / 2, t**0.6
            step = 1 / (2 * alpha)
            max_multiplier = Q * gamma * step
            needed = multiplier(K, rows, rhs, x - step * loss.gradient(x))
            if needed <= max_multiplier:
                clasp = CLASP(K, start=x, steps=steps.Constant(step))
                clasp.tell(loss, constraint)
                np.testing.assert_allclose(learner.ask(), clasp.ask(), rtol=0, atol=1e-8)
                kinds.add("active" if needed > 0 else "inactive")
            else:
                assert constraint.value(learner.ask()) > 0
                kinds.add("at bound")
            Q = max(Q + gamma * max(0.0, constraint.value(learner.ask())), math.sqrt(t + 1))
    assert kinds >= {"active", "at bound"}


# ---------------------------------------------------------------- bounds


def box_stream(n, seed, m):
    """Rounds in K = [−1, 1]^n in which every g_t bounds one coordinate from one side: S_T is a box.

    Returns (rounds, L_f, L_g, best), where best(t) is the least loss of a fixed action that satisfies rounds 1 … t.
    """
    rng = np.random.default_rng(seed)
    size, drift, inside = rng.uniform(0.1, 3.0), rng.normal(size=n), rng.uniform(-0.5, 0.5, n)
    c = size * (drift + rng.normal(size=(T, n)))
    z = rng.uniform(-1, 1, (T, n)) if m else np.zeros((T, n))
    j, sign, slope = rng.integers(n, size=T), rng.choice([-1.0, 1.0], T), rng.uniform(0.1, 4.0, T)
    b = sign * inside[j] + rng.uniform(0, 0.5, T)
    rounds = [
        (
            losses.Quadratic((m or 0.0) * np.eye(n), c[t] - (m or 0.0) * z[t], (m or 0.0) / 2 * z[t] @ z[t]),
            constraints.Affine(slope[t] * sign[t] * np.eye(n)[j[t]], slope[t] * b[t]),
        )
        for t in range(T)
    ]
    low, high, best = -np.ones(n), np.ones(n), []
    for t in range(T):
        if sign[t] > 0:
            high[j[t]] = min(high[j[t]], b[t])
        else:
            low[j[t]] = max(low[j[t]], -b[t])
        total = c[: t + 1].sum(axis=0) - (m or 0.0) * z[: t + 1].sum(axis=0)
        x = np.clip(-total / (m * (t + 1)), low, high) if m else np.where(total > 0, low, high)
        best.append(sum(float(loss.value(x)) for loss, _ in rounds[: t + 1]))
    L_f = float(np.linalg.norm(np.abs(c) + 2 * (m or 0.0), axis=1).max())
    return rounds, L_f, float(slope.max()), best


def rivals(K, start, G, m):
    if m is None:
        yield RECOO(K, start=start)
        yield RECOO(K, start=start, epsilon=0.5)
        yield AdaGrad(K, T, G, start=start)
        yield AdaGrad(K, T, G, start=start, weight=T**-0.5)
        schedules = [steps.Power(0.5), steps.Power(0.7, scale=0.3), steps.Constant(0.1)]
    else:
        yield RECOO(K, start=start, strong_convexity=m)
        yield AdaGrad(K, T, G, start=start, strong_convexity=m)
        schedules = [steps.StronglyConvex(m)]
    for schedule, at in itertools.product(schedules, ["x", "xb"]):
        yield CLASPF(K, start=start, steps=schedule, gradient_at=at)


@pytest.mark.parametrize("m", [None, 0.05, 2.0])
@settings(max_examples=5)
@given(st.integers(1, 4), st.integers(0, 10**6))
def test_bounds_hold_in_every_round(m, n, seed):
    rounds, L_f, L_g, best = box_stream(n, seed, m)
    K = Box(-1.0, 1.0, dim=n)
    start = np.random.default_rng(seed).uniform(-1, 1, n)
    for learner in rivals(K, start, max(L_f, L_g), m):
        promised = learner.bounds(np.arange(1, T + 1), lipschitz_f=L_f, lipschitz_g=L_g)
        for t, (loss, constraint) in enumerate(rounds):
            learner.tell(loss, constraint)
            ledger = learner.ledger
            assert ledger.loss - best[t] <= promised.regret[t] * (1 + 1e-9) + 1e-9
            assert ledger.ccv1 <= promised.ccv1[t] * (1 + 1e-9)
            assert ledger.ccv2 <= promised.ccv2[t] * (1 + 1e-9)


def test_the_constants_of_clasp_f():
    D, L_f, L_g, N = 2.0, 3.0, 0.5, 700
    eta = [0.3 * t**-0.6 for t in range(1, N + 1)]
    got = theory.bounds_clasp_f(steps.Power(0.6, 0.3), N, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g)
    assert got.regret == pytest.approx(D**2 / (2 * eta[-1]) + L_f**2 * sum(eta), rel=1e-12)
    ccv2 = L_g**2 * (D**2 + 2 * L_f * D * sum(eta) + L_f**2 * sum(e**2 for e in eta))
    assert got.ccv2 == pytest.approx(ccv2, rel=1e-12)
    strong = [
        theory.bounds_clasp_f(
            steps.StronglyConvex(0.4), N, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g, gradient_at=at
        ).regret
        for at in ("x", "xb")
    ]
    assert strong[0] == pytest.approx(L_f**2 / 0.4 * (1 + math.log(N)))
    assert strong[1] == pytest.approx(strong[0] + L_f * D)


@pytest.mark.parametrize("m", [None, 0.4])
def test_the_constants_of_recoo(m):
    D, L_f, L_g, N, eps = 2.0, 3.0, 0.5, 300, 0.2

    def alpha(t):
        return math.sqrt(t) if m is None else m * t / 2

    def C(t):
        c = L_f * D + D**2 * max(alpha(s) / math.sqrt(s) for s in range(1, t + 1))
        return c + math.sqrt(t + 2 * L_f * D * t + 2 * alpha(t) * D**2)

    inverse = [t ** -(0.5 + eps) for t in range(1, N + 1)]
    R = C(N + 1) * inverse[-1] + sum(C(t + 1) * (inverse[t - 1] - inverse[t]) for t in range(1, N))
    total = sum(1 / alpha(t) for t in range(1, N + 1))
    got = theory.bounds_recoo(N, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g, strong_convexity=m, epsilon=eps)
    regret = L_f**2 / 4 * total + D**2 * alpha(N) if m is None else L_f**2 / (2 * m) * (1 + math.log(N))
    assert got.regret == pytest.approx(regret, rel=1e-12)
    ccv2 = 2 * L_g**2 * (D**2 + L_f * D * total) + 2 * min(L_g * D, L_f * D + alpha(1) * D**2) * R
    assert got.ccv2 == pytest.approx(ccv2, rel=1e-12)
    first, last = (theory.bounds_recoo(n, diameter=D, lipschitz_f=L_f, lipschitz_g=L_g).ccv2 for n in (1, [1, N]))
    assert first == last[0]


def test_the_constants_of_adagrad():
    got = theory.bounds_adagrad(100, horizon=400, diameter=2.0, lipschitz=3.0, weight=0.25)
    assert got.regret == pytest.approx(12 * (10 + 4))
    assert got.ccv1 == pytest.approx(24 * 20 * math.log(2 * (1 + 50)))
    assert got.ccv2 == pytest.approx(6 * got.ccv1)
    got = theory.bounds_adagrad(100, horizon=400, diameter=2.0, lipschitz=3.0, strong_convexity=0.5)
    log = 1 + math.log(400)
    assert got.regret == pytest.approx(18 * (1 + math.log(100)))
    assert got.ccv1 == pytest.approx(12 * math.sqrt(6 * 100 * log / 0.5) + 36 * log / 0.5)


def test_bounds_refuse_what_is_not_promised():
    K = Box(0.0, 1.0, dim=2)
    with pytest.raises(InvalidInput, match="T: expected at most the horizon 10, got 11"):
        AdaGrad(K, 10, 1.0).bounds(11, lipschitz_f=1.0, lipschitz_g=1.0)
    with pytest.raises(InvalidInput, match=r"lipschitz_g: expected at most the 1\.0 given"):
        AdaGrad(K, 10, 1.0).bounds(10, lipschitz_f=1.0, lipschitz_g=2.0)
    with pytest.raises(InvalidInput, match='gradient_at: expected "x" for a bound with adaptive steps'):
        CLASPF(K, steps=steps.Adaptive(1.0), gradient_at="xb").bounds(10, lipschitz_f=1.0, lipschitz_g=1.0)
    with pytest.raises(InvalidInput, match="diameter"):
        RECOO(Halfspace([1.0, 0.0], 1.0)).bounds(10, lipschitz_f=1.0, lipschitz_g=1.0)


# ---------------------------------------------------------------- the cutter


@settings(max_examples=200)
@given(st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([1e-200, 1.0, 1e200]))
def test_the_cutter_brings_every_feasible_point_nearer(n, seed, unit):
    rng = np.random.default_rng(seed)
    g = constraints.Stack([constraints.NormBall(rng.normal(size=n), 1.0), constraints.Affine(rng.normal(size=n), 0.5)])
    x, z = rng.normal(size=(2, 7, n)) * 2
    v, s = largest_row(g, x, g.rows(x))
    moved = cut(x, unit * v, unit * s)
    assert np.array_equal(moved[v == 0], x[v == 0])
    near = ((x - z) ** 2).sum(-1) - ((moved - z) ** 2).sum(-1)
    gain = v**2 / (s**2).sum(-1)
    assert (near >= gain - 1e-9)[g.value(z) <= 0].all()
    np.testing.assert_allclose(v + ((moved - x) * s).sum(-1), 0.0, atol=1e-9 * (1 + v.max()))  # on the cut itself


def test_largest_row_is_the_first_of_the_largest():
    g = constraints.Affine([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [2.0, 0.0]]], [[0.0, 0.0], [0.0, np.inf]])
    x = np.array([[2.0, 2.0], [3.0, -1.0]])
    v, s = largest_row(g, x, g.rows(x))
    assert v.tolist() == [2.0, 0.0]
    assert s.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_clasp_f_says_when_a_zero_subgradient_proves_a_round_infeasible():
    learner = CLASPF(Box(-1.0, 1.0, dim=2), start=[[0.5, 0.5], [0.0, 0.0], [0.5, -0.5]])
    before = learner.ask()
    with pytest.raises(InfeasibleRound) as caught:
        learner.tell(losses.Linear([1.0, 0.0]), constraints.NormBall([0.0, 0.0], -0.25))
    assert caught.value.trials == (1,)
    assert caught.value.least_violation.tolist() == [0.25]
    assert learner.ask() is before
    assert learner.t == 0


def test_clasp_f_asks_for_one_value_and_one_subgradient():
    calls = []
    g = constraints.Function(lambda x: calls.append("value") or float(x @ x) - 1, lambda x: calls.append("s") or 2 * x)
    learner = CLASPF(Ball(0.0, 5.0, dim=3), start=np.full(3, 1.0))
    learner.tell(losses.Linear(np.zeros(3)), g)
    assert calls == ["value", "s"]
    learner.tell(None, constraints.Function(lambda x: -1.0, lambda x: pytest.fail("not needed: nothing is violated")))


# ---------------------------------------------------------------- AdaGrad's edges


def test_inactive_trials_stay():
    rng = np.random.default_rng(3)
    K, p = Box(-1.0, 1.0, dim=4), Surrogate.convex(50, 2.0, 4.0)
    x, gradient, s = rng.uniform(-1, 1, (3, 6, 4))
    memory = SurrogateMemory(*rng.uniform(0, 1, (2, 6)))
    g = constraints.Affine(s[:, None], np.vecdot(s, x)[:, None] - rng.uniform(-1, 1, (6, 1)))
    feedback = Feedback(1, 1, x, x, None, 0.0, gradient, 0.0, g, g.rows(x))
    active = np.array([True, False, True, True, False, False])
    masked, free = (p.step(K.project_unchecked, memory, feedback, which) for which in (active, None))
    pairs = [(masked[0], free[0], x), (masked[2], free[2], np.zeros(6)), *zip(masked[1], free[1], memory, strict=True)]
    for got, moved, kept in pairs:
        assert np.array_equal(got[active], moved[active])
        assert np.array_equal(got[~active], kept[~active])


def test_the_weight_of_a_violation_never_overflows():
    p = Surrogate.convex(1, 1.0, 1.0)
    q = np.array([0.0, 1.0, 499.0, 501.0, 1e9, 1e300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = p.weight(q)
    assert np.isfinite(weights).all()
    assert (np.diff(weights) >= 0).all()
    np.testing.assert_allclose(weights[:3], 0.5 * np.exp(q[:3] / 2), rtol=1e-14)
    K = Box(-1.0, 1.0, dim=1)
    learner = AdaGrad(K, 1, 1e-3, start=[1.0])  # G far too small: Q grows by 1000 a round
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(40):
            side = 1.0 if t % 2 else -1.0
            learner.tell(losses.Linear([1.0]), constraints.Affine([side], -1.0))
            assert K.contains(learner.ask())
    assert learner.t == 40  # beyond its horizon too


def test_squares_that_overflow_are_refused():
    learner = AdaGrad(Box(0.0, 1.0, dim=2), 10, 1.0)
    with pytest.raises(InvalidInput, match="overflows"):
        learner.tell(losses.Linear([1e160, 0.0]))
    assert learner.t == 0


def test_without_gradients_there_is_no_step():
    learner = AdaGrad(Box(0.0, 1.0, dim=2), 10, 1.0, start=[0.5, 0.25])
    record = learner.tell(losses.Linear([0.0, 0.0]), constraints.Affine([1.0, 1.0], 3.0))
    assert record.step == 0.0
    assert learner.ask().tolist() == [0.5, 0.25]


# ---------------------------------------------------------------- rounds that reveal one half, and arguments


def test_steps_are_counted_in_losses():
    K, idle = Box(-1.0, 1.0, dim=2), constraints.Affine([1.0, 0.0], 5.0)
    for make, expected in (
        (lambda: RECOO(K), [0.5, 0.5 / math.sqrt(2)]),
        (lambda: RECOO(K, strong_convexity=2.0), [0.5, 0.25]),
        (lambda: CLASPF(K, beta=0.5), [1.0, 1 / math.sqrt(2)]),
        (lambda: AdaGrad(K, 10, 1.0, strong_convexity=2.0), [1 / (8 * math.log(10 * math.e)) / t for t in (1, 2)]),
    ):
        learner, loss = make(), losses.Linear([0.1, 0.0])
        taken = [float(learner.tell(reveal, idle).step) for reveal in (None, loss, None, loss)]
        assert taken[1::2] == pytest.approx(expected)


def test_constraints_alone_are_approached():
    K, g = Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0)
    for learner in (
        RECOO(K, start=[1.0, 1.0]),
        CLASPF(K, start=[1.0, 1.0]),
        AdaGrad(K, 50, 2.0, start=[1.0, 1.0]),
        AdaGrad(K, 50, 2.0, start=[1.0, 1.0], strong_convexity=0.1),
    ):
        for _ in range(50):
            learner.tell(None, g)
        assert g.value(learner.ask()) < 0.1


def test_arguments_are_checked():
    K, half = Box(0.0, 1.0, dim=2), Halfspace([1.0, 0.0], 1.0)
    for call, message in (
        (lambda: AdaGrad(half, 10, 1.0), "diameter: expected a positive number, since that of K is inf, got None"),
        (
            lambda: AdaGrad(Box(1.0, 1.0, dim=2), 10, 1.0),
            "diameter: expected a positive number, since that of K is 0.0",
        ),
        (lambda: AdaGrad(K, 10, 1.0, diameter=-1.0), "diameter: expected a positive number, got -1.0"),
        (lambda: AdaGrad(K, 0, 1.0), "horizon: expected a positive integer"),
        (lambda: AdaGrad(K, 10, 0.0), "lipschitz: expected a positive number"),
        (lambda: AdaGrad(K, 10, 1.0, weight=0.0), "weight: expected a positive number"),
        (lambda: AdaGrad(K, 10, 1.0, weight=2.0, strong_convexity=1.0), "weight: expected 1.0"),
        (lambda: AdaGrad(K, 10, 1.0, strong_convexity=0.0), "strong_convexity: expected a positive number"),
        (lambda: RECOO(K, strong_convexity=-1.0), "strong_convexity: expected a positive number"),
        (lambda: RECOO(K, epsilon=-0.6), "epsilon: expected at least -0.5"),
        (lambda: RECOO(K, rows="some"), 'rows: expected "all" or "worst"'),
        (lambda: CLASPF(K, gradient_at="y"), 'gradient_at: expected "x" or "xb"'),
        (lambda: CLASPF(K, steps=0.1), "steps: expected a schedule"),
        (lambda: CLASPF("K"), "K: expected a set"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert str(caught.value).startswith(message)
    AdaGrad(half, 10, 1.0, diameter=2.0)
    AdaGrad(half, 10, 1.0, strong_convexity=1.0)  # its formula knows no diameter
    assert isinstance(cocopt.RECOO(half), RECOO)


@pytest.mark.parametrize(
    "make", [RECOO, lambda K, **o: RECOO(K, rows="worst", **o), CLASPF, lambda K, **o: AdaGrad(K, 9, 1.0, **o)]
)
def test_idle_rows_ask_for_nothing(make):
    K, rng = Box(0.0, 1.0, dim=3), np.random.default_rng(0)
    start, A, loss = rng.uniform(0, 1, (2, 3)), rng.uniform(0, 2, (2, 2, 3)), losses.Linear([0.1, -0.1, 0.2])
    learners = [make(K, start=start) for _ in range(3)]
    for _ in range(5):
        learners[0].tell(loss, constraints.Affine(A[:, :1], np.full((2, 1), 0.5)))
        learners[1].tell(loss, constraints.Affine(A, np.stack([np.full(2, 0.5), np.full(2, np.inf)], axis=-1)))
        record = learners[2].tell(loss, constraints.Affine(A, np.full((2, 2), np.inf)))
        assert (record.violation == 0).all()
    np.testing.assert_allclose(learners[1].ask(), learners[0].ask(), atol=1e-12)
    assert learners[2].ledger.ccv1.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("make", [CLASPF, lambda K, **options: AdaGrad(K, 50, 2.0, **options)])
def test_where_the_largest_row_is_all_that_counts_both_choices_are_the_same(make):
    rng, K = np.random.default_rng(0), Box(0.0, 1.0, dim=3)
    one, other = make(K, rows="all"), make(K, rows="worst")
    for _ in range(30):
        g, f = constraints.Affine(rng.uniform(0, 2, (4, 3)), rng.uniform(0, 1, 4)), losses.Linear(rng.normal(size=3))
        one.tell(f, g)
        other.tell(f, g)
        assert np.array_equal(one.ask(), other.ask())
    assert other.parameters()["rows"] == "worst"
    with pytest.raises(InvalidInput, match='rows: expected "all" or "worst", got'):
        make(K, rows="some")
