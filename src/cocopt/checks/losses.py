"""The contract of losses."""

from __future__ import annotations

import numpy as np

from cocopt.arrays import ArrayLike
from cocopt.checks.base import TOL, require, require_kind
from cocopt.checks.functions import check_function, check_points
from cocopt.losses import Loss

__all__ = ["check_loss"]


def check_loss(loss: Loss, *, points: ArrayLike | None = None, seed: int = 0) -> None:
    """Checks that a loss keeps the contract of [`Loss`][cocopt.losses.Loss].

    Values and gradients have the shapes of the points; f(y) ≥ f(x) + ⟨∇f(x), y − x⟩; at most points ∇f(x) is the slope
    of f; `value`, `gradient` and `value_and_gradient` agree, for one point and for many; f is as strongly convex as
    `strong_convexity` says.

    Parameters
    ----------
    loss : Loss
    points : array (P, ..., n), optional
        Where to check, with the leading axes of the loss. Default: 20 normally distributed points.
    seed : int, default 0
        For the points.

    Raises
    ------
    AssertionError
        Naming the property that failed.

    Examples
    --------
    >>> from cocopt import losses
    >>> from cocopt.checks import check_loss
    >>> check_loss(losses.LeastSquares([[1.0, 2.0]], [3.0]))
    >>> class Steep(losses.Linear):
    ...     def value_and_gradient_unchecked(self, x):
    ...         value, gradient = super().value_and_gradient_unchecked(x)
    ...         return value, 2.0 * gradient
    >>> check_loss(Steep([1.0, 2.0]))
    Traceback (most recent call last):
    ...
    AssertionError: Steep(c of shape (2,)): the subgradient inequality fails
    """
    require_kind("loss", loss, "loss", "losses.Norm")
    x = check_points(loss, points, seed)
    check_function(loss, loss.value, loss.gradient, x)
    value, gradient = loss.value_and_gradient(x)
    same = np.array_equal(value, loss.value(x)) and np.array_equal(gradient, loss.gradient(x))
    require(loss, same, "value_and_gradient differs from value or gradient")
    modulus = np.asarray(loss.strong_convexity)
    require(loss, modulus.shape in ((), loss.batch) and bool((modulus >= 0).all()), "strong_convexity has a wrong form")
    middle = loss.value((x[:-1] + x[1:]) / 2)
    gap = (value[:-1] + value[1:]) / 2 - middle - modulus / 8 * np.square(x[:-1] - x[1:]).sum(axis=-1)
    enough = gap >= -TOL * np.abs(value).max(axis=0)
    require(loss, bool(enough.all()), "the loss is less strongly convex than it says")
