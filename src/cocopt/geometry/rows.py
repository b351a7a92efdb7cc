"""A request taken apart: a polyhedron with affine rows, and rows that are known by value and gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.constraints import Affine, Constraint, NormBall, Stack
from cocopt.geometry.derived import CUT_ROUNDING, Relaxed
from cocopt.geometry.problem import Request
from cocopt.geometry.structured import STRUCTURED as STRUCTURED_METHODS
from cocopt.geometry.structured import project_onto_rows, solve_trial
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["BEST_POSITION", "Evaluation", "SplitRows", "members", "project_onto_cuts", "split"]

BEST_POSITION = 1e-8  # the accuracy of the position that is asked for at most, in units of its own size
MOVED = 1e-6  # a coordinate that changes by more than this share of the largest has moved

STRUCTURED = 0.25 * FEASIBILITY  # the violation that is accepted of rows with a structure, in units of their terms


def members(constraint: Constraint) -> list[Constraint]:
    """The constraints of which it is stacked, in their order."""
    if isinstance(constraint, Stack):
        return [inner for member in constraint.members for inner in members(member)]
    if isinstance(constraint, Relaxed) and isinstance(constraint.of, Stack):
        parts, at = [], 0
        for member in members(constraint.of):
            parts.append(Relaxed(member, constraint.t[at : at + member.row_count]))
            at += member.row_count
        return list(parts)
    return [constraint]


def split(constraint: Constraint) -> tuple[Constraint | None, Constraint]:
    """The members with a structure, and the black boxes; all of them are treated as such if there is none."""
    parts = members(constraint)
    boxes = [member for member in parts if member.affine() is None and not member.conic]
    fixed = [member for member in parts if member.affine() is not None or member.conic]
    if not boxes or not fixed:
        return None, constraint
    return _stacked(fixed), _stacked(boxes)


def _stacked(parts: list[Constraint]) -> Constraint:
    return parts[0] if len(parts) == 1 else Stack(parts)


def project_onto_cuts(
    K: ConvexSet, fixed: Constraint | None, A: Array, b: Array, point: Array
) -> tuple[Array, Array] | None:
    """The projection onto K, a constraint with a structure and {A x ≤ b}, and the multipliers of the latter.

    None if they have no point in common.
    """
    if fixed is None:
        return project_onto_rows(K, A, b, point)
    affine = fixed.affine()
    if affine is not None:
        found = project_onto_rows(K, np.concatenate([affine[0], A]), np.concatenate([affine[1], b]), point)
        return None if found is None else (found[0], found[1][affine[1].size :])
    outcome = solve_trial(Request(K, Stack([fixed, Affine(A, b)]) if b.size else fixed, point), STRUCTURED_METHODS)
    if not outcome.feasible:
        return None
    nu = np.full(b.size, np.nan) if outcome.multipliers is None else outcome.multipliers[fixed.row_count :]
    return outcome.point, nu


class Evaluation(NamedTuple):
    """The curved rows at a point, and their subgradients."""

    x: Array
    g: Array
    J: Array


class SplitRows:
    """argmin of ½‖x − point‖² over lower ≤ x ≤ upper, A x ≤ b (the first of them with equality) and curved rows ≤ 0.

    The curved rows are those of all members that are not affine, and that of K if it is a ball.
    """

    def __init__(self, request: Request, tol: float) -> None:
        K, own = request.K, request.K.polyhedral()
        self.request, self.tol, self.used = request, tol, 0
        self.point, self.start = request.point, K.project_unchecked(request.point)
        #: whether this is all of K
        self.whole = own is not None or type(K) is Ball
        if own is None:
            free = np.full(K.dim, np.inf)
            own = Polyhedral(-free, free, np.zeros((0, K.dim)), np.zeros(0))
        self.lower, self.upper, A, b, self.equalities = own
        rows, rhs, curved = [A], [b], []
        self.of_affine: list[int] = []  #: which rows of the constraint the last ones of A are
        self.of_curved: list[int] = []
        at = 0
        for member in members(request.constraint):
            affine, numbers = member.affine(), range(at, at + member.row_count)
            at += member.row_count
            if affine is None:
                curved.append(member)
                self.of_curved += numbers
            else:
                binding = affine[1] < np.inf
                rows.append(affine[0][binding])
                rhs.append(affine[1][binding])
                self.of_affine += [number for number, binds in zip(numbers, binding, strict=True) if binds]
        self.A, self.b, self.total = np.concatenate(rows), np.concatenate(rhs), at
        self.polyhedron = Polyhedral(self.lower, self.upper, self.A, self.b, self.equalities)
        #: which curved rows have a structure, and a sharper promise
        self.structured = np.concatenate([np.full(member.row_count, member.conic) for member in curved])
        self.boxes = int((~self.structured).sum())
        if type(K) is Ball:
            curved.append(NormBall(K.center, K.radius))
            self.structured = np.append(self.structured, True)
        self.curved = curved[0] if len(curved) == 1 else Stack(curved)
        self.row_count = self.structured.size
        self.may_be_separable = self.row_count == 1 and self.boxes == 1

    @property
    def exhausted(self) -> bool:
        """Whether the bound on the number of cutting planes is reached."""
        return self.used >= self.request.cuts

    def evaluate(self, x: Array) -> Evaluation:
        """The curved rows at x, or at the nearest point of K; those of black boxes count as cuts."""
        self.used += max(self.boxes, 1)
        x = x if self.request.K.polyhedral() is not None else self.request.K.project_unchecked(x)
        return Evaluation(x, self.curved.rows(x), self.curved.jacobian(x))

    def of_black_boxes(self, evaluations: list[Evaluation]) -> list[Evaluation]:
        """The same evaluations of black boxes alone."""
        own = ~self.structured
        return [Evaluation(x, g[own], J[own]) for x, g, J in evaluations] if self.boxes else []

    def is_met(self, at: Evaluation) -> bool:
        """Whether no row is violated by more than is accepted."""
        accepted: Array | float = self.tol
        if self.structured.any():
            terms = STRUCTURED * np.maximum(self.curved.magnitude(at.x), 1e-300)
            accepted = np.where(self.structured, terms, self.tol)
        return bool((at.g <= accepted).all()) and self.is_in_polyhedron(at.x)

    def is_in_polyhedron(self, x: Array) -> bool:
        """Whether x satisfies A x ≤ b; the bounds it is known to satisfy."""
        if not self.b.size:
            return True
        excess = self.A @ x - self.b
        excess[: self.equalities] = np.abs(excess[: self.equalities])
        return bool((excess <= SATISFIED * (np.abs(self.A) @ np.abs(x) + np.abs(self.b))).all())

    def residual(self, x: Array, slope: Array, of_rows: Array) -> tuple[float, float]:
        """How far x is from stationary, and how far its rows' multipliers are from complementary.

        ``slope`` is that of the curved rows, weighted by their multipliers.
        """
        gradient, slack = x - self.point + slope, 0.0
        if self.b.size:
            nu = of_rows.copy()
            nu[self.equalities :] = np.maximum(nu[self.equalities :], 0.0)
            gradient = gradient + nu @ self.A
            slack = float(np.abs(nu * (self.A @ x - self.b)).sum())
            slack = slack if slack > CUT_ROUNDING * float(np.abs(nu) @ np.abs(self.b)) else 0.0
        to = np.minimum(np.maximum(x - gradient, self.lower), self.upper)
        return float(np.linalg.norm(to - x)), slack

    def rounding(self, at: Evaluation) -> Array:
        """What rounding may do to the curved rows' values."""
        terms: Array = np.sqrt(np.vecdot(at.J, at.J)) * float(np.linalg.norm(at.x)) + np.abs(at.g)
        return CUT_ROUNDING * terms

    def accuracy(self, x: Array, share: float) -> float:
        """The error of the position that is aimed at."""
        away = min(float(np.linalg.norm(x - self.point)), self.request.scale)
        return max(0.1 * self.tol, share) * max(float(np.linalg.norm(x)), away)

    def looks_separable(self, last: Evaluation, at: Evaluation) -> bool:
        """Whether slopes along moved coordinates are exactly as they were while others changed, as of Σ h_j(x_j)."""
        if not self.may_be_separable:
            return False
        same = at.J[0] == last.J[0]
        moved = np.abs(at.x - last.x) > MOVED * float(np.abs(at.x).max())
        return bool((moved & same).any() and not same.all())

    def multipliers(self, of_curved: Array, of_rows: Array | None = None) -> Array:
        """Those of the constraint's rows in their order; NaN where they are not known."""
        nu = np.zeros(self.total)
        nu[self.of_curved] = of_curved[: len(self.of_curved)]
        nu[self.of_affine] = np.nan if of_rows is None else of_rows[self.b.size - len(self.of_affine) :]
        return nu
