"""The drift-plus-penalty method of Yu, Neely and Wei."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback, Learner, Update
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.queues import row_queues
from cocopt.arrays import ArrayLike, positive_int
from cocopt.registry import register
from cocopt.sets.base import ConvexSet
from cocopt.state import NonNegativeRows
from cocopt.threads import matvec, vecmat

__all__ = ["DriftPlusPenalty"]


class _Memory(NamedTuple):
    queues: NonNegativeRows  # Q_t


@register
class DriftPlusPenalty(Learner):
    """A gradient step on V f_t + Σ_i Q_i g_{t,i} with virtual queues Q, which follow a linear model of the constraint.

        x_{t+1} = P_K( x_t − (V ∇f_t(x_t) + Σ_i Q_i s_{t,i})/(2α) )
        Q_i ← [ Q_i + g_{t,i}(x_t) + ⟨s_{t,i}, x_{t+1} − x_t⟩ ]_+,    Q = 0 at first

    with V = √T, α = T, and s_{t,i} a subgradient of row i at x_t. Violation is soft: slack offsets it. For constraints
    drawn independently from one distribution, some x in K with E g_i(x) < 0, and the comparator that satisfies the
    constraint in expectation, regret and soft violation are O(√T) in expectation. The orders are the authors'; the
    update is as reconstructed here, from public code. For constraints chosen by an adversary nothing is promised.

    Without a horizon T is doubled: epochs of 1, 2, 4, … rounds have their own V and α and begin with empty queues; x
    goes on. The first constraint tells the number of rows. A round without a constraint leaves the queues alone.

    Parameters
    ----------
    K : ConvexSet
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    horizon : int, optional
        T.

    References
    ----------
    Yu, Neely and Wei, "Online convex optimization with stochastic constraints", NeurIPS 2017.

    Examples
    --------
    >>> from cocopt import Box, DriftPlusPenalty, constraints, losses
    >>> learner = DriftPlusPenalty(Box(0.0, 1.0, dim=2), horizon=400, start=[1.0, 1.0])
    >>> for t in range(400):
    ...     record = learner.tell(losses.Linear([-1.0, 0.0]), constraints.Affine([1.0, 0.0], 0.5))
    >>> bool(learner.ledger.ccv_soft < 0.1 * 400)  # x oscillates around the limit: the average violation is small
    True
    """

    name = "drift-plus-penalty"
    title = "Drift plus penalty"
    facts = Facts(
        2017,
        "projection onto K, subgradients of all rows",
        "orders: the authors' abstract; update: public code, as reconstructed here",
        convex=Rates(regret=Rate(0.5), ccv_soft=Rate(0.5)),
        assumes="independent constraints with a Slater point in expectation",
    )

    def __init__(self, K: ConvexSet, *, start: ArrayLike | None = None, horizon: int | None = None) -> None:
        super().__init__(K, start)
        self.horizon = None if horizon is None else positive_int("horizon", horizon)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        return [{}, {"horizon": 50}]

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(None)

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        queues, x = memory.queues, feedback.x
        T = self.horizon
        if T is None:
            T = 1 << (feedback.t.bit_length() - 1)  # the epoch of round t has the largest power of two up to t
            if feedback.t == T and queues is not None:
                queues = np.zeros(queues.shape)
        step = 1.0 / (2.0 * sqrt(T))  # V/(2α)
        target = x if feedback.gradient is None else x - step * feedback.gradient
        if feedback.rows is None:
            return Update(self.K.project_unchecked(target), _Memory(queues), step)
        queues, subgradients = row_queues(queues, feedback.rows), feedback.row_subgradients()
        idle = np.isneginf(feedback.rows)
        active = np.where(idle, 0.0, queues)
        after = self.K.project_unchecked(target - vecmat(active, subgradients) / (2.0 * T))
        model = np.where(idle, 0.0, feedback.rows + matvec(subgradients, after - feedback.played))
        return Update(after, _Memory(np.maximum(queues + model, 0.0)), step)
