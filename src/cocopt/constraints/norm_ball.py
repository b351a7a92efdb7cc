"""Balls around a moving center."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.constraints.ball_of_norm import BallOfNorm
from cocopt.constraints.base import first_column, row_norms, unit_vectors
from cocopt.registry import register
from cocopt.sparse import SparseMatrix

__all__ = ["NormBall"]


@register
class NormBall(BallOfNorm):
    """g(x) = ‖x − center‖ − radius, with subgradient (x − center)/‖x − center‖, and 0 at the center.

    A negative radius is legal: then no x satisfies the constraint.

    Parameters
    ----------
    center : array (..., n)
    radius : float or array (...)
        +inf switches the constraint off.

    Examples
    --------
    >>> from cocopt import constraints
    >>> g = constraints.NormBall([1.0, 0.0], 2.0)
    >>> g.value([4.0, 4.0])
    np.float64(3.0)
    >>> g.gradient([4.0, 4.0])
    array([0.6, 0.8])
    """

    __slots__ = ()

    @staticmethod
    def norm(v: Array) -> Array:
        return row_norms(v)

    @staticmethod
    def subgradient_of_norm(v: Array) -> Array:
        return unit_vectors(v)

    def size_of_terms(self, x: Array) -> Array:
        return np.maximum(row_norms(x), row_norms(self.center))

    def finite_cones(self) -> Cones:
        """(radius + t, x − center) in the second-order cone."""
        A, b = SparseMatrix.diagonal(-np.ones(self.dim), empty_rows=1), np.append(self.radius, -self.center)
        return Cones(A, b, first_column(self.dim + 1), (("soc", self.dim + 1),))
