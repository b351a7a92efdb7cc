"""The hinge prox: a projection that may give up on a constraint when holding it costs more than a given price."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, as_points, describe, positive_int, require_finite, scalar
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.geometry.project import Projection, _check, descend, trials
from cocopt.sets.base import ConvexSet

__all__ = ["hinge_prox", "solve_hinge_prox"]


def hinge_prox(
    K: ConvexSet,
    constraint: Constraint,
    point: ArrayLike,
    *,
    weight: ArrayLike,
    linear: ArrayLike | None = None,
    rho: float = 0.5,
    cap: Literal["each", "sum"] = "each",
    cuts: int = 500,
    tol: float = 1e-7,
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
        For black boxes: the largest number of cutting planes a trial, and the error of the penalty's model that is
        accepted.

    Examples
    --------
    A price of 0.2 moves the point by 0.2; the constraint would ask for 0.5, which a price of 1 pays in full.

    >>> import cocopt
    >>> from cocopt import Box, constraints
    >>> K, g = Box(0.0, 2.0, dim=2), constraints.Affine([1.0, 0.0], 1.0)
    >>> cocopt.hinge_prox(K, g, [1.5, 1.0], weight=0.2)
    array([1.3, 1. ])
    >>> cocopt.hinge_prox(K, g, [1.5, 1.0], weight=1.0)
    array([1., 1.])
    """
    _check(K, constraint)
    if constraint is None:
        raise InvalidInput("constraint: expected a constraint such as constraints.Affine, got None")
    if cap not in ("each", "sum"):
        raise InvalidInput(f'cap: expected "each" or "sum", got {describe(cap)}')
    double = 2.0 * scalar("rho", rho, positive=True)
    positive_int("cuts", cuts)
    scalar("tol", tol, positive=True)
    target = require_finite("point", as_points("point", point, K.dim))
    if linear is not None:
        target = target - require_finite("linear", as_points("linear", linear, K.dim)) / double
    price = require_finite("weight", as_floats("weight", weight), infinities=True) / double
    if (price < 0).any():
        raise InvalidInput(f"weight: expected non-negative numbers, got {float(price.min()) * double}")
    shape = trials(constraint, target)
    wanted = (*shape, constraint.row_count) if cap == "each" else shape
    try:
        np.broadcast_to(price, wanted)
    except ValueError:
        raise InvalidInput(f"weight: expected a shape that broadcasts to {wanted}, got {price.shape}") from None
    return solve_hinge_prox(K, constraint, target, price, cap, cuts, tol).point


def solve_hinge_prox(
    K: ConvexSet, constraint: Constraint, target: Array, price: Array, cap: str, cuts: int = 500, tol: float = 1e-7
) -> Projection:
    """argmin over x in K of ½‖x − target‖² + penalty(x), on checked arguments."""
    if constraint.row_count == 1 or cap == "each":
        price = np.asarray(price)[..., None] if cap == "sum" else np.atleast_1d(price)
        return descend(K, constraint, target, price, None, "raise", cuts, tol)
    return descend(K, constraint, target, None, price, "raise", cuts, tol)
