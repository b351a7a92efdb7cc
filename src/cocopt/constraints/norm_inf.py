"""Balls of the maximum norm around a moving center."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.constraints.ball_of_norm import BallOfNorm
from cocopt.registry import register
from cocopt.sparse import SparseMatrix

__all__ = ["NormInf"]


@register
class NormInf(BallOfNorm):
    """g(x) = max_i |x_i − center_i| − radius, a limit on every deviation from a benchmark.

    The subgradient is sign(x_i − center_i)·e_i for the first i with the largest deviation, and 0 at the center. A
    negative radius is legal: then no x satisfies the constraint. For a limit that never changes, the set
    [`Box`][cocopt.Box] is faster.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.NormInf([1.0, 0.0], 2.0)
    >>> g.value([4.0, -4.0])
    np.float64(2.0)
    >>> g.gradient([4.0, -4.0])
    array([ 0., -1.])
    """

    __slots__ = ()

    @staticmethod
    def norm(v: Array) -> Array:
        largest: Array = np.abs(v).max(axis=-1)
        return largest

    @staticmethod
    def subgradient_of_norm(v: Array) -> Array:
        first = np.abs(v).argmax(axis=-1)[..., None]
        return np.where(np.arange(v.shape[-1]) == first, np.sign(v), 0.0)

    def finite_cones(self) -> Cones:
        """−(radius + t) ≤ x − center ≤ radius + t."""
        n, ones = self.dim, np.ones(self.dim)
        A = SparseMatrix.stacked([SparseMatrix.diagonal(ones), SparseMatrix.diagonal(-ones)])
        b = np.concatenate([self.radius + self.center, self.radius - self.center])
        return Cones(A, b, np.ones((2 * n, 1)), (("nonneg", 2 * n),))
