"""Queues per row of the constraint: the virtual queues, or multipliers, of primal-dual methods."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.errors import InvalidInput

__all__ = ["row_queues", "seen_row_count"]


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


def seen_row_count(queues: Array | None) -> int | None:
    """M, or None before the first constraint."""
    return None if queues is None else queues.shape[-1]
