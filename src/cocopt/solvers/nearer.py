"""Targets that are far away, whose projections come with fewer digits than they can have.

x is the projection of a point if and only if it is that of x + τ (point − x), whatever τ is between 0 and 1 (and its
hinge prox, if the caps are multiplied by τ): both say that point − x is normal to the set at x. So a projection that is
known roughly becomes the start of the same problem with a target that is near, until x stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.tolerances import FAR_TARGET

__all__ = ["STEPS", "is_far", "nearer", "stays"]

Flags = NDArray[np.bool_]

NEAR = 1e-2  # the distance of a target that is near, as a share of the size of its projection
ZERO = 1e-12  # a projection whose size is a smaller share of the distance is 0 but for rounding, and comes no nearer
STEPS = 20  # nearer targets that are tried


def _length(x: Array) -> Array:
    length: Array = np.abs(x).max(axis=-1)
    return length


def is_far(point: Array, x: Array, size: Array | float) -> Flags:
    """Whether the point is so far from x, in units of its size, that x has lost digits which it can have."""
    distance = _length(point - x)
    far: Flags = (distance > FAR_TARGET * size) & (size > ZERO * distance)
    return far


def nearer(point: Array, x: Array, size: Array | float, distance: float = NEAR) -> tuple[Array, Array]:
    """(x + τ (point − x), τ) at that distance in units of its size, for points (..., n) and τ of shape (..., 1)."""
    length, wanted = _length(point - x), distance * size
    tau = np.divide(wanted, length, out=np.ones_like(length), where=length > wanted)[..., None]
    return x + tau * (point - x), tau


def stays(point: Array, x: Array, old: Array, size: Array | float, tolerance: float) -> Flags:
    """Whether x is where it was before, but for that share of its size, or has become 0."""
    still: Flags = (_length(x - old) <= tolerance * size) | (size <= ZERO * _length(point - x))
    return still
