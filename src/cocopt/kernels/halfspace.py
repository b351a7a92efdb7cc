"""Hinge prox over a box or a ball with a single row; with cap = inf, the projection onto K ∩ {⟨a, x⟩ ≤ b}.

Solves argmin over x in K of ½‖x − y‖² + cap·(⟨a, x⟩ − b)^+ and returns x, the multiplier ν in [0, cap] and a status.
When no point of K satisfies the row (and cap = inf), x is the point of K of least violation nearest to y.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.line import LONG, bracket, clip, descend, limit, long_root, look, root, sums
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.tolerances import FAR_TARGET, FEASIBILITY, ROUNDING

__all__ = ["ball_halfspace", "box_halfspace"]


@njit
def first_look(b, inner, a_sq, x_sq, y_sq, eps):
    """(CONVERGED if x(0) satisfies the row, UNCONVERGED if not, or NONFINITE; the tolerance for h)."""
    h = inner - b
    if not (a_sq + y_sq < np.inf and (abs(h) < np.inf or b == np.inf)):
        return NONFINITE, 0.0
    if h <= eps * abs(b) or h * h <= eps * eps * a_sq * x_sq:
        return CONVERGED, 0.0
    return UNCONVERGED, eps * (np.sqrt(a_sq * (x_sq + y_sq)) + abs(b))


@njit
def long_search(y, lower, upper, a, b, cap, eps):
    """(verdict, ν, h(ν), tolerance, ‖a‖², ‖y‖²); memory is the bottleneck, so the first look is at a bracket too."""
    lo, hi = bracket(y, lower, upper, a, b, cap)
    others = np.empty(y.shape[0] + 1, dtype=np.int32)
    (inner, slope, a_sq, x_sq, y_sq), found = look(y, lower, upper, a, lo, hi, others)
    verdict, tol = first_look(b, inner, a_sq, x_sq, y_sq, eps)
    nu, h = 0.0, inner - b
    if verdict == UNCONVERGED:
        nu, h = long_root(y, lower, upper, a, b, cap, tol, h, slope, lo, hi, others, found)
    return verdict, nu, h, tol, a_sq, y_sq


@njit
def in_box(y, lower, upper, a, b, cap, x):
    """The prox of one trial in x; returns (ν, status)."""
    n = y.shape[0]
    eps = rounding(n)
    if n < LONG:
        inner, slope, a_sq, x_sq, y_sq = sums(y, lower, upper, a)
        verdict, tol = first_look(b, inner, a_sq, x_sq, y_sq, eps)
        nu, h = 0.0, inner - b
        if verdict == UNCONVERGED:
            nu, h = root(y, lower, upper, a, b, cap, tol, h, slope)
    else:
        verdict, nu, h, tol, a_sq, y_sq = long_search(y, lower, upper, a, b, cap, eps)
    if verdict != UNCONVERGED:
        for j in range(n):
            x[j] = clip(y[j], lower[j], upper[j])
        return nu, verdict
    x_sq = 0.0
    for j in range(n):
        p = clip(y[j] - nu * a[j], lower[j], upper[j])
        x[j] = p
        x_sq += p * p
    if nu == cap:
        return nu, CONVERGED
    if not abs(h) <= 16.0 * tol:
        least = limit(lower, upper, a, b)
        if least > -tol:
            x_sq = 0.0
            for j in range(n):  # of the points that minimise ⟨a, x⟩ over the box the one nearest to y
                x[j] = lower[j] if a[j] > 0.0 else upper[j] if a[j] < 0.0 else clip(y[j], lower[j], upper[j])
                x_sq += x[j] * x[j]
            return np.inf, INFEASIBLE if least > FEASIBILITY * (np.sqrt(a_sq * x_sq) + abs(b)) else CONVERGED
        return nu, UNCONVERGED
    if y_sq > FAR_TARGET * FAR_TARGET * x_sq:
        # y − ν a has lost digits that x can have: project the result, which is near, once more
        tol = eps * (np.sqrt(a_sq * x_sq) + abs(b))
        h, slope = descend(x, lower, upper, a, b, 0.0)
        if h > tol:
            step, h = root(x, lower, upper, a, b, np.inf, tol, h, slope)
            for j in range(n):
                x[j] = clip(x[j] - step * a[j], lower[j], upper[j])
    return nu, CONVERGED


@guvectorize(
    [
        "float64[::1], float64[::1], float64[::1], float64[::1], float64, float64, "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n),(n),(),()->(n),(),()",
)
def box_halfspace(y, lower, upper, a, b, cap, x, nu, status):
    """K = {lower ≤ x ≤ upper}."""
    nu[0], status[0] = in_box(y, lower, upper, a, b, cap, x)


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def ball_halfspace(y, center, radius, a, b, cap, x, nu, status):
    """K = {‖x − center‖ ≤ radius}, in closed form: inside, on the sphere, on the plane, or on both."""
    n = y.shape[0]
    a_sq, z_sq, az, ac, c_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        z = y[j] - center[j]
        a_sq += a[j] * a[j]
        z_sq += z * z
        az += a[j] * z
        ac += a[j] * center[j]
        c_sq += center[j] * center[j]
    nu[0] = 0.0
    status[0] = CONVERGED
    if not (a_sq + z_sq < np.inf and b > -np.inf):
        status[0] = NONFINITE
        for j in range(n):
            x[j] = np.nan
        return
    norm, z_norm = np.sqrt(a_sq), np.sqrt(z_sq)
    shrink = 1.0 if z_norm <= radius * (1.0 + ROUNDING) else radius / max(z_norm, 1e-300)
    offset = b - ac  # the row reads ⟨a, x − center⟩ ≤ offset
    tol = rounding(n) * (norm * (np.sqrt(c_sq) + min(z_norm, radius)) + abs(b))
    if b == np.inf or shrink * az - offset <= tol:
        if shrink == 1.0:
            for j in range(n):
                x[j] = y[j]
        else:
            for j in range(n):
                x[j] = center[j] + shrink * (y[j] - center[j])
        return
    if cap < np.inf:
        w_sq, aw = 0.0, 0.0
        for j in range(n):
            w = y[j] - center[j] - cap * a[j]
            w_sq += w * w
            aw += a[j] * w
        w_norm = np.sqrt(w_sq)
        shrink = 1.0 if w_norm <= radius else radius / max(w_norm, 1e-300)
        if shrink * aw >= offset:
            nu[0] = cap
            for j in range(n):
                x[j] = center[j] + shrink * (y[j] - center[j] - cap * a[j])
            return
    if offset <= -radius * norm + tol:
        unit = radius / max(norm, 1e-300)
        for j in range(n):
            x[j] = center[j] - unit * a[j]
        if norm == 0.0:
            shrink = 1.0 if z_norm <= radius else radius / max(z_norm, 1e-300)
            for j in range(n):
                x[j] = center[j] + shrink * (y[j] - center[j])
        nu[0] = np.inf
        least = -radius * norm - offset
        status[0] = INFEASIBLE if least > FEASIBILITY * (norm * (np.sqrt(c_sq) + radius) + abs(b)) else CONVERGED
        return
    lossy = ROUNDING * z_norm > 0.01 * FEASIBILITY * radius  # then x loses digits that it can have
    # z = across·a + d with d in the plane; where that loses digits to cancellation, once more from d itself
    foot, height = offset / max(a_sq, 1e-300), offset / max(norm, 1e-300)
    across = az / max(a_sq, 1e-300)
    d_sq = z_sq - across * az
    if d_sq < 0.01 * z_sq:
        ad, d_sq = 0.0, 0.0
        for j in range(n):
            ad += a[j] * (y[j] - center[j] - across * a[j])
        across += ad / max(a_sq, 1e-300)
        for j in range(n):
            d = y[j] - center[j] - across * a[j]
            d_sq += d * d
    if az > offset and d_sq + height * height <= radius * radius:
        nu[0] = (az - offset) / max(a_sq, 1e-300)
        for j in range(n):
            x[j] = y[j] - nu[0] * a[j]
        if lossy:
            ax = 0.0
            for j in range(n):
                ax += a[j] * x[j]
            step = (ax - b) / max(a_sq, 1e-300)
            for j in range(n):
                x[j] -= step * a[j]
        return
    if d_sq == 0.0:
        status[0] = UNCONVERGED
        return
    # On both: the sphere meets the plane in a sphere around foot·a of radius rim, entered along d.
    rim = np.sqrt(max(0.0, (radius - height) * (radius + height)))
    d_norm = np.sqrt(d_sq)
    stretch = rim / max(d_norm, 1e-300)
    back = foot - stretch * across
    for j in range(n):
        x[j] = center[j] + back * a[j] + stretch * (y[j] - center[j])
    nu[0] = (az / norm - height * d_norm / max(rim, 1e-300)) / norm if rim > 0.0 else np.inf
    if lossy:  # once more from x, which is near
        across, d_sq = 0.0, 0.0
        for j in range(n):
            across += a[j] * (x[j] - center[j])
        across /= max(a_sq, 1e-300)
        for j in range(n):
            x[j] -= center[j] + across * a[j]
            d_sq += x[j] * x[j]
        stretch = rim / max(np.sqrt(d_sq), 1e-300)
        for j in range(n):
            x[j] = center[j] + foot * a[j] + stretch * x[j]
