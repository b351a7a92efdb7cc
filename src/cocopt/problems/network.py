"""Regression by a network of agents, each with losses and constraints of its own."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, ArrayLike, positive_int
from cocopt.constraints import Affine
from cocopt.losses import LeastSquares
from cocopt.problems.base import BlockProblem, Section
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Network"]

_N, _MEASUREMENTS, _ROWS = 6, 2, 2
_TRUTH, _NOISE, _LEAST = 0.5, 0.5, 0.1


@register
class Network(BlockProblem):
    """Linear regression by agents that each see two measurements and two limits per round, K = [−1, 1]^6.

        f_{i,t}(x) = ½‖H_{i,t} x − y_{i,t}‖²,  H_{i,t} uniform on (−1, 1)^{2×6},
                     y_{i,t} = ½ H_{i,t} 1 + noise uniform on (−½, ½)²
        g_{i,t}(x) = max_j (A_{i,t} x − b_{i,t})_j,  A_{i,t} uniform on (0, 2)^{2×6}, b_{i,t} uniform on (0.1, 1)²
        x_{i,1} = 0

    Points have the shape (trials, agents, n): agents are one more leading axis. An ordinary algorithm plays each agent
    on its own; one for networks lets neighbours exchange their points. Either is measured as in the literature: with
    f̄_t = (1/N) Σ_j f_{j,t} for N agents, the loss is (1/N) Σ_i Σ_t f̄_t(x_{i,t}), the violation of agent i in a round is
    that of the largest row of **all** agents at x_{i,t}, averaged over i, and the regret is against the best fixed x
    for Σ_t f̄_t under all agents' rows. What each agent pays for its own loss and rows is recorded beside it, as
    ``local_loss``, ``local_ccv1`` and so on, and so is the mean of the agents' certificates, which are about that.

    Two measurements do not determine x, so that no loss is strongly convex. 0 satisfies all constraints, with slack
    0.1. L_f = 9.5√24, L_g = 2√6 and B = 13 are exact.

    Parameters
    ----------
    agents : int
        N.

    References
    ----------
    The measures are those of Yi, Li, Yang, Xie, Chai and Johansson, "Regret and cumulative constraint violation
    analysis for distributed online constrained convex optimization", IEEE Transactions on Automatic Control 68(5),
    2023. The data are made after the regression of CLASP's paper.

    Examples
    --------
    >>> import cocopt
    >>> problem = cocopt.problems.get("network", agents=4)
    >>> problem.start(seed=0, trials=range(100)).shape
    (100, 4, 6)
    >>> first, count, reveal = next(problem.blocks(seed=0, trials=range(100)))
    >>> reveal(0)[1]
    Affine(A of shape (100, 4, 2, 6), b of shape (100, 4, 2))
    >>> result = cocopt.run(problem, "clasp", trials=3, rounds=20)
    >>> sorted(result.finals("clasp"))[-5:]
    ['local_certificate', 'local_infeasible_rounds', 'local_loss', 'loss', 'regret']
    """

    name = "network"
    rounds = 1000
    feasible = True
    static = False
    lipschitz_f = (_N * (1.0 + _TRUTH) + _NOISE) * sqrt(_MEASUREMENTS * _MEASUREMENTS * _N)
    lipschitz_g = 2.0 * sqrt(_N)
    bound = 2.0 * _N + 1.0
    slack = _LEAST
    agents: int

    def __init__(self, agents: int = 6) -> None:
        self.agents = positive_int("agents", agents)
        self.options = {"agents": self.agents}
        self.K = Box(-1.0, 1.0, dim=_N)

    def initial(self, rng: np.random.Generator) -> ArrayLike:
        return np.zeros((self.agents, _N))

    def draw(self, rng: np.random.Generator, first: int, count: int) -> tuple[Array, ...]:
        H = rng.uniform(-1.0, 1.0, (count, self.agents, _MEASUREMENTS, _N))
        noise = rng.uniform(-_NOISE, _NOISE, (count, self.agents, _MEASUREMENTS))
        A = rng.uniform(0.0, 2.0, (count, self.agents, _ROWS, _N))
        b = rng.uniform(_LEAST, 1.0, (count, self.agents, _ROWS))
        return H, _TRUTH * H.sum(axis=-1) + noise, A, b

    def reveal(self, *data: NDArray[Any]) -> tuple[LeastSquares, Affine]:
        H, y, A, b = data
        return LeastSquares(H, y), Affine(A, b)

    def sections(self, seed: int, trial: int, rounds: int | None = None) -> Iterator[Section]:
        weight = sqrt(1.0 / self.agents)  # the mean of squares is the sum of the squares of weighted residuals
        for _, data in self.data_blocks(seed, [trial], rounds):
            count = len(data[0])
            H, A = (array.reshape(count, -1, _N) for array in (data[0], data[2]))
            y, b = (array.reshape(count, -1) for array in (data[1], data[3]))

            def reveal(
                part: slice, H: Array = weight * H, y: Array = weight * y, A: Array = A, b: Array = b
            ) -> tuple[LeastSquares, Affine]:
                return LeastSquares(H[part], y[part]), Affine(A[part], b[part])

            yield count, reveal
