"""A round over a ball."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import expanded, guvectorize
from cocopt.kernels.ball_prox import hinge_prox_ball
from cocopt.kernels.halfspace import BallRow, ball_row_prox
from cocopt.kernels.stream.play import LAYOUT, SIGNATURE, round_over

__all__ = ["ball_round"]


@expanded
def _project_row(K, target, a, b, x):
    return ball_row_prox(BallRow(target, K[0], K[3][0], a, b), np.inf, x)[1]


@expanded
def _project_rows(K, target, A, b, work, x):
    memory, bounds, nu = work
    return hinge_prox_ball((K[0], K[3][0]), target, (A, b, bounds), memory, x, nu)


_play = round_over(_project_row, _project_rows, 0)


@guvectorize(SIGNATURE, LAYOUT)
def ball_round(x, H, y, A, b, memory, sums, x_next, rows, sums_next):
    """K = {‖x − center‖ ≤ radius}."""
    _play(x, H, y, A, b, memory, sums, x_next, rows, sums_next)
