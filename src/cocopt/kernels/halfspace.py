"""Hinge prox over a box or a ball with a single row; with max_multiplier = inf, the projection onto K ∩ {⟨a, x⟩ ≤ b}.

Solves argmin over x in K of ½‖x − y‖² + max_multiplier·(⟨a, x⟩ − b)^+ and returns x, the multiplier ν in
[0, max_multiplier] and a status. When no point of K satisfies the row (and max_multiplier = inf), x is the point of K
of least violation nearest to y.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order, njit
from cocopt.kernels._vector import WIDTH, larger, load, save, size, smaller, spread, where
from cocopt.kernels._vector import root as root_of
from cocopt.kernels.lanes import along, lines
from cocopt.kernels.line import (
    MANY_COORDINATES,
    Line,
    estimate_bracket,
    find_root,
    find_root_many,
    limit_at_infinity,
    split_coordinates,
    sums_at_zero,
    value_and_slope,
)
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip, dot
from cocopt.tolerances import FAR_TARGET, FEASIBILITY, ROUNDING

__all__ = ["ball_halfspace", "box_halfspace", "box_halfspace_in_step"]

TRIES = 12  # of the multiplier where eight trials go in step; what is not found then is found alone


@njit
def check_start(line, sums, eps):
    """(CONVERGED if x(0) satisfies the row, UNCONVERGED if not, or NONFINITE; the tolerance for h)."""
    h, b = sums.inner - line.b, line.b
    if not (sums.a_sq + sums.y_sq < np.inf and (abs(h) < np.inf or b == np.inf)):
        return NONFINITE, 0.0
    if h <= eps * abs(b) or h * h <= eps * eps * sums.a_sq * sums.x_sq:
        return CONVERGED, 0.0
    return UNCONVERGED, eps * (np.sqrt(sums.a_sq * (sums.x_sq + sums.y_sq)) + abs(b))


class Search(NamedTuple):
    """What is known of the multiplier of one row."""

    verdict: Any  # as of `check_start`
    nu: Any
    h: Any  # h(ν)
    tol: Any  # what |h| may be for rounding
    sums: Any


@njit
def find_multiplier(line, max_multiplier, eps):
    """The root of h, for few coordinates."""
    sums = sums_at_zero(line)
    verdict, tol = check_start(line, sums, eps)
    nu, h = 0.0, sums.inner - line.b
    if verdict == UNCONVERGED:
        nu, h = find_root(line, max_multiplier, tol, h, sums.slope)
    return Search(verdict, nu, h, tol, sums)


@njit
def find_multiplier_many(line, max_multiplier, eps):
    """The same for many coordinates. Memory is the bottleneck: one pass computes both the sums and the pieces."""
    bracket = estimate_bracket(line, max_multiplier)
    changing = np.empty(line.y.shape[0] + 1, dtype=np.int32)
    sums, pieces = split_coordinates(line, bracket[0], bracket[1], changing)
    verdict, tol = check_start(line, sums, eps)
    nu, h = 0.0, sums.inner - line.b
    if verdict == UNCONVERGED:
        nu, h = find_root_many(line, max_multiplier, tol, sums, bracket, pieces, changing)
    return Search(verdict, nu, h, tol, sums)


@borrowing
def move_and_clip(line, nu, x):
    """x = clip(y − ν a); returns ‖x‖²."""
    y, lower, upper, a, _ = line
    square = 0.0
    for j in range(y.shape[0]):
        p = clip(y[j] - nu * a[j], lower[j], upper[j])
        x[j] = p
        square += p * p
    return square


@borrowing
def least_point(line, x):
    """Of the points that minimise ⟨a, x⟩ over the box the one nearest to y; returns ‖x‖²."""
    y, lower, upper, a, _ = line
    square = 0.0
    for j in range(y.shape[0]):
        x[j] = lower[j] if a[j] > 0.0 else upper[j] if a[j] < 0.0 else clip(y[j], lower[j], upper[j])
        square += x[j] * x[j]
    return square


@borrowing
def project_again(line, tol, x):
    """Projects x, which nearly satisfies the row, once more: y − ν a had lost digits that x can have."""
    _, lower, upper, a, b = line
    near = Line(x, lower, upper, a, b)
    h, slope = value_and_slope(near, 0.0)
    if h > tol:
        step, _ = find_root(near, np.inf, tol, h, slope)
        for j in range(x.shape[0]):
            x[j] = clip(x[j] - step * a[j], lower[j], upper[j])


@njit
def box_row_prox(line, max_multiplier, x):
    """The prox of one trial in x; returns (ν, status)."""
    n, b = line.y.shape[0], line.b
    eps = rounding(n)
    if n < MANY_COORDINATES:
        verdict, nu, h, tol, sums = find_multiplier(line, max_multiplier, eps)
    else:
        verdict, nu, h, tol, sums = find_multiplier_many(line, max_multiplier, eps)
    if verdict != UNCONVERGED:
        for j in range(n):
            x[j] = clip(line.y[j], line.lower[j], line.upper[j])
        return nu, verdict
    x_sq = move_and_clip(line, nu, x)
    if nu == max_multiplier:
        return nu, CONVERGED
    if not abs(h) <= 16.0 * tol:
        least = limit_at_infinity(line)
        if least > -tol:
            x_sq = least_point(line, x)
            empty = least > FEASIBILITY * (np.sqrt(sums.a_sq * x_sq) + abs(b))
            return np.inf, INFEASIBLE if empty else CONVERGED
        return nu, UNCONVERGED
    if sums.y_sq > FAR_TARGET * FAR_TARGET * x_sq:
        project_again(line, eps * (np.sqrt(sums.a_sq * x_sq) + abs(b)), x)
    return nu, CONVERGED


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


@in_order
def eight(eps, lower, upper, memory, at):
    """The prox of all lanes, whose targets, rows, right sides and caps are in memory; says who is done."""
    n, zero, one = at.z - at.y, spread(0.0), spread(1.0)
    right, cap = load(memory, at.right), load(memory, at.label)
    inner, slope, a_sq, x_sq, y_sq = zero, zero, zero, zero, zero
    for j in range(n):
        z, a = load(memory, at.z + j), load(memory, at.a + j)
        x = smaller(larger(z, spread(lower[j])), spread(upper[j]))
        save(memory, at.x + j, x)
        inner, a_sq, x_sq, y_sq = inner + a * x, a_sq + a * a, x_sq + x * x, y_sq + z * z
        free = where(x == z, a, zero)
        slope = slope + free * free
    h = inner - right
    met = (h <= size(right) * eps) | (h * h <= a_sq * x_sq * (eps * eps))
    tol = (root_of(a_sq * (x_sq + y_sq)) + size(right)) * eps
    guess = smaller(where(slope > 0.0, h / larger(slope, spread(1e-150)), h / larger(a_sq, spread(1e-150))), cap)
    nu, good = along(TRIES, h, tol, cap, where(met, zero, guess), met, lower, upper, memory, at)
    square = zero
    for j in range(n):
        x = load(memory, at.z + j) - nu * load(memory, at.a + j)
        x = smaller(larger(x, spread(lower[j])), spread(upper[j]))
        save(memory, at.x + j, x)
        square = square + x * x
    near = met | ((y_sq <= square * (FAR_TARGET * FAR_TARGET)) & (square < np.inf))
    save(memory, at.done, where(good & near, one, zero))
    save(memory, at.nu, nu)


@guvectorize(
    [
        "float64[:,::1], float64[::1], float64[::1], float64[:,::1], float64[::1], float64[::1], float64[:,::1], "
        "float64[:,::1], float64[::1], int64[::1]"
    ],
    "(t,n),(n),(n),(p,n),(p),(q),(v,e)->(t,n),(t),(t)",
)
def box_halfspace_in_step(y, lower, upper, a, b, cap, memory, x, nu, status):
    """As `box_halfspace` for t trials, eight at a time, which may share (a, b) or the cap; memory for one row."""
    trials, n = y.shape
    at, eps = lines(1, n), rounding(n)
    for first in range(0, trials, WIDTH):
        count = min(WIDTH, trials - first)
        for lane in range(WIDTH):
            t = first + min(lane, count - 1)
            own, total = t if a.shape[0] > 1 else 0, 0.0
            for j in range(n):
                memory[at.z + j, lane], memory[at.a + j, lane] = y[t, j], a[own, j]
                total += y[t, j] * y[t, j] + a[own, j] * a[own, j]
            memory[at.right, lane], memory[at.label, lane] = b[own], cap[t if cap.shape[0] > 1 else 0]
            memory[at.trial, lane] = 1.0 if total < np.inf and b[own] > -np.inf else 0.0
            if memory[at.trial, lane] == 0.0:  # (vector code would warn of what is not finite)
                memory[at.right, lane] = 0.0
                for j in range(n):
                    memory[at.z + j, lane], memory[at.a + j, lane] = 0.0, 0.0
        eight(eps, lower, upper, memory, at)
        for lane in range(count):
            t = first + lane
            own = t if a.shape[0] > 1 else 0
            nu[t], status[t] = memory[at.nu, lane], CONVERGED
            for j in range(n):
                x[t, j] = memory[at.x + j, lane]
            if memory[at.trial, lane] == 0.0:
                status[t] = NONFINITE
            elif memory[at.done, lane] == 0.0:
                most = cap[t if cap.shape[0] > 1 else 0]
                nu[t], status[t] = box_row_prox(Line(y[t], lower, upper, a[own], b[own]), most, x[t])


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
    c, d_sq = 0.0, 0.0
    for j in range(x.shape[0]):
        c += a[j] * (x[j] - center[j])
    c /= max(a_sq, 1e-300)
    for j in range(x.shape[0]):
        x[j] -= center[j] + c * a[j]
        d_sq += x[j] * x[j]
    stretch = rim / max(np.sqrt(d_sq), 1e-300)
    for j in range(x.shape[0]):
        x[j] = center[j] + foot * a[j] + stretch * x[j]


@borrowing
def ball_row_prox(trial, max_multiplier, x):
    """The prox of one trial in x, in closed form: inside, on the sphere, on the plane, or on both. Returns (ν, status).

    The four cases follow one another, hence its length.
    """
    radius, b = trial.radius, trial.b
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
    c, d_sq = split_along_row(trial, products)
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
    return (az / norm_a - height * d_norm / max(rim, 1e-300)) / norm_a if rim > 0.0 else np.inf, CONVERGED


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def ball_halfspace(y, center, radius, a, b, max_multiplier, x, nu, status):
    """K = {‖x − center‖ ≤ radius}."""
    nu[0], status[0] = ball_row_prox(BallRow(y, center, radius, a, b), max_multiplier, x)
