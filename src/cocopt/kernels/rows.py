"""Hinge prox with several rows over a box; with infinite caps, the projection onto the box ∩ {A x ≤ b}."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import guvectorize
from cocopt.kernels.active_set import in_box

__all__ = ["box_rows"]


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1], float64[::1], int64, "
        "float64[:,::1], float64[:,::1], float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(m,n),(m),(m),(),(w,n),(t,m)->(n),(m),()",
)
def box_rows(y, lower, upper, A, b, cap, equalities, wide, tall, x, nu, status):
    """K = {lower ≤ x ≤ upper}; the first ``equalities`` rows hold with equality; the last two from `scratch`."""
    status[0] = in_box((lower, upper, equalities), y, A, b, cap, wide, tall, x, nu)
