"""Targets that are far away, whose projections come with fewer digits than they can have.

x is the projection of a point if and only if it is that of x + τ (point − x), whatever τ is between 0 and 1 (and its
hinge prox, if the bounds of the multipliers are multiplied by τ): both say that point − x is normal to the set at x.
So a projection that is known roughly becomes the start of the same problem with a target that is near, until x no
longer changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.tolerances import FAR_TARGET

__all__ = ["MAX_STEPS", "is_far", "is_unchanged", "nearer_target"]

Flags = NDArray[np.bool_]

NEAR = 1e-2  # the distance of a target that is near, as a share of the size of its projection
NEARER = 1e-8  # a step comes nearer by this factor at most: the rounding of a target shall not change its direction
MAX_STEPS = 20  # nearer targets that are tried


def _largest_entry(x: Array) -> Array:
    largest: Array = np.abs(x).max(axis=-1)
    return largest


def is_far(point: Array, x: Array, size: Array | float) -> Flags:
    """Whether the point is so far from x, in units of its size, that x has lost digits which it can have."""
    far: Flags = _largest_entry(point - x) > FAR_TARGET * size
    return far


def nearer_target(
    point: Array, x: Array, size: Array | float, distance: float = NEAR, last: Array | float = 0.0
) -> tuple[Array, Array]:
    """(x + τ (point − x), τ) at that distance in units of its size, for points (..., n) and τ of shape (..., 1).

    If ``last``, the distance of the last target, is given, the next is at least NEARER of it away.
    """
    length = _largest_entry(point - x)
    wanted = np.maximum(distance * size, NEARER * np.asarray(last))
    tau = np.divide(wanted, length, out=np.ones_like(length), where=length > wanted)[..., None]
    return x + tau * (point - x), tau


def is_unchanged(x: Array, previous: Array, size: Array | float, tolerance: float) -> Flags:
    """Whether x is where it was before, up to that share of its size."""
    unchanged: Flags = _largest_entry(x - previous) <= tolerance * size
    return unchanged
