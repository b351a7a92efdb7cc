"""The one door to P_{K ∩ {g ≤ 0}}.

`project` descends a ladder until a point passes the check of its optimality conditions:

1. kernel: compiled, for boxes, balls and polyhedra with few rows, all trials at once;
2. daqp: an active-set solver, for polyhedra with more rows;
3. clarabel: an interior-point solver, for everything that has a conic form;
4. dual: for affine rows over a set that is known by its projection alone;
5. cuts: for constraints that are known by value and subgradient alone.

Only the trials that a method could not settle go on to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from cocopt.arrays import (
    Array,
    ArrayLike,
    as_points,
    describe,
    ignore_fp_warnings,
    make_tuple,
    positive_int,
    require_finite,
    scalar,
)
from cocopt.constraints import Constraint, Stack
from cocopt.errors import InfeasibleRound, InvalidInput, SolverFailure
from cocopt.geometry.batch import MAX_DENSE_DIM, joined, kernel_rows, solve_batch
from cocopt.geometry.conic import least_conic, solve_conic
from cocopt.geometry.cuts import least_cuts, project_cuts, prox_cuts
from cocopt.geometry.dual import solve_dual
from cocopt.geometry.problem import SATISFIED, Membership, Problem, Relaxed, excess
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.solvers.solution import Solution

__all__ = ["Projection", "explain", "project", "solve_projection"]

_ZERO = np.float64(0.0)
EMPTY = 1e-9  # a least violation above this share of its terms means that K ∩ {g ≤ 0} is empty


class Projection(NamedTuple):
    """The result of `solve_projection`; all but ``method`` and ``cuts`` have the leading axes of the trials."""

    point: Array  #: the projections, (..., n)
    method: str  #: the method on which the last trial was settled
    feasible: Any  #: whether K ∩ {g ≤ 0} has a point, bool (...)
    least_violation: Any  #: the least value of max_i g_i over K where it has none, else 0, (...)
    multipliers: Array | None = None  #: of the rows, (..., M), NaN where the method does not yield them
    cuts: int = 0  #: how many cutting planes were used in all


def project(
    K: ConvexSet,
    constraint: Constraint | None,
    point: ArrayLike,
    *,
    infeasible: Literal["raise", "nearest"] = "raise",
    cuts: int = 500,
    tol: float = 1e-7,
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
        For black boxes: the largest number of cutting planes a trial (if only the position is left to be settled, it
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
    return _solve(K, constraint, point, infeasible, cuts, tol).point


def explain(K: ConvexSet, constraint: Constraint | None) -> str:
    """Which method of the ladder `project` starts on, and why.

    Examples
    --------
    >>> from cocopt import Box, constraints, explain
    >>> explain(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0))
    'kernel: compiled, one row over a box'
    >>> explain(Box(0.0, 1.0, dim=2), constraints.NormBall([0.0, 0.0], 1.0))
    'clarabel: K and the constraint as stacked cones, an interior-point method'
    """
    _check(K, constraint)
    return _first_rung(K, constraint)


def solve_projection(
    K: ConvexSet,
    constraint: Constraint | None,
    point: ArrayLike,
    *,
    infeasible: Literal["raise", "nearest"] = "raise",
    cuts: int = 500,
    tol: float = 1e-7,
) -> Projection:
    """As `project`, with what is known besides the point: the method, feasibility and least violation a trial.

    Examples
    --------
    >>> from cocopt import Box, constraints
    >>> from cocopt.geometry import solve_projection
    >>> result = solve_projection(Box(0.0, 1.0, dim=2), constraints.Affine([1.0, 1.0], 1.0), [1.0, 1.0])
    >>> result.method, result.point, result.multipliers
    ('kernel', array([0.5, 0.5]), array([0.5]))
    """
    found = _solve(K, constraint, point, infeasible, cuts, tol)
    shape = found.point.shape[:-1]
    feasible, least = (np.broadcast_to(part, shape)[()] for part in (found.feasible, found.least_violation))
    return found._replace(feasible=feasible, least_violation=least)


def _solve(
    K: ConvexSet, constraint: Constraint | None, point: ArrayLike, infeasible: str, cuts: int, tol: float
) -> Projection:
    """`descend`, on arguments that are yet to be checked."""
    _check(K, constraint)
    if infeasible not in ("raise", "nearest"):
        raise InvalidInput(f'infeasible: expected "raise" or "nearest", got {describe(infeasible)}')
    positive_int("cuts", cuts)
    scalar("tol", tol, positive=True)
    points = as_points("point", point, K.dim)
    if constraint is None:
        return Projection(K.project_unchecked(require_finite("point", points)), "set", np.True_, _ZERO)
    return descend(K, constraint, points, None, None, infeasible, cuts, tol)


def descend(
    K: ConvexSet,
    constraint: Constraint,
    point: Array,
    cap: Array | None,
    total: Array | None,
    infeasible: str,
    cuts: int,
    tol: float,
) -> Projection:
    """The ladder, on checked arguments: all trials by the kernel where there is one, the rest one by one.

    ``cap`` (..., M) and ``total`` (...) are the caps of the multipliers (see `Problem`), None for a projection. If all
    trials are feasible, one `np.True_` says so.
    """
    try:
        found = solve_batch(K, constraint, point, cap, total)
    except RuntimeWarning:  # numpy's word on an overflow, where warnings are errors: the statuses say what it did
        with ignore_fp_warnings():  # (not always, since that takes as long as a small projection)
            found = solve_batch(K, constraint, point, cap, total)
    except ValueError:
        trials(constraint, point)  # says so if the leading axes are at fault
        raise
    if found is not None:
        x, nu, status, method = found
        if not (np.count_nonzero(status) if status.ndim else status):  # 0 is CONVERGED; any() would take far longer
            return make_tuple(Projection, (x, method, np.True_, _ZERO, nu, 0))
        if (status == NONFINITE).any():
            require_finite("point", point)
            constraint.raise_nonfinite(point)
        todo = status != CONVERGED
        x, nu = np.array(x), np.array(nu)
        if constraint.row_count == 1 and type(K) in (Box, Ball) and cap is None and total is None:
            empty = status == INFEASIBLE  # then x is the point of least violation already
            nu[empty] = np.nan
            return _one_by_one(K, constraint, point, cap, total, infeasible, cuts, tol, x, todo & ~empty, nu, empty)
    else:
        x, todo = _without_rows(K, constraint, point)
        nu = None
    return _one_by_one(K, constraint, point, cap, total, infeasible, cuts, tol, x, todo, nu, np.False_)


def _one_by_one(
    K: ConvexSet,
    constraint: Constraint,
    point: Array,
    cap: Array | None,
    total: Array | None,
    infeasible: str,
    cuts: int,
    tol: float,
    x: Array,
    todo: Array,
    nu: Array | None,
    empty: Any,
) -> Projection:
    """The trials marked in ``todo``, each down the ladder; x holds the others' results.

    Those marked ``empty`` have no feasible point, and x is the one of least violation.
    """
    shape = x.shape[:-1]
    M = constraint.row_count
    targets = np.broadcast_to(point, x.shape)
    caps = np.broadcast_to(np.inf if cap is None else cap, (*shape, M))
    totals = np.broadcast_to(np.inf if total is None else total, shape)
    feasible = np.array(np.broadcast_to(~empty, shape))
    least = np.where(feasible, 0.0, constraint.rows_unchecked(x).max(axis=-1)) if np.any(empty) else np.zeros(shape)
    used, method = 0, "kernel" if nu is not None else "set"
    for index in zip(*np.nonzero(todo), strict=True) if shape else [()] if todo else []:
        problem = Problem(K, _trial(constraint, shape, index), targets[index], caps[index], float(totals[index]))
        outcome = _one(problem, cuts, tol)
        x[index], method = outcome.point, outcome.method
        if nu is not None:
            nu[index] = np.nan if outcome.multipliers is None else outcome.multipliers
        feasible[index], least[index] = outcome.feasible, outcome.least_violation
        used += outcome.cuts
    if infeasible == "raise" and not feasible.all():
        trials = np.flatnonzero(~feasible)
        raise InfeasibleRound(trials.tolist(), least.reshape(-1)[trials])
    return Projection(x, method, np.True_ if feasible.all() else feasible[()], least[()], nu, used)


def _one(problem: Problem, cuts: int, tol: float) -> Projection:
    """One trial, down the ladder; at its end, or where a method suspects it, decides whether there is a point."""
    tried: list[str] = []
    suspected = False
    for method, solution, used in _rungs(problem, cuts, tol):
        tried.append(method)
        if solution.status == CONVERGED and _promised(problem, solution.point):
            return Projection(solution.point, method, True, 0.0, solution.multipliers, used)
        if solution.status == INFEASIBLE and not suspected:
            suspected = True
            outcome = _nearest(problem, cuts, tol, margin=EMPTY)
            if outcome is not None:
                return outcome
    # the feasible set may be too thin for every method: then the constraint is relaxed by what the promise leaves
    outcome = _nearest(problem, cuts, tol, margin=-EMPTY) if problem.projects else None
    if outcome is not None:
        return outcome
    raise SolverFailure(f"project: no method ({', '.join(tried)}) returned a point that passed its optimality check")


def _promised(problem: Problem, x: Array) -> bool:
    """Whether x violates nothing by more than is promised; black boxes have their own tolerance, and met it."""
    K, constraint = problem.K, problem.constraint
    return not problem.projects or not constraint.conic or not K.conic or excess(K, constraint, x) <= EMPTY


def _rungs(problem: Problem, cuts: int, tol: float) -> Iterator[tuple[str, Solution, int]]:
    """What each method that applies has to say, in the order of the ladder."""
    K, constraint, point, _, _ = problem
    polyhedral, affine = K.polyhedral(), constraint.affine()
    if problem.projects and polyhedral is not None and affine is not None and K.dim <= MAX_DENSE_DIM:
        from cocopt.solvers import daqp

        lower, upper, A, b, equalities = joined(polyhedral, *affine)
        x, nu, status = daqp.project(lower, upper, A[None], b[None], equalities, point[None])
        yield "daqp", Solution(x[0], nu[0, len(polyhedral.b) :], int(status[0])), 0
    conic = solve_conic(problem) if K.dim <= MAX_DENSE_DIM else None
    if conic is not None:
        yield "clarabel", conic, 0
    solution = solve_dual(problem)
    if solution is not None:
        yield "dual", solution, 0
    if K.conic:
        if affine is None and problem.projects:
            # a structured constraint that the solver could not settle keeps its sharper promise
            structured = constraint.conic
            yield "cuts", *project_cuts(problem, cuts, 0.25 * EMPTY if structured else tol, _inner, structured)
        elif affine is None:
            yield "cuts", *prox_cuts(problem, cuts, tol, constraint.conic)
    elif problem.projects:  # K too becomes a black box, in the whole space
        space = Box(-np.inf, np.inf, dim=K.dim)
        both = Stack([constraint, Membership(K)])
        whole = Problem(space, both, point, np.full(both.row_count, np.inf))
        solution, used = project_cuts(whole, cuts, tol / 4, _inner)
        solution = solution._replace(point=K.project_unchecked(solution.point))
        yield "cuts", solution, used


def _inner(K: ConvexSet, constraint: Constraint, point: Array) -> tuple[Array, Array] | None:
    """The projection onto K and the cuts, and the cuts' multipliers; None if they have no common point."""
    found = solve_batch(K, constraint, point, None)
    if found is not None and found[2] == CONVERGED:
        return found[0], found[1]
    outcome = _one(Problem(K, constraint, point, np.full(constraint.row_count, np.inf)), 1, 1.0)
    unknown = np.full(constraint.row_count, np.nan)
    if not outcome.feasible:
        return None
    return outcome.point, unknown if outcome.multipliers is None else outcome.multipliers


def _nearest(problem: Problem, cuts: int, tol: float, margin: float) -> Projection | None:
    """If the least violation exceeds the margin: the projection onto the least relaxation that has a point.

    Up to EMPTY, in units of the rows' terms, the relaxation is within the promise and the trial counts as feasible.
    None if the least violation is below the margin, or cannot be found.
    """
    K, constraint, point, _, _ = problem
    # the size of the rows' terms, not so far out that it would hide a violation
    near, foot = (
        constraint.magnitude(K.project_unchecked(np.zeros(K.dim))),
        constraint.magnitude(K.project_unchecked(point)),
    )
    unit = np.where(near > 0, np.minimum(near, foot), np.maximum(foot, 1e-300))
    found = _least(K, constraint, unit, point, cuts, tol)
    if found is None or found[0] <= margin:
        return None
    slack = 1e-10 * unit
    feasible = found[0] <= EMPTY
    if feasible:
        relaxation, least = max(found[0], 0.0) * unit + slack, 0.0
    else:
        raw = _least(K, constraint, np.ones_like(unit), point, cuts, tol)
        if raw is None or raw[0] <= 0.0:  # the two contradict each other: nothing is proven
            return None
        least, found = raw[0], raw
        relaxation = least + slack
    relaxed = problem._replace(constraint=Relaxed(constraint, relaxation))
    for method, solution, used in _rungs(relaxed, cuts, tol):
        if solution.status == CONVERGED:
            return Projection(solution.point, method, feasible, least, None, used)
    return None if feasible else Projection(found[1], "least", feasible, least)


def _least(
    K: ConvexSet, constraint: Constraint, unit: Array, point: Array, cuts: int, tol: float
) -> tuple[float, Array] | None:
    """The least t for which some x in K has g_i(x) ≤ t·unit_i, and such an x."""
    polyhedral, affine = K.polyhedral(), constraint.affine()
    if polyhedral is not None and affine is not None:
        from cocopt.solvers import highs

        return highs.least_violation(*polyhedral, *affine, unit)
    found = least_conic(K, constraint, unit, point)
    return least_cuts(K, constraint, unit, point, cuts, tol) if found is None else found


def _without_rows(K: ConvexSet, constraint: Constraint, point: Array) -> tuple[Array, Any]:
    """P_K(point), and where that violates the constraint."""
    require_finite("point", point)
    shape = trials(constraint, point)
    x = np.array(np.broadcast_to(K.project_unchecked(point), (*shape, K.dim)))
    rows = constraint.rows(x)
    return x, (rows > SATISFIED * constraint.magnitude(x)).any(axis=-1)


def trials(constraint: Constraint, point: Array) -> tuple[int, ...]:
    """The leading axes of the point and of the constraint together."""
    try:
        return np.broadcast_shapes(point.shape[:-1], constraint.batch)
    except ValueError:
        raise InvalidInput(
            f"point: expected leading axes that broadcast against the constraint's {constraint.batch}, "
            f"got {point.shape[:-1]}"
        ) from None


def _trial(constraint: Constraint, shape: tuple[int, ...], index: tuple[Any, ...]) -> Constraint:
    """The constraint of one trial, its leading axes broadcast against the trials'."""
    batch = constraint.batch
    own = index[len(shape) - len(batch) :]
    return constraint.trials(tuple(0 if size == 1 else i for size, i in zip(batch, own, strict=True)))


def _check(K: Any, constraint: Any) -> None:
    if not isinstance(K, ConvexSet):
        raise InvalidInput(f"K: expected a set such as cocopt.Box, got {describe(K)}")
    if constraint is None:
        return
    if not isinstance(constraint, Constraint):
        raise InvalidInput(f"constraint: expected a constraint such as constraints.Affine, got {describe(constraint)}")
    if constraint.dim is not None and constraint.dim != K.dim:
        raise InvalidInput(f"constraint: expected dimension {K.dim} as that of K, got {constraint.dim}")


def _first_rung(K: ConvexSet, constraint: Constraint | None) -> str:
    if constraint is None:
        return "set: the projection onto K itself"
    affine = constraint.affine()
    single = _trial(constraint, constraint.batch, (0,) * len(constraint.batch))
    if affine is not None:
        M = affine[0].shape[-2]
        polyhedral = K.polyhedral()
        rows = M + (0 if polyhedral is None else polyhedral.b.size)
        name = "a box" if type(K) is Box else "a ball" if type(K) is Ball else "a polyhedron"
        if rows <= (0 if polyhedral is None and type(K) is not Ball else kernel_rows(K)):
            return f"kernel: compiled, {'one row' if M == 1 else f'{M} rows'} over {name}"
        if polyhedral is not None:
            return f"daqp: an active-set method, {rows} rows"
        if not K.conic:
            return "dual: K is known by its projection alone, one multiplier a row"
    if K.dim <= MAX_DENSE_DIM and K.conic and single.conic:
        return "clarabel: K and the constraint as stacked cones, an interior-point method"
    return "cuts: cutting planes from values and subgradients"
