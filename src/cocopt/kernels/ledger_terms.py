"""What one round adds to the ledger's sums, for kernels that play rounds."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numba
import numpy as np

__all__ = ["add_terms"]

# Strict arithmetic: reordering the sums, as the other kernels may, would cancel the compensation.
_strict = numba.njit(cache=False, fastmath=False, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_strict
def _add(sums, i, term):
    """Adds to sum i; its rounding error goes to the carry beside it (Neumaier 1974, with Knuth's branch-free error)."""
    old = sums[2 * i]
    new = old + term
    part = new - old
    sums[2 * i] = new
    sums[2 * i + 1] += (old - (new - part)) + (term - part)


@_strict
def add_terms(rows, loss, past, infeasible, sums):
    """Adds one round, as the table in `cocopt.metrics` defines it, and returns max(0, g_t)."""
    worst, squares = -np.inf, 0.0
    for row in rows:
        if row > worst or row != row:  # so written, here and below, NaN is not lost
            worst = row
        if not row <= 0.0:
            squares += row * row
    violation = 0.0 if worst <= 0.0 else worst
    square = violation * violation
    signed = 0.0 if worst == -np.inf else worst
    terms = loss, signed, violation, square, squares, past + square, infeasible
    for i in range(len(terms)):
        _add(sums, i, terms[i])
    return violation
