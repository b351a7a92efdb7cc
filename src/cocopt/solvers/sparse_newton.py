"""Large systems of Newton's method on the active surfaces of a cone program, which are sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels.cone_kinds import CURVED, SECOND_ORDER
from cocopt.solvers.entries import Entries
from cocopt.solvers.layout import layout
from cocopt.solvers.newton_point import NewtonPoint

__all__ = ["factorise", "factorise_sparse"]


def factorise_sparse(point: NewtonPoint) -> Callable[[Array], Array] | None:
    """The solutions by a sparse LU factorisation; None if the matrix is singular.

    Unknowns are eliminated in the order of the numbers of their entries: dense rows and columns come last.
    """
    from scipy import sparse

    entries = _entries(point)
    (rows, columns, values), size = entries.collect(), entries.size
    order = np.argsort(np.bincount(columns, minlength=size), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(size)
    matrix = sparse.csc_array((values, (place[rows], place[columns])), shape=(size, size))
    lu = factorise(matrix)
    if lu is None:
        return None
    place = place[: point.unknowns.size]

    def solve(rhs: Array) -> Array:
        whole = np.zeros(size)
        whole[place] = rhs
        solution: Array = lu.solve(whole)[place]
        return solution

    return solve


def factorise(matrix: Any) -> Any | None:
    """SuperLU's factors of a sparse matrix in its own order; None if it is singular.

    SuperLU would write beyond its memory where the places of the entries alone make it singular: that is asked first.
    """
    from scipy.sparse.csgraph import structural_rank
    from scipy.sparse.linalg import splu

    matrix.eliminate_zeros()
    if structural_rank(matrix) < matrix.shape[0]:
        return None
    try:
        return splu(matrix, permc_spec="NATURAL")
    except RuntimeError:
        return None


def _entries(point: NewtonPoint) -> Entries:
    """The derivative of the optimality conditions."""
    matrix, kinds, of_row = point.cones.matrix, layout(point.cones.cones).kinds, point.unknowns.of_row
    entries = Entries(point.unknowns, point.P)
    for first, end in point.curved():
        if kinds[first] == SECOND_ORDER:
            _add_second_order(entries, point, first, end)
        else:
            _add_exponential(entries, point, first)
    of_rows = matrix.of_entries()
    linear = np.flatnonzero((of_row[of_rows] >= 0) & (point.active[of_rows] != CURVED))
    entries.add_pairs(of_row[of_rows[linear]], matrix.columns[linear], matrix.values[linear])
    return entries


def _add_second_order(entries: Entries, point: NewtonPoint, first: int, end: int) -> None:
    """The surface ‖s_tail‖ = s_head."""
    matrix, tail = point.cones.matrix, point.slack[first + 1 : end]
    part, length = matrix.part(first + 1, end), float(np.linalg.norm(tail))
    weight = float(point.multipliers[first]) / length
    pulls = part.values * (tail / length)[part.of_entries()]
    along = np.asarray(np.bincount(part.columns, pulls, minlength=part.width), dtype=np.float64)
    entries.add_gram(part, weight, point.is_wide(first, end))
    entries.add_rank_one(-weight, along)
    entries.add_vector(int(point.unknowns.of_row[first]), matrix.part(first, first + 1).dense()[0] - along)


def _add_exponential(entries: Entries, point: NewtonPoint, first: int) -> None:
    """The surface s_2 exp(s_1/s_2) = s_3."""
    rows, multiplier = point.cones.matrix.part(first, first + 3).dense(), float(point.multipliers[first])
    scale = float(point.slack[first + 1])
    ratio = float(point.slack[first]) / scale
    value = float(np.exp(ratio))
    entries.add_rank_one(multiplier * value / scale, rows[0] - ratio * rows[1])
    normal = value * ((ratio - 1.0) * rows[1] - rows[0]) + rows[2]
    entries.add_vector(int(point.unknowns.of_row[first]), normal)
