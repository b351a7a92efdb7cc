"""Balls."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, scalar
from cocopt.cones import Cones
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, as_center, exceeds_rounding, largest, rounding, unit_vectors
from cocopt.sparse import SparseMatrix

__all__ = ["Ball"]


@register
class Ball(ConvexSet):
    """The Euclidean ball {x : ‖x − center‖ ≤ radius}; radius 0 gives a single point.

    P_K(x) = center + (x − center)·min(1, radius/‖x − center‖). The diameter 2·radius is exact.

    Parameters
    ----------
    center : array (n,), or a number for the same entry in each coordinate
    radius : float
    dim : int, optional
        The dimension, needed when the centre is a number.

    Examples
    --------
    >>> from cocopt import Ball
    >>> K = Ball(0, 1.0, dim=2)
    >>> K.project([[3.0, 4.0], [0.25, 0.5]])
    array([[0.6 , 0.8 ],
           [0.25, 0.5 ]])
    >>> K.diameter
    2.0
    """

    def __init__(self, center: ArrayLike, radius: float, dim: int | None = None) -> None:
        self.radius = scalar("radius", radius, nonnegative=True)
        self.center = as_center(center, dim)
        self.dim = self.center.size
        self._slack = rounding(self.dim, self.radius + float(np.abs(self.center).max()))

    def project_unchecked(self, point: Array) -> Array:
        offset = point - self.center
        norm = np.linalg.norm(offset, axis=-1, keepdims=True)
        outside = norm > self.radius + self._slack
        return np.where(outside, self.center + offset * (self.radius / np.where(outside, norm, 1.0)), point)

    def violation_unchecked(self, point: Array) -> Array:
        excess: Array = np.linalg.norm(point - self.center, axis=-1) - self.radius
        return np.maximum(excess, 0.0)

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        return self.center - self.radius * unit_vectors(direction)

    def separate_unchecked(self, point: Array) -> Array:
        return np.where(exceeds_rounding(self, self.violation_unchecked(point), point), point - self.center, 0.0)

    def project_direction_unchecked(self, vector: Array) -> Array:
        return vector if self.full_dimensional else np.zeros_like(vector)

    @cached_property
    def full_dimensional(self) -> bool:
        return self.radius > 0.0

    @cached_property
    def inner_radius(self) -> float:
        return self.radius

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
        A = SparseMatrix.diagonal(-np.ones(self.dim), empty_rows=1)
        b = np.concatenate([[self.radius], -self.center])
        return Cones(A, b, np.zeros((self.dim + 1, 0)), (("soc", self.dim + 1),))

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.1, -0.2, 0.3], 1.5), cls(0.0, 1.0, dim=1), cls([1.0, 2.0], 0.0)]
