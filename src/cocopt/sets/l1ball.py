"""Balls of the 1-norm."""

from __future__ import annotations

from functools import cached_property
from math import sqrt
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, scalar
from cocopt.cones import Cones, absolute_values, sum_of_auxiliary
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, as_center, exceeds_rounding, largest, rounding
from cocopt.sets.simplex import project_simplex
from cocopt.sparse import SparseMatrix

__all__ = ["L1Ball"]


@register
class L1Ball(ConvexSet):
    """The 1-norm ball {x : Σ |x_i − c_i| ≤ radius}; radius 0 gives a single point.

    Outside, P_K(x) = c + sign(x − c)·p, where p projects |x − c| onto the simplex of total ``radius``
    (Duchi et al. 2008). The diameter 2·radius is exact. The violation is the distance to the worst facet's plane.

    Parameters
    ----------
    center : array (n,), or a number for the same entry in each coordinate
    radius : float
    dim : int, optional
        The dimension, needed when the centre is a number.

    Examples
    --------
    >>> from cocopt import L1Ball
    >>> L1Ball(0, 1.0, dim=3).project([2.0, -1.5, 0.25])
    array([ 0.75, -0.25,  0.  ])
    """

    def __init__(self, center: ArrayLike, radius: float, dim: int | None = None) -> None:
        self.radius = scalar("radius", radius, nonnegative=True)
        self.center = as_center(center, dim)
        self.dim = self.center.size
        self._slack = rounding(self.dim, self.radius + float(np.abs(self.center).max()))

    def project_unchecked(self, point: Array) -> Array:
        offset = point - self.center
        nearest = self.center + np.copysign(project_simplex(np.abs(offset), self.radius), offset)
        return np.where((self.violation_unchecked(point) > self._slack)[..., None], nearest, point)

    def violation_unchecked(self, point: Array) -> Array:
        excess = np.abs(point - self.center).sum(axis=-1) - self.radius
        distance: Array = np.maximum(excess / np.sqrt(self.dim), 0.0)
        return distance

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        best = np.abs(direction).argmax(axis=-1)[..., None]  # the first of several
        away = np.where(direction > 0.0, -self.radius, self.radius)
        return self.center + np.where(np.arange(self.dim) == best, away, 0.0)

    def separate_unchecked(self, point: Array) -> Array:
        outside = exceeds_rounding(self, self.violation_unchecked(point), point)
        return np.where(outside, np.sign(point - self.center), 0.0)

    def project_direction_unchecked(self, vector: Array) -> Array:
        return vector if self.full_dimensional else np.zeros_like(vector)

    @cached_property
    def full_dimensional(self) -> bool:
        return self.radius > 0.0

    @cached_property
    def inner_radius(self) -> float:
        return self.radius / sqrt(self.dim)

    @cached_property
    def outer_radius(self) -> float:
        return self.radius

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    @cached_property
    def scale(self) -> float:
        return largest(self.center, self.radius)

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        n = self.dim  # |x − c| ≤ u, Σ u ≤ radius
        A = SparseMatrix.stacked([absolute_values(n), sum_of_auxiliary(n)])
        b = np.concatenate([self.center, -self.center, [self.radius]])
        return Cones(A, b, np.zeros((2 * n + 1, 0)), (("nonneg", 2 * n + 1),), aux=n)

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.0, 1.0, -1.0], 2.0), cls([1.0, 2.0], 0.0)]
