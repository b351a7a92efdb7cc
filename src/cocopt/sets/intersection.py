"""Intersections of sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, frozen
from cocopt.cones import Cones, stack
from cocopt.errors import EmptySet, InvalidInput, SolverFailure
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral
from cocopt.tolerances import FEASIBILITY, SATISFIED

__all__ = ["Intersection"]

MAX_SWEEPS = 10_000  # of Dykstra's method
UNCHANGED = 1e-12  # a sweep that changes less, in units of the size of the point, is the last


@register
class Intersection(ConvexSet):
    """The intersection K₁ ∩ K₂ ∩ … of sets in the same space.

    P_K is a quadratic program if all members have `polyhedral()`, a cone program if all have `cones()`, both with
    checked optimality conditions; else Dykstra's method (Boyle & Dykstra 1986), which alternates between the
    projections onto the members. Construction finds a point of K, or raises `EmptySet` if the members miss each other
    by more than 1e-9 of their size. The diameter is an upper bound, the least of those of the members.

    Parameters
    ----------
    sets : sequence of ConvexSet

    Examples
    --------
    >>> from cocopt import Ball, Intersection, Simplex
    >>> K = Intersection([Simplex(3), Ball([1.0, 0.0, 0.0], 0.5)])
    >>> K.project([0.0, 1.0, 0.0]).round(6)
    array([0.646447, 0.353553, 0.      ])
    >>> K.contains(Simplex(3).center)
    np.False_
    """

    def __init__(self, sets: Sequence[ConvexSet]) -> None:
        members = tuple(sets) if isinstance(sets, Sequence) else ()
        if not members:
            raise InvalidInput(f"sets: expected a sequence of at least one set, got {sets!r}")
        for i, member in enumerate(members):
            if not isinstance(member, ConvexSet):
                raise InvalidInput(f"sets: expected sets, got {type(member).__name__} at index {i}")
            if member.dim != members[0].dim:
                raise InvalidInput(f"sets: expected dimension {members[0].dim} as that of the first, got {member.dim}")
        self.sets = members
        self.dim = members[0].dim
        self._polyhedral = _join(members)
        self._require_point()

    def _require_point(self) -> None:
        """Raises if K has no point, and keeps one if the cone program shows it."""
        self._deepest: tuple[Array, float] | None = None
        if self._polyhedral is not None:
            from cocopt.solvers.highs import least_violation

            lower, upper, A, b, equalities = self._polyhedral
            gap, at = float((lower - upper).max()), int((lower - upper).argmax())
            if gap > FEASIBILITY * max(abs(lower[at]), abs(upper[at])):
                raise EmptySet(f"Intersection: the bounds of coordinate {at} contradict one another by {gap:.6g}")
            lower = np.minimum(lower, upper)
            rows, rhs = np.concatenate([A, -A[:equalities]]), np.concatenate([b, -b[:equalities]])
            norms = np.linalg.norm(rows, axis=1)
            unit = np.maximum(np.abs(np.where(rhs < np.inf, rhs, 0.0)), self.scale * norms)
            bounds = Polyhedral(lower, upper, np.zeros((0, self.dim)), np.zeros(0))
            least = least_violation(bounds, rows, rhs, np.where(unit > 0.0, unit, 1.0))[0] if rhs.size else 0.0
            if least > FEASIBILITY:
                raise EmptySet(
                    f"Intersection: the sets have no common point: the least possible violation is {least:.6g} "
                    "of the size of the rows"
                )
            self._polyhedral = self._polyhedral._replace(lower=lower)
            return
        if self.conic:
            from cocopt.solvers.conic_projection import deepest_point

            cones = self.cones()
            assert cones is not None  # see `conic`
            unit = max((member.scale for member in self.sets if member.sized), default=1.0)
            self._deepest = deepest_point(cones, self.dim, unit)
            if self._deepest is not None and self._deepest[1] > -FEASIBILITY * unit:
                return
            raise EmptySet(
                "Intersection: the sets have no common point"
                + ("" if self._deepest is None else f": they miss one another by about {-self._deepest[1]:.6g}")
            )
        try:
            self.project_unchecked(np.zeros(self.dim))
        except SolverFailure:
            raise EmptySet("Intersection: Dykstra's method found no point that is in all of the sets") from None

    def project_unchecked(self, point: Array) -> Array:
        x = np.array(point)
        todo = self._outside(x)
        for member in self.sets:  # what is in all of K is the projection onto K, too
            if todo.any():
                x[todo] = member.project_unchecked(point[todo])
                todo &= self._outside(x)
        if not todo.any():
            return x
        if self._polyhedral is not None:
            from cocopt.solvers.polyhedral import project_polyhedral

            x[todo] = project_polyhedral(self._polyhedral, point[todo])
            return x
        for index in map(tuple, np.argwhere(todo)):
            x[index] = self._project_conic(point[index]) if self.conic else self._project_by_sweeps(point[index])
        return x

    def _outside(self, x: Array) -> Any:  # bool (...)
        """Where x violates a member by more than a tenth of the promise."""
        size = np.maximum(np.abs(x).max(axis=-1), self.scale)
        return np.asarray(self.violation_unchecked(x) > SATISFIED * size)

    def _project_conic(self, point: Array) -> Array:
        from cocopt.solvers.conic_projection import project_onto_cones, relax

        cones = self.cones()
        assert cones is not None  # see `conic`
        start = point
        for _ in range(2):
            for member in self.sets:
                start = member.project_unchecked(start)
        for slack in (0.0, SATISFIED, 5.0 * SATISFIED):  # sets that touch are too thin: relaxed within the promise
            relaxed = relax(cones, self.dim, slack * self.scale)
            x = project_onto_cones(relaxed, point, start, self.scale, lambda x: float(self.violation_unchecked(x)))
            if x is not None:
                return x
        raise SolverFailure("Intersection: no projection passed its optimality check; the sets may hardly meet")

    def _project_by_sweeps(self, point: Array) -> Array:
        """Dykstra's method: each member's projection, of the point plus what the member has moved it by before."""
        x, moved = point, [np.zeros(self.dim) for _ in self.sets]
        for _ in range(MAX_SWEEPS):
            change = 0.0  # of what the members move: x alone may rest for many sweeps (Birgin & Raydan 2005)
            for i, member in enumerate(self.sets):
                nearest = member.project_unchecked(x + moved[i])
                before, moved[i] = moved[i], x + moved[i] - nearest
                change = max(change, float(np.abs(moved[i] - before).max()))
                x = nearest
            size = max(float(np.abs(x).max()), self.scale)
            if change <= UNCHANGED * size and self.violation_unchecked(x) <= FEASIBILITY * size:
                return x
        raise SolverFailure(f"Intersection: Dykstra's method did not converge in {MAX_SWEEPS} sweeps")

    def violation_unchecked(self, point: Array) -> Array:
        worst: Array = np.max([member.violation_unchecked(point) for member in self.sets], axis=0)
        return worst

    def minimise_linear_unchecked(self, direction: Array) -> Array:
        cones = None if self._polyhedral is not None else self.cones()
        if cones is None:
            return super().minimise_linear_unchecked(direction)
        if not self.bounded:
            raise InvalidInput(f"K: expected a bounded set, got {self!r}")
        from cocopt.solvers.conic_projection import minimise_over_cones

        points = np.broadcast_to(self.center, direction.shape).copy()
        for index in map(tuple, np.argwhere(direction.any(axis=-1))):
            found = minimise_over_cones(cones, direction[index], self.center, self.scale)
            if found is None:
                raise SolverFailure(f"Clarabel found no linear minimiser of {self!r} that passes its optimality check")
            # what rounding has left outside goes towards the centre, around which K has a ball
            share = float(self.violation_unchecked(found)) / self.inner_radius
            points[index] = found + min(share, 1.0) * (self.center - found)
        return points

    def separate_unchecked(self, point: Array) -> Array:
        """The normal of the member that is violated most."""
        violations = np.array([member.violation_unchecked(point) for member in self.sets])
        normals = np.array([member.separate_unchecked(point) for member in self.sets])
        worst = np.broadcast_to(violations.argmax(axis=0)[None, ..., None], (1, *point.shape))
        normal: Array = np.take_along_axis(normals, worst, axis=0)[0]
        return normal

    def project_direction_unchecked(self, vector: Array) -> Array:
        if self._polyhedral is not None:
            return super().project_direction_unchecked(vector)
        return vector - (vector @ self._normals.T) @ self._normals if len(self._normals) else vector

    @cached_property
    def full_dimensional(self) -> bool:
        return super().full_dimensional if self._polyhedral is not None else len(self._normals) == 0

    @cached_property
    def _normals(self) -> Array:
        """Orthonormal rows that span the normals of the equations of K, which is no polyhedron.

        If a ball satisfies the inequalities, the equations are the affine hull of K; if none does, nothing is known.
        """
        rows, cones = np.zeros((0, self.dim)), self.cones()
        if cones is None or self._deepest is None or self._deepest[1] <= SATISFIED * self.scale:
            return rows
        A, at = cones.A, 0
        for kind, count in cones.cones:
            own = A[at : at + count]
            if kind == "zero" and not own[:, self.dim :].any():
                rows = np.concatenate([rows, own[:, : self.dim] / np.linalg.norm(own, axis=1, keepdims=True)])
            at += count * (count + 1) // 2 if kind == "psd" else count
        _, sizes, axes = np.linalg.svd(rows, full_matrices=False)
        return frozen(axes[sizes > SATISFIED])

    @cached_property
    def center(self) -> Array:
        """Of a polyhedron the Chebyshev centre; else the centre of a ball in K, as large as can be found."""
        if self._polyhedral is not None:
            return super().center
        return frozen(self._ball[0])

    @cached_property
    def inner_radius(self) -> float:
        return super().inner_radius if self._polyhedral is not None else self._ball[1]

    @cached_property
    def outer_radius(self) -> float:
        """An upper bound: by the least member, seen from the centre of K."""
        if self._polyhedral is not None:
            return super().outer_radius
        bounded = [member for member in self.sets if member.bounded]
        reach = [float(np.linalg.norm(member.center - self.center)) + member.outer_radius for member in bounded]
        return min([self.diameter, *reach])

    @property
    def _ball(self) -> tuple[Array, float]:
        """A ball in K; an error if none was found, since the affine hull of K is then not known."""
        if self._deepest is None or self._deepest[1] <= SATISFIED * self.scale:
            raise InvalidInput(f"K: expected a set with an interior point that a cone program finds, got {self!r}")
        return self._deepest

    @property
    def diameter(self) -> float:
        return min(member.diameter for member in self.sets)

    @cached_property
    def scale(self) -> float:
        """The least scale of members that have a size: a large member shall not hide the violation of a small one."""
        return min((member.scale for member in self.sets if member.sized), default=1.0)

    @property
    def sized(self) -> bool:
        return any(member.sized for member in self.sets)

    @cached_property
    def conic(self) -> bool:
        return all(member.conic for member in self.sets)

    def cones(self) -> Cones | None:
        pieces = [member.cones() for member in self.sets]
        return stack([piece for piece in pieces if piece is not None], self.dim) if None not in pieces else None

    def polyhedral(self) -> Polyhedral | None:
        return self._polyhedral

    def parameters(self) -> dict[str, Any]:
        return {"sets": list(self.sets)}

    @classmethod
    def examples(cls) -> list[Self]:
        from cocopt.sets.ball import Ball
        from cocopt.sets.box import Box
        from cocopt.sets.halfspace import Halfspace
        from cocopt.sets.simplex import Simplex

        return [
            cls([Box(0.0, 1.0, dim=2), Ball([1.0, 1.0], 0.75)]),
            cls([Simplex(3), Halfspace([1.0, 0.0, 0.0], 0.5)]),
            cls([Box(0.0, 2.0, dim=3), Halfspace([1.0, 1.0, 1.0], 1.0), Box(-1.0, 0.75, dim=3)]),
        ]


def _join(members: Sequence[ConvexSet]) -> Polyhedral | None:
    """All members as one polyhedron; None if one of them is none."""
    parts = [part for member in members if (part := member.polyhedral()) is not None]
    if len(parts) < len(members):
        return None
    # equality rows come first
    A = [p.A[: p.equalities] for p in parts] + [p.A[p.equalities :] for p in parts]
    b = [p.b[: p.equalities] for p in parts] + [p.b[p.equalities :] for p in parts]
    return Polyhedral(
        np.max([p.lower for p in parts], axis=0),
        np.min([p.upper for p in parts], axis=0),
        np.concatenate(A),
        np.concatenate(b),
        sum(p.equalities for p in parts),
    )
