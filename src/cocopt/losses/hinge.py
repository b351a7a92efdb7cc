"""The hinge loss."""

from __future__ import annotations

from typing import Self

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
)
from cocopt.losses.base import Loss, as_labelled
from cocopt.losses.second_order import Kink, Neighborhood, SecondOrder, leading_entries, merge_equal_kinks
from cocopt.registry import register
from cocopt.tolerances import TINY

__all__ = ["Hinge"]


@register
class Hinge(Loss):
    """f(x) = max(0, 1 − v⟨u, x⟩), the loss of the support vector machine.

    The subgradient is −v u where the margin v⟨u, x⟩ is below 1, and 0 elsewhere, the kink included.

    Parameters
    ----------
    u : array (..., n)
        Features.
    v : float or array (...)
        Labels, ±1 or any real numbers.

    Examples
    --------
    >>> from cocopt import losses
    >>> f = losses.Hinge([1.0, 2.0], -1.0)
    >>> f.value([1.0, 0.5])
    np.float64(3.0)
    >>> f.gradient([1.0, 0.5])
    array([1., 2.])
    """

    __slots__ = ("batch", "dim", "u", "v")

    data_axes = (1, 0)

    def __init__(self, u: ArrayLike, v: ArrayLike) -> None:
        self.u, self.v, self.batch = as_labelled(u, v)
        self.dim: int = self.u.shape[-1]

    def value_and_gradient_unchecked(self, x: Array) -> tuple[Array, Array]:
        loss = 1.0 - self.v * np.vecdot(x, self.u)
        slope: Array = -self.v * (loss > 0)
        return np.maximum(loss, 0.0), slope[..., None] * self.u

    def data_arrays(self) -> list[tuple[str, Array]]:
        return [("u", self.u), ("v", self.v)]

    nonnegative = True

    def second_order(
        self, x: Array, count: int, smoothing: float, exact_kinks: Neighborhood | None = None
    ) -> SecondOrder:
        """max(0, s) ≥ p s if 0 ≤ p ≤ 1; smoothed to (s + √(s² + μ²))/2; with an exact kink: s/2 + |s|/2."""
        weight, u = leading_entries(self.batch, count, self.u, 1)
        v = leading_entries(self.batch, count, self.v, 0)[1]
        s = 1.0 - v * np.vecdot(u, x)
        root = np.sqrt(s**2 + smoothing**2) + TINY
        p = 0.5 * (1.0 + s / root)
        curvature = 0.5 * (v * smoothing / root) ** 2 / root
        kinks: tuple[Kink, ...] = ()
        if exact_kinks is not None:
            rows = np.broadcast_to(v[:, None] * u, (len(s), x.size))
            near = np.abs(1.0 - rows @ exact_kinks.point) <= exact_kinks.radius
            kinks = merge_equal_kinks(0.5 * weight * rows[near][:, None, :], np.full((near.sum(), 1), 0.5 * weight))
            p, curvature = np.where(near, 0.5, p), np.where(near, 0.0, curvature)
        return SecondOrder(
            weight * float(np.maximum(s, 0.0).sum()),
            minorant=weight * float((p * s).sum()),
            smoothed=weight * float(0.5 * (s + root).sum()),
            gradient=-weight * (p * v) @ u,
            hessian=weight * (u.T * curvature) @ u,
            kinks=kinks,
        )

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, -2.0], 1.0), cls([[1.0, 0.5], [0.0, 3.0]], [-1.0, 1.0])]
