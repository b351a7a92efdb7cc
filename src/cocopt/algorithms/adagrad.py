"""AdaGrad of Sinha and Vaze: one gradient step on a surrogate of loss and violation."""

from __future__ import annotations

from collections.abc import Mapping
from math import e, log, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from cocopt.algorithms.base import Arrays, Feedback, Learner, Update, checked_rows
from cocopt.arrays import Array, ArrayLike, all_finite, positive_int, scalar
from cocopt.errors import InvalidInput
from cocopt.geometry.cutter import largest_row
from cocopt.sets.base import ConvexSet
from cocopt.theory import Bounds, bounds_adagrad

__all__ = ["AdaGrad", "Surrogate", "adagrad_step"]

_EXPONENT = (
    250.0  # beyond this λq, Φ goes on as a straight line: e^250 is a weight of 10^108, its square still a number
)


class Surrogate(NamedTuple):
    """The parameters of the surrogate b(V f_t + Φ'(Q_t) g_t^+) and of the step on it."""

    b: float
    V: float
    rate: float  #: λ of Φ(q) = exp(λq) − 1; 0 stands for Φ(q) = q²
    reach: float  #: c of the step c/√Σ; 0 stands for 1/(modulus · t)
    modulus: float = 0.0  #: V m

    @classmethod
    def convex(cls, horizon: int, lipschitz: float, diameter: float, weight: float = 1.0) -> Surrogate:
        """For convex losses: Φ(q) = exp(λq) − 1."""
        return cls(1.0 / (2.0 * lipschitz * diameter), weight, 0.5 / sqrt(horizon), diameter / sqrt(2.0))

    @classmethod
    def strongly_convex(cls, horizon: int, lipschitz: float, m: float) -> Surrogate:
        """For m-strongly convex losses: Φ(q) = q²."""
        V = 8.0 * lipschitz**2 * log(e * horizon) / m
        return cls(1.0, V, 0.0, 0.0, V * m)

    def price(self, queue: Array) -> Array:
        """Φ'(q)."""
        if self.rate == 0.0:
            return 2.0 * queue
        price: Array = self.rate * np.exp(np.minimum(self.rate * queue, _EXPONENT))
        return price


def adagrad_step(
    K: ConvexSet,
    surrogate: Surrogate,
    x: Array,
    gradient: Array | None,
    violation: Array | None,
    subgradient: Array | None,
    queue: Array,
    squares: Array,
    *,
    t: int = 1,
    active: Any = None,
) -> tuple[Array, Array, Array, Array]:
    """(x_{t+1}, Q_t, Σ_{s≤t} ‖n_s‖², η_t) from ∇f_t(x_t), v_t, s_t, Q_{t−1} and Σ_{s<t} ‖n_s‖², one each a trial.

    None stands for what a round did not reveal; s_t counts only where v_t > 0. ``t`` matters to the strongly convex
    form alone. Trials that are not ``active`` keep x, Q and Σ, with η = 0. Nothing is changed in place.
    """
    b, V = surrogate.b, surrogate.V
    n = np.zeros(1) if gradient is None else V * b * gradient
    summed, total = queue, squares
    if violation is not None and subgradient is not None:
        summed = queue + b * violation
        n = n + np.where(violation > 0.0, b * surrogate.price(summed), 0.0)[..., None] * subgradient
    if surrogate.modulus > 0.0:
        step = np.full(np.shape(queue), 1.0 / (surrogate.modulus * t))
    else:
        total = squares + np.vecdot(n, n)
        step = np.where(total > 0.0, surrogate.reach / np.sqrt(total), 0.0)
    if not (all_finite(n) and all_finite(total)):
        raise InvalidInput("tell: expected gradients whose squares can be added up, got a sum that overflows")
    if active is not None:
        summed, total = np.where(active, summed, queue), np.where(active, total, squares)
        step = np.where(active, step, 0.0)
    moved = K.project_unchecked(x - step[..., None] * n)
    if active is not None:
        moved = np.where(np.expand_dims(active, -1), moved, x)
    return moved, summed, total, step[()]


class _Memory(NamedTuple):
    losses: int  # rounds that revealed a loss
    queue: Array  # Q_t
    squares: Array  # Σ ‖n_s‖²


class AdaGrad(Learner):
    """One gradient step on a surrogate in which the violation so far sets the price of the next.

        Q_t = Q_{t−1} + b v_t
        n_t = V b ∇f_t(x_t) + Φ'(Q_t) b s_t
        x_{t+1} = P_K( x_t − η_t n_t )

    with v_t = max(0, g_t(x_t)) and s_t a subgradient of g_t at x_t, 0 if v_t = 0. With D the diameter of K and G
    bounding ‖∇f_t‖ and ‖∇g_t‖ on K, and some x in K that satisfies every g_t, for every t up to the horizon T:

    ================ ============================================ ==============================================
    form             convex losses                                m-strongly convex losses
    ================ ============================================ ==============================================
    b, V             1/(2GD), ``weight``                          1, 8G² ln(eT)/m
    Φ(q)             exp(λq) − 1, λ = 1/(2√T)                     q²
    η_t              D/√(2 Σ_{s≤t} ‖n_s‖²)                        1/(V m t)
    Regret_t ≤       2GD(√t + 1/V)                                (G²/m)(1 + ln t)
    CCV₁ ≤           4GD√T ln(2(1 + 2Vt))                         4G√(GDt ln(eT)/m) + 4G² ln(eT)/m
    ================ ============================================ ==============================================

    With V = 1 the price λ exp(λQ) of a violation stays far below the loss's own weight at practical horizons, until
    CCV₁ comes near 4GD√T ln(2√T): this is why the method violates so much in CLASP's figures. ``weight=T**-0.5``
    starts the price at half the weight of the loss, for Regret_t ≤ 2GD(√t + √T) and CCV₁ ≤ 4GD√T ln(2(1 + 2√T)).

    With several rows in a round g_t is their maximum and s_t a subgradient of the largest at x_t, so that both
    choices of ``rows`` are the same. A round without a loss contributes its violation alone; the t of 1/(V m t) counts
    losses. Beyond the horizon the same formula goes on, but the guarantees end. The price cannot overflow: from
    λq = 250 on Φ continues as a straight line, which leaves it convex and increasing.

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
        D. Default: the diameter of K; the convex form needs a finite one.
    strong_convexity : float, optional
        m, which must hold for every loss; chooses the strongly convex form.
    weight : float
        V of the convex form.
    rows : "all" or "worst"
        As for the other algorithms; here all that counts is the largest row either way.

    References
    ----------
    Sinha and Vaze, "Optimal algorithms for online convex optimization with adversarial constraints", NeurIPS 2024.

    Examples
    --------
    >>> from cocopt import AdaGrad, Box, constraints, losses
    >>> learner = AdaGrad(Box(0.0, 1.0, dim=2), horizon=100, lipschitz=2.0, start=[1.0, 1.0], weight=0.1)
    >>> for t in range(100):
    ...     record = learner.tell(losses.Distance([0.0, 1.0]), constraints.Affine([0.0, 1.0], 0.5))
    >>> learner.ask().round(2)
    array([0. , 0.6])
    """

    def __init__(
        self,
        K: ConvexSet,
        horizon: int,
        lipschitz: float,
        *,
        start: ArrayLike | None = None,
        diameter: float | None = None,
        strong_convexity: float | None = None,
        weight: float = 1.0,
        rows: Literal["all", "worst"] = "all",
    ) -> None:
        super().__init__(K, start)
        self.rows = checked_rows(rows)
        self.horizon = positive_int("horizon", horizon)
        self.lipschitz = scalar("lipschitz", lipschitz, positive=True)
        self.weight = scalar("weight", weight, positive=True)
        self.diameter = None if diameter is None else scalar("diameter", diameter, positive=True)
        self.strong_convexity = (
            None if strong_convexity is None else scalar("strong_convexity", strong_convexity, positive=True)
        )
        self._D = K.diameter if self.diameter is None else self.diameter
        if self.strong_convexity is not None:
            if self.weight != 1.0:
                raise InvalidInput(
                    f"weight: expected 1.0, since the strongly convex form sets its own, got {self.weight}"
                )
            self._surrogate = Surrogate.strongly_convex(self.horizon, self.lipschitz, self.strong_convexity)
        else:
            if not 0.0 < self._D < np.inf:
                raise InvalidInput(
                    f"diameter: expected a positive number, since that of K is {self._D}, got {diameter}"
                )
            self._surrogate = Surrogate.convex(self.horizon, self.lipschitz, self._D, self.weight)

    def bounds(self, T: ArrayLike, *, lipschitz_f: float, lipschitz_g: float) -> Bounds:
        """What is promised for the first T rounds, see [`cocopt.theory.bounds_adagrad`][]; T up to the horizon."""
        for name, constant in (("lipschitz_f", lipschitz_f), ("lipschitz_g", lipschitz_g)):
            if scalar(name, constant, nonnegative=True) > self.lipschitz:
                raise InvalidInput(
                    f"{name}: expected at most the {self.lipschitz} told at construction, got {constant}"
                )
        return bounds_adagrad(
            T,
            horizon=self.horizon,
            diameter=self._D,
            lipschitz=self.lipschitz,
            strong_convexity=self.strong_convexity,
            weight=self.weight,
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "K": self.K,
            "horizon": self.horizon,
            "lipschitz": self.lipschitz,
            "diameter": self.diameter,
            "strong_convexity": self.strong_convexity,
            "weight": self.weight,
            "rows": self.rows,
        }

    def initial_memory(self, batch: tuple[int, ...]) -> _Memory:
        return _Memory(0, np.zeros(batch)[()], np.zeros(batch)[()])

    def update(self, memory: _Memory, feedback: Feedback) -> Update:
        losses, queue, squares = memory
        losses += feedback.gradient is not None
        violation = subgradient = None
        if feedback.constraint is not None and feedback.rows is not None and (feedback.rows > 0.0).any():
            violation, subgradient = largest_row(feedback.constraint, feedback.x, feedback.rows)
        x, queue, squares, step = adagrad_step(
            self.K,
            self._surrogate,
            feedback.x,
            feedback.gradient,
            violation,
            subgradient,
            queue,
            squares,
            t=max(losses, 1),
        )
        return Update(x, _Memory(losses, queue, squares), step)

    def _store(self, memory: _Memory) -> tuple[dict[str, Any], Arrays]:
        return {"losses": memory.losses}, {"queue": np.asarray(memory.queue), "squares": np.asarray(memory.squares)}

    def _restore(self, plain: Mapping[str, Any], arrays: Arrays) -> _Memory:
        return _Memory(plain["losses"], arrays["queue"][()], arrays["squares"][()])
