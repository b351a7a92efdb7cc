"""The cutter: a step towards {g ≤ 0} that needs only the value of g and one subgradient."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array, all_finite
from cocopt.constraints import Constraint
from cocopt.errors import InfeasibleRound

__all__ = ["cut", "largest_row"]


def largest_row(constraint: Constraint, x: Array, rows: Array) -> tuple[Array, Array]:
    """(v, s): v = max(0, g(x)) and a subgradient s of the largest row at x, the first one on ties.

    ``rows`` are the constraint's rows at x, with the leading axes of x.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt import constraints
    >>> from cocopt.geometry.cutter import largest_row
    >>> g, x = constraints.Affine([[1.0, 0.0], [3.0, 4.0]], [1.0, 2.0]), np.array([1.0, 1.0])
    >>> largest_row(g, x, g.rows(x))
    (np.float64(5.0), array([3., 4.]))
    """
    subgradient = constraint.subgradient_unchecked(x, rows.argmax(axis=-1))
    if not all_finite(subgradient):
        constraint.raise_nonfinite(x)
    return np.maximum(rows.max(axis=-1), 0.0), subgradient


def cut(x: Array, violation: Array, subgradient: Array) -> Array:
    """x − (v/‖s‖²) s, the projection onto {z : v + ⟨s, z − x⟩ ≤ 0}; x itself where v = 0 (Polyak 1969).

    For v = max(0, g(x)) and a subgradient s of g at x, no z with g(z) ≤ 0 becomes farther: ‖cut(x) − z‖² ≤ ‖x − z‖² −
    (v/‖s‖)². A violation whose subgradient is 0 is the least possible one: `InfeasibleRound`.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.geometry.cutter import cut
    >>> cut(np.array([1.0, 1.0]), np.array(5.0), np.array([3.0, 4.0]))
    array([0.4, 0.2])
    """
    size = np.abs(subgradient).max(axis=-1)  # taken out first, so that no square overflows or underflows
    flat = size == 0.0
    if flat.any():
        trials = np.flatnonzero(flat & (violation > 0.0))
        if trials.size:
            raise InfeasibleRound(trials.tolist(), np.reshape(violation, -1)[trials])
        size = np.where(flat, 1.0, size)
    direction = subgradient / size[..., None]
    length = violation / size / np.where(flat, 1.0, np.vecdot(direction, direction))
    moved: Array = x - length[..., None] * direction
    return moved
