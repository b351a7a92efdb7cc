"""The nearest point where not all rows can be met and some matter more: hard rows before soft ones, by weight.

First the largest weighted violation of the hard rows is made least: 0 if they can be met. Then, with the hard rows
relaxed by no more than that, the largest weighted violation of the soft rows. Of the points that are left, the one
nearest to the target is taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.constraints import Constraint, Stack
from cocopt.errors import SolverFailure
from cocopt.geometry.derived import Relaxed
from cocopt.geometry.least_violation import LeastViolation, least_violation
from cocopt.geometry.problem import Projection, Request
from cocopt.geometry.structured import Method, nearest_of_relaxed, solve_touching, solve_trial

__all__ = ["nearest_by_priority"]

Flags = NDArray[np.bool_]


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

    def solve(relaxed: Request) -> Projection | None:
        with contextlib.suppress(SolverFailure):
            outcome = solve_touching(relaxed, methods, near) or solve_trial(relaxed, methods)
            return outcome if outcome.feasible else None
        return None

    solved = nearest_of_relaxed(request._replace(constraint=rows), relaxation, near, solve)
    if solved is None:
        raise SolverFailure("project: no point was found that violates the rows least in the order of their priorities")
    least = float(np.max(rows.rows_unchecked(solved.point)))
    return solved._replace(feasible=False, least_violation=max(least, 0.0), multipliers=None)


def _least(
    request: Request, rows: Constraint, group: Flags, held: Flags, weights: Array, relaxation: Array
) -> LeastViolation | None:
    """The least max of weight_i g_i over the group, where the rows that are held violate no more than so far."""
    used = np.flatnonzero(group | held)
    members = [Relaxed(rows.select(int(i)), np.array([0.0 if group[i] else relaxation[i]])) for i in used]
    unit = np.where(group[used], 1.0 / weights[used], 0.0)
    return least_violation(request._replace(constraint=Stack(members)), unit)
