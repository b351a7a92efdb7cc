"""Yi et al. 2021: a proximal step with a queue per row, for a constraint that never changes."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues, seen_row_count
from cocopt.algorithms.static_constraint import StaticConstraint
from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegativeRows
from cocopt.steps import Constant, Power, Schedule, StronglyConvex
from cocopt.theory import Bounds, bounds_yi2021

__all__ = ["Yi2021"]


class _Memory(NamedTuple):
    static: StaticConstraint
    queues: NonNegativeRows  # q_{t,i}; None before the first constraint


@register
class Yi2021(Learner):
    """A proximal step on a static constraint, with a queue per row that adds up violations.

        q_{t,i} = q_{t−1,i} + γ_t v_{t,i},    q_{0,i} = 0
        x_{t+1} = argmin over x in K of α_t⟨∇f_t(x_t), x − x_t⟩ + α_t γ_{t+1} Σ_i q̂_{t,i} max(0, g_i(x)) + ‖x − x_t‖²

    with v_{t,i} = max(0, g_i(x_t)) and q̂_{t,i} = q_{t,i} + γ_t v_{t,i}; α_t = α_0/t^c for convex losses, 2/(m t) for
    m-strongly convex ones; γ_1 = γ_0/√α_1 and γ_{t+1} = γ_0/√α_t, with γ_0 = 1/(G√(2M)) for M rows. The argmin is
    exact.

    Guarantees, for K of diameter D, L_f bounding ‖∇f_t‖ and G bounding ‖∇g_i‖ on K, and some x in K with g(x) ≤ 0, as
    derived here in [`cocopt.theory.bounds_yi2021`][]:

    - convex losses: Regret_T ≤ (L_f²/4) Σ α_t + D²/α_T = O(T^max(c, 1−c)) and CCV₁ = O(T^((1−c)/2));
    - m-strongly convex losses: Regret_T ≤ (L_f²/2m)(1 + ln T) and CCV₁ = O(log T).

    The orders are the authors'. The indices of the decreasing steps, α_0 = 1 and γ_0 are as reconstructed here; the
    form with constant steps is that of public code, which has α = 4/√T and γ = ½ T^¼.
    With worst-case constants the queues grow slowly: the method violates in many of the first hundreds of rounds.
    Constant steps as in that code violate far less, for a larger regret.

    Each round needs one hinge prox of g over K. The constraint must be the same in every round that reveals one; a
    round that does not is a gradient step over K. α_t and γ_t count rounds that revealed a loss.

    Parameters
    ----------
    K : ConvexSet
    lipschitz : float
        G, of each row.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    c : float
        In (0, 1): larger values violate less. Not used by constant steps and strongly convex losses.
    strong_convexity : float, optional
        m, which must hold for every loss.
    alpha, gamma : float, optional
        Constant steps α_t = alpha and γ_t = gamma, by default γ_0/√alpha; not together with ``strong_convexity``.
    alpha_scale, gamma_scale : float
        α_0, and a factor on γ_0; CCV₁ has its bound for factors up to 2. α_0 must be 1 for constant steps and strongly
        convex losses, and the factor 1 if ``gamma`` is given.

    References
    ----------
    Yi, Li, Yang, Xie, Chai and Johansson, "Regret and cumulative constraint violation analysis for online convex
    optimization with long term constraints", ICML 2021.

    Examples
    --------
    >>> from cocopt import Box, Yi2021, constraints, losses
    >>> learner = Yi2021(Box(0.0, 1.0, dim=2), lipschitz=1.0, start=[1.0, 1.0])
    >>> budget = constraints.Affine([0.6, 0.8], 0.7)
    >>> for t in range(100):
    ...     record = learner.tell(losses.Linear([-0.5, -0.1]), budget)
    >>> learner.ask().round(2)
    array([1.  , 0.12])
    """

    name = "yi2021"
    title = "Yi et al. (2021)"
    facts = Facts(
        2021,
        "hinge prox of g over K",
        "form: public code with constant steps; decreasing steps reconstructed here; constants derived here",
        convex=Rates.from_sums(Rate(0.5), Rate(0.25)),
        strongly_convex=Rates.from_sums(Rate(0.0, 1.0), Rate(0.0, 1.0)),
        constraints="static",
    )

    # Exceeds the guide of 8 parameters, all but K of which are keywords or constants of the theorem.
    def __init__(
        self,
        K: ConvexSet,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        c: float = 0.5,
        strong_convexity: float | None = None,
        alpha: float | None = None,
        gamma: float | None = None,
        alpha_scale: float = 1.0,
        gamma_scale: float = 1.0,
    ) -> None:
        super().__init__(K, start)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.c = scalar("c", c)
        if not 0.0 < self.c < 1.0:
            raise InvalidInput(f"c: expected a number in (0, 1), got {self.c}")
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.alpha = optional_scalar("alpha", alpha, positive=True)
        self.gamma = optional_scalar("gamma", gamma, positive=True)
        self.alpha_scale = scalar("alpha_scale", alpha_scale, positive=True)
        self.gamma_scale = scalar("gamma_scale", gamma_scale, positive=True)
        self._check_options()
        #: η_t = α_t/2: without a constraint the update is a gradient step with this step size
        self.steps: Schedule = Power(self.c, scale=self.alpha_scale / 2)
        if self.strong_convexity is not None:
            self.steps = StronglyConvex(self.strong_convexity)
        elif self.alpha is not None:
            self.steps = Constant(self.alpha / 2)

    def _check_options(self) -> None:
        if self.alpha is None and self.gamma is not None:
            raise InvalidInput(f"gamma: expected None, since it belongs to constant steps by alpha, got {self.gamma}")
        if self.alpha is not None and self.strong_convexity is not None:
            raise InvalidInput(f"alpha: expected None together with strong_convexity, got {self.alpha}")
        if self.alpha_scale != 1.0 and (self.alpha is not None or self.strong_convexity is not None):
            raise InvalidInput(f"alpha_scale: expected 1.0, since α_t does not depend on it, got {self.alpha_scale}")
        if self.gamma_scale != 1.0 and self.gamma is not None:
            raise InvalidInput(f"gamma_scale: expected 1.0, since gamma is given, got {self.gamma_scale}")

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"lipschitz": 2.0},
            {"lipschitz": 1.0, "c": 0.7, "alpha_scale": 0.5, "gamma_scale": 0.5},
            {"lipschitz": 2.0, "strong_convexity": 0.1},
            {"lipschitz": 2.0, "alpha": 0.4, "gamma": 1.5},
        ]

    @property
    def rates(self) -> Rates | None:
        if self.alpha is not None:
            return None  # constant steps fit one horizon
        if self.strong_convexity is not None:
            return super().rates
        return Rates.from_sums(Rate(max(self.c, 1.0 - self.c)), Rate((1.0 - self.c) / 2))

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float, row_count: int | None = None) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_yi2021`][].

        Parameters
        ----------
        T, lipschitz_f, lipschitz_g
            As for `cocopt.theory.bounds`.
        row_count : int, optional
            M. Default: that of the constraint seen so far; before it, only the regret is bounded.
        """
        M = seen_row_count(self.memory.queues) if row_count is None else positive_int("row_count", row_count)
        found = bounds_yi2021(
            self.steps,
            T,
            diameter=self.K.diameter,
            lipschitz_f=lipschitz_f,
            lipschitz_g=lipschitz_g,
            gamma_0=self._gamma_0(M or 1),
            row_count=M or 1,
        )
        return Bounds(found.regret) if M is None else found

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(StaticConstraint(self.K, type(self).__name__), None)

    def _gamma_0(self, row_count: int) -> float:
        """γ_0, so that γ_{t+1} = γ_0/√α_t."""
        if self.alpha is not None and self.gamma is not None:
            return self.gamma * sqrt(self.alpha)
        return self.gamma_scale / (self.lipschitz * sqrt(2.0 * row_count))

    def _alpha(self, losses: int) -> float:
        """α_t after so many losses; α_1 before the first."""
        return 2.0 * float(self.steps.step(max(losses, 1), 0.0))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        static, queues, rows = memory.static.after(feedback), memory.queues, feedback.rows
        target, step, alpha = feedback.x, 0.0, self._alpha(feedback.losses)
        if feedback.gradient is not None:
            step = alpha / 2
            target = feedback.x - step * feedback.gradient
        if feedback.constraint is None or rows is None:
            return Update(self.K.project_unchecked(target), _Memory(static, queues), step)
        gamma_0 = self._gamma_0(rows.shape[-1])
        before = self._alpha(feedback.losses - (feedback.gradient is not None))  # α_{t−1}
        added = gamma_0 / sqrt(before) * np.maximum(rows, 0.0)
        queues = row_queues(queues, rows) + added
        weights = (0.5 * sqrt(alpha) * gamma_0) * (queues + added)  # α_t γ_{t+1} q̂_t/2
        found = solve_hinge_prox(self.K, feedback.constraint, target, weights, "each")
        return Update(found.point, _Memory(static, queues), step, found.method)
