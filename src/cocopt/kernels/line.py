"""The root of a monotone piecewise linear function, on which every kernel over a box is built.

For ν ≥ 0 let x(ν) = clip(y − ν a, lower, upper) and h(ν) = ⟨a, x(ν)⟩ − b, which never increases. Its root is the
multiplier of the projection of y onto the box and the halfspace ⟨a, x⟩ ≤ b; along a direction of several multipliers it
is the exact line search.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, njit
from cocopt.kernels.vectors import clip

__all__ = [
    "CHUNK",
    "MANY_COORDINATES",
    "Line",
    "Sums",
    "clip",
    "estimate_bracket",
    "find_root",
    "find_root_many",
    "limit_at_infinity",
    "sample",
    "sample_size",
    "split_coordinates",
    "sums_at_zero",
    "value_and_slope",
]

MANY_COORDINATES = 8192  # from so many on `find_root_many` is the faster one
SAMPLE_BLOCK, SAMPLE_EVERY = 64, 32  # its sample: blocks of so many coordinates, one block in so many
CHUNK = 64  # coordinates examined together: where none changes its piece, which is nearly everywhere, none is listed


class Line(NamedTuple):
    """The data of h(ν) = ⟨a, clip(y − ν a, lower, upper)⟩ − b."""

    y: Any
    lower: Any
    upper: Any
    a: Any
    b: Any


class Sums(NamedTuple):
    """Sums over the coordinates at ν = 0."""

    inner: Any  # ⟨a, x(0)⟩
    slope: Any  # −h'(0)
    a_sq: Any  # ‖a‖²
    x_sq: Any  # ‖x(0)‖²
    y_sq: Any  # ‖y‖²


class Pieces(NamedTuple):
    """How ⟨a, x(ν)⟩ depends on ν over an interval: fixed − ν·square, and the coordinates that change their piece."""

    count: Any  # of those that change it
    fixed: Any
    square: Any


@borrowing
def value_and_slope(line, nu):
    """(h(ν), −h'(ν)): the value, and the descent of the linear piece around ν."""
    y, lower, upper, a, b = line
    h, slope = -b, 0.0
    for j in range(y.shape[0]):
        z = y[j] - nu * a[j]
        x = clip(z, lower[j], upper[j])
        h += a[j] * x
        free = a[j] if x == z else 0.0
        slope += free * free
    return h, slope


@borrowing
def limit_at_infinity(line):
    """h(∞) = min over the box of ⟨a, x⟩ − b; −inf if the box is open in that direction."""
    a, h = line.a, -line.b
    for j in range(a.shape[0]):
        bound = line.lower[j] if a[j] > 0.0 else line.upper[j] if a[j] < 0.0 else 0.0
        h += a[j] * bound
    return h


@njit
def _next_piece(line, nu):
    """The first ν' ≥ ν at which a coordinate that is beyond a bound reaches it, and the descent it brings."""
    y, lower, upper, a, _ = line
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
def find_root(line, most, tol, h, slope):
    """(ν, h(ν)) with ν in [0, most] and |h(ν)| ≤ tol, or ν = most if h(most) ≥ 0; h > tol and slope belong to ν = 0.

    Newton steps, exact once they land on the right linear piece, inside a bracket that shrinks. If h has no root
    (h(∞) > 0), ν is where h became flat. A caller judges by the h that is returned.
    """
    low, high, most_tried = 0.0, most, False
    nu = 0.0
    for step in range(200):
        if h > 0.0 and slope == 0.0:
            start, slope = _next_piece(line, nu)
            if start >= high:
                return (most if high == most and most < np.inf else nu), h
            nu = start  # h is flat up to here
        # (the floor keeps a division by 0 from raising a flag even if the compiler computes it in vain)
        trial = nu + h / max(slope, 1e-150) if slope > 0.0 else low
        if trial >= high and not most_tried and most < np.inf:
            most_tried = True
            nu = most
            h, slope = value_and_slope(line, nu)
            if h >= -tol:
                return nu, h
            continue
        if not low < trial < high or (step > 12 and step % 2 == 0):
            trial = 0.5 * (low + high) if high < np.inf else 2.0 * trial
            if not low < trial < high:
                return nu, h  # neighbouring numbers
        nu = trial
        h, slope = value_and_slope(line, nu)
        if abs(h) <= tol:
            return nu, h
        above = h > 0.0  # (selections, not branches: which end moves cannot be predicted)
        low, high = nu if above else low, high if above else nu
    return nu, h


@borrowing
def _on_one_piece(z, z_last, low, high):
    """(x, free, same): whether a coordinate stays free, or stays at a bound, where z goes to z_last."""
    x, x_last = clip(z, low, high), clip(z_last, low, high)
    return x, (x == z) & (x_last == z_last), x == x_last


@njit
def _sum_pieces(line, low, high):
    """`Pieces` over low ≤ ν ≤ high."""
    y, lower, upper, a, _ = line
    fixed, square, changing = 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        x, free, same = _on_one_piece(y[j] - low * a[j], y[j] - high * a[j], lower[j], upper[j])
        fixed += a[j] * (y[j] if free else x if same else 0.0)
        w = a[j] if free else 0.0
        square += w * w
        changing += 0.0 if free | same else 1.0
    return Pieces(changing, fixed, square)


@njit
def _list_changing(line, low, high, first, changing):
    """Lists, as numbers from ``first`` on, the coordinates that change their piece; returns how many."""
    y, lower, upper, a, _ = line
    count = 0
    for j in range(y.shape[0]):
        _, free, same = _on_one_piece(y[j] - low * a[j], y[j] - high * a[j], lower[j], upper[j])
        changing[count] = first + j
        count += 0 if free | same else 1
    return count


@njit
def sample_size(n):
    """The size of a sample of n coordinates."""
    return n // (SAMPLE_BLOCK * SAMPLE_EVERY) * SAMPLE_BLOCK


@njit
def sample(v):
    """Some of the coordinates, in blocks spread evenly."""
    picked = np.empty(sample_size(v.shape[0]))
    for k in range(picked.shape[0] // SAMPLE_BLOCK):
        first = SAMPLE_BLOCK * (k * SAMPLE_EVERY + k % SAMPLE_EVERY)  # (shifting, since data may be periodic)
        source, copy = v[first : first + SAMPLE_BLOCK], picked[k * SAMPLE_BLOCK : (k + 1) * SAMPLE_BLOCK]
        for j in range(SAMPLE_BLOCK):
            copy[j] = source[j]
    return picked


@njit
def _estimate_root(line, most):
    """The root of a sample of the coordinates, and by how much that of all may differ from it."""
    share = sample_size(line.y.shape[0]) / line.y.shape[0]
    part = Line(sample(line.y), sample(line.lower), sample(line.upper), sample(line.a), line.b * share)
    h, slope = value_and_slope(part, 0.0)
    tol = 1e-6 * abs(h)
    nu = 0.0
    if h > tol:
        nu, h = find_root(part, most, tol, h, slope)
    y, lower, upper, a, _ = part
    total, square, slope = 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        z = y[j] - nu * a[j]
        x = clip(z, lower[j], upper[j])
        total += a[j] * x
        square += (a[j] * x) ** 2
        free = a[j] if x == z else 0.0
        slope += free * free
    deviation = np.sqrt(max(square - total * total / y.shape[0], 0.0))
    return nu, (5.0 * deviation + abs(h)) / max(slope, 1e-300)


@njit
def sums_at_zero(line):
    """`Sums` over all coordinates."""
    y, lower, upper, a, _ = line
    inner, slope, a_sq, x_sq, y_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(y.shape[0]):
        x = clip(y[j], lower[j], upper[j])
        inner += a[j] * x
        a_sq += a[j] * a[j]
        x_sq += x * x
        y_sq += y[j] * y[j]
        free = a[j] if x == y[j] else 0.0
        slope += free * free
    return Sums(inner, slope, a_sq, x_sq, y_sq)


@njit
def estimate_bracket(line, most):
    """An interval that most likely holds the root, from a sample; of length 0 if the sample has no root above 0."""
    guess, error = _estimate_root(line, most)
    error = error if guess > 0.0 else 0.0
    return max(guess - error, 0.25 * guess), min(guess + error, most)  # (nearly all pieces may begin near 0)


@njit
def split_coordinates(line, low, high, changing):
    """(`Sums`, `Pieces` over low ≤ ν ≤ high), those that change listed: for many coordinates, in one pass."""
    y, lower, upper, a, b = line
    inner, slope, a_sq, x_sq, y_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    count, fixed, square = 0, 0.0, 0.0
    for start in range(0, y.shape[0], CHUNK):
        part = slice(start, start + CHUNK)
        chunk = Line(y[part], lower[part], upper[part], a[part], b)
        sums = sums_at_zero(chunk)
        inner, slope, a_sq = inner + sums.inner, slope + sums.slope, a_sq + sums.a_sq
        x_sq, y_sq = x_sq + sums.x_sq, y_sq + sums.y_sq
        if low < high:
            pieces = _sum_pieces(chunk, low, high)
            fixed, square = fixed + pieces.fixed, square + pieces.square
            if pieces.count > 0.0:
                count += _list_changing(chunk, low, high, start, changing[count:])
    return Sums(inner, slope, a_sq, x_sq, y_sq), Pieces(count, fixed, square)


@njit
def _reduced_line(line, low, pieces, changing):
    """The same function of ν − low: the coordinates that change, and one for all others."""
    y, lower, upper, a, b = line
    count = pieces.count
    few = np.empty((4, count + 1))
    for k in range(count):
        j = changing[k]
        few[0, k], few[1, k], few[2, k], few[3, k] = y[j] - low * a[j], lower[j], upper[j], a[j]
    unit = np.sqrt(pieces.square)
    few[0, count], few[1, count], few[2, count], few[3, count] = -low * unit, -np.inf, np.inf, unit
    return Line(few[0], few[1], few[2], few[3], b - pieces.fixed)


@njit
def find_root_many(line, most, tol, sums, bracket, pieces, changing):
    """As `find_root`, for many coordinates in few passes over them.

    ``sums`` and ``pieces`` are what `split_coordinates` found for the ``bracket`` of `estimate_bracket`. Over that
    short interval nearly all coordinates stay on one piece: they count as a single one, and Newton's method goes on
    with the few others.
    """
    low, high = bracket
    h = sums.inner - line.b
    if low == high:
        low, high = 0.0, min(h / max(sums.slope, 1e-150), most)
        _, pieces = split_coordinates(line, low, high, changing)
    for _ in range(4):
        if not low < high < np.inf:
            break
        few = _reduced_line(line, low, pieces, changing)
        h_low, slope_low = value_and_slope(few, 0.0)
        width = high - low
        step, h_step = 0.0, h_low
        if h_low > tol:
            step, h_step = find_root(few, width, tol, h_low, slope_low)
        if h_low >= -tol and (abs(h_step) <= tol or high == most):
            return (most if step == width and high == most else low + step), h_step
        low, high = (max(low - 4.0 * width, 0.0), low) if h_low < -tol else (high, min(high + 4.0 * width, most))
        _, pieces = split_coordinates(line, low, high, changing)
    return find_root(line, most, tol, h, sums.slope)
