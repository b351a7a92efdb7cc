"""Balls of the 1-norm around a moving center."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones, absolute_values, sum_of_auxiliary
from cocopt.constraints.ball_of_norm import BallOfNorm
from cocopt.registry import register
from cocopt.sparse import SparseMatrix

__all__ = ["Norm1"]


@register
class Norm1(BallOfNorm):
    """g(x) = Σ |x_i − center_i| − radius, a limit on turnover; its subgradient is sign(x − center).

    A negative radius is legal: then no x satisfies the constraint. For a limit that never changes, the set
    [`L1Ball`][cocopt.L1Ball] is faster.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.Norm1([1.0, 0.0], 2.0)
    >>> g.value([4.0, -4.0])
    np.float64(5.0)
    >>> g.gradient([4.0, -4.0])
    array([ 1., -1.])
    """

    __slots__ = ()

    @staticmethod
    def norm(v: Array) -> Array:
        total: Array = np.abs(v).sum(axis=-1)
        return total

    @staticmethod
    def subgradient_of_norm(v: Array) -> Array:
        return np.sign(v)

    def finite_cones(self) -> Cones:
        """|x − center| ≤ u and Σ u_i ≤ radius + t, with auxiliary variables u."""
        n = self.dim
        A = SparseMatrix.stacked([sum_of_auxiliary(n), absolute_values(n)])
        b = np.concatenate([[self.radius], self.center, -self.center])
        return Cones(A, b, np.eye(2 * n + 1, 1), (("nonneg", 2 * n + 1),), aux=n)
