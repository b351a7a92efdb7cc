"""Boxes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_dimension, as_floats, frozen, require_finite
from cocopt.errors import EmptySet, InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral

__all__ = ["Box"]


@register
class Box(ConvexSet):
    """The box {x : lower ≤ x ≤ upper}, bounds infinite where wanted.

    P_K(x) = min(max(x, lower), upper), coordinate by coordinate. The diameter ‖upper − lower‖ is exact.

    Parameters
    ----------
    lower, upper : float or array (n,)
        Bounds; a number stands for the same bound in each coordinate.
    dim : int, optional
        The dimension, needed when both bounds are numbers.

    Examples
    --------
    >>> from cocopt import Box
    >>> K = Box(0.0, 1.0, dim=3)
    >>> K.project([-0.5, 0.25, 7.0])
    array([0.  , 0.25, 1.  ])
    >>> K.contains([0.0, 0.5, 1.0])
    np.True_
    >>> Box(0.0, [3.0, 4.0]).diameter
    5.0
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike, dim: int | None = None) -> None:
        low = require_finite("lower", as_floats("lower", lower), infinities=True)
        high = require_finite("upper", as_floats("upper", upper), infinities=True)
        if dim is None:
            dim = max(low.size, high.size)
            if low.ndim == 0 and high.ndim == 0:
                raise InvalidInput("dim: expected the dimension, since both bounds are numbers, got None")
        dim = as_dimension("dim", dim)
        for name, bound in (("lower", low), ("upper", high)):
            if bound.shape not in ((), (dim,)):
                raise InvalidInput(f"{name}: expected a number or shape ({dim},), got shape {bound.shape}")
        self.dim = dim
        self.lower = frozen(np.broadcast_to(low, (dim,)))
        self.upper = frozen(np.broadcast_to(high, (dim,)))
        crossed = np.flatnonzero(self.lower > self.upper)
        if crossed.size:
            i = int(crossed[0])
            raise EmptySet(f"Box: lower exceeds upper at index ({i},): {self.lower[i]} > {self.upper[i]}")
        for name, bound, bad in (("lower", self.lower, np.inf), ("upper", self.upper, -np.inf)):
            if (bound == bad).any():
                raise EmptySet(f"Box: {name} is {bad} at index ({int(np.argmax(bound == bad))},)")

    def project_unchecked(self, point: Array) -> Array:
        return np.minimum(np.maximum(point, self.lower), self.upper)

    def violation_unchecked(self, point: Array) -> Array:
        excess = np.maximum(self.lower - point, point - self.upper)
        worst: Array = np.maximum(excess.max(axis=-1), 0.0)
        return worst

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        """Where the direction is 0, the lower bound (or a finite point, if it is infinite)."""
        corner = np.where(direction > 0.0, self.lower, np.where(direction < 0.0, self.upper, self._finite_corner))
        if not np.isfinite(corner).all():
            index = tuple(int(i) for i in np.argwhere(~np.isfinite(corner))[0])
            raise InvalidInput(
                f"direction: expected one in which K has a linear minimiser, got {direction[index]} at index {index}, "
                f"along which {self!r} is unbounded"
            )
        return corner

    def separate_unchecked(self, point: Array) -> Array:
        # comparisons with bounds are exact: there is no rounding to allow for
        return np.maximum(point - self.upper, 0.0) - np.maximum(self.lower - point, 0.0)

    def project_direction_unchecked(self, vector: Array) -> Array:
        return vector if self.full_dimensional else np.where(self.lower < self.upper, vector, 0.0)

    @cached_property
    def full_dimensional(self) -> bool:
        return bool((self.lower < self.upper).all())

    @cached_property
    def _finite_corner(self) -> Array:
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        return frozen(np.where(low, self.lower, np.where(high, self.upper, 0.0)))

    @cached_property
    def center(self) -> Array:
        """The middle; in a coordinate with one bound the point `inner_radius` away from it, 0 in one without."""
        low, high = np.isfinite(self.lower), np.isfinite(self.upper)
        inward = np.where(low, self.inner_radius, np.where(high, -self.inner_radius, 0.0))
        middle = np.where(low, self.lower, 0.0) / 2 + np.where(high, self.upper, 0.0) / 2
        return frozen(np.where(low & high, middle, self._finite_corner + inward))

    @cached_property
    def inner_radius(self) -> float:
        half = self.upper / 2 - self.lower / 2
        positive = half[half > 0.0]
        if positive.size == 0:
            return 0.0
        least = float(positive.min())
        return least if np.isfinite(least) else self.scale

    @cached_property
    def outer_radius(self) -> float:
        return float(np.linalg.norm(self.upper / 2 - self.lower / 2))

    @property
    def diameter(self) -> float:
        return float(np.linalg.norm(self.upper - self.lower))

    @cached_property
    def scale(self) -> float:
        return float(self._lengths.max(initial=0.0)) or 1.0

    @property
    def sized(self) -> bool:
        return self._lengths.size > 0

    @cached_property
    def _lengths(self) -> Array:
        """The bounds that say something of the size of K."""
        bounds = np.abs(np.concatenate([self.lower, self.upper]))
        lengths: Array = bounds[(bounds > 0) & (bounds < 1e20)]  # beyond 1e20 a bound stands for "none"
        return lengths

    def polyhedral(self) -> Polyhedral:
        return self._polyhedral

    @cached_property
    def _polyhedral(self) -> Polyhedral:
        return Polyhedral(self.lower, self.upper, np.zeros((0, self.dim)), np.zeros(0))

    def parameters(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper, "dim": self.dim}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(0.0, 1.0, dim=3), cls([-np.inf, 0.0], [1.0, np.inf]), cls([0.0, 2.0], [1.0, 2.0])]
