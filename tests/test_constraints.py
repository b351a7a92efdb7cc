"""Constraints: rows and their subgradients, conic forms, batches, stacks, black boxes, CVXPY and errors."""

from __future__ import annotations

import subprocess
import sys

import clarabel
import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cocopt import constraints
from cocopt.constraints import Affine, Function, NormBall, Quadratic, SecondOrder, Stack, from_cvxpy
from cocopt.errors import InvalidInput

N, P, M = 4, 3, 3


def draw(kind, rng, batch=(), scale=1.0):
    """A random constraint, its data, and a plain formula for its rows at one point, given the trial's own data."""

    def normal(*shape):
        return scale * rng.normal(size=batch + shape)

    if kind == "Affine":
        data = (normal(M, N), normal(M))
        return Affine(*data), data, lambda x, A, b: [np.sum(a * x) - beta for a, beta in zip(A, b, strict=True)]
    if kind == "NormBall":
        data = (normal(N), normal())
        return NormBall(*data), data, lambda x, c, r: [np.linalg.norm(x - c) - r]
    if kind == "Quadratic":
        root = rng.normal(size=(*batch, N, N))
        data = (scale * root.swapaxes(-1, -2) @ root, normal(N), normal())
        return Quadratic(*data), data, lambda x, H, q, r: [x @ H @ x / 2 + np.sum(q * x) + r]
    if kind == "flat":  # P of rank 2
        root = rng.normal(size=(*batch, 2, N))
        data = (scale * root.swapaxes(-1, -2) @ root, normal(N), normal())
        return Quadratic(*data), data, lambda x, H, q, r: [x @ H @ x / 2 + np.sum(q * x) + r]
    if kind == "SecondOrder":
        data = (normal(P, N), normal(P), normal(N), normal())
        return SecondOrder(*data), data, lambda x, A, b, c, d: [np.linalg.norm(A @ x + b) - np.sum(c * x) - d]
    vectorized = kind == "vectorized"
    g = Function(
        (lambda x: np.exp(x).sum(axis=-1) - 3.0) if vectorized else (lambda x: float(np.exp(x).sum()) - 3.0),
        np.exp,
        vectorized=vectorized,
    )
    return g, (), lambda x: [np.sum(np.exp(x)) - 3.0]


DATA_KINDS = ["Affine", "NormBall", "Quadratic", "flat", "SecondOrder"]
KINDS = [*DATA_KINDS, "function", "vectorized"]
seeds = st.integers(0, 2**32 - 1)
CLARABEL = {
    "zero": clarabel.ZeroConeT,
    "nonneg": clarabel.NonnegativeConeT,
    "soc": clarabel.SecondOrderConeT,
    "psd": clarabel.PSDTriangleConeT,
}


def least_relaxation(cones, x):
    """The t of least sum for which x satisfies the conic form; each t_i is g_i(x) if the form is right."""
    n, aux, rows = x.size, cones.aux, cones.E.shape[1]
    A = np.hstack([cones.A[:, n:], -cones.E])
    assert cones.A.shape[1] == n + aux
    kinds = [
        clarabel.ExponentialConeT() if kind == "exp"
        else clarabel.PowerConeT(kind[1]) if isinstance(kind, tuple)
        else CLARABEL[kind](size)
        for kind, size in cones.cones
    ]  # fmt: skip
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = 1e-10
    cost = np.concatenate([np.zeros(aux), np.ones(rows)])
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((aux + rows, aux + rows)),
        cost,
        sparse.csc_matrix(A),
        cones.b - cones.A[:, :n] @ x,
        kinds,
        settings,
    )
    solution = solver.solve()
    assert str(solution.status) in ("Solved", "AlmostSolved")
    return np.array(solution.x)[aux:]


def inside(cones, x, t):
    """The distance to leaving the cones, without auxiliary variables; negative outside."""
    assert cones.aux == 0
    slack = cones.b - cones.A @ x + cones.E @ t
    at, margin = 0, np.inf
    for kind, size in cones.cones:
        part, at = slack[at : at + size], at + size
        assert kind in ("nonneg", "soc")
        margin = min(margin, part.min() if kind == "nonneg" else part[0] - np.linalg.norm(part[1:]))
    assert at == slack.size
    return margin


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_jacobian_are_those_of_the_formula(kind, scale):
    rng = np.random.default_rng(3)
    g, data, formula = draw(kind, rng, scale=scale)
    assert g.row_count == (M if kind == "Affine" else 1)
    for x in rng.normal(size=(20, N)):
        rows = np.array(formula(x, *data))
        size = g.magnitude(x).max()
        assert (g.magnitude(x) > 0).all()
        assert np.abs(g.rows(x) - rows).max() <= 1e-13 * max(size, np.abs(rows).max())
        assert g.value(x) == g.rows(x).max()
        step = 1e-5
        slopes = [
            (np.array(formula(x + step * e, *data)) - np.array(formula(x - step * e, *data))) / (2 * step)
            for e in np.eye(N)
        ]
        np.testing.assert_allclose(g.jacobian(x), np.transpose(slopes), atol=1e-8 * max(size, np.abs(rows).max()))
        np.testing.assert_array_equal(g.gradient(x), g.jacobian(x)[np.argmax(rows)])


@settings(max_examples=60)
@given(st.sampled_from(KINDS), seeds, st.floats(0, 1))
def test_rows_are_convex_and_subgradients_support_them(kind, seed, weight):
    rng = np.random.default_rng(seed)
    g, _, _ = draw(kind, rng)
    x, y = 2 * rng.normal(size=(2, N))
    gx, gy = g.rows(x), g.rows(y)
    noise = 1e-12 * (1 + np.abs(gx) + np.abs(gy) + np.abs(g.jacobian(x)).sum(axis=-1) * np.abs(y - x).max())
    assert (gy >= gx + g.jacobian(x) @ (y - x) - noise).all()
    assert (g.rows(weight * x + (1 - weight) * y) <= weight * gx + (1 - weight) * gy + noise).all()
    assert g.value(y) >= g.value(x) + g.gradient(x) @ (y - x) - noise.max()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", DATA_KINDS)
def test_cones_say_the_same_as_rows(kind, scale):
    rng = np.random.default_rng(6)
    for _ in range(10):
        g, _, _ = draw(kind, rng, scale=scale)
        for cones in (g.cones(), g.cones_near(rng.normal(size=N), 1.0)):
            assert cones.E.shape == (cones.b.size, g.row_count)
            for x in rng.normal(size=(5, N)) * rng.choice([0.1, 1.0, 10.0], size=(5, 1)):
                rows, slack = g.rows(x), 1e-6 * g.magnitude(x)
                assert inside(cones, x, rows + slack) > 0
                for i in range(g.row_count):
                    assert inside(cones, x, rows + slack - 2 * slack * np.eye(g.row_count)[i]) < 0


@pytest.mark.parametrize("count", [1, 2])
def test_cones_around_a_center_far_away_keep_the_digits_there(count):
    """A ball of radius 1 around c as a quadratic; with whole numbers in c and few bits in x its rows are exact."""
    rng, c = np.random.default_rng(7), np.full(N, 1e6)
    ball = Quadratic(np.eye(N), -c, 0.5 * (c @ c) - 0.5)
    cones = (ball if count == 1 else Stack([ball] * count)).cones_near(c, 1.0)
    for step in rng.integers(-(2**20), 2**20, size=(20, N)) / 2**20:
        row = 0.5 * (step @ step) - 0.5
        assert inside(cones, c + step, np.full(count, row + 1e-14)) > 0
        assert inside(cones, c + step, np.full(count, row - 1e-14)) < 0


@pytest.mark.parametrize(
    "g", [*(draw(kind, np.random.default_rng(0), (2,))[0] for kind in DATA_KINDS), "stack", "row"], ids=str
)
def test_only_a_single_constraint_has_cones(g):
    if isinstance(g, str):
        ball = NormBall([0.0, 0.0], 1.0)
        g = Stack([ball, NormBall([0.0, 0.0], [1.0, 2.0])]) if g == "stack" else Stack([ball, ball]).select([0, 1])
    with pytest.raises(InvalidInput, match=r"cones: expected a single constraint, got leading axes \(2,\)"):
        g.cones()


def test_a_quadratic_without_curvature_is_a_row():
    cones = Quadratic(np.zeros((2, 2)), [1.0, 2.0], -3.0).cones()
    assert cones.cones == (("nonneg", 1),)
    assert cones.A.tolist() == [[1.0, 2.0]]
    assert cones.b.tolist() == [3.0]
    assert cones.E.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("P", "q", "r", "root"),
    [
        (1.0, 1.0, 0.0, -2.0),
        (1.0, 1.0, -1e-17, -2.0),  # through the origin, up to rounding
        (1.0, 1e6, 1e-7, -2e6),
        (1e6, 1e6, -1e6, -1 - np.sqrt(3)),
        (1e-6, 0.0, -1.0, np.sqrt(2e6)),
        (1e-6, 1.0, -1.0, 1.0),  # nearly flat
        (1e-12, 1.0, -1.0, 1.0),
        (1e6, 1e-6, -1e-6, np.sqrt(2e-12)),
        (1.0, 0.0, 0.0, 1.0),
    ],
)
def test_the_quadratic_cone_keeps_its_digits(P, q, r, root):
    """Near the boundary a change of 1e-9 of the row's terms is seen, however unlike the data are."""
    g = Quadratic(P * np.eye(2), [q, 0.0], r)
    x = np.array([root, 0.0])
    rows, slack = g.rows(x), 1e-9 * g.magnitude(x)
    assert inside(g.cones(), x, rows + slack) > 0
    assert inside(g.cones(), x, rows - slack) < 0


def test_kinks_have_a_zero_norm_part():
    assert NormBall([1.0, 2.0], 3.0).gradient([1.0, 2.0]).tolist() == [0.0, 0.0]
    assert SecondOrder(np.eye(2), [-1.0, -2.0], [3.0, 4.0], 0.0).gradient([1.0, 2.0]).tolist() == [-3.0, -4.0]


def test_a_negative_radius_is_an_unsatisfiable_constraint():
    assert NormBall([0.0, 0.0], -1.0).value([0.0, 0.0]) == 1.0


IDLE = [
    Affine([1.0, 1.0], np.inf),
    NormBall([0.0, 0.0], np.inf),
    Quadratic(np.eye(2), [0.0, 0.0], -np.inf),
    SecondOrder(np.eye(2), [0.0, 0.0], [0.0, 0.0], np.inf),
]


@pytest.mark.parametrize("g", IDLE, ids=repr)
def test_a_row_can_be_switched_off(g):
    x = np.array([1.0, 2.0])
    assert g.rows(x).tolist() == [-np.inf]
    assert np.isfinite(g.magnitude(x)).all()
    assert np.isfinite(g.jacobian(x)).all()
    cones = g.cones()
    assert cones.cones == ()
    assert cones.A.shape == (0, 2)
    assert cones.E.shape == (0, 1)
    both = Stack([g, Affine([1.0, 0.0], 0.5)])
    assert both.rows(x).tolist() == [-np.inf, 0.5]
    assert both.value(x) == 0.5
    assert inside(both.cones(), x, np.array([-100.0, 0.6])) > 0
    assert inside(both.cones(), x, np.array([100.0, 0.4])) < 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_trials(kind):
    rng = np.random.default_rng(8)
    batch = (5, 2)
    g, data, _ = draw(kind, rng, batch)
    x = rng.normal(size=(*batch, N))
    assert g.rows(x).shape == (*batch, g.row_count)
    assert g.value(x).shape == batch
    assert g.jacobian(x).shape == (*batch, g.row_count, N)
    assert g.gradient(x).shape == (*batch, N)
    assert g.magnitude(x).shape == (*batch, g.row_count)
    for index in np.ndindex(batch):
        one = type(g)(*(part[index] for part in data)) if data else g
        for name in ("rows", "value", "jacobian", "gradient", "magnitude"):
            np.testing.assert_allclose(getattr(g, name)(x)[index], getattr(one, name)(x[index]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", DATA_KINDS)
@pytest.mark.parametrize(
    "index", [2, -1, slice(1, 3), np.array([4, 0, 0]), np.array([True, False, True, True, False])], ids=str
)
def test_trials_picks_the_trials(kind, index):
    rng = np.random.default_rng(9)
    g, _, _ = draw(kind, rng, (5,))
    x = rng.normal(size=(5, N))
    part = g.trials(index)
    assert part.batch == np.empty(5)[index].shape
    np.testing.assert_allclose(part.rows(x[index]), g.rows(x)[index], rtol=1e-13)
    np.testing.assert_allclose(part.jacobian(x[index]), g.jacobian(x)[index], rtol=1e-13)
    single, _, _ = draw(kind, rng)
    assert single.trials(index) is single


def test_trials_of_parts_that_are_shared():
    g = NormBall([0.0, 0.0], [1.0, 2.0, 3.0])
    assert g.batch == (3,)
    assert g.rows([3.0, 4.0]).tolist() == [[4.0], [3.0], [2.0]]
    assert g.jacobian([3.0, 4.0]).shape == (3, 1, 2)
    assert g.trials(1).rows([3.0, 4.0]).tolist() == [3.0]
    assert g.trials(1).cones().b.tolist() == [2.0, 0.0, 0.0]
    h = SecondOrder(np.eye(2), np.zeros((3, 2)), [0.0, 0.0], [[1.0], [2.0]])
    assert h.batch == (2, 3)
    assert h.trials(1).batch == (3,)
    assert h.trials(1).rows([3.0, 4.0]).tolist() == [[3.0]] * 3
    assert h.jacobian([3.0, 4.0]).shape == (2, 3, 1, 2)
    q = Quadratic(np.eye(2), [0.0, 0.0], [1.0, 2.0])
    assert q.jacobian([1.0, 1.0]).tolist() == [[[1.0, 1.0]]] * 2


def mixed(rng, batch):
    """A stack of all kinds, its members partly shared by the trials."""
    members = [
        draw(kind, rng, batch if i % 2 else ())[0]
        for i, kind in enumerate(["NormBall", "Affine", "SecondOrder", "Quadratic"])
    ]
    return Stack([*members, Function(lambda x: float(x.sum()), np.ones_like)])


@pytest.mark.parametrize("batch", [(), (5,), (5, 2)])
def test_a_stack_is_its_members_one_after_the_other(batch):
    rng = np.random.default_rng(10)
    g = mixed(rng, batch)
    x = rng.normal(size=(*batch, N))
    assert (g.batch, g.dim, g.row_count) == (batch, N, M + 4)
    for name, axis in (("rows", -1), ("magnitude", -1), ("jacobian", -2)):
        whole = np.concatenate([getattr(member, name)(x) for member in g.members], axis=axis)
        np.testing.assert_array_equal(getattr(g, name)(x), whole)
    assert g.rows(x[..., :1] * np.ones(N)).shape == (*batch, M + 4)
    worst = g.rows(x).argmax(axis=-1)
    for index in np.ndindex(batch):
        np.testing.assert_array_equal(g.gradient(x)[index], g.jacobian(x)[index][worst[index]])
    assert g.affine() is None
    assert (g.trials(0) if len(batch) == 1 else mixed(rng, ())).cones() is None  # a black box among them


def test_conic_says_whether_there_are_cones():
    rng = np.random.default_rng(0)
    single = [draw(kind, rng)[0] for kind in KINDS]
    smooth = Stack([g for g in single if g.cones() is not None])
    every = [*single, smooth, Stack(single), smooth.select(1), Stack(single).select(1)]
    assert {g.conic for g in every} == {True, False}
    for g in every:
        assert g.conic == (g.cones() is not None), g


def test_cones_of_a_stack():
    rng = np.random.default_rng(11)
    g = Stack(mixed(rng, ()).members[:-1])
    cones = g.cones()
    assert cones.E.shape[1] == g.row_count
    for x in rng.normal(size=(5, N)):
        np.testing.assert_allclose(least_relaxation(cones, x), g.rows(x), atol=1e-7)
        for i in range(g.row_count):
            np.testing.assert_allclose(least_relaxation(g.select(i).cones(), x), g.rows(x)[[i]], atol=1e-7)


def test_a_stack_of_rows_is_affine():
    rng = np.random.default_rng(12)
    shared, own = draw("Affine", rng)[0], draw("Affine", rng, (3,))[0]
    g = Stack([shared, Stack([own])])
    A, b = g.affine()
    assert A.shape == (3, 2 * M, N)
    x = rng.normal(size=(3, N))
    np.testing.assert_allclose(np.einsum("tmn,tn->tm", A, x) - b, g.rows(x), rtol=1e-12)
    assert isinstance(g.select([0, 5, 2]), Affine)


@pytest.mark.parametrize("make", [mixed, lambda rng, batch: draw("Affine", rng, batch)[0]])
@pytest.mark.parametrize("batch", [(), (5,)])
def test_select_picks_a_row(make, batch):
    rng = np.random.default_rng(13)
    g = make(rng, batch)
    x = rng.normal(size=(5, N))
    for row in range(g.row_count):
        part = g.select(row)
        assert part.row_count == 1
        np.testing.assert_allclose(part.rows(x), g.rows(x)[:, [row]], rtol=1e-13)
    rows = rng.integers(g.row_count, size=5)
    part = g.select(rows)
    assert (part.batch, part.row_count) == ((5,), 1)
    for name in ("rows", "jacobian", "magnitude"):
        whole = getattr(g, name)(x)
        np.testing.assert_allclose(getattr(part, name)(x), whole[np.arange(5), rows][:, None], rtol=1e-13)
    for trial in range(5):
        alone = part.trials(trial)
        assert (alone.batch, alone.row_count) == ((), 1)
        np.testing.assert_allclose(alone.rows(x[trial]), g.rows(x)[trial, rows[trial]], rtol=1e-13)
    some = part.trials(np.array([3, 1]))
    np.testing.assert_allclose(some.rows(x[[3, 1]]), part.rows(x)[[3, 1]], rtol=1e-13)


def test_select_of_a_single_row_and_beyond_the_last():
    ball = NormBall([0.0, 0.0], 1.0)
    assert ball.select(0) is ball
    two = Stack([ball, ball])
    assert two.select(1) is ball
    for row in (2, -1, [0, 2]):
        with pytest.raises(InvalidInput, match="of a constraint with 2 rows"):
            two.select(row)
    with pytest.raises(InvalidInput, match="of a constraint with 2 rows"):
        Affine(np.eye(2), [0.0, 0.0]).select(2)


@pytest.mark.parametrize(
    "index", [1, -1, (1, 2), (0, slice(1, 3)), slice(0, 1), np.array([1, 1]), np.array([False, True])], ids=str
)
def test_trials_of_a_stack_whose_members_broadcast(index):
    rng = np.random.default_rng(14)
    batch = (2, 3)
    g = Stack([draw("NormBall", rng, own)[0] for own in ((), (3,), (1,), (2, 1), (1, 3), (2, 3))])
    assert g.batch == batch
    x = rng.normal(size=(*batch, N))
    part = g.trials(index)
    np.testing.assert_allclose(part.rows(x[index]), g.rows(x)[index], rtol=1e-13)
    chosen = rng.integers(6, size=batch)
    np.testing.assert_allclose(
        g.select(chosen).trials(index).rows(x[index]), g.select(chosen).rows(x)[index], rtol=1e-13
    )


@pytest.mark.parametrize("kind", DATA_KINDS)
def test_inputs_are_left_alone(kind):
    rng = np.random.default_rng(2)
    g, data, _ = draw(kind, rng, (3,))
    x = rng.normal(size=(3, N))
    before = [part.copy() for part in (*data, x)]
    for answer in (g.rows(x), g.jacobian(x), g.gradient(x), g.magnitude(x)):
        if answer.flags.writeable:
            answer += 1.0
    g.trials(0).cones()
    for part, copy in zip((*data, x), before, strict=True):
        np.testing.assert_array_equal(part, copy)


EYE, ZERO = np.eye(2), np.zeros(2)
BALL = NormBall(ZERO, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Affine(1.0, 1.0), r"A: expected shape \(\.\.\., M, n\) or \(n,\), got \(\)"),
        (lambda: Affine(ZERO, ZERO), r"b: expected a number, since A is a single row, got shape \(2,\)"),
        (lambda: Affine(EYE, np.zeros(3)), r"b: expected shape \(2,\) to match A \(2, 2\), got \(3,\)"),
        (lambda: Affine(["a", "b"], 1.0), "A: expected an array of real numbers, got list"),
        (lambda: NormBall(0.0, 1.0), r"center: expected shape \(\.\.\., n\), got \(\)"),
        (lambda: NormBall([], 1.0), "center: expected at least one number"),
        (lambda: NormBall(np.zeros((3, 2)), np.zeros(4)), r"radius: expected .* broadcast with \(3,\), got \(4,\)"),
        (lambda: Quadratic(ZERO, ZERO, 0.0), r"P: expected shape \(\.\.\., n, n\), got \(2,\)"),
        (lambda: Quadratic(EYE, np.zeros(3), 0.0), r"q: expected shape \(\.\.\., 2\) to match P, got \(3,\)"),
        (lambda: Quadratic([[1.0, 2.0], [0.0, 1.0]], ZERO, 0.0), "P: expected a symmetric matrix"),
        (
            lambda: Quadratic(-EYE, ZERO, 0.0).cones(),
            "P: expected a positive semidefinite matrix, got the eigenvalue -1",
        ),
        (lambda: Quadratic(-EYE, ZERO, 0.0).value([1.0, 0.0]), "P: expected a positive semidefinite matrix, got xᵀPx"),
        (lambda: SecondOrder(ZERO, 0.0, ZERO, 0.0), r"A: expected shape \(\.\.\., p, n\), got \(2,\)"),
        (lambda: SecondOrder(EYE, np.zeros(3), ZERO, 0.0), r"b: expected shape \(\.\.\., 2\) to match A \(2, 2\)"),
        (lambda: SecondOrder(EYE, ZERO, 1.0, 0.0), r"c: expected shape \(\.\.\., 2\) to match A \(2, 2\), got \(\)"),
        (lambda: SecondOrder(EYE, ZERO, np.zeros((3, 2)), np.zeros(2)), r"d: expected .* with \(3,\), got \(2,\)"),
        (lambda: Function(1.0, abs), "value: expected a callable, got float 1.0"),
        (lambda: Function(sum, 1.0), "gradient: expected a callable, got float 1.0"),
        (lambda: Function(sum, abs).value(1.0), r"x: expected shape \(\.\.\., n\), got \(\)"),
        (lambda: Function(sum, abs).value([np.nan]), "x: expected finite numbers, got nan"),
        (lambda: Stack([]), "members: expected at least one constraint, got none"),
        (lambda: Stack([BALL, 3]), "members: expected constraints, got int 3 at index 1"),
        (lambda: Stack([BALL, NormBall([0.0], 1.0)]), "members: expected the same dimension, got 2, 1"),
        (lambda: Stack([NormBall(ZERO, [1.0] * 3), NormBall(ZERO, [1.0] * 4)]), r"members\[1\]: expected leading axes"),
        (lambda: BALL.rows(np.zeros(3)), r"x: expected shape \(\.\.\., 2\), got \(3,\)"),
        (lambda: NormBall(np.zeros((3, 2)), 1.0).rows(np.zeros((4, 2))), r"x: expected .* with \(3,\), got \(4,\)"),
        (lambda: NormBall(ZERO, 1.0).rows([1e200, 0.0]), "constraints.NormBall: .* not finite at a finite point"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("make", "argument", "legal"),
    [
        (lambda z: Affine([[1.0, z]], [0.0]), "Affine: A", None),
        (lambda z: Affine([[1.0, 1.0]], [z]), "Affine: b", np.inf),
        (lambda z: NormBall([z, 0.0], 1.0), "NormBall: center", None),
        (lambda z: NormBall(ZERO, z), "NormBall: radius", np.inf),
        (lambda z: Quadratic([[1.0, z], [z, 1.0]], ZERO, 0.0), "Quadratic: P", None),
        (lambda z: Quadratic(EYE, [z, 0.0], 0.0), "Quadratic: q", None),
        (lambda z: Quadratic(EYE, ZERO, z), "Quadratic: r", -np.inf),
        (lambda z: SecondOrder([[1.0, z]], [0.0], ZERO, 0.0), "SecondOrder: A", None),
        (lambda z: SecondOrder([[1.0, 1.0]], [z], ZERO, 0.0), "SecondOrder: b", None),
        (lambda z: SecondOrder([[1.0, 1.0]], [0.0], [z, 0.0], 0.0), "SecondOrder: c", None),
        (lambda z: SecondOrder([[1.0, 1.0]], [0.0], ZERO, z), "SecondOrder: d", np.inf),
    ],
)
def test_what_is_not_finite_is_traced_to_its_argument(make, argument, legal, bad):
    good = make(0.5)
    for call in (good.rows, good.jacobian, Stack([good, good]).rows):
        with pytest.raises(InvalidInput, match=r"x: expected finite numbers, got (nan|inf|-inf) at index \(1,\)"):
            call([1.0, bad])
    if bad == legal:
        return
    g = make(bad)
    for x in ([1.0, 2.0], [-1.0, -2.0]):
        for call in (g.rows, Stack([good, g]).rows, Stack([good, g]).select([0, 1]).rows):
            with pytest.raises(InvalidInput, match=f"constraints.{argument}: expected finite numbers, got {bad}"):
                call(x)
    with pytest.raises(InvalidInput, match=f"constraints.{argument}"):
        g.cones()


def test_functions_have_one_row_and_no_cones():
    g, _, _ = draw("function", np.random.default_rng(0))
    assert (g.row_count, g.dim, g.batch) == (1, None, ())
    assert g.cones() is None
    assert g.affine() is None
    assert g.magnitude(np.zeros((3, 2))).tolist() == [[1.0]] * 3


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_a_callable_raises_passes_through_with_a_note(error):
    def gradient(x):
        raise error("mine")

    g = Stack([BALL, Function(lambda x: 0.0, gradient)])
    with pytest.raises(error, match="mine") as caught:
        g.gradient(np.zeros((1, 2, 2)))
    assert caught.value.__notes__ == ["raised by `gradient` of constraints.Function in trial (0, 0)"]


@pytest.mark.parametrize(
    ("value", "gradient", "message"),
    [
        (lambda x: np.nan, None, "constraints.Function: value: expected a finite number, got nan in trial 0"),
        (lambda x: x, None, r"value: expected a finite number, got shape \(2,\) in trial 0"),
        (lambda x: "no", None, "value: expected a finite number, got str 'no' in trial 0"),
        (lambda x: 0.0, lambda x: 1.0, r"gradient: expected finite numbers of shape \(2,\), got shape \(\) in trial 0"),
        (lambda x: 0.0, lambda x: x + np.inf, r"gradient: expected finite numbers of shape \(2,\), got inf in trial 0"),
    ],
)
def test_a_wrong_answer_is_named(value, gradient, message):
    g = Function(value, gradient or np.ones_like)
    with pytest.raises(InvalidInput, match=message):
        (g.gradient if gradient else g.value)(np.zeros((3, 2)))


def test_a_vectorized_function_is_called_once():
    calls = []

    def value(x):
        calls.append(x.shape)
        return x.sum(axis=-1)

    g = Function(value, np.ones_like, vectorized=True)
    assert g.rows(np.ones((4, 3, 2))).shape == (4, 3, 1)
    assert calls == [(4, 3, 2)]
    with pytest.raises(InvalidInput, match=r"value: expected finite numbers of shape \(4,\), got shape \(\)"):
        Function(np.sum, np.ones_like, vectorized=True).rows(np.ones((4, 2)))


x = cp.Variable(3)
ROOT = np.random.default_rng(20).normal(size=(4, 3))
SYMMETRIC = [m + m.T for m in np.random.default_rng(21).normal(size=(4, 3, 3))]
EXPRESSIONS = {
    "affine": ROOT @ x - 1.0,
    "norm": cp.norm(x) - 1.0,
    "pnorm": cp.pnorm(x, 3) - 1.0,
    "squares": cp.sum_squares(ROOT @ x) - 1.0,
    "exp": cp.log_sum_exp(ROOT @ x),
    "entropy": -cp.sum(cp.entr(x)),
    "log": x[1] - cp.log(x[0]),
    "psd": cp.lambda_max(sum(x[i] * SYMMETRIC[i] for i in range(3)) + SYMMETRIC[3]),
    "power": cp.power(x[0], 1.7, approx=False) - x[1],
    "geometric mean": -cp.geo_mean(x),
    "equalities": cp.sum(cp.huber(x)) - 1.0,
    "rows": cp.hstack([cp.norm(x, 1) - 1.0, 2 * x[2] - x[1], cp.square(x[0])]),
    "absent": cp.sum(0 * x) - 1.0,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_cvxpy_rows_subgradients_and_cones_agree(name):
    expression = EXPRESSIONS[name]
    g = from_cvxpy(expression, x)
    rng = np.random.default_rng(22)
    points = rng.uniform(0.2, 2.0, size=(3, 3))
    rows, jacobian = g.rows(points), g.jacobian(points)
    assert (g.dim, g.row_count, g.batch) == (3, expression.size, ())
    for point, row, slope in zip(points, rows, jacobian, strict=True):
        fresh = cp.Variable(3, value=point)
        np.testing.assert_allclose(row, substituted(name, fresh), rtol=1e-12)
        ends = [(g.rows(point + 1e-6 * e) - g.rows(point - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        np.testing.assert_allclose(slope, np.transpose(ends), atol=1e-7)
        np.testing.assert_allclose(least_relaxation(g.cones(), point), row, atol=1e-7)
        for i in range(g.row_count):
            np.testing.assert_allclose(least_relaxation(g.select(i).cones(), point), row[[i]], atol=1e-7)
    assert x.value is None  # the user's variable is as it was


def substituted(name, leaf):
    """The expression's value by plain numpy."""
    z = leaf.value
    answer = {
        "affine": lambda: ROOT @ z - 1,
        "norm": lambda: np.sqrt(np.sum(z**2)) - 1,
        "pnorm": lambda: np.sum(z**3) ** (1 / 3) - 1,
        "squares": lambda: np.sum((ROOT @ z) ** 2) - 1,
        "exp": lambda: np.log(np.sum(np.exp(ROOT @ z))),
        "entropy": lambda: np.sum(z * np.log(z)),
        "log": lambda: z[1] - np.log(z[0]),
        "psd": lambda: np.linalg.eigvalsh(sum(z[i] * SYMMETRIC[i] for i in range(3)) + SYMMETRIC[3]).max(),
        "power": lambda: z[0] ** 1.7 - z[1],
        "geometric mean": lambda: -(np.prod(z) ** (1 / 3)),
        "equalities": lambda: np.sum(np.where(z <= 1, z**2, 2 * z - 1)) - 1,
        "rows": lambda: [np.sum(z) - 1, 2 * z[2] - z[1], z[0] ** 2],
        "absent": lambda: -1.0,
    }[name]()
    return np.atleast_1d(answer)


def test_cvxpy_affine_rows_are_solved_by_the_kernel():
    A, b = from_cvxpy(EXPRESSIONS["affine"], x).affine()
    np.testing.assert_allclose(A, ROOT)
    np.testing.assert_allclose(b, np.ones(4))
    assert from_cvxpy(EXPRESSIONS["norm"], x).affine() is None


def test_cvxpy_parameters_are_snapshots_and_the_problem_is_compiled_once(monkeypatch):
    center, radius = cp.Parameter(3, value=np.zeros(3)), cp.Parameter(nonneg=True, value=1.0)
    expression = cp.norm(x - center) - radius
    point = np.array([2.0, 0.0, 0.0])
    compiled = []
    original = cp.Problem.get_problem_data
    monkeypatch.setattr(
        cp.Problem, "get_problem_data", lambda self, *a, **k: (compiled.append(id(self)), original(self, *a, **k))[1]
    )
    first = from_cvxpy(expression, x)
    center.value, radius.value = np.array([2.0, 4.0, 0.0]), 3.0
    second = from_cvxpy(expression, x)
    radius.value = 0.25
    for g, value in ((first, 1.0), (second, 1.0), (from_cvxpy(expression, x), 3.75)):
        assert g.value(point) == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(least_relaxation(g.cones(), point), [value], atol=1e-8)
    assert first.gradient(point).tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_allclose(second.gradient(point), [0.0, -1.0, 0.0])
    assert len(compiled) == 1  # for three sets of parameters
    assert radius.value == 0.25
    assert center.value.tolist() == [2.0, 4.0, 0.0]


def test_cvxpy_in_a_stack_and_outside_its_domain():
    log = from_cvxpy(EXPRESSIONS["log"], x)
    g = Stack([NormBall(np.zeros(3), 1.0), log])
    np.testing.assert_allclose(least_relaxation(g.cones(), np.ones(3)), [np.sqrt(3) - 1, 1.0], atol=1e-8)
    for call in (log.rows, log.jacobian, g.rows):
        with pytest.raises(InvalidInput, match="outside the expression's domain"):
            call([-1.0, 0.0, 0.0])
    with pytest.raises(InvalidInput, match="x: expected finite numbers"):
        log.rows([np.nan, 0.0, 0.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_cvxpy(cp.norm(x), 3), "variable: expected a cvxpy.Variable, got int 3"),
        (lambda: from_cvxpy(3, x), "expression: expected a cvxpy.Expression, a constraint .*, got int 3"),
        (lambda: from_cvxpy(cp.norm(x), cp.Variable((2, 2))), r"variable: expected shape \(n,\), got \(2, 2\)"),
        (lambda: from_cvxpy(cp.norm(x), cp.Variable(3, nonneg=True)), "variable: expected no attributes.* got nonneg"),
        (lambda: from_cvxpy(cp.norm(x), cp.Variable(3)), "expression: expected var.* as its only variable, got var"),
        (lambda: from_cvxpy(cp.norm(x) + cp.norm(cp.Variable(2)), x), "as its only variable, got var.*, var"),
        (lambda: from_cvxpy(cp.Constant(1.0), x), "as its only variable, got none"),
        (lambda: from_cvxpy(-cp.norm(x), x), "expression: expected one that is convex by the DCP rules, got CONCAVE"),
        (lambda: from_cvxpy(cp.reshape(x, (3, 1), order="F"), x), r"expected a scalar or a vector, got shape \(3, 1\)"),
        (lambda: from_cvxpy(cp.norm(x) - cp.Parameter(name="p"), x), "expected a value for the parameter p, got None"),
        (
            lambda: from_cvxpy(cp.norm(x) * cp.exp(cp.Parameter(value=1.0)), x),
            "expected parameters to enter by the DPP rules",
        ),
    ],
)
def test_cvxpy_errors(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_without_cvxpy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cocopt.constraints.cvxpy_constraint", None)  # not loaded yet
    monkeypatch.delitem(sys.modules, "cocopt.constraints.cvxpy_constraint")
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"pip install 'cocopt\[cvxpy\]'"):
        from_cvxpy(EXPRESSIONS["norm"], x)


def test_constraints_do_not_load_what_they_do_not_need():
    code = "import sys, cocopt.constraints, cocopt.losses; print({'cvxpy', 'scipy', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_repr_names_the_data():
    assert repr(Stack([BALL])) == "Stack([NormBall(center of shape (2,), radius of shape ())])"
    assert repr(from_cvxpy(EXPRESSIONS["pnorm"], x)).startswith("from_cvxpy(")
    assert set(constraints.__all__) >= {
        "Affine",
        "Function",
        "NormBall",
        "Quadratic",
        "SecondOrder",
        "Stack",
        "from_cvxpy",
    }
