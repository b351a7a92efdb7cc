"""The contract of constraints."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import Array, ArrayLike
from cocopt.checks.base import TOL, require, require_kind
from cocopt.checks.functions import check_function, check_points
from cocopt.constraints import Constraint

__all__ = ["check_constraint"]


def check_constraint(constraint: Constraint, *, points: ArrayLike | None = None, seed: int = 0) -> None:
    """Checks that a constraint keeps the contract of [`Constraint`][cocopt.constraints.Constraint].

    `rows` and `jacobian` have the shapes that `row_count` says; `value` is the largest row and `gradient` a subgradient
    of it, g(y) ≥ g(x) + ⟨∇g(x), y − x⟩, at most points its slope; `affine` and `select` agree with `rows`; one
    point has the same value alone and among many.

    Parameters
    ----------
    constraint : Constraint
    points : array (P, ..., n), optional
        Where to check, with the leading axes of the constraint. Default: 20 normally distributed points.
    seed : int, default 0
        For the points.

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> from cocopt import constraints
    >>> from cocopt.checks import check_constraint
    >>> check_constraint(constraints.NormBall([0.0, 1.0], 2.0))
    >>> class Flipped(constraints.Affine):
    ...     def jacobian_unchecked(self, x):
    ...         return -super().jacobian_unchecked(x)
    >>> check_constraint(Flipped([1.0, 2.0], 0.5))
    Traceback (most recent call last):
    ...
    AssertionError: Flipped(A of shape (1, 2), b of shape (1,)): the subgradient inequality fails
    """
    require_kind("constraint", constraint, "constraint", "constraints.Affine")
    x = check_points(constraint, points, seed)
    rows, jacobian, count = constraint.rows(x), constraint.jacobian(x), constraint.row_count
    require(constraint, rows.shape == (*x.shape[:-1], count), "rows() has a wrong shape")
    require(constraint, jacobian.shape == (*rows.shape, x.shape[-1]), "jacobian() has a wrong shape")
    check_function(constraint, constraint.value, constraint.gradient, x)
    require(constraint, np.array_equal(constraint.value(x), rows.max(axis=-1)), "value() is not the largest row")
    finite = np.isfinite(rows)  # −inf for a row that is switched off
    size = np.maximum(constraint.magnitude(x), np.abs(np.where(finite, rows, 0.0)))
    affine = constraint.affine()
    if affine is not None:
        given = np.einsum("...mn,...n->...m", affine[0], x) - affine[1]
        require(constraint, _near(given, rows, size), "affine() describes other rows")
    for i in range(count):
        selected = constraint.select(i).rows(x)
        require(constraint, _near(selected, rows[..., [i]], size[..., [i]]), f"select({i}) is another row")


def _near(given: Array, rows: Array, size: Array) -> bool:
    """Whether these are the same rows, those that are switched off included."""
    same = given == rows
    return bool((np.abs(np.where(same, 0.0, given) - np.where(same, 0.0, rows)) <= TOL * size).all())
