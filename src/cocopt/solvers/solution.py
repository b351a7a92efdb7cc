"""What a solver wrapper returns."""

from __future__ import annotations

from typing import NamedTuple

from cocopt.arrays import Array

__all__ = ["Solution"]


class Solution(NamedTuple):
    """A point, the multipliers of the constraint's rows (NaN if unknown), and a status of `cocopt.kernels.status`."""

    point: Array
    multipliers: Array
    status: int
