"""The hinge prox: a projection with bounded multipliers, which violates a constraint rather than exceed the bound."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
    as_floats,
    as_points,
    ignore_fp_warnings,
    make_tuple,
    one_of,
    positive_int,
    require_finite,
    scalar,
)
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.geometry.ladder import MAX_CUTS, Projection, Request, solve
from cocopt.geometry.problem import check_arguments, trial_shape
from cocopt.sets.base import ConvexSet
from cocopt.tolerances import BLACK_BOX

__all__ = ["hinge_prox", "solve_hinge_prox"]


# Exceeds the guide of 8 parameters, all but three of which are keywords: they are the public interface.
def hinge_prox(
    K: ConvexSet,
    constraint: Constraint,
    point: ArrayLike,
    *,
    weight: ArrayLike,
    linear: ArrayLike | None = None,
    rho: float = 0.5,
    cap: Literal["each", "sum"] = "each",
    cuts: int = MAX_CUTS,
    tol: float = BLACK_BOX,
) -> Array:
    """argmin over x in K of ⟨linear, x⟩ + penalty(x) + rho‖x − point‖².

    The penalty is Σ_i weight_i g_i^+(x) with ``cap="each"``: row i has a multiplier 0 ≤ ν_i ≤ weight_i; or
    weight·max_i g_i^+(x) with ``cap="sum"``: Σ_i ν_i ≤ weight. An infinite weight makes it the projection of point −
    linear/(2 rho) onto K ∩ {g ≤ 0}.

    Parameters
    ----------
    K : ConvexSet
    constraint : Constraint
    point : array (..., n)
    weight : float, (M,) or (..., M) for "each"; float or (...) for "sum"
        Non-negative, may be inf.
    linear : array (..., n), optional
    rho : float
        Positive.
    cap : "each" or "sum"
    cuts, tol : int, float
        For black boxes: the largest number of cutting planes per trial, and the error of the penalty's model that is
        accepted.

    Examples
    --------
    A weight of 0.2 moves the point by 0.2; the constraint asks for 0.5, which a weight of 1 is enough for.

    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> K, g = Box(0.0, 2.0, dim=2), constraints.Affine([1.0, 0.0], 1.0)
    >>> cocopt.hinge_prox(K, g, [1.5, 1.0], weight=0.2)
    array([1.3, 1. ])
    >>> cocopt.hinge_prox(K, g, [1.5, 1.0], weight=1.0)
    array([1., 1.])
    """
    check_arguments(K, constraint)
    if constraint is None:
        raise InvalidInput("constraint: expected a constraint such as constraints.Affine, got None")
    one_of("cap", cap, "each", "sum")
    double = 2.0 * scalar("rho", rho, positive=True)
    positive_int("cuts", cuts)
    scalar("tol", tol, positive=True)
    target = require_finite("point", as_points("point", point, K.dim))
    if linear is not None:
        target = target - require_finite("linear", as_points("linear", linear, K.dim)) / double
    bound = require_finite("weight", as_floats("weight", weight), infinities=True) / double
    if bound < 0 if bound.ndim == 0 else (bound < 0).any():
        raise InvalidInput(f"weight: expected non-negative numbers, got {float(bound.min()) * double}")
    if bound.ndim:  # (a number fits always, and looking at shapes takes as long as a small prox)
        shape = trial_shape(constraint, target)
        wanted = (*shape, constraint.row_count) if cap == "each" else shape
        try:
            np.broadcast_to(bound, wanted)
        except ValueError:
            raise InvalidInput(f"weight: expected a shape that broadcasts to {wanted}, got {bound.shape}") from None
    try:
        return solve_hinge_prox(K, constraint, target, bound, cap, cuts, tol).point
    except RuntimeWarning:  # as in `project`
        with ignore_fp_warnings():
            return solve_hinge_prox(K, constraint, target, bound, cap, cuts, tol).point


def solve_hinge_prox(
    K: ConvexSet,
    constraint: Constraint,
    target: Array,
    max_multiplier: Array,
    cap: str,
    cuts: int = MAX_CUTS,
    tol: float = BLACK_BOX,
) -> Projection:
    """argmin over x in K of ½‖x − target‖² + penalty(x), on checked arguments."""
    if cap == "sum" and constraint.row_count > 1:
        return solve(make_tuple(Request, (K, constraint, target, None, max_multiplier, "raise", cuts, tol, 0.0)))
    each = np.asarray(max_multiplier)
    each = each[..., None] if cap == "sum" or each.ndim == 0 else each
    return solve(make_tuple(Request, (K, constraint, target, each, None, "raise", cuts, tol, 0.0)))
