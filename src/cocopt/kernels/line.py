"""The root of a monotone piecewise linear function, the heart of every kernel over a box.

For ν ≥ 0 let x(ν) = clip(y − ν a, lower, upper) and h(ν) = ⟨a, x(ν)⟩ − b, which never increases. Its root is the
multiplier of the projection of y onto the box and the halfspace ⟨a, x⟩ ≤ b; along a direction of several multipliers it
is the exact line search.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import inlined, njit

__all__ = ["bracket", "clip", "descend", "limit", "long_root", "look", "root", "sums"]

LONG = 8192  # from so many coordinates on `long_root` is the faster one
BLOCK, SHARE = 64, 32  # its sample: blocks of so many coordinates, one block in so many
CHUNK = 64  # coordinates looked at together: where all are settled, which is nearly everywhere, none is listed


@njit
def clip(z, low, high):
    """min(max(z, low), high), written so that loops around it become vector code (five times as fast)."""
    x = z if z > low else low
    return x if x < high else high


@inlined
def descend(y, lower, upper, a, b, nu):
    """(h(ν), −h'(ν)): the value, and the descent of the linear piece around ν."""
    h, slope = -b, 0.0
    for j in range(y.shape[0]):
        z = y[j] - nu * a[j]
        x = clip(z, lower[j], upper[j])
        h += a[j] * x
        free = a[j] if x == z else 0.0
        slope += free * free
    return h, slope


@inlined
def limit(lower, upper, a, b):
    """h(∞) = min over the box of ⟨a, x⟩ − b; −inf if the box is open in that direction."""
    h = -b
    for j in range(a.shape[0]):
        bound = lower[j] if a[j] > 0.0 else upper[j] if a[j] < 0.0 else 0.0
        h += a[j] * bound
    return h


@njit
def _next_piece(y, lower, upper, a, nu):
    """The first ν' ≥ ν at which a coordinate that is beyond a bound reaches it, and the descent it brings."""
    start, slope = np.inf, 0.0
    for j in range(y.shape[0]):
        z = y[j] - nu * a[j]
        if lower[j] < upper[j] and ((a[j] > 0.0 and z > upper[j]) or (a[j] < 0.0 and z < lower[j])):
            # (by rounding it may be beyond although its place is not)
            enter = max((y[j] - (upper[j] if a[j] > 0.0 else lower[j])) / a[j], nu)
            if enter < start:
                start, slope = enter, a[j] * a[j]
    return start, slope


@njit
def root(y, lower, upper, a, b, cap, tol, h, slope):
    """(ν, h(ν)) with ν in [0, cap] and |h(ν)| ≤ tol, or with ν = cap if h(cap) ≥ 0; h > tol and slope belong to ν = 0.

    Newton steps, exact once they land on the right linear piece, inside a bracket that shrinks. If h has no root
    (h(∞) > 0), ν is where h became flat. A caller judges by the h that comes back.
    """
    lo, hi, cap_seen = 0.0, cap, False
    nu = 0.0
    for step in range(200):
        if h > 0.0 and slope == 0.0:
            start, slope = _next_piece(y, lower, upper, a, nu)
            if start >= hi:
                return (cap if hi == cap and cap < np.inf else nu), h
            nu = start  # h is flat up to here
        # (the floor keeps a division by 0 from raising a flag even if the compiler computes it in vain)
        trial = nu + h / max(slope, 1e-150) if slope > 0.0 else lo
        if trial >= hi and not cap_seen and cap < np.inf:
            cap_seen = True
            nu = cap
            h, slope = descend(y, lower, upper, a, b, nu)
            if h >= -tol:
                return nu, h
            continue
        if not lo < trial < hi or (step > 12 and step % 2 == 0):
            trial = 0.5 * (lo + hi) if hi < np.inf else 2.0 * trial
            if not lo < trial < hi:
                return nu, h  # neighbouring numbers
        nu = trial
        h, slope = descend(y, lower, upper, a, b, nu)
        if abs(h) <= tol:
            return nu, h
        above = h > 0.0  # (selections, not branches: which end moves cannot be predicted)
        lo, hi = nu if above else lo, hi if above else nu
    return nu, h


@njit
def _settled(y, lower, upper, a, lo, hi):
    """(c, s, m): the coordinates on one piece for all ν in [lo, hi] add c − ν s to ⟨a, x(ν)⟩; m others are not."""
    fixed, square, others = 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z, last = y[j] - lo * a[j], y[j] - hi * a[j]
        x, x_last = clip(z, lower[j], upper[j]), clip(last, lower[j], upper[j])
        free, same = (x == z) & (x_last == last), x == x_last
        fixed += a[j] * (y[j] if free else x if same else 0.0)
        w = a[j] if free else 0.0
        square += w * w
        others += 0.0 if free | same else 1.0
    return fixed, square, others


@njit
def _list_others(y, lower, upper, a, lo, hi, first, others):
    """Lists, as numbers from ``first`` on, the coordinates that `_settled` leaves out; returns how many."""
    count = 0
    for j in range(y.shape[0]):
        z, last = y[j] - lo * a[j], y[j] - hi * a[j]
        x, x_last = clip(z, lower[j], upper[j]), clip(last, lower[j], upper[j])
        others[count] = first + j
        count += 0 if (x == z) & (x_last == last) | (x == x_last) else 1
    return count


@njit
def sampled(n):
    """The size of a sample of n coordinates."""
    return n // (BLOCK * SHARE) * BLOCK


@njit
def sample(v):
    """Some of the coordinates, in blocks spread evenly."""
    picked = np.empty(sampled(v.shape[0]))
    for k in range(picked.shape[0] // BLOCK):
        first = BLOCK * (k * SHARE + k % SHARE)  # (not always at the same place: data may be periodic)
        picked[k * BLOCK : (k + 1) * BLOCK] = v[first : first + BLOCK]
    return picked


@njit
def _estimate(y, lower, upper, a, b, cap):
    """The root of a sample of the coordinates, and by how much that of all may differ from it."""
    b *= sampled(y.shape[0]) / y.shape[0]
    y, lower, upper, a = sample(y), sample(lower), sample(upper), sample(a)
    h, slope = descend(y, lower, upper, a, b, 0.0)
    tol = 1e-6 * abs(h)
    nu = 0.0
    if h > tol:
        nu, h = root(y, lower, upper, a, b, cap, tol, h, slope)
    total, square, slope = 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - nu * a[j]
        x = clip(z, lower[j], upper[j])
        total += a[j] * x
        square += (a[j] * x) ** 2
        free = a[j] if x == z else 0.0
        slope += free * free
    spread = np.sqrt(max(square - total * total / y.shape[0], 0.0))
    return nu, (5.0 * spread + abs(h)) / max(slope, 1e-300)


@njit
def sums(y, lower, upper, a):
    """(⟨a, x⟩, −h'(0), ‖a‖², ‖x‖², ‖y‖²) of x = x(0)."""
    inner, slope, a_sq, x_sq, y_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        x = clip(y[j], lower[j], upper[j])
        inner += a[j] * x
        a_sq += a[j] * a[j]
        x_sq += x * x
        y_sq += y[j] * y[j]
        free = a[j] if x == y[j] else 0.0
        slope += free * free
    return inner, slope, a_sq, x_sq, y_sq


@njit
def bracket(y, lower, upper, a, b, cap):
    """An interval that most likely holds the root, from a sample; of length 0 if the sample has no root above 0."""
    guess, reach = _estimate(y, lower, upper, a, b, cap)
    reach = reach if guess > 0.0 else 0.0
    return max(guess - reach, 0.25 * guess), min(guess + reach, cap)  # (nearly all pieces may begin near 0)


@njit
def look(y, lower, upper, a, lo, hi, others):
    """All `sums`, and (m, c, s) as `_settled` has them, the m others listed: for many coordinates, in one pass."""
    inner, slope, a_sq, x_sq, y_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    count, fixed, square = 0, 0.0, 0.0
    for start in range(0, y.shape[0], CHUNK):
        part = slice(start, start + CHUNK)
        y_part, lower_part, upper_part, a_part = y[part], lower[part], upper[part], a[part]
        more = sums(y_part, lower_part, upper_part, a_part)
        inner, slope, a_sq = inner + more[0], slope + more[1], a_sq + more[2]
        x_sq, y_sq = x_sq + more[3], y_sq + more[4]
        if lo < hi:
            c, s, m = _settled(y_part, lower_part, upper_part, a_part, lo, hi)
            fixed, square = fixed + c, square + s
            if m > 0.0:
                count += _list_others(y_part, lower_part, upper_part, a_part, lo, hi, start, others[count:])
    return (inner, slope, a_sq, x_sq, y_sq), (count, fixed, square)


@njit
def long_root(y, lower, upper, a, b, cap, tol, h, slope, lo, hi, others, found):
    """As `root`, for many coordinates in few passes over them.

    ``found`` is what a `look` at [lo, hi] (see `bracket`) has found. Over that short interval nearly all coordinates
    stay on one piece: they count as a single one, and Newton's method goes on with the few others.
    """
    if lo == hi:
        lo, hi = 0.0, min(h / max(slope, 1e-150), cap)
        _, found = look(y, lower, upper, a, lo, hi, others)
    for _ in range(4):
        if not lo < hi < np.inf:
            break
        count, fixed, square = found
        few = np.empty((4, count + 1))  # as functions of ν − lo
        for k in range(count):
            j = others[k]
            few[0, k], few[1, k], few[2, k], few[3, k] = y[j] - lo * a[j], lower[j], upper[j], a[j]
        unit = np.sqrt(square)
        few[0, count], few[1, count], few[2, count], few[3, count] = -lo * unit, -np.inf, np.inf, unit
        h_lo, slope_lo = descend(few[0], few[1], few[2], few[3], b - fixed, 0.0)
        width = hi - lo
        step, h_step = 0.0, h_lo
        if h_lo > tol:
            step, h_step = root(few[0], few[1], few[2], few[3], b - fixed, width, tol, h_lo, slope_lo)
        if h_lo >= -tol and (abs(h_step) <= tol or hi == cap):
            return (cap if step == width and hi == cap else lo + step), h_step
        lo, hi = (max(lo - 4.0 * width, 0.0), lo) if h_lo < -tol else (hi, min(hi + 4.0 * width, cap))
        _, found = look(y, lower, upper, a, lo, hi, others)
    return root(y, lower, upper, a, b, cap, tol, h, slope)
