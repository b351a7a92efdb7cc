"""Hinge prox with one cap for the sum of all multipliers, see `cocopt.kernels.level`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.level import hinge_prox_ball_sum, hinge_prox_box_sum

__all__ = ["ball_rows_sum", "box_rows_sum"]


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], float64, float64[::1], int64, int64, "
        "float64[:,::1], float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(m,n),(m),(),(m),(),(),(w,n),(t,m)->(n),(m),()",
)
def box_rows_sum(y, lower, upper, A, b, price, cap, own, equalities, dim_memory, row_memory, x, nu, status):
    """K = {lower ≤ x ≤ upper} with the first ``own`` rows; ``cap`` is infinite; otherwise as `box_rows`."""
    status[0] = hinge_prox_box_sum(
        (lower, upper, equalities), own, y, (A, b, cap), price, (dim_memory, row_memory), x, nu
    )


@guvectorize(
    [
        "float64[::1], float64[::1], float64, float64[:,::1], float64[::1], float64, float64[::1], float64[:,::1], "
        "float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(),(m,n),(m),(),(m),(w,n),(t,m)->(n),(m),()",
)
def ball_rows_sum(y, center, radius, A, b, price, cap, dim_memory, row_memory, x, nu, status):
    """K = {‖x − center‖ ≤ radius}; ``cap`` is infinite; otherwise as `ball_rows`."""
    status[0] = hinge_prox_ball_sum((center, radius), 0, y, (A, b, cap), price, (dim_memory, row_memory), x, nu)
