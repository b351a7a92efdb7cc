"""Simplices with upper bounds."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_dimension, as_floats, frozen, require_finite, scalar
from cocopt.errors import EmptySet, InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral, exceeds_rounding, rounding

__all__ = ["CappedSimplex"]


@register
class CappedSimplex(ConvexSet):
    """The simplex with upper bounds {x : 0 ≤ x ≤ caps, Σ x_i = total}: portfolios with position limits.

    P_K(x) = min(max(x − θ, 0), caps) with the θ that makes the sum equal to the total, found by sorting the 2n points
    at which the sum, as a function of θ, has a kink. The linear minimiser fills the coordinates up to their caps, the
    cheapest first. The diameter is an upper bound: the smaller of total·√2 and the diagonal of the bounding box.

    Parameters
    ----------
    dim : int
    caps : float or array (n,)
        Non-negative upper bounds, whose sum is at least the total; a number stands for the same bound in each
        coordinate, +inf for none.
    total : float, default 1

    Examples
    --------
    >>> from cocopt import CappedSimplex
    >>> K = CappedSimplex(3, 0.5)
    >>> K.project([1.0, 0.25, -1.0])
    array([0.5, 0.5, 0. ])
    >>> K.minimise_linear([3.0, 1.0, 2.0])
    array([0. , 0.5, 0.5])
    """

    def __init__(self, dim: int, caps: ArrayLike, total: float = 1.0) -> None:
        self.dim = as_dimension("dim", dim)
        self.total = scalar("total", total, positive=True)
        bounds = require_finite("caps", as_floats("caps", caps), infinities=True)
        if bounds.shape not in ((), (self.dim,)):
            raise InvalidInput(f"caps: expected a number or shape ({self.dim},), got shape {bounds.shape}")
        if bounds.min() < 0.0:
            raise InvalidInput(f"caps: expected non-negative numbers, got {bounds.min()}")
        self.caps = frozen(np.broadcast_to(bounds, (self.dim,)))
        upper = np.minimum(self.caps, self.total)
        most = float(upper.sum())
        self._slack = rounding(self.dim, self.total)
        if most < self.total - self._slack:
            raise EmptySet(f"CappedSimplex: the sum of caps is below the total: {most} < {self.total}")
        self._upper = frozen(upper * max(1.0, self.total / most))  # a sum that rounding has made too small

    def project_unchecked(self, point: Array) -> Array:
        outside = self.violation_unchecked(point) > self._slack / sqrt(self.dim)
        outside |= (point < 0.0).any(axis=-1) | (point > self._upper).any(axis=-1)
        return np.where(outside[..., None], project_capped_simplex(point, self._upper, self.total), point)

    def violation_unchecked(self, point: Array) -> Array:
        off_plane = np.abs(point.sum(axis=-1) - self.total) / sqrt(self.dim)
        beyond = np.maximum(-point, point - self._upper).max(axis=-1)
        worst: Array = np.maximum(off_plane, beyond)
        return worst

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        cheapest = np.argsort(direction, axis=-1, kind="stable")
        room = self._upper[cheapest]
        left = np.maximum(self.total - (np.cumsum(room, axis=-1) - room), 0.0)
        x = np.empty(direction.shape)
        np.put_along_axis(x, cheapest, np.minimum(room, left), axis=-1)
        return x

    def separate_unchecked(self, point: Array) -> Array:
        excess = point.sum(axis=-1, keepdims=True) - self.total
        beyond = np.maximum(-point, point - self._upper)
        worst = beyond.argmax(axis=-1)[..., None]
        side = np.where(point < 0.0, -1.0, 1.0)
        facet = np.where(np.arange(self.dim) == worst, side, 0.0)
        off_plane = np.abs(excess) / sqrt(self.dim) > beyond.max(axis=-1, keepdims=True)
        normal = np.where(off_plane, np.sign(excess), facet)
        return np.where(exceeds_rounding(self, self.violation_unchecked(point), point), normal, 0.0)

    @property
    def diameter(self) -> float:
        """An upper bound of max ‖x − y‖: the smaller of total·√2 and the diagonal of the bounding box."""
        lower = np.maximum(self.total - (self._upper.sum() - self._upper), 0.0)
        diagonal = float(np.linalg.norm(np.maximum(self._upper - lower, 0.0)))
        return min(self.total * sqrt(2), diagonal)

    @cached_property
    def scale(self) -> float:
        return self.total

    def polyhedral(self) -> Polyhedral:
        return self._polyhedral

    @cached_property
    def _polyhedral(self) -> Polyhedral:
        lower, row = np.zeros(self.dim), np.ones((1, self.dim))
        return Polyhedral(lower, self._upper, row, np.array([self.total]), equalities=1).frozen()

    def parameters(self) -> dict[str, Any]:
        return {"dim": self.dim, "caps": self.caps, "total": self.total}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(3, 0.5), cls(4, [0.25, np.inf, 0.0, 1.5], total=2.0), cls(2, [0.5, 0.5])]


def project_capped_simplex(point: Array, upper: Array, total: float) -> Array:
    """argmin of ‖x − point‖ over 0 ≤ x ≤ upper with Σ x_i = total, for each point (..., n); upper ≤ total ≤ Σ upper."""
    # Only differences of entries matter, and those above the total as much as the total itself, since no bound is
    # larger: entries of any size keep their digits.
    order = np.argsort(-point, axis=-1)
    falling = np.take_along_axis(point, order, axis=-1)
    drop = np.minimum(falling[..., :-1] - falling[..., 1:], total)
    y = np.zeros(point.shape)
    np.put_along_axis(y, order[..., 1:], -np.cumsum(drop, axis=-1), axis=-1)
    # As θ falls, entry i begins to grow at y_i and ends at y_i − upper_i; between kinks the sum is linear.
    kinks = np.concatenate([y, y - upper], axis=-1)
    change = np.concatenate([np.ones(y.shape), -np.ones(y.shape)], axis=-1)
    order = np.argsort(-kinks, axis=-1, kind="stable")
    kinks, growing = np.take_along_axis(kinks, order, -1), np.cumsum(np.take_along_axis(change, order, -1), axis=-1)
    sums = np.cumsum(growing[..., :-1] * (kinks[..., :-1] - kinks[..., 1:]), axis=-1)
    before = np.minimum((sums < total).sum(axis=-1, keepdims=True), sums.shape[-1] - 1)
    reached, slope = np.take_along_axis(sums, before, -1), np.take_along_axis(growing, before, -1)
    theta = np.take_along_axis(kinks, before + 1, -1) + np.maximum(reached - total, 0.0) / np.maximum(slope, 1.0)
    x: Array = np.clip(y - theta, 0.0, upper)
    # One Newton step takes away what the long cumulative sums have rounded.
    free = (x > 0.0) & (x < upper)
    error = (x.sum(axis=-1, keepdims=True) - total) / np.maximum(free.sum(axis=-1, keepdims=True), 1)
    return np.where(free, np.clip(x - error, 0.0, upper), x)
