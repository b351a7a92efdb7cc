"""Polyhedra."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, frozen, require_finite
from cocopt.errors import EmptySet, InvalidInput, SolverFailure
from cocopt.kernels.status import CONVERGED
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral, rounding
from cocopt.sets.polyhedral_oracles import PolyhedralOracles
from cocopt.solvers.solution import Solution
from cocopt.threads import matmul
from cocopt.tolerances import FEASIBILITY

__all__ = ["Polyhedron"]


@register
class Polyhedron(ConvexSet):
    """The polyhedron {x : A x ≤ b}, bounded or not; b_i = +inf switches row i off.

    P_K(x) is the solution of a quadratic program whose optimality conditions are checked. Construction solves one
    linear program: it refuses rows that miss a common point by more than 1e-9 of their size, and relaxes those that
    miss it by less. The diameter is an upper bound, the diagonal of the bounding box, from 2n linear programs on first
    use.

    Parameters
    ----------
    A : array (M, n)
    b : array (M,)

    Examples
    --------
    >>> from cocopt import Polyhedron
    >>> K = Polyhedron([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 0.0, 0.0])
    >>> K.project([1.0, 1.0]).round(12)
    array([0.5, 0.5])
    >>> round(K.diameter, 12)
    1.414213562373
    """

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        rows = require_finite("A", as_floats("A", A))
        rhs = require_finite("b", as_floats("b", b), infinities=True)
        if rows.ndim != 2:
            raise InvalidInput(f"A: expected shape (M, n), got {rows.shape}")
        if rhs.shape != rows.shape[:1]:
            raise InvalidInput(f"b: expected shape ({len(rows)},) to match A of shape {rows.shape}, got {rhs.shape}")
        self.A, self.b = frozen(rows), frozen(rhs)
        self.dim = self.A.shape[1]
        size = np.abs(self.A).max(axis=1)
        impossible = np.flatnonzero((self.b == -np.inf) | ((size == 0) & (self.b < 0)))
        if impossible.size:
            i = int(impossible[0])
            raise EmptySet(f"Polyhedron: row {i} holds nowhere: ⟨{'0' if size[i] == 0 else 'a'}, x⟩ ≤ {self.b[i]}")
        active = (size > 0) & (self.b < np.inf)
        size = size[active]
        norm = size * np.linalg.norm(self.A[active] / size[:, None], axis=1)
        self._rows = frozen(self.A[active] / norm[:, None])
        self._rhs = frozen(self.b[active] / norm)
        if norm.size:
            # the rows are relaxed by what the common point violates them, which is rounding or within the tolerance
            self._rhs = frozen(np.maximum(self._rhs, self._rows @ self._common_point()))

    def _common_point(self) -> Array:
        """A point that violates the rows as little as possible; refuses rows that it misses by more than 1e-9."""
        n, free = self.dim, np.inf
        rows = np.concatenate([self._rows, -np.ones((self._rhs.size, 1))], axis=1)
        lower, upper = np.append(np.full(n, -free), 0.0), np.full(n + 1, free)
        solution = self._minimise(np.append(np.zeros(n), 1.0), Polyhedral(lower, upper, rows, self._rhs))
        if solution.status != CONVERGED:
            raise SolverFailure("Polyhedron: HiGHS could not decide whether the rows have a common point")
        # By duality the rows, weighted by their multipliers ν, contradict one another by −⟨ν, b⟩. The unit is that of
        # these rows, so that rows far away do not hide it.
        least = -float(solution.multipliers @ self._rhs)
        if least > FEASIBILITY * float(solution.multipliers @ np.abs(self._rhs)):
            raise EmptySet(f"Polyhedron: the rows have no common point: the least possible violation is {least:.6g}")
        return solution.point[:-1]

    def project_unchecked(self, point: Array) -> Array:
        from cocopt.solvers.polyhedral import project_polyhedral

        x = point.copy()
        for _ in range(2):  # from far away the first result has lost digits; projecting it again restores them
            slack = rounding(self.dim, 1.0) * np.maximum(np.abs(x).max(axis=-1), self.scale)
            outside = self.violation_unchecked(x) > slack
            if outside.any():
                x[outside] = project_polyhedral(self.polyhedral(), x[outside])
        return x

    def violation_unchecked(self, point: Array) -> Array:
        worst: Array = (matmul(point, self._rows.T) - self._rhs).max(axis=-1, initial=0.0)
        return worst

    @cached_property
    def polyhedral_oracles(self) -> PolyhedralOracles:
        return PolyhedralOracles(self)

    @cached_property
    def diameter(self) -> float:
        """An upper bound of max ‖x − y‖: the diagonal of the bounding box; ``inf`` if unbounded."""
        lower, upper = self.polyhedral_oracles.bounding_box
        return float(np.linalg.norm(np.maximum(upper - lower, 0.0)))

    @cached_property
    def scale(self) -> float:
        sizes = np.abs(self._rhs[self._rhs != 0])
        return float(np.median(sizes)) if sizes.size else 1.0

    @property
    def sized(self) -> bool:
        return bool(self._rhs.any())

    def polyhedral(self) -> Polyhedral:
        """Rows with one entry are bounds, the tightest of each coordinate."""
        return self._polyhedral

    @cached_property
    def _polyhedral(self) -> Polyhedral:
        lower, upper = np.full(self.dim, -np.inf), np.full(self.dim, np.inf)
        single = np.count_nonzero(self._rows, axis=1) == 1
        rows, rhs = self._rows[single], self._rhs[single]
        row, column = np.nonzero(rows)
        sign, limit = rows[row, column], rhs[row]  # the rows are of length 1: the entry is 1 or −1
        np.minimum.at(upper, column[sign > 0], limit[sign > 0])
        np.maximum.at(lower, column[sign < 0], -limit[sign < 0])
        return Polyhedral(lower, upper, self._rows[~single], self._rhs[~single]).frozen()

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b}

    def _minimise(self, cost: Array, feasible: Polyhedral) -> Solution:
        """min ⟨cost, x⟩ over bounds that are 0 or infinite and rows whose right-hand sides are those of K."""
        from cocopt.solvers.highs import solve_lp

        # HiGHS has absolute tolerances: the smallest right-hand side that matters becomes the unit.
        sizes = np.abs(self._rhs)
        unit = float(sizes.min(initial=np.inf, where=sizes > 1e-12 * sizes.max(initial=0.0)))
        return solve_lp(cost, feasible, unit if np.isfinite(unit) else 1.0)

    @classmethod
    def examples(cls) -> list[Self]:
        return [
            cls([[1.0, 0.0], [-1.0, 0.3], [0.0, -1.0]], [1.0, 0.1, 0.5]),
            cls(
                [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]],
                [1.0, -1.0, 0.0, 0.0, 0.0],
            ),
            cls([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0, 0.0]),
        ]
