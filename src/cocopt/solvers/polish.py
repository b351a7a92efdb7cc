"""Newton's method from a point near a conic optimum, where interior-point methods end, to the optimum itself.

Near the optimum it is known which rows and cones are active, and each active second-order or exponential cone is a
smooth surface: the optimality conditions become equations, and Newton's method squares the error.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocopt.arrays import Array
from cocopt.cones import Cones

__all__ = ["SMOOTH", "ActiveSurfaces", "Polished", "polish"]

MAX_STEPS = 12
ZERO_MULTIPLIER = 1e-12  # a multiplier below this share of the largest is 0 but for rounding
LARGE_RESIDUAL = 1e-8  # above this a step that fails to lessen the residual may follow a curved surface, and is allowed
BALANCING_PASSES = 4  # passes that bring all entries of a system to order 1
DIRECT_SOLVE_SIZE = 400  # in larger systems least squares, which handle dependent rows, take too long to come first
SMOOTH = ("zero", "nonneg", "soc", "exp")  # the kinds of cones that are supported


class Surface(NamedTuple):
    """The boundary of one cone, as the zeros of a function φ of the slack that is negative inside."""

    rows: slice
    exponential: bool

    def multiplier(self, z: Array) -> float:
        """μ with z = −μ ∇φ, read off one entry of the dual."""
        return float(z[self.rows.start + (2 if self.exponential else 0)])

    def derivatives(self, slack: Array) -> tuple[float, Array, Array] | None:
        """φ(s), ∇φ(s) and its second derivatives; None where the surface is not smooth."""
        s = slack[self.rows]
        if self.exponential:  # s₁ exp(s₀/s₁) − s₂
            if not s[1] > 0.0:
                return None
            ratio = s[0] / s[1]
            growth = float(np.exp(min(ratio, 700.0)))
            across = np.array([1.0, -ratio, 0.0])
            gradient = np.array([growth, growth * (1.0 - ratio), -1.0])
            return s[1] * growth - s[2], gradient, growth / s[1] * np.outer(across, across)
        length = float(np.linalg.norm(s[1:]))  # ‖(s₁, …)‖ − s₀
        if length <= 0.0:
            return None
        unit = s[1:] / length
        second = np.zeros((s.size, s.size))
        second[1:, 1:] = (np.eye(s.size - 1) - np.outer(unit, unit)) / length
        return length - s[0], np.append(-1.0, unit), second


class ActiveSurfaces(NamedTuple):
    """The surfaces that a point is on: rows that hold with equality, second-order and exponential cones."""

    linear: NDArray[np.int64]  #: the numbers of these rows
    signed: NDArray[np.bool_]  #: which of them have a multiplier that must not be negative
    curved: list[Surface]


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
    dropped. None if a cone is of a kind that is not supported, or x comes to the apex of one. The caller checks
    whether the result is optimal.
    """
    active = _active_surfaces(cones, x, z) if active is None else active
    if active is None:
        return None
    linear, signed, curved = active
    n, k = x.size, linear.size
    w = np.concatenate([x, z[linear], [surface.multiplier(z) for surface in curved]])  # and multipliers
    best, least_residual, moved = None, np.inf, np.inf
    for _ in range(MAX_STEPS):
        equations = _optimality_conditions(P, q, cones, active, w)
        if equations is None:
            return None
        residual, jacobian = equations
        error = float(np.abs(residual).max())
        if error < least_residual:
            best, least_residual = w, error
        elif least_residual <= LARGE_RESIDUAL or not error < np.inf:
            break
        step = _solve_least_squares(jacobian, -residual)
        if error == least_residual:  # auxiliary variables may be free to move; surfaces that do not meet stay apart
            apart = np.abs(jacobian[n:, :n] @ step[:n] + residual[n:]).max(initial=0.0)
            moved = max(float(np.abs(step[:n][P > 0]).max(initial=0.0)), float(apart))
        w = w + step
    if best is None:
        return None
    of_rows, of_cones = best[n : n + k], best[n + k :]
    wrong = signed & (of_rows < 0)
    if wrong.any() or (of_cones < 0).any():
        largest = max(float(np.abs(of_rows).max(initial=0.0)), float(np.abs(of_cones).max(initial=0.0)))
        drop_rows, drop_cones = signed & (of_rows < -ZERO_MULTIPLIER * largest), of_cones < -ZERO_MULTIPLIER * largest
        if drop_rows.any() or drop_cones.any():  # x is not on these surfaces after all
            left = [surface for surface, drop in zip(curved, drop_cones, strict=True) if not drop]
            return polish(P, q, cones, x, z, ActiveSurfaces(linear[~drop_rows], signed[~drop_rows], left))
        of_rows, of_cones = np.where(wrong, 0.0, of_rows), np.maximum(of_cones, 0.0)
    return Polished(best[:n], _dual(cones, active, best[:n], of_rows, of_cones), active, moved)


def _optimality_conditions(
    P: Array, q: Array, cones: Cones, active: ActiveSurfaces, w: Array
) -> tuple[Array, Array] | None:
    """The optimality conditions as equations in w = (x, multipliers of rows, multipliers of cones).

    Their residuals (of the Lagrangian's gradient, then of the surfaces) and their Jacobian; None at the apex of a
    cone, where its surface is not smooth.
    """
    A, (linear, _, curved), n, k = cones.A, active, P.size, active.linear.size
    x, multipliers, of_cones = w[:n], w[n:], w[n + k :]
    slack = cones.b - A @ x
    residual, jacobian = np.zeros(w.size), np.zeros((w.size, w.size))
    hessian, normals = np.diag(P), jacobian[n:, :n]
    normals[:k] = A[linear]
    residual[n : n + k] = -slack[linear]
    for i, surface in enumerate(curved):
        local, rows = surface.derivatives(slack), A[surface.rows]
        if local is None:
            return None
        residual[n + k + i], gradient, second = local
        normals[k + i] = -gradient @ rows
        hessian += of_cones[i] * (rows.T @ second @ rows)
    residual[:n] = P * x + q + normals.T @ multipliers
    jacobian[:n, :n], jacobian[:n, n:] = hessian, normals.T
    return residual, jacobian


def _dual(cones: Cones, active: ActiveSurfaces, x: Array, of_rows: Array, of_cones: Array) -> Array:
    """The dual of all rows of the cones: 0 where they are inactive."""
    dual = np.zeros_like(cones.b)
    dual[active.linear] = of_rows
    slack = cones.b - cones.A @ x
    for multiplier, surface in zip(of_cones, active.curved, strict=True):
        local = surface.derivatives(slack)
        if local is not None:
            dual[surface.rows] = -multiplier * local[1]
    return dual


def _active_surfaces(cones: Cones, x: Array, z: Array) -> ActiveSurfaces | None:
    """The surfaces that x is on, z its multipliers; None if a cone is of a kind that is not supported.

    Of a slack and its multiplier, one is 0 at the optimum; near it, the smaller one is taken to be that.
    """
    from scipy import linalg

    s = cones.b - cones.A @ x
    if not (np.isfinite(s).all() and np.isfinite(z).all()):
        return None
    linear: list[int] = []
    signed: list[bool] = []
    curved: list[Surface] = []
    at = 0
    for kind, size in cones.cones:
        rows = range(at, at + size)
        if kind == "zero":
            linear += rows
            signed += [False] * size
        elif kind == "nonneg":
            tight = [i for i in rows if s[i] < z[i]]
            if len(tight) > x.size:  # more than can be independent: those with the largest multipliers that are
                order = linalg.qr((cones.A[tight] * z[tight, None]).T, mode="r", pivoting=True)[1]
                tight = [tight[i] for i in np.sort(order[: x.size])]
            linear += tight
            signed += [True] * len(tight)
        elif kind == "soc":
            block = slice(at, at + size)
            s_tail, z_tail = (float(np.linalg.norm(w[at + 1 : at + size])) for w in (s, z))
            if s[at] + s_tail < z[at] - z_tail:  # at the apex: every entry is 0
                linear += rows
                signed += [False] * size
            elif s[at] - s_tail < z[at] + z_tail:
                curved.append(Surface(block, exponential=False))
        elif kind == "exp":
            surface = Surface(slice(at, at + size), exponential=True)
            local = surface.derivatives(s)
            if local is None:
                return None
            if -local[0] < surface.multiplier(z):
                curved.append(surface)
        else:
            return None
        at += size
    return ActiveSurfaces(np.array(linear, dtype=np.int64), np.array(signed, dtype=bool), curved)


def _solve_least_squares(system: Array, rhs: Array) -> Array:
    """A solution, of least length if active rows depend on each other (then the system is singular)."""
    from scipy import linalg

    if len(system) > DIRECT_SOLVE_SIZE:
        with contextlib.suppress(np.linalg.LinAlgError):  # singular: by least squares, below
            return np.asarray(np.linalg.solve(system, rhs), dtype=np.float64)
    # in units in which all rows and columns have entries of order 1 (Ruiz 2001): what is small need not be rounding
    units = np.ones(len(system))
    for _ in range(BALANCING_PASSES):
        largest = np.abs(system * units[:, None] * units).max(axis=0)
        units /= np.sqrt(np.where(largest > 0, largest, 1.0))
    balanced = system * units[:, None] * units
    step = linalg.lstsq(balanced, rhs * units, cond=1e-13, lapack_driver="gelsy", check_finite=False)[0]
    return np.asarray(step * units, dtype=np.float64)
