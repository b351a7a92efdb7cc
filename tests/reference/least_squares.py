"""Least squares over nonnegative variables, by which cones of normals are searched for a given vector."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

ROUNDING = 2.3e-16  # a gradient below this share of its terms counts as 0


def nnls(A: Array, b: Array) -> tuple[Array, float]:
    """The x ≥ 0 with the least ‖A x − b‖, and that distance, by the method of Lawson & Hanson (1974, ch. 23).

    It is written out because ``scipy.optimize.nnls`` returns points that are not optimal in SciPy 1.15.
    """
    lengths = np.linalg.norm(A, axis=0)
    lengths[lengths == 0.0] = 1.0
    A = A / lengths  # so that columns of different units count alike
    x, free = np.zeros(A.shape[1]), np.zeros(A.shape[1], dtype=bool)
    useless = np.zeros(A.shape[1], dtype=bool)
    for _ in range(100 * (A.shape[1] + 1)):
        residual = b - A @ x
        gain = np.where(free | useless, 0.0, A.T @ residual)
        gain[gain <= ROUNDING * A.shape[0] * np.linalg.norm(b)] = 0.0
        if not gain.any():
            return x / lengths, float(np.linalg.norm(residual))
        new = int(np.argmax(gain * lengths))
        free[new] = True
        best = minimise_over(A, b, free)
        if best[new] <= 0.0:  # its gain was rounding
            free[new], useless[new] = False, True
            continue
        while (best[free] <= 0.0).any():  # go as far as x stays nonnegative, and fix what becomes 0
            falling = free & (best <= 0.0)
            x = x + np.min(x[falling] / (x[falling] - best[falling])) * (best - x)
            free &= ~(falling & (x <= 1e-15 * np.abs(x).max()))
            x[~free] = 0.0
            best = minimise_over(A, b, free)
        x, useless[:] = best, False
    raise RuntimeError("no solution after 100 steps per variable")


def minimise_over(A: Array, b: Array, free: Array) -> Array:
    """The x with the least ‖A x − b‖ that is 0 where it is not free."""
    x = np.zeros(A.shape[1])
    x[free] = np.linalg.lstsq(A[:, free], b, rcond=None)[0]
    return x
