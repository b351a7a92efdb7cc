"""The surrogate of loss and violation that AdaGrad and Switch take gradient steps on."""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, all_finite
from cocopt.errors import InvalidInput
from cocopt.sets.base import ConvexSet

__all__ = ["Surrogate", "adagrad_step"]

# beyond this λq, Φ continues as a straight line: e^250 is a weight of 10^108, its square still a number
_MAX_EXPONENT = 250.0


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

    def weight(self, queue: Array) -> Array:
        """Φ'(q), the weight of a violation."""
        if self.rate == 0.0:
            return 2.0 * queue
        weight: Array = self.rate * np.exp(np.minimum(self.rate * queue, _MAX_EXPONENT))
        return weight


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
    """(x_{t+1}, Q_t, Σ_{s≤t} ‖n_s‖², η_t) from ∇f_t(x_t), v_t, s_t, Q_{t−1} and Σ_{s<t} ‖n_s‖², one each per trial.

    None stands for what a round did not reveal; s_t counts only where v_t > 0. ``t`` matters to the strongly convex
    form alone. Trials that are not ``active`` keep x, Q and Σ, with η = 0. Nothing is changed in place.
    """
    b, V = surrogate.b, surrogate.V
    n = np.zeros(1) if gradient is None else V * b * gradient
    summed, total = queue, squares
    if violation is not None and subgradient is not None:
        summed = queue + b * violation
        n = n + np.where(violation > 0.0, b * surrogate.weight(summed), 0.0)[..., None] * subgradient
    if surrogate.modulus > 0.0:
        step = np.full(np.shape(queue), 1.0 / (surrogate.modulus * t))
    else:
        total = squares + np.vecdot(n, n)
        root = np.sqrt(total)
        if root.all():
            step = surrogate.reach / root
        else:  # without a gradient so far there is no direction to step in
            step = np.divide(surrogate.reach, root, out=np.zeros(root.shape), where=root > 0.0)
    if not (all_finite(n) and all_finite(total)):
        raise InvalidInput("tell: expected gradients whose squares can be added up, got a sum that overflows")
    if active is not None:
        summed, total = np.where(active, summed, queue), np.where(active, total, squares)
        step = np.where(active, step, 0.0)
    moved = K.project_unchecked(x - step[..., None] * n)
    if active is not None:
        moved = np.where(np.expand_dims(active, -1), moved, x)
    return moved, summed, total, step[()]
