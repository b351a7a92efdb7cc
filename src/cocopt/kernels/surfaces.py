"""The surfaces of cones that a point is on, and the unknowns of Newton's method on them.

See `cocopt.kernels.cone_rows` for how cones are given.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.cone_kinds import (
    CURVED,
    EQUATION,
    EXPONENTIAL,
    INACTIVE,
    NONNEGATIVE,
    SECOND_ORDER,
    SIGNED,
    TAIL,
    ZERO,
)
from cocopt.kernels.vectors import norm

__all__ = ["active_surfaces", "correct_surfaces", "number_unknowns"]


@njit
def _beyond(kind, slack, first, end):
    """How far the slacks of a curved cone are beyond its surface; −inf where that is not smooth."""
    if kind == SECOND_ORDER:
        return norm(slack[first + 1 : end]) - slack[first]
    if slack[first + 1] > 0.0:
        return slack[first + 1] * np.exp(slack[first] / slack[first + 1]) - slack[first + 2]
    return -np.inf


@guvectorize(
    [
        "float64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], float64[::1], float64[::1], "
        "float64[::1], int64[::1]"
    ],
    "(z),(z),(s),(m),(m),(m),(w),(m),(m)->(m)",
)
def active_surfaces(values, columns, starts, b, kinds, ends, x, z, s, active):
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
        elif kind == NONNEGATIVE:
            if s[i] < z[i]:
                active[i] = SIGNED
        elif kind == SECOND_ORDER:
            s_tail, z_tail = norm(s[i + 1 : end]), norm(z[i + 1 : end])
            if s[i] + s_tail < z[i] - z_tail:  # at the apex: every entry is 0
                for r in range(i, end):
                    active[r] = EQUATION
            elif s[i] - s_tail < z[i] + z_tail:
                active[i] = CURVED
        elif kind == EXPONENTIAL and -_beyond(kind, s, i, end) < z[i + 2]:
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
            head = i + 2 if kind == EXPONENTIAL else i
            if z[head] < 0.0:
                if z[head] < -negative:
                    changes[0] += 1
                    for r in range(i, end):
                        active[r] = INACTIVE
                for r in range(i, end):
                    z[r] = 0.0
        elif active[i] == INACTIVE:
            if kind == NONNEGATIVE and slack[i] < -violated:
                active[i] = SIGNED
                changes[0] += 1
            elif kind in (SECOND_ORDER, EXPONENTIAL) and _beyond(kind, slack, i, end) > violated:
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
            if other < 0 or (active[other] == SIGNED and (active[i] == EQUATION or z[i] > z[other])):
                of_variable[c] = -1 - i
    number = 0
    for c in range(of_variable.size):
        if of_variable[c] >= 0:
            of_variable[c] = number
            number += 1
    for i in range(active.size):
        if active[i] == CURVED or ((active[i] == EQUATION or active[i] == SIGNED) and starts[i + 1] != starts[i] + 1):
            of_row[i] = number
            number += 1
    count[0] = number
