"""Equations as pairs of inequalities, for methods that take affine rows alone."""

from __future__ import annotations

import numpy as np

from cocopt.constraints import Affine, Constraint, Equality, Stack

__all__ = ["as_inequalities"]


def as_inequalities(constraint: Constraint) -> Constraint | None:
    """The same feasible set with the rows A x ≤ b and −A x ≤ −b in place of every equation; None if there is none.

    The rows are others, and so are their multipliers; a violation of |⟨a, x⟩ − b| is the largest of both rows.

    Examples
    --------
    >>> from cocopt import constraints
    >>> from cocopt.geometry.equations import as_inequalities
    >>> as_inequalities(constraints.Equality([1.0, 2.0], 3.0)).rows([0.0, 0.0])
    array([-3.,  3.])
    """
    if isinstance(constraint, Equality):
        A, b = constraint.A, constraint.b
        return Affine(np.concatenate([A, -A], axis=-2), np.concatenate([b, -b], axis=-1))
    if isinstance(constraint, Stack):
        parts = [as_inequalities(member) for member in constraint.members]
        if any(part is not None for part in parts):
            pairs = zip(constraint.members, parts, strict=True)
            return Stack([member if part is None else part for member, part in pairs])
    return None
