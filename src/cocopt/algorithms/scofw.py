"""SCOFW: an online Frank–Wolfe method for strongly convex losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Update, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.frank_wolfe import LinearMinimisation, check_sum
from cocopt.algorithms.surrogate import Surrogate
from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import Finite, NonNegative

__all__ = ["SCOFW"]


class _Memory(NamedTuple):
    queue: NonNegative  # Q_t
    total: Finite  # Σ (n_τ − 2c x_τ), (..., n)


@register
class SCOFW(LinearMinimisation):
    """One Frank–Wolfe step per round on the sum of quadratic surrogates, for strongly convex losses; no projection.

        Q_t = Q_{t−1} + b v_t
        n_t = γ b ∇f_t(x_t) + Φ'(Q_t) b s_t
        F_t(x) = Σ_{τ≤t} ⟨n_τ, x⟩ + c‖x − x_τ‖²
        w = argmin over K of ⟨∇F_t(x_t), w⟩
        x_{t+1} = x_t + σ(w − x_t),    σ = argmin over [0, 1] of F_t(x_t + σ(w − x_t))

    with v_t = max(0, g_t(x_t)), s_t a subgradient of g_t at x_t (0 if v_t = 0), b = 1/(GDT^⅔), γ = G/(G + mD),
    c = γbm/2 and Φ(q) = q² + q. With D the diameter of K, G bounding ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that
    satisfies every g_t, for m-strongly convex losses and the horizon T:

    - Regret_T = O(T^⅔) and CCV₁ = O(T^⅚).

    For losses that are only convex see [`OFW`][cocopt.OFW]. It needs T, G, D and m, a bounded K with a linear
    minimiser, and per round one linear minimisation and a subgradient of g_t.

    With several rows in a round g_t is their maximum. A round without a loss has neither its gradient nor its
    curvature c‖x − x_t‖², but makes a step on F all the same. If another action was played, it is the x_τ of F and of
    the gradients, and the step begins at the action that was asked for.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    strong_convexity : float
        m, which must hold for every loss.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: ``K.minimise_linear(0)``, some point of K.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.

    References
    ----------
    Wang, Wan and Zhang, "Revisiting projection-free online learning with time-varying constraints", AAAI 2025.

    Examples
    --------
    >>> from cocopt import SCOFW, Simplex, constraints, losses
    >>> learner = SCOFW(Simplex(3), horizon=400, lipschitz=2.0, strong_convexity=1.0, start=[1.0, 0.0, 0.0])
    >>> for t in range(400):
    ...     record = learner.tell(losses.Distance([1.0, 0.0, 0.0]), constraints.Affine([1.0, 0.0, 0.0], 0.5))
    >>> bool(learner.ask()[0] < 0.7)
    True
    """

    name = "scofw"
    title = "SCOFW"
    projection_free = True
    facts = Facts(
        2025,
        "1 linear minimisation over K, a subgradient of g_t",
        "the authors' paper",
        strongly_convex=Rates.from_sums(Rate(2 / 3), Rate(5 / 6)),
        assumes="strongly convex losses",
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        strong_convexity: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.strong_convexity = scalar("strong_convexity", strong_convexity, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        D = require_diameter(K, self.diameter)
        b = 1.0 / (self.lipschitz * D * self.horizon ** (2 / 3))
        gamma = self.lipschitz / (self.lipschitz + self.strong_convexity * D)
        self._curvature = gamma * b * self.strong_convexity  # 2c
        self._surrogate = Surrogate(b, gamma, rate=0.0, slope=1.0)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 10.0, "strong_convexity": 0.5},
            {"horizon": 16, "lipschitz": 0.1, "strong_convexity": 1e-3, "diameter": 3.0},
        ]

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(np.zeros(batch)[()], np.zeros((*batch, self.K.dim)))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        x = feedback.x
        queue, n = self._surrogate.gradient(memory.queue, feedback)
        total = memory.total + n
        if feedback.gradient is not None:
            total = total - self._curvature * feedback.played
        curvature = self._curvature * feedback.losses
        gradient = total + curvature * x
        along = self.K.minimise_linear_unchecked(gradient) - x
        # F(x + σ·along) = F(x) − σ·decrease + σ²·bend/2
        decrease, bend = np.maximum(-np.vecdot(gradient, along), 0.0), curvature * np.vecdot(along, along)
        check_sum(total)
        check_sum(decrease)
        sigma = np.where(decrease < bend, decrease / np.where(bend > 0.0, bend, 1.0), decrease > 0.0)
        return Update(x + sigma[..., None] * along, _Memory(queue, total), sigma[()])
