"""What rounding may do to a result, and what counts as empty: the same for all kernels."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import njit

__all__ = ["EMPTY", "FAR", "NEVER", "ROUNDING", "rounding"]

ROUNDING = 4e-16  # a row violated by less than this share of its terms counts as satisfied
FAR = 100.0  # a target this much longer than its projection costs digits
NEVER = 1e300  # the right-hand side of a row that never binds, finite so that one can reckon with it
EMPTY = 1e-9  # a least violation above this share of its terms means that there is no feasible point


@njit
def rounding(n):
    """What rounding may do to a sum of n terms, as a share of their size."""
    return ROUNDING * (1.0 + 1e-3 * n)
