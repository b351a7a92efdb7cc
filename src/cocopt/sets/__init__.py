"""The sets K from which actions are taken, one file a set."""

from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.box import Box

__all__ = ["Box", "ConvexSet", "Polyhedral"]
