"""Sums over the coordinates of one or two vectors."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, njit

__all__ = ["clip", "distance", "dot", "norm"]


@njit
def clip(z, low, high):
    """min(max(z, low), high), written so that loops around it become vector code (five times as fast)."""
    x = z if z > low else low
    return x if x < high else high


@borrowing
def dot(u, v):
    """⟨u, v⟩."""
    total = 0.0
    for j in range(u.shape[0]):
        total += u[j] * v[j]
    return total


@borrowing
def norm(u):
    """‖u‖."""
    return np.sqrt(dot(u, u))


@borrowing
def distance(u, v):
    """‖u − v‖."""
    total = 0.0
    for j in range(u.shape[0]):
        difference = u[j] - v[j]
        total += difference * difference
    return np.sqrt(total)
