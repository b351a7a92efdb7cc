"""Hinge prox with several rows over a polyhedron that has rows of its own."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.active_set import normalise, over_bounds

__all__ = ["polyhedron_rows"]


@njit
def own_rows(where, rows, right, caps, norms):
    """K's own rows, which have no caps."""
    own, bound = where[3], where[4]
    for i in range(own.shape[0]):
        caps[i] = np.inf
    normalise(own, bound, caps, 0, rows, right, caps, norms)
    return own.shape[0]


hinge_prox_polyhedron = over_bounds(own_rows)


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], "
        "float64[::1], float64[:,::1], float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(p,n),(p),(),(m,n),(m),(m),(w,n),(t,r)->(n),(m),()",
)
def polyhedron_rows(y, lower, upper, own, own_right, equalities, A, b, cap, dim_memory, row_memory, x, nu, status):
    """K = {lower ≤ x ≤ upper, own·x ≤ own_right, the first ``equalities`` of these rows with equality}.

    The last two are the `workspace_memory` of p + m rows.
    """
    K = (lower, upper, equalities, own, own_right)
    status[0] = hinge_prox_polyhedron(K, y, (A, b, cap), (dim_memory, row_memory), x, nu)
