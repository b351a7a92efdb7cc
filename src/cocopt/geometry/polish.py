"""From the neighbourhood of a conic optimum, where interior-point methods end, to the optimum itself.

There it is known which rows and cones are active, and each active second-order cone is a smooth surface: the
optimality conditions become equations, and Newton's method squares the error.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones

__all__ = ["SMOOTH", "Active", "Polished", "polish"]

STEPS = 12
ZERO = 1e-12  # a multiplier below this share of the largest is 0 but for rounding
ROUGH = 1e-8  # with a larger residual a step that fails to lessen it may be one around a curve
BALANCE = 4  # passes that make all entries of a system of one order
SMOOTH = ("zero", "nonneg", "soc")  # the kinds of cones that are treated


class Active(NamedTuple):
    """Surfaces that a point is on: rows that hold with equality, which of these have a signed multiplier, and cones."""

    linear: Array
    signed: Array
    curved: list[slice]


class Polished(NamedTuple):
    """A point, its multipliers, the surfaces it is on if they are known, and how far Newton's method would move it."""

    x: Array
    z: Array
    active: Active | None
    step: float


def polish(P: Array, q: Array, cones: Cones, x: Array, z: Array, active: Active | None = None) -> Polished | None:
    """(x, z) after Newton's method on the optimality conditions of min ½ xᵀ diag(P) x + qᵀx, b − A x in cones.

    The surfaces that hold with equality are those that x and z tell, unless they are given; those whose multipliers get
    the wrong sign are left. None if a cone is of a kind that is not treated, or x comes to the tip of one. Whether the
    result is optimal is for the caller to check.
    """
    active = _surfaces(cones, x, z) if active is None else active
    if active is None:
        return None
    linear, signed, curved = active
    A, b = cones.A, cones.b
    v, price, mu = x.copy(), z[linear], np.array([z[block.start] for block in curved])
    n, k = v.size, linear.size
    size = n + k + len(curved)
    system = np.zeros((size, size))
    best, best_residual, moved = None, np.inf, np.inf
    for _ in range(STEPS):
        s = b - A @ v
        H = np.diag(P)
        G = np.zeros((k + len(curved), n))
        residual = np.zeros(size)
        G[:k] = A[linear]
        residual[n : n + k] = -s[linear]
        for i, block in enumerate(curved):
            tail, rows = s[block.start + 1 : block.stop], A[block.start + 1 : block.stop]
            length = float(np.linalg.norm(tail))
            if length <= 0.0:
                return None
            unit = tail / length
            along = unit @ rows
            G[k + i] = A[block.start] - along
            H += mu[i] / length * (rows.T @ rows - np.outer(along, along))
            residual[n + k + i] = length - s[block.start]
        multipliers = np.concatenate([price, mu])
        residual[:n] = P * v + q + G.T @ multipliers
        error = float(np.abs(residual).max())
        if error < best_residual:
            best, best_residual = (v, price, mu), error
        elif best_residual <= ROUGH or not error < np.inf:
            break
        system[:n, :n], system[n:, :n], system[:n, n:] = H, G, G.T
        step = _solve(system, -residual)
        if error == best_residual:  # auxiliary variables may be free to move; surfaces that do not meet stay apart
            apart = np.abs(G @ step[:n] + residual[n:]).max(initial=0.0)
            moved = max(float(np.abs(step[:n][P > 0]).max(initial=0.0)), float(apart))
        v, price, mu = v + step[:n], price + step[n : n + k], mu + step[n + k :]
    if best is None:
        return None
    v, price, mu = best
    wrong = signed & (price < 0)
    if wrong.any() or (mu < 0).any():
        least = -ZERO * max(float(np.abs(price).max(initial=0.0)), float(np.abs(mu).max(initial=0.0)))
        pulls, leaves = signed & (price < least), mu < least
        if pulls.any() or leaves.any():  # surfaces that x is not on after all
            left = [block for block, leaving in zip(curved, leaves, strict=True) if not leaving]
            return polish(P, q, cones, x, z, Active(linear[~pulls], signed[~pulls], left))
        price, mu = np.where(wrong, 0.0, price), np.maximum(mu, 0.0)
    dual = np.zeros_like(z)
    dual[linear] = price
    s = b - A @ v
    for m, block in zip(mu, curved, strict=True):
        tail = s[block.start + 1 : block.stop]
        dual[block] = np.append(m, -m * tail / np.linalg.norm(tail))
    return Polished(v, dual, active, moved)


def _surfaces(cones: Cones, x: Array, z: Array) -> Active | None:
    """The surfaces that x is on, z its multipliers; None if a cone is of a kind that is not treated.

    Of a slack and its multiplier, one is 0 at the optimum; near it, the smaller one is taken to be that.
    """
    from scipy import linalg

    s = cones.b - cones.A @ x
    if not (np.isfinite(s).all() and np.isfinite(z).all()):
        return None
    linear: list[int] = []
    signed: list[bool] = []
    curved: list[slice] = []
    at = 0
    for kind, size in cones.cones:
        rows = range(at, at + size)
        if kind == "zero":
            linear += rows
            signed += [False] * size
        elif kind == "nonneg":
            tight = [i for i in rows if s[i] < z[i]]
            if len(tight) > x.size:  # more than can be independent: of those that are, the ones that press most
                order = linalg.qr((cones.A[tight] * z[tight, None]).T, mode="r", pivoting=True)[1]
                tight = [tight[i] for i in np.sort(order[: x.size])]
            linear += tight
            signed += [True] * len(tight)
        elif kind == "soc":
            block = slice(at, at + size)
            s_tail, z_tail = (float(np.linalg.norm(w[at + 1 : at + size])) for w in (s, z))
            if s[at] + s_tail < z[at] - z_tail:  # at the apex: every entry vanishes
                linear += rows
                signed += [False] * size
            elif s[at] - s_tail < z[at] + z_tail:
                curved.append(block)
        else:
            return None
        at += size
    return Active(np.array(linear, dtype=np.int64), np.array(signed, dtype=bool), curved)


def _solve(system: Array, right: Array) -> Array:
    """A solution, of least length if active rows depend on each other (then the system is singular)."""
    from scipy import linalg

    if len(system) > 400:
        with contextlib.suppress(np.linalg.LinAlgError):  # singular: below, with patience
            return np.asarray(np.linalg.solve(system, right), dtype=np.float64)
    # in units in which all rows and columns have entries of order 1 (Ruiz 2001): what is small need not be rounding
    units = np.ones(len(system))
    for _ in range(BALANCE):
        largest = np.abs(system * units[:, None] * units).max(axis=0)
        units /= np.sqrt(np.where(largest > 0, largest, 1.0))
    balanced = system * units[:, None] * units
    step = linalg.lstsq(balanced, right * units, cond=1e-13, lapack_driver="gelsy", check_finite=False)[0]
    return np.asarray(step * units, dtype=np.float64)
