"""Numbers for what cones and their rows are, in compiled code."""

from __future__ import annotations

__all__ = [
    "CURVED",
    "EQUATION",
    "EXPONENTIAL",
    "INACTIVE",
    "NONNEGATIVE",
    "OTHER",
    "SECOND_ORDER",
    "SIGNED",
    "TAIL",
    "ZERO",
]

# what a cone is
ZERO, NONNEGATIVE, SECOND_ORDER, EXPONENTIAL, OTHER = range(5)
# what a row is at a point: inactive; an equation; an inequality that holds with equality; the first row of a curved
# cone whose surface the point is on; another row of such a cone
INACTIVE, EQUATION, SIGNED, CURVED, TAIL = range(5)
