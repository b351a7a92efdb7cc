"""An ellipsoid, and a norm ball or one affine row.

In the frame of the axes, z = Uᵀ(x − k), the projection of v is z_i = v_i σ_i²/(σ_i² + λ), where λ = 0 inside and else
the root of the secular equation Σ (σ_i v_i/(σ_i² + λ))² = 1. Both rows lead to the projections of the points of a line,
v = p + θ q, as in `cocopt.kernels.curved.l1_ball`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, in_order, njit
from cocopt.kernels.curved import multiplier
from cocopt.kernels.curved.multiplier import advance_multiplier, whole
from cocopt.kernels.curved.path import (
    MAX_STEPS,
    advance,
    begin,
    between,
    judge,
    multiplier_at,
    recoverable,
    resolves,
    row_of,
    tangent_status,
)
from cocopt.kernels.far_targets import move_target_closer
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import distance, dot, norm
from cocopt.tolerances import FEASIBILITY

__all__ = ["ellipsoid_halfspace", "ellipsoid_norm_ball"]


class Frame(NamedTuple):
    """An ellipsoid: its center k, its axes U (columns) and half their lengths σ."""

    center: Any
    axes: Any
    sigma: Any


class Line(NamedTuple):
    """The points v = p + θ q in the frame of the axes, and σ."""

    p: Any
    q: Any
    sigma: Any


class Model(NamedTuple):
    """The projection z of v."""

    lam: Any  # λ
    d_sq: Any  # ‖z − p‖²
    d_slope: Any  # half the derivative of that in θ
    qz: Any  # ⟨q, z⟩
    qz_slope: Any  # its derivative in θ
    gauge: Any  # √Σ (z_i/σ_i)²
    removed: Any  # ‖v − z‖


@borrowing
def _rotate(axes, u, v, z):
    """z = Uᵀ(u − v)."""
    for i in range(z.shape[0]):
        z[i] = 0.0
    for j in range(z.shape[0]):
        w, row = u[j] - v[j], axes[j]
        for i in range(z.shape[0]):
            z[i] += w * row[i]


@borrowing
def _gauge(line, theta, lam):
    """√φ(λ) − 1 and the slope of φ^(−1/2), for Newton's method, with φ(λ) = Σ (σ_i v_i/(σ_i² + λ))²."""
    p, q, sigma = line
    phi, slope = 0.0, 0.0
    for i in range(p.shape[0]):
        inverse = 1.0 / (sigma[i] * sigma[i] + lam)
        term = sigma[i] * (p[i] + theta * q[i]) * inverse
        phi += term * term
        slope += term * term * inverse
    return phi, slope


@borrowing
def _lower_bound(line, theta):
    """What each term of φ alone says about λ."""
    p, q, sigma = line
    bound = 0.0
    for i in range(p.shape[0]):
        alone = sigma[i] * (abs(p[i] + theta * q[i]) - sigma[i])
        bound = alone if alone > bound else bound
    return bound


@njit
def _secular_root(line, theta, lam):
    """λ at θ, from a first guess.

    φ^(−1/2) is concave, so Newton's method climbs to the root and never passes it, once it is below.
    """
    low = _lower_bound(line, theta)
    lam = max(lam, low)
    tol = rounding(line.p.shape[0])
    for _ in range(100):
        phi, slope = _gauge(line, theta, lam)
        excess = np.sqrt(phi) - 1.0
        if abs(excess) <= tol or (excess < 0.0 and lam <= low):
            break
        lam = max(lam + excess * phi / max(slope, 1e-300), low)
    return lam


@njit
def _model(line, theta, lam):
    """The projection of v at θ, from a first guess of λ."""
    lam = _secular_root(line, theta, lam)
    p, q, sigma = line
    d_sq, along, across, qz, qq, turn, bend, gauge, removed = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(p.shape[0]):
        square = sigma[i] * sigma[i]
        inverse = 1.0 / (square + lam)
        shrink = square * inverse
        z = (p[i] + theta * q[i]) * shrink
        d, u, w = z - p[i], z / sigma[i], lam * (p[i] + theta * q[i]) * inverse
        d_sq += d * d
        along += d * shrink * q[i]
        across += d * z * inverse
        qz += q[i] * z
        qq += shrink * q[i] * q[i]
        turn += z * q[i] * inverse
        bend += u * u * inverse
        gauge += u * u
        removed += w * w
    change = turn / max(bend, 1e-300) if lam > 0.0 else 0.0  # dλ/dθ
    return Model(lam, d_sq, along - change * across, qz, qq - change * turn, np.sqrt(gauge), np.sqrt(removed))


@in_order
def _store(frame, line, theta, lam, x):
    """x = k + U z; z takes the place of p."""
    p, q, sigma = line
    for i in range(x.shape[0]):
        square = sigma[i] * sigma[i]
        p[i] = (p[i] + theta * q[i]) * (square / (square + lam))
    for j in range(x.shape[0]):
        x[j] = frame.center[j] + dot(frame.axes[j], p)


@borrowing
def _sum_of_sizes(u, v):
    """Σ|u| + Σ|v|, which is not finite if some number is not."""
    total = 0.0
    for j in range(u.shape[0]):
        total += abs(u[j]) + abs(v[j])
    return total


# Its complexity exceeds the guide by little: the cases follow one another.
@borrowing
def _solve_norm_ball(y, frame, c, radius, max_multiplier, memory, x):
    """One trial; returns (ν, status)."""
    n, sigma = x.shape[0], frame.sigma
    if not (_sum_of_sizes(y, c) < np.inf and radius > -np.inf and max_multiplier >= 0.0):
        for j in range(n):
            x[j] = np.nan
        return 0.0, NONFINITE
    line = Line(memory[0], memory[1], sigma)
    _rotate(frame.axes, c, frame.center, line.p)
    _rotate(frame.axes, y, c, line.q)
    size = max(norm(c), norm(frame.center) + sigma[0])
    row = row_of(n, 0.0 if radius == np.inf else radius, max_multiplier, size)
    off = max_multiplier == 0.0 or radius == np.inf
    model = _model(line, 1.0, 0.0)
    if off or np.sqrt(model.d_sq) <= radius + row.tol:
        if model.removed <= row.tol:
            for j in range(n):
                x[j] = y[j]
        else:
            _store(frame, line, 1.0, model.lam, x)
        return 0.0, CONVERGED
    at_center = _model(line, 0.0, 0.0)
    nearest = np.sqrt(at_center.d_sq)
    if nearest >= row.radius - row.tol and max_multiplier == np.inf:
        if at_center.lam > 0.0:
            _store(frame, line, 0.0, at_center.lam, x)
        else:
            for j in range(n):
                x[j] = c[j]
        return np.inf, tangent_status(radius, distance(x, c), max(norm(x), norm(c)))
    interval, t = begin(row, nearest, norm(line.q)), 1.0
    for _ in range(MAX_STEPS):
        t, interval, done = advance(row, interval, t, model.d_sq, max(model.d_slope, 0.0) / max(t, 1e-300))
        model = _model(line, t, model.lam)
        if done:
            break
    if model.lam > 0.0:
        _store(frame, line, t, model.lam, x)
    else:
        between(c, y, t, x)
    d = distance(x, c)
    inside = model.gauge <= 1.0 + 4.0 * rounding(n)
    return multiplier_at(row, t, d), judge(row, t, d) if inside else UNCONVERGED


@guvectorize(
    [
        "float64[::1], float64[::1], float64[:,::1], float64[::1], float64[::1], float64, float64, "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n,n),(n),(n),(),()->(n),(),()",
)
def ellipsoid_norm_ball(y, center, axes, sigma, c, radius, max_multiplier, x, nu, status):
    """K = {Σ (Uᵀ(x − center))_i²/σ_i² ≤ 1}, the row ‖x − c‖ ≤ radius."""
    memory = np.empty((3, y.shape[0]))
    frame = Frame(center, axes, sigma)
    target, tau = y, 1.0
    for _ in range(2):
        found, status[0] = _solve_norm_ball(target, frame, c, radius, max_multiplier * tau, memory, x)
        nu[0] = found / tau
        if status[0] != UNCONVERGED or not recoverable(y, x, sigma[0]):
            return
        # a far target costs digits; what was found is the projection of a nearer one
        target = memory[2]
        tau = move_target_closer(y, x, sigma[0], target)


@borrowing
def _store_least(frame, line, length, x):
    """x = k − U diag(σ²) Uᵀ a/‖diag(σ) Uᵀ a‖, the point of K at which ⟨a, x⟩ is least; q = −Uᵀa is overwritten."""
    _, q, sigma = line
    for i in range(x.shape[0]):
        q[i] *= sigma[i] * sigma[i] / max(length, 1e-300)
    for j in range(x.shape[0]):
        x[j] = frame.center[j] + dot(frame.axes[j], q)


# Its complexity exceeds the guide by little: the cases follow one another.
@borrowing
def _solve_halfspace(y, frame, row, max_multiplier, memory, x):
    """One trial; returns (ν, status)."""
    n, sigma, (a, b) = x.shape[0], frame.sigma, row
    if not (_sum_of_sizes(y, a) < np.inf and b > -np.inf and max_multiplier >= 0.0):
        for j in range(n):
            x[j] = np.nan
        return 0.0, NONFINITE
    line = Line(memory[0], memory[1], sigma)
    p, q, _ = line
    for j in range(n):
        x[j] = 0.0
    _rotate(frame.axes, y, frame.center, p)
    _rotate(frame.axes, x, a, q)  # −Uᵀa
    eps, size = 4.0 * rounding(n), norm(frame.center) + sigma[0]
    offset, a_norm = dot(a, frame.center) - b, norm(a)
    tol = eps * (a_norm * size + abs(b)) if b < np.inf else 0.0
    off = b == np.inf or max_multiplier == 0.0
    model, nu = _model(line, 0.0, 0.0), 0.0
    if not off and offset - model.qz > tol:
        length = 0.0
        for i in range(n):
            length += (sigma[i] * q[i]) * (sigma[i] * q[i])
        length = np.sqrt(length)
        least = offset - length
        if max_multiplier == np.inf and least >= -tol:
            if length == 0.0:
                return np.inf, UNCONVERGED  # a = 0: every point of K is one of least violation
            _store_least(frame, line, length, x)
            return np.inf, INFEASIBLE if least > FEASIBILITY * (a_norm * size + abs(b)) else CONVERGED
        unit, bracket = (norm(p) + sigma[0]) / max(a_norm, 1e-300), whole(max_multiplier)
        for _ in range(multiplier.MAX_STEPS):
            h = offset - model.qz
            newton = nu + h / max(model.qz_slope, 1e-300) if model.qz_slope > 0.0 else np.inf
            nu, bracket, over = advance_multiplier(bracket, nu, h, newton, unit, tol)
            model = _model(line, nu, model.lam)
            if over:
                break
    if model.removed > eps * size:
        _store(frame, line, nu, model.lam, x)
    else:
        for j in range(n):
            x[j] = y[j] - nu * a[j]
    h = dot(a, x) - b if not off else 0.0
    solved = (nu == 0.0 and h <= tol) or abs(h) <= 16.0 * tol or (nu == max_multiplier and h >= -16.0 * tol)
    fine = model.gauge <= 1.0 + eps and (nu == 0.0 or resolves(norm(line.q) * nu + distance(y, frame.center), size))
    return nu, CONVERGED if solved and fine else UNCONVERGED


@guvectorize(
    [
        "float64[::1], float64[::1], float64[:,::1], float64[::1], float64[::1], float64, float64, "
        "float64[::1], float64[::1], int64[::1]"
    ],
    "(n),(n),(n,n),(n),(n),(),()->(n),(),()",
)
def ellipsoid_halfspace(y, center, axes, sigma, a, b, max_multiplier, x, nu, status):
    """K = {Σ (Uᵀ(x − center))_i²/σ_i² ≤ 1}, the row ⟨a, x⟩ ≤ b."""
    memory = np.empty((3, y.shape[0]))
    frame = Frame(center, axes, sigma)
    target, tau = y, 1.0
    for _ in range(2):
        found, status[0] = _solve_halfspace(target, frame, (a, b), max_multiplier * tau, memory, x)
        nu[0] = found / tau
        if status[0] != UNCONVERGED or found == np.inf or not recoverable(y, x, sigma[0]):
            return
        target = memory[2]
        tau = move_target_closer(y, x, sigma[0], target)
