"""The ladder of methods: a table, and the descent that goes through it.

A request is solved in two stages. First all trials at once, by the compiled kernels or, for more rows, DAQP
(`BATCH_METHODS`). Then each trial that is left goes through METHODS in their order, until a point passes the check of
its optimality conditions:

1. kernel: compiled, for boxes, balls and polyhedra with up to thousands of rows (first stage only);
2. curved: compiled, for one curved row, or one row over a curved set (first stage only);
3. newton: compiled, for a few curved rows, dense ones and several among them (first stage only);
4. pieces: the same where rows are piecewise linear, 1-norms, maximum norms and CVaR (first stage only);
5. sparse: compiled, for boxes, balls and polyhedra with sparse rows (in the second stage after an interior point);
6. daqp: an active-set solver, for polyhedra with more rows;
7. clarabel: an interior-point solver, for everything that has a conic form;
8. dual: for affine rows over a set that is known by its projection alone;
9. cuts: for constraints that are known by value and subgradient alone (smooth, separable, or by cutting planes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt.arrays import Array, ignore_fp_warnings, make_tuple, require_finite
from cocopt.constraints import Constraint
from cocopt.errors import InfeasibleRound, InvalidInput
from cocopt.geometry.batch import Batch, solve_batch
from cocopt.geometry.curved import solve_curved
from cocopt.geometry.cuts import solve_by_cuts
from cocopt.geometry.dense import solve_dense
from cocopt.geometry.equations import as_inequalities
from cocopt.geometry.pieces import solve_pieces
from cocopt.geometry.priorities import nearest_by_priority
from cocopt.geometry.problem import MAX_CUTS, VANISHING, Projection, Request, lengths, trial_request, trial_shape
from cocopt.geometry.sparse import solve_sparse_batch
from cocopt.geometry.structured import STRUCTURED, VERY_FAR, Method, solve_trial
from cocopt.kernels import contiguous
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.sets.ball import Ball
from cocopt.sets.box import Box
from cocopt.threads import one_blas_thread
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["MAX_CUTS", "METHODS", "Method", "Projection", "Request", "first_method", "first_request", "solve"]

FARTHEST = 1e150  # the squares of larger numbers overflow
IN_CONFLICT = 1e-4  # rows whose violation is the largest but for this share are those in conflict

_COMPILED = ("kernel", "curved", "newton", "pieces", "sparse")  # the methods of BATCH_METHODS

_ZERO = np.float64(0.0)


def _cuts_apply(request: Request) -> bool:
    return request.constraint.affine() is None if request.K.conic else request.projects


#: the methods for all trials at once, in the order in which they are tried; one that does not apply returns None
BATCH_METHODS: tuple[Callable[[Request], Batch | None], ...] = (
    solve_batch,
    solve_curved,
    solve_dense,
    solve_pieces,
    solve_sparse_batch,
)

#: the ladder for the trials that are left, in the order in which methods are tried
METHODS: tuple[Method, ...] = (
    *STRUCTURED,
    Method("cuts", _cuts_apply, solve_by_cuts, lambda _: "cutting planes from values and subgradients"),
)


def first_method(request: Request) -> Method | None:
    """The first method that applies to one trial's request."""
    return next((method for method in METHODS if method.applies(request)), None)


def first_request(request: Request) -> Request:
    """What `solve` tries first: pairs of inequalities for equations, where a compiled method takes them."""
    request = request._replace(constraint=request.constraint.plain())
    inequalities = as_inequalities(request.constraint) if request.projects else None
    if inequalities is None:
        return request
    other = request._replace(constraint=inequalities)
    method = first_method(other)
    return other if method is not None and method.name in _COMPILED else request


def solve(request: Request) -> Projection:
    """The answer, by the first method of the ladder whose result passes its check, trial by trial.

    If all trials are feasible, ``feasible`` is one `np.True_` and ``least_violation`` one 0.
    """
    given = request.constraint
    plain = given.plain()
    if plain is not given:
        return _solve_plain(request, plain)
    return _solve_rows(request)


def _solve_plain(request: Request, plain: Constraint) -> Projection:
    """The answer for rows that have names or weights, which matter only where not all rows can be met."""
    given = request.constraint
    try:
        found = _solve_rows(request._replace(constraint=plain))
    except InfeasibleRound as error:
        raise error.with_names(given.row_names) from None
    if not given.has_priorities or np.all(found.feasible):
        return found
    shape = found.point.shape[:-1]
    x, least = np.array(found.point), np.array(np.broadcast_to(found.least_violation, shape))
    for index in map(tuple, np.argwhere(~np.broadcast_to(found.feasible, shape))):
        nearest = nearest_by_priority(trial_request(request, shape, index), METHODS)
        x[index], least[index] = nearest.point, nearest.least_violation
    return found._replace(point=x, least_violation=least[()])


def _solve_rows(request: Request) -> Projection:
    """`solve`, for rows without names and weights."""
    try:
        found = _solve_all(request)
    except RuntimeWarning:  # of an overflow, where warnings are errors: the statuses report what it did
        with ignore_fp_warnings():  # (not always, since that takes as long as a small projection)
            found = _solve_all(request)
    except ValueError:
        trial_shape(request.constraint, request.point)  # raises if the leading axes do not fit
        raise
    if found is None:
        with one_blas_thread:
            x, todo = _project_onto_set(request)
            return _solve_equations(request, x, todo) or _solve_each(request, x, todo, None, "set")
    x, nu, status, method = found
    if not (np.count_nonzero(status) if status.ndim else status):  # 0 is CONVERGED; any() would take far longer
        return make_tuple(Projection, (x, method, np.True_, _ZERO, nu, 0))
    with one_blas_thread:
        return _solve_remaining(request, found)


def _solve_equations(request: Request, start: Array, todo: Array) -> Projection | None:
    """Trials in ``todo``: equations as pairs of inequalities, by BATCH_METHODS; what these leave, as it was given.

    None if there are no equations, or no such method applies.
    """
    inequalities = as_inequalities(request.constraint) if request.projects and np.any(todo) else None
    found = None if inequalities is None else _solve_all(request._replace(constraint=inequalities))
    if found is None:
        return None
    x = np.where(np.expand_dims(todo, -1), found[0], start)
    return _solve_each(request, x, todo & (found[2] != CONVERGED), None, found[3])


def _solve_all(request: Request) -> Batch | None:
    """The first stage: what the first of BATCH_METHODS that applies found; None if none does."""
    for method in BATCH_METHODS:
        found = method(request)
        if found is not None:
            return found if method is solve_batch else _without_lost_points(request, found)
    return None


def _without_lost_points(request: Request, found: Batch) -> Batch:
    """What was found, UNCONVERGED where the target is so far away that x is lost in its rounding, and infeasible.

    Of several curved rows such an x may be feasible and still be wrong: there every far trial is left to stages.
    """
    K, constraint, point, *_ = request
    x, nu, status, name = found
    near = K.scale if K.sized else np.abs(x).max(axis=-1, keepdims=True)  # (finding lengths takes longer)
    if (np.abs(point) <= VERY_FAR * near).all() or not request.projects:
        return found
    scale = np.asarray(K.scale) if K.sized else lengths(constraint, point)
    size = np.maximum(np.abs(x).max(axis=-1), scale)
    at_scale = constraint.magnitude(np.ones(K.dim) * scale[..., None])
    unit = np.maximum(constraint.magnitude(x), VANISHING * at_scale)
    lost = (K.violation_unchecked(x) > FEASIBILITY * size) | (constraint.rows_unchecked(x) > FEASIBILITY * unit).any(
        axis=-1
    )
    if name in ("newton", "pieces"):
        lost |= np.abs(point - x).max(axis=-1) > VERY_FAR * size
    return x, nu, np.where(lost & (status == CONVERGED), UNCONVERGED, status), name


def _solve_remaining(request: Request, found: Batch) -> Projection:
    """The second stage, for the trials that the first did not solve."""
    request = request._replace(point=contiguous(request.point))  # lest results depend on how it lies in memory
    x, nu, status, method = np.array(found[0]), np.array(found[1]), found[2], found[3]
    K, constraint = request.K, request.constraint
    if (status == NONFINITE).any():
        _require_near(request.point)
        constraint.raise_nonfinite(request.point)
    todo = status != CONVERGED
    unbounded = request.max_multiplier is None and request.max_multiplier_sum is None
    if method == "curved" or (constraint.row_count == 1 and type(K) in (Box, Ball) and unbounded):
        empty = status == INFEASIBLE  # proved by the kernel, and x is the point of least violation already
        nu[empty] = np.nan
        return _solve_each(request, x, todo & ~empty, nu, method, empty)
    return _solve_each(request, x, todo, nu, method)


def _solve_each(
    request: Request, x: Array, todo: Any, nu: Array | None, method: str, empty: Any = np.False_
) -> Projection:
    """The trials marked in ``todo``, each down the ladder; x and nu hold the others' results.

    Those marked ``empty`` have no feasible point, and x is the one of least violation.
    """
    shape = x.shape[:-1]
    feasible = np.array(np.broadcast_to(~empty, shape))
    least = np.zeros(shape)
    if np.any(empty):
        least = np.where(feasible, 0.0, request.constraint.rows_unchecked(x).max(axis=-1))
    used = 0
    for index in map(tuple, np.argwhere(todo)):
        outcome = solve_trial(trial_request(request, shape, index), METHODS)
        x[index], method = outcome.point, outcome.method
        if nu is not None:
            nu[index] = np.nan if outcome.multipliers is None else outcome.multipliers
        feasible[index], least[index] = outcome.feasible, outcome.least_violation
        used += outcome.cuts
    if request.infeasible == "raise" and not feasible.all():
        trials = np.flatnonzero(~feasible)
        raise InfeasibleRound(trials.tolist(), least.reshape(-1)[trials], _rows_in_conflict(request, x, trials, least))
    return Projection(x, method, np.True_ if feasible.all() else feasible[()], least[()], nu, used)


def _rows_in_conflict(request: Request, x: Array, trials: Any, least: Array) -> list[list[int]]:
    """The rows of each trial that are violated at the point of least violation as much as any: they meet no more."""
    M = request.constraint.row_count
    rows = np.broadcast_to(request.constraint.rows_unchecked(x), (*x.shape[:-1], M)).reshape(-1, M)
    worst = least.reshape(-1)
    return [np.flatnonzero(rows[i] >= worst[i] * (1.0 - IN_CONFLICT)).tolist() for i in trials.tolist()]


def _require_near(point: Array) -> None:
    """Raises if the target is not finite, or so far away that its length cannot be computed."""
    require_finite("point", point)
    largest = float(np.abs(point).max(initial=0.0))
    if largest > FARTHEST:
        raise InvalidInput(
            f"point: expected a target with entries up to {FARTHEST:g}, got {largest:g}, "
            "which is too far away to be projected exactly"
        )


def _project_onto_set(request: Request) -> tuple[Array, Any]:
    """P_K(point), and where that violates the constraint."""
    K, constraint, point, *_ = request
    _require_near(point)
    shape = trial_shape(constraint, point)
    x = np.array(np.broadcast_to(K.project_unchecked(point), (*shape, K.dim)))
    rows = constraint.rows_unchecked(x) if constraint.has_domain else constraint.rows(x)  # outside a domain: NaN or inf
    if (rows <= 0.0).all():  # the magnitude can be expensive
        return x, np.zeros(shape, dtype=bool)
    satisfied = (rows <= SATISFIED * constraint.magnitude(x)) & (rows < np.inf)  # NaN and infinity satisfy nothing
    return x, ~satisfied.all(axis=-1)
