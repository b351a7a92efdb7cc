"""AdaGrad of Sinha and Vaze: one gradient step on a surrogate of loss and violation."""

from __future__ import annotations

from typing import Any, Literal

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.surrogate import Surrogate, SurrogateMemory
from cocopt.arrays import ArrayLike, one_of, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.theory import Bounds, bounds_adagrad

__all__ = ["AdaGrad"]


@register
class AdaGrad(Learner):
    """One gradient step on a surrogate in which the violation so far sets the weight of the next.

        Q_t = Q_{t−1} + b v_t
        n_t = V b ∇f_t(x_t) + Φ'(Q_t) b s_t
        x_{t+1} = P_K( x_t − η_t n_t )

    with v_t = max(0, g_t(x_t)) and s_t a subgradient of g_t at x_t, 0 if v_t = 0. With D the diameter of K and G
    bounding ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that satisfies every g_t, for every t up to the horizon T:

    ================ ============================================ ==============================================
    form             convex losses                                m-strongly convex losses
    ================ ============================================ ==============================================
    b, V             1/(2GD), ``weight``                          1, 8G² ln(eT)/m
    Φ(q)             exp(λq) − 1, λ = 1/(2√T)                     q²
    η_t              D/√(2 Σ_{s≤t} ‖n_s‖²)                        1/(V m t)
    Regret_t ≤       2GD(√t + 1/V)                                (G²/m)(1 + ln t)
    CCV₁ ≤           4GD√T ln(2(1 + 2Vt))                         4G√(GDt ln(eT)/m) + 4G² ln(eT)/m
    ================ ============================================ ==============================================

    With V = 1 the weight λ exp(λQ) of a violation stays far below that of the loss at practical horizons, until
    CCV₁ comes near 4GD√T ln(2√T): this is why the method violates so much in CLASP's figures. ``weight=T**-0.5``
    starts that weight at half the weight of the loss, for Regret_t ≤ 2GD(√t + √T) and CCV₁ ≤ 4GD√T ln(2(1 + 2√T)).

    With several rows in a round g_t is their maximum and s_t a subgradient of the largest at x_t, so that both
    choices of ``rows`` are the same. A round without a loss contributes its violation alone; the t of 1/(V m t) counts
    losses. Beyond the horizon the same formula goes on, but the guarantees end. The weight cannot overflow: from
    λq = 250 on Φ continues as a straight line, which leaves it convex and increasing.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    diameter : float, optional
        D. Default: the diameter of K; the convex form needs a finite one.
    strong_convexity : float, optional
        m, which must hold for every loss; chooses the strongly convex form.
    weight : float
        V of the convex form.
    rows : "all" or "worst"
        As for the other algorithms; here all that counts is the largest row either way.

    References
    ----------
    Sinha and Vaze, "Optimal algorithms for online convex optimization with adversarial constraints", NeurIPS 2024.

    Examples
    --------
    >>> from cocopt import AdaGrad, Box, constraints, losses
    >>> learner = AdaGrad(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=2.0, start=[1.0, 1.0], weight=0.1)
    >>> for t in range(100):
    ...     record = learner.tell(losses.Distance([0.0, 1.0]), constraints.Affine([0.0, 1.0], 0.5))
    >>> learner.ask().round(2)
    array([0. , 0.6])
    """

    name = "adagrad"
    title = "AdaGrad"
    facts = Facts(
        2024,
        "projection onto K, a subgradient of g_t",
        "the authors' paper",
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
        rows: Literal["all", "worst"] = "all",
    ) -> None:
        super().__init__(K, start)
        self.rows = one_of("rows", rows, "all", "worst")
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.weight = scalar("weight", weight, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self._D = K.diameter if self.diameter is None else self.diameter
        if self.strong_convexity is None:
            self._D = require_diameter(K, self.diameter)
            self._surrogate = Surrogate.convex(self.horizon, self.lipschitz, self._D, self.weight)
        elif self.weight == 1.0:
            self._surrogate = Surrogate.strongly_convex(self.horizon, self.lipschitz, self.strong_convexity)
        else:
            raise InvalidInput(f"weight: expected 1.0, since the strongly convex form sets its own, got {self.weight}")

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 10.0},
            {"horizon": 100, "lipschitz": 1.0, "weight": 0.1, "diameter": 3.0},
            {"horizon": 100, "lipschitz": 1.0, "strong_convexity": 0.1},
        ]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for the first T rounds, see [`cocopt.theory.bounds_adagrad`][]; T up to the horizon."""
        check_lipschitz(self.lipschitz, lipschitz_f, lipschitz_g)
        return bounds_adagrad(
            T,
            horizon=self.horizon,
            diameter=self._D,
            lipschitz=self.lipschitz,
            strong_convexity=self.strong_convexity,
            weight=self.weight,
        )

    def initial_memory(self, batch: tuple[int, ...]) -> SurrogateMemory:
        return SurrogateMemory.zero(batch)

    def update(self, memory: SurrogateMemory, feedback: Feedback) -> Update:
        return Update(*self._surrogate.step(self.K.project_unchecked, memory, feedback))
