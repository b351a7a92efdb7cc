# What type checkers see: one line per public name.
from cocopt.losses.absolute import Absolute as Absolute
from cocopt.losses.base import Loss as Loss
from cocopt.losses.distance import Distance as Distance
from cocopt.losses.function import Function as Function
from cocopt.losses.hinge import Hinge as Hinge
from cocopt.losses.huber import Huber as Huber
from cocopt.losses.least_squares import LeastSquares as LeastSquares
from cocopt.losses.linear import Linear as Linear
from cocopt.losses.logistic import Logistic as Logistic
from cocopt.losses.negative_log import NegativeLog as NegativeLog
from cocopt.losses.norm import Norm as Norm
from cocopt.losses.quadratic import Quadratic as Quadratic
from cocopt.losses.quantile import Quantile as Quantile
