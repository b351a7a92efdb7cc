"""The primal-dual gradient method of Mahdavi, Jin and Yang for long-term constraints."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues
from cocopt.algorithms.static_constraint import StaticConstraint
from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegativeRows
from cocopt.theory import Bounds, bounds_mahdavi
from cocopt.theory.mahdavi import mahdavi_constants

__all__ = ["Mahdavi"]


class _Memory(NamedTuple):
    multipliers: NonNegativeRows  # λ_t
    constraint: StaticConstraint


@register
class Mahdavi(Learner):
    """Gradient descent in x and ascent in λ on the Lagrangian, with a quadratic penalty on λ; for a fixed constraint.

        L_t(x, λ) = f_t(x) + Σ_i λ_i g_i(x) − (δη/2)‖λ‖²
        x_{t+1} = P_K( x_t − η ∇_x L_t(x_t, λ_t) ),    λ_{t+1} = [ λ_t + η ∇_λ L_t(x_t, λ_t) ]_+,    λ_1 = 0

    with M rows, R = D/2, c² = (M+1)G² + 2MB², η = R/(c√T) (at most 1/(G√(8(M+1)))) and δ = 2(M+1)G². The constraint is
    not clipped: slack in one round offsets violation in another. Guarantees for the horizon T, K of diameter D,
    ‖∇f_t‖, ‖∇g_i‖ ≤ G and |g_i| ≤ B on K, |f_t(x) − f_t(y)| ≤ F, and some x in K with g(x) ≤ 0:

    - Regret_T ≤ E = D²/(2η) + ηc²T/2 = O(√T);
    - soft CCV, Σ_t g_i(x_t) for each row i, ≤ √(2(FT + E)(δηT + 1/η)) = O(T^¾).

    The orders are the authors'; the constants are as reconstructed here (see [`cocopt.theory.bounds_mahdavi`][]), for
    the projection onto K itself, where the original projects onto a ball around K.

    The first constraint tells M; another constraint later is an error. A round without a constraint leaves λ alone.
    Before the first constraint the steps are those of M = 1.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G, of the losses and of each row.
    bound : float
        B.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.

    References
    ----------
    Mahdavi, Jin and Yang, "Trading regret for efficiency: online convex optimization with long term constraints",
    Journal of Machine Learning Research 13, 2012.

    Examples
    --------
    >>> from cocopt import Box, Mahdavi, constraints, losses
    >>> learner = Mahdavi(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=1.0, bound=0.5, start=[1.0, 1.0])
    >>> for t in range(100):
    ...     record = learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    >>> learner.ask().round(2)
    array([0.58, 1.  ])
    """

    name = "mahdavi"
    title = "Mahdavi et al."
    facts = Facts(
        2012,
        "projection onto K, subgradients of all rows",
        "orders: the authors' abstract; constants derived here",
        convex=Rates(regret=Rate(0.5), ccv_soft=Rate(0.75)),
        constraints="static",
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        bound: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.bound = scalar("bound", bound, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self._D = require_diameter(K, self.diameter)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [
            {"horizon": 100, "lipschitz": 4.0, "bound": 2.0},
            {"horizon": 4, "lipschitz": 0.5, "bound": 0.1, "diameter": 3.0},
        ]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float, rows: int | None = None) -> Bounds:
        """What is promised for T rounds up to the horizon, see [`cocopt.theory.bounds_mahdavi`][].

        ``rows`` is M; by default that of the constraint seen so far, else 1.
        """
        check_lipschitz(self.lipschitz, lipschitz_f, lipschitz_g)
        multipliers = self.memory.multipliers
        M = rows if rows is not None else 1 if multipliers is None else multipliers.shape[-1]
        return bounds_mahdavi(
            T, horizon=self.horizon, diameter=self._D, lipschitz=self.lipschitz, bound=self.bound, rows=M
        )

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(None, StaticConstraint(self.K, type(self).__name__))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        multipliers, constraint = memory.multipliers, memory.constraint.after(feedback)
        if feedback.rows is not None:
            multipliers = row_queues(multipliers, feedback.rows)
        M = 1 if multipliers is None else multipliers.shape[-1]
        eta, delta = mahdavi_constants(self.horizon, self._D, self.lipschitz, self.bound, M)
        direction = np.zeros(feedback.x.shape) if feedback.gradient is None else feedback.gradient
        if feedback.rows is not None and multipliers is not None:
            direction = direction + feedback.weighted_subgradients(multipliers)
            rows = np.where(np.isneginf(feedback.rows), -self.bound, feedback.rows)  # idle rows are −∞
            ascent = rows - delta * eta * multipliers
            multipliers = np.maximum(multipliers + eta * ascent, 0.0)
        x = self.K.project_unchecked(feedback.x - eta * direction)
        return Update(x, _Memory(multipliers, constraint), eta)
