"""The root of a monotone piecewise linear function, the heart of every kernel over a box.

For ν ≥ 0 let x(ν) = clip(y − ν a, lower, upper) and h(ν) = ⟨a, x(ν)⟩ − b, which never increases. Its root is the
multiplier of the projection of y onto the box and the halfspace ⟨a, x⟩ ≤ b; along a direction of several multipliers it
is the exact line search.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import njit

__all__ = ["clip", "descend", "limit", "root"]


@njit
def clip(z, low, high):
    """min(max(z, low), high), written so that loops around it become vector code (five times as fast)."""
    x = z if z > low else low
    return x if x < high else high


@njit
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


@njit
def limit(lower, upper, a, b):
    """h(∞) = min over the box of ⟨a, x⟩ − b; −inf if the box is open in that direction."""
    h = -b
    for j in range(a.shape[0]):
        bound = lower[j] if a[j] > 0.0 else upper[j] if a[j] < 0.0 else 0.0
        h += a[j] * bound
    return h


@njit
def _next_piece(y, lower, upper, a, nu):
    """The first ν' > ν at which a coordinate that was beyond a bound reaches it, and the descent it brings."""
    start, slope = np.inf, 0.0
    for j in range(y.shape[0]):
        bound = upper[j] if a[j] > 0.0 else lower[j]
        # never divides by 0, even if the compiler computes both branches: that would raise a floating-point flag
        enter = (y[j] - bound) / (a[j] if a[j] != 0.0 else 1.0)
        if a[j] != 0.0 and nu < enter < start:
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
        trial = nu + h / max(slope, 1e-300) if slope > 0.0 else lo
        if trial >= hi and not cap_seen and cap < np.inf:
            cap_seen = True
            nu = cap
            h, slope = descend(y, lower, upper, a, b, nu)
            if h >= -tol:
                return nu, h
            continue
        if not lo < trial < hi or (step > 12 and step % 2 == 0):
            if hi < np.inf:
                trial = 0.5 * (lo + hi)
            if not lo < trial < hi:
                return nu, h  # neighbouring numbers
        nu = trial
        h, slope = descend(y, lower, upper, a, b, nu)
        if abs(h) <= tol:
            return nu, h
        above = h > 0.0  # (selections, not branches: which end moves cannot be predicted)
        lo, hi = nu if above else lo, hi if above else nu
    return nu, h
