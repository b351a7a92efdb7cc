"""The conic form of sets and constraints.

Sets and constraints with a conic form describe it as ``Cones``; pieces stacked together are the data of a cone program.
One description serves the projection, the hinge prox and the least violation, because it includes how each row is
*relaxed*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array

__all__ = ["Cones", "stack"]


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
