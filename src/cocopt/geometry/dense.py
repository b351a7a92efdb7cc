"""Newton's method for a few curved rows, with affine ones beside them, for all trials at once.

K is a polyhedron, a ball, an ellipsoid, or a product or an intersection of such sets; the rows are those of
`Quadratic`, `SecondOrder`, `NormBall` and `Affine`, shifted or stacked. See `cocopt.kernels.dense.newton`.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, broadcast, ignore_fp_warnings
from cocopt.constraints import Affine, Constraint, CVaR, NormBall, Quadratic, SecondOrder, Shifted, Stack
from cocopt.constraints.ball_of_norm import BallOfNorm
from cocopt.geometry.batch import Batch
from cocopt.geometry.problem import Request
from cocopt.kernels import contiguous
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.ellipsoid import Ellipsoid
from cocopt.sets.intersection import Intersection
from cocopt.sets.product import Product

__all__ = [
    "KINDS",
    "MAX_CURVED_ROWS",
    "MAX_NEWTON_DIM",
    "MAX_NEWTON_ROWS",
    "UNBOUNDED",
    "OwnRows",
    "RowData",
    "flattened",
    "newton_applies",
    "no_bounds",
    "own_rows",
    "row_data",
    "solve_dense",
]

MAX_NEWTON_DIM = 1000  # in more dimensions the interior-point method with its sparse factors is no slower
MAX_BLOCK_DIM = 150  # the same for balls of some of the coordinates, whose matrices are sparse, and no dense rows
MAX_NEWTON_ROWS = 40  # of all kinds, K's own included: the step of the multipliers takes their third power
MAX_CURVED_ROWS = 12  # all but the affine ones: each has a matrix of its own
FAR_CENTER = 100.0  # an ellipsoid so many of its shortest semi-axes away from 0 loses digits as a quadratic row

UNBOUNDED = np.array(np.inf)  # the bound of a sum of multipliers that never binds
_DENSE, _DIAGONAL = np.zeros(1), np.ones(1)  # whether the matrix of a quadratic row is diagonal
_AFFINE, _BALL, _QUADRATIC, _CONE = range(4)  # the kinds of rows, in the kernel's order
#: the kind of each class whose rows the kernel takes
KINDS: dict[type[Constraint], int] = {Affine: _AFFINE, NormBall: _BALL, Quadratic: _QUADRATIC, SecondOrder: _CONE}
#: how many axes each array of a kind has behind that of its rows
_INNER = ((1, 0), (1, 0), (2, 1, 0, 0), (2, 1, 1, 0))

Part = tuple[int, tuple[Array, ...]]  # some rows of one kind, and their arrays


class OwnRows(NamedTuple):
    """K as bounds and rows; the first of the affine ones are equalities."""

    lower: Array
    upper: Array
    parts: tuple[Part, ...]
    equalities: Array
    affine_count: int
    curved_count: int
    blocks: bool  #: whether the curved ones are balls of some of the coordinates, and there are such


class RowData(NamedTuple):
    """K's own rows and those of a constraint, as the kernel takes them."""

    arrays: list[Array]  #: A, b, centers, radii, P, q, diagonal, r, C, e, f, h of `cocopt.kernels.dense.problem`
    height: int  #: how many rows the matrix of a cone has
    order: list[int]  #: where the constraint's rows are among all
    own_count: int  #: how many of all are K's


def solve_dense(request: Request) -> Batch | None:
    """The answer for all trials; None if K or the constraint are of other kinds, or affine, or too large."""
    found = _rows_of_request(request)
    if found is None:
        return None
    own, members = found
    each, of_sum = request.max_multiplier, request.max_multiplier_sum
    n, (data, p, order, own_count) = request.K.dim, row_data(own, members, each is None and of_sum is None)
    R = own_count + len(order)
    public: Any = order
    if order == list(range(own_count, R)):  # a slice, since it costs less than a list of indices
        public = slice(own_count, R)
    most, counted = no_bounds(R)
    if each is not None:
        each = np.broadcast_to(each, (*each.shape[:-1], R - own_count))
        most = np.full((*each.shape[:-1], R), np.inf)
        most[..., public] = each
    if of_sum is not None:
        counted = np.zeros(R)
        counted[public] = 1.0
    memory = kernels.newton_memory(n, R, data[-1].shape[-1], p)
    arguments = contiguous(request.point), own.lower, own.upper, *data[:2], own.equalities, *data[2:], most
    with ignore_fp_warnings():  # a trial that overflows is not converged
        x, nu, status = kernels.newton_rows(*arguments, UNBOUNDED if of_sum is None else of_sum, counted, *memory)
    return x, nu[..., public] if own_count or public is order else nu, status, "newton"


def newton_applies(request: Request) -> bool:
    """Whether `solve_dense` is for this request."""
    return _rows_of_request(request) is not None


def _rows_of_request(request: Request) -> tuple[OwnRows, list[Constraint]] | None:
    """K's own rows and the constraint's parts, if all are of known kinds, some are curved, and there are few."""
    members = flattened(request.constraint, KINDS)
    own = None if members is None else own_rows(request.K)
    if members is None or own is None:
        return None
    affine, curved = own.affine_count, own.curved_count
    for member in members:
        if type(member) is Affine:
            affine += member.row_count
        else:
            curved += 1
    if not 0 < curved <= MAX_CURVED_ROWS or affine + curved > MAX_NEWTON_ROWS or request.K.dim > MAX_NEWTON_DIM:
        return None
    if own.blocks and request.K.dim > MAX_BLOCK_DIM and all(type(member) in (Affine, NormBall) for member in members):
        return None
    return own, members


def flattened(constraint: Constraint, kinds: Container[type[Constraint]]) -> list[Constraint] | None:
    """The constraint as a list of those of some kinds; None if one is of another."""
    kind = type(constraint)
    if kind in kinds:
        return [constraint]
    if isinstance(constraint, Shifted) and kind is Shifted:
        return [_shifted(constraint)] if type(constraint.of) in kinds else None
    if not isinstance(constraint, Stack) or kind is not Stack:
        return None
    members: list[Constraint] = []
    for member in constraint.members:
        parts = flattened(member, kinds)
        if parts is None:
            return None
        members += parts
    return members


def _shifted(constraint: Shifted) -> Constraint:
    """A shifted constraint as one of the class of its own."""
    of, by = constraint.of, constraint.by
    if isinstance(of, Affine):
        return Affine(of.A, of.b - by)
    if isinstance(of, Quadratic):
        return Quadratic(of.P, of.q, of.r + by[..., 0])
    if isinstance(of, SecondOrder):
        return SecondOrder(of.A, of.b, of.c, of.d - by[..., 0])
    if isinstance(of, CVaR):
        return CVaR(of.scenarios, of.level, of.limit - by[..., 0])
    assert isinstance(of, BallOfNorm)
    return type(of)(of.center, of.radius - by[..., 0])


_KNOWN_SETS: dict[int, tuple[weakref.ref[ConvexSet], OwnRows | None]] = {}


def own_rows(K: ConvexSet) -> OwnRows | None:
    """K as bounds and rows, which are kept as long as K is; None if K is of another kind."""
    known = _KNOWN_SETS.get(id(K))
    if known is not None and known[0]() is K:
        return known[1]
    found, key = _describe_set(K), id(K)
    _KNOWN_SETS[key] = weakref.ref(K, lambda _: _KNOWN_SETS.pop(key, None)), found
    return found


def _describe_set(K: ConvexSet) -> OwnRows | None:
    """`own_rows`, computed anew."""
    lower, upper = np.full(K.dim, -np.inf), np.full(K.dim, np.inf)
    equalities: list[Part] = []
    others: list[Part] = []
    if not _add_set(K, 0, (lower, upper), equalities, others):
        return None
    parts = (*equalities, *others)
    affine, curved = (
        sum(data[-1].shape[-1] for kind, data in parts if (kind == _AFFINE) == wanted) for wanted in (True, False)
    )
    count = sum(data[-1].shape[-1] for _, data in equalities)
    blocks = any(kind == _QUADRATIC for kind, _ in parts) and type(K) is not Ellipsoid
    return OwnRows(lower, upper, parts, np.array(count), affine, curved, blocks)


def _add_set(K: ConvexSet, at: int, bounds: tuple[Array, Array], equalities: list[Part], others: list[Part]) -> bool:
    """Adds what describes K, whose coordinates begin ``at``, to bounds and rows; False if K is of another kind."""
    polyhedral, n = K.polyhedral(), bounds[0].size
    own = slice(at, at + K.dim)
    if polyhedral is not None:
        bounds[0][own] = np.maximum(bounds[0][own], polyhedral.lower)
        bounds[1][own] = np.minimum(bounds[1][own], polyhedral.upper)
        A = np.zeros((polyhedral.b.size, n))
        A[:, own] = polyhedral.A
        split = polyhedral.equalities
        for rows, piece in ((equalities, slice(split)), (others, slice(split, None))):
            if polyhedral.b[piece].size:
                rows.append((_AFFINE, (A[piece], polyhedral.b[piece])))
        return bool((bounds[0] <= bounds[1]).all())
    if isinstance(K, Product | Intersection):
        for part in K.sets:
            if not _add_set(part, at, bounds, equalities, others):
                return False
            at += part.dim if isinstance(K, Product) else 0
        return True
    if type(K) is Ball and K.dim == n and K.radius > 0.0:
        others.append((_BALL, (K.center[None], np.array([K.radius]))))
        return True
    quadratic = _as_quadratic(K)
    if quadratic is None:
        return False
    P, q, r = quadratic
    wide_P, wide_q = np.zeros((1, n, n)), np.zeros((1, n))
    wide_P[0, own, own], wide_q[0, own] = P, q
    flag = _DIAGONAL if type(K) is Ball else _DENSE
    others.append((_QUADRATIC, (wide_P, wide_q, flag, np.array([r]))))
    return True


def _as_quadratic(K: ConvexSet) -> tuple[Array, Array, float] | None:
    """A ball or an ellipsoid as ½xᵀPx + ⟨q, x⟩ + r ≤ 0; None if it is far from 0, or K another set.

    For an ellipsoid that is ½(x − c)ᵀP⁻¹(x − c) − ½, times the square of the largest semi-axis.
    """
    if type(K) is Ball:
        rows, longest, shortest = np.eye(K.dim), float(K.radius), float(K.radius)
    elif type(K) is Ellipsoid:
        rows, longest, shortest = K.axes.T * (K.sigma[0] / K.sigma)[:, None], float(K.sigma[0]), float(K.sigma.min())
    else:
        return None
    if not float(np.linalg.norm(K.center)) <= FAR_CENTER * shortest or longest == 0.0:
        return None
    P, image = rows.T @ rows, rows @ K.center  # ‖rows (x − c)‖ ≤ the longest semi-axis
    return P, -(P @ K.center), 0.5 * float(image @ image - longest**2)


def row_data(own: OwnRows, members: list[Constraint], projects: bool) -> RowData:
    """K's own rows and those of a constraint's parts, as the kernel takes them."""
    kinds, order, own_count = _sorted_parts(own, members, projects)
    return RowData(*_joined_parts(kinds, own.lower.size), order, own_count)


def _sorted_parts(
    own: OwnRows, members: list[Constraint], projects: bool
) -> tuple[list[list[tuple[Array, ...]]], list[int], int]:
    """The rows by their kinds, K's own first; where in the kernel's order the constraint's are; how many are K's."""
    kinds: list[list[tuple[Array, ...]]] = [[], [], [], []]
    counts = [0, 0, 0, 0]
    for kind, data in own.parts:
        kinds[kind].append(data)
        counts[kind] += data[-1].shape[-1]
    places: list[tuple[int, int, int]] = []  # kind, first row within it, number of rows
    for member in members:
        kind, data = _part_of(member, projects)
        kinds[kind].append(data)
        places.append((kind, counts[kind], member.row_count))
        counts[kind] += member.row_count
    starts = 0, counts[0], counts[0] + counts[1], counts[0] + counts[1] + counts[2]
    order: list[int] = []
    for kind, first, count in places:
        order += range(starts[kind] + first, starts[kind] + first + count)
    return kinds, order, own.affine_count + own.curved_count


def _part_of(member: Constraint, projects: bool) -> Part:
    """The rows of one constraint of a class that is known here."""
    if isinstance(member, Affine):
        return _AFFINE, (member.A, member.b)
    if isinstance(member, Quadratic):
        flag = _DENSE if member.diagonal is None else _DIAGONAL
        return _QUADRATIC, (member.P[..., None, :, :], member.q[..., None, :], flag, member.r[..., None])
    if isinstance(member, NormBall):
        if projects:
            return _BALL, (member.center[..., None, :], member.radius[..., None])
        n = member.center.shape[-1]
        return _CONE, (np.eye(n)[None], -member.center[..., None, :], np.zeros((1, n)), member.radius[..., None])
    assert isinstance(member, SecondOrder)
    return _CONE, (member.A[..., None, :, :], member.b[..., None, :], member.c[..., None, :], member.d[..., None])


@cache
def no_bounds(R: int) -> tuple[Array, Array]:
    """Bounds of the multipliers that never bind, and which of them are counted in a sum: none."""
    return np.full(R, np.inf), np.zeros(R)


@cache
def _no_rows(n: int, kind: int) -> tuple[Array, ...]:
    """The arrays of a kind of which there are no rows."""
    none, vectors = np.zeros(0), np.zeros((0, n))
    if kind == _QUADRATIC:
        return np.zeros((0, n, n)), vectors, none, none
    return (np.zeros((0, 0, n)), np.zeros((0, 0)), vectors, none) if kind == _CONE else (vectors, none)


def _joined_parts(kinds: list[list[tuple[Array, ...]]], n: int) -> tuple[list[Array], int]:
    """The kernel's arrays of all kinds, and how many rows a cone's matrix has."""
    cones = kinds[_CONE]
    p = cones[0][1].shape[-1] if cones else 0
    if len(cones) > 1:
        p = max(e.shape[-1] for _, e, _, _ in cones)
        kinds[_CONE] = [_padded(cone, p) for cone in cones]
    arrays: list[Array] = []
    for kind, parts in enumerate(kinds):
        if len(parts) <= 1:
            arrays += map(contiguous, parts[0]) if parts else _no_rows(n, kind)
        else:
            arrays += [
                _joined(pieces, axes) for pieces, axes in zip(zip(*parts, strict=True), _INNER[kind], strict=True)
            ]
    return arrays, p


def _joined(arrays: Sequence[Array], axes: int) -> Array:
    """Arrays one after the other along the axis before the last ``axes``, their leading axes broadcast."""
    batch = arrays[0].shape[: arrays[0].ndim - 1 - axes]
    if any(array.shape[: array.ndim - 1 - axes] != batch for array in arrays):
        batch = np.broadcast_shapes(*(array.shape[: array.ndim - 1 - axes] for array in arrays))
        arrays = [broadcast(array, (*batch, *array.shape[array.ndim - 1 - axes :])) for array in arrays]
    # where axes are repeated numpy may choose another order of memory; the kernel needs the last axis to be the fastest
    return contiguous(np.concatenate(arrays, axis=-1 - axes))


def _padded(cone: tuple[Array, ...], p: int) -> tuple[Array, ...]:
    """With rows of zeros, so that all cones have p."""
    C, e, f, h = cone
    more = p - e.shape[-1]
    if not more:
        return cone
    C = np.concatenate([C, np.zeros((*C.shape[:-2], more, C.shape[-1]))], axis=-2)
    return C, np.concatenate([e, np.zeros((*e.shape[:-1], more))], axis=-1), f, h
