"""Cartesian products."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, frozen
from cocopt.cones import Cones, stack
from cocopt.errors import InvalidInput
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral

__all__ = ["Product"]


@register
class Product(ConvexSet):
    """The product K₁ × K₂ × …, whose points are those of the parts one after the other.

    P_K projects each part by itself. The diameter √(Σ Dᵢ²) is exact if those of the parts are.

    Parameters
    ----------
    sets : sequence of ConvexSet

    Examples
    --------
    >>> from cocopt import Box, Product, Simplex
    >>> K = Product([Box(0.0, 1.0, dim=1), Simplex(2)])
    >>> K.project([3.0, 1.0, 1.0])
    array([1. , 0.5, 0.5])
    """

    def __init__(self, sets: Sequence[ConvexSet]) -> None:
        parts = tuple(sets) if isinstance(sets, Sequence) else ()
        if not parts:
            raise InvalidInput(f"sets: expected a sequence of at least one set, got {sets!r}")
        for i, part in enumerate(parts):
            if not isinstance(part, ConvexSet):
                raise InvalidInput(f"sets: expected sets, got {type(part).__name__} at index {i}")
        self.sets = parts
        self.dim = sum(part.dim for part in parts)
        self._cuts = np.cumsum([part.dim for part in parts])[:-1]

    def project_unchecked(self, point: Array) -> Array:
        return np.concatenate([part.project_unchecked(piece) for part, piece in self._pieces(point)], axis=-1)

    def violation_unchecked(self, point: Array) -> Array:
        worst: Array = np.max([part.violation_unchecked(piece) for part, piece in self._pieces(point)], axis=0)
        return worst

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        return np.concatenate([part.minimise_linear_unchecked(d) for part, d in self._pieces(direction)], axis=-1)

    def separate_unchecked(self, point: Array) -> Array:
        return np.concatenate([part.separate_unchecked(piece) for part, piece in self._pieces(point)], axis=-1)

    def project_direction_unchecked(self, vector: Array) -> Array:
        if self.full_dimensional:
            return vector
        return np.concatenate([part.project_direction_unchecked(v) for part, v in self._pieces(vector)], axis=-1)

    @cached_property
    def full_dimensional(self) -> bool:
        return all(part.full_dimensional for part in self.sets)

    @cached_property
    def center(self) -> Array:
        return frozen(np.concatenate([part.center for part in self.sets]))

    @cached_property
    def inner_radius(self) -> float:
        """The least of the parts that are no single points, which leave the ball of the others as it is."""
        return min((r for part in self.sets if (r := part.inner_radius) > 0.0), default=0.0)

    @cached_property
    def outer_radius(self) -> float:
        return float(np.linalg.norm([part.outer_radius for part in self.sets]))

    def _pieces(self, point: Array) -> Iterable[tuple[ConvexSet, Array]]:
        """Each part with its coordinates."""
        return zip(self.sets, np.split(point, self._cuts, axis=-1), strict=True)

    @property
    def diameter(self) -> float:
        return float(np.linalg.norm([part.diameter for part in self.sets]))

    @cached_property
    def scale(self) -> float:
        """The largest scale of the parts that have a size."""
        return max((part.scale for part in self.sets if part.sized), default=1.0)

    @property
    def sized(self) -> bool:
        return any(part.sized for part in self.sets)

    @property
    def conic(self) -> bool:
        return all(part.conic for part in self.sets)

    def cones(self) -> Cones | None:
        pieces: list[Cones] = []
        start = 0
        for part in self.sets:
            piece = part.cones()
            if piece is None:
                return None
            pieces.append(piece.widened(start, self.dim))
            start += part.dim
        return stack(pieces, self.dim)

    def polyhedral(self) -> Polyhedral | None:
        return self._polyhedral

    @cached_property
    def _polyhedral(self) -> Polyhedral | None:
        parts: list[Polyhedral] = []
        start = 0
        for part in self.sets:
            piece = part.polyhedral()
            if piece is None:
                return None
            parts.append(piece._replace(A=self._widen(piece.A, start)))
            start += part.dim
        # equality rows come first
        A = [p.A[: p.equalities] for p in parts] + [p.A[p.equalities :] for p in parts]
        b = [p.b[: p.equalities] for p in parts] + [p.b[p.equalities :] for p in parts]
        return Polyhedral(
            np.concatenate([p.lower for p in parts]),
            np.concatenate([p.upper for p in parts]),
            np.concatenate(A),
            np.concatenate(b),
            sum(p.equalities for p in parts),
        ).frozen()

    def parameters(self) -> dict[str, Any]:
        return {"sets": list(self.sets)}

    def _widen(self, rows: Array, start: int) -> Array:
        """Rows over one part as rows over the whole point."""
        wide = np.zeros((rows.shape[0], self.dim))
        wide[:, start : start + rows.shape[1]] = rows
        return wide

    @classmethod
    def examples(cls) -> list[Self]:
        from cocopt.sets.ball import Ball
        from cocopt.sets.box import Box
        from cocopt.sets.simplex import Simplex

        return [
            cls([Box(0.0, 1.0, dim=2), cls([Simplex(2), Ball(0.0, 1.0, dim=1)])]),
            cls([Simplex(1), Ball(1.0, 0.0, dim=2)]),
        ]
