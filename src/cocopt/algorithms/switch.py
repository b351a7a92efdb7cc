"""Switch of Vaze and Sinha: project onto all constraints so far, then AdaGrad once the violation is too large."""

from __future__ import annotations

from math import log, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.algorithms.base import Feedback, Learner, Update, optional_scalar, require_diameter
from cocopt.algorithms.constraint_memory import own_copy
from cocopt.algorithms.facts import Facts, Rate, Rates
from cocopt.algorithms.surrogate import Surrogate, SurrogateMemory
from cocopt.arrays import ArrayLike, one_of, positive_int, scalar
from cocopt.geometry.persistent import PersistentIntersection
from cocopt.metrics import CompensatedSum
from cocopt.registry import register
from cocopt.sets.base import ConvexSet

__all__ = ["Switch"]


class _Memory(NamedTuple):
    intersection: PersistentIntersection | None  # S_{t−1} of the trials in phase one; None once there are none
    ccv1: CompensatedSum
    second: NDArray[np.bool_]  # which trials are in phase two
    surrogate: SurrogateMemory  # of phase two


@register
class Switch(Learner):
    """Steps and projections onto all constraints so far; AdaGrad once the violation has grown too large.

        phase one:  y_t = P_{S_{t−1}}( x_t − η_t ∇f_t(x_t) ),  η_t = D/(G√t)
                    x_{t+1} = P_{S_t}(y_t),  S_t = S_{t−1} ∩ {g_t ≤ 0},  S_0 = K
        phase two:  [`AdaGrad`][cocopt.AdaGrad] (convex, V = 1) from the current x, with Q = 0 and Σ = 0

    Phase two begins, for good, after the round in which CCV₁ = Σ max(0, g_t(x_t)) first exceeds the threshold √T ln T;
    that round still makes the update of phase one. Each trial switches on its own. With D the diameter of K, G bounding
    ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that satisfies every g_t, for the horizon T:

    - Regret_T ≤ 3.5 GD√T + 2GD;
    - CCV₁ is the smaller of an instance-dependent constant and O(√T log T): O(1) if the S_t are balls or parallel
      boxes, in one dimension, or without losses.

    The threshold has no factor GD: set it if the constraints' units are far from 1. Steps are counted in losses.

    Parameters
    ----------
    K : ConvexSet
    horizon : int
        T.
    lipschitz : float
        G.
    start : array (..., n), optional
        x_1 in K; leading axes are trials. Default: the point of K nearest to 0.
    diameter : float, optional
        D. Default: the diameter of K; a finite one is needed.
    threshold : float, optional
        Default: √T ln T.
    on_empty : "raise" or "adagrad"
        If some S_t is empty: raise `InfeasibleRound` and stay (its least violation is that of the rows that could still
        bind), or move those trials to phase two for good. Then that very round already makes the update of phase two,
        and counts as infeasible.
    rows : "all" or "worst"
        With several rows in a round: S_t has all of them, or the largest one at x_t alone (the first on ties).

    References
    ----------
    Vaze and Sinha, "O(√T) static regret and instance dependent constraint violation for constrained online convex
    optimization", NeurIPS 2025.

    Examples
    --------
    >>> from cocopt import Box, Switch, constraints, losses
    >>> learner = Switch(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=2.0, start=[1.0, 1.0])
    >>> for t in range(100):
    ...     record = learner.tell(losses.Distance([1.0, 1.0]), constraints.Affine([0.0, 1.0], 0.5))
    >>> learner.ask(), learner.phase
    (array([1. , 0.5]), np.int64(1))
    """

    name = "switch"
    title = "Switch"
    facts = Facts(
        2025,
        "2 projections onto K and all constraints so far",
        "the authors' paper; constant of the regret derived here",
        convex=Rates.from_sums(Rate(0.5), Rate(0.5, 1.0)),
    )
    grows = True

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        threshold: float | None = None,
        on_empty: Literal["raise", "adagrad"] = "raise",
        rows: Literal["all", "worst"] = "all",
    ) -> None:
        super().__init__(K, start)
        self.on_empty = one_of("on_empty", on_empty, "raise", "adagrad")
        self.rows = one_of("rows", rows, "all", "worst")
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.diameter = optional_scalar("diameter", diameter, positive=True)
        self.threshold = optional_scalar("threshold", threshold, nonnegative=True)
        D = require_diameter(K, self.diameter)
        self._step_scale = D / self.lipschitz
        self._limit = sqrt(self.horizon) * log(self.horizon) if self.threshold is None else self.threshold
        self._surrogate = Surrogate.convex(self.horizon, self.lipschitz, D)

    @classmethod
    def example_options(cls) -> list[dict[str, Any]]:
        both = {"threshold": 1.0, "rows": "worst", "on_empty": "adagrad"}
        return [{"horizon": 100, "lipschitz": 10.0}, {"horizon": 100, "lipschitz": 1.0, **both}]

    @property
    def phase(self) -> Any:
        """1 or 2, one per trial: the phase that the coming round belongs to."""
        return (1 + self.memory.second.astype(np.int64))[()]

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        intersection = PersistentIntersection.begin(self.K, batch, forget=True, archive=False)
        zero = np.zeros(batch)[()]
        second = np.zeros(batch, dtype=bool)
        return _Memory(intersection, CompensatedSum(zero, zero), second, SurrogateMemory.zero(batch))

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        intersection, ccv1, second, surrogate = memory
        x, method = feedback.x, "set"
        step: Any = 0.0
        empty = np.zeros(self.batch, dtype=bool)
        if intersection is not None:
            if feedback.gradient is not None:
                step = self._step_scale / sqrt(feedback.losses)
                x = x - step * feedback.gradient
            intersection, found = intersection.project(x, active=~second)
            if feedback.constraint is not None and feedback.rows is not None:
                required = own_copy(feedback.constraint)
                if self.rows == "worst" and required.row_count > 1:
                    required = required.select_unchecked(feedback.rows.argmax(axis=-1))
                on_empty = "raise" if self.on_empty == "raise" else "nearest"
                intersection, found = intersection.plus(required, ~second).project(found.point, on_empty, ~second)
                empty = empty | ~np.asarray(found.feasible)
            x, method = found.point, found.method
        in_second = second | empty
        if in_second.any():
            other, surrogate, own = self._surrogate.step(self.K.project_unchecked, surrogate, feedback, in_second)
            x, step = np.where(in_second[..., None], other, x), np.where(in_second, own, step)[()]
        if feedback.rows is not None:
            ccv1 = ccv1.plus(np.maximum(feedback.rows.max(axis=-1), 0.0))
        second = in_second | (np.asarray(ccv1.value) > self._limit)
        if second.all():
            intersection = None  # earlier constraints are needed no more
        feasible = ~empty[()] if empty.any() else np.True_
        return Update(x, _Memory(intersection, ccv1, second, surrogate), step, method, feasible)
