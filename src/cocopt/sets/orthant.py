"""The non-negative orthant."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import as_dimension
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Orthant"]


@register
class Orthant(Box):
    """The non-negative orthant {x : x ≥ 0}, unbounded; P_K(x) = max(x, 0).

    Parameters
    ----------
    dim : int

    Examples
    --------
    >>> from cocopt import Orthant
    >>> Orthant(3).project([-0.5, 0.25, 7.0])
    array([0.  , 0.25, 7.  ])
    """

    def __init__(self, dim: int) -> None:
        super().__init__(0.0, np.inf, dim=as_dimension("dim", dim))

    def parameters(self) -> dict[str, Any]:
        return {"dim": self.dim}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(2), cls(3)]
