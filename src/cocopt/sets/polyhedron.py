"""Polyhedra."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_floats, frozen, require_finite
from cocopt.errors import EmptySet, InvalidInput, SolverFailure
from cocopt.registry import register
from cocopt.sets.base import ConvexSet, Polyhedral, rounding

__all__ = ["Polyhedron"]


class _Solution(NamedTuple):
    """A minimiser of a linear program, and the weights (multipliers) of its rows."""

    x: Array
    weights: Array


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
        right = require_finite("b", as_floats("b", b), infinities=True)
        if rows.ndim != 2:
            raise InvalidInput(f"A: expected shape (M, n), got {rows.shape}")
        if right.shape != rows.shape[:1]:
            raise InvalidInput(f"b: expected shape ({len(rows)},) to match A of shape {rows.shape}, got {right.shape}")
        self.A, self.b = frozen(rows), frozen(right)
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
        self._right = frozen(self.b[active] / norm)
        if norm.size:
            # what rounding (or less than the tolerance) takes from the common point is given back
            self._right = frozen(np.maximum(self._right, self._rows @ self._common_point()))

    def _common_point(self) -> Array:
        """A point that violates the rows as little as possible; refuses rows that it misses by more than 1e-9."""
        rows = np.concatenate([self._rows, -np.ones((self._right.size, 1))], axis=1)
        cost = np.append(np.zeros(self.dim), 1.0)
        solution = self._minimise(cost, rows, [(None, None)] * self.dim + [(0.0, None)])
        if solution is None:
            raise SolverFailure("Polyhedron: HiGHS could not decide whether the rows have a common point")
        # By duality the rows, weighted, contradict one another by −⟨weights, b⟩. Their own size is the measure, so that
        # rows far away do not hide it.
        least = -float(solution.weights @ self._right)
        if least > 1e-9 * float(solution.weights @ np.abs(self._right)):
            raise EmptySet(f"Polyhedron: the rows have no common point: the least possible violation is {least:.6g}")
        return solution.x[:-1]

    def project_unchecked(self, point: Array) -> Array:
        from cocopt.solvers.polyhedral import project_polyhedral

        nearest = point.copy()
        for _ in range(2):  # from far away the first solution rounds coarsely; the second mends it
            slack = rounding(self.dim, 1.0) * np.maximum(np.abs(nearest).max(axis=-1), self.scale)
            outside = self.violation_unchecked(nearest) > slack
            if outside.any():
                nearest[outside] = project_polyhedral(self.polyhedral(), nearest[outside])
        return nearest

    def violation_unchecked(self, point: Array) -> Array:
        worst: Array = (point @ self._rows.T - self._right).max(axis=-1, initial=0.0)
        return worst

    @cached_property
    def diameter(self) -> float:
        """An upper bound of max ‖x − y‖: the diagonal of the bounding box; ``inf`` if unbounded."""
        width = np.zeros(self.dim)
        for i, unit in enumerate(np.eye(self.dim)):
            for direction in (unit, -unit):
                solution = self._minimise(direction, self._rows, [(None, None)] * self.dim)
                if solution is None:  # K is not empty, so it has no bound this way
                    return float("inf")
                width[i] -= direction @ solution.x
        return float(np.linalg.norm(np.maximum(width, 0.0)))

    @cached_property
    def scale(self) -> float:
        sizes = np.abs(self._right[self._right != 0])
        return float(np.median(sizes)) if sizes.size else 1.0

    def polyhedral(self) -> Polyhedral:
        free = np.full(self.dim, np.inf)
        return Polyhedral(-free, free, self._rows, self._right)

    def parameters(self) -> dict[str, Any]:
        return {"A": self.A, "b": self.b}

    def _minimise(self, cost: Array, rows: Array, bounds: list[tuple[float | None, float | None]]) -> _Solution | None:
        """min ⟨cost, x⟩ over rows·x ≤ b and the bounds (0 or none), or None if HiGHS finds no minimum."""
        from scipy.optimize import linprog

        # HiGHS has absolute tolerances: the smallest right-hand side that matters becomes the unit.
        sizes = np.abs(self._right)
        unit = float(sizes.min(initial=np.inf, where=sizes > 1e-12 * sizes.max(initial=0.0)))
        unit = unit if np.isfinite(unit) else 1.0
        result = linprog(
            cost,
            A_ub=rows,
            b_ub=self._right / unit,
            bounds=bounds,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status != 0:
            return None
        return _Solution(unit * np.asarray(result.x), np.maximum(-np.asarray(result.ineqlin.marginals), 0.0))

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls([[1.0, 0.0], [-1.0, 0.3], [0.0, -1.0]], [1.0, 0.1, 0.5])]
