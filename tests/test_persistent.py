"""Projections onto the intersection of all constraints so far: the point that a solution from scratch has."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.persistent import from_scratch, gap
from scipy.optimize import linprog

import cocopt
from cocopt import CLASP, Ball, Box, Polyhedron, Simplex, Switch, constraints, losses
from cocopt.errors import InfeasibleRound, InvalidInput, StateError
from cocopt.geometry import persistent
from cocopt.geometry.persistent import PersistentIntersection
from cocopt.kernels.persistent import BLOCK

N = 10
SEVERAL = 11  # trials: enough for SIMD lanes, and more than there are lanes


def regression(rng, batch=()):
    """The paper's rows: S_t shrinks towards 0."""
    return rng.uniform(0, 2, (*batch, 4, N)), rng.uniform(0, 1, (*batch, 4)), rng.normal(size=(*batch, N)) - 1.5


def around(rng, batch=(), center=0.0, radius=1.0):
    """Halfspaces that touch a ball: none ever becomes redundant for good."""
    A = rng.normal(size=(*batch, 1, N)) * rng.uniform(0.1, 10, (*batch, 1, 1))
    b = radius * np.linalg.norm(A, axis=-1) + A @ np.broadcast_to(center, N)
    return A, b, rng.normal(size=(*batch, N))


STREAMS = {"regression": (Box(0.0, 1.0, dim=N), regression), "around a ball": (Box(-2.0, 2.0, dim=N), around)}


def play(K, stream, rounds, seed=0, batch=(), forget=False):
    """Rounds of steps 1/√t: yields t, the target, the point, and all rows so far."""
    rng = np.random.default_rng(seed)
    S, x = PersistentIntersection.begin(K, batch, forget=forget), K.project(np.full((*batch, N), 0.05))
    A, b = np.zeros((*batch, 0, N)), np.zeros((*batch, 0))
    for t in range(1, rounds + 1):
        rows, rhs, slope = stream(rng, batch)
        A, b = np.concatenate([A, rows], axis=-2), np.concatenate([b, rhs], axis=-1)
        y = x - slope / np.sqrt(t)
        S, found = S.plus(constraints.Affine(rows, rhs)).project(y)
        x = found.point
        yield t, y, x, A, b, S


def excess(A, b, x):
    """The worst violation in units of the row's terms."""
    size = np.maximum(np.linalg.norm(A, axis=-1) * np.linalg.norm(x, axis=-1)[..., None], np.abs(b))
    return ((np.matvec(A, x) - b) / size).max()


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_equals_the_quadratic_program_over_the_whole_history(name, forget):
    K, stream = STREAMS[name]
    for t, y, x, A, b, _ in play(K, stream, 1500, forget=forget):
        assert excess(A, b, x) <= 1e-9
        if t < 50 or t % 97 == 0:
            expected = from_scratch(K.lower, K.upper, A, b, y)
            assert np.abs(x - expected).max() <= 1e-8 * np.abs(x).max()


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_trials_in_simd_lanes_equal_the_quadratic_program_over_the_whole_history(name, forget):
    K, stream = STREAMS[name]
    for t, y, x, A, b, _ in play(K, stream, 400, batch=(SEVERAL,), forget=forget):
        assert excess(A, b, x) <= 1e-9
        if t < 50 or t % 23 == 0:
            i = t % SEVERAL
            expected = from_scratch(K.lower, K.upper, A[i], b[i], y[i])
            assert np.abs(x[i] - expected).max() <= 1e-8 * np.abs(x[i]).max()


def test_on_the_regression_few_rows_are_left():
    *_, (_, _, x, _, _, S) = play(*STREAMS["regression"], 2000, forget=True)
    assert np.abs(x).max() < 1e-3
    assert S.nearby.list_sizes.shape[-1] == persistent.MIN_LISTS  # no more lists than at the beginning
    assert S.store.size.max() < 200  # of 8000


@pytest.mark.parametrize("name", STREAMS)
def test_the_number_of_evaluated_rows_does_not_grow_with_the_rows(name):
    """A round searches the first list, of at most BLOCK rows, once, and once more whenever it has added rows.

    Lists are between a quarter and three quarters full, so that this takes about BLOCK evaluations. Making lists anew
    takes more the longer they are, but the longer a list, the rarer: on average it adds less than as much again. So a
    round has at most 2·BLOCK evaluations on average, however many rows there are; a search of all rows would have as
    many as there are rows, and more than that bound from the beginning.
    """
    K, stream = STREAMS[name]
    evaluated, sizes, nearby, before = [], [], None, 0
    for *_, S in play(K, stream, 1500):
        before = before if S.nearby is nearby else 0  # lists that were begun anew count from 0
        nearby, now = S.nearby, int(S.nearby.rows_evaluated()[0])
        evaluated.append(now - before)
        before = now
        sizes.append(int(S.store.size[0]))
    for part in (slice(180, 375), slice(375, 750), slice(750, 1500)):
        assert BLOCK / 4 < np.mean(evaluated[part]) < 2 * BLOCK < np.mean(sizes[part])
    assert np.mean(sizes[750:]) > 8 * 2 * BLOCK  # the bound is far below a search of all rows


@pytest.mark.parametrize(
    ("K", "normals"),
    [
        (Ball(0.1, 1.5, dim=N), lambda x: [x - 0.1] if np.linalg.norm(x - 0.1) > 1.5 - 1e-9 else np.zeros((0, N))),
        (
            Polyhedron(np.vstack([np.eye(N), -np.ones((1, N))]), np.append(np.full(N, 1.5), 3.0)),
            lambda x: np.vstack([np.eye(N)[x > 1.5 - 1e-9], -np.ones((int(x.sum() < -3 + 1e-9), N))]),
        ),
    ],
    ids=["ball", "polyhedron"],
)
@pytest.mark.parametrize("forget", [False, True])
def test_other_sets(K, normals, forget):
    for t, y, x, A, b, _ in play(K, around, 200, forget=forget):
        assert excess(A, b, x) <= 1e-9
        assert K.contains(x)
        if t % 5 == 0:
            assert gap(x, y, A, b, normals(x)) <= 1e-9


@pytest.mark.parametrize("forget", [False, True])
def test_simplex(forget):
    K = Simplex(N)

    def stream(rng, batch):
        A, _, slope = around(rng, batch)
        return A, A @ np.full(N, 0.1) + 0.05 * np.linalg.norm(A, axis=-1), slope

    for t, y, x, A, b, _ in play(K, stream, 200, forget=forget):
        assert excess(A, b, x) <= 1e-9
        if t % 5 == 0:
            expected = from_scratch(np.zeros(N), np.full(N, np.inf), A, b, y, equation=1.0)
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("batch", [(), (SEVERAL,)])
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), rows=st.integers(1, 5), scale=st.floats(-6, 6))
@settings(max_examples=30)
def test_any_stream_equals_one_call_of_project(batch, seed, n, rows, scale):
    rng = np.random.default_rng(seed)
    K = Box(-1.0, rng.uniform(0, 2, n))
    inside = K.project(rng.uniform(-1, 1, n))
    S, added = PersistentIntersection.begin(K, batch, forget=bool(seed % 2)), []
    for _ in range(12):
        shape = (*batch, rows)
        A = rng.normal(size=(*shape, n)) * 10**scale * (rng.random((*shape, n)) < 0.7)
        b = A @ inside + np.where(rng.random(shape) < 0.2, np.inf, rng.exponential(0.3, shape)) * 10**scale
        if added and rng.random() < 0.3:
            A, b = added[-1].A, added[-1].b + rng.choice([0.0, 0.1]) * 10**scale  # the same again, or looser
        added.append(constraints.Affine(A, b))
        y = rng.normal(size=(*batch, n)) * rng.choice([0.1, 1.0, 100.0])
        S, found = S.plus(added[-1]).project(y)
        expected = cocopt.project(K, constraints.Stack(added), y)
        np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-8)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_lists_that_overflow_and_move_change_nothing(seed):
    """Hundreds of rows in few dimensions, most of them near: lists overflow, move, grow, and rows are dropped."""
    rng = np.random.default_rng(seed)
    n, trials = int(rng.integers(1, 5)), int(rng.choice([2, SEVERAL]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(persistent, "SMALL_STORE", 2)
        K = (Box(-1.0, 1.0, dim=n), Box(-np.inf, np.inf, dim=n), Ball(0.0, 1.0, dim=n))[seed % 3]
        S, added, inactive = (
            PersistentIntersection.begin(K, (trials,), forget=bool(seed % 2)),
            [],
            np.arange(trials) % 3 == 1,
        )
        for t in range(25):
            A = rng.normal(size=(trials, int(rng.choice([3, 60])), n))
            A /= np.linalg.norm(A, axis=-1)[..., None]
            b = rng.choice([0.02, 0.03, 0.2, np.inf], A.shape[:2])
            if added and rng.random() < 0.2:
                A, b = added[-1].A, added[-1].b
            added.append(constraints.Affine(A, b))
            y = rng.normal(size=(trials, n)) * rng.choice([0.01, 0.1, 1.0])
            S = S.plus(added[-1])
            S, found = S.project(y, active=~inactive) if t % 4 == 3 else S.project(y)
            expected = cocopt.project(K, constraints.Stack(added), y)
            expected = np.where(inactive[:, None], y, expected) if t % 4 == 3 else expected
            np.testing.assert_allclose(found.point, expected, rtol=0, atol=1e-8)
            played = 0.1 * rng.normal(size=(trials, n))
            S, squares = S.squares(played)
            naive = sum(np.maximum(g.value(played), 0.0) ** 2 for g in added)
            np.testing.assert_allclose(squares, naive, rtol=1e-9, atol=1e-18)


def test_many_coordinates_need_no_square_memory():
    rng, n = np.random.default_rng(0), 5000
    K, added = Box(-1.0, 1.0, dim=n), []
    S = PersistentIntersection.begin(K, ())
    tracemalloc.start()
    try:
        for _ in range(8):
            A = rng.normal(size=(3, n))
            added.append(constraints.Affine(A, 0.1 * np.linalg.norm(A, axis=1)))
            y = rng.normal(size=n)
            S, found = S.plus(added[-1]).project(y)
            np.testing.assert_allclose(found.point, cocopt.project(K, constraints.Stack(added), y), rtol=0, atol=1e-9)
        assert tracemalloc.get_traced_memory()[1] < 100e6  # an n × n array has 200 MB
    finally:
        tracemalloc.stop()
    assert found.method == "kernel"


def test_a_batch_equals_its_trials():
    K, stream = STREAMS["around a ball"]
    rounds = [stream(np.random.default_rng(t), (3, 3)) for t in range(150)]
    whole = PersistentIntersection.begin(K, (3, 3))
    singles = {index: PersistentIntersection.begin(K, ()) for index in np.ndindex(3, 3)}
    for A, b, slope in rounds:
        whole, found = whole.plus(constraints.Affine(A, b)).project(3 * slope)
        for index, S in singles.items():
            S, own = S.plus(constraints.Affine(A[index], b[index])).project(3 * slope[index])
            singles[index] = S
            np.testing.assert_allclose(found.point[index], own.point, rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch", [(), (SEVERAL,)])
def test_rows_that_leave_a_single_point_are_not_dropped(batch):
    """The outer box is {0} then, and rows through it are slack by nothing."""
    rng, eye = np.random.default_rng(1), np.eye(2)
    S = PersistentIntersection.begin(Box(-1.0, 1.0, dim=2), batch, forget=True)
    rows = np.vstack([eye, -eye])
    for _ in range(80):
        g = constraints.Affine(np.broadcast_to(rows, (*batch, *rows.shape)), np.zeros((*batch, len(rows))))
        S, found = S.plus(g).project(np.full((*batch, 2), 0.15))
        assert np.abs(found.point).max() <= 1e-12
        rows = rng.choice([-1.0, 1.0], (3, 1)) * eye[rng.integers(2, size=3)]
    assert (S.store.size >= 4).all()


def test_nothing_is_proven_of_a_trial_that_is_inactive():
    """Its rows exclude each other, and none of them may be dropped as implied by the others."""
    missed = infeasible = 0
    for seed in range(200, 260):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 4))
        S = PersistentIntersection.begin(Box(-1.0, 1.0, dim=n), (2,), forget=True, archive=False)
        every = PersistentIntersection.begin(Box(-1.0, 1.0, dim=n), (2,))
        m = int(rng.integers(2, 6))
        C = rng.normal(size=(m, n))
        C, c = C / np.linalg.norm(C, axis=1, keepdims=True), rng.uniform(-0.6, 0.4, m)
        for t in range(3):
            A, b = np.zeros((2, 50, n)), np.full((2, 50), 10.0)
            A[0], A[1] = rng.normal(size=(50, n)), rng.normal(size=(50, n))
            if t == 0:
                A[1, :m], b[1, :m] = C, c
            S, every = S.plus(constraints.Affine(A, b)), every.plus(constraints.Affine(A, b))
            S, _ = S.project(np.zeros((2, n)), active=np.array([True, False]))
        assert S.store.size[0] < 150  # the other trial drops rows
        found = [np.all(G.project(np.full((2, n), 0.3), "nearest")[1].feasible) for G in (S, every)]
        infeasible += not found[1]
        missed += found[0] != found[1]
    assert infeasible > 5
    assert missed == 0


def test_forgetting_rows_with_zeros_changes_no_projection():
    """Most coefficients and some whole rows are 0, and many rows are parallel."""
    rng = np.random.default_rng(0)
    S, every = (
        PersistentIntersection.begin(Box(-1.0, 1.0, dim=8), (SEVERAL,), forget=forget) for forget in (True, False)
    )
    for _ in range(60):
        A = rng.integers(-2, 3, (SEVERAL, 4, 8)) * (rng.random((SEVERAL, 4, 8)) < 0.2)
        b = np.abs(A).sum(axis=-1) * rng.uniform(0.1, 0.3, (SEVERAL, 4))
        g, point = constraints.Affine(A, b), rng.normal(size=(SEVERAL, 8))
        (S, found), (every, expected) = S.plus(g).project(point), every.plus(g).project(point)
        np.testing.assert_allclose(found.point, expected.point, rtol=0, atol=1e-9)
    assert (S.store.size < every.store.size).all()  # some were forgotten


def test_in_simd_lanes_no_trial_depends_on_its_neighbours():
    """To the bit, whichever they are, and whichever are inactive."""
    K, stream = STREAMS["around a ball"]
    some, rng = np.arange(SEVERAL) % 4 != 2, np.random.default_rng(1)
    whole, part = PersistentIntersection.begin(K, (SEVERAL,)), PersistentIntersection.begin(K, (int(some.sum()),))
    for _ in range(200):
        A, b, slope = stream(rng, (SEVERAL,))
        whole, found = whole.plus(constraints.Affine(A, b)).project(
            2 * slope, active=some | (rng.random(SEVERAL) < 0.5)
        )
        part, own = part.plus(constraints.Affine(A[some], b[some])).project(2 * slope[some])
        np.testing.assert_array_equal(found.point[some], own.point)


def test_simd_lanes_equal_one_trial_after_another():
    """A box that is described as a polyhedron is not for SIMD lanes."""
    K, stream = STREAMS["around a ball"]
    other = Polyhedron(np.vstack([np.eye(N), -np.eye(N)]), np.full(2 * N, 2.0))
    rng = np.random.default_rng(2)
    S, T = PersistentIntersection.begin(K, (SEVERAL,)), PersistentIntersection.begin(other, (SEVERAL,))
    for _ in range(150):
        A, b, slope = stream(rng, (SEVERAL,))
        S, found = S.plus(constraints.Affine(A, b)).project(2 * slope)
        T, naive = T.plus(constraints.Affine(A, b)).project(2 * slope)
        np.testing.assert_allclose(found.point, naive.point, rtol=0, atol=1e-11)


@pytest.mark.parametrize("idle", [0, 10, 126, 127, 300])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("make", [CLASP, lambda K, **options: Switch(K, 1000, 10.0, threshold=1e9, **options)])
def test_an_intersection_that_becomes_empty_raises_in_that_round(make, at_once, idle):
    """Only both of the last rows contradict x_1 ≤ 0.5, which over the box that they leave looks slack."""
    options = {"window": None} if make is CLASP else {}
    learner = make(Box(0.0, 1.0, dim=2), start=[0.4, 0.4], **options)
    loss, last = losses.Linear([-0.1, -0.1]), [([-2.0, 1.0], -0.6), ([1.0, -1.0], 0.0)]
    if at_once:
        A, b = np.vstack([[1.0, 0.0], *[[1.0, 1.0]] * idle]), np.append(0.5, np.full(idle, 5.0))
        learner.tell(loss, constraints.Affine(A, b))
        rounds = [constraints.Affine([row for row, _ in last], [bound for _, bound in last])]
    else:
        for _ in range(idle):
            learner.tell(loss, constraints.Affine([1.0, 1.0], 5.0))
        learner.tell(loss, constraints.Affine([1.0, 0.0], 0.5))
        rounds = [constraints.Affine(row, bound) for row, bound in last]
    for constraint in rounds[:-1]:
        learner.tell(loss, constraint)
    with pytest.raises(InfeasibleRound) as caught:
        learner.tell(loss, rounds[-1])
    np.testing.assert_allclose(caught.value.least_violation, [1 / 30], rtol=1e-6)


def test_a_list_reaches_no_farther_than_the_next_ones():
    """A list made near the edge of the next one has a radius beyond it, where there are rows that neither has."""

    def rows(angles, rhs):
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1), np.full(angles.size, rhs)

    tight, wall = rows(np.linspace(-0.3, 0.3, 120), 0.0), rows(np.pi + np.linspace(-0.3, 0.3, 180), 1.0)
    A, b = np.concatenate([tight[0], wall[0]]), np.concatenate([tight[1], wall[1]])
    K = Box(-10.0, 10.0, dim=2)
    S = PersistentIntersection.begin(K, ()).plus(constraints.Affine(A, b))
    for y in ([0.0, 0.0], [0.0, 0.0], [-0.59, 0.0]):  # (after the first one the store is searched for repeated rows)
        S, found = S.project(np.array(y))
        np.testing.assert_array_equal(found.point, y)
    first, second = S.nearby.radii[0, :2]
    assert first > 0.51
    assert 0.59 < second < 1.0
    for y in ([-1.1, 0.0], [-3.0, 0.0]):
        S, found = S.project(np.array(y))
        np.testing.assert_allclose(found.point, from_scratch(K.lower, K.upper, A, b, np.array(y)), 0.0, 1e-8)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_emptiness_is_what_a_linear_program_says(seed):
    """With rows dropped in every round, and rows such as x_i ≤ w x_j, of which few are needed to exclude a box."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    S, A, b = PersistentIntersection.begin(Box(0.0, 1.0, dim=n), (), forget=True), np.zeros((0, n)), np.zeros(0)
    for _ in range(60):
        rows = np.zeros((int(rng.integers(1, 5)), n))
        for row in rows:
            i, j = rng.permutation(n)[:2]
            row[i], row[j] = rng.uniform(0.5, 3), rng.choice([0.0, -rng.uniform(0.5, 3)])
        rows *= rng.choice([-1.0, 1.0], (len(rows), 1))
        rhs = rows @ np.full(n, 0.5) + rng.uniform(-0.02, 0.5, len(rows))
        A, b = np.vstack([A, rows]), np.append(b, rhs)
        S = S._replace(trim_at=0).plus(constraints.Affine(rows, rhs))
        try:
            S, found = S.project(rng.normal(size=n))
        except InfeasibleRound:
            assert least_violation(A, b) > 0.0
            return
        assert (A @ found.point - b).max() <= 1e-9  # so there is a point


def least_violation(A, b):
    """The least t with A x ≤ b + t for some x of [0, 1]^n, negative if there is room."""
    n = A.shape[1]
    rows = np.hstack([A, -np.ones((len(A), 1))])
    found = linprog(np.eye(n + 1)[n], A_ub=rows, b_ub=b, bounds=[(0, 1)] * n + [(None, None)])
    assert found.success
    return found.fun


def test_versions_do_not_disturb_one_another():
    rng = np.random.default_rng(0)
    K, stream = STREAMS["around a ball"]
    S = PersistentIntersection.begin(K, ())
    for _ in range(70):
        A, b, slope = stream(rng)
        S, _ = S.plus(constraints.Affine(A, b)).project(3 * slope)
    targets = 3 * rng.normal(size=(20, N))
    before = [S.project(y)[1].point for y in targets]
    tight = constraints.Affine(np.eye(N), np.full(N, 0.01))
    other = S.plus(tight)
    third = S.plus(constraints.Affine(-np.eye(N), np.full(N, 0.01)))
    assert other.project(targets[0])[1].point.max() <= 0.01 + 1e-9
    assert third.project(targets[0])[1].point.min() >= -0.01 - 1e-9
    for y, point in zip(targets, before, strict=True):
        np.testing.assert_array_equal(S.project(y)[1].point, point)
    assert other.project(targets[0])[1].point.max() <= 0.01 + 1e-9


# ---------------------------------------------------------------- curved constraints


def curved(rng, t):
    """Balls and paraboloids around a common point, affine rows between them."""
    n = 4
    if t % 3 == 0:
        direction = rng.normal(size=n)
        return constraints.Affine(direction, 0.3 * np.linalg.norm(direction))
    if t % 3 == 1:
        center = 0.5 * rng.normal(size=n)
        return constraints.NormBall(center, np.linalg.norm(center) + 0.3)
    q = rng.normal(size=n)
    return constraints.Quadratic(np.eye(n), q, -0.3 * np.linalg.norm(q) - 0.045)


@pytest.mark.parametrize("K", [Box(-1.0, 1.0, dim=4), Ball(0.0, 1.0, dim=4)], ids=["box", "ball"])
def test_curved_constraints(K):
    rng = np.random.default_rng(3)
    S, added, bound = PersistentIntersection.begin(K, ()), [], set()
    for t in range(18):
        added.append(curved(rng, t))
        y = 2 * rng.normal(size=4)
        S, found = S.plus(added[-1]).project(y)
        everything = constraints.Stack(added)
        np.testing.assert_allclose(found.point, cocopt.project(K, everything, y), rtol=0, atol=1e-7)
        rows = everything.rows(found.point)
        assert rows.max() <= 1e-9
        bound |= {type(g).__name__ for g, value in zip(added, rows, strict=True) if value > -1e-9}
    assert bound == {"Affine", "NormBall", "Quadratic"}


# ---------------------------------------------------------------- persistent CLASP


def stream(seed, rounds, batch=(), rows=3, n=4):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        A = rng.normal(size=(*batch, rows, n))
        b = 0.2 * np.linalg.norm(A, axis=-1) + rng.exponential(0.1, (*batch, rows))
        yield losses.Norm(rng.normal(size=(*batch, 2, n)), rng.normal(size=(*batch, 2))), constraints.Affine(A, b)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("rows", ["all", "worst"])
def test_the_history_is_judged_as_a_loop_would(rows, batch):
    K = Box(-1.0, 1.0, dim=4)
    rng = np.random.default_rng(9)
    learner, added, total = CLASP(K, start=np.zeros((*batch, 4)), rows=rows, window=None), [], 0.0
    for t, (loss, constraint) in enumerate(stream(1, 250, batch)):
        played = None
        if t % 5 == 3:  # what is really played may violate anything, even K
            played = learner.ask() + rng.normal(size=(*batch, 4))
            played = K.project(played) if t % 10 == 3 else played
        x = learner.ask() if played is None else played
        added.append(constraint)
        total = total + sum(np.maximum(g.value(x), 0.0) ** 2 for g in added)
        learner.tell(loss, constraint, played=played)
        if rows == "all":
            assert max(np.max(g.value(learner.ask())) for g in added) <= 1e-9
    np.testing.assert_allclose(learner.ledger.ccv2_hist, total, rtol=1e-9)


@pytest.mark.parametrize("infeasible", ["raise", "nearest"])
@pytest.mark.parametrize("rows", ["all", "worst"])
def test_a_constraint_that_never_changes(rows, infeasible):
    learner = CLASP(Box(-1.0, 1.0, dim=4), beta=0.5, rows=rows, window=None, infeasible=infeasible)
    total, constraint = 0.0, constraints.Affine([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0]], [0.5, 0.25])
    for t, (loss, _) in enumerate(stream(8, 300), 1):
        played = np.full(4, 0.5) if t % 10 == 0 else None
        total += t * np.maximum(constraint.value(learner.ask() if played is None else played), 0.0) ** 2
        learner.tell(loss, constraint, played=played)
    np.testing.assert_allclose(learner.ledger.ccv2_hist, total, rtol=1e-9)
    assert learner._state.memory.constraints.required.store.size.max() <= 4 * persistent.SMALL_STORE  # of 600 or 300


@pytest.mark.parametrize("infeasible", ["raise", "nearest"])
def test_rows_that_never_bind_are_judged_too(infeasible):
    """Dropped, or far more than are near: what was played outside K violates 150 of them."""
    learner, added = CLASP(Box(0.0, 1.0, dim=2), window=None, infeasible=infeasible), []
    for t in range(400):
        row, bound = ([1.0, 1e-4 * t], 1.6) if t < 150 else ([-1e-4 * t, 1.0], 1.1)
        added.append(constraints.Affine(row, bound))
        learner.tell(losses.Distance([0.5, 0.5]), added[-1])
    assert learner.ledger.ccv2_hist == 0.0
    played = np.array([2.0, 0.5])
    learner.tell(losses.Distance([0.5, 0.5]), played=played)
    expected = sum(np.maximum(g.value(played), 0.0) ** 2 for g in added)
    assert expected > 10.0
    np.testing.assert_allclose(learner.ledger.ccv2_hist, expected, rtol=1e-12)


def test_with_all_rows_the_history_adds_nothing():
    learner = CLASP(Box(-1.0, 1.0, dim=4), window=None)
    for loss, constraint in stream(2, 200):
        learner.tell(loss, constraint)
    assert learner.ledger.ccv2 > 0.01
    np.testing.assert_allclose(learner.ledger.ccv2_hist, learner.ledger.ccv2, rtol=1e-12)


@pytest.mark.parametrize("rows", ["all", "worst"])
def test_resumed_bit_for_bit(rows, tmp_path):
    learner = CLASP(Ball(0.0, 1.0, dim=4), start=np.zeros((3, 4)), rows=rows, window=None)
    rounds = list(stream(4, 120, (3,)))
    rounds[5] = (rounds[5][0], constraints.NormBall(np.full(4, 0.1), 0.5))
    for loss, constraint in rounds[:70]:
        learner.tell(loss, constraint)
    learner.save(tmp_path / "state.npz")
    _, arrays = cocopt.state.read(tmp_path / "state.npz")
    assert len(arrays) < 60  # not one per round
    twin = cocopt.load(tmp_path / "state.npz")
    for loss, constraint in rounds[70:]:
        learner.tell(loss, constraint)
        twin.tell(loss, constraint)
        np.testing.assert_array_equal(learner.ask(), twin.ask())
    assert learner.ledger == twin.ledger


@pytest.mark.parametrize("batch", [(), (3,), (SEVERAL,)])
def test_stored_and_restored_it_continues_bit_for_bit_though_rows_repeat(batch):
    """Rows that are multiples of each other differ by rounding alone."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        S = restored = PersistentIntersection.begin(Box(-2.0, 2.0, dim=8), batch)
        known = rng.normal(size=(5, 8))
        for t in range(60):
            A = np.where(rng.random(batch)[..., None] < 0.5, known[rng.integers(5)], rng.normal(size=(*batch, 8)))
            length = 10.0 ** rng.uniform(-3, 3)
            rows = constraints.Affine(length * A[..., None, :], length * np.linalg.norm(A, axis=-1)[..., None])
            y = rng.normal(size=(*batch, 8)) * 10.0 ** rng.uniform(-1, 1)
            S, found = S.plus(rows).project(y)
            restored, other = restored.plus(rows).project(y)
            assert np.array_equal(found.point, other.point), (seed, t)
            if t % 7 == 3:
                restored = PersistentIntersection.from_stored(restored.K, batch, copy_of(restored.stored()))


def copy_of(stored):
    """What a file gives back: arrays of their own, lists for tuples."""
    if isinstance(stored, dict):
        return {name: copy_of(value) for name, value in stored.items()}
    if isinstance(stored, tuple | list):
        return [copy_of(value) for value in stored]
    return stored.copy() if isinstance(stored, np.ndarray) else stored


def stored_intersection():
    """A state that a run has reached: three trials, rows of several rounds, one curved constraint."""
    K, rng = Box(-1.0, 1.0, dim=4), np.random.default_rng(0)
    S = PersistentIntersection.begin(K, (3,), forget=True)
    S = S.plus(constraints.NormBall(np.full(4, 0.1), 0.5))
    for _ in range(5):
        A = rng.normal(size=(3, 2, 4))
        S, _ = S.plus(constraints.Affine(A, 0.2 * np.linalg.norm(A, axis=-1))).project(rng.normal(size=(3, 4)))
    assert (S.working_set >= 0).any()
    return K, copy_of(S.stored())


def test_what_was_stored_is_what_is_restored():
    K, stored = stored_intersection()
    again = PersistentIntersection.from_stored(K, (3,), copy_of(stored)).stored()
    assert again.keys() == stored.keys()
    for name, value in copy_of(again).items():
        np.testing.assert_equal(value, stored[name])


def entry(*path, value):
    """A change of one entry of the stored fields."""

    def change(stored):
        *way, last = path
        for name in way:
            stored = stored[name]
        stored[last] = value

    return change


def shape(name, *shape, dtype=np.float64):
    return entry(name, value=np.zeros(shape, dtype))


FORGED = {
    "t is negative": entry("t", value=-1),
    "t is no integer": entry("t", value=2.5),
    "t is text": entry("t", value="abc"),
    "t is infinite": entry("t", value=np.inf),
    "t is huge": entry("t", value=10**30),
    "t is less than the rounds": entry("t", value=3),
    "t is 0 though there are rows": entry("t", value=0),
    "t is a truth value": entry("t", value=True),
    "trim_at is too small": entry("trim_at", value=-5),
    "trim_at is infinite": entry("trim_at", value=np.inf),
    "size is huge": entry("size", 0, value=10**12),
    "size is huger": entry("size", 0, value=2**62),
    "size is negative": entry("size", 0, value=-1),
    "size is that of another batch": shape("size", 4, dtype=np.int64),
    "size is of floats": shape("size", 3),
    "size is missing a row": entry("size", 0, value=9),
    "unit has NaN": entry("unit", (0, 0, 0), value=np.nan),
    "unit is not of length 1": entry("unit", (0, 0), value=2.0),
    "unit has another dimension": shape("unit", 3, 10, 5),
    "unit is a list": entry("unit", value=[[1.0]]),
    "rhs is infinite": entry("rhs", (0, 0), value=np.inf),
    "rhs has another shape": shape("rhs", 3, 9),
    "norm is negative": entry("norm", (0, 0), value=-1.0),
    "norm is 0": entry("norm", (0, 0), value=0.0),
    "the box has NaN": entry("outer_upper", (0, 0), value=np.nan),
    "the box is that of another batch": shape("outer_lower", 2, 4),
    "the working set has a row that is not there": entry("working_set", (0, 0), value=10),
    "the working set has −2": entry("working_set", (0, 15), value=-2),
    "the working set has a gap": entry("working_set", (0, 15), value=3),
    "the working set has a row twice": entry("working_set", value=np.zeros((3, 16), dtype=np.int64)),
    "the working set is of floats": shape("working_set", 3, 16),
    "the working set is longer": entry("working_set", value=np.full((3, 17), -1)),
    "the archive is a number": entry("archive", value=3),
    "the archive lacks a field": entry("archive", value={"A": np.zeros((0, 3, 4))}),
    "the archive has NaN": entry("archive", "A", (0, 0, 0), value=np.nan),
    "the archive has −inf": entry("archive", "b", (0, 0), value=-np.inf),
    "the rounds decrease": entry("archive", "round", 0, value=5),
    "the rounds begin before 1": entry("archive", "round", 0, value=0),
    "the rounds are in the future": entry("archive", "round", 9, value=100),
    "the archive is that of another batch": entry("archive", "A", value=np.zeros((10, 2, 4))),
    "the rounds have two axes": entry("archive", "round", value=np.ones((10, 1), dtype=np.int64)),
    "curved is no sequence": entry("curved", value=5),
    "curved is no constraint": entry("curved", value=["NormBall"]),
    "curved is affine": entry("curved", 0, value=constraints.Affine([1.0, 0.0, 0.0, 0.0], 1.0)),
    "curved has another dimension": entry("curved", 0, value=constraints.NormBall(np.zeros(5), 1.0)),
    "curved has another batch": entry("curved", 0, value=constraints.NormBall(np.zeros((2, 4)), np.ones(2))),
    "more curved constraints than rounds": entry("curved", value=[constraints.NormBall(np.zeros(4), 1.0)] * 7),
    "binding is that of another batch": entry("binding", value=[[0]]),
    "binding names no constraint": entry("binding", 0, value=[1]),
    "binding is negative": entry("binding", 0, value=[-1]),
    "binding is no integer": entry("binding", 0, value=[0.0]),
    "binding repeats": entry("binding", 0, value=[0, 0]),
    "binding is no sequence": entry("binding", 0, value=0),
    "a field is missing": lambda stored: stored.pop("norm"),
    "a field is too many": entry("more", value=1),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_stored_state_that_no_run_can_reach_is_refused(what):
    K, stored = stored_intersection()
    FORGED[what](stored)
    with pytest.raises(StateError):
        PersistentIntersection.from_stored(K, (3,), stored)


@pytest.mark.parametrize("stored", [None, [], "abc", 5, {}])
def test_something_else_is_no_stored_state(stored):
    with pytest.raises(StateError):
        PersistentIntersection.from_stored(Box(0.0, 1.0, dim=2), (), stored)


def test_a_forged_size_costs_no_memory():
    K, stored = stored_intersection()
    stored["size"][:] = 10**9
    tracemalloc.start()
    try:
        with pytest.raises(StateError, match="unit"):
            PersistentIntersection.from_stored(K, (3,), stored)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_rows_that_underflow_can_be_stored():
    """Their length is not known to all digits, or counts as 0."""
    S = PersistentIntersection.begin(Box(-1.0, 1.0, dim=2), ())
    for size in (1e-161, 1e-170, 0.0, 1e150):
        S, _ = S.plus(constraints.Affine([3.0 * size, 4.0 * size], size)).project(np.ones(2))
    again = PersistentIntersection.from_stored(S.K, (), copy_of(S.stored()))
    np.testing.assert_array_equal(again.project(np.ones(2))[1].point, S.project(np.ones(2))[1].point)


def test_an_archive_is_restored_where_one_is_kept():
    K, stored = stored_intersection()
    with_archive, without = (PersistentIntersection.begin(K, (3,), archive=kept) for kept in (True, False))
    assert with_archive.restored(stored, (3,)).t == stored["t"]
    with pytest.raises(StateError, match="archive"):
        without.restored(stored, (3,))
    with pytest.raises(StateError, match="archive"):
        with_archive.restored({**stored, "archive": None}, (3,))


@pytest.mark.parametrize("step", [0.02, 0.1, 0.3])
def test_an_older_version_is_right_whatever_a_newer_one_does(step):
    """They share lists of nearby rows, until more lists are needed."""
    changes = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        S, added, y = PersistentIntersection.begin(Box(-2.0, 2.0, dim=3), ()), [], np.array([2.0, 1.0, 0.5])
        for _ in range(99):
            A = rng.normal(size=(20, 3))
            A /= np.linalg.norm(A, axis=1)[:, None]
            added.append(A)
            y = y + step * rng.normal(size=3)
            older = S.plus(constraints.Affine(A, np.ones(20)))
            S, _ = older.project(y)
            if S.nearby.counts.shape != older.nearby.counts.shape:
                changes += 1
                for _ in range(10):
                    S.project(3.0 * rng.normal(size=3))
                    for target in (y, y + 0.1 * rng.normal(size=3)):
                        _, found = older.project(target)
                        assert excess(np.concatenate(added), np.ones(20 * len(added)), found.point) <= 1e-9
    assert changes == 8


def test_a_round_that_fails_changes_nothing():
    rounds = list(stream(5, 60))
    K = Box(-1.0, 1.0, dim=4)
    steady, shaken = CLASP(K, window=None), CLASP(K, window=None)
    for t, (loss, constraint) in enumerate(rounds):
        if t % 3 == 0:
            with pytest.raises(InfeasibleRound) as caught:
                shaken.tell(loss, constraints.Affine(np.vstack([np.eye(4), -np.eye(4)]), np.full(8, -0.5)))
            assert caught.value.trials == (0,)
            np.testing.assert_allclose(caught.value.least_violation, [0.5], atol=1e-9)
        steady.tell(loss, constraint)
        shaken.tell(loss, constraint)
        np.testing.assert_array_equal(steady.ask(), shaken.ask())
    assert steady.ledger == shaken.ledger


def test_nearest_once_the_intersection_is_empty():
    K = Box(-1.0, 1.0, dim=4)
    learner, added = CLASP(K, start=np.zeros((2, 4)), beta=0.5, window=None, infeasible="nearest"), []
    for t, (loss, constraint) in enumerate(stream(6, 40, (2,))):
        if t == 20:
            A, b = constraint.A.copy(), constraint.b.copy()
            A[1, 0], b[1, 0] = [1.0, 0.0, 0.0, 0.0], -0.7
            constraint = constraints.Affine(A, b)
        added.append(constraint)
        y = learner.ask() - (t + 1) ** -0.5 * loss.gradient(learner.ask())
        record = learner.tell(loss, constraint)
        np.testing.assert_array_equal(record.feasible, [True, t < 20])
        expected = cocopt.project(K, constraints.Stack(added), y, infeasible="nearest")
        np.testing.assert_allclose(learner.ask(), expected, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(learner.ledger.infeasible_rounds, [0, 20])


def test_later_changes_of_the_users_arrays_do_not_matter():
    A, b = np.array([[1.0, 0.0]]), np.array([0.25])
    learner = CLASP(Box(0.0, 1.0, dim=2), window=None)
    learner.tell(losses.Linear([-1.0, -1.0]), constraints.Affine(A, b))
    A[:], b[:] = 0.0, 9.0
    learner.tell(losses.Linear([-1.0, -1.0]))
    np.testing.assert_allclose(learner.ask(), [0.25, 1.0])


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_row_too_long_for_its_square_is_refused():
    learner = CLASP(Box(0.0, 1.0, dim=2), start=[1.0, 1.0], window=None)
    with pytest.raises(InvalidInput, match="the data may overflow"):
        learner.tell(losses.Linear([0.0, 0.0]), constraints.Affine([1e160, 1e160], 1e160))
    assert learner.t == 0
    learner.tell(losses.Linear([0.0, 0.0]), constraints.Affine([1.0, 1.0], 1.0))
    np.testing.assert_allclose(learner.ask(), [0.5, 0.5])
