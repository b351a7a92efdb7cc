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
from cocopt.geometry.conic import solve_conic
from cocopt.geometry.curved import curved_applies, describe_curved
from cocopt.geometry.derived import Relaxed
from cocopt.geometry.dual import solve_dual
from cocopt.geometry.least_violation import least_violation
from cocopt.geometry.problem import Projection, Request, relative_violation
from cocopt.kernels.status import CONVERGED, INFEASIBLE
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.solvers.solution import FeasibleSolution, Solution
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["STRUCTURED", "Method", "project_onto_rows", "solve_trial"]


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
    return rows is not None and rows <= kernel_rows(request.K, request.projects)


def _describe_kernel(request: Request) -> str:
    K, M = request.K, request.constraint.row_count
    name = "a box" if type(K) is Box else "a ball" if type(K) is Ball else "a polyhedron"
    return f"compiled, {'one row' if M == 1 else f'{M} rows'} over {name}"


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
    return request.constraint.affine() is not None and not np.isfinite(request.sum_bound)


def _describe_dual(request: Request) -> str:
    known = "the dimension is large" if request.K.conic else "K is known by its projection alone"
    return f"{known}, one multiplier per row"


STRUCTURED: tuple[Method, ...] = (
    Method("kernel", _kernel_applies, None, _describe_kernel),
    Method("curved", curved_applies, None, describe_curved),
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
    tried: list[str] = []
    suspected = False
    for method, solution in _solutions(request, methods):
        tried.append(method.name)
        if solution.status == CONVERGED and _is_feasible(request, solution):
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
    raise SolverFailure(f"project: no method ({', '.join(tried)}) returned a point that passed its optimality check")


def project_onto_rows(K: ConvexSet, A: Array, b: Array, point: Array) -> tuple[Array, Array] | None:
    """The projection of a point onto K ∩ {A x ≤ b}, K conic, and the rows' multipliers; None if it is empty."""
    request = Request(K, Affine(A, b), point)
    found = solve_batch(request)
    if found is not None and found[2] == CONVERGED:
        return found[0], found[1]
    outcome = solve_trial(request, STRUCTURED)
    if not outcome.feasible:
        return None
    return outcome.point, np.full(b.size, np.nan) if outcome.multipliers is None else outcome.multipliers


def _solutions(request: Request, methods: Sequence[Method]) -> Iterator[tuple[Method, Solution]]:
    """What each of the methods that apply returns, in their order."""
    for method in methods:
        if method.solve is not None and method.applies(request):
            yield method, method.solve(request)


def _is_feasible(request: Request, solution: Solution) -> bool:
    """Whether the point violates nothing by more than is promised; black boxes have their own tolerance, and met it."""
    K, constraint = request.K, request.constraint
    if not (request.projects and constraint.conic and K.conic):
        return True
    return isinstance(solution, FeasibleSolution) or relative_violation(K, constraint, solution.point) <= FEASIBILITY


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
    slack = SATISFIED * unit
    feasible = least.value <= FEASIBILITY
    if feasible:
        relaxation, violation = max(least.value, 0.0) * unit + slack, 0.0
    else:
        least = least_violation(request, np.ones_like(unit))
        if least is None or least.value <= 0.0:  # the two contradict each other: nothing is proven
            return None
        violation = least.value
        relaxation = violation + slack
    with contextlib.suppress(CutLimit):  # where the relaxed rows only just meet: the point of least violation is known
        for method, solution in _solutions(request._replace(constraint=Relaxed(constraint, relaxation)), methods):
            if solution.status == CONVERGED:
                return Projection(solution.point, method.name, feasible, violation, None, solution.cuts)
    return None if feasible else Projection(least.point, "least", feasible, violation)
