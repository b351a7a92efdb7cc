# What type checkers see: one line per public name.
from cocopt import checks as checks
from cocopt import constraints as constraints
from cocopt import errors as errors
from cocopt import losses as losses
from cocopt import metrics as metrics
from cocopt import steps as steps
from cocopt import theory as theory
from cocopt.algorithms import CLASP as CLASP
from cocopt.algorithms import CLASPF as CLASPF
from cocopt.algorithms import RECOO as RECOO
from cocopt.algorithms import AdaGrad as AdaGrad
from cocopt.algorithms import Jenatton as Jenatton
from cocopt.algorithms import Mahdavi as Mahdavi
from cocopt.algorithms import Switch as Switch
from cocopt.algorithms import YuanLamperski as YuanLamperski
from cocopt.algorithms import YuNeely as YuNeely
from cocopt.experiments import run as run
from cocopt.geometry import hinge_prox as hinge_prox
from cocopt.geometry.project import explain as explain
from cocopt.geometry.project import project as project
from cocopt.registry import register as register
from cocopt.sets import Ball as Ball
from cocopt.sets import Box as Box
from cocopt.sets import ConvexSet as ConvexSet
from cocopt.sets import Ellipsoid as Ellipsoid
from cocopt.sets import Halfspace as Halfspace
from cocopt.sets import L1Ball as L1Ball
from cocopt.sets import Polyhedron as Polyhedron
from cocopt.sets import Product as Product
from cocopt.sets import Simplex as Simplex
from cocopt.state import load as load

__version__: str
