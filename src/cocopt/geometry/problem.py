"""What is asked of the ladder of methods, what it answers, and the checks of arguments that its callers share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array, describe, ignore_fp_warnings
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
    "lengths",
    "relative_violation",
    "size_of",
    "trial_constraint",
    "trial_request",
    "trial_shape",
    "with_length",
]

MAX_CUTS = 500  # cutting planes per trial, unless a caller asks for another limit
PROBES = 1e-60, 1e60  # lengths beyond those of data, at which one term of a row exceeds all others
BESIDE_OTHERS = 1e-6  # by this share of the largest length in the data all positions are found to POSITION
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
    length: float = 0.0  #: of one trial's request: the unit of positions where K has no size of its own

    @property
    def scale(self) -> float:
        """The unit of positions near 0, and of what is violated there."""
        return self.length or self.K.scale

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


def with_length(request: Request) -> Request:
    """One trial's request, with the unit of positions that the constraint or the target gives where K has no size."""
    if request.K.sized or request.length:
        return request
    return request._replace(length=float(lengths(request.constraint, request.point)))


def lengths(constraint: Constraint, point: Array) -> Array:
    """A typical length of the constraint's data for each trial; where there is none, as of cones, of the target.

    That of a row is where its terms of the lowest degree in x are as large as those of the highest. Of several rows the
    least counts, but no less than what rounding beside the others allows: a row far away shall not hide an error.
    """
    tiny, huge = PROBES
    reaches = np.array([tiny, 2.0 * tiny, huge, 2.0 * huge])
    axes = (None,) * max(point.ndim, len(constraint.batch) + 1)
    with ignore_fp_warnings():
        terms = np.log2(constraint.magnitude(reaches[(..., *axes)] * np.ones(point.shape[-1])))
        of_low, of_high = np.round(terms[1] - terms[0]), np.round(terms[3] - terms[2])
        factors = (terms[0] - of_low * np.log2(tiny)) - (terms[2] - of_high * np.log2(huge))
        of_rows = np.exp2(factors / (of_high - of_low))
    known = (of_low < of_high) & np.isfinite(of_rows) & (of_rows > 0.0)
    least, largest = of_rows.min(-1, initial=np.inf, where=known), of_rows.max(-1, initial=0.0, where=known)
    of_target = np.where((of_high > 0.0).any(axis=-1), np.abs(point).max(axis=-1), 0.0)  # (else a black box)
    found = np.where(known.any(axis=-1), np.maximum(least, BESIDE_OTHERS * largest), of_target)
    return np.where(found > 0.0, found, 1.0)


def size_of(request: Request, x: Array) -> float:
    """The unit of x's position: its own size, or that of the data if it is larger."""
    return max(float(np.abs(x).max()), request.scale)


def relative_violation(request: Request, x: Array, rows_required: Any = True) -> float:
    """The worst violation at x in K's and the rows' own units, over the rows required; FEASIBILITY is promised.

    Where the terms of a row vanish, as at 0 if its right-hand side does, rounding at the scale of K is no violation.
    """
    K, constraint, scale = request.K, request.constraint, request.scale
    of_set = float(K.violation_unchecked(x)) / size_of(request, x)
    rows, unit = constraint.rows_unchecked(x), np.maximum(constraint.magnitude(x), 1e-300)
    if (rows > SATISFIED * unit).any():
        unit = np.maximum(unit, VANISHING * constraint.magnitude(np.full(x.shape, scale)))
    of_rows = float(np.max(rows / unit, initial=0.0, where=rows_required))
    return float(np.maximum(of_set, of_rows))  # NaN if one of them is
