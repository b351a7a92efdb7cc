"""The whole space."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cocopt.arrays import as_dimension
from cocopt.registry import register
from cocopt.sets.box import Box

__all__ = ["Space"]


@register
class Space(Box):
    """The whole space R^n, for actions that the constraints alone restrict; P_K(x) = x.

    Parameters
    ----------
    dim : int

    Examples
    --------
    >>> import cocopt
    >>> from cocopt import Space, constraints
    >>> cocopt.project(Space(2), constraints.Affine([1.0, 1.0], 1.0), [1.0, 1.0])
    array([0.5, 0.5])
    """

    def __init__(self, dim: int) -> None:
        super().__init__(-np.inf, np.inf, dim=as_dimension("dim", dim))

    def parameters(self) -> dict[str, Any]:
        return {"dim": self.dim}

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(2)]
