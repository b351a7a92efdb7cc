"""Queues per row of the constraint: the virtual queues, or multipliers, of primal-dual methods."""

from __future__ import annotations

import numpy as np

from cocopt.algorithms.base import Feedback
from cocopt.arrays import Array, all_finite
from cocopt.errors import InvalidInput

__all__ = ["row_queues", "row_subgradients", "seen_row_count", "weighted_subgradients"]


def row_queues(queues: Array | None, rows: Array, initial: float = 0.0) -> Array:
    """The queues (..., M) so far; the first constraint decides how many rows there are.

    Raises
    ------
    InvalidInput
        If a later constraint has another number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from cocopt.algorithms.queues import row_queues
    >>> row_queues(None, np.array([0.5, -1.0]))
    array([0., 0.])
    """
    if queues is None:
        return np.full(rows.shape, initial)
    if queues.shape[-1] != rows.shape[-1]:
        raise InvalidInput(
            f"constraint: expected {queues.shape[-1]} rows as in the first round, since each row has a queue, "
            f"got {rows.shape[-1]}"
        )
    return queues


def row_subgradients(feedback: Feedback) -> Array:
    """A subgradient of each row at the action played, (..., M, n), finite."""
    assert feedback.constraint is not None
    jacobian = feedback.constraint.jacobian_unchecked(feedback.x)
    if not all_finite(jacobian):
        feedback.constraint.raise_nonfinite(feedback.x)
    return np.broadcast_to(jacobian, (*feedback.x.shape[:-1], *jacobian.shape[-2:]))


def weighted_subgradients(feedback: Feedback, weights: Array) -> Array:
    """Σ_i weights_i s_i of the rows' subgradients s_i at the action played, finite; weights (..., M)."""
    assert feedback.constraint is not None
    combined = feedback.constraint.combine_unchecked(feedback.x, weights)
    if not all_finite(combined):
        feedback.constraint.raise_nonfinite(feedback.x)
    return combined


def seen_row_count(queues: Array | None) -> int | None:
    """M, or None before the first constraint."""
    return None if queues is None else queues.shape[-1]
