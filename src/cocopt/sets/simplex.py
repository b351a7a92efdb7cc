"""Simplices."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, as_dimension, frozen, scalar
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral, exceeds_rounding, rounding

__all__ = ["Simplex"]


@register
class Simplex(ConvexSet):
    """The simplex {x ≥ 0 : Σ x_i = total}.

    P_K(x) = max(x − θ, 0) with the θ that makes the sum right, found by sorting (Duchi et al. 2008).
    The diameter total·√2 (0 for n = 1) is exact.

    Parameters
    ----------
    dim : int
    total : float, default 1

    Examples
    --------
    >>> from cocopt import Simplex
    >>> K = Simplex(3)
    >>> K.project([0.5, 0.75, -2.0])
    array([0.375, 0.625, 0.   ])
    >>> K.contains([0.5, 0.5, 0.5])
    np.False_
    """

    def __init__(self, dim: int, total: float = 1.0) -> None:
        self.dim = as_dimension("dim", dim)
        self.total = scalar("total", total, positive=True)
        self._slack = rounding(self.dim, self.total)

    def project_unchecked(self, point: Array) -> Array:
        outside = (point < 0).any(axis=-1) | (np.abs(point.sum(axis=-1) - self.total) > self._slack)
        return np.where(outside[..., None], project_simplex(point, self.total), point)

    def violation_unchecked(self, point: Array) -> Array:
        off_plane = np.abs(point.sum(axis=-1) - self.total) / np.sqrt(self.dim)
        worst: Array = np.maximum(off_plane, (-point).max(axis=-1))
        return worst

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        best = direction.argmin(axis=-1)[..., None]  # the first of several
        return np.where(np.arange(self.dim) == best, self.total, 0.0)

    def separate_unchecked(self, point: Array) -> Array:
        excess, worst = point.sum(axis=-1) - self.total, point.argmin(axis=-1)[..., None]
        off_plane = np.abs(excess) / sqrt(self.dim) > -point.min(axis=-1)
        facet = np.where(np.arange(self.dim) == worst, -1.0, 0.0)
        normal = np.where(off_plane[..., None], np.sign(excess)[..., None], facet)
        return np.where(exceeds_rounding(self, self.violation_unchecked(point), point), normal, 0.0)

    def project_direction_unchecked(self, vector: Array) -> Array:
        along: Array = vector - vector.mean(axis=-1, keepdims=True)
        return along

    @cached_property
    def full_dimensional(self) -> bool:
        return False

    @cached_property
    def center(self) -> Array:
        return frozen(np.full(self.dim, self.total / self.dim))

    @cached_property
    def inner_radius(self) -> float:
        return self.total / sqrt(self.dim * (self.dim - 1)) if self.dim > 1 else 0.0

    @cached_property
    def outer_radius(self) -> float:
        return self.total * sqrt((self.dim - 1) / self.dim)

    @property
    def diameter(self) -> float:
        return self.total * sqrt(2) if self.dim > 1 else 0.0

    @cached_property
    def scale(self) -> float:
        return self.total

    def polyhedral(self) -> Polyhedral:
        return self._polyhedral

    @cached_property
    def _polyhedral(self) -> Polyhedral:
        lower, upper = np.zeros(self.dim), np.full(self.dim, np.inf)
        return Polyhedral(lower, upper, np.ones((1, self.dim)), np.array([self.total]), equalities=1).frozen()

    def parameters(self) -> dict[str, Any]:
        return {"dim": self.dim, "total": self.total}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(3), cls(4, total=2.0), cls(1)]


def project_simplex(point: Array, total: float) -> Array:
    """argmin of ‖x − point‖ over x ≥ 0 with Σ x_i = total ≥ 0, for each point (..., n)."""
    # Entries more than `total` below the largest become zero; measured from the largest, the others keep their digits.
    gap = np.maximum(point - point.max(axis=-1, keepdims=True), -total)
    falling = -np.sort(-gap, axis=-1)
    surplus = np.cumsum(falling, axis=-1) - total
    kept = (falling * np.arange(1, point.shape[-1] + 1) > surplus).sum(axis=-1, keepdims=True)
    kept = np.maximum(kept, 1)  # total = 0 keeps none
    x = np.maximum(gap - np.take_along_axis(surplus, kept - 1, axis=-1) / kept, 0.0)
    # One Newton step on the support takes away what the long cumulative sum has rounded.
    support = np.maximum((x > 0).sum(axis=-1, keepdims=True), 1)
    return np.where(x > 0, np.maximum(x - (x.sum(axis=-1, keepdims=True) - total) / support, 0.0), 0.0)
