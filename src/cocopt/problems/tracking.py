"""A strongly convex problem, which is not from the paper: tracking a random target under random limits."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike, one_of
from cocopt.constraints import Affine
from cocopt.losses import Distance
from cocopt.problems.base import BlockProblem
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Tracking"]

_N = 10
_CENTRE, _REACH, _LIMIT = 0.3, 1.0, 0.4


@register
class Tracking(BlockProblem):
    """Tracking of a random target, with limits on random pairs of coordinates, over K = [−1, 1]^10.

        f_t(x) = ½‖x − c_t‖²,      c_t uniform on (−0.7, 1.3)^10
        g_t(x) = x_i + x_j − 0.4,  a random pair i ≠ j
        x_1 uniform on K

    The losses are strongly convex with m = 1, and 0 satisfies every constraint: with ``steps.StronglyConvex(1)``, CLASP
    has logarithmic bounds on regret and CCV₂. The best point without limits, (0.3, …, 0.3), violates all of them, so
    that violations never end, and the regret grows like log T. Regret and CCV₂ cannot both keep growing: with d_t, the
    distances by which the projections move the points, the proof of the regret bound gives

        Regret_T + Σ_t (m t/2) d_t² ≤ Σ_t ‖∇f_t(x_t)‖²/(2 m t) = O(log T),

    so that CCV₂ is bounded where the regret is not negative. If limits are shown rarely, CCV₂ grows like log T, and the
    regret falls like −T.

    L_f = 2.3√10, L_g = √2 and B = 2.4 are exact.

    Parameters
    ----------
    limits : "always" or "rarely"
        Whether round t shows a limit always, or with probability min(1, 10/t).

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("tracking")
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(100)))
    >>> first, count, reveal(0)
    (1, 256, (Distance(center of shape (100, 10)), Affine(A of shape (100, 1, 10), b of shape (100, 1))))
    """

    name = "tracking"
    rounds = 5000
    strong_convexity = 1.0
    feasible = True
    static = False

    def __init__(self, limits: Literal["always", "rarely"] = "always") -> None:
        self.limits = one_of("limits", limits, "always", "rarely")
        self.options = {"limits": limits}
        self.K = Box(-1.0, 1.0, dim=_N)
        self.lipschitz_f = (1.0 + _CENTRE + _REACH) * sqrt(_N)
        self.lipschitz_g = sqrt(2.0)
        self.bound = 2.0 + _LIMIT

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return rng.uniform(-1.0, 1.0, _N)

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        target = _CENTRE + _REACH * rng.uniform(-1.0, 1.0, (count, _N))
        one = rng.integers(_N, size=count)
        other = (one + rng.integers(1, _N, size=count)) % _N
        A = (np.eye(_N)[one] + np.eye(_N)[other])[:, None, :]
        b = np.full((count, 1), _LIMIT)
        if self.limits == "rarely":
            t = np.arange(first, first + count)
            b[rng.uniform(size=count) * t > 10.0] = np.inf
        return target, A, b

    def reveal(self, *data: NDArray[Any]) -> tuple[Distance, Affine]:
        target, A, b = data
        return Distance(target), Affine(A, b)
