"""The adaptive primal-dual method of Jenatton, Huang and Archambeau."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.static_constraint import StaticConstraint
from cocopt.arrays import ArrayLike, as_flag, scalar
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegative
from cocopt.theory import Bounds, bounds_jenatton

__all__ = ["Jenatton"]


class _Memory(NamedTuple):
    multiplier: NonNegative  # λ_t
    constraint: StaticConstraint


@register
class Jenatton(Learner):
    """Gradient descent in x and damped ascent in one multiplier, with steps that need no horizon.

        x_{t+1} = P_K( x_t − η_t(∇f_t(x_t) + λ_t s_t) )
        λ_{t+1} = [ λ_t + μ_t(g(x_t) − θ_t λ_t) ]_+,    λ_1 = 0,    μ_t = 1/(θ_t(t+1))

    where g = max_i g_i, s_t is a subgradient of g at x_t, R = D/2, and

    - convex losses: η_t = R/(G t^β), θ_t = 6RG/t^β;
    - m-strongly convex losses: η_t = 1/(m t), θ_t = 6G²/(m t^β).

    Violation is soft: slack in one round offsets violation in another. Guarantees for K of diameter D, ‖∇f_t‖, ‖∇g‖ ≤
    G and |g| ≤ B on K, and some x in K with g(x) ≤ 0: Regret_T = O(T^max(β, 1−β)) and soft CCV = O(T^(1−β/2)), with
    strong convexity Regret_T = O(T^β) (and log T) and the same soft CCV; the constants are in
    [`cocopt.theory.bounds_jenatton`][]. The original projects onto a ball of radius R around 0 and starts at its
    centre; here the projection is onto K itself and D stands for 2R.

    With ``hard`` g is replaced by g_t^+ in every round, and may change; s_t is 0 where nothing is violated. This is
    the form of one agent in the family of Yi et al. (2023), with the constants above; the same bounds hold for Σ
    g_t^+(x_t), as derived here.

    η_t counts rounds that revealed a loss, θ_t and μ_t all rounds; a round without a constraint leaves λ alone.

    Parameters
    ----------
    K : ConvexSet
    lipschitz : float
        G.
    bound : float
        B. It enters the bounds alone.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    beta : float
        β in (0, 1).
    strong_convexity : float, optional
        m, which must hold for every loss.
    hard : bool
        Whether only violation counts, and the constraint may change.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.

    References
    ----------
    Jenatton, Huang and Archambeau, "Adaptive algorithms for online convex optimization with long-term constraints",
    ICML 2016.

    Examples
    --------
    >>> from cocopt import Box, Jenatton, constraints, losses
    >>> learner = Jenatton(Box(0.0, 1.0, dim=2), lipschitz=1.0, bound=0.5, start=[1.0, 1.0])
    >>> for t in range(100):
    ...     record = learner.tell(losses.Distance([0.5, 0.5]), constraints.Affine([0.0, 1.0], 0.25))
    >>> learner.ask().round(2)
    array([0.5 , 0.33])
    """

    name = "jenatton"
    title = "Jenatton et al."
    facts = Facts(
        2016,
        "projection onto K, a subgradient of g",
        "the authors' paper, stated for K in place of a ball",
        convex=Rates(regret=Rate(0.5), ccv_soft=Rate(0.75)),
        strongly_convex=Rates(regret=Rate(0.5), ccv_soft=Rate(0.75)),
        constraints="static",
    )
    dynamic_options: ClassVar[dict[str, Any]] = {"hard": True}

    def __init__(
        self,
        K: ConvexSet,
        lipschitz: float,
        bound: float,
        *,
        start: ArrayLike | None = None,
        beta: float = 0.5,
        strong_convexity: float | None = None,
        hard: bool = False,
        diameter: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.bound = scalar("bound", bound, positive=True)
        self.beta = scalar("beta", beta, positive=True)
        if self.beta >= 1.0:
            raise InvalidInput(f"beta: expected a number between 0 and 1, got {beta}")
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.hard = as_flag("hard", hard)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self._D = require_diameter(K, self.diameter)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        given = {"lipschitz": 4.0, "bound": 2.0}
        return [given, {**given, "beta": 0.7, "hard": True}, {**given, "strong_convexity": 0.1, "diameter": 3.0}]

    @property
    def static(self) -> bool:
        return not self.hard

    @property
    def rates(self) -> Rates:
        largest = self.beta if self.strong_convexity else max(self.beta, 1.0 - self.beta)
        violation = Rate(1.0 - self.beta / 2)
        regret = Rate(largest)
        return Rates(regret, violation, violation, violation) if self.hard else Rates(regret, ccv_soft=violation)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_jenatton`][]."""
        check_lipschitz(self.lipschitz, lipschitz_f, lipschitz_g)
        return bounds_jenatton(
            T,
            diameter=self._D,
            lipschitz=self.lipschitz,
            bound=self.bound,
            beta=self.beta,
            strong_convexity=self.strong_convexity,
            hard=self.hard,
        )

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(np.zeros(batch)[()], StaticConstraint(self.K, type(self).__name__))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        multiplier, t = memory.multiplier, feedback.t
        constraint = memory.constraint if self.hard else memory.constraint.after(feedback)
        direction = np.zeros(feedback.x.shape) if feedback.gradient is None else feedback.gradient
        theta, eta = self._parameters_at(t, max(feedback.losses, 1))
        if feedback.constraint is not None and feedback.rows is not None:
            violation, subgradient = feedback.largest_row()
            value = violation if self.hard else feedback.rows.max(axis=-1)
            value = np.where(np.isneginf(value), -self.bound, value)  # all rows are idle
            weight = np.where(violation > 0.0, multiplier, 0.0) if self.hard else multiplier
            direction = direction + np.expand_dims(weight, -1) * subgradient
            multiplier = np.maximum(multiplier + (value / theta - multiplier) / (t + 1), 0.0)
        x = self.K.project_unchecked(feedback.x - eta * direction)
        return Update(x, _Memory(multiplier, constraint), eta)

    def _parameters_at(self, t: int, losses: int) -> tuple[float, float]:
        """(θ_t, η_t)."""
        G, m = self.lipschitz, self.strong_convexity
        if m is None:
            R = self._D / 2
            return 6.0 * R * G / t**self.beta, R / (G * losses**self.beta)
        return 6.0 * G**2 / (m * t**self.beta), 1.0 / (m * losses)
