"""Newton's method for a few curved rows, with affine ones beside them, for all trials at once.

K is a polyhedron, a ball or an ellipsoid; the rows are those of `Quadratic`, `SecondOrder`, `NormBall` and `Affine`,
shifted or stacked. See `cocopt.kernels.dense.newton`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array, broadcast, ignore_fp_warnings
from cocopt.constraints import Affine, Constraint, NormBall, Quadratic, SecondOrder, Shifted, Stack
from cocopt.geometry.batch import Batch
from cocopt.geometry.problem import Request
from cocopt.kernels import contiguous
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.ellipsoid import Ellipsoid

__all__ = ["newton_applies", "solve_dense"]

MAX_NEWTON_DIM = 1000  # in more dimensions the interior-point method with its sparse factors is no slower
MAX_NEWTON_ROWS = 40  # of all kinds, K's own included: the step of the multipliers takes their third power
MAX_CURVED_ROWS = 12  # all but the affine ones: each has a matrix of its own

_UNBOUNDED = np.array(np.inf)


class Rows(NamedTuple):
    """Rows as the kernel takes them, in its order: affine, balls, quadratics, cones. Leading axes are trials."""

    A: Array
    b: Array
    centers: Array
    radii: Array
    P: Array
    q: Array
    r: Array
    C: Array
    e: Array
    f: Array
    h: Array

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many rows there are of each kind."""
        return self.b.shape[-1], self.radii.shape[-1], self.r.shape[-1], self.h.shape[-1]


def solve_dense(request: Request) -> Batch | None:
    """The answer for all trials; None if K or the constraint are of other kinds, or affine, or too large."""
    members = _members(request.constraint)
    own = _own_rows(request.K) if members is not None else None
    if members is None or own is None or not _is_small(request, members, own):
        return None
    lower, upper, own_rows, equalities = own
    projects = request.max_multiplier is None and request.max_multiplier_sum is None
    rows, order = _stacked([own_rows, *(_rows_of(member, projects) for member in members)])
    counts = rows.counts
    R, own_count = sum(counts), sum(own_rows.counts)
    public = order[own_count:]
    most, counted = np.full(R, np.inf), np.zeros(R)
    if request.max_multiplier is not None:
        each = np.broadcast_to(request.max_multiplier, (*request.max_multiplier.shape[:-1], R - own_count))
        most = np.full((*each.shape[:-1], R), np.inf)
        most[..., public] = each
    most_sum = _UNBOUNDED if request.max_multiplier_sum is None else request.max_multiplier_sum
    counted[public] = 1.0
    n, p = request.K.dim, rows.e.shape[-1]
    memory = np.empty(kernels.newton_memory(n, R, counts[3], p))
    data = contiguous(request.point), lower, upper, *map(contiguous, rows[:2]), equalities, *map(contiguous, rows[2:])
    with ignore_fp_warnings():  # a trial that overflows is not converged
        x, nu, status = kernels.newton_rows(*data, most, most_sum, counted, memory)
    return x, nu[..., public], status, "newton"


def newton_applies(request: Request) -> bool:
    """Whether `solve_dense` is for this request."""
    members = _members(request.constraint)
    own = _own_rows(request.K) if members is not None else None
    return members is not None and own is not None and _is_small(request, members, own)


def _is_small(request: Request, members: list[Constraint], own: tuple[Array, Array, Rows, int]) -> bool:
    """Whether there are few enough rows and dimensions."""
    affine = own[2].counts[0] + sum(member.row_count for member in members if type(member) is Affine)
    curved = sum(own[2].counts[1:]) + sum(type(member) is not Affine for member in members)
    return request.K.dim <= MAX_NEWTON_DIM and affine + curved <= MAX_NEWTON_ROWS and curved <= MAX_CURVED_ROWS


def _members(constraint: Constraint) -> list[Constraint] | None:
    """The constraint as a list of those that are known here; None if one is not, or all are affine."""
    members = _flattened(constraint)
    return None if members is None or all(type(member) is Affine for member in members) else members


def _flattened(constraint: Constraint) -> list[Constraint] | None:
    kind = type(constraint)
    if kind in (Quadratic, SecondOrder, NormBall, Affine):
        return [constraint]
    if isinstance(constraint, Shifted) and kind is Shifted:
        shifted = _shifted(constraint)
        return None if shifted is None else [shifted]
    if not isinstance(constraint, Stack) or kind is not Stack:
        return None
    members: list[Constraint] = []
    for member in constraint.members:
        parts = _flattened(member)
        if parts is None:
            return None
        members += parts
    return members


def _shifted(constraint: Shifted) -> Constraint | None:
    """A shifted constraint as one of the class of its own; None for a class that is not known here."""
    of, by = constraint.of, constraint.by
    if type(of) is Affine:
        return Affine(of.A, of.b - by)
    if type(of) is Quadratic:
        return Quadratic(of.P, of.q, of.r + by[..., 0])
    if type(of) is SecondOrder:
        return SecondOrder(of.A, of.b, of.c, of.d - by[..., 0])
    if type(of) is NormBall:
        return NormBall(of.center, of.radius - by[..., 0])
    return None


def _no_rows(n: int) -> Rows:
    zero, vectors, matrices = np.zeros(0), np.zeros((0, n)), np.zeros((0, n, n))
    return Rows(
        vectors, zero, vectors, zero, matrices, vectors, zero, np.zeros((0, 0, n)), np.zeros((0, 0)), vectors, zero
    )


def _own_rows(K: ConvexSet) -> tuple[Array, Array, Rows, int] | None:
    """K as bounds and rows, and how many of these are equalities; None if K is of another kind."""
    n = K.dim
    if type(K) is Ball or type(K) is Ellipsoid:
        free = np.full(n, np.inf)
        if type(K) is Ball:
            rows = _no_rows(n)._replace(centers=K.center[None], radii=np.array([K.radius]))
        else:
            assert isinstance(K, Ellipsoid)
            rows = _no_rows(n)._replace(**_ellipsoid(K))
        return -free, free, rows, 0
    polyhedral = K.polyhedral()
    if polyhedral is None:
        return None
    return (
        polyhedral.lower,
        polyhedral.upper,
        _no_rows(n)._replace(A=polyhedral.A, b=polyhedral.b),
        polyhedral.equalities,
    )


def _ellipsoid(K: Ellipsoid) -> dict[str, Array]:
    """½(x − c)ᵀP⁻¹(x − c) − ½ ≤ 0, times the square of the largest semi-axis."""
    rows = K.axes.T * (K.sigma[0] / K.sigma)[:, None]  # ‖rows (x − c)‖ ≤ max σ
    P, image = rows.T @ rows, rows @ K.center
    return {"P": P[None], "q": -(P @ K.center)[None], "r": np.array([0.5 * (image @ image - K.sigma[0] ** 2)])}


def _rows_of(member: Constraint, projects: bool) -> Rows:
    """The rows of one constraint of a class that is known here."""
    none = _no_rows(member.dim or 0)
    if isinstance(member, Affine):
        return none._replace(A=member.A, b=member.b)
    if isinstance(member, Quadratic):
        return none._replace(P=member.P[..., None, :, :], q=member.q[..., None, :], r=member.r[..., None])
    if isinstance(member, NormBall):
        if projects:
            return none._replace(centers=member.center[..., None, :], radii=member.radius[..., None])
        n = member.center.shape[-1]
        C, e = np.eye(n)[None], -member.center[..., None, :]
        return none._replace(C=C, e=e, f=np.zeros((1, n)), h=member.radius[..., None])
    assert isinstance(member, SecondOrder)
    C, e = member.A[..., None, :, :], member.b[..., None, :]
    return none._replace(C=C, e=e, f=member.c[..., None, :], h=member.d[..., None])


def _stacked(parts: list[Rows]) -> tuple[Rows, Array]:
    """All rows together, and where in the kernel's order each of them is, in the order of the parts."""
    p = max(part.e.shape[-1] for part in parts)
    parts = [part if part.e.shape[-1] in (0, p) else _padded(part, p) for part in parts]
    # every array has its rows on the axis before those that the second number counts
    inner = (1, 0, 1, 0, 2, 1, 0, 2, 1, 1, 0)
    joined = [_joined([part[i] for part in parts], axes) for i, axes in enumerate(inner)]
    rows = Rows(*joined)
    starts = list(np.cumsum([0, *rows.counts[:-1]]))
    order: list[int] = []
    for part in parts:
        for kind, count in enumerate(part.counts):
            order += range(starts[kind], starts[kind] + count)
            starts[kind] += count
    return rows, np.array(order)


def _joined(arrays: list[Array], axes: int) -> Array:
    """Arrays one after the other along the axis before the last ``axes``, their leading axes broadcast."""
    arrays = [array for array in arrays if array.shape[array.ndim - 1 - axes]] or arrays[:1]
    if len(arrays) == 1:
        return arrays[0]
    batch = np.broadcast_shapes(*(array.shape[: array.ndim - 1 - axes] for array in arrays))
    whole = [broadcast(array, (*batch, *array.shape[array.ndim - 1 - axes :])) for array in arrays]
    return np.concatenate(whole, axis=-1 - axes)


def _padded(part: Rows, p: int) -> Rows:
    """With rows of zeros, so that all cones have p."""
    more = p - part.e.shape[-1]
    C = np.concatenate([part.C, np.zeros((*part.C.shape[:-2], more, part.C.shape[-1]))], axis=-2)
    return part._replace(C=C, e=np.concatenate([part.e, np.zeros((*part.e.shape[:-1], more))], axis=-1))
