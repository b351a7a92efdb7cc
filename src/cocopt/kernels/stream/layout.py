"""Where the numbers of a round are in its memory, and the kinds of loss; without numba, for those who only call."""

from __future__ import annotations

# The first entries of the memory. What goes in: the kind of loss and its parameter (below); η_t, or for adaptive steps
# the largest one allowed; the length of adaptive steps, 0 for others; Σ‖∇f_s‖² so far and its carry; whether the
# largest row alone counts; the radius of a ball or the total of a simplex.
KIND, PARAMETER, STEP, ADAPTIVE, GRADIENTS, CARRY, ONE_ROW, SIZE = range(8)
# What comes out: the status, f_t(x_t), ‖∇f_t(x_t)‖², the violation, and η_t in STEP.
STATUS, VALUE, GRADIENT_SQ, VIOLATION = range(8, 12)
NUMBERS = 12  #: so many of them
SET_VECTORS = 3  #: vectors follow: lower and upper bounds, or the center of a ball; and ones
VECTORS = 2  #: and then these: the gradient, and the target of the projection

# The kinds of loss, in the notation of `cocopt.losses`. The data are a matrix H (p, n), a vector y and a parameter.
NORM, LEAST_SQUARES = 0, 1  # H, y
QUADRATIC = 2  # P, q, r
DISTANCE = 3  # the center as the only row of H
LINEAR, NEGATIVE_LOG = 4, 5  # the vector as the only row of H
HINGE, LOGISTIC, ABSOLUTE = 6, 7, 8  # u as the only row of H, v or y as the only entry of y
HUBER, QUANTILE = 9, 10  # the same, and delta or level as the parameter


def memory_size(rows: int, dim: int) -> int:
    """How many numbers a round needs: those named here, and a workspace for one row more than the constraint has."""
    workspace = (rows + 4) * dim + (rows + dim + 11) * (rows + 1)
    return NUMBERS + (SET_VECTORS + VECTORS) * dim + 2 * (rows + 1) + workspace
