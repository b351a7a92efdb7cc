"""A round over a box."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import expanded, guvectorize
from cocopt.kernels.active_set import hinge_prox_box
from cocopt.kernels.box_row import box_row_prox_few
from cocopt.kernels.line import Line
from cocopt.kernels.stream.play import LAYOUT, SIGNATURE, round_over

__all__ = ["box_round"]


@expanded
def _project_row(K, target, a, b, x):
    return box_row_prox_few(Line(target, K[0], K[1], a, b), np.inf, x)[1]


@expanded
def _project_rows(K, target, A, b, work, x):
    memory, bounds, nu = work
    return hinge_prox_box((K[0], K[1], np.int64(0)), target, (A, b, bounds), memory, x, nu)


_play = round_over(_project_row, _project_rows, 0)


@guvectorize(SIGNATURE, LAYOUT)
def box_round(x, H, y, A, b, memory, sums, x_next, rows, sums_next):
    """K = {lower ≤ x ≤ upper}."""
    _play(x, H, y, A, b, memory, sums, x_next, rows, sums_next)
