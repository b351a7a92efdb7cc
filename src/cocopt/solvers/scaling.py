"""Cones in numbers of order 1."""

from __future__ import annotations

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.solvers.layout import layout

__all__ = ["row_scaled"]


def row_scaled(cones: Cones, point: Array, length: float) -> Cones:
    """The same set in numbers of order 1: x is moved by the point, and x and b are divided by the length.

    Each row, or cone of several rows, is divided by its largest coefficient of x, each auxiliary variable gets a unit
    of its own, and rows without x are divided by their largest coefficient.
    """
    values, columns, starts, width = cones.matrix
    x = np.concatenate([point, np.zeros(cones.aux)])
    scaled, b, units = np.empty_like(values), np.empty_like(cones.b), np.empty_like(cones.b)
    ends = layout(cones.cones).ends
    kernels.scale_rows(
        values, columns, starts, cones.b, ends, x, width - cones.aux, length, scaled, b, units, np.empty(width)
    )
    A = cones.matrix._replace(values=scaled)
    return Cones(A, b, cones.E / units[:, None], cones.cones, cones.aux)
