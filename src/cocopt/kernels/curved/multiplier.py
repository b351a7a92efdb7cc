"""The search for the multiplier of a row: the root of g(x(ν)), which never increases with ν."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing

__all__ = ["MAX_STEPS", "Bracket", "advance_multiplier", "whole"]

MAX_STEPS = 100  # of the search; ten are many


class Bracket(NamedTuple):
    """The root is in [low, high] ∩ [0, most]."""

    low: Any
    high: Any
    most: Any  # the largest multiplier that is allowed
    steps: Any  # taken so far


@borrowing
def whole(max_multiplier):
    """Where the search begins."""
    return Bracket(0.0, np.inf, max_multiplier, 0)


@borrowing
def advance_multiplier(bracket, nu, value, newton, unit, tol):
    """(the next ν, the bracket, whether the search is over) from the row's value at ν and Newton's proposal.

    It is over at a root, to ``tol``, and at the largest multiplier if the value is positive there. ``unit`` is added
    where the row is flat and no upper end is known.
    """
    low, high, most, steps = bracket
    low, high = (nu, high) if value > 0.0 else (low, nu)
    bracket = Bracket(low, high, most, steps + 1)
    following = min(newton, most)
    if abs(value) <= tol:
        return (following if low <= following <= high and following < np.inf else nu), bracket, True
    if not low < following < high or (steps > 10 and steps % 3 == 0):
        if high < np.inf:
            following = np.sqrt(low * high) if high > 4.0 * low > 0.0 else 0.5 * (low + high)
        else:
            following = min(4.0 * nu + unit, most)
    over = not (low < following < high and following < np.inf)
    return (nu if over else following), bracket, over
