"""Hinge prox with a bound on the sum of all multipliers, see `cocopt.kernels.level`."""

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
def box_rows_sum(
    y, lower, upper, A, b, max_multiplier_sum, max_multiplier, own, equalities, dim_memory, row_memory, x, nu, status
):
    """K = {lower ≤ x ≤ upper} with the first ``own`` rows; ``max_multiplier`` is infinite; otherwise as `box_rows`."""
    K, rows, memory = (lower, upper, equalities), (A, b, max_multiplier), (dim_memory, row_memory)
    status[0] = hinge_prox_box_sum(K, own, y, rows, max_multiplier_sum, memory, x, nu)


@guvectorize(
    [
        "float64[::1], float64[::1], float64, float64[:,::1], float64[::1], float64, float64[::1], float64[:,::1], "
        "float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(),(m,n),(m),(),(m),(w,n),(t,m)->(n),(m),()",
)
def ball_rows_sum(y, center, radius, A, b, max_multiplier_sum, max_multiplier, dim_memory, row_memory, x, nu, status):
    """K = {‖x − center‖ ≤ radius}; ``max_multiplier`` is infinite; otherwise as `ball_rows`."""
    K, rows, memory = (center, radius), (A, b, max_multiplier), (dim_memory, row_memory)
    status[0] = hinge_prox_ball_sum(K, 0, y, rows, max_multiplier_sum, memory, x, nu)
