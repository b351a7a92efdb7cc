"""The projection-free method of Garber and Kretzu: gradient steps in blocks, then a nearby point of K."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.frank_wolfe import LinearMinimisation, check_sum
from cocopt.arrays import Array, ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.infeasible import project_by_linear_oracle
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import Finite

__all__ = ["GarberKretzu"]


class _Memory(NamedTuple):
    total: Finite  # Σ n_τ over the rounds of the block so far, (..., n)
    offset: Finite  # y − x, (..., n)


@register
class GarberKretzu(LinearMinimisation):
    """Gradient steps with a squared penalty, once per block of rounds, and a nearby point of K by linear oracle.

        n_t = ∇f_t(x) + (v_t/θ) s_t
        after each block of N rounds, in all of which x is played:
            y ← y − η Σ n_t over the block
            (x, y) ← x in K and y with ‖x − y‖² ≤ 3ε, y no farther from any point of K than before

    with v_t = max(0, g_t(x)), s_t a subgradient of g_t at x, η = (R/G)T^(−¾), N = max(1, round(5√T)), ε = 60R²T^(−½)
    and θ = 4ηNG². The last line is `cocopt.geometry.infeasible.project_by_linear_oracle`. K lies in a ball of radius R
    around its centre. With G bounding ‖∇f_t‖ and ‖∇g_t‖ on K and some x in K that satisfies every g_t, the authors
    prove for the horizon T

    - convex losses: Regret_T = O(T^¾) up to logarithms and CCV₁ = O(T^⅞);
    - strongly convex losses: nothing better.

    The composition of penalty and blocks is as reconstructed here, from the authors' blocked method for losses alone
    (2022); their blocks delay the update by one more block.

    It needs T and G, and a bounded K with a linear minimiser, a centre and an outer radius; per round a subgradient of
    g_t, and per block as many linear minimisations as ε demands. At these constants √(3ε) exceeds the diameter 2R
    before T = 2025, so that **x hardly ever moves**, and it moves coarsely at T = 10⁴: smaller values of ``epsilon``
    and ``block`` make the method act.

    With several rows in a round g_t is their maximum. A round that reveals only one half counts as one whose other half
    is 0. If another action was played, its gradients are used, and x stays the action that was asked for.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the centre of K.
    epsilon : float, optional
        ε; small values take more linear minimisations. Default: 60R²/√T.
    block : int, optional
        N, the number of rounds per block. Default: max(1, round(5√T)).

    References
    ----------
    Garber and Kretzu, "Projection-free online convex optimization with time-varying constraints", ICML 2024.
    Garber and Kretzu, "New projection-free algorithms for online convex optimization with adaptive regret guarantees",
    COLT 2022, Algorithm 4.

    Examples
    --------
    >>> from cocopt import GarberKretzu, Simplex, constraints, losses
    >>> learner = GarberKretzu(Simplex(3), horizon=400, lipschitz=1.0, epsilon=0.001, block=5, start=[1.0, 0.0, 0.0])
    >>> for t in range(400):
    ...     record = learner.tell(losses.Distance([1.0, 0.0, 0.0]), constraints.Affine([1.0, 0.0, 0.0], 0.5))
    >>> bool(learner.ask()[0] < 0.7)
    True
    """

    name = "garber-kretzu"
    title = "Garber and Kretzu"
    projection_free = True
    facts = Facts(
        2024,
        "linear minimisations over K once per block, a subgradient of g_t",
        "orders (regret up to logarithms): the authors' abstract; blocks: their paper of 2022; composed here",
        convex=Rates.from_sums(Rate(0.75, 1.0), Rate(0.875)),
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        epsilon: float | None = None,
        block: int | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.epsilon = optional_scalar("epsilon", epsilon, positive=True)
        self.block = None if block is None else positive_int("block", block)
        R = K.outer_radius
        if not (isfinite(R) and R > 0.0):
            raise InvalidInput(f"K: expected a positive and finite outer radius, got {R} for {K!r}")
        self._eta = R / (self.lipschitz * self.horizon**0.75)
        self._eps = 60.0 * R**2 / sqrt(self.horizon) if self.epsilon is None else self.epsilon
        self._block = max(1, round(5.0 * sqrt(self.horizon))) if self.block is None else self.block
        self._theta = 4.0 * self._eta * self._block * self.lipschitz**2

    def default_start(self) -> Array:
        return self.K.center

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 3.0},
            {"horizon": 16, "lipschitz": 1.0, "epsilon": 0.05, "block": 3},
            {"horizon": 16, "lipschitz": 3.0, "epsilon": 0.1, "block": 1},
        ]

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        zeros = np.zeros((*batch, self.K.dim))
        return _Memory(zeros, zeros)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        x, (total, offset) = feedback.x, memory
        if feedback.gradient is not None:
            total = total + feedback.gradient
        if feedback.constraint is not None and feedback.rows is not None and (feedback.rows > 0.0).any():
            violation, subgradient = feedback.largest_row()
            total = total + (violation / self._theta)[..., None] * subgradient
        check_sum(total)
        if feedback.t % self._block != 0:
            return Update(x, _Memory(total, offset))
        moved, y = project_by_linear_oracle(self.K, x, x + offset - self._eta * total, eps=self._eps)
        return Update(moved, _Memory(np.zeros_like(total), y - moved), self._eta)
