"""The methods for affine rows and conic constraints, and how one trial goes down a table of methods.

`cocopt.geometry.cuts` projects onto K and its cutting planes by these methods; `cocopt.geometry.ladder` has all of
them, and the cutting planes. Imports go in that direction only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.constraints import Affine
from cocopt.errors import CutLimit, SolverFailure
from cocopt.geometry.batch import MAX_DENSE_DIM, joined, kernel_rows, solve_batch
from cocopt.geometry.conic import nearly_feasible_point, solve_conic
from cocopt.geometry.curved import curved_applies, describe_curved, solve_curved
from cocopt.geometry.dense import newton_applies, solve_dense
from cocopt.geometry.derived import Relaxed
from cocopt.geometry.dual import solve_dual
from cocopt.geometry.least_violation import least_violation
from cocopt.geometry.pieces import describe_pieces, pieces_apply, solve_pieces
from cocopt.geometry.problem import VANISHING, Projection, Request, relative_violation, size_of, with_length
from cocopt.geometry.scaled import values_and_slopes
from cocopt.geometry.sparse import solve_sparse, sparse_applies
from cocopt.kernels.status import CONVERGED, INFEASIBLE
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.solvers.far_targets import MAX_STEPS, nearer_target
from cocopt.solvers.solution import FeasibleSolution, Solution
from cocopt.tolerances import FEASIBILITY, POSITION, SATISFIED

__all__ = [
    "STRUCTURED",
    "VERY_FAR",
    "Method",
    "nearest_of_relaxed",
    "project_onto_rows",
    "solve_touching",
    "solve_trial",
]

VERY_FAR = 1e8  # sizes away from which a conic method finds no digits of the projection
FAR = 1e4  # sizes away from which the normal of a conic result is checked
BESIDE, KINK = 1e-7, 1e-3  # where the slopes differ by more, so little beside x, there is a kink
NORMAL = 1e-6  # of the distance, what point − x may differ from a normal: curved surfaces multiply the error of x
# distances of the targets that are tried instead, in sizes: from afar the direction is right, and K ∩ {g ≤ 0} may be
# far smaller than K
NEARER = (1e6, 1e3, 10.0, 1e-2, 1e-5)
STAGES = 10.0  # sizes away from which they are tried
MAX_EMPTY_STEPS = 4  # nearer targets of each, where K ∩ {g ≤ 0} is empty
SMALL = 1e-3  # a set with a smaller diameter, in units of its points, is one that K and the rows touch in
TOUCHING = (1.0, 1e-2, 1e-5)  # distances of nearer targets there, in sizes
MAX_TOUCHING_STEPS = 8  # nearer targets of each of these
SLACKS = SATISFIED, 5.0 * SATISFIED  # of their terms, by what rows that touch K are relaxed: within the promise
MAX_UNITS = 3  # how often these terms are taken


class Method(NamedTuple):
    """One method of the ladder. All functions take one trial's request."""

    name: str
    applies: Callable[[Request], bool]
    #: None for the kernels, which are used for all trials at once (`BATCH_METHODS`) and not again for one
    solve: Callable[[Request], Solution] | None
    #: why it applies, for `explain`
    describe: Callable[[Request], str]


def _row_count(request: Request) -> int | None:
    """The number of rows, K's own included, if the constraint is affine and K a polyhedron or a ball."""
    K, affine, polyhedral = request.K, request.constraint.affine(), request.K.polyhedral()
    if affine is None or (polyhedral is None and type(K) is not Ball):
        return None
    return int(affine[0].shape[-2]) + (0 if polyhedral is None else polyhedral.b.size)


def _kernel_applies(request: Request) -> bool:
    rows = _row_count(request)
    return rows is not None and rows <= kernel_rows(request.K)


def _describe_kernel(request: Request) -> str:
    K, M = request.K, request.constraint.row_count
    name = "a box" if type(K) is Box else "a ball" if type(K) is Ball else "a polyhedron"
    return f"compiled, {'one row' if M == 1 else f'{M} rows'} over {name}"


def _describe_newton(request: Request) -> str:
    M = request.constraint.row_count
    return f"compiled, Newton's method for {'one row' if M == 1 else f'{M} rows'}, curved ones among them"


def _describe_sparse(request: Request) -> str:
    rows = request.constraint.sparse_rows()
    assert rows is not None  # see `sparse_applies`
    return f"compiled, Newton's method on the dual of {rows.row_count} rows with {rows.values.size} entries"


def _daqp_applies(request: Request) -> bool:
    K = request.K
    polyhedral = K.dim <= MAX_DENSE_DIM and request.constraint.affine() is not None and K.polyhedral() is not None
    return polyhedral and request.projects


def _solve_daqp(request: Request) -> Solution:
    from cocopt.solvers import daqp

    polyhedral, affine = request.K.polyhedral(), request.constraint.affine()
    assert polyhedral is not None  # see `_daqp_applies`
    assert affine is not None
    solution = daqp.solve(*joined(polyhedral, *affine), request.point)
    return solution._replace(multipliers=solution.multipliers[polyhedral.b.size :])


def _clarabel_applies(request: Request) -> bool:
    return request.K.dim <= MAX_DENSE_DIM and request.K.conic and request.constraint.conic


def _dual_applies(request: Request) -> bool:
    constraint = request.constraint
    affine = constraint.affine() is not None or constraint.sparse_rows() is not None
    return affine and not np.isfinite(request.sum_bound)


def _describe_dual(request: Request) -> str:
    known = "the dimension is large" if request.K.conic else "K is known by its projection alone"
    return f"{known}, one multiplier per row"


STRUCTURED: tuple[Method, ...] = (
    Method("kernel", _kernel_applies, None, _describe_kernel),
    Method("sparse", sparse_applies, solve_sparse, _describe_sparse),
    Method("curved", curved_applies, None, describe_curved),
    Method("newton", newton_applies, None, _describe_newton),
    Method("pieces", pieces_apply, None, describe_pieces),
    Method("daqp", _daqp_applies, _solve_daqp, lambda request: f"an active-set method, {_row_count(request)} rows"),
    Method(
        "clarabel",
        _clarabel_applies,
        solve_conic,
        lambda _: "K and the constraint as stacked cones, an interior-point method",
    ),
    Method("dual", _dual_applies, solve_dual, _describe_dual),
)


def solve_trial(request: Request, methods: Sequence[Method]) -> Projection:
    """One trial, by the first of the methods whose result passes its check.

    If none does, or where a method reports that there is no point, the least violation decides whether there is one.
    """
    request = with_length(request)
    polyhedral = request.constraint.affine() is not None and request.K.polyhedral() is not None
    start = None if polyhedral else _start_of_stages(request, VERY_FAR)
    if start is not None:
        return _solve_in_stages(request, methods, start)
    try:
        return _solve_near(request, methods)
    except SolverFailure as failure:
        start = _start_of_stages(request, STAGES)
        if start is not None:
            with contextlib.suppress(SolverFailure):  # then the first failure says what happened
                return _solve_in_stages(request, methods, start)
        raise failure from None


def _solve_near(request: Request, methods: Sequence[Method]) -> Projection:
    """`solve_trial`, without stages of nearer targets."""
    tried: list[str] = []
    suspected, failure = False, None
    for method, solution in _solutions(request, _exact(request, methods)):
        tried.append(method.name)
        if isinstance(solution, SolverFailure):
            failure = solution
            continue
        if solution.status == CONVERGED and _is_feasible(request, solution) and _is_accurate(request, solution):
            return Projection(solution.point, method.name, True, 0.0, solution.multipliers, solution.cuts)
        if solution.status == INFEASIBLE and not suspected:
            suspected = True
            relaxed = _solve_relaxed(request, methods, margin=FEASIBILITY)
            if relaxed is not None:
                return relaxed
    # the feasible set may be too thin for every method: then the constraint is relaxed within what is promised
    relaxed = _solve_relaxed(request, methods, margin=-FEASIBILITY) if request.projects else None
    if relaxed is not None:
        return relaxed
    if isinstance(failure, CutLimit):
        raise failure
    raise SolverFailure(f"project: no method ({', '.join(tried)}) returned a point that passed its optimality check")


def _exact(request: Request, methods: Sequence[Method]) -> Sequence[Method]:
    """The methods without cuts, which know the position to the square root of the violation: as for black boxes."""
    if not (request.K.conic and request.constraint.conic):
        return methods
    return [method for method in methods if method.name != "cuts"]


def project_onto_rows(K: ConvexSet, A: Array, b: Array, point: Array) -> tuple[Array, Array] | None:
    """The projection of a point onto K ∩ {A x ≤ b}, K conic, and the rows' multipliers; None if it is empty."""
    request = Request(K, Affine(A, b), point)
    outcome = _solve_compiled(request) or solve_trial(request, STRUCTURED)
    if not outcome.feasible:
        return None
    return outcome.point, np.full(b.size, np.nan) if outcome.multipliers is None else outcome.multipliers


def _solve_compiled(request: Request) -> Projection | None:
    """The answer by the compiled method that applies; None if there is none, it fails, or a row or K is violated."""
    for compiled in (solve_batch, solve_curved, solve_dense, solve_pieces):
        found = compiled(request)
        if found is not None:
            x, nu, status, name = found
            good = status == CONVERGED and not (request.projects and relative_violation(request, x) > FEASIBILITY)
            return Projection(x, name, True, 0.0, nu) if good else None
    return None


def _solutions(request: Request, methods: Sequence[Method]) -> Iterator[tuple[Method, Solution | SolverFailure]]:
    """What each of the methods that apply returns, in their order; an error in a step of its own is a failure of it."""
    for method in methods:
        if method.solve is not None and method.applies(request):
            try:
                yield method, method.solve(request)
            except SolverFailure as failure:
                yield method, failure


def _start_of_stages(request: Request, distance: float) -> Array | None:
    """A point that is nearly feasible, if the target is farther from it, in sizes, and both have conic forms."""
    K, constraint, point, *_ = request
    if np.abs(point).max() <= distance * request.scale or not (K.conic and constraint.conic):
        return None
    x, _ = nearly_feasible_point(request)
    return x if np.abs(point - x).max() > distance * size_of(request, x) else None


def _solve_in_stages(request: Request, methods: Sequence[Method], x: Array) -> Projection:
    """One trial with a target that is very far away, from nearer ones (`cocopt.solvers.far_targets`).

    A step reduces the error of x across the active surfaces, and along curved ones.
    """
    _, _, point, each, of_sum, *_ = request
    for distance in NEARER:
        for taken in range(MAX_STEPS):
            size = size_of(request, x)
            target, tau = nearer_target(point, x, size, distance)
            part = float(tau[0])
            of_rows, of_all = (None if bound is None else part * bound for bound in (each, of_sum))
            nearer = request._replace(point=target, max_multiplier=of_rows, max_multiplier_sum=of_all)
            try:
                found = _solve_compiled(nearer) or _solve_near(nearer, methods)
            except SolverFailure:
                break  # to nearer targets
            change, x = float(np.abs(found.point - x).max()), found.point
            # (at the least violation surfaces may touch: the position is ill-posed then, and does not settle)
            final = not found.feasible and (request.infeasible == "raise" or taken + 1 == MAX_EMPTY_STEPS)
            if change <= 0.1 * POSITION * size or final:
                multipliers = None if found.multipliers is None else found.multipliers / part
                if not found.feasible or _is_normal(request, x, multipliers, part):
                    return found._replace(multipliers=multipliers)
                break
    raise SolverFailure(
        f"project: the target is too far away to be projected exactly, by {np.abs(point - x).max():.3g}; "
        "x is also the projection of x + τ (point − x), 0 < τ < 1: project a nearer target"
    )


def _is_accurate(request: Request, solution: Solution) -> bool:
    """Whether a conic result for a far target has a normal that the target agrees with; others are not examined."""
    K, constraint, point, *_ = request
    if (
        np.abs(point).max() <= FAR * request.scale
        or constraint.affine() is not None
        or not (K.conic and constraint.conic)
    ):
        return True
    distance, size = float(np.abs(point - solution.point).max()), size_of(request, solution.point)
    return distance <= FAR * size or _is_normal(request, solution.point, solution.multipliers, 10.0 * size / distance)


def _is_normal(request: Request, x: Array, multipliers: Array | None, part: float) -> bool:
    """Whether point − x − Σ ν_i ∇g_i(x) is normal to K at x: added to x, that share of it is projected back onto x.

    True, too, where that cannot be judged: without multipliers, and near kinks, where one subgradient is not enough.
    """
    K, constraint, point, *_ = request
    if multipliers is None or not np.isfinite(multipliers).all():
        return True
    slopes = constraint.jacobian_unchecked(x)
    step = BESIDE * part * (point - x)
    uneven = np.abs(step).max() * np.cos(np.arange(x.size))  # (pieces that are equal may stay so along the step)
    for move in (step, -step, uneven, -uneven):
        beside = constraint.jacobian_unchecked(x + move)
        if (np.abs(beside - slopes).max(axis=-1) > KINK * np.abs(slopes).max(axis=-1)).any():  # of each row by itself
            return True
    away = point - x - multipliers @ slopes
    moved = K.project_unchecked(x + part * away) - x
    return bool(np.abs(moved).max() <= NORMAL * part * np.abs(point - x).max() + FEASIBILITY * size_of(request, x))


def _is_feasible(request: Request, solution: Solution) -> bool:
    """Whether the point violates nothing by more than is promised; black boxes have their own tolerance, and met it."""
    K, constraint = request.K, request.constraint
    if not (request.projects and constraint.conic and K.conic):
        return True
    return isinstance(solution, FeasibleSolution) or relative_violation(request, solution.point) <= FEASIBILITY


def _solve_relaxed(request: Request, methods: Sequence[Method], margin: float) -> Projection | None:
    """If the least violation exceeds the margin: the projection onto the least relaxation that has a point.

    Up to FEASIBILITY, in units of the rows' terms, the relaxation is within the promise and the trial counts as
    feasible. None if the least violation is below the margin, or cannot be found.
    """
    K, constraint, point, *_ = request
    # the size of the rows' terms, not so far out that it would hide a violation
    near, beside_target = (constraint.magnitude(K.project_unchecked(y)) for y in (np.zeros(K.dim), point))
    unit = np.where(near > 0, np.minimum(near, beside_target), np.maximum(beside_target, 1e-300))
    least = least_violation(request, unit)
    if least is None or least.value <= margin:
        return None
    feasible, violation = least.value <= FEASIBILITY, 0.0
    relaxation = max(least.value, 0.0) * unit + SATISFIED * unit
    if not feasible:
        least = least_violation(request, np.ones_like(unit))
        if least is None or least.value <= 0.0:  # the two contradict each other: nothing is proven
            return None
        if request.projects and _solve_compiled(request._replace(point=least.point)) is not None:
            return None  # it has a point
        # (the rows' terms may be larger at this point than at those above)
        feasible = relative_violation(request, least.point) <= FEASIBILITY
        violation = 0.0 if feasible else least.value
        relaxation = least.value + SATISFIED * constraint.magnitude(least.point)
    if not feasible and request.infeasible == "raise":  # the point is not asked for
        return Projection(least.point, "least", feasible, violation)
    near = least.point

    def solve(relaxed: Request) -> Projection | None:
        return solve_touching(relaxed, methods, near) or _first_solved(relaxed, methods)

    if feasible:
        solved = _first_solved(request._replace(constraint=Relaxed(constraint, relaxation)), methods)
    else:
        solved = nearest_of_relaxed(request, np.full_like(unit, violation), near, solve)
    if solved is not None:
        return solved._replace(feasible=feasible, least_violation=violation, multipliers=None)
    return None if feasible else Projection(least.point, "least", feasible, violation)


def nearest_of_relaxed(
    request: Request, relaxation: Array, near: Array, solve: Callable[[Request], Projection | None]
) -> Projection | None:
    """The projection onto {g ≤ relaxation}, and a little more; None if none is found that is within the promise.

    How much more is a share of the rows' terms. These are known at the point ``near``, where the search for the least
    violation has ended, and beside the target; K may be unbounded, and both far away. Then those at the result count.
    """
    K, rows, point, *_ = request
    exact = K.conic and rows.conic  # (black boxes have their own tolerance, and are not evaluated outside K)
    unit = np.minimum(rows.magnitude(near), rows.magnitude(K.project_unchecked(point)))
    least = np.full_like(unit, 1e-300)
    if exact:
        scale = with_length(request._replace(constraint=Relaxed(rows, relaxation))).scale
        least = VANISHING * rows.magnitude(np.full(near.size, scale))
    unit = np.maximum(unit, least)
    for slack in SLACKS:
        for _ in range(MAX_UNITS):
            solved = solve(with_length(request._replace(constraint=Relaxed(rows, relaxation + slack * unit))))
            if solved is None:
                break
            terms = np.maximum(rows.magnitude(solved.point), least)
            if not exact or (rows.rows_unchecked(solved.point) - relaxation <= FEASIBILITY * terms).all():
                return solved
            unit = np.minimum(unit, terms)
    return None


def _first_solved(request: Request, methods: Sequence[Method]) -> Projection | None:
    """What the first of the exact methods finds whose result passes its check."""
    for method, solution in _solutions(request, _exact(request, methods)):
        if isinstance(solution, Solution) and solution.status == CONVERGED:
            return Projection(solution.point, method.name, True, 0.0, solution.multipliers, solution.cuts)
    return None


def solve_touching(request: Request, methods: Sequence[Method], x: Array) -> Projection | None:
    """The projection onto rows that touch K about x, from nearer targets; None if they do not, or none is found.

    Where the set is so small that its surfaces are flat, their tangents give it (`_onto_tangents`). Else, in units of a
    long distance, no method sees how small the set is. If x' is the projection of x + τ (point − x) and the set has the
    diameter d, then ½‖x' − point‖² exceeds the least by no more than ‖x' − x‖ d / τ. That d is small is seen from where
    points around x are projected.
    """
    K, constraint, point, *_ = request
    size = size_of(request, x)
    polyhedral = constraint.affine() is not None and K.polyhedral() is not None
    if polyhedral or not (K.conic and constraint.conic):
        return None
    solved = _onto_tangents(request, methods, x)
    if solved is not None or np.abs(point - x).max() <= size:
        return solved
    uneven = size * np.cos(np.arange(x.size))
    for beside in (x + uneven, x - uneven):
        solved = _first_solved(request._replace(point=beside), methods)
        if solved is None or np.abs(solved.point - x).max() > SMALL * size:
            return None
    for distance in TOUCHING:
        start = x
        for _ in range(MAX_TOUCHING_STEPS):
            target, _ = nearer_target(point, start, size, distance)
            solved = _first_solved(request._replace(point=target), methods)
            if solved is None:
                break
            change, start = float(np.abs(solved.point - start).max()), solved.point
            if change <= 0.1 * POSITION * distance * size:
                return solved._replace(multipliers=None)
    return None


def _onto_tangents(request: Request, methods: Sequence[Method], x: Array) -> Projection | None:
    """The projection onto K and the rows' tangents at x, if it is beside x and satisfies the rows; None otherwise.

    The rows g are convex: {g_i(x) + ⟨∇g_i(x), z − x⟩ ≤ 0} contains {g ≤ 0}, no point of which is nearer.
    """
    constraint = request.constraint
    if constraint.affine() is not None:  # its tangents are the rows themselves
        return None
    rows, slopes = values_and_slopes(constraint, x)
    used = rows > -np.inf
    if not (np.isfinite(rows[used]).all() and np.isfinite(slopes).all()):
        return None
    flat = request._replace(constraint=Affine(slopes[used], slopes[used] @ x - rows[used]))
    solved = _solve_compiled(flat) or _first_solved(flat, methods)
    if solved is None or np.abs(solved.point - x).max() > 0.1 * POSITION * size_of(request, x):
        return None
    return solved if relative_violation(request, solved.point) <= SATISFIED else None
