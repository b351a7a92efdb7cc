"""RECOO: rectified online optimization, a proximal step that pays a growing price for violation."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from cocopt.algorithms.base import Arrays, Feedback, Learner, Update, checked_rows
from cocopt.arrays import Array, ArrayLike, scalar
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.sets.base import ConvexSet
from cocopt.theory import Bounds, bounds_recoo

__all__ = ["RECOO"]


class _Memory(NamedTuple):
    losses: int  # rounds that revealed a loss
    queue: Array  # Q_t


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
        self.strong_convexity = (
            None if strong_convexity is None else scalar("strong_convexity", strong_convexity, positive=True)
        )
        self.epsilon = scalar("epsilon", epsilon, positive=True)
        self.rows = checked_rows(rows)

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
        return _Memory(0, np.ones(batch)[()])

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        losses, queue = memory
        t = self.t + 1
        target, step = feedback.x, 0.0
        losses += feedback.gradient is not None
        alpha = sqrt(max(losses, 1)) if self.strong_convexity is None else self.strong_convexity * max(losses, 1) / 2
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
        return Update(x, _Memory(losses, np.maximum(queue, sqrt(t + 1))), step, method)

    def _store(self, memory: _Memory) -> tuple[dict[str, Any], Arrays]:
        return {"losses": memory.losses}, {"queue": np.asarray(memory.queue)}

    def _restore(self, plain: Mapping[str, Any], arrays: Arrays) -> _Memory:
        return _Memory(plain["losses"], arrays["queue"][()])
