"""Results do not depend on how arrays lie in memory."""

from __future__ import annotations

import numpy as np
import pytest
from instances import build_set, random_set

import cocopt
from cocopt import constraints, kernels, losses


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", ["Box", "Ball", "Simplex", "Polyhedron", "Halfspace"])
def test_the_layout_of_arrays_in_memory_does_not_matter(kind: str, count: int) -> None:
    """Kernels read memory without gaps: transposed, strided, reversed and broadcast arrays must reach them whole."""
    rng = np.random.default_rng(count)
    described, z = random_set(kind, 4, rng)
    K = build_set(described)
    A, y = rng.normal(size=(6, count, 4)), z + 2 * rng.normal(size=(6, 4))
    b = A @ z + 0.1
    expected = cocopt.project(K, constraints.Affine(A, b), y)
    for change in (
        np.asfortranarray,
        lambda array: np.repeat(array, 2, axis=0)[::2],
        lambda array: np.repeat(array, 3, axis=-1)[..., ::3],
        lambda array: array[..., ::-1].copy()[..., ::-1],
        lambda array: np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1),
    ):
        x = cocopt.project(K, constraints.Affine(change(A), change(b)), change(y))
        np.testing.assert_array_equal(x, expected)
    shared = cocopt.project(K, constraints.Affine(A[0], b[0]), y)
    broadcast = constraints.Affine(np.broadcast_to(A[0], A.shape), np.broadcast_to(b[0], b.shape))
    np.testing.assert_array_equal(shared, cocopt.project(K, broadcast, y))


@pytest.mark.parametrize("kind", ["box", "ball", "simplex"])
@pytest.mark.parametrize("n", [4, 5, 8, 16])
def test_the_distance_of_arrays_in_memory_does_not_matter(kind: str, n: int) -> None:
    """To the bit, however close the result lies to the target or the row: compiled loops may ask for that."""
    sets = {"box": (np.zeros(n), np.ones(n)), "ball": (np.zeros(n), 1.0), "simplex": (1.0,)}
    kernel = {"box": kernels.box_halfspace, "ball": kernels.ball_halfspace, "simplex": kernels.simplex_halfspace}[kind]
    rng = np.random.default_rng(n)
    for _ in range(40):
        y, a = 300.0 * rng.normal(size=n), rng.normal(size=n)
        b = 0.9 * a.mean() + 0.05
        found = set()
        for gap in (n, n + 1, n + 4, n + 12, 200):
            for near, far in ((y, a), (a, y)):
                memory = np.zeros(600)
                first, x, second = memory[:n], memory[gap : gap + n], memory[450 : 450 + n]
                first[:], second[:] = near, far
                target, row = (first, second) if near is y else (second, first)
                nu, status = np.zeros(()), np.zeros((), dtype=np.int64)
                kernel(target, *sets[kind], row, b, np.inf, out=(x, nu, status))
                found.add((x.tobytes(), nu.tobytes()))
        assert len(found) == 1


def test_the_layout_of_a_loss_in_memory_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    H, y, x = rng.normal(size=(5, 3, 4)), rng.normal(size=(5, 3)), rng.normal(size=(5, 4))
    value, gradient = losses.Norm(H, y).value_and_gradient(x)
    turned = losses.Norm(np.asfortranarray(H), np.repeat(y, 2, axis=-1)[..., ::2])
    again = turned.value_and_gradient(np.asfortranarray(x))
    np.testing.assert_array_equal(value, again[0])
    np.testing.assert_array_equal(gradient, again[1])
