"""Online gradient descent with Polyak feasibility steps, for a fixed constraint that must always hold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.static_constraint import StaticConstraint
from cocopt.arrays import ArrayLike, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.cutter import cut, largest_row
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.theory import Bounds, bounds_polyak
from cocopt.theory.polyak import safe_parameters

__all__ = ["PolyakFeasibility"]


class _Memory(NamedTuple):
    constraint: StaticConstraint


@register
class PolyakFeasibility(Learner):
    """A gradient step, then a Polyak step onto a linear model of the constraint, tightened by ρ; then P_K.

        y = x_t − η ∇f_t(x_t)
        l = g(x_t) + ⟨s_t, y − x_t⟩ + ρ;    y ← y − (l/‖s_t‖²) s_t if l > 0
        x_{t+1} = P_K(y)

    with s_t a subgradient of g = max_i g_i at x_t. The constraint is the same in every round, and x_1 satisfies it with
    g(x_1) ≤ −ε. With the default parameters

        ρ = min(ε/2, ε/√T),    k = (ε − ρ)/(D G),    η = k²ρ/(2(1+k)G²)

    no round violates it, and Regret_T ≤ D²/(2η) + ηL_f²T/2 + L_f DρT/ε = O(√T), for K of diameter D and ‖∇f_t‖, ‖∇g‖ ≤
    G on K, as derived here (see [`cocopt.theory.bounds_polyak`][]). This safe η is so small that x hardly moves at
    practical T: ``eta`` and ``rho`` override it, without a guarantee.

    Once a round has revealed the constraint, it also counts in rounds that reveal a loss alone.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    slack : float
        ε > 0, with g(x_1) ≤ −ε.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.
    eta, rho : float, optional
        η > 0 and ρ ≥ 0.

    References
    ----------
    Hutchinson and Alizadeh, "Constrained online convex optimization with Polyak feasibility steps", ICML 2025.

    Examples
    --------
    >>> from cocopt import Box, PolyakFeasibility, constraints, losses
    >>> learner = PolyakFeasibility(
    ...     Box(0.0, 1.0, dim=2), horizon=100, lipschitz=1.0, slack=0.5, start=[0.0, 1.0], eta=0.1
    ... )
    >>> for t in range(100):
    ...     record = learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    >>> learner.ask(), learner.ledger.ccv1  # ρ = 0.05 from the limit
    (array([0.45, 1.  ]), np.float64(0.0))
    """

    name = "polyak"
    title = "Polyak steps"
    accepts_known = False
    facts = Facts(
        2025,
        "projection onto K, a subgradient of g",
        "update: the authors' abstract and code; parameters and constants derived here",
        convex=Rates(Rate(0.5), Rate(0.0), Rate(0.0), Rate(0.0)),
        constraints="static",
        assumes="g(x_1) ≤ −slack",
    )

    # (ten parameters: the constants of the theorem, and what overrides them)
    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        slack: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        eta: float | None = None,
        rho: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.slack = scalar("slack", slack, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self.eta = optional_scalar("eta", eta, positive=True)
        self.rho = optional_scalar("rho", rho, nonnegative=True)
        self._D = require_diameter(K, self.diameter)
        safe_eta, safe_rho = safe_parameters(self.horizon, self._D, self.lipschitz, self.slack)
        self._eta = safe_eta if self.eta is None else self.eta
        self._rho = safe_rho if self.rho is None else self.rho

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        given = {"horizon": 100, "lipschitz": 5.0, "slack": 0.1}
        return [given, {**given, "eta": 0.1}, {**given, "diameter": 4.0, "rho": 0.0, "eta": 1.0}]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds up to the horizon with the safe parameters: `theory.bounds_polyak`."""
        check_lipschitz(self.lipschitz, lipschitz_f, lipschitz_g)
        if self.eta is not None or self.rho is not None:
            raise InvalidInput("eta, rho: expected None, since the theorem is about the safe ones, got others")
        return bounds_polyak(T, horizon=self.horizon, diameter=self._D, lipschitz=self.lipschitz, slack=self.slack)

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(StaticConstraint(self.K, type(self).__name__))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        known = memory.constraint.after(feedback)
        if known.constraint is not None and memory.constraint.constraint is None:
            self._require_slack(float(known.constraint.rows(self.start).max()))
        x = feedback.x
        y = x if feedback.gradient is None else x - self._eta * feedback.gradient
        if known.constraint is not None:
            at = feedback.played
            rows = known.constraint.rows_unchecked(at) if feedback.rows is None else feedback.rows
            subgradient = feedback.along(largest_row(known.constraint, at, rows)[1])
            model = rows.max(axis=-1) + np.vecdot(subgradient, y - at) + self._rho
            y = cut(y, np.maximum(model, 0.0), subgradient)
        return Update(self.K.project_unchecked(y), _Memory(known), self._eta)

    def _require_slack(self, largest: float) -> None:
        if largest > -self.slack * (1.0 - 1e-9):
            raise InvalidInput(
                f"constraint: expected g(x_1) ≤ −slack = −{self.slack:g}, got {largest:.3g}: start at a point that "
                "satisfies it, or state a smaller slack"
            )
