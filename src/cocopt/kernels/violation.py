"""The violation of affine rows at the points of all trials."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize

__all__ = ["affine_violation"]


@guvectorize(
    ["float64[:,::1], float64[::1], float64[::1], float64[::1]"],
    "(m,n),(m),(n)->()",
)
def affine_violation(A, b, x, worst):
    """max(0, max_i ⟨a_i, x⟩ − b_i); NaN if a row is."""
    m, n = A.shape
    worst[0] = 0.0
    for i in range(m):
        value = -b[i]
        for j in range(n):
            value += A[i, j] * x[j]
        if not value <= worst[0]:
            worst[0] = value
            if value != value:
                return
