"""The projection-free method of Lu et al.: AdaGrad's steps, with an infeasible projection by separating hyperplanes."""

from __future__ import annotations

from functools import partial
from math import isfinite, sqrt
from typing import Any

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.surrogate import Surrogate, SurrogateMemory
from cocopt.arrays import Array, ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.infeasible import project_by_separation
from cocopt.registry import register
from cocopt.sets.base import ConvexSet

__all__ = ["Lu"]


@register
class Lu(Learner):
    """AdaGrad without projections: a step is brought back into K by separating hyperplanes alone.

        Q_t = Q_{t−1} + b v_t
        n_t = V b ∇f_t(x_t) + Φ'(Q_t) b s_t
        y ← x_t − η_t n_t, scaled into the ball of radius R
        while y is not in K:  y ← y − δ r u/‖u‖,    ⟨u, y − z⟩ > 0 for all z in K
        x_{t+1} = y

    b, V, Φ and η_t are those of [`AdaGrad`][cocopt.AdaGrad], whose P_K the loop replaces
    (`cocopt.geometry.infeasible.project_by_separation`); r and R are the inner and the outer radius of K. y comes no
    farther from any point of (1 − δ)K, with δ = min(½, c/√T) for convex and δ = min(½, c/T) for strongly convex losses.
    With G bounding ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that satisfies every g_t, the authors prove for T rounds

    - convex losses: Regret_T = O(√T) and CCV₁ = O(√T log T), with O(T) oracle calls in all, up to logarithms;
    - m-strongly convex losses: Regret_T = O(log T) and CCV₁ = O(√(T log T)), with O(T²) oracle calls.

    The update is recomposed here from the authors' abstract, without their blocks of rounds.

    It needs T and G, and a bounded K with separating hyperplanes, a centre, an inner and an outer radius; the convex
    form needs D as well. Per round: a subgradient of g_t, and at most dist²/(δr)² + 1 separating hyperplanes, dist the
    distance from x_t − η_t n_t to (1 − δ)K. As in AdaGrad with V = 1 the constraint hardly acts before T = 10⁴;
    ``weight=T**-0.5`` starts the weight of a violation at half the weight of the loss.

    Rounds that reveal one half, several rows, and rounds beyond the horizon are treated as in AdaGrad.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the centre of K.
    diameter : float, optional
        D. Default: the diameter of K; the convex form needs a finite one.
    strong_convexity : float, optional
        m, which must hold for every loss; chooses the strongly convex form.
    weight : float
        V of the convex form.
    delta_scale : float
        c; small values exclude less of K and take more hyperplanes.

    References
    ----------
    Lu, Pedramfar and Aggarwal, "Order-optimal projection-free algorithm for adversarially constrained online convex
    optimization", arXiv 2502.16744, 2025.

    Examples
    --------
    >>> from cocopt import Box, Lu, constraints, losses
    >>> learner = Lu(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=2.0, start=[1.0, 1.0], weight=0.1)
    >>> for t in range(100):
    ...     record = learner.tell(losses.Distance([0.0, 1.0]), constraints.Affine([0.0, 1.0], 0.5))
    >>> bool(abs(learner.ask() - [0.0, 0.6]).max() < 0.1)
    True
    """

    name = "lu"
    title = "Lu et al."
    projection_free = True
    facts = Facts(
        2025,
        "separating hyperplanes of K, a subgradient of g_t",
        "orders: the authors' abstract; update recomposed here",
        convex=Rates.from_sums(Rate(0.5), Rate(0.5, 1.0)),
        strongly_convex=Rates.from_sums(Rate(0.0, 1.0), Rate(0.5, 0.5)),
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        strong_convexity: float | None = None,
        weight: float = 1.0,
        delta_scale: float = 1.0,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.weight = scalar("weight", weight, positive=True)
        self.delta_scale = scalar("delta_scale", delta_scale, positive=True)
        _require_separation(K)
        if self.strong_convexity is None:
            delta = self.delta_scale / sqrt(self.horizon)
            D = require_diameter(K, self.diameter)
            self._surrogate = Surrogate.convex(self.horizon, self.lipschitz, D, self.weight)
        elif self.weight == 1.0:
            delta = self.delta_scale / self.horizon
            self._surrogate = Surrogate.strongly_convex(self.horizon, self.lipschitz, self.strong_convexity)
        else:
            raise InvalidInput(f"weight: expected 1.0, since the strongly convex form sets its own, got {self.weight}")
        self._project = partial(project_by_separation, K, delta=min(0.5, delta))

    def default_start(self) -> Array:
        return self.K.center

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 10.0},
            {"horizon": 100, "lipschitz": 1.0, "weight": 0.1, "diameter": 3.0, "delta_scale": 3.0},
            {"horizon": 20, "lipschitz": 1.0, "strong_convexity": 0.1},
        ]

    def initial_memory(self, batch: tuple[int, ...]) -> SurrogateMemory:
        return SurrogateMemory.zero(batch)

    def update(self, memory: SurrogateMemory, feedback: Feedback) -> Update:
        return Update(*self._surrogate.step(self._project, memory, feedback))


def _require_separation(K: ConvexSet) -> None:
    """An error unless K is bounded, and says its centre, its radii and its separating hyperplanes."""
    inner, outer = K.inner_radius, K.outer_radius
    if not isfinite(outer):
        raise InvalidInput(f"K: expected a bounded set, got {K!r}, whose outer radius is {outer}")
    if not (isfinite(inner) and 0.0 <= inner <= outer):
        raise InvalidInput(f"K: expected an inner radius from 0 to the outer one, got {inner}")
    K.separate_unchecked(K.center)
