"""The algorithms, one file each."""

from cocopt.algorithms.base import Learner, Round
from cocopt.algorithms.clasp import CLASP

__all__ = ["CLASP", "Learner", "Round"]
