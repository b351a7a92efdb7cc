"""Infeasible projections: no farther from any point of K, in K (or close to it), within the proven number of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocopt.errors import InvalidInput, SolverFailure
from cocopt.geometry.infeasible import by_linear_oracle, by_separation

seeds = st.integers(0, 2**32 - 1)
N = 4
HALF = np.array([0.5, 1.0, 1.5, 2.0])  # half axes


def box(center: Any) -> tuple[Any, Any, Any, float, float]:
    """(separation, linear oracle, points of K from points of the unit ball, inner and outer radius)."""

    def separate(y: Any) -> Any:
        z = (y - center) / HALF
        worst = np.abs(z).argmax(axis=-1)[..., None]
        normal = np.where(np.arange(N) == worst, np.sign(z), 0.0)
        return np.where(np.abs(z).max(axis=-1, keepdims=True) > 1.0, normal, 0.0)

    return separate, lambda c: center - HALF * np.where(c > 0, 1.0, -1.0), lambda u: center + HALF * u, 0.5, 2.8


def ellipsoid(center: Any) -> tuple[Any, Any, Any, float, float]:
    def separate(y: Any) -> Any:
        z = (y - center) / HALF
        return np.where(np.linalg.norm(z, axis=-1, keepdims=True) > 1.0, z / HALF, 0.0)

    def minimise(c: Any) -> Any:
        v = HALF * c
        return center - HALF * v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300)

    return separate, minimise, lambda u: center + HALF * u, 0.5, 2.0


every_set = pytest.mark.parametrize("make", [box, ellipsoid])


def members(image: Any, rng: Any, share: float) -> Any:
    u = rng.normal(size=(200, N))
    return image(share * u / np.linalg.norm(u, axis=1, keepdims=True) * rng.random((200, 1)) ** 0.25)


@every_set
@settings(max_examples=15)
@given(seed=seeds, delta=st.floats(0.05, 0.9))
def test_by_separation(make: Any, seed: int, delta: float) -> None:
    rng = np.random.default_rng(seed)
    center = rng.normal(size=N)
    separate, _, image, inner, outer = make(center)
    point = center + rng.normal(size=N) * rng.choice([0.1, 1.0, 10.0])
    calls = 0

    def counted(y: Any) -> Any:
        nonlocal calls
        calls += 1
        return separate(y)

    y = by_separation(point, counted, inner=inner, outer=outer, delta=delta, center=center)
    assert not separate(y).any()
    z = members(image, rng, 1 - delta)
    assert (np.linalg.norm(y - z, axis=1) <= np.linalg.norm(point - z, axis=1) + 1e-12).all()
    nearest = (np.linalg.norm(point - z, axis=1) ** 2).min()  # over some of them: no less than the distance
    assert calls <= nearest / (delta * inner) ** 2 + 1
    # the same by a plain loop
    naive = point - center
    naive = naive / max(1.0, np.linalg.norm(naive) / outer)
    while (normal := separate(naive + center)).any():
        naive = naive - delta * inner * normal / np.linalg.norm(normal)
    np.testing.assert_allclose(y, naive + center, rtol=0, atol=1e-12)


@every_set
@settings(max_examples=10)
@given(seed=seeds, eps=st.sampled_from([0.3, 0.05, 0.01]))
def test_by_linear_oracle(make: Any, seed: int, eps: float) -> None:
    rng = np.random.default_rng(seed)
    center = rng.normal(size=N)
    separate, minimise, image, _, outer = make(center)
    start, point = members(image, rng, 0.9)[0], center + rng.normal(size=N) * rng.choice([0.1, 1.0, 10.0])
    x, y = by_linear_oracle(start, point, minimise, outer=outer, eps=eps, center=center)
    assert not separate(center + (x - center) * (1 - 1e-12)).any()
    assert (x - y) @ (x - y) <= 3 * eps * (1 + 1e-12) or (start - point) @ (start - point) <= 3 * eps
    z = members(image, rng, 1.0)
    assert (np.linalg.norm(y - z, axis=1) <= np.linalg.norm(point - z, axis=1) + 1e-12).all()
    # the same by plain loops, one inside the other
    other, near = start, center + (point - center) / max(1.0, np.linalg.norm(point - center) / outer)
    square = (start - point) @ (start - point)
    if square > 3 * eps:
        while True:
            while (other - near) @ (other - near) > 3 * eps:
                w = minimise(other - near)
                gap = (other - near) @ (other - w)
                if gap <= eps:
                    break
                other = other + min(1.0, gap / ((other - w) @ (other - w))) * (w - other)
            if (other - near) @ (other - near) <= 3 * eps:
                break
            near = near - 2 * eps / square * (near - other)
    np.testing.assert_allclose(x, other, rtol=0, atol=1e-9)
    np.testing.assert_allclose(y, near, rtol=0, atol=1e-9)


@every_set
def test_trials_are_leading_axes(make: Any) -> None:
    rng = np.random.default_rng(0)
    separate, minimise, _, inner, outer = make(np.zeros(N))
    points = 3 * rng.normal(size=(2, 5, N))
    together = by_separation(points, separate, inner=inner, outer=outer, delta=0.2)
    x, y = by_linear_oracle(np.zeros(N), points, minimise, outer=outer, eps=0.05)
    for index in np.ndindex(2, 5):
        alone = by_separation(points[index], separate, inner=inner, outer=outer, delta=0.2)
        np.testing.assert_allclose(together[index], alone, rtol=0, atol=1e-13)
        own = by_linear_oracle(np.zeros(N), points[index], minimise, outer=outer, eps=0.05)
        np.testing.assert_allclose((x[index], y[index]), own, rtol=0, atol=1e-9)


def test_an_oracle_with_which_the_iteration_does_not_end_is_an_error() -> None:
    with pytest.raises(SolverFailure, match="by_separation: expected normals that separate"):
        by_separation(np.ones(2), lambda y: np.ones(2), inner=1.0, outer=2.0, delta=0.5)
    with pytest.raises(
        SolverFailure, match="by_linear_oracle: expected minimisers"
    ):  # each step makes next to no progress
        by_linear_oracle(np.ones(2), np.zeros(2), lambda c: 1e9 * np.array([-c[1], c[0]]) - c, outer=1.0, eps=0.5)
    with pytest.raises(InvalidInput, match="minimise: expected finite numbers"):
        by_linear_oracle(np.ones(2), np.zeros(2), lambda c: np.full(2, np.nan), outer=2.0, eps=0.1)
    with pytest.raises(InvalidInput, match="separate: expected finite numbers"):
        by_separation(np.ones(2), lambda y: np.full(2, np.inf), inner=1.0, outer=2.0, delta=0.5)


@pytest.mark.parametrize(
    ("name", "value"), [("inner", 0.0), ("outer", -1.0), ("delta", 1.0), ("delta", 0.0), ("point", np.array([np.nan]))]
)
def test_arguments_are_checked(name: str, value: Any) -> None:
    arguments = {"point": np.ones(1), "inner": 1.0, "outer": 2.0, "delta": 0.5} | {name: value}
    with pytest.raises(InvalidInput, match=f"{name}: expected"):
        by_separation(separate=lambda y: 0.0 * y, **arguments)


@pytest.mark.parametrize(("name", "value"), [("eps", 0.0), ("outer", np.nan), ("start", np.array([np.inf]))])
def test_arguments_of_the_linear_oracle_are_checked(name: str, value: Any) -> None:
    arguments = {"start": np.zeros(1), "point": np.ones(1), "outer": 2.0, "eps": 0.1} | {name: value}
    with pytest.raises(InvalidInput, match=f"{name}: expected"):
        by_linear_oracle(minimise=lambda c: -np.sign(c), **arguments)
