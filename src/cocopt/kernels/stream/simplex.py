"""A round over a simplex."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import expanded, guvectorize
from cocopt.kernels.polyhedron import hinge_prox_polyhedron
from cocopt.kernels.simplex import simplex_row
from cocopt.kernels.stream.play import LAYOUT, SIGNATURE, round_over, without_mean

__all__ = ["simplex_round"]


@expanded
def _project_row(K, target, a, b, x):
    nu, status = np.empty(1), np.empty(1, dtype=np.int64)
    simplex_row(target, K[3][0], a, b, np.inf, x, nu, status)
    return status[0]


@expanded
def _project_rows(K, target, A, b, work, x):
    memory, bounds, nu = work
    own = (K[0], K[1], np.int64(1), K[2], K[3])  # the sum of x, as an equality
    return hinge_prox_polyhedron(own, target, (A, b, bounds[: b.shape[0]]), memory, x, nu[: b.shape[0]])


_play = round_over(_project_row, _project_rows, 1, without_mean)


@guvectorize(SIGNATURE, LAYOUT)
def simplex_round(x, H, y, A, b, memory, sums, x_next, rows, sums_next):
    """K = {x ≥ 0, Σx = total}."""
    _play(x, H, y, A, b, memory, sums, x_next, rows, sums_next)
