"""RECOO: rectified online optimization, a proximal step with a penalty whose weight never decreases."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues
from cocopt.arrays import Array, ArrayLike, one_of, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegative, NonNegativeRows
from cocopt.steps import Power, StronglyConvex
from cocopt.theory import Bounds, bounds_recoo, dynamic_bounds

__all__ = ["RECOO"]


class _Memory(NamedTuple):
    queue: NonNegative  # Q_t, or Q_{t−1} with queue="before"


class _RowMemory(NamedTuple):
    queues: NonNegativeRows  # Q_{t−1,i}; None before the first constraint


@register
class RECOO(Learner):
    """A proximal step with a penalty on the constraint just revealed, whose weight never decreases.

        x_{t+1} = argmin over x in K of ⟨∇f_t(x_t), x − x_t⟩ + Q_t γ_t g_t^+(x) + α_t‖x − x_t‖²
        Q_{t+1} = max( Q_t + γ_t g_t^+(x_{t+1}), η_{t+1} ),    Q_1 = η_1

    with γ_t = t^(½+ε), η_t = √t, and α_t = √t for convex or m t/2 for m-strongly convex losses. The argmin is exact.
    Guarantees, for K of diameter D, Lipschitz constants L_f and L_g on K, and some x in K that satisfies every g_t:

    - convex losses: Regret_T ≤ (L_f²/4) Σ 1/√t + D²√T and CCV₂ = O(√T);
    - m-strongly convex losses: Regret_T ≤ (L_f²/2m)(1 + ln T) and CCV₂ = O(log T);

    the constants are in [`cocopt.theory.bounds_recoo`][]. γ_t, η_t and ε are as reconstructed here, from the
    restatement in Sinha and Vaze (2024); the rates of the original are √T and CCV₁ = O(T^¾), log T and CCV₁ = O(√(T
    log T)).

    Sources disagree about the queue. The restatement, above, adds the violation of the old constraint at the new
    point and has one queue. An independent public implementation adds the violation at x_t before the argmin, with a
    queue and a penalty per row:

        Q_{t,i} = max( Q_{t−1,i} + γ_t g_{t,i}^+(x_t), η_t ),    Q_{0,i} = 0
        x_{t+1} = argmin over x in K of ⟨∇f_t(x_t), x − x_t⟩ + γ_t Σ_i Q_{t,i} g_{t,i}^+(x) + α_t‖x − x_t‖²

    That is ``queue="before"``; the guarantees are the same. That implementation has ε = 0.01, α_t = ½√t for
    constraints that change, and α_t = 2√t, η_t = 2√t, γ_t = ½ t^0.51 for a fixed one.

    In every round in which the multiplier of the projection onto K ∩ {g_t ≤ 0} is at most Q_t γ_t, this **is** CLASP
    with the step 1/(2α_t) (for strongly convex losses CLASP's own 1/(m t)); in the others RECOO stops short of the
    constraint. (With ``queue="before"``: if the multiplier of each row is at most Q_{t,i} γ_t.) Hence no round is
    infeasible, and an empty K ∩ {g_t ≤ 0} goes unnoticed.

    α_t counts rounds that revealed a loss, γ_t and η_t all rounds. Rounds without a constraint count as rounds without
    violation.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    strong_convexity : float, optional
        m, which must hold for every loss.
    epsilon : float
        ε, at least −½; with small values the weight grows slowly. The guarantee about CCV₂ needs ε > 0. The code of
        CLASP's authors has γ_t = t^(ε'/2) with ε' = 10⁻³, about 1: that is ``epsilon=-0.4995``.
    rows : "all" or "worst"
        With several rows in a round: all of them, or the largest one at x_t alone (the first on ties). All of them
        means g_t = max_i g_{t,i} with ``queue="after"``, and a queue per row with ``queue="before"``.
    queue : "after" or "before"
        Whether the violation is added after the argmin, at x_{t+1}, or before it, at x_t.
    alpha_scale, eta_scale, gamma_scale : float
        Positive factors on α_t, η_t and γ_t.

    References
    ----------
    Guo, Liu, Wei and Ying, "Online convex optimization with hard constraints: towards the best of two worlds and
    beyond", NeurIPS 2022.

    Examples
    --------
    >>> from cocopt import RECOO, Box, constraints, losses
    >>> learner = RECOO(Box(0.0, 1.0, dim=2), start=[1.0, 1.0])
    >>> record = learner.tell(losses.Linear([1.0, 0.0]), constraints.Affine([0.0, 1.0], 0.25))
    >>> learner.ask()  # with a larger weight x_2 would be 0.25
    array([0.5, 0.5])
    """

    name = "recoo"
    title = "RECOO"
    accepts_delays = True
    facts = Facts(
        2022,
        "hinge prox of g_t over K",
        "update: restated in Sinha and Vaze (2024); constants derived here",
        convex=Rates.from_squares(Rate(0.5), Rate(0.5)),
        strongly_convex=Rates.from_squares(Rate(0.0, 1.0), Rate(0.0, 1.0)),
    )

    # Exceeds the guide of 8 parameters, all but K of which are keywords or constants of the theorem.
    def __init__(
        self,
        K: ConvexSet,
        *,
        start: ArrayLike | None = None,
        strong_convexity: float | None = None,
        epsilon: float = 0.1,
        rows: Literal["all", "worst"] = "all",
        queue: Literal["after", "before"] = "after",
        alpha_scale: float = 1.0,
        eta_scale: float = 1.0,
        gamma_scale: float = 1.0,
    ) -> None:
        super().__init__(K, start)
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.epsilon = scalar("epsilon", epsilon)
        if self.epsilon < -0.5:  # γ_t would decrease
            raise InvalidInput(f"epsilon: expected at least -0.5, got {self.epsilon}")
        self.rows = one_of("rows", rows, "all", "worst")
        self.queue = one_of("queue", queue, "after", "before")
        self.alpha_scale = scalar("alpha_scale", alpha_scale, positive=True)
        self.eta_scale = scalar("eta_scale", eta_scale, positive=True)
        self.gamma_scale = scalar("gamma_scale", gamma_scale, positive=True)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {},
            {"rows": "worst"},
            {"strong_convexity": 0.1, "epsilon": 0.3},
            {"queue": "before", "alpha_scale": 0.5, "eta_scale": 2.0, "gamma_scale": 0.5},
            {"queue": "before", "rows": "worst", "epsilon": -0.4995},
        ]

    @property
    def rates(self) -> Rates | None:
        return super().rates if self.epsilon > 0.0 else None

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_recoo`][]; ε must be positive."""
        return bounds_recoo(
            T,
            diameter=self.K.diameter,
            lipschitz_f=lipschitz_f,
            lipschitz_g=lipschitz_g,
            strong_convexity=self.strong_convexity,
            epsilon=self.epsilon,
            queue=self.queue,
            scales=(self.alpha_scale, self.eta_scale, self.gamma_scale),
        )

    def dynamic_bounds(self, increments: ArrayLike, *, lipschitz_f: ArrayLike) -> Array:
        """What is promised against actions that move by these increments, see [`cocopt.theory.dynamic_bounds`][]."""
        m, scale = self.strong_convexity, self.alpha_scale
        if m is not None and scale > 1.0:
            raise InvalidInput(f"alpha_scale: expected at most 1 for strongly convex losses, got {scale}")
        steps = Power(0.5, 0.5 / scale) if m is None else StronglyConvex(m * scale)  # 1/(2α_t)
        return dynamic_bounds(steps, increments, diameter=self.K.diameter, lipschitz_f=lipschitz_f)

    def parameters(self) -> dict[str, Any]:
        newer: dict[str, Any] = {"queue": "after", "alpha_scale": 1.0, "eta_scale": 1.0, "gamma_scale": 1.0}
        return {
            "K": self.K,
            "strong_convexity": self.strong_convexity,
            "epsilon": self.epsilon,
            "rows": self.rows,
            # only where chosen: state files with the defaults stay as they were before these options existed
            **{name: getattr(self, name) for name, default in newer.items() if getattr(self, name) != default},
        }

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory | _RowMemory:
        if self.queue == "after":
            return _Memory(np.full(batch, self.eta_scale)[()])
        return _Memory(np.zeros(batch)[()]) if self.rows == "worst" else _RowMemory(None)

    def _alpha(self, losses: int) -> float:
        m = self.strong_convexity
        return self.alpha_scale * (sqrt(losses) if m is None else m * losses / 2)

    def _eta(self, t: int) -> float:
        return self.eta_scale * sqrt(t)

    def update(self, memory: Any, feedback: Feedback) -> Update:
        alpha, gamma = self._alpha(max(feedback.losses, 1)), self.gamma_scale * feedback.t ** (0.5 + self.epsilon)
        target, step = feedback.x, 0.0
        if feedback.gradient is not None:
            step = 0.5 / alpha
            target = feedback.x - step * feedback.gradient
        constraint, rows = feedback.constraint, feedback.rows
        if self.rows == "worst" and constraint is not None and rows is not None and constraint.row_count > 1:
            constraint, rows = constraint.select_unchecked(rows.argmax(axis=-1)), rows.max(axis=-1, keepdims=True)
        if self.queue == "before":
            memory = self._before(memory, feedback.t, gamma, rows)
        if constraint is None:
            x, method = self.K.project_unchecked(target), "set"
        else:
            per_row = isinstance(memory, _RowMemory)
            weight = memory[0] * (0.5 * gamma / alpha)
            found = solve_hinge_prox(self.K, constraint, target, weight, "each" if per_row else "sum")
            x, method = found.point, found.method
        if self.queue == "after":
            queue = memory.queue if constraint is None else memory.queue + gamma * constraint.violation_unchecked(x)
            memory = _Memory(np.maximum(queue, self._eta(feedback.t + 1)))
        return Update(x, memory, step, method)

    def _before(self, memory: _Memory | _RowMemory, t: int, gamma: float, rows: Array | None) -> _Memory | _RowMemory:
        """Q_t from Q_{t−1} and the violations at x_t."""
        eta = self._eta(t)
        if isinstance(memory, _Memory):  # of the largest row alone
            violation = 0.0 if rows is None else np.maximum(rows[..., 0], 0.0)
            return _Memory(np.maximum(memory.queue + gamma * violation, eta))
        queues = memory.queues
        if rows is not None:
            queues = row_queues(queues, rows, self._eta(t - 1)) + gamma * np.maximum(rows, 0.0)
        return _RowMemory(None if queues is None else np.maximum(queues, eta))
