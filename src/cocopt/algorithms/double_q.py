"""Double-Q: a proximal step with two queues per row, one that decays and one that adds all violations up."""

from __future__ import annotations

from math import e, sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues, seen_row_count
from cocopt.algorithms.surrogate import Surrogate
from cocopt.arrays import Array, ArrayLike, all_finite, positive_int, scalar, squared_norm
from cocopt.errors import InvalidInput
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegative, NonNegativeRows
from cocopt.theory import Bounds, bounds_double_q

__all__ = ["DoubleQ"]


class _Memory(NamedTuple):
    penalties: NonNegativeRows  # q_{t,i}; None before the first constraint
    sums: NonNegativeRows  # z_{t,i}; None before the first constraint
    squares: NonNegative  # Σ_{τ≤t} ‖p_τ‖²


@register
class DoubleQ(Learner):
    """AdaGrad's surrogate and COLDQ's penalty in one proximal step, with a queue of each kind per row.

        q_{t,i} = max( (1 − 1/T) q_{t−1,i} + v_{t,i}, εT ) for t ≥ 2,    q_{1,i} = ε
        z_{t,i} = z_{t−1,i} + β v_{t,i},    z_{0,i} = 0
        p_t = V ∇f_t(x_t) + Σ_i λ exp(λ z_{t,i}) β s_{t,i}
        x_{t+1} = argmin over x in K of ⟨p_t, x⟩ + Σ_i q_{t,i} max(0, g_{t,i}(x)) + ‖x − x_t‖²/(2α_t)

    with v_{t,i} = max(0, g_{t,i}(x_t)), s_{t,i} a subgradient of g_{t,i} at x_t, 0 where v_{t,i} = 0, and

        λ = 1/(2√T),    β = 1/(4GDe² + 1),    α_t = √2 D/√(Σ_{τ≤t} ‖p_τ‖²),

    where only the part of p_τ along the affine hull of K counts. The argmin is exact. Without a gradient or violation
    so far, x stays. Guarantees for convex losses, for D the diameter of K, G bounding ‖∇f_t‖ and ‖∇g_{t,i}‖ on K, some
    x in K that satisfies every g_t, and every number of rounds t up to the horizon T, as derived here in
    [`cocopt.theory.bounds_double_q`][]:

    - Regret_t ≤ 1.77 GD √t + 0.03 M/V for M rows;
    - CCV₁ = O(√T log T).

    The authors state √T and min(√T log T, T^W), where W is the exponent of the variation of the constraints. Update
    and default constants are those of their code. Strong convexity brings nothing: no other form is known.

    Each round needs one hinge prox of g_t over K and a subgradient of each row. A round without a loss contributes
    its violations alone; rounds without a constraint count as rounds without violation. Beyond the horizon the same
    formula goes on, but the guarantees end. The weight of a violation cannot overflow, see [`cocopt.AdaGrad`][]. At
    practical horizons λβ exp(λz) stays far below V: what limits violations is the penalty q alone.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    epsilon : float
        ε, positive.
    weight : float
        V, positive.
    diameter : float, optional
        D. Default: the diameter of K.

    References
    ----------
    "Double-Q", 2026, known here by its abstract and its authors' code.

    Examples
    --------
    >>> from cocopt import Box, DoubleQ, constraints, losses
    >>> learner = DoubleQ(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=2.0, start=[1.0, 1.0], weight=1.0)
    >>> for t in range(100):
    ...     record = learner.tell(losses.Distance([0.0, 1.0]), constraints.Affine([0.0, 1.0], 0.5))
    >>> learner.ask().round(2)
    array([0. , 0.5])
    """

    name = "double-q"
    title = "Double-Q"
    facts = Facts(
        2026,
        "hinge prox of g_t over K, a subgradient of each row",
        "update: the authors' code; rates: their abstract; constants derived here",
        convex=Rates.from_sums(Rate(0.5), Rate(0.5, 1.0)),
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        epsilon: float = 0.01,
        weight: float = 5.0,
        diameter: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.epsilon = scalar("epsilon", epsilon, positive=True)
        self.weight = scalar("weight", weight, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self._D = require_diameter(K, self.diameter)
        beta = 1.0 / (4.0 * self.lipschitz * self._D * e**2 + 1.0)
        self._surrogate = Surrogate(beta, self.weight / beta, 0.5 / sqrt(self.horizon), sqrt(2.0) * self._D)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 10.0},
            {"horizon": 20, "lipschitz": 1.0, "epsilon": 0.1, "weight": 0.5, "diameter": 3.0},
        ]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float, row_count: int | None = None) -> Bounds:
        """What is promised for the first T rounds, see [`cocopt.theory.bounds_double_q`][]; T up to the horizon.

        Parameters
        ----------
        T, lipschitz_f, lipschitz_g
            As for `cocopt.theory.bounds`; both constants at most ``lipschitz``.
        row_count : int, optional
            M. Default: that of the constraints seen so far.
        """
        check_lipschitz(self.lipschitz, lipschitz_f, lipschitz_g)
        if row_count is None:
            row_count = seen_row_count(self.memory.penalties)
        if row_count is None:
            raise InvalidInput("row_count: expected a number, since no constraint has been revealed yet, got None")
        return bounds_double_q(
            T,
            horizon=self.horizon,
            diameter=self._D,
            lipschitz=self.lipschitz,
            weight=self.weight,
            row_count=row_count,
        )

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(None, None, np.zeros(batch)[()])

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        (penalties, sums, squares), rows, t = memory, feedback.rows, feedback.t
        minimum, surrogate = self.epsilon * self.horizon, self._surrogate
        violations: Any = 0.0
        p: Array = np.zeros(feedback.x.shape) if feedback.gradient is None else self.weight * feedback.gradient
        if rows is not None:
            penalties = row_queues(penalties, rows, self.epsilon if t <= 2 else minimum)
            violations = np.maximum(rows, 0.0)
            sums = row_queues(sums, rows) + surrogate.b * violations
            violated = violations > 0.0
            if violated.any():
                weights = np.where(violated, surrogate.b * surrogate.weight(sums), 0.0)
                p = p + feedback.weighted_subgradients(weights)
        if penalties is not None and t > 1:
            penalties = np.maximum((1.0 - 1.0 / self.horizon) * penalties + violations, minimum)
        p = self.K.project_direction_unchecked(p)
        squares = squares + squared_norm(p)
        if not all_finite(np.asarray(squares)):
            raise InvalidInput("tell: expected gradients whose squares can be added up, got a sum that overflows")
        root = np.sqrt(squares)
        step = np.divide(surrogate.step_scale, root, out=np.zeros(np.shape(root)), where=root > 0.0)
        target, step = feedback.x - step[..., None] * p, step[()]
        memory = _Memory(penalties, sums, squares)
        if feedback.constraint is None or penalties is None:
            return Update(self.K.project_unchecked(target), memory, step)
        found = solve_hinge_prox(self.K, feedback.constraint, target, np.expand_dims(step, -1) * penalties, "each")
        return Update(found.point, memory, step, found.method)
