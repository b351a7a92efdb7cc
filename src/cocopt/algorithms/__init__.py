"""The algorithms, one file each."""

from cocopt.algorithms.adagrad import AdaGrad
from cocopt.algorithms.base import Learner, Round
from cocopt.algorithms.clasp import CLASP
from cocopt.algorithms.clasp_f import CLASPF
from cocopt.algorithms.recoo import RECOO
from cocopt.algorithms.switch import Switch

__all__ = ["CLASP", "CLASPF", "RECOO", "AdaGrad", "Learner", "Round", "Switch"]
