"""Everything that maps a point to a point with a constraint."""

from cocopt.geometry.project import Projection, explain, project, solve_projection
from cocopt.geometry.prox import hinge_prox, solve_hinge_prox

__all__ = ["Projection", "explain", "hinge_prox", "project", "solve_hinge_prox", "solve_projection"]
