"""Hinge prox over a box or a ball with a single row; with max_multiplier = inf, the projection onto K ∩ {⟨a, x⟩ ≤ b}.

Solves argmin over x in K of ½‖x − y‖² + max_multiplier·(⟨a, x⟩ − b)^+ and returns x, the multiplier ν in
[0, max_multiplier] and a status. When no point of K satisfies the row (and max_multiplier = inf), x is the point of K
of least violation nearest to y.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize
from cocopt.kernels.box_row import box_row_prox
from cocopt.kernels.line import Line
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import dot, norm
from cocopt.tolerances import FEASIBILITY, ROUNDING

__all__ = ["BallRow", "ball_halfspace", "ball_row_prox", "box_halfspace"]


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[::1], float64, float64, "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(n),(),()->(n),(),()",
)
def box_halfspace(y, lower, upper, a, b, max_multiplier, x, nu, status):
    """K = {lower ≤ x ≤ upper}."""
    nu[0], status[0] = box_row_prox(Line(y, lower, upper, a, b), max_multiplier, x)


class BallRow(NamedTuple):
    """One trial over a ball: the target, the ball, and the row ⟨a, x⟩ ≤ b."""

    y: Any
    center: Any
    radius: Any
    a: Any
    b: Any


class Products(NamedTuple):
    """Sums over the coordinates, with z = y − center."""

    a_sq: Any  # ‖a‖²
    z_sq: Any  # ‖z‖²
    az: Any  # ⟨a, z⟩
    ac: Any  # ⟨a, center⟩
    c_sq: Any  # ‖center‖²


@borrowing
def inner_products(trial):
    """All sums in one pass."""
    y, center, _, a, _ = trial
    a_sq, z_sq, az, ac, c_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - center[j]
        a_sq += a[j] * a[j]
        z_sq += z * z
        az += a[j] * z
        ac += a[j] * center[j]
        c_sq += center[j] * center[j]
    return Products(a_sq, z_sq, az, ac, c_sq)


@borrowing
def shrink_factor(length, reach, radius):
    """What a vector from the center is multiplied with to end in the ball; 1 up to the length ``reach``."""
    return 1.0 if length <= reach else radius / max(length, 1e-300)


@borrowing
def combine(trial, along_a, along_z, x):
    """x = center + along_a·a + along_z·(y − center)."""
    y, center, _, a, _ = trial
    for j in range(x.shape[0]):
        x[j] = center[j] + along_a * a[j] + along_z * (y[j] - center[j])


@borrowing
def project_onto_ball(trial, shrink, x):
    """x = center + shrink·(y − center), y itself if shrink = 1."""
    y, center, _, _, _ = trial
    if shrink == 1.0:
        for j in range(x.shape[0]):
            x[j] = y[j]
    else:
        for j in range(x.shape[0]):
            x[j] = center[j] + shrink * (y[j] - center[j])


@borrowing
def accept_max_multiplier(trial, max_multiplier, offset, x):
    """Whether the row is still violated, or binds, with its multiplier at the bound; if so, the prox in x."""
    y, center, radius, a, _ = trial
    w_sq, aw = 0.0, 0.0
    for j in range(x.shape[0]):
        w = y[j] - center[j] - max_multiplier * a[j]
        w_sq += w * w
        aw += a[j] * w
    shrink = shrink_factor(np.sqrt(w_sq), radius, radius)
    if not shrink * aw >= offset:
        return False
    for j in range(x.shape[0]):
        x[j] = center[j] + shrink * (y[j] - center[j] - max_multiplier * a[j])
    return True


@borrowing
def least_point_of_ball(trial, norm_a, norm_z, x):
    """The point of the ball that minimises ⟨a, x⟩, the one nearest to y if all do."""
    _, center, radius, a, _ = trial
    if norm_a == 0.0:
        combine(trial, 0.0, shrink_factor(norm_z, radius, radius), x)
        return
    unit = radius / max(norm_a, 1e-300)
    for j in range(x.shape[0]):
        x[j] = center[j] - unit * a[j]


@borrowing
def split_along_row(trial, products):
    """(c, ‖d‖²) of y − center = c·a + d with ⟨a, d⟩ = 0; where that cancels digits, d is split once more."""
    y, center, _, a, _ = trial
    a_sq, z_sq, az, _, _ = products
    c = az / max(a_sq, 1e-300)
    d_sq = z_sq - c * az
    if d_sq < 0.01 * z_sq:
        ad, d_sq = 0.0, 0.0
        for j in range(y.shape[0]):
            ad += a[j] * (y[j] - center[j] - c * a[j])
        c += ad / max(a_sq, 1e-300)
        for j in range(y.shape[0]):
            d = y[j] - center[j] - c * a[j]
            d_sq += d * d
    return c, d_sq


@borrowing
def project_onto_plane(trial, nu, a_sq, far, x):
    """x = y − ν a on the plane ⟨a, x⟩ = b; from far away projected twice."""
    y, _, _, a, b = trial
    for j in range(x.shape[0]):
        x[j] = y[j] - nu * a[j]
    if far:
        step = (dot(a, x) - b) / max(a_sq, 1e-300)
        for j in range(x.shape[0]):
            x[j] -= step * a[j]


@borrowing
def project_again_onto_rim(trial, foot, rim, a_sq, x):
    """Moves x, which is near, to the sphere in the plane around center + foot·a of radius ``rim``."""
    _, center, _, a, _ = trial
    c = 0.0
    for j in range(x.shape[0]):
        c += a[j] * (x[j] - center[j])
    c /= max(a_sq, 1e-300)
    for j in range(x.shape[0]):
        x[j] -= center[j] + c * a[j]
    stretch = rim / max(norm(x), 1e-300)
    for j in range(x.shape[0]):
        x[j] = center[j] + foot * a[j] + stretch * x[j]


@borrowing
def ball_row_prox(trial, max_multiplier, x):
    """The prox of one trial in x, in closed form: inside, on the sphere, on the plane, or on both. Returns (ν, status).

    The four cases follow one another, hence its length.
    """
    radius, a, b = trial.radius, trial.a, trial.b
    products = inner_products(trial)
    a_sq, z_sq, az, ac, c_sq = products
    if not (a_sq + z_sq < np.inf and b > -np.inf):
        for j in range(x.shape[0]):
            x[j] = np.nan
        return 0.0, NONFINITE
    norm_a, norm_z, norm_c = np.sqrt(a_sq), np.sqrt(z_sq), np.sqrt(c_sq)
    shrink = shrink_factor(norm_z, radius * (1.0 + ROUNDING), radius)
    offset = b - ac  # the row reads ⟨a, x − center⟩ ≤ offset
    tol = rounding(x.shape[0]) * (norm_a * (norm_c + min(norm_z, radius)) + abs(b))
    if b == np.inf or shrink * az - offset <= tol:
        project_onto_ball(trial, shrink, x)
        return 0.0, CONVERGED
    if max_multiplier < np.inf and accept_max_multiplier(trial, max_multiplier, offset, x):
        return max_multiplier, CONVERGED
    if offset <= -radius * norm_a + tol:
        least_point_of_ball(trial, norm_a, norm_z, x)
        empty = -radius * norm_a - offset > FEASIBILITY * (norm_a * (norm_c + radius) + abs(b))
        return np.inf, INFEASIBLE if empty else CONVERGED
    far = ROUNDING * norm_z > 0.01 * FEASIBILITY * radius  # then x loses digits that it can have
    height = offset / max(norm_a, 1e-300)  # of the plane above the center
    c, d_sq = split_along_row(trial, products)  # (d is 0 on a line, where nothing is orthogonal to a)
    d_sq = d_sq if x.shape[0] > 1 else 0.0
    if az > offset and d_sq + height * height <= radius * radius:
        nu = (az - offset) / max(a_sq, 1e-300)
        project_onto_plane(trial, nu, a_sq, far, x)
        return nu, CONVERGED
    if d_sq == 0.0:
        return 0.0, UNCONVERGED
    # The sphere meets the plane in a sphere around center + foot·a of radius rim; x is where d points to.
    foot, rim = offset / max(a_sq, 1e-300), np.sqrt(max(0.0, (radius - height) * (radius + height)))
    d_norm = np.sqrt(d_sq)
    stretch = rim / max(d_norm, 1e-300)
    combine(trial, foot - stretch * c, stretch, x)
    if far:
        project_again_onto_rim(trial, foot, rim, a_sq, x)
        excess = (dot(a, x) - b) if b < np.inf else 0.0
        if excess > 0.5 * FEASIBILITY * max(norm_a * (norm_c + radius), abs(b)):
            return 0.0, UNCONVERGED
    return (az / norm_a - height * d_norm / max(rim, 1e-300)) / norm_a if rim > 0.0 else np.inf, CONVERGED


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def ball_halfspace(y, center, radius, a, b, max_multiplier, x, nu, status):
    """K = {‖x − center‖ ≤ radius}."""
    nu[0], status[0] = ball_row_prox(BallRow(y, center, radius, a, b), max_multiplier, x)
