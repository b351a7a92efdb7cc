"""Every numerical promise and every threshold of a decision, once, with its unit; docs/design.md gives the reasons.

*Relative* means: in units of the terms that make up a row at the point (`Constraint.magnitude`), or of the set's own
data (`ConvexSet.scale`). Limits of iterations and sizes at which one method overtakes another are no tolerances; they
stand where they are used.
"""

from __future__ import annotations

__all__ = [
    "BLACK_BOX",
    "DOUBLY_STOCHASTIC",
    "FAR_TARGET",
    "FAR_TARGET_PERSISTENT",
    "FEASIBILITY",
    "HINDSIGHT_GAP",
    "NEVER_BINDS",
    "OPTIMALITY",
    "OPTIMALITY_EXACT",
    "POSITION",
    "ROUNDING",
    "ROUNDING_PERSISTENT",
    "SATISFIED",
    "SEMIDEFINITE",
    "SYMMETRY",
    "TINY",
]

# What is promised about a returned point
FEASIBILITY = 1e-9  #: relative violation that is allowed; a least violation above it means that K ∩ {g ≤ 0} is empty
POSITION = 1e-7  #: relative error of the position where the active set is well conditioned
BLACK_BOX = 1e-7  #: violation of constraints that are known by value and subgradient alone, in their own units
OPTIMALITY = 1e-9  #: stationarity and duality gap, in units of the distance that the projection bridges
OPTIMALITY_EXACT = 1e-10  #: the same for active-set and dual methods, which reach more: a tenth of the promise
HINDSIGHT_GAP = 1e-7  #: of the value of the best fixed action: what its lower bound may miss

# Decisions on the way there
SATISFIED = 1e-10  #: a row violated by less, relative, counts as satisfied: a tenth of the promise
ROUNDING = 4e-16  #: what rounding may do to a sum of few terms, relative to their size
ROUNDING_PERSISTENT = 1e-13  #: the same for a row among all those of a persistent intersection
FAR_TARGET = 100.0  #: a target this much longer than its projection costs digits, and is approached in two stages
FAR_TARGET_PERSISTENT = 1000.0  #: the same for persistent intersections, from which nearly every target is far

# What counts as symmetric, semidefinite, nothing, or never
SYMMETRY = 1e-9  #: asymmetry of a matrix, relative to its largest entry
DOUBLY_STOCHASTIC = 1e-9  #: by what the sum of a row or column of a mixing matrix may differ from 1, an entry from ≥ 0
SEMIDEFINITE = 1e-9  #: a negative eigenvalue, relative to the largest, that counts as rounding
TINY = 1e-150  #: added to a norm before dividing by it: changes only norms whose squares underflow
NEVER_BINDS = 1e300  #: the right-hand side of a row that never binds, finite so that one can compute with it
