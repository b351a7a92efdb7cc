"""Values of sparse rows at the points of all trials."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize

__all__ = ["sparse_rows"]


@guvectorize(
    ["float64[::1], int64[::1], int64[::1], float64[::1], float64[::1], float64[::1]"],
    "(z),(z),(p),(m),(n)->(m)",
)
def sparse_rows(values, places, start, b, x, rows):
    """A x − b, where the entries of row i of A are those from start[i] to start[i + 1]."""
    for i in range(b.shape[0]):
        value = -b[i]
        for k in range(start[i], start[i + 1]):
            value += values[k] * x[places[k]]
        rows[i] = value
