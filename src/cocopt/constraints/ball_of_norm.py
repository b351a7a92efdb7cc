"""What the balls of the Euclidean norm, the 1-norm and the maximum norm share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, batch_shape, broadcast
from cocopt.cones import Cones
from cocopt.constraints.base import Constraint, data_batch_shape, finite_part, no_cones, take
from cocopt.errors import InvalidInput

__all__ = ["BallOfNorm"]


class BallOfNorm(Constraint):
    """g(x) = norm(x − center) − radius for a norm that the subclass states, in one row."""

    __slots__ = ("batch", "center", "dim", "radius")

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self.center, self.radius = as_floats("center", center), as_floats("radius", radius)
        if self.center.ndim == 0:
            raise InvalidInput("center: expected shape (..., n), got ()")
        self.batch: tuple[int, ...] = batch_shape(("center", self.center.shape[:-1]), ("radius", self.radius.shape))
        self.dim: int = self.center.shape[-1]

    @staticmethod
    @abstractmethod
    def norm(v: Array) -> Array:
        """The norm of each vector, (..., n) → (...)."""

    @staticmethod
    @abstractmethod
    def subgradient_of_norm(v: Array) -> Array:
        """A subgradient of the norm at each vector, (..., n), and 0 at 0."""

    @abstractmethod
    def finite_cones(self) -> Cones:
        """The conic form for a finite radius."""

    def rows_unchecked(self, x: Array) -> Array:
        value: Array = self.norm(x - self.center) - self.radius
        return value[..., None]

    def jacobian_unchecked(self, x: Array) -> Array:
        gradient = self.subgradient_of_norm(x - self.center)
        return broadcast(gradient, (*data_batch_shape(self, x), self.dim))[..., None, :]

    def magnitude(self, x: Array) -> Array:
        radius = np.abs(finite_part(self.radius, np.inf))
        size: Array = np.maximum(self.size_of_terms(x), radius)
        return size[..., None]

    def size_of_terms(self, x: Array) -> Array:
        """How large the terms are whose difference the norm is taken of."""
        return self.norm(np.maximum(np.abs(x), np.abs(self.center)))

    @property
    def conic(self) -> bool:
        return True

    def cones(self) -> Cones:
        self.require_single()
        self.require_finite_data()
        return no_cones(self.dim) if self.radius == np.inf else self.finite_cones()

    def parameters(self) -> dict[str, Any]:
        return {"center": self.center, "radius": self.radius}

    def trials_unchecked(self, index: Any) -> Self:
        return type(self)(*take(self.batch, index, (self.center, 1), (self.radius, 0)))

    def data_arrays(self) -> list[tuple[str, Array, bool]]:
        return [("center", self.center, False), ("radius", finite_part(self.radius, np.inf), False)]

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([0.5, -0.5], 1.0), cls([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])]
