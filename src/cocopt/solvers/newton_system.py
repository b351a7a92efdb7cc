"""The linear systems of Newton's method on the active surfaces of a cone program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.cones import Cones, layout
from cocopt.solvers import _conic_kernels as kernels
from cocopt.sparse import SparseMatrix

__all__ = ["NewtonSystem", "Unknowns"]

Integers = NDArray[np.int64]

DENSE_SIZE = 200  # larger systems are sparse, unless they have too many entries
DENSE_SHARE = 0.2  # of entries that are not 0, from which on a matrix counts as dense
WIDE = 12  # a cone whose rows have more variables contributes a dense matrix, by one product
SINGULAR = 1e-13  # the reciprocal condition number below which a system counts as singular
LEAST_SQUARES_SIZE = 400  # larger singular systems are solved as if they were regular: least squares take too long
BALANCING_PASSES = 4  # passes that bring all entries of a system to order 1


class Unknowns(NamedTuple):
    """The unknowns of Newton's method: variables that no active bound fixes, then multipliers of active surfaces."""

    of_variable: Integers  #: the number of each variable, negative where it is fixed
    of_row: Integers  #: the number of each surface's multiplier, by its first row; −1 for other rows
    free: Integers  #: the variables that are unknown
    multiplied: Integers  #: the first rows of the surfaces
    fixed: Integers  #: the variables that bounds fix,
    bounds: Integers  #: and the rows of these bounds

    @classmethod
    def of(cls, matrix: SparseMatrix, active: Integers, z: Array) -> Unknowns:
        """The unknowns for these active surfaces; of several bounds on a variable that with the largest multiplier."""
        of_variable, of_row = np.empty(matrix.width, dtype=np.int64), np.empty(active.size, dtype=np.int64)
        kernels.number_unknowns(matrix.columns, matrix.starts, active, z, of_variable, of_row)
        fixed = np.flatnonzero(of_variable < 0)
        free, multiplied = np.flatnonzero(of_variable >= 0), np.flatnonzero(of_row >= 0)
        return cls(of_variable, of_row, free, multiplied, fixed, -1 - of_variable[fixed])

    @property
    def count(self) -> int:
        """How many there are."""
        return self.free.size + self.multiplied.size

    def start(self, cones: Cones, x: Array, z: Array) -> tuple[Array, Array]:
        """x with the fixed variables at their bounds, and the multipliers of the surfaces."""
        matrix, multipliers = cones.matrix, np.zeros_like(z)
        multipliers[self.multiplied] = z[cones_heads(cones)[self.multiplied]]
        x = x.copy()
        x[self.fixed] = cones.b[self.bounds] / matrix.values[matrix.starts[self.bounds]]
        return x, multipliers


def cones_heads(cones: Cones) -> Integers:
    """The row whose dual is the multiplier of the surface that begins at row i: of exponential cones the last."""
    kinds, ends, _ = layout(cones.cones)
    return np.where(kinds == kernels.EXP, ends - 1, np.arange(kinds.size))


class NewtonSystem(NamedTuple):
    """A factorised matrix."""

    solve: Callable[[Array], Array]
    regular: bool  #: whether a solution satisfies all equations
    matrix: Array | None  #: where it is dense
    variables: int

    @classmethod
    def of(
        cls, P: Array, cones: Cones, active: Integers, slack: Array, multipliers: Array, unknowns: Unknowns
    ) -> NewtonSystem:
        """The derivative of the optimality conditions at a point with these slacks and multipliers."""
        if unknowns.count > DENSE_SIZE and _entries(cones, active, unknowns) < DENSE_SHARE * unknowns.count**2:
            return _sparse(P, cones, active, slack, multipliers, unknowns)
        return _dense(_dense_matrix(P, cones, active, slack, multipliers, unknowns), unknowns.free.size)

    def apart(self, step: Array, residual: Array) -> float:
        """How far apart surfaces that do not meet are after a step."""
        if self.regular or self.matrix is None:
            return 0.0
        n = self.variables
        return float(np.abs(np.matvec(self.matrix[n:, :n], step[:n]) + residual[n:]).max(initial=0.0))


def _curved(cones: Cones, active: Integers) -> list[tuple[int, int]]:
    """The first row of each active curved cone, and the row behind it."""
    first = np.flatnonzero(active == kernels.CURVED)
    return list(zip(first.tolist(), layout(cones.cones).ends[first].tolist(), strict=True))


def _is_wide(matrix: SparseMatrix, first: int, end: int) -> bool:
    return bool(matrix.starts[end] - matrix.starts[first + 1] > WIDE * (end - first - 1))


def _entries(cones: Cones, active: Integers, unknowns: Unknowns) -> int:
    """About how many entries the matrix has that are not 0."""
    matrix, n = cones.matrix, unknowns.free.size
    lengths = np.diff(matrix.starts)
    entries = n + 2 * int(lengths[unknowns.multiplied].sum())
    for first, end in _curved(cones, active):
        tail = lengths[first + 1 : end]
        entries += 4 * n + min(n * n, int((tail * tail).sum()))
    return entries


def _dense_matrix(
    P: Array, cones: Cones, active: Integers, slack: Array, multipliers: Array, unknowns: Unknowns
) -> Array:
    matrix, (kinds, ends, _) = cones.matrix, layout(cones.cones)
    system = np.empty((unknowns.count, unknowns.count))
    kernels.newton_matrix(
        P,
        matrix.values,
        matrix.columns,
        matrix.starts,
        kinds,
        ends,
        active,
        slack,
        multipliers,
        unknowns.of_variable,
        unknowns.of_row,
        WIDE,
        np.empty(matrix.width),
        system,
    )
    n = unknowns.free.size
    for first, end in _curved(cones, active):
        if kinds[first] == kernels.SOC and _is_wide(matrix, first, end):
            rows = matrix.part(first + 1, end).dense()[:, unknowns.free]
            system[:n, :n] += multipliers[first] / np.linalg.norm(slack[first + 1 : end]) * (rows.T @ rows)
    return system


def _dense(matrix: Array, variables: int) -> NewtonSystem:
    """By an LU factorisation; by least squares if active surfaces depend on each other."""
    from scipy.linalg import lapack

    if len(matrix) == 0:
        return NewtonSystem(lambda rhs: rhs, True, None, variables)
    lu, pivots, info = lapack.dgetrf(matrix.T)
    regular = info == 0
    if regular:
        condition, _ = lapack.dgecon(lu, float(np.abs(matrix).sum(axis=1).max()))
        regular = condition > SINGULAR or (len(matrix) > LEAST_SQUARES_SIZE and condition > 0.0)
    if regular:
        return NewtonSystem(lambda rhs: lapack.dgetrs(lu, pivots, rhs)[0], True, None, variables)
    return NewtonSystem(lambda rhs: _solve_least_squares(matrix, rhs), False, matrix, variables)


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


def _sparse(
    P: Array, cones: Cones, active: Integers, slack: Array, multipliers: Array, unknowns: Unknowns
) -> NewtonSystem:
    """By a sparse LU factorisation.

    A curved cone contributes matrices of rank one to the Hessian, which would be dense: with one more unknown ω = ⟨v, d⟩
    for each c·v vᵀ d they are rows and columns instead.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    matrix, (kinds, _, _) = cones.matrix, layout(cones.cones)
    A = sparse.csr_array((matrix.values, matrix.columns, matrix.starts), shape=(matrix.rows, matrix.width))
    hessian: Any = sparse.diags_array(P, format="csr")
    normals: dict[int, Array] = {}
    ones: list[tuple[float, Array]] = []  # weights and vectors of matrices of rank one
    for first, end in _curved(cones, active):
        if kinds[first] == kernels.SOC:
            rows, tail = A[first + 1 : end], slack[first + 1 : end]
            length = float(np.linalg.norm(tail))
            weight, along = multipliers[first] / length, rows.T @ (tail / length)
            hessian = hessian + weight * _gram(rows, _is_wide(matrix, first, end))
            ones.append((-weight, along))
            normals[first] = A[[first]].toarray()[0] - along
        else:
            rows = A[first:end].toarray()
            ratio = slack[first] / slack[first + 1]
            value = float(np.exp(ratio))
            ones.append((multipliers[first] * value / slack[first + 1], rows[0] - ratio * rows[1]))
            normals[first] = -value * rows[0] + value * (ratio - 1.0) * rows[1] + rows[2]
    surfaces = sparse.vstack(
        [sparse.csr_array(normals[i][None]) if i in normals else A[[i]] for i in unknowns.multiplied.tolist()]
        if normals
        else [A[unknowns.multiplied]],
        format="csr",
    )
    free, k = unknowns.free, unknowns.multiplied.size
    hessian = hessian[free][:, free]
    normal_rows = surfaces[:, free]
    weights = np.array([weight for weight, _ in ones])
    columns = sparse.csr_array(np.array([weight * vector[free] for weight, vector in ones]).reshape(-1, free.size))
    system = sparse.block_array(
        [
            [hessian, normal_rows.T, columns.T],
            [normal_rows, None, None],
            [columns, None, -sparse.diags_array(weights)],
        ],
        format="csc",
    ) if ones else sparse.block_array([[hessian, normal_rows.T], [normal_rows, None]], format="csc")
    size = free.size + k
    extra = np.zeros(len(ones))
    try:
        lu = splu(system)
    except RuntimeError:  # singular
        dense = _dense_matrix(P, cones, active, slack, multipliers, unknowns)
        return _dense(dense, free.size)
    return NewtonSystem(lambda rhs: lu.solve(np.concatenate([rhs, extra]))[:size], True, None, free.size)


def _gram(rows: Any, wide: bool) -> Any:
    """RᵀR."""
    from scipy import sparse

    if not wide:
        return rows.T @ rows
    dense = rows.toarray()
    return sparse.csr_array(dense.T @ dense)
