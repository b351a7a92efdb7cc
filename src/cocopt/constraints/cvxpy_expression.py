"""Constraints written in CVXPY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cocopt.constraints.base import (
    Constraint,
)

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["from_cvxpy"]


def from_cvxpy(expression: cp.Expression | cp.Constraint | Sequence[Any], variable: cp.Variable) -> Constraint:
    """What is written in CVXPY, as a constraint; needs ``pip install cocopt[cvxpy]``.

    An expression is bounded by 0: g(x) = expression with variable = x. ``left <= right`` is g = left − right, and
    ``left == right``, for affine ones, |left − right|. A list is a [`Stack`][cocopt.constraints.Stack].

    Affine rows, norms, squares and quadratic forms become [`Affine`][cocopt.constraints.Affine],
    [`Equality`][cocopt.constraints.Equality], [`NormBall`][cocopt.constraints.NormBall],
    [`SecondOrder`][cocopt.constraints.SecondOrder], [`Quadratic`][cocopt.constraints.Quadratic],
    [`Norm1`][cocopt.constraints.Norm1] or [`NormInf`][cocopt.constraints.NormInf], with their speed, and can be
    stored. All else keeps the conic form that CVXPY hands to Clarabel. Outside the domain of an expression, such as a
    logarithm's, the constraint is violated; its values can be asked for within the domain alone.

    The result is a snapshot: parameters keep the values that they have now. Each expression or constraint object is
    compiled once. So build it before the rounds, set its parameters in each, and call this function again, which then
    only fills in the new numbers (parameters must enter as CVXPY's DPP rules ask). All trials share the constraint.

    Parameters
    ----------
    expression : cvxpy.Expression, cvxpy.Constraint, or a list of them
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

    A limit whose numbers change from round to round:

    >>> limits = [cp.norm(x) <= radius, cp.sum(x) == 1, x >= 0]
    >>> for t in (1, 2):
    ...     radius.value = 1.0 / t
    ...     print(constraints.from_cvxpy(limits, x).rows([0.6, 0.8]).round(9))
    [ 0.   0.4 -0.6 -0.8]
    [ 0.5  0.4 -0.6 -0.8]
    """
    try:
        from cocopt.constraints.cvxpy_constraint import read
    except ModuleNotFoundError as error:
        if error.name != "cvxpy":
            raise
        raise ImportError("constraints.from_cvxpy needs CVXPY: pip install 'cocopt[cvxpy]'") from error
    return read(expression, variable)
