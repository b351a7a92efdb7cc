# What type checkers see: one line per public name.
from cocopt.sets.ball import Ball as Ball
from cocopt.sets.base import ConvexSet as ConvexSet
from cocopt.sets.base import Polyhedral as Polyhedral
from cocopt.sets.box import Box as Box
from cocopt.sets.capped_simplex import CappedSimplex as CappedSimplex
from cocopt.sets.ellipsoid import Ellipsoid as Ellipsoid
from cocopt.sets.halfspace import Halfspace as Halfspace
from cocopt.sets.intersection import Intersection as Intersection
from cocopt.sets.l1ball import L1Ball as L1Ball
from cocopt.sets.orthant import Orthant as Orthant
from cocopt.sets.polyhedron import Polyhedron as Polyhedron
from cocopt.sets.product import Product as Product
from cocopt.sets.simplex import Simplex as Simplex
from cocopt.sets.space import Space as Space
