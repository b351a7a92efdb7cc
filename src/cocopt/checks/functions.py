"""Values and subgradients of convex functions, as losses and constraints offer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cocopt.arrays import Array, ArrayLike, as_points, require_finite
from cocopt.checks.base import TOL, as_generator, require
from cocopt.errors import InvalidInput

__all__ = ["check_function", "check_points"]

_POINTS = 20
_REDRAWN = 50  # how often points outside of the domain are drawn anew
_STEP = 1e-6  # of the difference quotient, relative to the point
_SLOPE = 1e-4  # the accuracy of the difference quotient, relative to the gradient
_SMOOTH = 0.8  # the share of points at which a convex function may be expected to be differentiable


def check_points(subject: Any, points: ArrayLike | None, seed: int) -> Array:
    """The points (P, ..., n) to check at: those that are given, or normally distributed ones."""
    rng, dim, batch = as_generator(seed), subject.dim or 2, tuple(subject.batch)
    if points is None:
        drawn = rng.normal(size=(_POINTS, *batch, dim))
        if hasattr(subject, "in_domain"):  # a loss; if its domain is small, points must be given
            for _ in range(_REDRAWN):
                drawn = np.where(subject.in_domain(drawn)[..., None], drawn, rng.normal(size=drawn.shape))
        return drawn
    given = require_finite("points", as_points("points", points, dim))
    if given.shape[1:] != (*batch, dim) or len(given) < 2:
        raise InvalidInput(f"points: expected shape (P, {', '.join(map(str, (*batch, dim)))}), got {given.shape}")
    return given


def check_function(
    subject: object, value: Callable[[Array], Array], gradient: Callable[[Array], Array], x: Array
) -> None:
    """Checks that these are the value and a subgradient of a convex function at the points x (P, ..., n)."""
    given = x.copy()
    f, g = np.asarray(value(x)), np.asarray(gradient(x))
    require(subject, f.shape == x.shape[:-1] and f.dtype == np.float64, "the value has a wrong shape or dtype")
    require(subject, g.shape == x.shape and g.dtype == np.float64, "the gradient has a wrong shape or dtype")
    require(subject, np.array_equal(x, given), "the value or the gradient changes its argument")
    if np.isneginf(f).all():  # all rows of a constraint are switched off
        return
    require(subject, bool(np.isfinite(f).all() and np.isfinite(g).all()), "the value or the gradient is not finite")
    slope = np.linalg.norm(g, axis=-1)
    size = np.abs(f).max(axis=0) + slope.max(axis=0) * np.linalg.norm(x, axis=-1).max(axis=0)
    lower = f[:, None] + np.vecdot(g[:, None], x[None, :] - x[:, None])  # f(x_j) ≥ f(x_i) + ⟨g_i, x_j − x_i⟩
    require(subject, bool((f[None] >= lower - TOL * size).all()), "the subgradient inequality fails")
    length = _STEP * np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300)
    step = length * np.random.default_rng(1).normal(size=x.shape)
    quotient = (value(x + step) - value(x - step)) / 2.0
    smooth = np.abs(quotient - np.vecdot(g, step)) <= _SLOPE * slope * np.linalg.norm(step, axis=-1) + 1e-15 * size
    require(subject, bool(smooth.mean() > _SMOOTH), "the gradient is not the slope of the value")
    for k in range(min(len(x), 3)):
        same = np.abs(value(x[k]) - f[k]) <= 1e-12 * size
        require(subject, bool(same.all()), "the values of several points differ from those of each")
        same = np.linalg.norm(gradient(x[k]) - g[k], axis=-1) <= 1e-12 * slope.max(axis=0)
        require(subject, bool(same.all()), "the gradients of several points differ from those of each")
