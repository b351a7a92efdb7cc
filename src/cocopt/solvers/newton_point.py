"""Where Newton's method on the active surfaces of a cone program takes its derivative."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.kernels.cone_kinds import CURVED
from cocopt.solvers.layout import layout
from cocopt.solvers.unknowns import Unknowns

__all__ = ["NewtonPoint"]

WIDE = 12  # a cone whose rows have more variables contributes a dense matrix, by one product


class NewtonPoint(NamedTuple):
    """A point of min ½ xᵀ diag(P) x + qᵀx, b − A x in cones, by its slacks and multipliers."""

    P: Array
    cones: Cones
    active: NDArray[np.int64]  #: what each row is (`cocopt.kernels.cone_kinds`)
    unknowns: Unknowns
    slack: Array
    multipliers: Array  #: of the active surfaces, by their first rows

    def curved(self) -> list[tuple[int, int]]:
        """The first row of each active curved cone, and the row behind it."""
        first = np.flatnonzero(self.active == CURVED)
        return list(zip(first.tolist(), layout(self.cones.cones).ends[first].tolist(), strict=True))

    def is_wide(self, first: int, end: int) -> bool:
        """Whether the rows of a second-order cone but the first have many variables."""
        starts = self.cones.matrix.starts
        return bool(starts[end] - starts[first + 1] > WIDE * (end - first - 1))
