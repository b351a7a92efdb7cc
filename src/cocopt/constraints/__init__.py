"""Constraints g_t(x) ≤ 0, as small immutable objects, one class a file.

A constraint has one or several *rows* g_i; g = max_i g_i. Arrays may carry leading axes, one entry per trial;
they broadcast against the leading axes of the point. Contents are not searched for NaN at construction (that would cost
more than a round): a result that is not finite is traced to the argument that caused it.
"""

from cocopt.constraints.affine import Affine
from cocopt.constraints.base import Constraint
from cocopt.constraints.cvxpy_expression import from_cvxpy
from cocopt.constraints.function import Function
from cocopt.constraints.norm_ball import NormBall
from cocopt.constraints.quadratic import Quadratic
from cocopt.constraints.second_order import SecondOrder
from cocopt.constraints.stack import Stack

__all__ = ["Affine", "Constraint", "Function", "NormBall", "Quadratic", "SecondOrder", "Stack", "from_cvxpy"]
