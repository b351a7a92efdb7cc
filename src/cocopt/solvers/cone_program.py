"""Cone programs: Clarabel's optima, refined by Newton's method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.cones import Cones
from cocopt.solvers import clarabel
from cocopt.solvers.layout import layout
from cocopt.solvers.polish import ActiveSurfaces, polish

__all__ = ["Candidate", "candidates"]


class Candidate(NamedTuple):
    """What may be the optimum; nothing about it is checked."""

    x: Array
    z: Array  #: the dual of b − A x in cones
    active: ActiveSurfaces | None  #: the surfaces that x is on, if they are known
    step: float  #: how far Newton's method would move x, inf if it was not used
    infeasible: bool  #: whether the solver reports that no point satisfies the cones


def candidates(P: Array, q: Array, cones: Cones, rough: bool = True) -> Iterator[Candidate]:
    """Candidates for argmin of ½ xᵀ diag(P) x + qᵀx subject to b − A x in cones.

    Each attempt of the solver yields two: first refined by Newton's method, where that applies, then as it was. The
    first attempt is a rough one, unless the caller asks otherwise or Newton's method does not apply, and yields the
    refined point alone. Nothing is refined where the solver reports infeasibility, and after a certificate.
    """
    certified = False
    for attempt in range(0 if rough and layout(cones.cones).smooth else 1, len(clarabel.ATTEMPTS)):
        result = clarabel.minimise(P, q, cones, attempt)
        certified = certified or result.certified
        refined = None if certified or result.infeasible else polish(P, q, cones, result.x, result.z)
        if refined is not None:
            yield Candidate(*refined, result.infeasible)
        if attempt > 0:
            yield Candidate(result.x, result.z, None, np.inf, result.infeasible)
