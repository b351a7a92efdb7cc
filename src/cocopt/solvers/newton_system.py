"""The linear systems of Newton's method on the active surfaces of a cone program."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.kernels.cone_kinds import SECOND_ORDER
from cocopt.solvers.layout import layout
from cocopt.solvers.newton_point import WIDE, NewtonPoint
from cocopt.solvers.sparse_newton import factorise_sparse
from cocopt.threads import matvec

__all__ = ["NewtonSystem"]

DENSE_SIZE = 200  # larger systems are sparse, unless they have too many entries
DENSE_SHARE = 0.4  # of entries that are not 0, from which on a matrix counts as dense
SINGULAR = 1e-13  # the reciprocal condition number below which a system counts as singular
LEAST_SQUARES_SIZE = 400  # larger singular systems are solved as if they were regular: least squares take too long
BALANCING_PASSES = 4  # passes that bring all entries of a system to order 1


class NewtonSystem(NamedTuple):
    """The derivative of the optimality conditions with respect to the unknowns, factorised."""

    solve: Callable[[Array], Array]
    variables: int  #: how many of the unknowns are variables
    singular: Array | None = None  #: the matrix, if no solution may satisfy all equations

    @classmethod
    def at(cls, point: NewtonPoint) -> NewtonSystem:
        """The derivative at a point."""
        size, variables = point.unknowns.size, point.unknowns.free.size
        if size == 0:
            return cls(lambda rhs: rhs, variables)
        if size > DENSE_SIZE and _entries(point) < DENSE_SHARE * size**2:
            solve = factorise_sparse(point)
            if solve is not None:
                return cls(solve, variables)
        matrix = _dense_matrix(point)
        solve = _factorise(matrix)
        if solve is not None:
            return cls(solve, variables)
        return cls(lambda rhs: _solve_least_squares(matrix, rhs), variables, matrix)

    def apart(self, step: Array, residual: Array) -> float:
        """How far apart surfaces that do not meet are after a step."""
        if self.singular is None:
            return 0.0
        n = self.variables
        return float(np.abs(matvec(self.singular[n:, :n], step[:n]) + residual[n:]).max(initial=0.0))


def _entries(point: NewtonPoint) -> int:
    """About how many entries the matrix has that are not 0."""
    n, lengths = point.unknowns.free.size, np.diff(point.cones.matrix.starts)
    entries = n + 2 * int(lengths[point.unknowns.multiplied].sum())
    for first, end in point.curved():
        tail = lengths[first + 1 : end]
        entries += 4 * n + min(n * n, int((tail * tail).sum()))
    return entries


def _dense_matrix(point: NewtonPoint) -> Array:
    matrix, unknowns, (kinds, ends, _, _) = point.cones.matrix, point.unknowns, layout(point.cones.cones)
    system = np.empty((unknowns.size, unknowns.size))
    kernels.newton_matrix(
        *(point.P, matrix.values, matrix.columns, matrix.starts, kinds, ends, point.active, point.slack),
        *(point.multipliers, unknowns.of_variable, unknowns.of_row, WIDE, np.empty(matrix.width), system),
    )
    n = unknowns.free.size
    for first, end in point.curved() if matrix.width > WIDE else ():
        if kinds[first] == SECOND_ORDER and point.is_wide(first, end):
            rows = matrix.part(first + 1, end).dense()[:, unknowns.free]
            weight = point.multipliers[first] / np.linalg.norm(point.slack[first + 1 : end])
            system[:n, :n] += weight * (rows.T @ rows)
    return system


def _factorise(matrix: Array) -> Callable[[Array], Array] | None:
    """The solutions by an LU factorisation; None if the matrix is singular."""
    from scipy.linalg import lapack

    lu, pivots, info = lapack.dgetrf(matrix.T)  # it is symmetric, and LAPACK wants columns
    if info != 0:
        return None
    condition, _ = lapack.dgecon(lu, float(np.abs(matrix).sum(axis=1).max()))
    if condition <= (SINGULAR if len(matrix) <= LEAST_SQUARES_SIZE else 0.0):
        return None

    def solve(rhs: Array) -> Array:
        solution: Array = lapack.dgetrs(lu, pivots, rhs)[0]
        return solution

    return solve


def _solve_least_squares(system: Array, rhs: Array) -> Array:
    """A solution, of least length if active surfaces depend on each other (then the system is singular)."""
    from scipy import linalg

    # in units in which all rows and columns have entries of order 1 (Ruiz 2001): what is small need not be rounding
    units = np.ones(len(system))
    for _ in range(BALANCING_PASSES):
        largest = np.abs(system * units[:, None] * units).max(axis=0)
        units /= np.sqrt(np.where(largest > 0, largest, 1.0))
    balanced = system * units[:, None] * units
    step = linalg.lstsq(balanced, rhs * units, cond=1e-13, lapack_driver="gelsy", check_finite=False)[0]
    return np.asarray(step * units, dtype=np.float64)
