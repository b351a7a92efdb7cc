"""Cone programs: their rows in numbers of order 1, by columns, and their optimality conditions.

Cones are given by their rows b − A x, A sparse, row by row. ``kinds[i]`` is what the cone that begins at row i is, and
``ends[i]`` the row behind it (`cocopt.solvers.layout`); a row of a linear cone is a cone of its own.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.cone_kinds import NONNEGATIVE, SECOND_ORDER, ZERO

__all__ = ["cone_residuals", "scale_rows", "transpose"]


@guvectorize(
    ["float64[::1], int64[::1], int64[::1], int64[::1], float64[::1], int64[::1]"],
    "(z),(z),(s),(c),(z),(z)",
)
def transpose(values, columns, starts, column_starts, new_values, rows):
    """The matrix column by column: writes the last three arguments."""
    for c in range(column_starts.size):
        column_starts[c] = 0
    for k in range(columns.size):
        column_starts[columns[k] + 1] += 1
    for c in range(1, column_starts.size):
        column_starts[c] += column_starts[c - 1]
    for i in range(starts.size - 1):
        for k in range(starts[i], starts[i + 1]):
            at = column_starts[columns[k]]
            new_values[at], rows[at] = values[k], i
            column_starts[columns[k]] = at + 1
    for c in range(column_starts.size - 1, 0, -1):
        column_starts[c] = column_starts[c - 1]
    column_starts[0] = 0


@njit
def _connect_units(values, columns, starts, ends, row_units, column_units):
    """Units of variables that have none yet, from others in the same cone without x; whether there were such.

    Thus they are in units of x, whatever the units of the rows; rows that only bound a variable say nothing of it.
    """
    found, i = False, 0
    while i < row_units.size:
        end = ends[i]
        if row_units[i] == 0.0:
            known, unknown = 0.0, False
            for k in range(starts[i], starts[end]):
                unit = column_units[columns[k]]
                known = max(known, abs(values[k]) / unit) if unit > 0.0 else known
                unknown |= unit == 0.0 and values[k] != 0.0
            if unknown and known > 0.0:
                found = True
                for k in range(starts[i], starts[end]):
                    if column_units[columns[k]] == 0.0:
                        column_units[columns[k]] = max(abs(values[k]) / known, 1e-300 if values[k] != 0.0 else 0.0)
        i = end
    return found


@njit
def _find_units(values, columns, starts, ends, n, row_units, column_units):
    """The units of cones with x, 0 for the others, and of all variables."""
    for c in range(column_units.size):
        column_units[c] = 1.0 if c < n else 0.0
    i = 0
    while i < row_units.size:
        end = ends[i]
        largest = 0.0
        for k in range(starts[i], starts[end]):
            if columns[k] < n:
                largest = max(largest, abs(values[k]))
        for r in range(i, end):
            row_units[r] = largest
        if largest > 0.0:
            for k in range(starts[i], starts[end]):
                if columns[k] >= n:
                    column_units[columns[k]] = max(column_units[columns[k]], abs(values[k]) / largest)
        i = end
    while _connect_units(values, columns, starts, ends, row_units, column_units):
        pass
    for k in range(columns.size):  # of variables that nothing connects with the first n
        if column_units[columns[k]] == 0.0:
            column_units[columns[k]] = abs(values[k])
    for c in range(n, column_units.size):
        if column_units[c] == 0.0:
            column_units[c] = 1.0


@guvectorize(
    [
        "float64[::1], int64[::1], int64[::1], float64[::1], int64[::1], float64[::1], int64, float64, "
        "float64[::1], float64[::1], float64[::1], float64[::1]"
    ],
    "(z),(z),(s),(m),(m),(w),(),(),(z),(m),(m),(w)",
)
def scale_rows(values, columns, starts, b, ends, x, n, length, new_values, new_b, row_units, column_units):
    """(b − A x)/length and A in numbers of order 1: writes the last four arguments.

    Each cone is divided by its largest coefficient of the first n variables, each other variable gets a unit of its
    own, and cones without the first n variables are divided by their largest coefficient.
    """
    m = b.size
    _find_units(values, columns, starts, ends, n, row_units, column_units)
    i = 0
    while i < m:
        end = ends[i]
        unit = row_units[i]
        if unit == 0.0:
            for k in range(starts[i], starts[end]):
                unit = max(unit, abs(values[k]) / column_units[columns[k]])
            for r in range(i, end if unit == 0.0 else i):  # without coefficients only the sign of b counts
                unit = max(unit, abs(b[r]) / length) if abs(b[r]) < np.inf else unit
            if unit == 0.0:
                unit = 1.0
        for r in range(i, end):
            total = b[r]
            for k in range(starts[r], starts[r + 1]):
                total -= values[k] * x[columns[k]]
            for k in range(starts[r], starts[r + 1]):
                new_values[k] = values[k] / (unit * column_units[columns[k]])
            new_b[r] = total / (length * unit)
            row_units[r] = unit
        i = end


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], "
        "float64[::1], float64[::1], float64[::1], float64[::1]"
    ],
    "(w),(w),(z),(z),(s),(m),(m),(m),(w),(m),(w),(r)",
)
def cone_residuals(P, q, values, columns, starts, b, kinds, ends, x, z, gradient, residuals):
    """How far (x, z) is from the optimality conditions: writes the last two arguments.

    The gradient of the Lagrangian; and, as residuals, its largest entry in units of max(q, 1), how far z is outside
    the dual cones, ⟨b − A x, z⟩, and how far b − A x is outside the cones. For cones that
    are neither linear nor of second order the solver's iterates are inside.
    """
    for c in range(x.size):
        gradient[c] = P[c] * x[c] + q[c]
    gap, outside, dual_outside = 0.0, 0.0, 0.0
    i = 0
    while i < b.size:
        end, kind = ends[i], kinds[i]
        s_head, s_tail, z_tail = 0.0, 0.0, 0.0
        for r in range(i, end):
            slack = b[r]
            for k in range(starts[r], starts[r + 1]):
                slack -= values[k] * x[columns[k]]
                gradient[columns[k]] += values[k] * z[r]
            gap += slack * z[r]
            if r == i:
                s_head = slack
            else:
                s_tail += slack * slack
                z_tail += z[r] * z[r]
        if kind == ZERO:
            outside = max(outside, abs(s_head))
        elif kind in (NONNEGATIVE, SECOND_ORDER):
            outside = max(outside, np.sqrt(s_tail) - s_head)
            dual_outside = max(dual_outside, np.sqrt(z_tail) - z[i])
        i = end
    stationarity = 0.0
    for c in range(x.size):
        part = abs(gradient[c]) / max(q[c], 1.0)
        stationarity = part if part > stationarity or part != part else stationarity
    residuals[0], residuals[1], residuals[2], residuals[3] = stationarity, dual_outside, gap, outside
