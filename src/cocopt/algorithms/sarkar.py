"""The projection-free method of Sarkar et al.: conditional gradient steps that adapt to the steepest surrogate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Update
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.frank_wolfe import AnchoredFrankWolfe, Path
from cocopt.arrays import ArrayLike
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegative

__all__ = ["Sarkar"]


class _Memory(NamedTuple):
    queue: NonNegative  # Q_t
    largest: NonNegative  # Ĝ_t
    path: Path


@register
class Sarkar(AnchoredFrankWolfe):
    """One linear minimisation per round on a surrogate, with steps that adapt to the largest gradient so far.

        Q_t = Q_{t−1} + b v_t
        n_t = V b ∇f_t(x_t) + Φ'(Q_t) b s_t
        w = argmin over K of ⟨η_t Σ_{τ≤t} n_τ + 2(x_t − x_1), w⟩,    η_t = D/(2Ĝ_t T^¾),    Ĝ_t = max_{τ≤t} ‖n_τ‖
        x_{t+1} = x_t + min(1, 2/√t) (w − x_t)

    with v_t = max(0, g_t(x_t)), s_t a subgradient of g_t at x_t (0 if v_t = 0), b = 1/(64GD), Φ(q) = exp(q/(2T^¾)) − 1.
    This is [`OFW`][cocopt.OFW] with a Ĝ that is observed, and without restarts. ‖n_τ‖ is the norm along the affine hull
    of K. The authors' abstract gives the surrogate, the oracle and the orders; the steps are as reconstructed here.
    With D the diameter of K, G bounding ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that satisfies every g_t, the authors
    prove

    - convex losses: Regret_T = O(T^¾) and CCV₁ = O(T^¾), both up to logarithms;
    - strongly convex losses: nothing better.

    It needs T, G and D, a bounded K with a linear minimiser, and per round one linear minimisation and a subgradient of
    g_t. With V = 1 the constraint hardly acts at practical horizons, as in OFW; ``weight=T**-0.75`` makes the weights
    of loss and violation comparable, and no guarantee is claimed for it.

    With several rows in a round g_t is their maximum. A round that reveals only one half counts as one whose other half
    is 0. If another action was played, its gradients are used, and the step begins at the action that was asked for.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G; it only scales Q.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: ``K.minimise_linear(0)``, some point of K.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.
    weight : float
        V.

    References
    ----------
    Sarkar, Chakrabartty, Supantha, Dey and Sinha, "Projection-free algorithms for online convex optimization with
    adversarial constraints", arXiv 2501.16919, 2025.

    Examples
    --------
    >>> from cocopt import Sarkar, Simplex, constraints, losses
    >>> learner = Sarkar(Simplex(3), horizon=400, lipschitz=1.0, start=[1.0, 0.0, 0.0])
    >>> for t in range(400):
    ...     record = learner.tell(losses.Linear([1.0, 0.5, 0.0]), constraints.Affine([1.0, 0.0, 0.0], 0.5))
    >>> learner.ask().round(1)
    array([0., 0., 1.])
    """

    name = "sarkar"
    title = "Sarkar et al."
    projection_free = True
    facts = Facts(
        2025,
        "1 linear minimisation over K, a subgradient of g_t",
        "orders (up to logarithms) and surrogate: the authors' abstract; steps as reconstructed here",
        convex=Rates.from_sums(Rate(0.75, 1.0), Rate(0.75, 1.0)),
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        weight: float = 1.0,
    ) -> None:
        super().__init__(K, start, horizon, lipschitz, diameter, weight)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 10.0},
            {"horizon": 16, "lipschitz": 0.1, "diameter": 3.0, "weight": 0.05},
        ]

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        zero = np.zeros(batch)[()]
        return _Memory(zero, zero, self.initial_path(batch))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        queue, n = self.surrogate.gradient(memory.queue, feedback)
        along = n if self.K.full_dimensional else self.K.project_direction_unchecked(n)
        largest = np.maximum(memory.largest, np.sqrt(np.vecdot(along, along)))
        if not np.isfinite(largest).all():
            raise InvalidInput("tell: expected gradients whose squares can be added up, got a sum that overflows")
        # without a gradient so far there is no direction to step in
        eta = np.where(largest > 0.0, self.step_scale / np.where(largest > 0.0, largest, 1.0), 0.0)[()]
        x, path = self.step(memory.path, n, eta, feedback.t)
        return Update(x, _Memory(queue, largest, path), eta)
