"""Projections onto a set and one curved or affine row by bisection, written to be obviously right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reference.projections import Array

Projector = Callable[[Array], Array]


def norm_ball_prox(project: Projector, y: Array, center: Array, radius: float, weight: float = np.inf) -> Array:
    """argmin over K of ½‖x − y‖² + weight·(‖x − center‖ − radius)^+, K known by its projection.

    The projections of the points between the center (t = 0) and y (t = 1) come nearer to the center as t falls, and the
    multiplier d(1 − t)/t of the row grows: t falls from 1 until the row is satisfied or its multiplier is the weight.
    """
    x = project(y)
    if np.linalg.norm(x - center) <= radius or weight == 0.0:
        return x
    low, high = 0.0, 1.0
    while low < (t := 0.5 * (low + high)) < high:
        x = project(center + t * (y - center))
        d = float(np.linalg.norm(x - center))
        if d > radius and d * (1.0 - t) < weight * t:
            high = t
        else:
            low = t
    return project(center + low * (y - center))


def multiplier_prox(point_at: Callable[[float], Array], row: Callable[[Array], float], weight: float = np.inf) -> Array:
    """x(ν) with the least multiplier ν ≤ weight at which the row is satisfied, x(weight) if there is none."""
    if row(point_at(0.0)) <= 0.0:
        return point_at(0.0)
    low, high = 0.0, min(1.0, weight)
    while high < weight and row(point_at(high)) > 0.0:
        low, high = high, min(2.0 * high, weight)
    while low < (nu := 0.5 * (low + high)) < high:
        if row(point_at(nu)) > 0.0:
            low = nu
        else:
            high = nu
    return point_at(high)


def onto_box(lower: Array, upper: Array) -> Projector:
    """Coordinate by coordinate."""
    return lambda v: np.minimum(np.maximum(v, lower), upper)


def onto_ball(center: Array, radius: float) -> Projector:
    """Towards the center."""

    def project(v: Array) -> Array:
        length = float(np.linalg.norm(v - center))
        return v if length <= radius else center + (v - center) * (radius / length)

    return project


def onto_simplex(total: float) -> Projector:
    """max(v − τ, 0): the largest entries stay, as many as are positive with their own τ."""

    def project(v: Array) -> Array:
        v = v - v.max()
        falling = np.sort(v)[::-1]
        sizes = np.arange(1, v.size + 1)
        levels = (np.cumsum(falling) - total) / sizes
        size = int(sizes[falling > levels][-1])
        return np.maximum(v - (falling[:size].sum() - total) / size, 0.0)

    return project


def onto_l1_ball(center: Array, radius: float) -> Projector:
    """Signs, and a simplex of sizes."""

    def project(v: Array) -> Array:
        z = v - center
        return v if np.abs(z).sum() <= radius else center + np.sign(z) * onto_simplex(radius)(np.abs(z))

    return project


def onto_ellipsoid(center: Array, P: Array) -> Projector:
    """c + P(P + λ)⁻¹(v − c), λ by bisection."""
    squares, axes = np.linalg.eigh(P)

    def project(v: Array) -> Array:
        z = axes.T @ (v - center)
        if (z**2 / squares).sum() <= 1.0:
            return v
        low, high = 0.0, float(np.linalg.norm(z) * np.sqrt(squares.max()))
        while low < (lam := 0.5 * (low + high)) < high:
            if (squares * (z / (squares + lam)) ** 2).sum() > 1.0:
                low = lam
            else:
                high = lam
        return center + axes @ (z * squares / (squares + high))

    return project


def norm1_points(lower: Array, upper: Array, total: float | None, center: Array, y: Array) -> Callable[[float], Array]:
    """ν ↦ argmin of ½‖x − y‖² + ν‖x − center‖₁ within bounds, Σ x = total unless that is None; by bisection on λ."""

    def point_at(nu: float) -> Array:
        def shifted(shift: float) -> Array:
            z = y - shift - center
            v = center + np.sign(z) * np.maximum(np.abs(z) - nu, 0.0)
            return np.minimum(np.maximum(v, lower), upper)

        if total is None:
            return shifted(0.0)
        reach = 10.0 * (1.0 + nu + float(np.abs(y).max() + np.abs(center).max()) + abs(total))
        low, high = -reach, reach
        while low < (shift := 0.5 * (low + high)) < high:
            low, high = (shift, high) if shifted(shift).sum() > total else (low, shift)
        return shifted(high)

    return point_at
