"""What is asked of the ladder of methods, what it answers, and the checks of arguments that its callers share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, describe
from cocopt.constraints import Constraint
from cocopt.errors import InvalidInput
from cocopt.sets.base import ConvexSet
from cocopt.tolerances import BLACK_BOX, SATISFIED

__all__ = [
    "MAX_CUTS",
    "VANISHING",
    "Projection",
    "Request",
    "check_arguments",
    "relative_violation",
    "trial_constraint",
    "trial_request",
    "trial_shape",
]

MAX_CUTS = 500  # cutting planes per trial, unless a caller asks for another limit
VANISHING = 1e-4  # a row's terms below this share of those at K's scale: 1e-9 of them is rounding


class Request(NamedTuple):
    """argmin over x in K of ½‖x − point‖² + penalty(x), on checked arguments; without bounds, P_{K ∩ {g ≤ 0}}(point).

    The penalty is Σ_i max_multiplier_i g_i^+(x) with a bound for each row's multiplier, or max_multiplier_sum·max_i
    g_i^+(x) with one for their sum. Leading axes are trials; `trial_request` is the request of one of them.
    """

    K: ConvexSet
    constraint: Constraint
    point: Array  #: (..., n)
    max_multiplier: Array | None = None  #: (..., M)
    max_multiplier_sum: Array | None = None  #: (...)
    infeasible: str = "raise"  #: or "nearest": what to do if K ∩ {g ≤ 0} is empty
    cuts: int = MAX_CUTS  #: for black boxes, the largest number of cutting planes per trial
    tol: float = BLACK_BOX  #: for black boxes, the violation that is accepted

    @property
    def projects(self) -> bool:
        """Whether this is a projection: no multiplier has a finite bound."""
        each, of_sum = self.max_multiplier, self.max_multiplier_sum
        return bool((each is None or np.isinf(each).all()) and (of_sum is None or np.isinf(of_sum).all()))

    @property
    def row_bounds(self) -> Array:
        """Of one trial's request: the bound of each row's multiplier, (M,)."""
        bound = self.max_multiplier
        return np.full(self.constraint.row_count, np.inf) if bound is None else bound

    @property
    def sum_bound(self) -> float:
        """Of one trial's request: the bound of the multipliers' sum."""
        return np.inf if self.max_multiplier_sum is None else float(self.max_multiplier_sum)


class Projection(NamedTuple):
    """The answer to a `Request`; all but ``method`` and ``cuts`` have the leading axes of the trials."""

    point: Array  #: the projections, (..., n)
    method: str  #: the method that solved the last trial
    feasible: Any  #: whether K ∩ {g ≤ 0} has a point, bool (...)
    least_violation: Any  #: the least value of max_i g_i over K where it has none, else 0, (...)
    multipliers: Array | None = None  #: of the rows, (..., M), NaN where the method does not yield them
    cuts: int = 0  #: how many cutting planes were used in all


def check_arguments(K: Any, constraint: Any) -> None:
    """Raises unless K is a set and the constraint is None or one of the same dimension."""
    if not isinstance(K, ConvexSet):
        raise InvalidInput(f"K: expected a set such as cocopt.Box, got {describe(K)}")
    if constraint is None:
        return
    if not isinstance(constraint, Constraint):
        raise InvalidInput(f"constraint: expected a constraint such as constraints.Affine, got {describe(constraint)}")
    if constraint.dim is not None and constraint.dim != K.dim:
        raise InvalidInput(f"constraint: expected dimension {K.dim} as that of K, got {constraint.dim}")


def trial_shape(constraint: Constraint, point: Array) -> tuple[int, ...]:
    """The leading axes of the point and of the constraint together."""
    try:
        return np.broadcast_shapes(point.shape[:-1], constraint.batch)
    except ValueError:
        raise InvalidInput(
            f"point: expected leading axes that broadcast against the constraint's {constraint.batch}, "
            f"got {point.shape[:-1]}"
        ) from None


def trial_constraint(constraint: Constraint, shape: tuple[int, ...], index: tuple[Any, ...]) -> Constraint:
    """The constraint of one trial, its leading axes broadcast against those of all trials."""
    batch = constraint.batch
    own = index[len(shape) - len(batch) :]
    return constraint.trials(tuple(0 if size == 1 else i for size, i in zip(batch, own, strict=True)))


def trial_request(request: Request, shape: tuple[int, ...], index: tuple[Any, ...]) -> Request:
    """The request of one trial, the leading axes broadcast against those of all trials."""
    K, constraint, point, each, of_sum, *_ = request
    if not shape and each is None:
        return request
    M = constraint.row_count
    return request._replace(
        constraint=trial_constraint(constraint, shape, index),
        point=np.broadcast_to(point, (*shape, K.dim))[index],
        max_multiplier=None if each is None else np.broadcast_to(each, (*shape, M))[index],
        max_multiplier_sum=None if of_sum is None else np.broadcast_to(of_sum, shape)[index],
    )


def relative_violation(K: ConvexSet, constraint: Constraint, x: Array, rows_required: Any = True) -> float:
    """The worst violation at x in K's and the rows' own units, over the rows required; FEASIBILITY is promised.

    Where the terms of a row vanish, as at 0 if its right-hand side does, rounding at the scale of K is no violation.
    """
    of_set = float(K.violation_unchecked(x)) / max(float(np.abs(x).max()), K.scale)
    rows, unit = constraint.rows_unchecked(x), np.maximum(constraint.magnitude(x), 1e-300)
    if (rows > SATISFIED * unit).any():
        unit = np.maximum(unit, VANISHING * constraint.magnitude(np.full(x.shape, K.scale)))
    of_rows = float(np.max(rows / unit, initial=0.0, where=rows_required))
    return float(np.maximum(of_set, of_rows))  # NaN if one of them is
