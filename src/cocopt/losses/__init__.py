"""Losses f_t, as small immutable objects, one class a file.

Arrays may carry leading axes, one entry per trial; they broadcast against the leading axes of the point. Contents are
not searched for NaN at construction: a result that is not finite is traced to the argument that caused it.
"""

from cocopt.losses.base import Loss
from cocopt.losses.distance import Distance
from cocopt.losses.function import Function
from cocopt.losses.hinge import Hinge
from cocopt.losses.least_squares import LeastSquares
from cocopt.losses.linear import Linear
from cocopt.losses.logistic import Logistic
from cocopt.losses.norm import Norm
from cocopt.losses.quadratic import Quadratic

__all__ = ["Distance", "Function", "Hinge", "LeastSquares", "Linear", "Logistic", "Loss", "Norm", "Quadratic"]
