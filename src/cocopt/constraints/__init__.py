"""Constraints g_t(x) ≤ 0, as small immutable objects, one class per file.

A constraint has one or several *rows* g_i; g = max_i g_i. Arrays may carry leading axes, one entry per trial;
they broadcast against the leading axes of the point. Contents are not searched for NaN at construction (that would cost
more than a round): a result that is not finite is traced to the argument that caused it.
"""

from typing import Any

from cocopt import registry
from cocopt.constraints.base import Constraint
from cocopt.constraints.cvxpy_expression import from_cvxpy

_OWN = registry.import_package("constraint", __path__, skip=("cvxpy_constraint", "cvxpy_values"))
globals().update(_OWN)

__all__ = ["Constraint", "from_cvxpy", *_OWN]


def __getattr__(name: str) -> Any:
    return registry.attribute("constraint", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *registry.exported("constraint")})
