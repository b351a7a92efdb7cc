"""Hinge prox over a simplex with a single row; with max_multiplier = inf, the projection.

That is the projection onto {x ≥ 0, Σx = total, ⟨a, x⟩ ≤ b}.

x(ν) = max(0, y − ν a − τ(ν)), where τ(ν) makes the entries add up: Newton's method on a convex piecewise linear
function, which cannot overshoot twice (Michelot 1986). h(ν) = ⟨a, x(ν)⟩ − b never increases and is piecewise linear;
its root is the multiplier.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import guvectorize, in_order, njit
from cocopt.kernels.far_targets import MAX_STAGES, is_near, move_target_closer, next_length
from cocopt.kernels.line import CHUNK, MANY_COORDINATES, sample, sample_size
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import norm
from cocopt.tolerances import FEASIBILITY, NEVER_BINDS

__all__ = ["simplex_halfspace", "simplex_row"]


NO_SUMS = (0.0, 0.0, 0.0, 0.0, 0.0)


@njit
def threshold_of(y, a, nu, tau, total, fixed):
    """(τ(ν), ⟨a, x(ν)⟩, −h'(ν)) from a first guess of τ; ``fixed`` as for `search`.

    The supports {j : y_j − ν a_j > τ} are nested, so two of the same size are the same.
    """
    n = y.shape[0]
    count, inner, slope = -1.0, 0.0, 0.0
    for step in range(n + 100):
        size, s, s_a, s_aa, s_as = fixed
        s, s_as = s - nu * s_a, s_as - nu * s_aa
        for j in range(n):
            z = y[j] - nu * a[j]
            inside = 1.0 if z > tau else 0.0
            w = a[j] * inside
            size += inside
            s += z * inside
            s_a += w
            s_aa += w * a[j]
            s_as += w * z
        if size == 0.0:  # no entry exceeds τ: begin where the largest alone adds up to total
            largest_entry = -np.inf
            for j in range(n):
                largest_entry = max(largest_entry, y[j] - nu * a[j])
            tau = largest_entry - total
            continue
        before, tau = tau, (s - total) / max(size, 1.0)
        inner, slope = s_as - tau * s_a, s_aa - s_a * s_a / max(size, 1.0)
        if size == count or (step > 1 and tau <= before):  # after the first step τ only grows, but for rounding
            break
        count = size
    return tau, inner, slope


@njit
def search(y, a, b, total, max_multiplier, tol, fixed):
    """(ν, τ(ν), h(ν)): |h| ≤ tol, or ν = 0 and h < 0, or h > 0 at ν = max_multiplier or where h stays flat.

    ``fixed`` are the sums (number, Σy, Σa, Σa², Σay) over coordinates that are positive for sure, and not in y and a.
    """
    n = y.shape[0]
    largest = 0.0
    known, s, _, a_sq, _ = fixed
    for j in range(n):
        s += y[j]
        a_sq += a[j] * a[j]
        largest = max(largest, abs(y[j]))
    tau, inner, slope = threshold_of(y, a, 0.0, (s - total) / (n + known), total, fixed)
    nu, h = 0.0, inner - b
    if h <= tol:
        return nu, tau, h
    lo, hi, bound_tried = 0.0, max_multiplier, False
    norm = max(np.sqrt(a_sq), 1e-300)
    unit = (largest + total) / norm  # the order of a multiplier that changes the largest entry
    for step in range(200):
        # where the slope is lost in rounding, h is flat: try a larger ν
        # (the compiler may divide before it compares: what is added is lost in rounding, but no quotient overflows)
        trial = nu + h / (slope + (1e-31 * a_sq + 1e-290)) if slope > 1e-14 * a_sq else lo
        if trial >= hi and not bound_tried and max_multiplier < np.inf:
            bound_tried, trial = True, max_multiplier
        elif not lo < trial < hi or (step > 12 and step % 2 == 0):
            if hi < np.inf:
                trial = 0.5 * (lo + hi)
            else:
                trial = 4.0 * nu + unit
            if not lo < trial < hi or nu > 1e12 * unit:
                return nu, tau, h
        nu = trial
        tau, inner, slope = threshold_of(y, a, nu, tau, total, fixed)
        h = inner - b
        if abs(h) <= tol or (nu == max_multiplier and h > 0.0):
            return nu, tau, h
        above = h > 0.0
        lo, hi = nu if above else lo, hi if above else nu
    return nu, tau, h


@njit
def _sum_positive(y, a, nu, tau, d_nu, d_tau):
    """The sums over the coordinates that are positive all over the rectangle around (ν, τ), and how many may change."""
    size, s, s_a, s_aa, s_as, may_change = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z, margin = y[j] - nu * a[j] - tau, d_nu * abs(a[j]) + d_tau
        inside = 1.0 if z > margin else 0.0
        w = a[j] * inside
        size += inside
        s += y[j] * inside
        s_a += w
        s_aa += w * a[j]
        s_as += w * y[j]
        may_change += 1.0 if abs(z) <= margin else 0.0
    return size, s, s_a, s_aa, s_as, may_change


@njit
def _list_changing(y, a, nu, tau, d_nu, d_tau, first, changing_index):
    """Lists, as numbers from ``first`` on, the coordinates that may change; returns how many."""
    count = 0
    for j in range(y.shape[0]):
        changing_index[count] = first + j
        count += 1 if abs(y[j] - nu * a[j] - tau) <= d_nu * abs(a[j]) + d_tau else 0
    return count


@njit
def _estimate_root(y, a, b, total, max_multiplier):
    """(ν, τ) of a sample of the coordinates, and by how much those of all may differ from them."""
    share = sample_size(y.shape[0]) / y.shape[0]
    y, a = sample(y), sample(a)
    b, total = b * share, total * share
    nu, tau, h = search(y, a, b, total, max_multiplier, 1e-6 * total * np.sqrt(np.sum(a * a) / a.shape[0]), NO_SUMS)
    size, s_a, s_aa, x_sq, ax_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        x = y[j] - nu * a[j] - tau
        inside = 1.0 if x > 0.0 else 0.0
        size += inside
        s_a += inside * a[j]
        s_aa += inside * a[j] * a[j]
        x_sq += inside * x * x
        ax_sq += inside * (a[j] * x) ** 2
    noise, a_noise = 4.0 * np.sqrt(x_sq), 4.0 * np.sqrt(ax_sq) + abs(h)
    det = max(size * s_aa - s_a * s_a, 1e-300)
    return nu, tau, (size * a_noise + abs(s_a) * noise) / det, (s_aa * noise + abs(s_a) * a_noise) / det


@njit
def search_many(y, a, b, total, max_multiplier, tol):
    """As `search`, for many coordinates in few passes over them, as `cocopt.kernels.line.find_root_many`."""
    n = y.shape[0]
    nu, tau, d_nu, d_tau = _estimate_root(y, a, b, total, max_multiplier)
    changing_index = np.empty(n + 1, dtype=np.int32)
    for _ in range(3):
        if not d_nu + d_tau < np.inf:
            break
        lo = max(nu - d_nu, 0.0)
        count, size, s, s_a, s_aa, s_as = 0, 0.0, 0.0, 0.0, 0.0, 0.0
        for start in range(0, n, CHUNK):
            part = slice(start, start + CHUNK)
            sums = _sum_positive(y[part], a[part], nu, tau, d_nu, d_tau)
            size, s, s_a, s_aa, s_as = size + sums[0], s + sums[1], s_a + sums[2], s_aa + sums[3], s_as + sums[4]
            if sums[5] > 0.0:
                count += _list_changing(y[part], a[part], nu, tau, d_nu, d_tau, start, changing_index[count:])
        changing = np.empty((2, count))  # as functions of ν − lo
        for k in range(count):
            j = changing_index[k]
            changing[0, k], changing[1, k] = y[j] - lo * a[j], a[j]
        fixed = (size, s - lo * s_a, s_a, s_aa, s_as - lo * s_aa)
        if size + count > 0.0:
            step, level, h = search(changing[0], changing[1], b, total, max_multiplier - lo, tol, fixed)
            found = abs(h) <= tol or (lo == 0.0 and step == 0.0) or (h > 0.0 and step == max_multiplier - lo)
            if found and abs(lo + step - nu) <= d_nu and abs(level - tau) <= d_tau:
                return (max_multiplier if step == max_multiplier - lo else lo + step), level, h
        d_nu, d_tau = 8.0 * d_nu, 8.0 * d_tau
    return search(y, a, b, total, max_multiplier, tol, NO_SUMS)


@in_order
def move_and_cut(y, nu, a, tau, x):
    """x = max(y − ν a − τ, 0)."""
    for j in range(y.shape[0]):
        z = y[j] - nu * a[j] - tau
        x[j] = z if z > 0.0 else 0.0


@njit
def _prox_in_one_stage(y, total, a, b, max_multiplier, x):
    """(ν, status, ‖y‖, ‖x‖): the prox in x whatever the distance of the target; ‖x‖ = ‖y‖ if x is y itself.

    Its complexity exceeds the guide: each short loop counts, and calls with arrays would take as long as the loops.
    """
    n = y.shape[0]
    a_sq, y_sq, s, inner, lowest, a_max = 0.0, 0.0, 0.0, 0.0, np.inf, 0.0
    for j in range(n):
        a_max = abs(a[j]) if abs(a[j]) > a_max else a_max
        a_sq += a[j] * a[j]
        y_sq += y[j] * y[j]
        s += y[j]
        inner += a[j] * y[j]
        lowest = y[j] if y[j] < lowest else lowest
    if not (a_sq + y_sq < np.inf and b > -np.inf):
        return 0.0, NONFINITE, 0.0, 0.0
    if a_sq == 0.0 and b < 0.0 and max_multiplier == np.inf:
        return 0.0, INFEASIBLE, 0.0, 0.0
    eps, y_norm = rounding(n), np.sqrt(y_sq)
    level = b if b < np.inf and a_sq > 0.0 else NEVER_BINDS
    row = a_max * total + abs(b) if level < NEVER_BINDS else 0.0
    tol = eps * (row + np.sqrt(a_sq) * y_norm)
    if lowest >= 0.0 and abs(s - total) <= eps * total and inner - level <= tol:
        for j in range(n):
            x[j] = y[j]
        return 0.0, CONVERGED, y_norm, y_norm
    if n < MANY_COORDINATES:
        nu, tau, h = search(y, a, level, total, max_multiplier, tol, NO_SUMS)
    else:
        nu, tau, h = search_many(y, a, level, total, max_multiplier, tol)
    move_and_cut(y, nu, a, tau, x)
    x_norm = norm(x)
    status = CONVERGED
    if nu > 0.0 and eps * nu * np.sqrt(a_sq) > 0.1 * FEASIBILITY * (total + y_norm):
        status = UNCONVERGED  # rounding of ν a exceeds what is promised
    if h > 16.0 * tol and nu < max_multiplier:
        least = np.inf
        for j in range(n):
            least = min(least, a[j])
        least = total * least - level
        status = INFEASIBLE if least > FEASIBILITY * row else status if h <= FEASIBILITY * row else UNCONVERGED
    elif h < -16.0 * tol and nu > 0.0:
        status = UNCONVERGED
    return nu, status, y_norm, x_norm


@njit
def _is_feasible(total, a, b, row_binds, x):
    """Whether x adds up to the total and satisfies the row, if it binds, as promised."""
    s, a_max, h = 0.0, 0.0, -b if b < np.inf else -NEVER_BINDS
    for j in range(x.shape[0]):
        s += x[j]
        a_max = abs(a[j]) if abs(a[j]) > a_max else a_max
        h += a[j] * x[j]
    half = 0.5 * FEASIBILITY
    return abs(s - total) <= half * total and (not row_binds or h <= half * max(a_max * total, abs(b)))


def _simplex_halfspace(y, total, a, b, max_multiplier, x, nu, status):
    """K = {x ≥ 0, Σx = total}; returns x, the row's multiplier and a status.

    From far away in stages (`cocopt.kernels.far_targets`).
    """
    n = y.shape[0]
    least = total / np.sqrt(n)  # the length of the shortest point of K
    nu[0], status[0], y_norm, x_norm = _prox_in_one_stage(y, total, a, b, max_multiplier, x)
    if status[0] == CONVERGED and not is_near(y_norm, x_norm, least):
        last, most, target = nu[0], max_multiplier, np.empty(n)
        for _ in range(MAX_STAGES):
            tau = move_target_closer(y, x, next_length(y_norm, x_norm, least), target)
            most = tau * max_multiplier if max_multiplier < np.inf else np.inf
            last, status[0], y_norm, x_norm = _prox_in_one_stage(target, total, a, b, most, x)
            if status[0] != CONVERGED or is_near(y_norm, x_norm, least):
                break
        if status[0] == CONVERGED and not _is_feasible(total, a, b, last < most, x):
            status[0] = UNCONVERGED


simplex_row = njit(_simplex_halfspace)
simplex_halfspace = guvectorize(
    ["float64[::1], float64, float64[::1], float64, float64, float64[::1], float64[::1], int64[::1]"],
    "(n),(),(n),(),()->(n),(),()",
)(_simplex_halfspace)
