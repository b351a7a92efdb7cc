"""The ladder of methods: what is asked of it, and its answer."""

from __future__ import annotations

from typing import NamedTuple

from cocopt.arrays import Array
from cocopt.constraints import Constraint
from cocopt.geometry.project import Projection, descend
from cocopt.sets.base import ConvexSet

__all__ = ["Request", "solve"]


class Request(NamedTuple):
    """argmin over x in K of ½‖x − point‖² + penalty(x), on checked arguments; without bounds, P_{K ∩ {g ≤ 0}}(point).

    The penalty is Σ_i max_multiplier_i g_i^+(x) with a bound for each row's multiplier, or max_multiplier_sum·max_i
    g_i^+(x) with one for their sum.
    """

    K: ConvexSet
    constraint: Constraint
    point: Array  #: (..., n)
    max_multiplier: Array | None = None  #: (..., M)
    max_multiplier_sum: Array | None = None  #: (...)
    infeasible: str = "raise"  #: or "nearest": what to do if K ∩ {g ≤ 0} is empty
    cuts: int = 500  #: for black boxes, the largest number of cutting planes per trial
    tol: float = 1e-7  #: for black boxes, the violation that is accepted


def solve(request: Request) -> Projection:
    """The answer, by the first method of the ladder whose result passes its check, trial by trial."""
    K, constraint, point, each, of_sum, infeasible, cuts, tol = request
    return descend(K, constraint, point, each, of_sum, infeasible, cuts, tol)
