"""The virtual-queue method of Yu and Neely for a fixed, known constraint."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update, check_lipschitz, optional_scalar, require_diameter
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues
from cocopt.algorithms.static_constraint import StaticConstraint
from cocopt.arrays import Array, ArrayLike, positive_int, scalar
from cocopt.constraints import Constraint, Shifted
from cocopt.geometry.prox import solve_hinge_prox
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegativeRows
from cocopt.theory import Bounds, bounds_yu_neely

__all__ = ["YuNeely"]


class _Memory(NamedTuple):
    queues: NonNegativeRows  # Q_t
    constraint: StaticConstraint


@register
class YuNeely(Learner):
    """A proximal step on the loss plus the constraint's rows, weighted by virtual queues; for a fixed constraint.

        h = T^¼ g,    α = (β²+1)√T/2,    Q_1 = 0
        Q_i ← max( −h_i(x_t), Q_i + h_i(x_t) )
        x_{t+1} = argmin over K of ⟨∇f_t(x_t), x − x_t⟩ + Σ_i (Q_i + h_i(x_t)) h_i(x) + α‖x − x_t‖²

    β = √M G is a Lipschitz constant of the M rows together. The weights Q_i + h_i(x_t) are never negative. For affine
    rows the argmin is one projection onto K, else a hinge prox. Violation is soft. Guarantees for the horizon T, K of
    diameter D, ‖∇f_t‖ ≤ L_f, ‖∇g_i‖ ≤ G on K:

    - Regret_T ≤ αD² + L_f²√T/2 = O(√T), as derived here (see [`cocopt.theory.bounds_yu_neely`][]);
    - soft CCV = O(1) if some x in K has g_i(x) < 0 for all i (Slater's condition).

    The first constraint tells M; another constraint later is an error. A round without a constraint leaves Q alone.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G, of each row.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    diameter : float, optional
        D, which curved constraints and the bound need. Default: the diameter of K; a finite one is needed.

    References
    ----------
    Yu and Neely, "A low complexity algorithm with O(√T) regret and O(1) constraint violations for online convex
    optimization with long term constraints", Journal of Machine Learning Research 21, 2020.

    Examples
    --------
    >>> from cocopt import Box, YuNeely, constraints, losses
    >>> learner = YuNeely(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=1.0, start=[1.0, 1.0])
    >>> for t in range(100):
    ...     record = learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    >>> learner.ask().round(2)
    array([0.5, 1. ])
    """

    name = "yu-neely"
    title = "Yu and Neely"
    facts = Facts(
        2020,
        "projection onto K for affine g, else a hinge prox; subgradients of all rows",
        "orders: the authors' abstract; update and constants as reconstructed here",
        convex=Rates(regret=Rate(0.5), ccv_soft=Rate(0.0)),
        constraints="static",
        assumes="a Slater point",
    )

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
    ) -> None:
        super().__init__(K, start)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self._D = require_diameter(K, self.diameter)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [{"horizon": 100, "lipschitz": 3.0}, {"horizon": 10, "lipschitz": 0.5, "diameter": 3.0}]

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for T rounds up to the horizon, for as many rows as were seen, at least one.

        See [`cocopt.theory.bounds_yu_neely`][].
        """
        check_lipschitz(self.lipschitz, 0.0, lipschitz_g)
        queues = self.memory.queues
        return bounds_yu_neely(
            T,
            horizon=self.horizon,
            diameter=self._D,
            lipschitz=self.lipschitz,
            lipschitz_f=lipschitz_f,
            rows=1 if queues is None else queues.shape[-1],
        )

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(None, StaticConstraint(self.K, type(self).__name__))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        queues, constraint = memory.queues, memory.constraint.after(feedback)
        if feedback.rows is not None:
            queues = row_queues(queues, feedback.rows)
        M = 1 if queues is None else queues.shape[-1]
        step = 1.0 / ((M * self.lipschitz**2 + 1.0) * sqrt(self.horizon))  # 1/(2α)
        target = feedback.x if feedback.gradient is None else feedback.x - step * feedback.gradient
        if feedback.constraint is None or feedback.rows is None or queues is None:
            return Update(self.K.project_unchecked(target), _Memory(queues, constraint), step)
        gamma = self.horizon**0.25
        idle = np.isneginf(feedback.rows)
        h = gamma * np.where(idle, 0.0, feedback.rows)
        queues = np.maximum(-h, queues + h)
        weights = np.where(idle, 0.0, (queues + h) * (gamma * step))
        x = self._argmin(feedback, target, weights)
        return Update(x, _Memory(queues, constraint), step)

    def _argmin(self, feedback: Feedback, target: Array, weights: Array) -> Array:
        """argmin over K of ½‖x − target‖² + Σ_i weights_i g_i(x)."""
        constraint = feedback.constraint
        assert isinstance(constraint, Constraint)
        assert feedback.rows is not None
        if constraint.affine() is not None or constraint.sparse_rows() is not None:
            return self.K.project_unchecked(target - feedback.weighted_subgradients(weights))
        # on K every row is at least its value here less G D: shifted by that, no hinge is ever reached
        shift = self.lipschitz * self._D - feedback.rows
        return solve_hinge_prox(self.K, Shifted(constraint, shift), target, weights, "each").point
