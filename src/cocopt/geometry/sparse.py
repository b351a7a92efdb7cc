"""The method of sparse rows over a box, a ball or a polyhedron: Newton's method on the dual, compiled.

The compiled method (`cocopt.kernels.sparse`) is given all trials. One that it cannot solve starts once more from the
multipliers of an interior-point solution. Whatever it finds is checked here, by its optimality conditions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.geometry.batch import Batch
from cocopt.geometry.problem import Request, size_of, trial_shape
from cocopt.kernels import contiguous
from cocopt.kernels.status import CONVERGED, INFEASIBLE, UNCONVERGED
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.solvers.far_targets import MAX_STEPS, is_unchanged, nearer_target
from cocopt.solvers.solution import Solution
from cocopt.sparse_rows import SparseRows
from cocopt.tolerances import FEASIBILITY, OPTIMALITY_EXACT, SATISFIED

__all__ = ["solve_sparse", "solve_sparse_batch", "sparse_applies"]

NEARER = (100.0, 1.0, 0.01)  # distances of nearer targets, in sizes of their projections; the next if one fails


class _Form(NamedTuple):
    """K as a box or a ball and rows; those of the constraint come after K's own."""

    lower: Array
    upper: Array
    center: Array
    radius: float
    rows: SparseRows
    own: int  # rows of K
    equalities: int  # among them, the first ones


def sparse_applies(request: Request) -> bool:
    """Whether the rows are sparse and affine, K is a box, a ball or a polyhedron, and no sum is bounded."""
    if request.constraint.sparse_rows() is None or np.isfinite(request.sum_bound).any():
        return False
    return type(request.K) is Ball or request.K.polyhedral() is not None


def solve_sparse_batch(request: Request) -> Batch | None:
    """All trials by the compiled method; None if it does not apply."""
    constraint = request.constraint
    if constraint.sparse_rows() is None or request.max_multiplier_sum is not None or not sparse_applies(request):
        return None
    shape = trial_shape(constraint, request.point)
    each = request.max_multiplier
    bounds = np.full(constraint.row_count, np.inf) if each is None else each
    return *_solve_trials(request, _form(request.K, constraint.sparse_rows()), bounds, None, shape), "sparse"


def solve_sparse(request: Request) -> Solution:
    """One trial that the compiled method did not solve, from the multipliers of an interior-point solution.

    From afar x comes with the rounding of the target: then the same from nearer ones, until x no longer changes.
    """
    form = _form(request.K, request.constraint.sparse_rows())
    found = _from_interior(request, form)
    if found.status != UNCONVERGED or not np.isfinite(found.point).all():
        return found
    x, bounds = found.point, request.row_bounds
    for distance in NEARER:
        for _ in range(MAX_STEPS):
            size = size_of(request, x)
            target, tau = nearer_target(request.point, x, size, distance)
            part = float(tau[0])
            if part == 1.0:  # the target is near itself
                break
            nearer = _from_interior(request._replace(point=target, max_multiplier=part * bounds), form)
            if nearer.status != CONVERGED:
                break
            if is_unchanged(nearer.point, x, size, SATISFIED):
                at_bound = nearer.multipliers == part * bounds
                return nearer._replace(multipliers=np.where(at_bound, bounds, nearer.multipliers / part))
            x = nearer.point
    return found


def _from_interior(request: Request, form: _Form) -> Solution:
    """One trial from the multipliers of an interior-point solution."""
    from cocopt.solvers.sparse_qp import interior_multipliers

    start, infeasible = interior_multipliers(*form[:5], form.equalities, request.point)
    if infeasible:
        return Solution(request.point, np.full(request.constraint.row_count, np.nan), INFEASIBLE)
    x, nu, status = _solve_trials(request, form, request.row_bounds, start, ())
    return Solution(x, nu, int(status))


def _form(K: ConvexSet, rows: SparseRows | None) -> _Form:
    assert rows is not None  # see `sparse_applies`
    free = np.full(K.dim, np.inf)
    if isinstance(K, Ball):
        return _Form(-free, free, K.center, K.radius, rows, 0, 0)
    polyhedral = K.polyhedral()
    assert polyhedral is not None
    lower, upper, A, b, equalities = polyhedral
    if b.size:
        rows = SparseRows.stacked([SparseRows.of_dense(A, b), rows])
    return _Form(lower, upper, np.zeros(K.dim), np.inf, rows, b.size, equalities)


def _solve_trials(
    request: Request, form: _Form, bounds: Array, start: Array | None, shape: tuple[int, ...]
) -> tuple[Array, Array, Any]:
    """(points, multipliers of the constraint's rows, statuses) of trials of that shape, from multipliers or from 0."""
    K, constraint, point, *_ = request
    rows, own, M = form.rows, form.own, constraint.row_count
    if not np.isfinite(rows.values).all() or not (rows.b > -np.inf).all():
        constraint.raise_nonfinite(point)
    used, norms, *entries, rhs = rows.unit_rows
    equalities = np.count_nonzero(used < form.equalities)
    most = np.full((*shape, rows.row_count), np.inf)
    most[..., own:] = np.broadcast_to(bounds, (*shape, M))
    y, limits = contiguous(np.broadcast_to(point, (*shape, K.dim))), contiguous(most[..., used] * norms)
    begin = np.zeros(used.size) if start is None else np.minimum(start[used] * norms, limits)
    x, nu, status = kernels.sparse_project(
        y, form.lower, form.upper, form.center, form.radius, *entries, rhs, limits, equalities, begin
    )
    multipliers = np.zeros((*shape, rows.row_count))
    multipliers[..., used] = np.where(nu == limits, most[..., used], nu / norms)  # exact at a bound
    zero = (rows.norms == 0.0) & (rows.b < 0.0)  # rows 0 ≤ b that hold nowhere: their multipliers are at their bounds
    multipliers[..., zero] = most[..., zero]
    hopeless = np.isinf(most[..., zero]).any(axis=-1)
    good = (status != CONVERGED) | _is_optimal(request, form, most, x, multipliers)
    status = np.where(hopeless, INFEASIBLE, np.where(good, status, UNCONVERGED))
    return x, multipliers[..., own:], status


def _is_optimal(request: Request, form: _Form, most: Array, x: Array, multipliers: Array) -> Any:  # bool (...)
    """Whether x is feasible and P(y − Aᵀν), P onto the box or ball, and 0 ≤ ν ≤ most, 0 where a row has slack."""
    K, constraint, point, *_ = request
    rows, nu = form.rows, np.where(np.isfinite(multipliers), multipliers, 0.0)
    z = point - rows.combine(nu)
    box = np.isinf(form.radius)
    nearest = np.minimum(np.maximum(z, form.lower), form.upper) if box else K.project_unchecked(z)
    size = np.linalg.norm(point, axis=-1) + np.linalg.norm(x, axis=-1)
    moved = np.linalg.norm(x - nearest, axis=-1)
    values: Array = kernels.sparse_rows(rows.values, rows.places, rows.start, rows.b, x)
    inside = ((nu <= most) & ((nu >= 0.0) | (np.arange(rows.row_count) < form.equalities))).all(axis=-1)
    gap = np.abs(nu * np.where((nu != 0.0) & (nu < most), values, 0.0)).sum(axis=-1)
    excess = np.maximum(values[..., form.own :], 0.0) / np.maximum(constraint.magnitude(x), 1e-300)
    required = (nu < most)[..., form.own :]  # a row may be violated if its multiplier is at its bound
    unmet = np.max(excess, axis=-1, initial=0.0, where=required)
    outside = K.violation_unchecked(x) / np.maximum(np.abs(x).max(axis=-1), K.scale)
    optimal = inside & (moved <= OPTIMALITY_EXACT * size) & (gap <= OPTIMALITY_EXACT * size * size)
    return optimal & (unmet <= FEASIBILITY) & (outside <= FEASIBILITY)
