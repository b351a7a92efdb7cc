"""Newton's method on the surfaces of cones: the optimality conditions and their derivative.

See `cocopt.kernels.cone_rows` for how cones are given.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.cone_kinds import CURVED, SECOND_ORDER
from cocopt.kernels.vectors import norm

__all__ = ["newton_matrix", "newton_residuals"]


@njit
def _second_order_duals(slack, first, end, z):
    """The duals of the cone that begins at row first, where z has its multiplier; how far the slack is beyond it."""
    length = norm(slack[first + 1 : end])
    for r in range(first + 1, end):
        z[r] = -z[first] * slack[r] / length
    return length - slack[first] if length > 0.0 else np.nan


@njit
def _exponential_duals(slack, first, z):
    """The duals of the cone that begins at row first, where z has its multiplier; how far the slack is beyond it."""
    ratio = slack[first] / slack[first + 1] if slack[first + 1] > 0.0 else np.nan
    value, multiplier = np.exp(ratio), z[first]
    z[first], z[first + 1], z[first + 2] = -value * multiplier, value * (ratio - 1.0) * multiplier, multiplier
    return slack[first + 1] * value - slack[first + 2]


@njit
def _largest(vector):
    """The largest size of an entry, NaN if one is NaN."""
    largest = 0.0
    for j in range(vector.size):
        if not abs(vector[j]) <= largest:
            largest = abs(vector[j])
            if largest != largest:
                break
    return largest


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], "
        "int64[::1], int64[::1], int64[::1], float64[::1], float64[::1], "
        "float64[::1], float64[::1], float64[::1], float64[::1], float64[::1]"
    ],
    "(w),(w),(z),(z),(s),(m),(m),(m),(m),(w),(m),(w),(m),(m),(w),(m),(n)->()",
)
def newton_residuals(
    P,
    q,
    values,
    columns,
    starts,
    b,
    kinds,
    ends,
    active,
    of_variable,
    of_row,
    x,
    multipliers,
    z,
    gradient,
    slack,
    residual,
    largest,
):
    """The optimality conditions at x with these multipliers of the active surfaces: writes the last five arguments.

    ``z`` are the multipliers of all rows, ``gradient`` is that of the Lagrangian. The residuals of the unknowns are the
    gradient, and how far x is beyond each active surface. ``largest`` is their largest size, NaN where a surface is not
    smooth.
    """
    m = b.size
    for c in range(x.size):
        gradient[c] = P[c] * x[c] + q[c]
    i = 0
    while i < m:
        end = ends[i]
        for r in range(i, end):
            slack[r] = b[r]
            for k in range(starts[r], starts[r + 1]):
                slack[r] -= values[k] * x[columns[k]]
            z[r] = multipliers[r]
        if active[i] == CURVED and kinds[i] == SECOND_ORDER:
            beyond = _second_order_duals(slack, i, end, z)
        elif active[i] == CURVED:
            beyond = _exponential_duals(slack, i, z)
        else:
            beyond = -slack[i]
        for r in range(i, end):
            if of_row[r] >= 0:
                residual[of_row[r]] = beyond if r == i else -slack[r]
            if z[r] != 0.0:
                for k in range(starts[r], starts[r + 1]):
                    gradient[columns[k]] += values[k] * z[r]
        i = end
    for c in range(x.size):
        if of_variable[c] >= 0:
            residual[of_variable[c]] = gradient[c]
    largest[0] = _largest(residual)


@njit
def _add_row(vector, rows, r, weight):
    """Adds weight times row r."""
    values, columns, starts = rows
    for k in range(starts[r], starts[r + 1]):
        vector[columns[k]] += weight * values[k]


@njit
def _add_outer(matrix, of_variable, vector, weight):
    """Adds weight·vector vectorᵀ, entries of fixed variables apart."""
    for c in range(vector.size):
        if of_variable[c] >= 0 and vector[c] != 0.0:
            scaled, at = weight * vector[c], of_variable[c]
            for d in range(vector.size):
                if of_variable[d] >= 0:
                    matrix[at, of_variable[d]] += scaled * vector[d]


@njit
def _add_gram(matrix, of_variable, rows, first, end, weight):
    """Adds weight·RᵀR, R the rows from first to end."""
    values, columns, starts = rows
    for r in range(first, end):
        for k in range(starts[r], starts[r + 1]):
            at = of_variable[columns[k]]
            if at >= 0:
                scaled = weight * values[k]
                for other in range(starts[r], starts[r + 1]):
                    if of_variable[columns[other]] >= 0:
                        matrix[at, of_variable[columns[other]]] += scaled * values[other]


@guvectorize(
    [
        "float64[::1], float64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], "
        "float64[::1], float64[::1], int64[::1], int64[::1], int64, float64[::1], float64[:,::1]"
    ],
    "(w),(z),(z),(s),(m),(m),(m),(m),(m),(w),(m),(),(w),(n,n)",
)
def newton_matrix(
    P, values, columns, starts, kinds, ends, active, slack, multipliers, of_variable, of_row, widest, normal, matrix
):
    """The derivative of `newton_residuals` with respect to the unknowns: writes ``matrix``; ``normal`` is workspace.

    RᵀR of cones whose rows have more than ``widest`` variables is left to the caller.
    """
    rows = values, columns, starts
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[0]):
            matrix[i, j] = 0.0
    for c in range(P.size):
        if of_variable[c] >= 0:
            matrix[of_variable[c], of_variable[c]] = P[c]
    for i in range(kinds.size):
        at = of_row[i]
        if at < 0:
            continue
        end = ends[i]
        for c in range(normal.size):
            normal[c] = 0.0
        if active[i] != CURVED:
            _add_row(normal, rows, i, 1.0)
        elif kinds[i] == SECOND_ORDER:
            length = norm(slack[i + 1 : end])
            for r in range(i + 1, end):
                _add_row(normal, rows, r, -slack[r] / length)
            weight = multipliers[i] / length
            _add_outer(matrix, of_variable, normal, -weight)
            if starts[end] - starts[i + 1] <= widest * (end - i - 1):
                _add_gram(matrix, of_variable, rows, i + 1, end, weight)
            _add_row(normal, rows, i, 1.0)
        else:
            ratio = slack[i] / slack[i + 1]
            value = np.exp(ratio)
            _add_row(normal, rows, i, 1.0)
            _add_row(normal, rows, i + 1, -ratio)
            _add_outer(matrix, of_variable, normal, multipliers[i] * value / slack[i + 1])
            for c in range(normal.size):  # in all: −value (row 1) + value (ratio − 1) (row 2) + (row 3)
                normal[c] *= -value
            _add_row(normal, rows, i + 1, -value)
            _add_row(normal, rows, i + 2, 1.0)
        for c in range(normal.size):
            if of_variable[c] >= 0:
                matrix[at, of_variable[c]] = matrix[of_variable[c], at] = normal[c]
