"""Which cone each row belongs to, for compiled code."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.cones import ConeList
from cocopt.kernels.cone_kinds import EXPONENTIAL, NONNEGATIVE, OTHER, SECOND_ORDER, ZERO

__all__ = ["Layout", "layout"]

_KINDS = {"zero": ZERO, "nonneg": NONNEGATIVE, "soc": SECOND_ORDER, "exp": EXPONENTIAL}


class Layout(NamedTuple):
    """Which cone each row belongs to; a row of a linear cone is a cone of its own."""

    kinds: NDArray[np.int64]  #: of the cone that begins at row i, by its number
    ends: NDArray[np.int64]  #: the row behind the cone that begins at row i
    heads: NDArray[np.int64]  #: the row whose dual is the multiplier of the cone that begins at row i
    smooth: bool  #: whether all cones are linear, of second order or exponential: their surfaces are smooth


@lru_cache(maxsize=256)
def layout(cones: ConeList) -> Layout:
    """The layout of these cones."""
    kinds: list[int] = []
    ends: list[int] = []
    for kind, size in cones:
        number = _KINDS.get(kind, OTHER) if isinstance(kind, str) else OTHER
        length = size * (size + 1) // 2 if kind == "psd" else size
        at = len(ends)
        kinds += [number] * length
        ends += range(at + 1, at + length + 1) if number in (ZERO, NONNEGATIVE) else [at + length] * length
    arrays = np.empty((3, len(kinds)), dtype=np.int64)
    arrays[0], arrays[1] = kinds, ends
    arrays[2] = np.where(arrays[0] == EXPONENTIAL, arrays[1] - 1, np.arange(len(kinds)))
    arrays.flags.writeable = False
    return Layout(arrays[0], arrays[1], arrays[2], all(number != OTHER for number in kinds))
