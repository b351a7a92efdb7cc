"""A ball of the 1-norm, and a norm ball or one affine row.

P_K(k + v) = k + sign(v)·max(|v| − τ, 0), where τ = 0 inside and else makes the entries' sizes add up to the radius
(Duchi et al. 2008); it is found as in `cocopt.kernels.curved.simplex`. Both rows lead to the projections of the points
of a line, v = p + θ q: from the center of the norm ball to the target (θ = t), or from the target against the row's
normal (θ = ν).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, guvectorize, njit
from cocopt.kernels.curved import multiplier
from cocopt.kernels.curved.multiplier import advance_multiplier, whole
from cocopt.kernels.curved.path import (
    MAX_STEPS,
    advance,
    begin,
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
from cocopt.kernels.vectors import dot, norm
from cocopt.tolerances import FEASIBILITY

__all__ = ["l1_ball_halfspace", "l1_ball_norm_ball"]


SLACK = 4.0 * 2.0**-52  # as `cocopt.sets.base.rounding`


class Line(NamedTuple):
    """The points v = p + θ q, measured from the center of K, and K's radius."""

    p: Any
    q: Any
    radius: Any


class Model(NamedTuple):
    """The projection of v, and sums over its support {|v| > τ}, with σ = sign(v)."""

    tau: Any
    size: Any  # of the support
    qx: Any  # ⟨q, x⟩
    q_sq: Any  # the square of q's component along the face that x is on
    at_start: Any  # the squared distance of p from that face's plane


@borrowing
def _sums(line, theta, tau):
    """Over {|v| ≥ τ}: the size, Σσp, Σσq, Σq², Σqv; and Σp² over the others."""
    p, q, _ = line
    size, s_p, s_q, s_qq, s_qv, off = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(p.shape[0]):
        v = p[j] + theta * q[j]
        inside = 1.0 if abs(v) >= tau else 0.0
        sign = inside if v >= 0.0 else -inside
        size += inside
        s_p += sign * p[j]
        s_q += sign * q[j]
        s_qq += inside * q[j] * q[j]
        s_qv += inside * q[j] * v
        off += (1.0 - inside) * p[j] * p[j]
    return size, s_p, s_q, s_qq, s_qv, off


@borrowing
def _highest(line, theta):
    """max |v|."""
    p, q, _ = line
    highest = 0.0
    for j in range(p.shape[0]):
        v = abs(p[j] + theta * q[j])
        highest = v if v > highest else highest
    return highest


@njit
def _model(line, theta, tau):
    """The projection of v at θ, from a first guess of τ."""
    radius = line.radius
    count, size, s_p, s_q, s_qq, s_qv, off = -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for step in range(line.p.shape[0] + 100):
        size, s_p, s_q, s_qq, s_qv, off = _sums(line, theta, tau)
        if size == 0.0:  # no entry exceeds τ: begin where the largest alone adds up to the radius
            tau = max(_highest(line, theta) - radius, 0.0)
            continue
        before, tau = tau, max((s_p + theta * s_q - radius) / size, 0.0)
        if tau == 0.0 and before == 0.0:
            return Model(0.0, size, s_qv, s_qq, 0.0)
        if size == count or (step > 1 and tau <= before):  # after the first step τ only grows, but for rounding
            break
        count = size
    size = max(size, 1.0)
    start, mean = (s_p - radius) / size, s_q / size
    return Model(tau, size, s_qv - tau * s_q, max(s_qq - mean * s_q, 0.0), size * start * start + off)


@borrowing
def _store_from_center(line, theta, tau, x):
    """x = sign(v)·max(|v| − τ, 0)."""
    p, q, _ = line
    for j in range(x.shape[0]):
        v = p[j] + theta * q[j]
        u = abs(v) - tau
        u = u if u > 0.0 else 0.0
        x[j] = u if v >= 0.0 else -u


@borrowing
def _shorten(x, excess):
    """Every entry that is not 0 becomes shorter by the excess; returns Σ|x|."""
    for j in range(x.shape[0]):
        u = abs(x[j]) - excess if x[j] != 0.0 else 0.0
        u = u if u > 0.0 else 0.0
        x[j] = u if x[j] >= 0.0 else -u
    total = 0.0
    for j in range(x.shape[0]):
        total += abs(x[j])
    return total


@njit
def _store(line, center, theta, tau, x):
    """x = P_K(k + v), corrected so that its distance from k in the 1-norm is the radius; returns by how much it is not.

    The correction is spread over the support alone, as τ is.
    """
    radius, s, size = line.radius, 0.0, 0.0
    _store_from_center(line, theta, tau, x)
    for j in range(x.shape[0]):
        s += abs(x[j])
        size += 1.0 if x[j] != 0.0 else 0.0
    s = _shorten(x, (s - radius) / max(size, 1.0) if tau > 0.0 else 0.0)
    for j in range(x.shape[0]):
        x[j] += center[j]
    return abs(s - radius) if tau > 0.0 else s - radius


@borrowing
def _start(u, v, w, line):
    """p = u − v and q = w − u into the line's memory; returns a sum that is not finite if some number is not."""
    p, q, _ = line
    total = 0.0
    for j in range(p.shape[0]):
        p[j] = u[j] - v[j]
        q[j] = w[j] - u[j]
    for j in range(p.shape[0]):
        total += abs(p[j]) + abs(q[j])
    return total


@borrowing
def _norm1_distance(y, center):
    """Σ|y_j − k_j|."""
    total = 0.0
    for j in range(y.shape[0]):
        total += abs(y[j] - center[j])
    return total


@borrowing
def _is_in_set(y, center, radius, size):
    """Whether y is in K as K itself decides: what rounding may add to a sum of so many terms does not count."""
    return _norm1_distance(y, center) - radius <= SLACK * y.shape[0] * size


@borrowing
def _distance_of(x, c):
    """‖x − c‖ and ‖x‖."""
    d_sq, x_sq = 0.0, 0.0
    for j in range(x.shape[0]):
        d_sq += (x[j] - c[j]) * (x[j] - c[j])
        x_sq += x[j] * x[j]
    return np.sqrt(d_sq), np.sqrt(x_sq)


@borrowing
def _d_sq(model, t):
    """The squared distance from the center of the norm ball."""
    return model.at_start + t * t * model.q_sq


# Its complexity exceeds the guide by little: the cases follow one another.
@borrowing
def _solve_norm_ball(y, K, c, radius, max_multiplier, memory, x):
    """One trial; returns (ν, status)."""
    n, (center, K_radius) = x.shape[0], K
    line = Line(memory[0], memory[1], K_radius)
    total = _start(c, center, y, line)
    if not (total < np.inf and radius > -np.inf and max_multiplier >= 0.0):
        for j in range(n):
            x[j] = np.nan
        return 0.0, NONFINITE
    size = max(norm(c), norm(center) + K_radius)
    row = row_of(n, 0.0 if radius == np.inf else radius, max_multiplier, size)
    reach = norm(line.q)
    off = max_multiplier == 0.0 or radius == np.inf
    if (off or reach <= radius + row.tol) and _is_in_set(y, center, K_radius, size):
        for j in range(n):
            x[j] = y[j]
        return 0.0, CONVERGED
    model = _model(line, 1.0, 0.0)
    if off or np.sqrt(_d_sq(model, 1.0)) <= radius + row.tol:
        beyond = _store(line, center, 1.0, model.tau, x)
        fine = beyond <= row.tol and (model.size <= 1.0 or resolves(reach, size))
        return 0.0, CONVERGED if fine else UNCONVERGED
    at_center = _model(line, 0.0, 0.0)
    nearest = np.sqrt(_d_sq(at_center, 0.0))
    if nearest >= row.radius - row.tol and max_multiplier == np.inf:
        _store(line, center, 0.0, at_center.tau, x)
        nearest, x_norm = _distance_of(x, c)
        return np.inf, tangent_status(radius, nearest, max(x_norm, norm(c)))
    interval, t = begin(row, nearest, reach), 1.0
    for _ in range(MAX_STEPS):
        t, interval, done = advance(row, interval, t, _d_sq(model, t), model.q_sq)
        model = _model(line, t, model.tau)
        if done:
            break
    beyond = _store(line, center, t, model.tau, x)
    d, _ = _distance_of(x, c)
    fine = beyond <= row.tol and (model.size <= 1.0 or resolves(t * reach, size))
    return multiplier_at(row, t, d), judge(row, t, d) if fine else UNCONVERGED


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def l1_ball_norm_ball(y, center, K_radius, c, radius, max_multiplier, x, nu, status):
    """K = {Σ|x_j − center_j| ≤ K_radius}, the row ‖x − c‖ ≤ radius."""
    memory = np.empty((3, y.shape[0]))
    target, tau = y, 1.0
    for _ in range(2):
        found, status[0] = _solve_norm_ball(target, (center, K_radius), c, radius, max_multiplier * tau, memory, x)
        nu[0] = found / tau
        if status[0] != UNCONVERGED or not recoverable(y, x, K_radius):
            return
        # a far target costs digits; what was found is the projection of a nearer one
        target = memory[2]
        tau = move_target_closer(y, x, K_radius, target)


@borrowing
def _is_nearest_corner(a, a_max, K, x):
    """x = the corner of K where ⟨a, x⟩ is least; whether it is the only such point."""
    (center, K_radius), count = K, 0
    for j in range(x.shape[0]):
        x[j] = center[j]
        if abs(a[j]) == a_max:
            x[j] -= K_radius if a[j] > 0.0 else -K_radius
            count += 1
    return count == 1


# Its complexity exceeds the guide: the cases follow one another.
@borrowing
def _solve_halfspace(y, K, row, max_multiplier, memory, x):
    """One trial; returns (ν, status)."""
    n, (center, K_radius), (a, b) = x.shape[0], K, row
    line = Line(memory[0], memory[1], K_radius)
    p, q, _ = line
    total, a_max = 0.0, 0.0
    for j in range(n):
        p[j] = y[j] - center[j]
        q[j] = -a[j]
    for j in range(n):
        a_max = abs(a[j]) if abs(a[j]) > a_max else a_max
        total += abs(p[j]) + abs(a[j])
    if not (total < np.inf and b > -np.inf and max_multiplier >= 0.0):
        for j in range(n):
            x[j] = np.nan
        return 0.0, NONFINITE
    eps, size = 4.0 * rounding(n), norm(center) + K_radius
    offset, a_norm = dot(a, center) - b, norm(a)
    tol = eps * (a_norm * size + abs(b)) if b < np.inf else 0.0
    off = b == np.inf or max_multiplier == 0.0
    if (off or dot(a, y) - b <= tol) and _is_in_set(y, center, K_radius, size):
        for j in range(n):
            x[j] = y[j]
        return 0.0, CONVERGED
    model = _model(line, 0.0, 0.0)
    nu = 0.0
    if not off and offset - model.qx > tol:
        if max_multiplier == np.inf and offset - K_radius * a_max > -tol:
            missed = offset - K_radius * a_max > FEASIBILITY * (a_norm * size + abs(b))
            return np.inf, INFEASIBLE if missed and _is_nearest_corner(a, a_max, K, x) else UNCONVERGED
        unit, bracket = (norm(p) + K_radius) / max(a_norm, 1e-300), whole(max_multiplier)
        for _ in range(multiplier.MAX_STEPS):
            h = offset - model.qx
            newton = nu + h / max(model.q_sq, 1e-300) if model.q_sq > 1e-14 * a_norm * a_norm else np.inf
            nu, bracket, over = advance_multiplier(bracket, nu, h, newton, unit, tol)
            model = _model(line, nu, model.tau)
            if over:
                break
    beyond = _store(line, center, nu, model.tau, x)
    h = dot(a, x) - b if not off else 0.0
    solved = (nu == 0.0 and h <= tol) or abs(h) <= 16.0 * tol or (nu == max_multiplier and h >= -16.0 * tol)
    fine = beyond <= eps * size and (model.size <= 1.0 or resolves(norm(p) + nu * a_norm, size))
    return nu, CONVERGED if (solved or off) and fine else UNCONVERGED


@guvectorize(
    ["float64[::1], float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(n),(),(n),(),()->(n),(),()",
)
def l1_ball_halfspace(y, center, radius, a, b, max_multiplier, x, nu, status):
    """K = {Σ|x_j − center_j| ≤ radius}, the row ⟨a, x⟩ ≤ b."""
    memory = np.empty((3, y.shape[0]))
    target, tau = y, 1.0
    for _ in range(2):
        found, status[0] = _solve_halfspace(target, (center, radius), (a, b), max_multiplier * tau, memory, x)
        nu[0] = found / tau
        if status[0] != UNCONVERGED or found == np.inf or not recoverable(y, x, radius):
            return
        target = memory[2]
        tau = move_target_closer(y, x, radius, target)
