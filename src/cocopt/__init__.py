"""cocopt: constrained online convex optimization.

Every round the learner plays x_t in a convex set K; then a convex loss f_t and a convex constraint g_t(x) ≤ 0 are
revealed. Names are imported on first use, so that ``import cocopt`` stays fast.

>>> import cocopt
>>> K = cocopt.Box(0.0, 1.0, dim=2)
>>> cocopt.project(K, cocopt.constraints.Affine([1.0, 1.0], 1.0), [1.0, 0.5])
array([0.75, 0.25])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from cocopt.algorithms import Switch as Switch
    from cocopt.experiments import run as run
    from cocopt.geometry import hinge_prox as hinge_prox
    from cocopt.geometry.project import explain as explain
    from cocopt.geometry.project import project as project
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

__version__ = "0.1.0"

# Public name → the module that defines it, or that it is. A line here needs its twin above.
_EXPORTS = {
    "CLASP": "cocopt.algorithms",
    "CLASPF": "cocopt.algorithms",
    "RECOO": "cocopt.algorithms",
    "AdaGrad": "cocopt.algorithms",
    "Switch": "cocopt.algorithms",
    "Ball": "cocopt.sets",
    "Box": "cocopt.sets",
    "ConvexSet": "cocopt.sets",
    "Ellipsoid": "cocopt.sets",
    "Halfspace": "cocopt.sets",
    "L1Ball": "cocopt.sets",
    "Polyhedron": "cocopt.sets",
    "Product": "cocopt.sets",
    "Simplex": "cocopt.sets",
    "checks": "cocopt.checks",
    "constraints": "cocopt.constraints",
    "errors": "cocopt.errors",
    "explain": "cocopt.geometry.project",
    "hinge_prox": "cocopt.geometry",
    "load": "cocopt.state",
    "losses": "cocopt.losses",
    "metrics": "cocopt.metrics",
    "project": "cocopt.geometry.project",
    "run": "cocopt.experiments",
    "steps": "cocopt.steps",
    "theory": "cocopt.theory",
}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'cocopt' has no attribute {name!r}")
    module = import_module(_EXPORTS[name])
    value = module if module.__name__ == f"cocopt.{name}" else getattr(module, name)
    globals()[name] = value  # the next access costs nothing
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
