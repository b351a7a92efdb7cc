"""A drone that follows a target within changing limits, from the published version of CLASP's paper."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike
from cocopt.constraints import Affine
from cocopt.losses import Distance
from cocopt.problems.base import BlockProblem
from cocopt.registry import register
from cocopt.sets.ball import Ball

__all__ = ["Drone"]

_RADIUS, _REACH, _TURN = 4.0, 2.0, pi / 6
_NEAR, _FAR = 0.1, 3.0  # the least and the largest distance of a limit from 0
_ROWS = np.concatenate([np.eye(2), -np.eye(2)])


@register
class Drone(BlockProblem):
    """A drone in the plane follows a random target within random limits, K = {‖x‖ ≤ 4}, for 1000 rounds.

        f_t(x) = ½‖x − v_t‖²,   v_t = (0, 2) rotated by an angle uniform on (−π/6, π/6)
        g_t(x) ≤ 0  iff  l_t ≤ x ≤ u_t,   u_t uniform on (0.1, 3)², l_t uniform on (−3, −0.1)²
        x_1 = (0, 2)

    Four rows, x_i − u_{t,i} and l_{t,i} − x_i; the violation is that of the largest. The losses are strongly convex
    with m = 1, and 0 satisfies all constraints with slack 0.1 (but not the start). The target lies outside most boxes.

    L_f = 6, L_g = 1 and B = 7 are exact.

    This is the experiment of CLASP's authors, after their public code. There, CLASP takes steps 1/√t although 1/t is
    the step for m = 1, and only the largest row at x_t counts; AdaGrad has G = D = 8 and Switch D/G = 1, which is
    ``lipschitz=8``. `cocopt reproduce drone` runs both steps and both choices of rows.

    References
    ----------
    Ferreira, Xavier and Soares, "CLASP: An online learning algorithm for Convex Losses And Squared Penalties",
    ICML 2026.

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("drone")
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(50)))
    >>> first, count, reveal(0)
    (1, 256, (Distance(center of shape (50, 2)), Affine(A of shape (50, 4, 2), b of shape (50, 4))))
    """

    name = "drone"
    rounds = 1000
    strong_convexity = 1.0
    feasible = True
    static = False
    lipschitz_f = _RADIUS + _REACH
    lipschitz_g = 1.0
    bound = _RADIUS + _FAR

    def __init__(self) -> None:
        self.K = Ball(0.0, _RADIUS, dim=2)

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return [0.0, _REACH]

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        angle = rng.uniform(-_TURN, _TURN, count)
        target = _REACH * np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
        return target, rng.uniform(_NEAR, _FAR, (count, 4))  # u, then −l

    def reveal(self, *data: NDArray[Any]) -> tuple[Distance, Affine]:
        target, limits = data
        return Distance(target), Affine(np.broadcast_to(_ROWS, (*limits.shape, 2)), limits)
