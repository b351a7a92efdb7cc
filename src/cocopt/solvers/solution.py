"""What every solver returns."""

from __future__ import annotations

from typing import NamedTuple

from cocopt.arrays import Array

__all__ = ["UNBOUNDED", "FeasibleSolution", "Solution"]

UNBOUNDED = -1  #: a linear program without a minimum; the other statuses are those of `cocopt.kernels.status`


class Solution(NamedTuple):
    """A point, the multipliers of the rows (NaN if unknown), a status, and the number of cutting planes it took."""

    point: Array
    multipliers: Array
    status: int
    cuts: int = 0


class FeasibleSolution(Solution):
    """A solution that was found to violate nothing by more than is promised."""

    __slots__ = ()
