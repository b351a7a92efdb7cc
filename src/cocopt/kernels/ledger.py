"""The ledger's sums: what each round adds to the metrics, with compensated summation."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numba
import numpy as np

from cocopt.kernels._jit import guvectorize

__all__ = ["add_round", "add_terms"]

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
    _add(sums, 0, loss)
    _add(sums, 1, 0.0 if worst == -np.inf else worst)
    _add(sums, 2, violation)
    _add(sums, 3, violation * violation)
    _add(sums, 4, squares)
    _add(sums, 5, past + violation * violation)
    _add(sums, 6, infeasible)
    return violation


@guvectorize(
    ["void(float64[:], float64, float64, float64, float64[:], float64[:], float64[:])"],
    "(m),(),(),(),(s)->(s),()",
)
def add_round(rows, loss, past, infeasible, before, after, violation):
    """The sums after one more round, each a pair (sum, carry) in the order of `cocopt.metrics.Ledger`; max(0, g_t)."""
    for i in range(before.shape[0]):
        after[i] = before[i]
    violation[0] = add_terms(rows, loss, past, infeasible, after)
