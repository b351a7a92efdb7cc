"""A constraint that never changes, for methods that need one."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike
from cocopt.constraints import Affine
from cocopt.losses import Distance
from cocopt.problems.base import BlockProblem
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Static"]

_N = 10
_PAIR, _TOTAL = 0.5, 2.0  # the limits on pairs of neighbours and on the sum
_CENTRE = np.linspace(0.0, 1.0, _N)


@register
class Static(BlockProblem):
    """Quadratic losses over a fixed polytope with a Slater point, K = [−1, 1]^10, for 5000 rounds.

        f_t(x) = ½‖x − c_t‖²,   c_t = (0, 1/9, …, 1) + noise uniform on (−1, 1)^10
        g(x) ≤ 0  iff  x_i + x_{i+1} ≤ 0.5 for all i (x_11 stands for x_1), and x_1 + … + x_10 ≤ 2
        x_1 = 0

    The same constraint of 11 rows is revealed in every round. The start is a Slater point: g(0) = −0.5. The best point
    without the constraint, (0, 1/9, …, 1), violates it.

    L_f = √(Σ_i (2 + i/9)²), i = 0, …, 9, L_g = √10 and B = 12 are exact; the losses are strongly convex with m = 1.

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("static")
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(100)))
    >>> reveal(0)
    (Distance(center of shape (100, 10)), Affine(A of shape (11, 10), b of shape (11,)))
    >>> reveal(0)[1] is reveal(1)[1], problem.slack
    (True, 0.5)
    """

    name = "static"
    rounds = 5000
    strong_convexity = 1.0
    feasible = True
    static = True
    lipschitz_f = float(np.linalg.norm(2.0 + _CENTRE))
    lipschitz_g = sqrt(_N)
    bound = _N + _TOTAL
    slack = _PAIR

    def __init__(self) -> None:
        self.K = Box(-1.0, 1.0, dim=_N)
        pairs = np.eye(_N) + np.roll(np.eye(_N), 1, axis=1)
        self.constraint = Affine(np.concatenate([pairs, np.ones((1, _N))]), np.append(np.full(_N, _PAIR), _TOTAL))

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return np.zeros(_N)

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        return (_CENTRE + rng.uniform(-1.0, 1.0, (count, _N)),)

    def reveal(self, *data: NDArray[Any]) -> tuple[Distance, Affine]:
        (center,) = data
        return Distance(center), self.constraint
