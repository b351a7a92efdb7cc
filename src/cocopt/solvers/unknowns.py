"""The unknowns of Newton's method on the active surfaces of a cone program."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.solvers.layout import layout
from cocopt.sparse import SparseMatrix

__all__ = ["Unknowns"]

Integers = NDArray[np.int64]


class Unknowns(NamedTuple):
    """The unknowns of Newton's method: variables that no active bound fixes, then multipliers of active surfaces."""

    of_variable: Integers  #: the number of each variable, negative where it is fixed
    of_row: Integers  #: the number of each surface's multiplier, by its first row; −1 for other rows
    free: Integers  #: the variables that are unknown
    multiplied: Integers  #: the first rows of the surfaces
    fixed: Integers  #: the variables that bounds fix,
    bounds: Integers  #: and the rows of these bounds

    @classmethod
    def of(cls, matrix: SparseMatrix, active: Integers, z: Array) -> Unknowns:
        """The unknowns for these active surfaces; of several bounds on a variable that with the largest multiplier."""
        of_variable, of_row = np.empty(matrix.width, dtype=np.int64), np.empty(active.size, dtype=np.int64)
        kernels.number_unknowns(matrix.columns, matrix.starts, active, z, of_variable, of_row)
        fixed = np.flatnonzero(of_variable < 0)
        free, multiplied = np.flatnonzero(of_variable >= 0), np.flatnonzero(of_row >= 0)
        return cls(of_variable, of_row, free, multiplied, fixed, -1 - of_variable[fixed])

    @property
    def size(self) -> int:
        """How many there are."""
        return self.free.size + self.multiplied.size

    def start(self, cones: Cones, x: Array, z: Array) -> tuple[Array, Array]:
        """x with the fixed variables at their bounds, and the multipliers of the surfaces, by their first rows."""
        matrix, multipliers = cones.matrix, np.zeros_like(z)
        multipliers[self.multiplied] = z[layout(cones.cones).heads[self.multiplied]]
        x = x.copy()
        x[self.fixed] = cones.b[self.bounds] / matrix.values[matrix.starts[self.bounds]]
        return x, multipliers
