"""The best action of every round by itself: u_t = argmin of f_t over K ∩ {g_t ≤ 0}."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, all_finite
from cocopt.constraints import Constraint
from cocopt.errors import SolverFailure
from cocopt.geometry.project import solve_projection
from cocopt.hindsight.quadratics import minimise_quadratics
from cocopt.hindsight.rounds import Rounds
from cocopt.hindsight.search import Search
from cocopt.losses import Distance, Loss
from cocopt.problems.base import MixedConstraint, Section
from cocopt.sets.base import ConvexSet

__all__ = ["RoundOptima", "minimise_rounds"]


class RoundOptima(NamedTuple):
    """The minimisers of N rounds."""

    value: Array  #: (N,), NaN where there is none
    feasible: NDArray[np.bool_]  #: (N,)
    point: Array  #: (N, n), NaN where there is none


def minimise_rounds(K: ConvexSet, rounds: Rounds) -> RoundOptima:
    """The minimiser of every round of a trial."""
    found, before = [], 0
    for section in rounds.sections():
        found.append(_minimise_section(K, section, before))
        before += section[0]
    value, feasible, point = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return RoundOptima(value, feasible, point)


def _minimise_section(K: ConvexSet, section: Section, before: int) -> RoundOptima:
    """The minimisers of a section: all at once where projections yield them, the others one after the other."""
    count, reveal = section
    loss, constraint = reveal(slice(None))
    if (loss is None or type(loss) is Distance) and _is_projectable(constraint):
        return _project_targets(K, loss, constraint, count)
    optima = RoundOptima(np.full(count, np.nan), np.zeros(count, dtype=bool), np.full((count, K.dim), np.nan))
    solved = minimise_quadratics(K, loss, constraint, count)
    if solved is not None:
        done = solved.done
        optima.value[done], optima.point[done], optima.feasible[done] = solved.value[done], solved.point[done], True
    for k in np.flatnonzero(~optima.feasible).tolist():
        try:
            best = Search(K, _single_round(section, k)).minimise(1)
        except SolverFailure as error:
            raise SolverFailure(f"round {before + k + 1}: {error}") from error
        if best is not None:
            optima.value[k], optima.point[k] = best
            optima.feasible[k] = True
    return optima


def _single_round(section: Section, k: int) -> Rounds:
    """The k-th round of a section by itself."""
    return Rounds(lambda: [(1, lambda _: section[1](slice(k, k + 1)))], 1)


def _is_projectable(constraint: Constraint | None) -> bool:
    """Whether projections onto K ∩ {g ≤ 0} are exact: black boxes are met to a coarser tolerance."""
    if constraint is None or constraint.affine() is not None:
        return True
    return not isinstance(constraint, MixedConstraint) and constraint.trials(0).conic


def _project_targets(K: ConvexSet, loss: Loss | None, constraint: Constraint | None, count: int) -> RoundOptima:
    """½‖x − c‖² is least at the projection of c, whose optimality conditions `solve_projection` checks.

    A round without a loss has no unique minimiser: its target is the point of K nearest to 0.
    """
    target = loss.center if isinstance(loss, Distance) else K.project_unchecked(np.zeros(K.dim))
    if loss is not None and not all_finite(target):
        loss.require_finite_data()
    target = np.broadcast_to(target, (count, K.dim))
    found = solve_projection(K, constraint, target, infeasible="nearest")
    feasible = np.broadcast_to(found.feasible, (count,)).astype(bool)
    point = np.where(feasible[:, None], found.point, np.nan)
    value = np.zeros(count) if loss is None else loss.value(found.point)
    return RoundOptima(np.where(feasible, value, np.nan), feasible, point)
