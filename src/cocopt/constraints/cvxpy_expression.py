"""Constraints written in CVXPY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cocopt.constraints.base import (
    Constraint,
)

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["from_cvxpy"]


def from_cvxpy(expression: cp.Expression, variable: cp.Variable) -> Constraint:
    """The rows of a convex CVXPY expression, g(x) = expression with variable = x; needs ``pip install cocopt[cvxpy]``.

    Values and subgradients are CVXPY's own, the conic form is the one that it hands to Clarabel. Parameters keep the
    values that they have now. The expression is compiled at the first `cones`, once: a later call with the same
    expression object only fills in the new values of its parameters (so they must enter as CVXPY's DPP rules ask).
    All trials share the constraint.

    Parameters
    ----------
    expression : cvxpy.Expression
        Convex by CVXPY's rules, a scalar or a vector (one row each).
    variable : cvxpy.Variable
        Of shape (n,), without attributes, and the only variable of the expression.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cocopt import constraints
    >>> x, radius = cp.Variable(2), cp.Parameter(value=1.0)
    >>> g = constraints.from_cvxpy(cp.norm(x) - radius, x)
    >>> g.value([3.0, 4.0])
    np.float64(4.0)
    >>> g.gradient([3.0, 4.0])
    array([0.6, 0.8])
    """
    try:
        from cocopt.constraints.cvxpy_constraint import CvxpyConstraint
    except ModuleNotFoundError as error:
        if error.name != "cvxpy":
            raise
        raise ImportError("constraints.from_cvxpy needs CVXPY: pip install 'cocopt[cvxpy]'") from error
    return CvxpyConstraint(expression, variable)
