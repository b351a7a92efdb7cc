"""The anytime method of Yu, Lee and Lee."""

from __future__ import annotations

from math import log, pi
from typing import Annotated, Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.arrays import Array, ArrayLike, all_finite, as_flag, scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegative, Range
from cocopt.theory import Bounds, bounds_yu_lee_lee
from cocopt.theory.yu_lee_lee import queue_rate

__all__ = ["YuLeeLee"]

_MAX_EXPONENT = 250.0  # of e^{γQ}: its square is still a number
_LARGEST = float(np.finfo(np.float64).max)


class _Memory(NamedTuple):
    queue: Annotated[Array, Range(-_LARGEST, _LARGEST)]  # Q_t, which may be negative
    weights_sq: NonNegative  # Σ Φ'²
    norms_sq: NonNegative  # Σ ‖n‖²


@register
class YuLeeLee(Learner):
    """Gradient steps on f_t + Φ'_t g_t^+ with an exponential weight of a queue from which a regularizer is subtracted.

        Φ'_t = γ_t e^{γ_t Q_t},    n_t = ∇f_t(x_t) + Φ'_t s_t,    x_{t+1} = P_K( x_t − η_t n_t )
        R_t = 12γ_t B² + (Ψ(Σ_{τ≤t} Φ'_τ²) − Ψ(Σ_{τ<t} Φ'_τ²))/Φ'_t,    Q_{t+1} = Q_t + v_t − R_t,    Q_1 = 0

    with v_t = g_t^+(x_t), s_t a subgradient of g_t at x_t and 0 if v_t = 0, Ψ(z) = 4DL√z, γ_t = min(1/(12B√t),
    1/(24DL), 1), and η_t = D/√(2(1 + Σ_{τ≤t}‖n_τ‖²)), or 1/(m t + (2L/D)√(Σ_{τ≤t}Φ'_τ²)) for m-strongly convex losses.
    No horizon and no Slater point is needed, and the constraints may be chosen by an adversary or drawn at random.
    Guarantees, for K of diameter D, ‖∇f_t‖, ‖∇g_t‖ ≤ L and |g_t| ≤ B on K, and some x in K that satisfies every g_t:

    - convex losses: Regret_T ≤ 2DL√T + ln T + D + 2 and CCV₁ = O(√T log T);
    - m-strongly convex losses: Regret_T ≤ (L²/m)(1 + ln T) + ln T + 2 and CCV₁ = O(√T log T);

    the constants are in [`cocopt.theory.bounds_yu_lee_lee`][]. With these γ_t it **hardly acts on violations before T ≈
    10⁴**: larger ``gamma_scale`` and smaller ``regularizer_scale`` help, without a guarantee.

    With several rows g_t is their maximum. γ_t counts all rounds, m t those with a loss; a round without a constraint
    leaves the queue alone.

    Parameters
    ----------
    K : ConvexSet
    lipschitz : float
        L, of losses and constraints.
    bound : float
        B.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.
    strong_convexity : float, optional
        m, which must hold for every loss.
    hard : bool
        If False, the soft form: g_t(x_t) and its subgradient take the place of v_t and s_t, so that slack counts.
    delta : float, optional
        δ in (0, 1): the constants for constraints drawn at random, whose bounds hold with probability 1 − δ:
        Ψ(z) = 4DL√z + 4B√((1+z) ln((π²/6)(1+log₂(1+z))²/δ)), γ_t = min(1/(12B√t), 1/(24(DL + 8B√ln(12t²/δ))), 1).
    gamma_scale, regularizer_scale : float
        Factors on γ_t and on R_t.

    References
    ----------
    Yu, Lee and Lee, arXiv 2606.31480, 2026.

    Examples
    --------
    >>> from cocopt import Box, YuLeeLee, constraints, losses
    >>> learner = YuLeeLee(
    ...     Box(0.0, 1.0, dim=2), 1.0, 1.0, start=[1.0, 1.0], gamma_scale=10.0, regularizer_scale=0.0
    ... )
    >>> for t in range(200):
    ...     record = learner.tell(losses.Linear([-0.5, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    >>> learner.ask().round(1)
    array([0.5, 1. ])
    """

    name = "yu-lee-lee"
    title = "Yu, Lee and Lee"
    facts = Facts(
        2026,
        "projection onto K, a subgradient of g_t",
        "the authors' paper",
        convex=Rates.from_sums(Rate(0.5), Rate(0.5, 1.0)),
        strongly_convex=Rates.from_sums(Rate(0.0, 1.0), Rate(0.5, 1.0)),
    )

    # Exceeds the guide of 8 parameters, all but three of which are keywords: constants of the theorem, and two scales.
    def __init__(
        self,
        K: ConvexSet,
        lipschitz: float,
        bound: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        strong_convexity: float | None = None,
        hard: bool = True,
        delta: float | None = None,
        gamma_scale: float = 1.0,
        regularizer_scale: float = 1.0,
    ) -> None:
        super().__init__(K, start)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.bound = scalar("bound", bound, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.hard = as_flag("hard", hard)
        self.delta = optional_scalar("delta", delta, positive=True)
        if self.delta is not None and self.delta >= 1.0:
            raise InvalidInput(f"delta: expected a number between 0 and 1, got {delta}")
        self.gamma_scale = scalar("gamma_scale", gamma_scale, positive=True)
        self.regularizer_scale = scalar("regularizer_scale", regularizer_scale, nonnegative=True)
        self._D = require_diameter(K, self.diameter)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        given = {"lipschitz": 5.0, "bound": 3.0}
        acting = {"gamma_scale": 100.0, "regularizer_scale": 0.1}
        return [
            given,
            {**given, **acting},
            {**given, **acting, "strong_convexity": 0.1, "hard": False},
            {**given, **acting, "delta": 0.1, "diameter": 3.0},
        ]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_yu_lee_lee`][]; for the hard form with scales 1."""
        check_lipschitz(self.lipschitz, lipschitz_f, lipschitz_g)
        if not self.hard or self.delta is not None or (self.gamma_scale, self.regularizer_scale) != (1.0, 1.0):
            raise InvalidInput("bounds: expected the hard form without delta and with scales 1, got another")
        return bounds_yu_lee_lee(
            T, diameter=self._D, lipschitz=self.lipschitz, bound=self.bound, strong_convexity=self.strong_convexity
        )

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        zero = np.zeros(batch)[()]
        return _Memory(zero, zero, zero)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        queue, weights_sq, norms_sq = memory
        n = np.zeros(feedback.x.shape) if feedback.gradient is None else feedback.gradient
        if feedback.constraint is not None and feedback.rows is not None and np.isfinite(feedback.rows.max()):
            gamma = self.gamma_scale * queue_rate(feedback.t, self._D, self.lipschitz, self.bound, self.delta)
            weight = gamma * np.exp(np.minimum(gamma * queue, _MAX_EXPONENT))
            violation, subgradient = feedback.largest_row()
            value = violation if self.hard else feedback.rows.max(axis=-1)
            acting = np.where(violation > 0.0, weight, 0.0) if self.hard else weight
            n = n + np.expand_dims(acting, -1) * subgradient
            regularizer = 12.0 * gamma * self.bound**2 + self._slope(weights_sq, weight)
            weights_sq = weights_sq + weight**2
            queue = queue + value - self.regularizer_scale * regularizer
        n = self.K.project_direction_unchecked(n)
        norms_sq = norms_sq + np.vecdot(n, n)
        if not (all_finite(n) and all_finite(np.asarray(norms_sq)) and all_finite(np.asarray(queue))):
            raise InvalidInput("tell: expected gradients whose squares can be added up, got a sum that overflows")
        if self.strong_convexity is None:
            step = self._D / np.sqrt(2.0 * (1.0 + norms_sq))
        else:
            curvature = self.strong_convexity * max(feedback.losses, 1)
            step = 1.0 / (curvature + 2.0 * self.lipschitz / self._D * np.sqrt(weights_sq))
        x = self.K.project_unchecked(feedback.x - np.expand_dims(step, -1) * n)
        return Update(x, _Memory(queue, weights_sq, norms_sq), step)

    def _slope(self, before: Array, weight: Array) -> Array:
        """(Ψ(z + w²) − Ψ(z))/w for the sum z before the round and the weight w, without cancellation."""
        after = before + weight**2
        roots = np.sqrt(after) + np.sqrt(before)
        slope: Array = 4.0 * self._D * self.lipschitz * weight / np.where(roots > 0.0, roots, 1.0)
        if self.delta is None:
            return slope
        growth = np.log1p(weight**2 / (1.0 + before)) / log(2.0)  # log₂ of (1 + after)/(1 + before)
        levels = 1.0 + np.log1p(before) / log(2.0)
        logs = np.log(pi**2 / 6.0 * levels**2 / self.delta)
        more = 2.0 * np.log1p(growth / levels)  # by how much the logarithm grows
        roots_of_logs = np.sqrt((1.0 + after) * (logs + more)) + np.sqrt((1.0 + before) * logs)
        difference = weight * (logs + more) + (1.0 + before) * more / np.where(weight > 0.0, weight, 1.0)
        extra: Array = 4.0 * self.bound * difference / roots_of_logs
        return slope + extra
