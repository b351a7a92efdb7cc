"""The sets K from which actions are taken, one file a set."""

from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.box import Box
from cocopt.sets.ellipsoid import Ellipsoid
from cocopt.sets.halfspace import Halfspace
from cocopt.sets.l1ball import L1Ball
from cocopt.sets.polyhedron import Polyhedron
from cocopt.sets.product import Product
from cocopt.sets.simplex import Simplex

__all__ = [
    "Ball",
    "Box",
    "ConvexSet",
    "Ellipsoid",
    "Halfspace",
    "L1Ball",
    "Polyhedral",
    "Polyhedron",
    "Product",
    "Simplex",
]
