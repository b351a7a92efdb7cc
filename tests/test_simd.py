"""Small projections of a batch in SIMD lanes: as each trial by itself, whatever the others are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from reference import projections as reference
from reference.projections import Array

import cocopt
from cocopt import Box, constraints, kernels
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry import solve_projection
from cocopt.geometry.batch import MIN_SIMD_TRIALS, SIMD_MAX_SIZE
from cocopt.kernels.status import CONVERGED

TRIALS = 21  # more than eight, and not a multiple of it
seeds = st.integers(0, 2**32 - 1)
KINDS = ("ordinary", "crowded", "dependent", "units", "far", "fixed", "open", "everywhere", "feasible")


def draw(kind: str, n: int, M: int, seed: int) -> tuple[Box, Array, Array, Array]:
    """A box, and rows A, b and a target for each trial; some point of the box satisfies its rows."""
    rng = np.random.default_rng(seed)
    lower, upper = np.zeros(n), np.ones(n)
    A, inside = rng.normal(size=(TRIALS, M, n)), rng.uniform(size=(TRIALS, n))
    slack, y = rng.uniform(0.0, 0.3, (TRIALS, M)), inside + 2.0 * rng.normal(size=(TRIALS, n))
    match kind:
        case "crowded":
            slack *= 0.01
        case "dependent":  # copies, and sums of the others
            A[:, M // 2 :] = A[:, : M - M // 2] * rng.choice([1.0, 3.0], (TRIALS, M - M // 2, 1))
            A[:, -1] = A[:, :-1].sum(axis=1) if M > 1 else A[:, -1]
        case "far":
            y = inside + 1e6 * rng.normal(size=(TRIALS, n))
        case "fixed":
            lower[::2] = upper[::2] = 0.5
            inside[:, ::2] = 0.5
        case "open":
            lower[::2], upper[1::2] = -np.inf, np.inf
        case "everywhere":
            lower[:], upper[:] = -np.inf, np.inf
        case "feasible":
            y = inside
    b = np.matvec(A, inside) + slack
    if kind == "units":
        unit = 10.0 ** rng.uniform(-6, 6, (TRIALS, M))
        A, b = A * unit[..., None], b * unit
    return Box(lower, upper), A, b, y


def expected(K: Box, A: Array, b: Array, y: Array) -> Array:
    return reference.least_distance(*reference.all_rows(("Box", K.lower, K.upper), ("Affine", A, b)), y)


def project_simd(
    K: Box, A: Array, b: Array, y: Array, max_multiplier_sum: Any = (np.inf,)
) -> tuple[Array, Array, Array, bool]:
    """What the kernel itself finds, and whether some trial was left to the method for one."""
    M, n = A.shape[-2:]
    dim_memory, row_memory = (np.full(memory.shape, np.nan) for memory in kernels.workspace_memory(M, n))
    max_multiplier = np.full(M, np.inf)
    memory = np.full(kernels.lane_memory(M, n).shape, np.nan)  # what it contains must not matter
    found = kernels.box_rows_simd(
        y, K.lower, K.upper, A, b, np.array(max_multiplier_sum), max_multiplier, dim_memory, row_memory, memory
    )
    return *found, not np.isnan(dim_memory).all()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(n=st.integers(1, 8), M=st.integers(1, 8), seed=seeds)
def test_each_trial_is_projected(kind: str, n: int, M: int, seed: int) -> None:
    K, A, b, y = draw(kind, n, M, seed)
    assert M * n <= SIMD_MAX_SIZE
    assert TRIALS >= MIN_SIMD_TRIALS
    found = solve_projection(K, constraints.Affine(A, b), y)
    assert found.method == "kernel"
    x, nu = found.point, found.multipliers
    unit = np.linalg.norm(A, axis=-1)
    # KKT: the point answers multipliers that are those of rows that bind
    assert (K.lower <= x).all() & (x <= K.upper).all()
    assert nu.min() >= 0.0
    rows = (np.matvec(A, x) - b) / unit
    size = 1.0 + np.abs(x).max()
    assert rows.max() <= 1e-11 * size
    assert np.abs(np.where(nu > 0, rows, 0.0)).max() <= (1e-9 if kind == "far" else 1e-11) * size  # y − ν a cancels
    reach = 1.0 + np.abs(y).max() + (nu * unit).max()
    np.testing.assert_allclose(np.clip(y - np.vecmat(nu, A), K.lower, K.upper), x, rtol=0, atol=1e-12 * reach)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "far"])
@settings(max_examples=4)
@given(n=st.integers(1, 6), M=st.integers(1, 6), seed=seeds)
def test_the_projection_has_the_least_distance(kind: str, n: int, M: int, seed: int) -> None:
    K, A, b, y = draw(kind, n, M, seed)
    x = cocopt.project(K, constraints.Affine(A, b), y)
    for i in range(TRIALS):
        np.testing.assert_allclose(x[i], expected(K, A[i], b[i], y[i]), rtol=0, atol=1e-7 * (1 + np.abs(y[i]).max()))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4)
@given(n=st.integers(1, 8), M=st.integers(1, 8), seed=seeds)
def test_simd_lanes_equal_the_method_for_one_trial(kind: str, n: int, M: int, seed: int) -> None:
    """Up to rounding; and in another order, among other neighbours, they are the same to the bit."""
    K, A, b, y = draw(kind, n, M, seed)
    batch = cocopt.project(K, constraints.Affine(A, b), y)
    backwards = cocopt.project(K, constraints.Affine(A[::-1], b[::-1]), y[::-1])[::-1]
    one_by_one = [cocopt.project(K, constraints.Affine(A[i], b[i]), y[i]) for i in range(TRIALS)]
    # (a far target is left to the method for one, which takes a nearer one for the digits that y − Aᵀν has lost)
    size = (1e-14 if kind == "far" else 1e-9) * (1.0 + np.abs(batch).max())
    np.testing.assert_array_equal(backwards, batch)
    np.testing.assert_allclose(one_by_one, batch, rtol=0, atol=size)


def test_ordinary_trials_are_solved_in_simd_lanes() -> None:
    """If all were left to the method for one trial, the results would be right, but slow."""
    for kind, n, M, most in (("feasible", 10, 4, 0.0), ("ordinary", 4, 2, 0.01), ("ordinary", 10, 4, 0.01)):
        left = []
        for seed in range(10):
            K, A, b, y = draw(kind, n, M, seed)
            left += [project_simd(K, A[i : i + 1], b[i : i + 1], y[i : i + 1])[3] for i in range(TRIALS)]
        assert np.mean(left) <= most


@settings(max_examples=10)
@given(n=st.integers(1, 8), seed=seeds)
def test_one_row_and_its_max_multiplier(n: int, seed: int) -> None:
    """KKT: the point answers a multiplier that is 0, that of a row which binds, or max_multiplier."""
    K, A, b, y = draw("ordinary", n, 1, seed)
    most = np.random.default_rng(seed).choice([0.0, 0.1, 1.0, 1e3, np.inf], TRIALS)
    x, nu, status = (
        kernels.box_halfspace_simd(y, K.lower, K.upper, A[:, 0], b[:, 0], most, kernels.lane_memory(1, n))
    )  # fmt: skip
    assert (status == CONVERGED).all()
    np.testing.assert_allclose(np.clip(y - nu[:, None] * A[:, 0], K.lower, K.upper), x, rtol=0, atol=1e-13)
    row, tight = np.vecdot(A[:, 0], x) - b[:, 0], 1e-13 * (1 + np.linalg.norm(A[:, 0], axis=1) * np.abs(y).max())
    assert ((nu >= 0.0) & (nu <= most)).all()
    assert (row[nu < most] <= tight[nu < most]).all()
    assert (row[nu > 0.0] >= -tight[nu > 0.0]).all()


@pytest.mark.parametrize("count", [1, TRIALS])
@settings(max_examples=6, suppress_health_check=[HealthCheck.filter_too_much])
@given(n=st.integers(2, 5), M=st.integers(1, 4), seed=seeds)
def test_a_bound_on_the_sum_of_multipliers(count: int, n: int, M: int, seed: int) -> None:
    """Weights that bind, that do not, 0, and infinity."""
    K, A, b, y = draw("ordinary", n, M, seed)
    weight = np.random.default_rng(seed).choice([0.0, 0.05, 0.5, 5.0, 1e3], count)
    x = cocopt.hinge_prox(K, constraints.Affine(A, b), y, weight=weight if count > 1 else weight[0], cap="sum", rho=0.5)
    for i in range(0, TRIALS, 4):
        data = (("Affine", A[i], b[i]), y[i], np.zeros(n), float(weight[i % count]), "sum", 0.5)
        try:
            best = reference.hinge_prox(("Box", K.lower, K.upper), *data)
        except reference.BadlyConditioned:
            reject()
        np.testing.assert_allclose(x[i], best, rtol=0, atol=1e-7 * (1 + np.abs(y[i]).max()))
    unbounded = cocopt.hinge_prox(K, constraints.Affine(A, b), y, weight=np.inf, cap="sum", rho=0.5)
    np.testing.assert_array_equal(unbounded, cocopt.project(K, constraints.Affine(A, b), y))


def test_some_arguments_may_be_shared() -> None:
    """By all trials, or along one of two leading axes."""
    K, A, b, y = draw("ordinary", 4, 3, 0)
    A, b, y = A[:12].reshape(3, 4, 3, 4), b[:12].reshape(3, 4, 3), y[:12].reshape(3, 4, 4)
    for some in (np.s_[:], np.s_[:1], np.s_[:, :1], np.s_[0, 0]):
        for others in (np.s_[:], np.s_[:1], np.s_[:, :1], np.s_[0, 0]):
            rows, rhs, target = A[some], b[some], y[others]
            shape = np.broadcast_shapes(rhs.shape[:-1], target.shape[:-1])
            x = cocopt.project(K, constraints.Affine(rows, rhs), target)
            assert x.shape == (*shape, 4)
            whole = constraints.Affine(np.broadcast_to(rows, (*shape, 3, 4)), np.broadcast_to(rhs, (*shape, 3)))
            again = cocopt.project(K, whole, np.broadcast_to(target, (*shape, 4)))
            np.testing.assert_allclose(x, again, rtol=0, atol=1e-13)


def test_feasible_targets_come_back_bit_for_bit() -> None:
    K, A, b, y = draw("feasible", 5, 4, 0)
    np.testing.assert_array_equal(cocopt.project(K, constraints.Affine(A, b), y), y)


def test_difficult_neighbours_change_no_other_trial() -> None:
    """An idle row, a row of zeros, a huge one, a far target, and rows that exclude each other, all in one batch."""
    K, A, b, y = draw("ordinary", 5, 3, 1)
    ordinary = cocopt.project(K, constraints.Affine(A, b), y)
    A, b, y = A.copy(), b.copy(), y.copy()
    b[2, 1] = np.inf
    A[5, 0], b[5, 0] = 0.0, 1.0
    A[8] *= 1e140
    b[8] *= 1e140
    y[11] *= 1e9
    A[14, 1], b[14, 1] = -A[14, 0], -b[14, 0] - 0.5
    A[15], b[15] = 0.0, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_projection(K, constraints.Affine(A, b), y, infeasible="nearest")
    np.testing.assert_array_equal(found.feasible, np.arange(TRIALS) != 14)
    same = np.isin(np.arange(TRIALS), [2, 5, 11, 14, 15], invert=True)
    np.testing.assert_allclose(found.point[same], ordinary[same], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.point[15], K.project(y[15]))
    for i, keep in ((2, [0, 2]), (5, [1, 2])):
        np.testing.assert_allclose(found.point[i], expected(K, A[i, keep], b[i, keep], y[i]), rtol=0, atol=1e-9)
    with pytest.raises(InfeasibleRound) as caught:
        cocopt.project(K, constraints.Affine(A, b), y)
    assert caught.value.trials == (14,)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["A", "b", "point"])
@pytest.mark.parametrize("M", [1, 3])
def test_what_is_not_finite_is_named(M: int, name: str, bad: float) -> None:
    K, A, b, y = draw("ordinary", 5, M, 2)
    part = {"A": A, "b": b, "point": y}[name]
    part[(9, *([0] * (part.ndim - 1)))] = bad
    if name == "b" and bad == np.inf:
        assert cocopt.project(K, constraints.Affine(A, b), y).shape == y.shape  # an idle row
        return
    with np.errstate(all="ignore" if np.isinf(bad) else "raise"), pytest.raises(InvalidInput, match=name):
        cocopt.project(K, constraints.Affine(A, b), y)


def test_without_bounds_rounding_does_not_cause_long_steps() -> None:
    """The first step ends where the row is violated by less than its multiplier's last digit can change."""
    K, A, b = Box(-np.inf, np.inf, dim=1), np.array([[-1.211937924572982], [0.5047869243378329]]), np.zeros(2)
    b[:] = -1.9434245557598544, 1.135869772626918
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = cocopt.project(K, constraints.Affine(A, b), np.full((8, 1), 0.3320716234529095))
        np.testing.assert_allclose(x, b[0] / A[0, 0], rtol=1e-14)
        for n, M in ((1, 1), (1, 2), (2, 2), (3, 4)):
            rng = np.random.default_rng(n)
            A, inside = rng.normal(size=(5000, M, n)), rng.normal(size=(5000, n))
            g = constraints.Affine(A, np.matvec(A, inside) + rng.uniform(0, 0.3, (5000, M)))
            x = cocopt.project(Box(-np.inf, np.inf, dim=n), g, inside + rng.normal(size=(5000, n)))
            assert np.abs(x).max() < 1e6
            assert g.value(x).max() <= 1e-12 * (1 + np.abs(x).max())


def test_more_active_rows_than_slots() -> None:
    """All eight rows bind: the trials are left to the method for one."""
    K, y = Box(-1.0, 1.0, dim=8), np.full((TRIALS, 8), 0.9)
    A, b = np.broadcast_to(np.eye(8), (TRIALS, 8, 8)).copy(), np.full((TRIALS, 8), 0.25)
    x, nu, status, left = project_simd(K, A, b, y)
    assert left
    assert (status == CONVERGED).all()
    np.testing.assert_allclose(x, 0.25, rtol=0, atol=1e-15)
    np.testing.assert_allclose(nu, 0.65, rtol=0, atol=1e-15)
