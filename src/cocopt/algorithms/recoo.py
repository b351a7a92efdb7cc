"""RECOO: rectified online optimization, a proximal step with a penalty on violation that only grows."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.arrays import ArrayLike, one_of, scalar
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegative
from cocopt.theory import Bounds, bounds_recoo

__all__ = ["RECOO"]


class _Memory(NamedTuple):
    queue: NonNegative  # Q_t


@register
class RECOO(Learner):
    """A proximal step in which violating the constraint just revealed costs a price that only grows.

        x_{t+1} = argmin over x in K of ⟨∇f_t(x_t), x − x_t⟩ + Q_t γ_t g_t^+(x) + α_t‖x − x_t‖²
        Q_{t+1} = max( Q_t + γ_t g_t^+(x_{t+1}), √(t+1) ),    Q_1 = 1

    with γ_t = t^(½+ε), and α_t = √t for convex or m t/2 for m-strongly convex losses. The argmin is exact.
    Guarantees, for K of diameter D, Lipschitz constants L_f and L_g on K, and some x in K that satisfies every g_t:

    - convex losses: Regret_T ≤ (L_f²/4) Σ 1/√t + D²√T and CCV₂ = O(√T);
    - m-strongly convex losses: Regret_T ≤ (L_f²/2m)(1 + ln T) and CCV₂ = O(log T);

    the constants are in [`cocopt.theory.bounds_recoo`][]. γ_t, √t and ε are as reconstructed here, from the
    restatement in Sinha and Vaze (2024); the rates of the original are √T and CCV₁ = O(T^¾), log T and CCV₁ = O(√(T
    log T)).

    In every round in which the multiplier of the projection onto K ∩ {g_t ≤ 0} is at most Q_t γ_t, this **is** CLASP
    with the step 1/(2α_t) (for strongly convex losses CLASP's own 1/(m t)); in the others RECOO stops short of the
    constraint. Hence no round is infeasible, and an empty K ∩ {g_t ≤ 0} goes unnoticed.

    α_t counts rounds that revealed a loss, γ_t and √t all rounds.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    strong_convexity : float, optional
        m, which must hold for every loss.
    epsilon : float
        ε, positive; small values let the price grow slowly.
    rows : "all" or "worst"
        With several rows in a round: g_t is their maximum, or the largest one at x_t alone (the first on ties).

    References
    ----------
    Guo, Liu, Wei and Ying, "Online convex optimization with hard constraints: towards the best of two worlds and
    beyond", NeurIPS 2022.

    Examples
    --------
    >>> from cocopt import RECOO, Box, constraints, losses
    >>> learner = RECOO(Box(0.0, 1.0, dim=2), start=[1.0, 1.0])
    >>> record = learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([0.0, 1.0], 0.25))
    >>> learner.ask()  # a full price would have moved x_2 to 0.25
    array([0.5, 0.5])
    """

    name = "recoo"
    title = "RECOO"
    facts = Facts(
        2022,
        "hinge prox of g_t over K",
        "update: restated in Sinha and Vaze (2024); constants derived here",
        convex=Rates.from_squares(Rate(0.5), Rate(0.5)),
        strongly_convex=Rates.from_squares(Rate(0.0, 1.0), Rate(0.0, 1.0)),
    )

    def __init__(
        self,
        K: ConvexSet,
        *,
        start: ArrayLike | None = None,
        strong_convexity: float | None = None,
        epsilon: float = 0.1,
        rows: Literal["all", "worst"] = "all",
    ) -> None:
        super().__init__(K, start)
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.epsilon = scalar("epsilon", epsilon, positive=True)
        self.rows = one_of("rows", rows, "all", "worst")

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [{}, {"rows": "worst"}, {"strong_convexity": 0.1, "epsilon": 0.3}]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_recoo`][]."""
        return bounds_recoo(
            T,
            diameter=self.K.diameter,
            lipschitz_f=lipschitz_f,
            lipschitz_g=lipschitz_g,
            strong_convexity=self.strong_convexity,
            epsilon=self.epsilon,
        )

    def parameters(self) -> dict[str, Any]:
        return {"K": self.K, "strong_convexity": self.strong_convexity, "epsilon": self.epsilon, "rows": self.rows}

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(np.ones(batch)[()])

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        (queue,), t = memory, feedback.t
        target, step = feedback.x, 0.0
        losses = max(feedback.losses, 1)
        alpha = sqrt(losses) if self.strong_convexity is None else self.strong_convexity * losses / 2
        if feedback.gradient is not None:
            step = 0.5 / alpha
            target = feedback.x - step * feedback.gradient
        if feedback.constraint is None or feedback.rows is None:
            x, method = self.K.project_unchecked(target), "set"
        else:
            constraint, gamma = feedback.constraint, t ** (0.5 + self.epsilon)
            if self.rows == "worst" and constraint.row_count > 1:
                constraint = constraint.select(feedback.rows.argmax(axis=-1))
            found = solve_hinge_prox(self.K, constraint, target, queue * (0.5 * gamma / alpha), "sum")
            x, method = found.point, found.method
            queue = queue + gamma * constraint.violation_unchecked(x)
        return Update(x, _Memory(np.maximum(queue, sqrt(t + 1))), step, method)
