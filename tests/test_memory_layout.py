"""Results do not depend on how arrays lie in memory."""

from __future__ import annotations

import re

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


def curved_problem(kind: str, n: int, rng: np.random.Generator) -> tuple[cocopt.ConvexSet, constraints.Constraint]:
    """A set and a batch of constraints, all satisfied near 0, that the named kernel solves."""
    trials = 12
    center, radius = 0.3 * rng.normal(size=(trials, n)), rng.uniform(0.8, 1.2, trials) * np.sqrt(n)
    root, q, f = rng.normal(size=(trials, n, n)), rng.normal(size=(trials, n)), rng.normal(size=(trials, n)) / n
    A, b = rng.normal(size=(trials, 3, n)), rng.uniform(0.5, 1.0, (trials, 3))
    ball = constraints.NormBall(center, radius)
    cone = constraints.SecondOrder(root, q, f, np.linalg.norm(q, axis=-1) + 0.5)
    quadratic = constraints.Quadratic(root @ root.swapaxes(-1, -2), q, -0.5)
    row = constraints.Affine(A[:, :1], b[:, :1])
    box = cocopt.Box(-np.ones(n), np.linspace(0.5, 2.0, n))
    ellipsoid = cocopt.Ellipsoid(0.1 * np.ones(n), np.diag(np.linspace(0.5, 2.0, n)) + 0.1)
    match kind:
        case "box_norm_ball":
            return box, constraints.NormBall(center, 0.5 * radius)
        case "ball_norm_ball":
            return cocopt.Ball(0.5 * np.ones(n), np.sqrt(n)), ball
        case "simplex_norm_ball":
            return cocopt.Simplex(n), constraints.NormBall(1.0 / n + 0.1 * center, 0.3 * radius / np.sqrt(n))
        case "l1_ball_norm_ball":
            return cocopt.L1Ball(0.0, 2.0, dim=n), constraints.NormBall(center, 0.5 * radius)
        case "l1_ball_halfspace":
            return cocopt.L1Ball(0.0, 2.0, dim=n), row
        case "ellipsoid_norm_ball":
            return ellipsoid, constraints.NormBall(0.1 * center, 0.3 * radius)
        case "ellipsoid_halfspace":
            return ellipsoid, row
        case "box_quadratic":
            return box, constraints.Quadratic(rng.uniform(0.5, 2.0, (trials, n))[..., None] * np.eye(n), q, -0.5)
        case "bounds_norm1":
            return box, constraints.Norm1(center, 0.5 * np.sqrt(n) * radius)
        case "polyhedron_norm_ball":
            return box, constraints.Stack([constraints.NormBall(center, 0.5 * radius), constraints.Affine(A, b)])
        case "newton_rows of a box":
            return box, quadratic
        case "newton_rows of a ball":
            return cocopt.Ball(0.0, 1.0, dim=n), cone
        case "newton_rows of a simplex":
            P = root @ root.swapaxes(-1, -2) / n
            at_center = 0.5 * P.mean(axis=(-1, -2)) + q.mean(axis=-1)
            return cocopt.Simplex(n), constraints.Quadratic(P, q, -at_center - 0.01)
        case _:
            return box, constraints.Stack([ball, quadratic, cone, constraints.Affine(A, b)])


CURVED = [
    *("box_norm_ball", "ball_norm_ball", "simplex_norm_ball", "l1_ball_norm_ball", "l1_ball_halfspace"),
    *("ellipsoid_norm_ball", "ellipsoid_halfspace", "box_quadratic", "bounds_norm1", "polyhedron_norm_ball"),
    *("newton_rows of a box", "newton_rows of a ball", "newton_rows of a simplex", "newton_rows of all kinds"),
]


WORKSPACE = {"newton_rows": 3, "polyhedron_norm_ball": 2}  # how many arguments hold nothing at first


def placed(arrays: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Copies of the arrays in one piece of memory, in another order and at other distances."""
    memory = np.zeros(sum(array.size for array in arrays) + 20 * len(arrays) + 8)
    found, at = list(arrays), int(rng.integers(8))
    for i in rng.permutation(len(arrays)):
        found[i] = memory[at : at + arrays[i].size].reshape(arrays[i].shape)
        found[i][...] = arrays[i]
        at += arrays[i].size + int(rng.choice([0, 0, 1, 2, 3, 4, 7, 12, 20]))
    return found


@pytest.mark.parametrize("kind", CURVED)
@pytest.mark.parametrize("n", [4, 8, 10, 13, 20])
@pytest.mark.parametrize("far", [1.0, 300.0])
def test_results_of_curved_rows_do_not_depend_on_memory_or_neighbours(
    kind: str, n: int, far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit: a trial alone, wherever its data lie, whatever is in its workspace, and within a batch."""
    rng = np.random.default_rng(n)
    K, g = curved_problem(kind, n, rng)
    y, name, calls = far * (1.0 + rng.normal(size=(12, n))), kind.split()[0], []
    kernel = getattr(kernels, name)
    monkeypatch.setattr(kernels, name, lambda *args: calls.append(args) or kernel(*args))
    cocopt.project(K, g, y)
    monkeypatch.undo()
    (arguments,) = calls
    inner = [core.count(",") + 1 if core else 0 for core in re.findall(r"\(([^)]*)\)", kernel.signature)]
    with np.errstate(all="ignore"):
        together = kernel(*arguments)
        assert (together[-1] == 0).sum() >= 6
        for i in range(12):
            own = [
                a if np.ndim(a) == axes else a[i] for a, axes in zip(map(np.asarray, arguments), inner, strict=False)
            ]
            expected = [np.asarray(result[i]) for result in together]
            for _ in range(12):
                floats = placed([np.array(a, dtype=float) for a in [*own, *expected[:-1]]], rng)
                for workspace in floats[len(own) - WORKSPACE.get(name, 0) : len(own)]:
                    workspace[...] = rng.choice([np.nan, 0.0, -1.0])
                *results, status = *floats[len(own) :], np.zeros((), dtype=np.int64)
                given = [f.astype(a.dtype) if a.dtype == np.int64 else f for f, a in zip(floats, own, strict=False)]
                kernel(*given, out=(*results, status))
                for found, known in zip([*results, status], expected, strict=True):
                    assert found.tobytes() == known.tobytes()
