"""The surrogate of loss and violation whose gradients AdaGrad, Switch, Lu, OFW, SCOFW and Sarkar follow."""

from __future__ import annotations

from collections.abc import Callable
from math import e, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.algorithms.base import Feedback
from cocopt.arrays import Array, all_finite
from cocopt.errors import InvalidInput
from cocopt.state import NonNegative

__all__ = ["Surrogate", "SurrogateMemory"]

# beyond this λq, Φ continues as a straight line: e^250 is a weight of 10^108, its square still a number
_MAX_EXPONENT = 250.0


class SurrogateMemory(NamedTuple):
    """What the step on the surrogate depends on, one number each per trial."""

    queue: NonNegative  #: Q_t
    squares: NonNegative  #: Σ_{s≤t} ‖n_s‖²

    @classmethod
    def zero(cls, batch: tuple[int, ...]) -> SurrogateMemory:
        """Before the first step."""
        return cls(np.zeros(batch)[()], np.zeros(batch)[()])


class Surrogate(NamedTuple):
    """The surrogate b(V f_t + Φ'(Q_t) g_t^+), and the gradient step on it that `cocopt.AdaGrad` describes."""

    b: float
    V: float
    rate: float  #: λ of Φ(q) = exp(λq) − 1; 0 stands for Φ(q) = q² + slope·q
    step_scale: float = 0.0  #: c of the step c/√Σ; 0 stands for 1/(modulus · t)
    modulus: float = 0.0  #: V m
    slope: float = 0.0

    @classmethod
    def convex(cls, horizon: int, lipschitz: float, diameter: float, weight: float = 1.0) -> Surrogate:
        """For convex losses: Φ(q) = exp(λq) − 1."""
        return cls(1.0 / (2.0 * lipschitz * diameter), weight, 0.5 / sqrt(horizon), diameter / sqrt(2.0))

    @classmethod
    def strongly_convex(cls, horizon: int, lipschitz: float, m: float) -> Surrogate:
        """For m-strongly convex losses: Φ(q) = q²."""
        V = 8.0 * lipschitz * lipschitz * log(e * horizon) / m
        if not 0.0 < V * m < inf:
            raise InvalidInput(f"lipschitz: expected a number with a square that is one, got {lipschitz}")
        return cls(1.0, V, 0.0, 0.0, V * m)

    def weight(self, queue: Array) -> Array:
        """Φ'(q), the weight of a violation."""
        if self.rate == 0.0:
            return 2.0 * queue + self.slope
        weight: Array = self.rate * np.exp(np.minimum(self.rate * queue, _MAX_EXPONENT))
        return weight

    def gradient(self, queue: Array, feedback: Feedback) -> tuple[Array, Array]:
        """Q_t and n_t = V b ∇f_t(x_t) + Φ'(Q_t) b s_t, at the action that was played."""
        x, b = feedback.x, self.b
        n = np.zeros(x.shape) if feedback.gradient is None else self.V * b * feedback.gradient
        if feedback.constraint is not None and feedback.rows is not None and (feedback.rows > 0.0).any():
            violation, subgradient = feedback.largest_row()
            queue = queue + b * violation
            n = n + np.where(violation > 0.0, b * self.weight(queue), 0.0)[..., None] * subgradient
        return queue, n

    def step(
        self, project: Callable[[Array], Array], memory: SurrogateMemory, feedback: Feedback, active: Any = None
    ) -> tuple[Array, SurrogateMemory, Array]:
        """x_{t+1}, the memory after the round, and η_t; ``project`` replaces a point (..., n) by one of K.

        Trials that are not ``active`` keep x and their memory, with η = 0. Nothing is changed in place.
        """
        (queue, squares), x = memory, feedback.x
        summed, n = self.gradient(queue, feedback)
        total = squares
        if self.modulus > 0.0:
            step = np.full(np.shape(queue), 1.0 / (self.modulus * max(feedback.losses, 1)))
        else:
            total = squares + np.vecdot(n, n)
            root = np.sqrt(total)
            if root.all():
                step = self.step_scale / root
            else:  # without a gradient so far there is no direction to step in
                step = np.divide(self.step_scale, root, out=np.zeros(root.shape), where=root > 0.0)
        if not (all_finite(n) and all_finite(total)):
            raise InvalidInput("tell: expected gradients whose squares can be added up, got a sum that overflows")
        if active is not None:
            summed, total = np.where(active, summed, queue), np.where(active, total, squares)
            step = np.where(active, step, 0.0)
        moved = project(x - step[..., None] * n)
        if active is not None:
            moved = np.where(np.expand_dims(active, -1), moved, x)
        return moved, SurrogateMemory(summed, total), step[()]
