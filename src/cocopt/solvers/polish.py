"""Newton's method from a point near a conic optimum, where interior-point methods end, to the optimum itself.

Near the optimum it is known which rows and cones are active, and each active curved cone is a smooth surface: the
optimality conditions become equations, and Newton's method squares the error.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cocopt import kernels
from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.solvers.layout import layout
from cocopt.solvers.newton_point import NewtonPoint
from cocopt.solvers.newton_system import NewtonSystem
from cocopt.solvers.unknowns import Unknowns

__all__ = ["ActiveSurfaces", "Polished", "polish"]

MAX_STEPS = 12
MAX_CORRECTIONS = 8  # changes of the active surfaces
ZERO_MULTIPLIER = 1e-12  # a multiplier below this share of the largest is 0 but for rounding
VIOLATED = 1e-10  # a surface that x is beyond by more, in units of order 1, is active,
ROUNDING = 1e-14  # unless that may be rounding, which is at most this share of the size of x
LARGE_RESIDUAL = 1e-8  # above this a step that fails to lessen the residual may follow a curved surface, and is allowed
SMALL_STEP = 1e-12  # a shorter step is rounding
SLOW = 1e-2  # a step that leaves more than this share of the residual asks for a new derivative

#: what each row of the cones is at a point (`cocopt.kernels.cone_kinds`)
ActiveSurfaces: TypeAlias = NDArray[np.int64]


class Polished(NamedTuple):
    """A point, its multipliers, the surfaces that it is on, and how far Newton's method would move it."""

    x: Array
    z: Array
    active: ActiveSurfaces | None
    step: float


def polish(
    P: Array, q: Array, cones: Cones, x: Array, z: Array, active: ActiveSurfaces | None = None
) -> Polished | None:
    """(x, z) after Newton's method on the optimality conditions of min ½ xᵀ diag(P) x + qᵀx, b − A x in cones.

    The active surfaces are read off x and z unless they are given; those whose multipliers get the wrong sign are
    dropped, those that x ends beyond are added. None if a cone is of a kind that is not supported, or x comes to where
    its surface is not smooth. The caller checks whether the result is optimal.
    """
    kinds, ends, _, smooth = layout(cones.cones)
    if not smooth or not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    values, columns, starts, _ = cones.matrix
    if active is None:
        active = kernels.active_surfaces(values, columns, starts, cones.b, kinds, ends, x, z, np.empty_like(z))
    for _ in range(MAX_CORRECTIONS):
        found = _newton(P, q, cones, x, z, active)
        if found is None:
            return None
        at, slack = found
        largest = float(np.abs(at.z).max(initial=0.0))
        violated = VIOLATED + ROUNDING * float(np.abs(at.x).max())
        active = active.copy()
        if not kernels.correct_surfaces(kinds, ends, slack, at.z, ZERO_MULTIPLIER * largest, violated, active):
            break
    return at


def _newton(
    P: Array, q: Array, cones: Cones, x: Array, z: Array, active: ActiveSurfaces
) -> tuple[Polished, Array] | None:
    """The point of least residual and its slacks; None where a surface is not smooth.

    The derivative of the first step is used again for as long as the residual falls fast.
    """
    kinds, ends, _, _ = layout(cones.cones)
    values, columns, starts, _ = cones.matrix
    unknowns = Unknowns.of(cones.matrix, active, z)
    free, multiplied = unknowns.free, unknowns.multiplied
    x, multipliers = unknowns.start(cones, x, z)
    placed = P[free] > 0.0  # auxiliary variables may be free to move
    system: NewtonSystem | None = None
    best, least, before, moved = (x, multipliers, z, x), np.inf, np.inf, np.inf
    for _ in range(MAX_STEPS):
        dual, slack, gradient, residual = np.empty_like(z), np.empty_like(z), np.empty_like(x), np.empty(unknowns.size)
        error = kernels.newton_residuals(
            *(P, q, values, columns, starts, cones.b, kinds, ends, active, unknowns.of_variable, unknowns.of_row),
            *(x, multipliers, dual, gradient, slack, residual),
        )
        if np.isnan(error):
            return None
        if error < least:
            best, least = (x, dual, slack, gradient), error
        elif least <= LARGE_RESIDUAL or not error < np.inf:
            break
        if system is None or system.singular is not None or error > max(SLOW * before, SMALL_STEP):
            system = NewtonSystem.at(NewtonPoint(P, cones, active, unknowns, slack, multipliers))
        before = error
        step = system.solve(-residual)
        own = step[: free.size]
        if error == least:  # surfaces that do not meet stay apart
            moved = max(float(np.abs(own[placed]).max(initial=0.0)), system.apart(step, residual))
            if float(np.abs(step).max(initial=0.0)) <= SMALL_STEP:
                break
        x, multipliers = x.copy(), multipliers.copy()
        x[free] += own
        multipliers[multiplied] += step[free.size :]
    if not least < np.inf:
        return None
    x, dual, slack, gradient = best
    dual[unknowns.bounds] = -gradient[unknowns.fixed] / values[starts[unknowns.bounds]]
    return Polished(x, dual, active, moved), slack
