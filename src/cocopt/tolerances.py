"""Every numerical promise, once, with its unit; the reasons are in docs/design.md.

"Relative" means in units of the terms that make up a row at the point (`Constraint.magnitude`), or of the set's own
data (`ConvexSet.scale`).
"""

from __future__ import annotations

__all__ = ["FEASIBILITY", "POSITION"]

FEASIBILITY = 1e-9  #: relative violation that a returned point may have; a least violation above it means "empty"
POSITION = 1e-7  #: relative error of a returned point where the active set is well conditioned
