"""COLDQ, Double-Q, Yi et al. 2021 and RECOO's two queues: equality with plain loops, bounds, identities, errors."""

import math
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import prox_algorithms as naive
from test_rivals import KINDS, SETS, Stream, T, build, positive_definite

import cocopt
from cocopt import CLASP, COLDQ, RECOO, Box, DoubleQ, Halfspace, Yi2021, constraints, losses, steps, theory
from cocopt.errors import InvalidInput
from cocopt.geometry import solve_projection

# four rows, one row; of each kind one regime, and in the slow tests both
FEW = [("regression", False, (0,)), ("svm", True, (0,))]
MORE = [pytest.param((*kind, (1, 2, 3)), marks=pytest.mark.slow) for kind in KINDS]


@pytest.fixture(params=[*FEW, *MORE], ids=str)
def stream(request):
    return Stream(*request.param)


@pytest.fixture
def static_stream(stream):
    stream.A, stream.b = (np.repeat(part[:, :1], T, axis=1) for part in (stream.A, stream.b))
    return stream


PROJECTIONS = {
    "box": lambda n: naive.box,
    "ball": lambda n: naive.ball(np.full(n, 0.3), 2.0),
    "simplex": lambda n: naive.simplex(1.5),
    "ellipsoid": lambda n: naive.ellipsoid(np.full(n, 0.2), positive_definite(n)),
}


@cache
def plain_set(name, n):
    """The library's set and the naive one, with a projection that is faster than that of reference/rivals.py."""
    K, plain = build(name, n)
    return K, plain._replace(project=PROJECTIONS[name](n))


def compare(stream, name, make, loop):
    """The learner, which plays all trials at once, against the loop, one trial at a time."""
    K, plain = plain_set(name, stream.n)
    points = stream.play(make(K, start=stream.start(K)))
    for k, start in enumerate(stream.start(K)):
        np.testing.assert_allclose(points[k], loop(plain, start, stream.single(k)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("horizon", "epsilon", "path"), [(None, 0.5, None), (T, 0.02, None), (20, 0.005, 0.6)])
def test_coldq_is_its_argmin(stream, name, horizon, epsilon, path):
    m = stream.m if path is None else None

    def alpha(t):
        return t ** ((1 - (path or 0)) / 2) if m is None else m * t / 2

    compare(
        stream,
        name,
        lambda K, start: COLDQ(K, start=start, horizon=horizon, epsilon=epsilon, strong_convexity=m, path=path),
        lambda K, x, rounds: naive.coldq(K, x, rounds, alpha, epsilon, horizon),
    )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("G", "epsilon", "V"), [(2.0, 0.01, 5.0), (0.01, 0.002, 0.3)])
def test_double_q_is_its_argmin(stream, name, G, epsilon, V):
    D = build(name, stream.n)[0].diameter

    def along(p):
        return p - p.mean() if name == "simplex" else p

    compare(
        stream,
        name,
        lambda K, start: DoubleQ(K, T, G, start=start, epsilon=epsilon, weight=V),
        lambda K, x, rounds: naive.double_q(K, x, rounds, T, G, D, epsilon, V, along),
    )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("options", [{}, {"c": 0.7, "alpha_scale": 0.5, "gamma_scale": 2.0}, {"alpha": 0.3}])
def test_yi2021_is_its_argmin(static_stream, name, options):
    M, G = static_stream.A.shape[-2], 3.0
    m = static_stream.m if not options else None
    gamma_0 = options.get("gamma_scale", 1.0) / (math.sqrt(2) * math.sqrt(M) * G)

    def alpha(t):
        decreasing = options.get("alpha_scale", 1.0) / t ** options.get("c", 0.5)
        return options.get("alpha", decreasing if m is None else 2 / (m * t))

    compare(
        static_stream,
        name,
        lambda K, start: Yi2021(K, G, start=start, strong_convexity=m, **options),
        lambda K, x, rounds: naive.yi2021(K, x, rounds, alpha, gamma_0),
    )


SCALES = (0.5, 0.3, 0.2)


def recoo(K, start, scales, **options):
    return RECOO(
        K, start=start, **dict(zip(("alpha_scale", "eta_scale", "gamma_scale"), scales, strict=True)), **options
    )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    ("rows", "scales", "epsilon"), [("all", (1.0, 1.0, 1.0), 0.2), ("worst", SCALES, 0.2), ("worst", SCALES, -0.4995)]
)
def test_recoo_with_its_queue_before_the_argmin(stream, name, rows, scales, epsilon):
    m = stream.m
    compare(
        stream,
        name,
        lambda K, start: recoo(K, start, scales, strong_convexity=m, epsilon=epsilon, queue="before", rows=rows),
        lambda K, x, rounds: naive.recoo_before(K, x, rounds, m, epsilon, rows == "worst", scales),
    )


def test_nothing_is_promised_about_recoo_where_its_weight_grows_too_slowly():
    K = Box(0.0, 1.0, dim=2)
    assert RECOO(K, epsilon=0.01).rates == RECOO.facts.convex
    for epsilon in (0.0, -0.5):
        learner = RECOO(K, epsilon=epsilon)
        assert learner.rates is None
        with pytest.raises(InvalidInput, match="epsilon: expected a positive number"):
            learner.bounds(10, lipschitz_f=1.0, lipschitz_g=1.0)


@pytest.mark.parametrize("name", SETS)
def test_recoo_with_factors_and_its_queue_after_the_argmin(stream, name):
    m = stream.m
    stream.A, stream.b = stream.A[:, :, :1], stream.b[:, :, :1]
    compare(
        stream,
        name,
        lambda K, start: recoo(K, start, SCALES, strong_convexity=m, epsilon=0.2),
        lambda K, x, rounds: naive.recoo_after(K, x, rounds, m, 0.2, SCALES),
    )


# ---------------------------------------------------------------- identities


def queues_of_recoo(rows, Q, t):
    return np.maximum(Q + t**0.6 * np.maximum(rows, 0), math.sqrt(t)), t**0.6


def queues_of_coldq(rows, Q, t):
    return (np.full(len(rows), 0.5) if t == 1 else np.maximum((1 - t**-2) * Q + np.maximum(rows, 0), t**2 / 2)), 1.0


@pytest.mark.parametrize("M", [1, 4])
@pytest.mark.parametrize(
    ("make", "queues"),
    [(lambda K, start: RECOO(K, start=start, queue="before"), queues_of_recoo), (COLDQ, queues_of_coldq)],
)
def test_a_prox_with_large_enough_queues_is_clasp(M, make, queues):
    H, y, A, b = naive_regression()
    K = Box(0.0, 1.0, dim=10)
    seen = set()
    for scale in (1.0, 0.03):
        learner, Q = make(K, start=np.full(10, 0.5)), np.zeros(M)
        for t in range(1, T + 1):
            x, rows, rhs = learner.ask(), scale * A[t - 1, :M], scale * b[t - 1, :M]
            loss, constraint = losses.LeastSquares(H[t - 1], y[t - 1]), constraints.Affine(rows, rhs)
            Q, gamma = queues(rows @ x - rhs, Q, t)
            learner.tell(loss, constraint)
            eta = 1 / (2 * math.sqrt(t))
            needed = solve_projection(K, constraint, x - eta * loss.gradient(x)).multipliers
            if (needed <= eta * gamma * Q).all():
                clasp = CLASP(K, start=x, steps=steps.Constant(eta))
                clasp.tell(loss, constraint)
                np.testing.assert_allclose(learner.ask(), clasp.ask(), rtol=0, atol=1e-8)
                seen.add("enough" if needed.sum() > 0 else "not needed")
            else:
                assert constraint.value(learner.ask()) > 0
                seen.add("too small")
    assert seen >= {"enough", "too small"}


def naive_regression():
    rng = np.random.default_rng(11)
    H = rng.uniform(-1, 1, (T, 4, 10))
    return H, H.sum(-1) + rng.normal(size=(T, 4)), rng.uniform(0, 2, (T, 4, 10)), rng.uniform(0, 1, (T, 4))


def play(learners, rounds):
    for loss, constraint in rounds:
        for learner in learners:
            learner.tell(loss, constraint)
    return [learner.ask() for learner in learners]


def random_rounds(rng, M, rounds=20):
    return [
        (losses.Linear(rng.normal(size=3)), constraints.Affine(rng.uniform(0, 2, (M, 3)), rng.uniform(0, 1, M)))
        for _ in range(rounds)
    ]


def test_configurations_that_are_the_same():
    K, rng = Box(0.0, 1.0, dim=3), np.random.default_rng(0)
    one, other = play([COLDQ(K), COLDQ(K, path=0.0)], random_rounds(rng, 2))
    np.testing.assert_array_equal(one, other)
    one, other = play([RECOO(K, queue="before", rows=rows) for rows in ("all", "worst")], random_rounds(rng, 1))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)  # one row
    alpha, fixed = 4 / math.sqrt(20), random_rounds(rng, 2)
    one, other = play(  # γ_0 = 1, as in the public code
        [Yi2021(K, 1.0, alpha=alpha, gamma=20**0.25 / 2), Yi2021(K, 1.0, alpha=alpha, gamma_scale=2.0)],
        [(loss, fixed[0][1]) for loss, _ in fixed],
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_rounds_without_a_constraint_count_as_rounds_without_violation():
    K, rng = Box(0.0, 1.0, dim=3), np.random.default_rng(1)
    for make in (
        lambda: COLDQ(K),
        lambda: COLDQ(K, horizon=9, epsilon=0.01),
        lambda: DoubleQ(K, 9, 1.0),
        lambda: RECOO(K),
        lambda: RECOO(K, queue="before"),
        lambda: RECOO(K, queue="before", rows="worst"),
    ):
        for silent in ((1, 2, 6), (1, 4, 5), (2, 3)):
            one, other = make(), make()
            for t, (loss, constraint) in enumerate(random_rounds(rng, 2, 9), start=1):
                idle = constraints.Affine(np.ones((2, 3)), np.full(2, np.inf))
                one.tell(loss, None if t in silent else constraint)
                other.tell(loss, idle if t in silent else constraint)
                np.testing.assert_allclose(one.ask(), other.ask(), rtol=0, atol=1e-12)


def test_steps_are_counted_in_losses():
    K, idle, loss = Box(-1.0, 1.0, dim=2), constraints.Affine([1.0, 0.0], 5.0), losses.Linear([0.1, 0.0])
    for make, expected in (
        (lambda: COLDQ(K), [0.5, 0.5 / math.sqrt(2)]),
        (lambda: COLDQ(K, path=0.5), [0.5, 0.5 / 2**0.25]),
        (lambda: COLDQ(K, strong_convexity=2.0), [0.5, 0.25]),
        (lambda: Yi2021(K, 1.0), [0.5, 0.5 / math.sqrt(2)]),
        (lambda: Yi2021(K, 1.0, strong_convexity=2.0), [0.5, 0.25]),
        (lambda: RECOO(K, alpha_scale=2.0), [0.25, 0.25 / math.sqrt(2)]),
        (lambda: DoubleQ(K, 10, 1.0), [math.sqrt(2 / t) * math.sqrt(8) / 0.5 for t in (1, 2)]),
    ):
        learner = make()
        taken = [float(learner.tell(reveal, idle).step) for reveal in (None, loss, None, loss)]
        assert taken[1::2] == pytest.approx(expected)


def test_constraints_alone_are_approached():
    K, g = Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0)
    for make in (
        COLDQ,
        lambda K, start: DoubleQ(K, 50, 2.0, start=start),
        lambda K, start: Yi2021(K, 2.0, start=start),
    ):
        learner = make(K, start=[1.0, 1.0])
        for _ in range(50):
            learner.tell(None, g)
        assert g.value(learner.ask()) < 0.1


# ---------------------------------------------------------------- bounds


def box_stream(n, seed, m, M, static=False):
    """Rounds in K = [−1, 1]^n in which each of M rows bounds one coordinate from one side: S_t and K ∩ C_t are boxes.

    Returns (rounds, L_f, L_g, best, moving): best[t] is the least loss of a fixed action that satisfies rounds 0 … t,
    moving the actions u_t = argmin over K ∩ C_t of f_t.
    """
    rng = np.random.default_rng(seed)
    size, drift, inside = rng.uniform(0.1, 3.0), rng.normal(size=n), rng.uniform(-0.5, 0.5, n)
    m = m or 0.0
    c = size * (drift + rng.normal(size=(T, n)))
    z = rng.uniform(-1, 1, (T, n))
    j, sign = rng.integers(n, size=(T, M)), rng.choice([-1.0, 1.0], (T, M))
    slope, slack = rng.uniform(0.1, 4.0, (T, M)), rng.uniform(0, 0.5, (T, M))
    if static:
        j, sign, slope, slack = (np.repeat(part[:1], T, axis=0) for part in (j, sign, slope, slack))
    b = sign * inside[j] + slack

    def argmin(total, weight, low, high):
        return np.clip(-total / weight, low, high) if weight else np.where(total > 0, low, high)

    rounds, best, moving = [], [], []
    low, high = -np.ones(n), np.ones(n)
    for t in range(T):
        loss = losses.Quadratic(m * np.eye(n), c[t] - m * z[t], m / 2 * z[t] @ z[t])
        rounds.append((loss, constraints.Affine((slope[t] * sign[t])[:, None] * np.eye(n)[j[t]], slope[t] * b[t])))
        own_low, own_high = -np.ones(n), np.ones(n)
        for k in range(M):
            if sign[t, k] > 0:
                own_high[j[t, k]] = min(own_high[j[t, k]], b[t, k])
            else:
                own_low[j[t, k]] = max(own_low[j[t, k]], -b[t, k])
        low, high = np.maximum(low, own_low), np.minimum(high, own_high)
        moving.append(argmin(c[t] - m * z[t], m, own_low, own_high))
        x = argmin((c - m * z)[: t + 1].sum(axis=0), m * (t + 1), low, high)
        best.append(sum(float(loss.value(x)) for loss, _ in rounds))
    L_f = float(np.linalg.norm(np.abs(c) + 2 * m, axis=1).max())
    return rounds, L_f, float(slope.max()), best, np.array(moving)


def dynamic_learners(K, start, G, m):
    for queue in ("after", "before"):
        yield RECOO(K, start=start, strong_convexity=m, queue=queue)
        yield recoo(K, start, SCALES, strong_convexity=m, queue=queue, epsilon=0.4)
    yield RECOO(K, start=start, strong_convexity=m, queue="before", rows="worst")
    yield COLDQ(K, start=start, strong_convexity=m)
    yield COLDQ(K, start=start, strong_convexity=m, horizon=T, epsilon=0.01)
    if m is None:
        yield COLDQ(K, start=start, path=0.5)
        yield DoubleQ(K, T, G, start=start)
        yield DoubleQ(K, T, G, start=start, weight=0.1, epsilon=0.5)


def static_learners(K, start, G, m):
    if m is not None:
        yield Yi2021(K, G, start=start, strong_convexity=m)
        return
    yield Yi2021(K, G, start=start)
    yield Yi2021(K, G, start=start, c=0.8, alpha_scale=0.2, gamma_scale=0.3)
    yield Yi2021(K, G, start=start, alpha=0.5)
    yield Yi2021(K, G, start=start, alpha=0.5, gamma_scale=1.9)


def check_bounds(learner, rounds, L_f, L_g, best):
    learner.tell(*rounds[0])  # so that it knows the number of rows
    promised = learner.bounds(np.arange(1, T + 1), lipschitz_f=L_f, lipschitz_g=L_g)
    for t in range(T):
        if t > 0:
            learner.tell(*rounds[t])
        assert learner.ledger.loss - best[t] <= promised.regret[t] * (1 + 1e-9) + 1e-9
        assert learner.ledger.ccv1 <= promised.ccv1[t] * (1 + 1e-9)
        assert learner.ledger.ccv2 <= promised.ccv2[t] * (1 + 1e-9)


@pytest.mark.parametrize("m", [None, 0.05, 2.0])
@settings(max_examples=5)
@given(st.integers(1, 4), st.sampled_from([1, 3]), st.integers(0, 10**6))
def test_bounds_hold_in_every_round(m, n, M, seed):
    K, start = Box(-1.0, 1.0, dim=n), np.random.default_rng(seed).uniform(-1, 1, n)
    for static, learners in ((False, dynamic_learners), (True, static_learners)):
        rounds, L_f, L_g, best, _ = box_stream(n, seed, m, M, static)
        for learner in learners(K, start, max(L_f, L_g) if learners is dynamic_learners else L_g, m):
            check_bounds(learner, rounds, L_f, L_g, best)


@pytest.mark.parametrize("m", [None, 0.5])
@settings(max_examples=10)
@given(st.integers(1, 4), st.sampled_from([1, 3]), st.integers(0, 10**6))
def test_the_dynamic_regret_of_coldq_and_recoo_is_bounded(m, n, M, seed):
    rounds, L_f, _, _, moving = box_stream(n, seed, m, M)
    K, start = Box(-1.0, 1.0, dim=n), np.random.default_rng(seed).uniform(-1, 1, n)
    increments = np.linalg.norm(np.diff(moving, axis=0, prepend=moving[:1]), axis=1)
    for learner in (
        COLDQ(K, start=start, strong_convexity=m),
        COLDQ(K, start=start, horizon=T, epsilon=0.01, path=0.7),
        RECOO(K, start=start, strong_convexity=m, queue="before"),
        RECOO(K, start=start, strong_convexity=m, alpha_scale=0.3),
    ):
        promised, regret = learner.dynamic_bounds(increments, lipschitz_f=L_f), 0.0
        for t, (loss, constraint) in enumerate(rounds):
            regret += float(loss.value(learner.ask())) - float(loss.value(moving[t]))
            learner.tell(loss, constraint)
            assert regret <= promised[t] * (1 + 1e-9)


D, L_F, L_G, N = 2.0, 3.0, 0.5, 300


@pytest.mark.parametrize("horizon", [None, 400])
@pytest.mark.parametrize("m", [None, 0.4])
def test_the_constants_of_coldq(m, horizon):
    def alpha(t):
        return t**0.3 if m is None else m * t / 2

    schedule = steps.Power(0.3, 0.5) if m is None else steps.StronglyConvex(m)
    got = theory.bounds_coldq(
        schedule, [1, N], diameter=D, lipschitz_f=L_F, lipschitz_g=L_G, horizon=horizon, epsilon=0.2
    )
    total = sum(1 / alpha(t) for t in range(1, N + 1)) if m is None else 2 / m * (1 + math.log(N))
    regret = L_F**2 / 4 * total + (D**2 * alpha(N) if m is None else 0)
    assert got.regret[1] == pytest.approx(regret, rel=1e-12)
    moves = L_G**2 * (D**2 + L_F * D * total)
    if horizon is None:
        R = (L_F * D * sum(1 / t**2 for t in range(1, N + 1)) + alpha(1) * D**2) / 0.2
        h = (L_F * D + alpha(1) * D**2) / 0.2
    else:
        R = (L_F * D * N + alpha(N) * D**2) / (0.2 * horizon)
        h = (L_F * D + alpha(N) * D**2) / (0.2 * horizon)
    assert got.ccv2[1] == pytest.approx(2 * moves + 2 * min(L_G * D, h) * R, rel=1e-12)
    assert got.ccv1[1] == pytest.approx(math.sqrt(N * moves) + R, rel=1e-12)


def test_the_constants_of_double_q():
    GD, V, M = 6.0, 2.0, 3
    got = theory.bounds_double_q(N, horizon=400, diameter=2.0, lipschitz=3.0, weight=V, row_count=M)
    kappa, beta = 5 / math.sqrt(8), 1 / (4 * GD * math.exp(2) + 1)
    r = kappa * GD * beta / 2
    assert got.regret == pytest.approx(kappa * GD * math.sqrt(N) + r * M / V, rel=1e-12)
    largest = (M + kappa * V * GD * math.sqrt(N) + V * GD * N) / (1 - r)  # of Σ_i exp(λ z_i)
    assert got.ccv1 == pytest.approx(M * 2 * math.sqrt(400) * math.log(largest / M) / beta, rel=1e-12)
    assert got.ccv2 == pytest.approx(GD * got.ccv1, rel=1e-12)


@pytest.mark.parametrize("m", [None, 0.4])
def test_the_constants_of_yi2021(m):
    M, gamma_0 = 3, 0.7

    def alpha(t):
        return 0.6 * t**-0.3 if m is None else 2 / (m * t)

    def C(t):
        b = gamma_0 * L_G * math.sqrt(M)
        return math.sqrt(M * (2 * L_F * D * t + (2 + b**2) * D**2 / alpha(t) + b**2 * D**2 / alpha(1)))

    schedule = steps.Power(0.3, 0.3) if m is None else steps.StronglyConvex(m)
    got = theory.bounds_yi2021(
        schedule, [1, N], diameter=D, lipschitz_f=L_F, lipschitz_g=L_G, gamma_0=gamma_0, row_count=M
    )
    inverse = {1: math.sqrt(alpha(1)) / gamma_0} | {t: math.sqrt(alpha(t - 1)) / gamma_0 for t in range(2, N + 1)}
    ccv1 = C(N) * inverse[N] + sum(C(t) * (inverse[t] - inverse[t + 1]) for t in range(1, N))
    assert got.ccv1 == pytest.approx([C(1) * inverse[1], ccv1], rel=1e-12)
    assert got.ccv2 == pytest.approx(L_G * D * got.ccv1, rel=1e-12)
    regret = L_F**2 / (2 * (m or 1)) * (1 + math.log(N))
    if m is None:
        regret = L_F**2 / 4 * sum(alpha(t) for t in range(1, N + 1)) + D**2 / alpha(N)
    assert got.regret[1] == pytest.approx(regret, rel=1e-12)
    beyond = theory.bounds_yi2021(schedule, N, diameter=D, lipschitz_f=L_F, lipschitz_g=L_G, gamma_0=3.0, row_count=M)
    assert beyond.ccv1 is None
    assert beyond.regret == pytest.approx(regret, rel=1e-12)
    default = theory.bounds_yi2021(schedule, N, diameter=D, lipschitz_f=L_F, lipschitz_g=L_G, row_count=M)
    same = theory.bounds_yi2021(
        schedule, N, diameter=D, lipschitz_f=L_F, lipschitz_g=L_G, row_count=M, gamma_0=1 / (L_G * math.sqrt(2 * M))
    )
    assert default.ccv1 == pytest.approx(same.ccv1, rel=1e-12)


@pytest.mark.parametrize("m", [None, 0.4])
def test_the_constants_of_recoo_with_its_queue_before(m):
    a, e, g, eps = 1.5, 0.4, 0.3, 0.2

    def alpha(t):
        return a * (math.sqrt(t) if m is None else m * t / 2)

    got = theory.bounds_recoo(
        N,
        diameter=D,
        lipschitz_f=L_F,
        lipschitz_g=L_G,
        strong_convexity=m,
        epsilon=eps,
        queue="before",
        scales=(a, e, g),
    )
    total = sum(1 / alpha(t) for t in range(1, N + 1))
    regret = L_F**2 / 4 * total + D**2 * alpha(N)
    if m is not None:
        regret = L_F**2 / (2 * m * a) * (1 + math.log(N)) + (a - 1) * m / 2 * D**2 * N
    assert got.regret == pytest.approx(regret, rel=1e-12)
    R = (L_F * D * sum(t ** (-1 - eps) for t in range(1, N + 1)) + alpha(1) * D**2) / (e * g)
    h = min(L_G * D, (L_F * D + alpha(1) * D**2) / (e * g))
    assert got.ccv2 == pytest.approx(2 * L_G**2 * (D**2 + L_F * D * total) + 2 * h * R, rel=1e-12)


def test_rates_follow_the_configuration():
    K = Box(0.0, 1.0, dim=2)
    assert str(COLDQ(K, path=0.5).rates) == "regret T^(3/4), CCV₁ T^(7/8), CCV₂ T^(3/4)"
    assert COLDQ(K).rates == COLDQ.facts.convex
    assert COLDQ(K, strong_convexity=1.0).rates == COLDQ.facts.strongly_convex
    assert str(Yi2021(K, 1.0, c=0.75).rates) == "regret T^(3/4), CCV₁ T^(1/8), CCV₂ T^(1/8)"
    assert Yi2021(K, 1.0).rates == Yi2021.facts.convex
    assert Yi2021(K, 1.0, alpha=0.1).rates is None


# ---------------------------------------------------------------- errors


def test_arguments_are_checked():
    K, half = Box(0.0, 1.0, dim=2), Halfspace([1.0, 0.0], 1.0)
    for call, message in (
        (lambda: COLDQ(K, horizon=0), "horizon: expected a positive integer"),
        (lambda: COLDQ(K, epsilon=0.0), "epsilon: expected a positive number"),
        (lambda: COLDQ(K, path=1.0), "path: expected a number in [0, 1), got 1.0"),
        (lambda: COLDQ(K, path=-0.1), "path: expected a non-negative number"),
        (lambda: COLDQ(K, path=0.5, strong_convexity=1.0), "path: expected None together with strong_convexity"),
        (lambda: DoubleQ(half, 10, 1.0), "diameter: expected a positive number, since that of K is inf, got None"),
        (lambda: DoubleQ(K, 10, 1.0, weight=0.0), "weight: expected a positive number"),
        (lambda: DoubleQ(K, 10, -1.0), "lipschitz: expected a positive number"),
        (lambda: Yi2021(K, 0.0), "lipschitz: expected a positive number"),
        (lambda: Yi2021(K, 1.0, c=1.0), "c: expected a number in (0, 1), got 1.0"),
        (lambda: Yi2021(K, 1.0, gamma=1.0), "gamma: expected None, since it belongs to constant steps by alpha"),
        (lambda: Yi2021(K, 1.0, alpha=1.0, strong_convexity=1.0), "alpha: expected None together with"),
        (lambda: Yi2021(K, 1.0, alpha=1.0, alpha_scale=2.0), "alpha_scale: expected 1.0"),
        (lambda: Yi2021(K, 1.0, alpha=1.0, gamma=1.0, gamma_scale=2.0), "gamma_scale: expected 1.0"),
        (lambda: RECOO(K, queue="during"), 'queue: expected "after" or "before"'),
        (lambda: RECOO(K, eta_scale=0.0), "eta_scale: expected a positive number"),
        (
            lambda: theory.bounds_double_q(11, horizon=10, diameter=1.0, lipschitz=1.0),
            "T: expected at most the horizon",
        ),
        (
            lambda: DoubleQ(K, 10, 1.0).bounds(5, lipschitz_f=2.0, lipschitz_g=1.0),
            "lipschitz_f: expected at most the 1.0",
        ),
        (
            lambda: DoubleQ(K, 10, 1.0).bounds(5, lipschitz_f=1.0, lipschitz_g=1.0),
            "row_count: expected a number, since",
        ),
        (
            lambda: RECOO(K, strong_convexity=1.0, alpha_scale=2.0).dynamic_bounds([0.0], lipschitz_f=1.0),
            "alpha_scale: expected at most 1 for strongly convex losses",
        ),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert str(caught.value).startswith(message)
    unknown = Yi2021(K, 1.0).bounds(10, lipschitz_f=1.0, lipschitz_g=1.0)
    assert unknown.ccv1 is None  # it depends on the number of rows
    assert (
        unknown.regret
        == theory.bounds_yi2021(steps.Power(0.5, 0.5), 10, diameter=K.diameter, lipschitz_f=1.0, lipschitz_g=1.0).regret
    )


def test_a_constraint_that_changes_is_refused_by_the_static_method():
    learner, loss = Yi2021(Box(0.0, 1.0, dim=2), 1.0), losses.Linear([1.0, 0.0])
    learner.tell(loss, constraints.Affine([1.0, 1.0], 0.5))
    with pytest.raises(InvalidInput, match="the same constraint in every round, which Yi2021 is made for"):
        learner.tell(loss, constraints.Affine([1.0, 1.0], 0.6))
    assert learner.t == 1


@pytest.mark.parametrize(
    "make",
    [COLDQ, lambda K: DoubleQ(K, 10, 1.0), lambda K: RECOO(K, queue="before")],
    ids=["coldq", "double-q", "recoo"],
)
def test_the_number_of_rows_stays(make):
    learner, loss = make(Box(0.0, 1.0, dim=2)), losses.Linear([1.0, 0.0])
    learner.tell(loss, constraints.Affine(np.eye(2), [0.5, 0.5]))
    with pytest.raises(InvalidInput, match="constraint: expected 2 rows as in the first round"):
        learner.tell(loss, constraints.Affine([1.0, 1.0], 0.6))
    assert learner.t == 1


def test_double_q_neither_overflows_nor_steps_without_a_gradient():
    K = Box(-1.0, 1.0, dim=1)
    learner = DoubleQ(K, 1, 1e-9, start=[0.5])
    record = learner.tell(losses.Linear([0.0]), constraints.Affine([1.0], 3.0))
    assert record.step == 0.0
    assert learner.ask().tolist() == [0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(40):
            learner.tell(losses.Linear([1.0]), constraints.Affine([1000.0 if t % 2 else -1000.0], -900.0))
            assert K.contains(learner.ask())
    with pytest.raises(InvalidInput, match="overflows"):
        learner.tell(losses.Linear([1e160]))


def test_they_run_by_name():
    algorithms = ["coldq", "coldq:horizon=none,path=0.5", "double-q", "recoo:queue=before", "recoo:alpha_scale=0.5"]
    result = cocopt.run("olr", algorithms, trials=2, rounds=5, jobs=1)
    assert [*result.algorithms] == algorithms
