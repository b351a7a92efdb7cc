"""COLDQ: a proximal step whose penalty on violation is a queue per row, bounded from both sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues
from cocopt.arrays import Array, ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegativeRows
from cocopt.steps import Power, Schedule, StronglyConvex
from cocopt.theory import Bounds, bounds_coldq, dynamic_bounds

__all__ = ["COLDQ"]


class _Memory(NamedTuple):
    queues: NonNegativeRows  # Q_{t,i}; None before the first constraint


@register
class COLDQ(Learner):
    """A proximal step in which each row has a queue that decays and never falls below a minimum.

        Q_{t,i} = max( (1 − δ_t) Q_{t−1,i} + max(0, g_{t,i}(x_t)), q_t ) for t ≥ 2,    Q_{1,i} = q_1
        x_{t+1} = argmin over x in K of ⟨∇f_t(x_t), x − x_t⟩ + Σ_i Q_{t,i} max(0, g_{t,i}(x)) + α_t‖x − x_t‖²

    with δ_t = 1/T and q_t = εT for a given horizon T, or δ_t = 1/t² and q_t = εt² without one (the anytime form). α_t
    is √t for convex losses, m t/2 for m-strongly convex ones, and t^((1−V)/2) for actions to compare with whose path
    length is O(T^V). The argmin is exact.

    Guarantees, for K of diameter D, Lipschitz constants L_f and L_g on K, and some x in K that satisfies every g_t:

    - convex losses: Regret_T ≤ (L_f²/4) Σ 1/α_t + D² α_T, which is O(√T), and CCV₂ = O(√T);
    - m-strongly convex losses: Regret_T ≤ (L_f²/2m)(1 + ln T) and CCV₂ = O(log T);
    - any u_t in K with g_t(u_t) ≤ 0 instead of one x: Σ f_t(x_t) − f_t(u_t) ≤ 2D Σ_{t≥2} α_{t−1}‖u_t − u_{t−1}‖ +
      (L_f²/4) Σ 1/α_t + D² α_T, which is O(T^((1+V)/2)) for a path length of O(T^V), see
      [`cocopt.theory.dynamic_bounds`][].

    Those of CCV₂ are as derived here, with their constants, in [`cocopt.theory.bounds_coldq`][]. The authors prove
    CCV₁ = O(T^W), where W is the exponent of the variation of the constraints, and O(1) for a fixed constraint. The
    anytime form is that of the authors' code.

    Each round needs one hinge prox of g_t over K. Rounds without a constraint count as rounds without violation. α_t
    counts rounds that revealed a loss, δ_t and q_t all rounds. No round is infeasible: where K ∩ {g_t ≤ 0} is empty,
    the penalty alone decides. Beyond the horizon the same formula goes on.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    horizon : int, optional
        T. Default: none, which is the anytime form.
    epsilon : float
        ε, positive, less than the largest |g_{t,i}| on K. The default ½ is that of the authors' code.
    strong_convexity : float, optional
        m, which must hold for every loss.
    path : float, optional
        V in [0, 1), not together with ``strong_convexity``. Default: 0.

    References
    ----------
    Wang, Yan and Liu, "Doubly-bounded queue for constrained online learning: keeping pace with dynamics of both loss
    and constraint", AAAI 2025.

    Examples
    --------
    >>> from cocopt import COLDQ, Box, constraints, losses
    >>> learner = COLDQ(Box(0.0, 1.0, dim=2), start=[1.0, 1.0])
    >>> for t in range(2):
    ...     record = learner.tell(losses.Linear([0.5, 0.0]), constraints.Affine([0.0, 1.0], 0.25))
    ...     print(learner.ask().round(2))  # the second penalty is large enough to satisfy the constraint
    [0.75 0.75]
    [0.57 0.25]
    """

    name = "coldq"
    title = "COLDQ"
    facts = Facts(
        2025,
        "hinge prox of g_t over K",
        "the authors' paper; anytime form: their code; constants of CCV₂ derived here",
        convex=Rates.from_squares(Rate(0.5), Rate(0.5)),
        strongly_convex=Rates.from_squares(Rate(0.0, 1.0), Rate(0.0, 1.0)),
    )

    def __init__(
        self,
        K: ConvexSet,
        *,
        start: ArrayLike | None = None,
        horizon: int | None = None,
        epsilon: float = 0.5,
        strong_convexity: float | None = None,
        path: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = None if horizon is None else positive_int("horizon", horizon)
        self.epsilon = scalar("epsilon", epsilon, positive=True)
        self.strong_convexity = optional_scalar("strong_convexity", strong_convexity, positive=True)
        self.path = optional_scalar("path", path, nonnegative=True)
        if self.path is not None and self.path >= 1.0:
            raise InvalidInput(f"path: expected a number in [0, 1), got {self.path}")
        if self.path is not None and self.strong_convexity is not None:
            raise InvalidInput(f"path: expected None together with strong_convexity, got {self.path}")
        #: η_t = 1/(2α_t): without a constraint the update is a gradient step with this step size
        self.steps: Schedule = Power((1.0 - (self.path or 0.0)) / 2, scale=0.5)
        if self.strong_convexity is not None:
            self.steps = StronglyConvex(self.strong_convexity)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [{}, {"horizon": 100, "epsilon": 0.05}, {"strong_convexity": 0.1}, {"horizon": 20, "path": 0.5}]

    @property
    def rates(self) -> Rates | None:
        if not self.path:
            return super().rates
        growth = Rate((1.0 + self.path) / 2)
        return Rates.from_squares(growth, growth)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds, see [`cocopt.theory.bounds_coldq`][]."""
        return bounds_coldq(
            self.steps,
            T,
            diameter=self.K.diameter,
            lipschitz_f=lipschitz_f,
            lipschitz_g=lipschitz_g,
            horizon=self.horizon,
            epsilon=self.epsilon,
        )

    def dynamic_bounds(self, increments: ArrayLike, *, lipschitz_f: ArrayLike) -> Array:
        """What is promised against actions that move by these increments, see [`cocopt.theory.dynamic_bounds`][]."""
        return dynamic_bounds(self.steps, increments, diameter=self.K.diameter, lipschitz_f=lipschitz_f)

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(None)

    def _minimum(self, t: int) -> float:
        """q_t."""
        return self.epsilon * (t * t if self.horizon is None else self.horizon)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        queues, rows, t = memory.queues, feedback.rows, feedback.t
        if rows is not None:
            queues = row_queues(queues, rows, self._minimum(max(t - 1, 1)))
        if queues is not None and t > 1:
            decay = 1.0 / (t * t if self.horizon is None else self.horizon)
            violations = 0.0 if rows is None else np.maximum(rows, 0.0)
            queues = np.maximum((1.0 - decay) * queues + violations, self._minimum(t))
        eta = float(self.steps.step(max(feedback.losses, 1), 0.0))
        target, step = feedback.x, 0.0
        if feedback.gradient is not None:
            target, step = feedback.x - eta * feedback.gradient, eta
        if feedback.constraint is None or queues is None:
            return Update(self.K.project_unchecked(target), _Memory(queues), step)
        found = solve_hinge_prox(self.K, feedback.constraint, target, eta * queues, "each")
        return Update(found.point, _Memory(queues), step, found.method)
