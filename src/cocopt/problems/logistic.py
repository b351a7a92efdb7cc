"""Online classification within a ball that moves."""

from __future__ import annotations

from math import exp, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike
from cocopt.constraints import NormBall
from cocopt.losses import Logistic
from cocopt.problems.base import BlockProblem
from cocopt.registry import register
from cocopt.sets.ball import Ball

__all__ = ["LogisticRegression"]

_N = 5
_TRUTH = np.array([2.0, -2.0, 1.0, -1.0, 0.5])
_REACH = 2.0  # the radius of K
_ORBIT, _PERIOD = 0.5, 100  # of the centre of the ball
_LEAST, _LARGEST = 1.0, 1.5  # its radius


@register
class LogisticRegression(BlockProblem):
    """Online logistic regression within a ball whose centre moves on a circle, K = {‖x‖ ≤ 2} in R^5.

        f_t(x) = log(1 + exp(−y_t⟨u_t, x⟩)),  u_t uniform on (−1, 1)^5, y_t = ±1,
                 P(y_t = 1) = 1/(1 + exp(−⟨θ, u_t⟩)), θ = (2, −2, 1, −1, 0.5)
        g_t(x) = ‖x − c_t‖ − r_t,  c_t = ½(cos 2πt/100, sin 2πt/100, 0, 0, 0), r_t uniform on (1, 1.5)
        x_1 = 0

    The constraint is not affine: a round is one second-order cone, so that exact projections take an interior-point
    solver, trial by trial, and first-order methods are much faster. The parameter θ lies outside all balls; 0 lies in
    all of them, g_t(0) ≤ −½.

    L_f = √5/(1 + exp(−2√5)), L_g = 1 and B = 1.5 are exact (suprema).

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("logistic")
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(100)))
    >>> loss, constraint = reveal(0)
    >>> loss, constraint.center.shape
    (Logistic(u of shape (100, 5), v of shape (100,)), (100, 5))
    """

    name = "logistic"
    rounds = 500
    feasible = True
    static = False
    lipschitz_f = sqrt(_N) / (1.0 + exp(-_REACH * sqrt(_N)))
    lipschitz_g = 1.0
    bound = max(_REACH + _ORBIT - _LEAST, _LARGEST)
    slack = _LEAST - _ORBIT

    def __init__(self) -> None:
        self.K = Ball(0.0, _REACH, dim=_N)

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return np.zeros(_N)

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        features = rng.uniform(-1.0, 1.0, (count, _N))
        positive = rng.uniform(size=count) < 1.0 / (1.0 + np.exp(-features @ _TRUTH))
        angle = 2.0 * pi / _PERIOD * np.arange(first, first + count)
        center = np.zeros((count, _N))
        center[:, 0], center[:, 1] = _ORBIT * np.cos(angle), _ORBIT * np.sin(angle)
        return features, np.where(positive, 1.0, -1.0), center, rng.uniform(_LEAST, _LARGEST, count)

    def reveal(self, *data: NDArray[Any]) -> tuple[Logistic, NormBall]:
        features, labels, center, radius = data
        return Logistic(features, labels), NormBall(center, radius)
