"""The paper's online support vector machine on wine."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike
from cocopt.constraints import Affine
from cocopt.losses import Quadratic
from cocopt.problems.base import BlockProblem
from cocopt.registry import register
from cocopt.sets.ball import Ball

__all__ = ["WineSVM", "wine"]

_WINES, _FEATURES = 6497, 11
_SULFUR = [5, 6]  # free and total sulfur dioxide, the only columns in mg/dm³


@register
class WineSVM(BlockProblem):
    """A support vector machine that is trained online on 6497 wines: x = (w, b) in K = {‖x‖ ≤ 70√11}.

        f_t(x) = ½‖w‖²
        g_t(x) = 1 − v_t(⟨w, u_t⟩ − b), features u_t in [0, 70]^11, label v_t = +1 iff the quality is 7 or more
        x_1 uniform on (−1, 1)^12

    A trial is a pass over the wines in random order; beyond 6497 rounds there is another pass. The labels cannot be
    separated: no x satisfies all constraints, so that the regret is undefined and the bounds of the theory do not
    apply. The loss is strongly convex in w, but not in (w, b).

    L_f = 70√11 is the largest ‖w‖ in K, L_g the largest ‖(u, 1)‖ of the data, and
    B = 1 + 70√11 L_g; all three are attained.

    References
    ----------
    Cortez, Cerdeira, Almeida, Matos and Reis 2009, "Modeling wine preferences by data mining from physicochemical
    properties", Decision Support Systems 47(4).

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("svm")
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(100)))
    >>> first, count, reveal(0)[1]
    (1, 6497, Affine(A of shape (100, 1, 12), b of shape (100, 1)))
    """

    name = "svm"
    rounds = _WINES
    feasible = False
    static = False
    block_rounds = _WINES

    def __init__(self) -> None:
        radius = 70.0 * sqrt(_FEATURES)
        self.K = Ball(0.0, radius, dim=_FEATURES + 1)
        features, labels = wine()
        self._rows = -labels[:, None] * np.column_stack([features, -np.ones(_WINES)])
        self._loss = Quadratic(np.diag(np.append(np.ones(_FEATURES), 0.0)), np.zeros(_FEATURES + 1))
        self.lipschitz_f = radius
        self.lipschitz_g = float(np.linalg.norm(self._rows, axis=1).max())
        self.bound = 1.0 + radius * self.lipschitz_g

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return rng.uniform(-1.0, 1.0, _FEATURES + 1)

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[NDArray[Any], ...]:
        return (rng.permutation(_WINES),)

    def reveal(self, *data: NDArray[Any]) -> tuple[Quadratic, Affine]:
        (wines,) = data
        return self._loss, Affine(self._rows[wines][..., None, :], np.full((*wines.shape, 1), -1.0))


@cache
def wine() -> tuple[Array, Array]:
    """Features (6497, 11), sulfur dioxide in g/dm³, and labels ±1: red wines, then white ones."""
    parts = []
    for colour in ("red", "white"):
        content = files("cocopt").joinpath("data", f"winequality-{colour}.csv.gz").read_bytes()
        parts.append(np.loadtxt(gzip.decompress(content).decode().splitlines(), delimiter=";", skiprows=1))
    table = np.concatenate(parts)
    features, quality = table[:, :_FEATURES].copy(), table[:, _FEATURES]
    features[:, _SULFUR] /= 1000.0
    labels = np.where(quality >= 7, 1.0, -1.0)
    features.flags.writeable = labels.flags.writeable = False
    return features, labels
