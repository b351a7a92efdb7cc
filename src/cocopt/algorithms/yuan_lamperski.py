"""The method of Yuan and Lamperski: a squared penalty whose weight follows the step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.step_state import rates_of_schedule
from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.steps import Constant, Power, Schedule, StronglyConvex
from cocopt.theory import Bounds, bounds_yuan_lamperski

__all__ = ["YuanLamperski"]


class _Memory(NamedTuple):
    rows: int  # M, the largest number of rows so far


@register
class YuanLamperski(Learner):
    """Gradient steps on the loss plus the squares of all violations, with a weight that grows as the step falls.

        λ_{t,i} = g_{t,i}^+(x_t)/θ_t
        x_{t+1} = P_K( x_t − η_t(∇f_t(x_t) + Σ_i λ_{t,i} s_{t,i}) ),    θ_t = (M+1)G²η_t

    with s_{t,i} a subgradient of row i at x_t, and M rows. The step on a constraint is a Polyak step that is shorter by
    the factor M+1 and by ‖s‖²/G². Guarantees for K of diameter D, ‖∇f_t‖ ≤ L_f, ‖∇g_{t,i}‖ ≤ G on K, and some x in K
    that satisfies every g_t; squares of all rows count:

    - convex losses, η_t = η_0/T^β: Regret_T = O(T^max(β, 1−β)) and CCV₂ = O(T^(1−β));
    - m-strongly convex losses, η_t = 1/(m t): Regret_T ≤ ((M+1)L_f²/2m)(1 + ln T) and CCV₂ = O(log T).

    The constants are in [`cocopt.theory.bounds_yuan_lamperski`][], as derived here; the orders are the authors'. They
    state it for a fixed constraint, but nothing in the proof needs that: it may change. Without a horizon η_t =
    η_0/t^β. Steps are counted in losses.

    Parameters
    ----------
    K : ConvexSet
    lipschitz : float
        G, of each row. (The original has one constant for losses and constraints; the losses' own is not needed.)
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    horizon : int, optional
        T.
    beta : float
        β in (0, 1).
    strong_convexity : float, optional
        m, which must hold for every loss.
    scale : float
        η_0.

    References
    ----------
    Yuan and Lamperski, "Online convex optimization for cumulative constraints", NeurIPS 2018.

    Examples
    --------
    >>> from cocopt import Box, YuanLamperski, constraints, losses
    >>> learner = YuanLamperski(Box(0.0, 1.0, dim=2), lipschitz=1.0, start=[1.0, 1.0])
    >>> record = learner.tell(losses.Linear([0.5, 0.0]), constraints.Affine([0.0, 1.0], 0.5))
    >>> learner.ask()  # half of the way to the constraint
    array([0.5 , 0.75])
    """

    name = "yuan-lamperski"
    title = "Yuan and Lamperski"
    facts = Facts(
        2018,
        "projection onto K, subgradients of all rows",
        "orders: the authors' abstract; update: restated in arXiv 1912.09705; constants derived here",
        convex=Rates.from_squares(Rate(0.5), Rate(0.5)),
        strongly_convex=Rates.from_squares(Rate(0.0, 1.0), Rate(0.0, 1.0)),
    )

    def __init__(
        self,
        K: ConvexSet,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        horizon: int | None = None,
        beta: float = 0.5,
        strong_convexity: float | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(K, start)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.horizon = None if horizon is None else positive_int("horizon", horizon)
        self.beta = scalar("beta", beta, positive=True)
        if self.beta >= 1.0:
            raise InvalidInput(f"beta: expected a number between 0 and 1, got {beta}")
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.scale = scalar("scale", scale, positive=True)
        self._schedule: Schedule
        if self.strong_convexity is not None:
            self._schedule = StronglyConvex(self.strong_convexity)
        elif self.horizon is not None:
            self._schedule = Constant(self.scale * self.horizon**-self.beta)
        else:
            self._schedule = Power(self.beta, self.scale)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        given = {"lipschitz": 3.0}
        return [given, {**given, "horizon": 50, "beta": 0.7, "scale": 2.0}, {**given, "strong_convexity": 0.1}]

    @property
    def rates(self) -> Rates | None:
        return rates_of_schedule(
            self._schedule if self.strong_convexity else Power(self.beta), self.facts
        )  # a constant step T^(−β) has the rates of t^(−β)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, for as many rows as were seen, at least one.

        See [`cocopt.theory.bounds_yuan_lamperski`][].
        """
        check_lipschitz(self.lipschitz, 0.0, lipschitz_g)
        return bounds_yuan_lamperski(
            self._schedule,
            T,
            diameter=self.K.diameter,
            lipschitz=self.lipschitz,
            lipschitz_f=lipschitz_f,
            rows=max(self.memory.rows, 1),
        )

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(0)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        eta: Any = self._schedule.step(max(feedback.losses, 1), np.nan)
        x = feedback.x if feedback.gradient is None else feedback.x - eta * feedback.gradient
        rows = feedback.rows
        if rows is not None:
            memory = _Memory(max(memory.rows, rows.shape[-1]))
            if (rows > 0.0).any():
                weights = np.maximum(rows, 0.0) / ((rows.shape[-1] + 1) * self.lipschitz**2)  # η_t λ_t
                x = x - feedback.weighted_subgradients(weights)
        return Update(self.K.project_unchecked(x), memory, 0.0 if feedback.gradient is None else eta)
