"""What rounding may do to a result."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import njit
from cocopt.tolerances import ROUNDING

__all__ = ["rounding"]


@njit
def rounding(n):
    """The rounding error of a sum of n terms, relative to their size."""
    return ROUNDING * (1.0 + 1e-3 * n)
