"""The store of a trial: rows ⟨unit, x⟩ ≤ rhs of length 1, one behind the other."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import guvectorize, inlined
from cocopt.kernels.vectors import dot

__all__ = ["Rows", "append_rows", "rows_of_trial"]


class Rows(NamedTuple):
    """The store of one trial."""

    unit: Any  # (capacity, n)
    rhs: Any  # (capacity)
    size: Any  # how many rows there are


@inlined
def rows_of_trial(all_rows, t):
    """The store of trial t."""
    unit, rhs, size = all_rows
    return Rows(unit[t], rhs[t], size[t])


@guvectorize(
    ["float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], float64[::1], int64[::1]"],
    "(m,n),(m),(),(c,n),(c),(c)->()",
)
def append_rows(A, b, size, unit, rhs, norm, new_size):
    """Writes ⟨A_i, x⟩ ≤ b_i, normalised, into the store (unit, rhs, norm) behind its first ``size`` rows.

    Rows with b = +inf are left out; a row of zeros stays as it is. Returns the new size, −1 if a length is not finite.
    """
    k = size
    for i in range(b.shape[0]):
        if b[i] == np.inf:
            continue
        length = np.sqrt(dot(A[i], A[i]))
        if not length < np.inf:
            new_size[0] = -1
            return
        length = length if length > 0.0 else 1.0
        for j in range(A.shape[1]):
            unit[k, j] = A[i, j] / length
        rhs[k], norm[k] = b[i] / length, length
        k += 1
    new_size[0] = k
