"""What every solver returns."""

from __future__ import annotations

from typing import NamedTuple

from cocopt.arrays import Array

__all__ = ["UNBOUNDED", "Solution"]

UNBOUNDED = -1  #: a linear program without a minimum; the other statuses are those of `cocopt.kernels.status`


class Solution(NamedTuple):
    """A point, the multipliers of the rows (NaN if unknown), a status, and what else is known."""

    point: Array
    multipliers: Array
    status: int
    cuts: int = 0  #: how many cutting planes it took
    violation: float | None = None  #: relative to the sizes of the rows' terms, if it was computed
