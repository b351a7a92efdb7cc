"""Hinge prox with several rows over a box; if max_multiplier = inf, the projection onto the box ∩ {A x ≤ b}."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.active_set import hinge_prox_box

__all__ = ["box_rows"]


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], float64[::1], int64, "
        "float64[:,::1], float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(m,n),(m),(m),(),(w,n),(t,m)->(n),(m),()",
)
def box_rows(y, lower, upper, A, b, max_multiplier, equalities, dim_memory, row_memory, x, nu, status):
    """K = {lower ≤ x ≤ upper}; the first ``equalities`` rows hold with equality; memory from `workspace_memory`."""
    status[0] = hinge_prox_box((lower, upper, equalities), y, (A, b, max_multiplier), (dim_memory, row_memory), x, nu)
