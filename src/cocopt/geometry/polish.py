"""`cocopt.solvers.polish` under its former name."""

from cocopt.solvers.polish import SMOOTH, Polished, polish
from cocopt.solvers.polish import ActiveSurfaces as Active

__all__ = ["SMOOTH", "Active", "Polished", "polish"]
