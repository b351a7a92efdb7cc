"""The linear systems of Newton's method on the active surfaces of a cone program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.kernels.cone_kinds import CURVED, SECOND_ORDER
from cocopt.solvers.layout import layout
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
        multipliers[self.multiplied] = z[layout(cones.cones).heads[self.multiplied]]
        x = x.copy()
        x[self.fixed] = cones.b[self.bounds] / matrix.values[matrix.starts[self.bounds]]
        return x, multipliers


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
    first = np.flatnonzero(active == CURVED)
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
    matrix, (kinds, ends, _, _) = cones.matrix, layout(cones.cones)
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
    for first, end in _curved(cones, active) if matrix.width > WIDE else ():
        if kinds[first] == SECOND_ORDER and _is_wide(matrix, first, end):
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
    """By a sparse LU factorisation, in the order of the numbers of entries: dense rows and columns come last.

    A curved cone contributes matrices of rank one to the Hessian, which would be dense: with one more unknown
    ω = ⟨v, d⟩ for each c·v vᵀ d they are a row and a column instead.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    matrix, kinds, n = cones.matrix, layout(cones.cones).kinds, unknowns.free.size
    entries = _Entries(unknowns, P)
    for first, end in _curved(cones, active):
        curvature = _second_order if kinds[first] == SECOND_ORDER else _exponential
        curvature(entries, matrix, first, end, slack, float(multipliers[first]))
    of_rows = matrix.of_entries()
    linear = np.flatnonzero((unknowns.of_row[of_rows] >= 0) & (active[of_rows] != CURVED))
    entries.add_pairs(unknowns.of_row[of_rows[linear]], matrix.columns[linear], matrix.values[linear])
    rows, columns, values, size = entries.collect()
    order = np.argsort(np.bincount(columns, minlength=size), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(size)
    try:
        lu = splu(sparse.csc_array((values, (place[rows], place[columns])), shape=(size, size)), permc_spec="NATURAL")
    except RuntimeError:  # singular
        return _dense(_dense_matrix(P, cones, active, slack, multipliers, unknowns), n)

    def solve(rhs: Array) -> Array:
        whole = np.zeros(size)
        whole[place[: rhs.size]] = rhs
        solution: Array = lu.solve(whole)[place[: rhs.size]]
        return solution

    return NewtonSystem(solve, True, None, n)


class _Entries:
    """The entries of a symmetric sparse matrix, as they come."""

    def __init__(self, unknowns: Unknowns, diagonal: Array) -> None:
        self.unknowns = unknowns
        self.size = unknowns.count
        self.diagonal = diagonal.copy()
        self.rows: list[Integers] = []
        self.columns: list[Integers] = []
        self.values: list[Array] = []

    def add(self, rows: Integers, columns: Integers, values: Array) -> None:
        """Entries by numbers of unknowns."""
        self.rows.append(rows)
        self.columns.append(columns)
        self.values.append(values)

    def add_pairs(self, rows: Integers, variables: Integers, values: Array) -> None:
        """Entries in these rows for these variables, as far as they are unknown, and their mirror images."""
        at = self.unknowns.of_variable[variables]
        kept = (at >= 0) & (values != 0.0)
        self.add(rows[kept], at[kept], values[kept])
        self.add(at[kept], rows[kept], values[kept])

    def add_vector(self, row: int, vector: Array) -> None:
        """A row, one entry per variable, and its mirror image."""
        variables = np.flatnonzero(vector)
        self.add_pairs(np.full(variables.size, row), variables, vector[variables])

    def add_rank_one(self, weight: float, vector: Array) -> None:
        """weight·vector vectorᵀ, by one more unknown."""
        self.add_vector(self.size, weight * vector)
        self.add(np.array([self.size]), np.array([self.size]), np.array([-weight]))
        self.size += 1

    def add_gram(self, part: SparseMatrix, weight: float, wide: bool) -> None:
        """weight·RᵀR, R these rows."""
        if part.values.size == part.rows or (np.diff(part.starts) <= 1).all():
            self.diagonal += weight * np.bincount(part.columns, part.values**2, minlength=part.width)
            return
        gram = _gram(part, wide)
        at = self.unknowns.of_variable
        rows, columns = at[gram.row], at[gram.col]
        kept = (rows >= 0) & (columns >= 0)
        self.add(rows[kept], columns[kept], weight * gram.data[kept])

    def collect(self) -> tuple[Integers, Integers, Array, int]:
        """Rows, columns and values of all entries, and the size of the matrix."""
        free = np.arange(self.unknowns.free.size)
        self.add(free, free, self.diagonal[self.unknowns.free])
        return np.concatenate(self.rows), np.concatenate(self.columns), np.concatenate(self.values), self.size


def _second_order(
    entries: _Entries, matrix: SparseMatrix, first: int, end: int, slack: Array, multiplier: float
) -> None:
    """The surface ‖s_tail‖ = s_head."""
    part, tail = matrix.part(first + 1, end), slack[first + 1 : end]
    length = float(np.linalg.norm(tail))
    along = np.bincount(part.columns, part.values * (tail / length)[part.of_entries()], minlength=part.width)
    entries.add_gram(part, multiplier / length, _is_wide(matrix, first, end))
    entries.add_rank_one(-multiplier / length, along)
    entries.add_vector(int(entries.unknowns.of_row[first]), matrix.part(first, first + 1).dense()[0] - along)


def _exponential(
    entries: _Entries, matrix: SparseMatrix, first: int, end: int, slack: Array, multiplier: float
) -> None:
    """The surface s_2 exp(s_1/s_2) = s_3."""
    rows, ratio = matrix.part(first, end).dense(), float(slack[first] / slack[first + 1])
    value = float(np.exp(ratio))
    entries.add_rank_one(multiplier * value / float(slack[first + 1]), rows[0] - ratio * rows[1])
    entries.add_vector(
        int(entries.unknowns.of_row[first]), -value * rows[0] + value * (ratio - 1.0) * rows[1] + rows[2]
    )


def _gram(part: SparseMatrix, wide: bool) -> Any:
    """RᵀR by its entries."""
    from scipy import sparse

    if wide:
        dense = part.dense()
        return sparse.coo_array(dense.T @ dense)
    rows = sparse.csr_array((part.values, part.columns, part.starts), shape=(part.rows, part.width))
    return (rows.T @ rows).tocoo()
