"""Hinge prox with several rows over a polyhedron that has rows of its own."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.rows import dot, over_bounds

__all__ = ["polyhedron_rows"]


@njit
def own_rows(where, rows, right, caps, norms):
    own, bound = where[3], where[4]
    for i in range(own.shape[0]):
        norm = np.sqrt(dot(own[i], own[i]))
        unit = 1.0 / max(norm, 1e-300) if norm > 0.0 else 0.0
        norms[i], caps[i] = norm, np.inf
        right[i] = bound[i] * unit if norm > 0.0 else 1e300
        for j in range(own.shape[1]):
            rows[i, j] = own[i, j] * unit
    return own.shape[0]


in_polyhedron = over_bounds(own_rows)


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], "
        "float64[::1], float64[:,::1], float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(p,n),(p),(),(m,n),(m),(m),(w,n),(t,r)->(n),(m),()",
)
def polyhedron_rows(y, lower, upper, own, own_right, equalities, A, b, cap, wide, tall, x, nu, status):
    """K = {lower ≤ x ≤ upper, own·x ≤ own_right, the first ``equalities`` of these rows with equality}.

    The last two are the `scratch` of p + m rows.
    """
    status[0] = in_polyhedron((lower, upper, equalities, own, own_right), y, A, b, cap, wide, tall, x, nu)
