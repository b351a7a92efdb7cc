"""The public door to P_{K ∩ {g ≤ 0}}; `cocopt.geometry.ladder` has the methods."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
    as_points,
    ignore_fp_warnings,
    make_tuple,
    one_of,
    positive_int,
    require_moderate,
    scalar,
)
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.geometry.ladder import MAX_CUTS, Projection, Request, first_method, first_request, solve
from cocopt.geometry.problem import check_arguments, trial_constraint
from cocopt.sets.base import ConvexSet
from cocopt.tolerances import BLACK_BOX

__all__ = ["Projection", "explain", "project", "solve_projection"]

RAISE = "raise"  # the default of `infeasible`, the same object as every such literal


def project(
    K: ConvexSet,
    constraint: Constraint | None,
    point: ArrayLike,
    *,
    infeasible: Literal["raise", "nearest"] = "raise",
    cuts: int = MAX_CUTS,
    tol: float = BLACK_BOX,
) -> Array:
    """P_{K ∩ {g ≤ 0}}(point) = argmin of ‖x − point‖ over x in K with g(x) ≤ 0.

    Exact means checked: whatever the method (see `explain`), a point is returned only after its optimality conditions
    were seen to hold. The violation is at most 1e-9 of the size of the terms involved, the position is right to 1e-7
    of it where the active rows are well conditioned. A target that is feasible already is returned bit for bit. Of
    black boxes the violation is at most ``tol``, and cuts go on until they account for the position to about ``tol``
    of its size, or come no closer.

    Parameters
    ----------
    K : ConvexSet
    constraint : Constraint or None
        Its leading axes broadcast against those of the point.
    point : array (..., n)
    infeasible : "raise" or "nearest"
        What to do if K ∩ {g ≤ 0} is empty, that is if even the least possible violation exceeds 1e-9 of the size of its
        terms: raise `InfeasibleRound`, or return the point of K of least violation nearest to the target.
    cuts, tol : int, float
        For black boxes: the largest number of cutting planes per trial (if only the position is left to be found, it
        ends the search without an error), and the violation that is accepted.

    Returns
    -------
    array (..., n)

    Examples
    --------
    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> K = Box(0.0, 1.0, dim=3)
    >>> cocopt.project(K, constraints.Affine([1.0, 1.0, 1.0], 1.0), [1.0, 0.5, 0.25])
    array([0.75, 0.25, 0.  ])
    >>> cocopt.project(K, constraints.NormBall([0.0, 0.0, 0.0], 1.0), [3.0, 2.0, 6.0]).round(9)
    array([0.42857143, 0.28571429, 0.85714286])
    """
    return _solve_checked(K, constraint, point, infeasible, cuts, tol).point


def explain(K: ConvexSet, constraint: Constraint | None) -> str:
    """Which method of the ladder `project` starts on, and why.

    Examples
    --------
    >>> from cocopt import Ball, Box, constraints, explain
    >>> explain(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0))
    'kernel: compiled, one row over a box'
    >>> explain(Box(0.0, 1.0, dim=2), constraints.NormBall([0.0, 0.0], 1.0))
    'curved: compiled, a norm ball over a box'
    >>> explain(Box(0.0, 1.0, dim=2), constraints.Quadratic([[2.0, 1.0], [1.0, 2.0]], [0.0, 0.0], -1.0))
    "newton: compiled, Newton's method for one row, curved ones among them"
    >>> explain(Ball(0.0, 1.0, dim=2), constraints.Norm1([0.0, 0.0], 1.0))
    "pieces: compiled, Newton's method on the pieces of one row"
    >>> explain(Ball(0.0, 1.0, dim=2), constraints.LogSumExp([[1.0, 0.0]], [0.0]))
    'clarabel: K and the constraint as stacked cones, an interior-point method'
    """
    check_arguments(K, constraint)
    if constraint is None:
        return "set: the projection onto K itself"
    batch = constraint.batch
    request = first_request(Request(K, trial_constraint(constraint, batch, (0,) * len(batch)), np.zeros(K.dim)))
    method = first_method(request)
    assert method is not None  # a projection has the dual or cuts, whatever K and the constraint are
    return f"{method.name}: {method.describe(request)}"


def solve_projection(
    K: ConvexSet,
    constraint: Constraint | None,
    point: ArrayLike,
    *,
    infeasible: Literal["raise", "nearest"] = "raise",
    cuts: int = MAX_CUTS,
    tol: float = BLACK_BOX,
) -> Projection:
    """As `project`, with what is known besides the point: the method, feasibility and least violation per trial.

    Examples
    --------
    >>> from cocopt import Box, constraints
    >>> from cocopt.geometry import solve_projection
    >>> result = solve_projection(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0), [1.0, 1.0])
    >>> result.method, result.point, result.multipliers
    ('kernel', array([0.5, 0.5]), array([0.5]))
    """
    found = _solve_checked(K, constraint, point, infeasible, cuts, tol)
    shape = found.point.shape[:-1]
    feasible, least = (np.broadcast_to(part, shape)[()] for part in (found.feasible, found.least_violation))
    return found._replace(feasible=feasible, least_violation=least)


def _solve_checked(
    K: ConvexSet, constraint: Constraint | None, point: ArrayLike, infeasible: str, cuts: int, tol: float
) -> Projection:
    """`solve`, on arguments that are yet to be checked."""
    check_arguments(K, constraint)
    if infeasible is not RAISE or cuts is not MAX_CUTS or tol is not BLACK_BOX:  # the defaults themselves are valid
        if isinstance(infeasible, str) and infeasible == "skip":
            raise InvalidInput('infeasible: expected "raise" or "nearest", got "skip", which is for learners alone')
        one_of("infeasible", infeasible, "raise", "nearest")
        positive_int("cuts", cuts)
        scalar("tol", tol, positive=True)
    points = as_points("point", point, K.dim)
    if constraint is None:
        return Projection(K.project_unchecked(require_moderate("point", points)), "set", np.True_, np.float64(0.0))
    request = make_tuple(Request, (K, constraint, points, None, None, infeasible, cuts, tol, 0.0))
    try:
        return solve(request)
    except RuntimeWarning:  # numpy's report of data that overflow, where warnings are errors; ours names the argument
        with ignore_fp_warnings():
            return solve(request)
