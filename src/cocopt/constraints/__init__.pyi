# What type checkers see: one line per public name.
from cocopt.constraints.affine import Affine as Affine
from cocopt.constraints.base import Constraint as Constraint
from cocopt.constraints.cvar import CVaR as CVaR
from cocopt.constraints.cvxpy_expression import from_cvxpy as from_cvxpy
from cocopt.constraints.equality import Equality as Equality
from cocopt.constraints.function import Function as Function
from cocopt.constraints.log_sum_exp import LogSumExp as LogSumExp
from cocopt.constraints.norm1 import Norm1 as Norm1
from cocopt.constraints.norm_ball import NormBall as NormBall
from cocopt.constraints.norm_inf import NormInf as NormInf
from cocopt.constraints.quadratic import Quadratic as Quadratic
from cocopt.constraints.second_order import SecondOrder as SecondOrder
from cocopt.constraints.selected_row import SelectedRow as SelectedRow
from cocopt.constraints.shifted import Shifted as Shifted
from cocopt.constraints.soft import Soft as Soft
from cocopt.constraints.sparse_affine import SparseAffine as SparseAffine
from cocopt.constraints.stack import Stack as Stack
