"""The nearest point where not all rows can be met and some matter more: hard rows before soft ones, by weight.

First the largest weighted violation of the hard rows is made least: 0 if they can be met. Then, with the hard rows
relaxed by no more than that, the largest weighted violation of the soft rows. Of the points that are left, the one
nearest to the target is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.constraints import Constraint, Stack
from cocopt.errors import SolverFailure
from cocopt.geometry.derived import Relaxed
from cocopt.geometry.least_violation import LeastViolation, least_violation
from cocopt.geometry.problem import VANISHING, Projection, Request, with_length
from cocopt.geometry.structured import Method, solve_touching, solve_trial
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["nearest_by_priority"]

Flags = NDArray[np.bool_]

SLACKS = (SATISFIED, 5.0 * SATISFIED)  # of the rows' terms: together with what they are exceeded by, within the promise
MAX_UNITS = 3  # how often these terms are taken


def nearest_by_priority(request: Request, methods: Sequence[Method]) -> Projection:
    """The answer of one trial whose rows, which have weights or are soft, have no point of K in common."""
    K, constraint, point, *_ = request
    rows, weights, soft = constraint.plain(), constraint.row_weights, constraint.soft_rows
    relaxation, near = np.zeros(rows.row_count), K.project_unchecked(point)
    for group in (~soft, soft):
        if not group.any():
            continue
        found = _least(request, rows, group, ~soft & ~group, weights, relaxation)
        if found is not None and found.value > 0.0:
            relaxation = np.where(group, found.value / weights, relaxation)
        near = near if found is None else found.point  # where K is unbounded, a far target's projection is far away
    solved = _nearest_of_relaxed(request, methods, rows, relaxation, near)
    if solved is None:
        raise SolverFailure("project: no point was found that violates the rows least in the order of their priorities")
    least = float(np.max(rows.rows_unchecked(solved.point)))
    return solved._replace(feasible=False, least_violation=max(least, 0.0), multipliers=None)


def _nearest_of_relaxed(
    request: Request, methods: Sequence[Method], rows: Constraint, relaxation: Array, near: Array
) -> Projection | None:
    """The projection onto {g ≤ relaxation}, and a little more; None if none is found that is within the promise.

    How much more is a share of the rows' terms. These are known at the point ``near``, where the search for the least
    violation has ended, and beside the target; K may be unbounded, and both far away. Then those at the result count.
    """
    scale = with_length(request._replace(constraint=rows)).scale
    least = VANISHING * rows.magnitude(np.full(near.size, scale))
    beside_target = rows.magnitude(request.K.project_unchecked(request.point))
    unit = np.maximum(np.minimum(rows.magnitude(near), beside_target), least)
    for slack in SLACKS:
        for _ in range(MAX_UNITS):
            relaxed = with_length(request._replace(constraint=Relaxed(rows, relaxation + slack * unit)))
            try:
                solved = solve_touching(relaxed, methods, near) or solve_trial(relaxed, methods)
            except SolverFailure:
                break
            if not solved.feasible:
                break
            terms = np.maximum(rows.magnitude(solved.point), least)
            if (rows.rows_unchecked(solved.point) - relaxation <= FEASIBILITY * terms).all():
                return solved
            unit = np.minimum(unit, terms)
    return None


def _least(
    request: Request, rows: Constraint, group: Flags, held: Flags, weights: Array, relaxation: Array
) -> LeastViolation | None:
    """The least max of weight_i g_i over the group, where the rows that are held violate no more than so far."""
    used = np.flatnonzero(group | held)
    members = [Relaxed(rows.select(int(i)), np.array([0.0 if group[i] else relaxation[i]])) for i in used]
    unit = np.where(group[used], 1.0 / weights[used], 0.0)
    return least_violation(request._replace(constraint=Stack(members)), unit)
