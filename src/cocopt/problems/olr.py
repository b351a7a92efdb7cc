"""The paper's online linear regression."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike, one_of
from cocopt.constraints import Affine
from cocopt.losses import LeastSquares, Norm
from cocopt.problems.base import BlockProblem
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["LongRegression", "Regression"]

_N, _ROWS = 10, 4  # H and A are 4 × 10


@register
class Regression(BlockProblem):
    """Online linear regression over K = [0, 1]^10 for 100 rounds.

        f_t(x) = ‖H_t x − y_t‖,        H_t uniform on (−1, 1)^{4×10}, y_t = H_t 1 + standard normal noise
        g_t(x) = max_i (A_t x − b_t)_i,  A_t uniform on (0, 2)^{4×10}, b_t uniform on (0, 1)^4
        x_1 uniform on K

    The constants hold for every round: L_g = 2√10 bounds a row of A; ‖H‖ ≤ ‖H‖_F ≤ √40 = L_f for the norm. The squared
    loss has ‖∇f_t‖ ≤ √40 ‖H_t(x − 1) − noise‖ ≤ √40 · 2 · (10 + N), where N bounds the noise: 1 if truncated, else 10,
    which a normal exceeds with probability 2e-23. A row lies between −1 and 20 on K, so that B = 20.

    Every constraint pushes towards 0, the loss towards 1: good methods, which meet the constraints as they come, have a
    *negative* regret against the best action that meets all.

    Parameters
    ----------
    loss : "norm" or "squared"
        The paper's text, or ½‖H_t x − y_t‖² as in its authors' code.
    noise : "normal" or "truncated"
        Standard normal, or truncated to [−1, 1] as in the authors' code.
    constants : "true" or "authors"
        What algorithms get that need a Lipschitz constant G and a diameter D: the constants above, or those of the
        authors' code, G = 100 and D = √2 (too small: the diameter of K is √10).

    References
    ----------
    Ferreira, Xavier and Soares, "CLASP: An online learning algorithm for Convex Losses And Squared Penalties".

    Examples
    --------
    >>> from cocopt import problems
    >>> problem = problems.get("olr")
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(100)))
    >>> first, count, reveal(0)
    (1, 100, (Norm(H of shape (100, 4, 10), y of shape (100, 4)), Affine(A of shape (100, 4, 10), b of shape (100, 4))))
    """

    name = "olr"
    rounds = 100
    feasible = True
    static = False

    def __init__(
        self,
        loss: Literal["norm", "squared"] = "norm",
        noise: Literal["normal", "truncated"] = "normal",
        constants: Literal["true", "authors"] = "true",
    ) -> None:
        self.loss = one_of("loss", loss, "norm", "squared")
        self.noise = one_of("noise", noise, "normal", "truncated")
        self.constants = one_of("constants", constants, "true", "authors")
        self.K = Box(0.0, 1.0, dim=_N)
        self.options = {"loss": loss, "noise": noise, "constants": constants}
        largest_H = sqrt(_ROWS * _N)
        residual = sqrt(_ROWS) * (_N + (1.0 if noise == "truncated" else 10.0))
        self.lipschitz_f = largest_H if loss == "norm" else largest_H * residual
        self.lipschitz_g = 2.0 * sqrt(_N)
        self.bound = 2.0 * _N

    @property
    def algorithm_defaults(self) -> dict[str, float]:
        known = super().algorithm_defaults
        return {**known, "lipschitz": 100.0, "diameter": sqrt(2.0)} if self.constants == "authors" else known

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return rng.uniform(size=_N)

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        H = rng.uniform(-1.0, 1.0, (count, _ROWS, _N))
        A = rng.uniform(0.0, 2.0, (count, _ROWS, _N))
        b = rng.uniform(0.0, 1.0, (count, _ROWS))
        noise = rng.standard_normal((count, _ROWS))
        if self.noise == "truncated":
            while (outside := np.abs(noise) > 1.0).any():
                noise[outside] = rng.standard_normal(outside.sum())
        return H, H.sum(axis=-1) + noise, A, b

    def reveal(self, *data: NDArray[Any]) -> tuple[Norm | LeastSquares, Affine]:
        H, y, A, b = data
        return (Norm(H, y) if self.loss == "norm" else LeastSquares(H, y)), Affine(A, b)


@register
class LongRegression(Regression):
    """[`Regression`][cocopt.problems.Regression] for 5000 rounds.

    Examples
    --------
    >>> from cocopt import problems
    >>> problems.get("olr-long").rounds
    5000
    """

    name = "olr-long"
    rounds = 5000
