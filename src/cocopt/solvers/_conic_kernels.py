"""Compiled steps of the conic method, on the rows b − A x of stacked cones; A is sparse, row by row.

``kinds`` and ``ends`` describe the cones (`cocopt.cones.Layout`): kinds[i] is that of the cone that begins at row i,
and ends[i] the row behind it. A row of a linear cone is a cone of its own.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit

ZERO, NONNEG, SOC, EXP, OTHER = range(5)
INACTIVE, EQUATION, SIGNED, CURVED, TAIL = range(5)

__all__ = [
    "cone_residuals",
    "correct_surfaces",
    "newton_matrix",
    "newton_residuals",
    "number_unknowns",
    "scale_rows",
    "surfaces",
    "transpose",
]


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
    for c in range(column_units.size):
        column_units[c] = 1.0 if c < n else 0.0
    i = 0
    while i < m:
        end = ends[i]
        largest = 0.0
        for k in range(starts[i], starts[end]):
            if columns[k] < n:
                largest = max(largest, abs(values[k]))
        for r in range(i, end):
            row_units[r] = largest
        unit = largest if largest > 0.0 else 1.0
        for k in range(starts[i], starts[end]):
            if columns[k] >= n:
                column_units[columns[k]] = max(column_units[columns[k]], abs(values[k]) / unit)
        i = end
    for c in range(n, column_units.size):
        if column_units[c] == 0.0:
            column_units[c] = 1.0
    i = 0
    while i < m:
        end = ends[i]
        unit = row_units[i]
        if unit == 0.0:
            for k in range(starts[i], starts[end]):
                unit = max(unit, abs(values[k]) / column_units[columns[k]])
            if unit == 0.0:
                unit = 1.0
        for r in range(i, end):
            total = b[r]
            for k in range(starts[r], starts[r + 1]):
                total -= values[k] * x[columns[k]]
                new_values[k] = values[k] / (unit * column_units[columns[k]])
            new_b[r] = total / (length * unit)
            row_units[r] = unit
        i = end


@njit
def _tail_norm(s, first, end):
    """The length of s[first:end]."""
    total = 0.0
    for r in range(first, end):
        total += s[r] * s[r]
    return np.sqrt(total)


@guvectorize(
    [
        "float64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], float64[::1], float64[::1], "
        "float64[::1], int64[::1]"
    ],
    "(z),(z),(s),(m),(m),(m),(w),(m),(m)->(m)",
)
def surfaces(values, columns, starts, b, kinds, ends, x, z, s, active):
    """The surfaces that a point x with multipliers z is on; s is workspace, for the slacks.

    Of a slack and its multiplier, one is 0 at the optimum; near it, the smaller one is taken to be that.
    """
    m = b.size
    i = 0
    while i < m:
        end, kind = ends[i], kinds[i]
        for r in range(i, end):
            active[r] = INACTIVE
            s[r] = b[r]
            for k in range(starts[r], starts[r + 1]):
                s[r] -= values[k] * x[columns[k]]
        if kind == ZERO:
            active[i] = EQUATION
        elif kind == NONNEG:
            if s[i] < z[i]:
                active[i] = SIGNED
        elif kind == SOC:
            s_tail, z_tail = _tail_norm(s, i + 1, end), _tail_norm(z, i + 1, end)
            if s[i] + s_tail < z[i] - z_tail:  # at the apex: every entry is 0
                for r in range(i, end):
                    active[r] = EQUATION
            elif s[i] - s_tail < z[i] + z_tail:
                active[i] = CURVED
        elif kind == EXP:
            if s[i + 1] > 0.0 and s[i + 2] - s[i + 1] * np.exp(s[i] / s[i + 1]) < z[i + 2]:
                active[i] = CURVED
        if active[i] == CURVED:
            for r in range(i + 1, end):
                active[r] = TAIL
        i = end


@guvectorize(
    ["int64[::1], int64[::1], float64[::1], float64[::1], float64, float64, int64[::1], int64[::1]"],
    "(m),(m),(m),(m),(),(),(m)->()",
)
def correct_surfaces(kinds, ends, slack, z, negative, violated, active, changes):
    """Drops surfaces with a multiplier below −negative, adds those that are violated by more; returns how many.

    Writes ``active``, and sets to 0 what is negative only within rounding.
    """
    m = slack.size
    changes[0] = 0
    i = 0
    while i < m:
        end, kind = ends[i], kinds[i]
        if active[i] == SIGNED or active[i] == CURVED:
            head = i + 2 if kind == EXP else i
            if z[head] < 0.0:
                if z[head] < -negative:
                    changes[0] += 1
                    for r in range(i, end):
                        active[r] = INACTIVE
                for r in range(i, end):
                    z[r] = 0.0
        elif active[i] == INACTIVE:
            if kind == NONNEG and slack[i] < -violated:
                active[i] = SIGNED
                changes[0] += 1
            elif (kind == SOC and _tail_norm(slack, i + 1, end) - slack[i] > violated) or (
                kind == EXP and slack[i + 1] > 0.0 and slack[i + 1] * np.exp(slack[i] / slack[i + 1]) - slack[i + 2] > violated
            ):
                active[i] = CURVED
                for r in range(i + 1, end):
                    active[r] = TAIL
                changes[0] += 1
        i = end


@guvectorize(
    ["int64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], int64[::1]"],
    "(z),(s),(m),(m),(w),(m)->()",
)
def number_unknowns(columns, starts, active, z, of_variable, of_row, count):
    """Numbers the unknowns of Newton's method: variables that no active bound fixes, then multipliers of surfaces.

    A bound is an active linear row with one variable: of several on the same the one with the largest multiplier
    counts. ``of_variable`` becomes −1 − (its row) for a fixed variable, ``of_row`` −1 for a bound or inactive row.
    """
    for c in range(of_variable.size):
        of_variable[c] = 0
    for i in range(active.size):
        of_row[i] = -1
        if (active[i] == EQUATION or active[i] == SIGNED) and starts[i + 1] == starts[i] + 1:
            c = columns[starts[i]]
            other = -1 - of_variable[c]
            if other < 0:
                of_variable[c] = -1 - i
            elif active[other] == SIGNED and (active[i] == EQUATION or z[i] > z[other]):
                of_variable[c] = -1 - i
    number = 0
    for c in range(of_variable.size):
        if of_variable[c] >= 0:
            of_variable[c] = number
            number += 1
    for i in range(active.size):
        if active[i] == CURVED or (
            (active[i] == EQUATION or active[i] == SIGNED) and starts[i + 1] != starts[i] + 1
        ):
            of_row[i] = number
            number += 1
    count[0] = number


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], "
        "int64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1]"
    ],
    "(w),(w),(z),(z),(s),(m),(m),(m),(m),(w),(m),(m),(w),(m),(m)",
)
def newton_residuals(
    P, q, values, columns, starts, b, kinds, ends, active, x, multipliers, z, gradient, slack, surface
):
    """The optimality conditions at x with these multipliers of the active surfaces: writes the last four arguments.

    ``z`` are the multipliers of all rows, ``gradient`` is that of the Lagrangian, ``surface`` how far x is beyond each
    active surface (NaN where that is not smooth).
    """
    m = b.size
    for i in range(m):
        total = b[i]
        for k in range(starts[i], starts[i + 1]):
            total -= values[k] * x[columns[k]]
        slack[i] = total
        z[i] = 0.0
        surface[i] = 0.0
    for c in range(x.size):
        gradient[c] = P[c] * x[c] + q[c]
    i = 0
    while i < m:
        end = ends[i]
        if active[i] == CURVED and kinds[i] == SOC:
            norm = _tail_norm(slack, i + 1, end)
            surface[i] = norm - slack[i] if norm > 0.0 else np.nan
            z[i] = multipliers[i]
            for r in range(i + 1, end):
                z[r] = -multipliers[i] * slack[r] / norm
        elif active[i] == CURVED:
            scale = slack[i + 1]
            if scale > 0.0:
                ratio = slack[i] / scale
                value = np.exp(ratio)
                surface[i] = scale * value - slack[i + 2]
                z[i], z[i + 1], z[i + 2] = -value * multipliers[i], value * (ratio - 1.0) * multipliers[i], multipliers[i]
            else:
                surface[i] = np.nan
        else:
            for r in range(i, end):
                if active[r] != INACTIVE:
                    surface[r] = -slack[r]
                    z[r] = multipliers[r]
        for r in range(i, end):
            if z[r] != 0.0:
                for k in range(starts[r], starts[r + 1]):
                    gradient[columns[k]] += values[k] * z[r]
        i = end


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
    n = matrix.shape[0]
    for i in range(n):
        for j in range(n):
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
            for k in range(starts[i], starts[i + 1]):
                normal[columns[k]] = values[k]
        elif kinds[i] == SOC:
            norm = _tail_norm(slack, i + 1, end)
            for r in range(i + 1, end):
                for k in range(starts[r], starts[r + 1]):
                    normal[columns[k]] -= slack[r] / norm * values[k]
            weight = multipliers[i] / norm
            _add_outer(matrix, of_variable, normal, -weight)
            if starts[end] - starts[i + 1] <= widest * (end - i - 1):
                _add_gram(matrix, of_variable, (values, columns, starts), i + 1, end, weight)
            for k in range(starts[i], starts[i + 1]):
                normal[columns[k]] += values[k]
        else:
            ratio = slack[i] / slack[i + 1]
            value = np.exp(ratio)
            for k in range(starts[i], starts[i + 1]):
                normal[columns[k]] += values[k]
            for k in range(starts[i + 1], starts[i + 2]):
                normal[columns[k]] -= ratio * values[k]
            _add_outer(matrix, of_variable, normal, multipliers[i] * value / slack[i + 1])
            for c in range(normal.size):
                normal[c] = 0.0
            for k in range(starts[i], starts[i + 1]):
                normal[columns[k]] -= value * values[k]
            for k in range(starts[i + 1], starts[i + 2]):
                normal[columns[k]] += value * (ratio - 1.0) * values[k]
            for k in range(starts[i + 2], starts[i + 3]):
                normal[columns[k]] += values[k]
        for c in range(normal.size):
            if of_variable[c] >= 0:
                matrix[at, of_variable[c]] = matrix[of_variable[c], at] = normal[c]


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
        elif kind == NONNEG or kind == SOC:
            outside = max(outside, np.sqrt(s_tail) - s_head)
            dual_outside = max(dual_outside, np.sqrt(z_tail) - z[i])
        i = end
    stationarity = 0.0
    for c in range(x.size):
        part = abs(gradient[c]) / max(q[c], 1.0)
        stationarity = part if part > stationarity or part != part else stationarity
    residuals[0], residuals[1], residuals[2], residuals[3] = stationarity, dual_outside, gap, outside
