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
from typing import Any

__version__ = "0.1.0"

# Public name → the module that defines it, or that it is. Sets and algorithms are not listed: whichever class is
# registered is exported. Type checkers read __init__.pyi.
_EXPORTS = {
    "ConvexSet": "cocopt.sets",
    "Pool": "cocopt.pool",
    "algorithms": "cocopt.algorithms",
    "checks": "cocopt.checks",
    "constraints": "cocopt.constraints",
    "errors": "cocopt.errors",
    "experiments": "cocopt.experiments",
    "explain": "cocopt.geometry.project",
    "hindsight": "cocopt.hindsight",
    "hinge_prox": "cocopt.geometry",
    "load": "cocopt.state",
    "loads": "cocopt.state",
    "losses": "cocopt.losses",
    "metrics": "cocopt.metrics",
    "problems": "cocopt.problems",
    "project": "cocopt.geometry.project",
    "register": "cocopt.registry",
    "run": "cocopt.experiments",
    "sets": "cocopt.sets",
    "steps": "cocopt.steps",
    "theory": "cocopt.theory",
}
_KINDS = ("set", "algorithm")  # whose classes are exported here


def _registry() -> Any:
    return import_module("cocopt.registry")


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        module = import_module(_EXPORTS[name])
        value = module if module.__name__ == f"cocopt.{name}" else getattr(module, name)
        globals()[name] = value  # the next access costs nothing
        return value
    if name == "__all__":
        return [*_EXPORTS, *(cls.__name__ for kind in _KINDS for cls in _registry().classes(kind).values())]
    for kind in _KINDS:
        if name[:1].isupper():  # else it is a submodule that is being imported, perhaps by one of these packages
            import_module(_registry().PACKAGES[kind])
        cls = _registry().exported(kind).get(name)
        if cls is not None:
            if cls.__module__.startswith("cocopt."):  # a user's own class may be registered anew
                globals()[name] = cls
            return cls
    raise AttributeError(f"module 'cocopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
