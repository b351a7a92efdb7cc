"""The conic form of sets and constraints.

Sets and constraints with a conic form describe it as ``Cones``; pieces stacked together are the data of a cone program.
One description serves the projection, the hinge prox and the least violation, because it includes how each row is
*relaxed*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array

__all__ = ["Cones", "distance_outside", "row_scaled", "stack"]


class Cones(NamedTuple):
    """The set {x : there is u with b − A [x; u] + E t in cones} for row relaxations t (t = 0: the set itself).

    For a constraint, t_i relaxes row i to g_i(x) ≤ t_i. A set K is never relaxed: its ``E`` has no columns.

    Attributes
    ----------
    A : ndarray (m, n + aux)
        Columns for x, then for the auxiliary variables u.
    b : ndarray (m,)
    E : ndarray (m, M)
        How each of the M rows of a constraint is relaxed.
    cones : tuple of (kind, size)
        kind is "zero", "nonneg", "soc" (first entry ≥ norm of the others), "exp" or "psd" (as Clarabel defines them),
        or ("power", alpha) with size 3; the sizes of all cones add up to m ("psd": size is the matrix side).
    aux : int
        The number of auxiliary variables.
    """

    A: Array
    b: Array
    E: Array
    cones: tuple[tuple[str | tuple[str, float], int], ...]
    aux: int = 0


def stack(pieces: list[Cones], dim: int) -> Cones:
    """The intersection of all pieces: auxiliary variables and relaxations side by side."""
    rows, aux, relaxations = np.sum([(p.A.shape[0], p.aux, p.E.shape[1]) for p in pieces], axis=0).tolist()
    A, b, E = np.zeros((rows, dim + aux)), np.zeros(rows), np.zeros((rows, relaxations))
    cones: tuple[tuple[str | tuple[str, float], int], ...] = ()
    at, u, t = 0, dim, 0
    for p in pieces:
        m = p.A.shape[0]
        A[at : at + m, :dim] = p.A[:, :dim]
        A[at : at + m, u : u + p.aux] = p.A[:, dim:]
        E[at : at + m, t : t + p.E.shape[1]] = p.E
        b[at : at + m] = p.b
        cones += p.cones
        at, u, t = at + m, u + p.aux, t + p.E.shape[1]
    return Cones(A, b, E, cones, aux)


def distance_outside(cones: Cones, slack: Array, dual: bool = False) -> float:
    """How far the slack is outside the linear and second-order cones; for the others the solver's iterates are inside.

    With ``dual``, how far multipliers are outside the dual cones, which are the same except for equations.
    """
    worst, at = 0.0, 0
    for kind, size in cones.cones:
        own = slack[at : at + size]
        if kind == "zero":
            worst = max(worst, 0.0 if dual else float(np.abs(own).max(initial=0.0)))
        elif kind == "nonneg":
            worst = max(worst, float(-own.min(initial=0.0)))
        elif kind == "soc":
            worst = max(worst, float(np.linalg.norm(own[1:]) - own[0]))
        at += size * (size + 1) // 2 if kind == "psd" else size
    return worst


def row_scaled(cones: Cones) -> Cones:
    """The same set in numbers of order 1.

    Each row, or cone of several rows, is divided by its largest coefficient of x, each auxiliary variable gets a unit
    of its own, and rows without x are divided by their largest coefficient.
    """
    n = cones.A.shape[1] - cones.aux
    lengths: list[int] = []  # of the pieces that are divided together
    for kind, size in cones.cones:
        linear = kind in ("zero", "nonneg")
        lengths += [1] * size if linear else [size * (size + 1) // 2 if kind == "psd" else size]
    if not lengths:
        return cones
    starts = np.cumsum([0, *lengths[:-1]])

    def largest_of_piece(columns: Array) -> Array:
        of_rows = np.abs(columns).max(axis=1, initial=0.0)
        of_pieces: Array = np.repeat(np.maximum.reduceat(of_rows, starts), lengths)
        return of_pieces

    of_x = largest_of_piece(cones.A[:, :n])
    unit = np.where(of_x > 0, of_x, 1.0)
    A, b, E = cones.A / unit[:, None], cones.b / unit, cones.E / unit[:, None]
    if cones.aux:
        aux_units = np.abs(A[:, n:]).max(axis=0)
        A[:, n:] /= np.where(aux_units > 0, aux_units, 1.0)
        of_aux = largest_of_piece(A[:, n:])
        unit = np.where((of_x == 0) & (of_aux > 0), of_aux, 1.0)
        A, b, E = A / unit[:, None], b / unit, E / unit[:, None]
    return cones._replace(A=A, b=b, E=E)
