"""Values at the points of all trials, faster than NumPy's products of many small matrices."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize

__all__ = ["affine_rows", "norm_loss"]


@guvectorize(
    ["float64[:,::1], float64[::1], float64[::1], float64[::1], float64[::1]"],
    "(p,n),(p),(n)->(),(n)",
)
def norm_loss(H, y, x, value, gradient):
    """‖H x − y‖ and its subgradient Hᵀ(Hx − y)/‖Hx − y‖, 0 where the residual vanishes."""
    p, n = H.shape
    square = 0.0
    for j in range(n):
        gradient[j] = 0.0
    for i in range(p):
        residual = -y[i]
        for j in range(n):
            residual += H[i, j] * x[j]
        square += residual * residual
        for j in range(n):
            gradient[j] += residual * H[i, j]
    value[0] = np.sqrt(square)
    unit = 1.0 / max(value[0], 1e-300) if square > 0.0 else 0.0
    for j in range(n):
        gradient[j] *= unit


@guvectorize(
    ["float64[:,::1], float64[::1], float64[::1], float64[::1]"],
    "(m,n),(m),(n)->(m)",
)
def affine_rows(A, b, x, rows):
    """A x − b."""
    m, n = A.shape
    for i in range(m):
        value = -b[i]
        for j in range(n):
            value += A[i, j] * x[j]
        rows[i] = value
