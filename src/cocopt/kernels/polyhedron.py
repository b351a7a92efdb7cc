"""Hinge prox with several rows over a polyhedron that has rows of its own."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize
from cocopt.kernels.active_set import normalise, over_bounds

__all__ = ["polyhedron_rows"]


@borrowing
def _load_own_rows(K, work):
    """Loads K's own rows, whose multipliers are unbounded; returns their number."""
    A, b = K[3], K[4]
    for i in range(b.shape[0]):
        work.max_multiplier[i] = np.inf
    normalise((A, b, work.max_multiplier), 0, work)
    return b.shape[0]


hinge_prox_polyhedron = over_bounds(_load_own_rows)


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], int64, float64[:,::1], float64[::1], "
        "float64[::1], float64[:,::1], float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(p,n),(p),(),(m,n),(m),(m),(w,n),(t,r)->(n),(m),()",
)
def polyhedron_rows(
    y, lower, upper, own_A, own_b, equalities, A, b, max_multiplier, dim_memory, row_memory, x, nu, status
):
    """K = {lower ≤ x ≤ upper, own_A x ≤ own_b, the first ``equalities`` of these rows with equality}.

    Memory is the `workspace_memory` of p + m rows.
    """
    K = (lower, upper, equalities, own_A, own_b)
    status[0] = hinge_prox_polyhedron(K, y, (A, b, max_multiplier), (dim_memory, row_memory), x, nu)
