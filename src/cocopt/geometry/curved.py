"""One curved row over a set, or one affine row over a curved set, by kernels that take all trials at once.

Which row over which set is a table: what a set and a row hand to a kernel, and the kernels that there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.constraints import Constraint, NormBall, Quadratic, Shifted
from cocopt.geometry.batch import Batch
from cocopt.geometry.problem import Request
from cocopt.kernels import contiguous
from cocopt.sets.ball import Ball
from cocopt.sets.base import ConvexSet
from cocopt.sets.box import Box
from cocopt.sets.ellipsoid import Ellipsoid
from cocopt.sets.l1ball import L1Ball
from cocopt.sets.orthant import Orthant
from cocopt.sets.simplex import Simplex
from cocopt.sets.space import Space

__all__ = ["curved_applies", "describe_curved", "solve_curved"]

Row = tuple[str, tuple[Array, ...]]  # the kind of a row and its data

#: how each set is called in the names of kernels, and what they need of it
_SETS: dict[type[ConvexSet], tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    Box: ("box", lambda K: (K.lower, K.upper)),
    Orthant: ("box", lambda K: (K.lower, K.upper)),
    Space: ("box", lambda K: (K.lower, K.upper)),
    Ball: ("ball", lambda K: (K.center, K.radius)),
    Simplex: ("simplex", lambda K: (K.total,)),
    L1Ball: ("l1_ball", lambda K: (K.center, K.radius)),
    Ellipsoid: ("ellipsoid", lambda K: (K.center, K.axes, K.sigma)),
}

#: the kernels that there are: the set and the kind of row
_KERNELS = {
    ("box", "norm_ball"): "box_norm_ball",
    ("box", "quadratic"): "box_quadratic",
    ("ball", "norm_ball"): "ball_norm_ball",
    ("simplex", "norm_ball"): "simplex_norm_ball",
    ("l1_ball", "norm_ball"): "l1_ball_norm_ball",
    ("l1_ball", "halfspace"): "l1_ball_halfspace",
    ("ellipsoid", "norm_ball"): "ellipsoid_norm_ball",
    ("ellipsoid", "halfspace"): "ellipsoid_halfspace",
}

_KINDS = {"norm_ball": "a norm ball", "quadratic": "a diagonal quadratic row", "halfspace": "one affine row"}
_NAMES = {"box": "a box", "ball": "a ball", "simplex": "a simplex", "l1_ball": "an l1 ball", "ellipsoid": "an ellipsoid"}


def _norm_ball(constraint: NormBall) -> Row:
    return "norm_ball", (contiguous(constraint.center), constraint.radius)


def _quadratic(constraint: Quadratic) -> Row | None:
    diagonal = constraint.diagonal()
    return None if diagonal is None else ("quadratic", (diagonal, contiguous(constraint.q), constraint.r))


def _shifted(constraint: Shifted) -> Row | None:
    row = _row(constraint.of)
    if row is None:
        return None
    kind, (*data, constant) = row
    by = constraint.by[..., 0]
    return kind, (*data, constant + by if kind == "quadratic" else constant - by)


#: what is known of each kind of constraint that is not affine
_ROWS: dict[type[Constraint], Callable[[Any], Row | None]] = {
    NormBall: _norm_ball,
    Quadratic: _quadratic,
    Shifted: _shifted,
}


def _row(constraint: Constraint) -> Row | None:
    """The kind and the data of the constraint, if it is a single row of a known kind."""
    if constraint.row_count != 1:
        return None
    read = _ROWS.get(type(constraint))
    if read is not None:
        return read(constraint)
    affine = constraint.affine()
    return None if affine is None else ("halfspace", (contiguous(affine[0])[..., 0, :], affine[1][..., 0]))


def solve_curved(request: Request) -> Batch | None:
    """The answer for all trials, if there is a kernel for the row over the set; None if another method is needed.

    Where a status is INFEASIBLE, which is proved, the point is the one of least violation nearest to the target.
    """
    K, constraint, point, max_multiplier, _, _, _, _ = request
    known = _SETS.get(type(K))
    row = None if known is None else _row(constraint)
    if known is None or row is None:
        return None
    kernel = _KERNELS.get((known[0], row[0]))
    if kernel is None:
        return None
    bound = np.inf if max_multiplier is None else max_multiplier[..., 0]
    x, nu, status = getattr(kernels, kernel)(contiguous(point), *known[1](K), *row[1], bound)
    return x, nu[..., None], status, "curved"


def curved_applies(request: Request) -> bool:
    """Whether there is a kernel for the request."""
    known, row = _SETS.get(type(request.K)), _row(request.constraint)
    return known is not None and row is not None and (known[0], row[0]) in _KERNELS


def describe_curved(request: Request) -> str:
    """Why it applies, for `explain`."""
    row = _row(request.constraint)
    assert row is not None  # see `curved_applies`
    return f"compiled, {_KINDS[row[0]]} over {_NAMES[_SETS[type(request.K)][0]]}"
