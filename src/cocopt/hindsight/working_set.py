"""The working set: the rows and cones that the programs contain, out of K and all constraints of the rounds.

It begins with the rows of K, or of a box around it. What the minimiser of a model violates is added: constraints (and a
K) with a conic form as a whole, others by linearisations.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array, all_finite, ignore_fp_warnings
from cocopt.cones import Cones
from cocopt.constraints import Affine, Constraint, Function, Stack
from cocopt.errors import InfeasibleRound
from cocopt.geometry.project import project
from cocopt.hindsight.rounds import Block, Rounds
from cocopt.problems.base import MixedConstraint
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.tolerances import FEASIBILITY, SATISFIED, TINY

__all__ = ["EPIGRAPH", "Row", "Rows", "WorkingSet"]

Origin: TypeAlias = tuple[int, int]  #: (round, row) of an affine constraint, (round, -1) of another, or one of these:
OF_SET: Origin = (-1, 0)
EPIGRAPH: Origin = (-1, 1)
LINEARISATION: Origin = (-1, 2)

CUTS_PER_DIMENSION = 2  # at most so many constraints are added at once
INACTIVE = 1e-6  # a multiplier below this share of the largest is negligible
SMALLEST_REACH = 1e-3  # of K's scale: takes the place of a smaller ‖x‖ as the unit of a row's terms


class Row(NamedTuple):
    """The row ⟨normal, x⟩ + tau·τ ≤ rhs, τ being the epigraph variable of the black boxes among the losses."""

    origin: Origin
    normal: Array
    rhs: float
    tau: float = 0.0


class Rows(NamedTuple):
    """Rows ⟨A_i, x⟩ + tau_i τ ≤ b_i, and where each of them comes from."""

    A: Array
    b: Array
    tau: Array
    origins: list[Origin]

    @property
    def of_rounds(self) -> list[bool]:
        """Which of the rows stem from the constraints of rounds."""
        return [origin not in (OF_SET, EPIGRAPH) for origin in self.origins]

    def plus(self, new: list[Row]) -> Rows:
        """These rows and new ones."""
        origins, A, b, tau = zip(*new, strict=True)
        return Rows(
            np.concatenate([self.A, A]),
            np.concatenate([self.b, b]),
            np.concatenate([self.tau, tau]),
            [*self.origins, *origins],
        )

    def select(self, keep: list[bool]) -> Rows:
        """Some of these rows."""
        origins = [origin for origin, kept in zip(self.origins, keep, strict=True) if kept]
        return Rows(self.A[keep], self.b[keep], self.tau[keep], origins)


class _Violated(NamedTuple):
    """A constraint of a round that a point violates: its linearisation there, and itself if it is not affine."""

    distance: float  # the violation divided by the norm of the row
    row: Row
    constraint: Constraint | None


class WorkingSet:
    """The rows and cones of one trial; ``center`` is any point of K."""

    def __init__(self, K: ConvexSet, rounds: Rounds, center: Array) -> None:
        self.K, self.center, self._rounds = K, center, rounds
        poly = K.polyhedral()
        self._curved_set = poly is None
        if poly is None:
            poly = Polyhedral(center - K.diameter, center + K.diameter, np.zeros((0, K.dim)), np.zeros(0))
        eye, has_upper, has_lower = np.eye(K.dim), np.isfinite(poly.upper), np.isfinite(poly.lower)
        binding = poly.b < np.inf
        A = np.concatenate([poly.A[binding], eye[has_upper], -eye[has_lower]])
        b = np.concatenate([poly.b[binding], poly.upper[has_upper], -poly.lower[has_lower]])
        self.equalities = poly.equalities  #: so many of the first rows hold with equality
        self.rows = Rows(A, b, np.zeros(len(b)), [OF_SET] * len(b))
        #: the constraint of each cone, None for K
        self.cones: dict[Origin, tuple[Cones, Constraint | None]] = {}

    def cone_violation(self, x: Array) -> float:
        """The largest violation of the cones at x, in units of their terms."""
        worst = 0.0
        for _, constraint in self.cones.values():
            if constraint is None:
                worst = max(worst, float(self.K.violation_unchecked(x)) / self.K.scale)
            else:
                worst = max(worst, float((constraint.rows_unchecked(x) / constraint.magnitude(x)).max()))
        return worst

    def is_empty(self, start: Array) -> bool:
        """Whether no point of K satisfies the constraints of the working set, by projection of the start onto it."""
        limits = [constraint for _, constraint in self.cones.values() if constraint is not None]
        of_rounds = self.rows.of_rounds
        if any(of_rounds):
            limits.append(Affine(self.rows.A[of_rounds], self.rows.b[of_rounds]))
        try:
            project(self.K, Stack(limits), start)
        except InfeasibleRound:
            return True
        return False

    def needs_linearisation(self, T: int) -> bool:
        """Whether a curved K, or a curved constraint of the first T rounds, has no conic form."""
        if self._curved_set and _usable(self.K.cones()) is None:
            return True
        for *_, constraint in self._rounds.blocks(T):
            if constraint is not None and not _has_affine_rows(constraint):
                each = constraint.members.flat if isinstance(constraint, MixedConstraint) else [constraint.trials(0)]
                if any(_usable(member.cones()) is None for member in each):
                    return True
        return False

    def add_violated(self, T: int, x: Array, extra: list[Row]) -> bool:
        """Adds what x violates most in K and in the first T rounds, and extra rows; whether there was anything."""
        new_rows: list[Row] = []
        added = self._violates_set(x)
        if added:
            self._add_set(x, new_rows)
        new_rows += extra
        for _, row, constraint in self._most_violated(T, x):
            added = True
            cones = None if constraint is None else _usable(constraint.cones())
            if cones is not None:
                self.cones[row.origin] = cones, constraint
            else:
                new_rows.append(row if constraint is None else row._replace(origin=LINEARISATION))
        if new_rows:
            self.rows = self.rows.plus(new_rows)
        return added or bool(new_rows)

    def drop_inactive(self, multipliers: Array) -> None:
        """Drops rows of rounds whose multipliers are negligible: if they matter again, they will be found again."""
        least = INACTIVE * multipliers.max(initial=0.0)
        pairs = zip(self.rows.origins, multipliers, strict=True)
        self.rows = self.rows.select(
            [origin == OF_SET or (origin != EPIGRAPH and multiplier > least) for origin, multiplier in pairs]
        )

    def set_epigraph_unit(self, unit: float) -> None:
        """Measures the epigraph variable τ of all rows in another unit."""
        self.rows = self.rows._replace(tau=np.where(self.rows.tau < 0, -unit, 0.0))

    def _violates_set(self, x: Array) -> bool:
        if not self._curved_set or OF_SET in self.cones:
            return False
        return bool(self.K.violation_unchecked(x) > SATISFIED * self.K.scale)

    def _add_set(self, x: Array, new_rows: list[Row]) -> None:
        """K as cones, or as the row that separates x from it."""
        cones = _usable(self.K.cones())
        if cones is not None:
            self.cones[OF_SET] = cones, None
            return
        projection = self.K.project_unchecked(x)
        normal = (x - projection) / np.linalg.norm(x - projection)
        new_rows.append(Row(OF_SET, normal, float(normal @ projection)))

    def _most_violated(self, T: int, x: Array) -> list[_Violated]:
        """The constraints of rounds 1, …, T that x violates most, of those that the working set does not contain."""
        known = {*self.rows.origins, *self.cones}
        limit = CUTS_PER_DIMENSION * self.K.dim
        reach = max(float(np.linalg.norm(x)), SMALLEST_REACH * self.K.scale)
        found: list[_Violated] = []
        first = 0
        for block in self._rounds.blocks(T):
            if block.constraint is not None:
                found += islice(_violated_in_block(block, block.constraint, first, x, reach, known), limit)
            first += block.rounds
        return sorted(found, key=lambda one: -one.distance)[:limit]


def _violated_in_block(
    block: Block, constraint: Constraint, first: int, x: Array, reach: float, known: set[Origin]
) -> Iterator[_Violated]:
    """What x violates in the block that follows round ``first``, the largest distance first."""
    # a vectorised function may hold the data of all rounds, and must be given as many points
    points = np.broadcast_to(x, (block.rounds, x.size)) if isinstance(constraint, Function) else x
    with ignore_fp_warnings():
        values = np.atleast_2d(constraint.rows_unchecked(points))[: block.used]
    if not all_finite(values):
        constraint.rows(points)  # raises an error that names what is not finite, unless rows are −inf by intention
    t, i = np.nonzero(values > 0)
    if t.size == 0:
        return
    normals, violation = _normals(constraint, points, t, i), values[t, i]
    rhs, norms = np.vecdot(normals, x) - violation, np.linalg.norm(normals, axis=1)
    significant = np.flatnonzero(violation > FEASIBILITY * np.maximum(norms * reach, np.abs(rhs)))
    distance = violation[significant] / (norms[significant] + TINY)
    affine = _has_affine_rows(constraint)
    for index in np.argsort(-distance, kind="stable"):
        k = significant[index]
        origin = (first + int(t[k]), int(i[k]) if affine else -1)
        if origin not in known:
            own = None if affine else constraint.trials(int(t[k]))
            yield _Violated(float(distance[index]), Row(origin, normals[k], float(rhs[k])), own)


def _has_affine_rows(constraint: Constraint) -> bool:
    """Whether the linearisation of a row is the row itself."""
    if isinstance(constraint, MixedConstraint):
        return all(map(_has_affine_rows, constraint.members.flat))
    return constraint.affine() is not None or constraint.sparse_rows() is not None


def _normals(constraint: Constraint, points: Array, t: NDArray[np.intp], i: NDArray[np.intp]) -> Array:
    """Subgradients of the rows i of the rounds t; of constraints of several kinds only these."""
    if isinstance(constraint, MixedConstraint):
        point = points.reshape(-1, points.shape[-1])[0]
        pairs = zip(constraint.members[t], i, strict=True)
        return np.array([member.subgradient_unchecked(point, row) for member, row in pairs])
    jacobian = constraint.jacobian_unchecked(points)
    normals: Array = (jacobian if jacobian.ndim == 3 else jacobian[None])[t, i]
    return normals


def _usable(cones: Cones | None) -> Cones | None:
    """The cones, unless they have auxiliary variables: these are unbounded, and then there is no lower bound."""
    return None if cones is None or cones.aux else cones
