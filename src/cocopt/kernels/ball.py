"""Hinge prox with several rows over a ball; if max_multiplier = inf, the projection onto the ball ∩ {A x ≤ b}."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.ball_prox import hinge_prox_ball

__all__ = ["ball_rows"]


@guvectorize(
    [
        "float64[::1], float64[::1], float64, float64[:,::1], float64[::1], float64[::1], float64[:,::1], "
        "float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(),(m,n),(m),(m),(w,n),(t,m)->(n),(m),()",
)
def ball_rows(y, center, radius, A, b, max_multiplier, dim_memory, row_memory, x, nu, status):
    """K = {‖x − center‖ ≤ radius}; memory from `workspace_memory`."""
    status[0] = hinge_prox_ball((center, radius), y, (A, b, max_multiplier), (dim_memory, row_memory), x, nu)
