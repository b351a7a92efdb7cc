"""Halfspaces."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, frozen, require_finite, scalar
from cocopt.errors import EmptySet, InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral, largest, rounding

__all__ = ["Halfspace"]


@register
class Halfspace(ConvexSet):
    """The halfspace {x : ⟨a, x⟩ ≤ b}, unbounded.

    P_K(x) = x − max(⟨a, x⟩ − b, 0)·a/‖a‖².

    Parameters
    ----------
    a : array (n,), not zero
    b : float

    Examples
    --------
    >>> from cocopt import Halfspace
    >>> K = Halfspace([3.0, 4.0], 5.0)
    >>> K.project([3.0, 4.0])
    array([0.6, 0.8])
    >>> K.violation([3.0, 4.0])
    np.float64(4.0)
    """

    def __init__(self, a: ArrayLike, b: float) -> None:
        normal = require_finite("a", as_floats("a", a))
        if normal.ndim != 1:
            raise InvalidInput(f"a: expected shape (n,), got {normal.shape}")
        self.a, self.b = frozen(normal), scalar("b", b)
        self.dim = self.a.size
        if not self.a.any():
            if self.b < 0:
                raise EmptySet(f"Halfspace: a is zero and b is negative: 0 ≤ {self.b} holds nowhere")
            raise InvalidInput("a: expected a vector that is not zero, got zero: K would be the whole space")
        size = np.abs(self.a).max()  # scaled first, so that no square underflows or overflows
        norm = size * np.linalg.norm(self.a / size)
        self._unit, self._offset = frozen(self.a / norm), float(self.b / norm)

    def project_unchecked(self, point: Array) -> Array:
        noise = rounding(self.dim, 1.0) * (np.vecdot(np.abs(point), np.abs(self._unit)) + abs(self._offset))
        outside = np.asarray(np.vecdot(point, self._unit) - self._offset > noise)[..., None]
        x = point
        for _ in range(3):  # from far away a step rounds coarsely, to either side; the next ones correct it
            x = x - (np.vecdot(x, self._unit) - self._offset)[..., None] * self._unit
        return np.where(outside, x, point)

    def violation_unchecked(self, point: Array) -> Array:
        excess: Array = np.maximum(np.vecdot(point, self._unit) - self._offset, 0.0)
        return excess

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        """The point of the boundary nearest to 0 for directions −λa, λ ≥ 0; an error for all others."""
        slope = np.vecdot(direction, self._unit)
        across = np.linalg.norm(direction - slope[..., None] * self._unit, axis=-1)
        unbounded = (slope > 0.0) | (across > rounding(self.dim, 1.0) * np.abs(direction).max(axis=-1))
        if unbounded.any():
            index = tuple(int(i) for i in np.argwhere(unbounded)[0])
            raise InvalidInput(
                f"direction: expected one in which K has a linear minimiser, got {direction[index]}, "
                f"along which {self!r} is unbounded"
            )
        return np.broadcast_to(self._offset * self._unit, direction.shape).copy()

    def separate_unchecked(self, point: Array) -> Array:
        noise = rounding(self.dim, 1.0) * (np.vecdot(np.abs(point), np.abs(self._unit)) + abs(self._offset))
        outside = np.vecdot(point, self._unit) - self._offset > noise
        return np.where(np.asarray(outside)[..., None], self._unit, 0.0)

    def project_direction_unchecked(self, vector: Array) -> Array:
        return vector

    @cached_property
    def full_dimensional(self) -> bool:
        return True

    @cached_property
    def center(self) -> Array:
        """A point at the distance `inner_radius` from the boundary."""
        return frozen((self._offset - self.inner_radius) * self._unit)

    @cached_property
    def inner_radius(self) -> float:
        return self.scale

    @cached_property
    def outer_radius(self) -> float:
        return float("inf")

    @cached_property
    def scale(self) -> float:
        return largest(self._offset)

    @property
    def sized(self) -> bool:
        return self._offset != 0.0

    def polyhedral(self) -> Polyhedral:
        return self._polyhedral

    @cached_property
    def _polyhedral(self) -> Polyhedral:
        free = np.full(self.dim, np.inf)
        return Polyhedral(-free, free, self._unit[None, :], np.array([self._offset])).frozen()

    def parameters(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([1.0, 2.0], 3.0)]
