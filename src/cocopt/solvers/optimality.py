"""The optimality conditions of a quadratic program, computed outside the solver that found the point."""

from __future__ import annotations

from typing import Any

import numpy as np

from cocopt.arrays import Array
from cocopt.threads import matvec, vecmat
from cocopt.tolerances import OPTIMALITY_EXACT

__all__ = ["is_least_norm_point"]


def is_least_norm_point(
    bottom: Array, top: Array, rows: Array, equalities: int, u: Array, multipliers: Array
) -> Any:  # bool (B,)
    """Whether each u (B, n) minimises ½‖u‖² subject to bottom ≤ [u; rows·u] ≤ top, to OPTIMALITY_EXACT.

    ``bottom`` and ``top`` have shape (B, n + M), ``rows`` (B, M, n). The multipliers (B, n + M) are positive for top
    and negative for bottom.
    """
    n = u.shape[-1]
    values = np.concatenate([u, matvec(rows, u)], axis=-1)
    scale = np.maximum(1.0, np.abs(u).max(axis=-1))
    violated = np.maximum((bottom - values).max(axis=-1), (values - top).max(axis=-1))
    stationary = np.abs(u + multipliers[:, :n] + vecmat(multipliers[:, n:], rows)).max(axis=-1)
    wrong_sign = np.maximum(-multipliers[:, n + equalities :], 0.0).max(axis=-1, initial=0.0)
    slack = np.where(multipliers > 0, top - values, bottom - values)
    gap = np.abs(np.where(multipliers == 0, 0.0, multipliers * slack).sum(axis=-1)) / scale
    return np.maximum.reduce([violated, stationary, wrong_sign, gap]) <= OPTIMALITY_EXACT * scale
