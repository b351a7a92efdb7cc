"""One curved row over a set, or one affine row over a curved set, by kernels that take all trials at once.

Which row over which set is a table: what a set and a row hand to a kernel, and the kernels that there are. A norm ball
together with affine rows has one kernel for all polyhedra. Balls of the 1-norm and of the maximum norm share another,
over bounds with or without a fixed sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, broadcast
from cocopt.constraints import Constraint, Norm1, NormBall, NormInf, Quadratic, Shifted, Stack
from cocopt.geometry.batch import Batch, kernel_rows
from cocopt.geometry.problem import Request
from cocopt.kernels import contiguous
from cocopt.kernels.status import UNCONVERGED
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.sets.box import Box
from cocopt.sets.capped_simplex import CappedSimplex
from cocopt.sets.ellipsoid import Ellipsoid
from cocopt.sets.l1ball import L1Ball
from cocopt.sets.orthant import Orthant
from cocopt.sets.simplex import Simplex
from cocopt.sets.space import Space

__all__ = ["curved_applies", "describe_curved", "solve_curved"]

Row = tuple[str, tuple[Array, ...]]  # the kind of a row and its data

#: how each set is called in the names of kernels, and what they need of it
_SETS: dict[type[ConvexSet], tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    Box: ("box", lambda K: (K.lower, K.upper)),
    Orthant: ("box", lambda K: (K.lower, K.upper)),
    Space: ("box", lambda K: (K.lower, K.upper)),
    Ball: ("ball", lambda K: (K.center, K.radius)),
    Simplex: ("simplex", lambda K: (K.total,)),
    L1Ball: ("l1_ball", lambda K: (K.center, K.radius)),
    Ellipsoid: ("ellipsoid", lambda K: (K.center, K.axes, K.sigma)),
}

#: the kernels that there are: the set and the kind of row
_KERNELS = {
    ("box", "norm_ball"): "box_norm_ball",
    ("box", "quadratic"): "box_quadratic",
    ("ball", "norm_ball"): "ball_norm_ball",
    ("simplex", "norm_ball"): "simplex_norm_ball",
    ("l1_ball", "norm_ball"): "l1_ball_norm_ball",
    ("l1_ball", "halfspace"): "l1_ball_halfspace",
    ("ellipsoid", "norm_ball"): "ellipsoid_norm_ball",
    ("ellipsoid", "halfspace"): "ellipsoid_halfspace",
}

_KINDS = {
    "norm_ball": "a norm ball",
    "quadratic": "a diagonal quadratic row",
    "halfspace": "one affine row",
    "norm1": "a ball of the 1-norm",
    "norm_inf": "a ball of the maximum norm",
}
_NAMES = {
    "box": "a box",
    "ball": "a ball",
    "simplex": "a simplex",
    "l1_ball": "an l1 ball",
    "ellipsoid": "an ellipsoid",
}


def _norm_ball(constraint: NormBall) -> Row:
    return "norm_ball", (contiguous(constraint.center), constraint.radius)


def _norm1(constraint: Norm1) -> Row:
    return "norm1", (contiguous(constraint.center), constraint.radius)


def _norm_inf(constraint: NormInf) -> Row:
    return "norm_inf", (constraint.center, constraint.radius)


def _quadratic(constraint: Quadratic) -> Row | None:
    diagonal = constraint.diagonal
    return None if diagonal is None else ("quadratic", (diagonal, contiguous(constraint.q), constraint.r))


def _shifted(constraint: Shifted) -> Row | None:
    row = _row(constraint.of)
    if row is None:
        return None
    kind, (*data, constant) = row
    by = constraint.by[..., 0]
    return kind, (*data, constant + by if kind == "quadratic" else constant - by)


#: what is known of each kind of constraint that is not affine
_ROWS: dict[type[Constraint], Callable[[Any], Row | None]] = {
    Norm1: _norm1,
    NormBall: _norm_ball,
    NormInf: _norm_inf,
    Quadratic: _quadratic,
    Shifted: _shifted,
}


def _row(constraint: Constraint) -> Row | None:
    """The kind and the data of the constraint, if it is a single row of a known kind."""
    if constraint.row_count != 1:
        return None
    read = _ROWS.get(type(constraint))
    if read is not None:
        return read(constraint)
    affine = constraint.affine()
    return None if affine is None else ("halfspace", (contiguous(affine[0])[..., 0, :], affine[1][..., 0]))


def _kernel(request: Request) -> tuple[str, tuple[Array, ...]] | None:
    """The name of the kernel for one row over a set, and the row's data."""
    known = _SETS.get(type(request.K))
    row = None if known is None else _row(request.constraint)
    if known is None or row is None:
        return None
    name = _KERNELS.get((known[0], row[0]))
    return None if name is None else (name, row[1])


def solve_curved(request: Request) -> Batch | None:
    """The answer for all trials, if there is a kernel for the rows over the set; None if another method is needed.

    Where a status is INFEASIBLE, which is proved, the point is the one of least violation nearest to the target.
    """
    found = _kernel(request)
    if found is None:
        within = _bounds_and_norm(request)
        return _solve_polyhedron(request) if within is None else _solve_norm(request, *within)
    K, _, point, max_multiplier, *_ = request
    name, row = found
    bound = np.inf if max_multiplier is None else max_multiplier[..., 0]
    x, nu, status = getattr(kernels, name)(contiguous(point), *_SETS[type(K)][1](K), *row, bound)
    return x, nu[..., None], status, "curved"


class Bounds(NamedTuple):
    """K = {lower ≤ x ≤ upper, Σ x_j = total}; without the sum if that is NaN."""

    lower: Array
    upper: Array
    total: float


def _bounds_and_norm(request: Request) -> tuple[Bounds, Row] | None:
    """K as bounds and the row, if that is a ball of the 1-norm or, in a projection, of the maximum norm."""
    K = request.K
    if type(K) not in (Box, Orthant, Space, Simplex, CappedSimplex):
        return None
    row = _row(request.constraint)
    if row is None or not (row[0] == "norm1" or (row[0] == "norm_inf" and request.projects)):
        return None
    polyhedral = K.polyhedral()
    assert polyhedral is not None  # of these classes
    return Bounds(polyhedral.lower, polyhedral.upper, polyhedral.b[0] if polyhedral.b.size else np.nan), row


def _solve_norm(request: Request, K: Bounds, row: Row) -> Batch:
    """A ball of the 1-norm, or of the maximum norm: that one makes the bounds tighter."""
    (lower, upper, total), (kind, (center, radius)), point = K, row, contiguous(request.point)
    if kind == "norm1":
        most = np.inf if request.max_multiplier is None else request.max_multiplier[..., 0]
        x, nu, _, status = kernels.bounds_norm1(point, lower, upper, total, center, radius, most)
        return x, nu[..., None], status, "curved"
    reach = radius[..., None]
    near = np.abs(point - center) <= reach  # (c ± r is rounded: a coordinate that is near enough is not moved for it)
    low, high = center - reach, center + reach
    low = np.maximum(lower, np.where(near, np.minimum(low, point), low))
    high = np.minimum(upper, np.where(near, np.maximum(high, point), high))
    known = np.where(np.isnan(radius), np.nan, np.inf)  # the row itself is in the bounds
    x, _, shift, status = kernels.bounds_norm1(point, low, high, total, contiguous(center), known, np.inf)
    status = np.where((low > high).any(axis=-1), UNCONVERGED, status)
    away = point - x - shift[..., None]
    held = np.where((x == high) & (high < upper), away, 0.0) - np.where((x == low) & (low > lower), away, 0.0)
    return x, np.maximum(held, 0.0).sum(axis=-1, keepdims=True), status, "curved"


class Rows(NamedTuple):
    """A norm ball and affine rows."""

    ball: int  #: the number of the ball's row
    center: Array
    radius: Array
    A: Array
    b: Array


def _norm_ball_and_rows(constraint: Constraint) -> Rows | None:
    """The constraint's rows, if one of them is a norm ball and the others are affine."""
    ball: Row | None = None
    number, at = 0, 0
    affine: list[tuple[Array, Array]] = []
    for member in constraint.members if isinstance(constraint, Stack) else (constraint,):
        rows = member.affine()
        if rows is not None:
            affine.append(rows)
        elif ball is None and type(member) in (NormBall, Shifted):  # (looking for a diagonal takes longer)
            ball, number = _row(member), at
            if ball is None or ball[0] != "norm_ball":
                return None
        else:
            return None
        at += member.row_count
    if ball is None:
        return None
    center, radius = ball[1]
    if len(affine) == 1:
        return Rows(number, center, radius, contiguous(affine[0][0]), contiguous(affine[0][1]))
    batch = constraint.batch if affine else ()
    A = [broadcast(rows, (*batch, *rows.shape[-2:])) for rows, _ in affine]
    b = [broadcast(rhs, (*batch, rhs.shape[-1])) for _, rhs in affine]
    no_rows, no_rhs = np.empty((*batch, 0, center.shape[-1])), np.empty((*batch, 0))
    # (joined in C order: where axes are repeated numpy may choose another)
    all_A, all_b = np.concatenate([no_rows, *A], -2), np.concatenate([no_rhs, *b], -1)
    return Rows(number, center, radius, contiguous(all_A), contiguous(all_b))


def _polyhedron(request: Request) -> tuple[Polyhedral, Rows] | None:
    """K's own rows and those of the constraint, if the kernel for a norm ball and affine rows applies."""
    if request.max_multiplier_sum is not None:
        return None
    rows = _norm_ball_and_rows(request.constraint)
    own = None if rows is None else request.K.polyhedral()
    if rows is None or own is None or own.b.size + rows.b.shape[-1] > kernel_rows(request.K):
        return None
    return own, rows


def _solve_polyhedron(request: Request) -> Batch | None:
    """A norm ball and affine rows over a polyhedron; no status is INFEASIBLE, since that is not proved."""
    found = _polyhedron(request)
    if found is None:
        return None
    own, (ball, center, radius, A, b) = found
    M, bounds = b.shape[-1], request.max_multiplier
    each, of_ball = np.full(M, np.inf), np.array(np.inf)
    if bounds is not None:
        bounds = np.broadcast_to(bounds, (*bounds.shape[:-1], M + 1))
        each, of_ball = np.delete(bounds, ball, axis=-1), bounds[..., ball]
    memory = kernels.workspace_memory(own.b.size + M, request.K.dim)
    x, nu, ball_nu, status = kernels.polyhedron_norm_ball(
        contiguous(request.point),
        *map(contiguous, own[:4]),
        own.equalities,
        A,
        b,
        each,
        center,
        radius,
        of_ball,
        *memory,
    )
    nu = np.concatenate([nu[..., :ball], ball_nu[..., None], nu[..., ball:]], axis=-1)
    return x, nu, status, "curved"


def curved_applies(request: Request) -> bool:
    """Whether there is a kernel for the request."""
    return any(find(request) is not None for find in (_kernel, _bounds_and_norm, _polyhedron))


def describe_curved(request: Request) -> str:
    """Why it applies, for `explain`."""
    within = _bounds_and_norm(request)
    if within is not None:
        return f"compiled, {_KINDS[within[1][0]]} over bounds{'' if np.isnan(within[0].total) else ' and a sum'}"
    if _kernel(request) is None:
        rows = request.constraint.row_count - 1
        return f"compiled, a norm ball{' and affine rows' if rows else ''} over a polyhedron"
    row = _row(request.constraint)
    assert row is not None  # see `_kernel`
    return f"compiled, {_KINDS[row[0]]} over {_NAMES[_SETS[type(request.K)][0]]}"
