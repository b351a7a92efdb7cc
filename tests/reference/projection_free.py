"""OFW, SCOFW, Sarkar, Garber-Kretzu and Lu as plain loops over one stream, with plain oracles of four sets.

rounds: (gradient of the loss, A, b) per round, for A x ≤ b; all algorithms return x_1, x_2, …
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# ---------------------------------------------------------------- sets


class Oracles(NamedTuple):
    minimise: Callable  # c ↦ argmin ⟨c, x⟩
    separate: Callable  # y ↦ a normal, or None for a point of K
    center: np.ndarray
    inner: float
    outer: float
    hull: Callable = lambda y: y  # the nearest point of the affine hull
    along: Callable = lambda v: v  # the part along the hull


def box(n):
    def separate(y):
        normal = np.array([v - 1 if v > 1 else v if v < 0 else 0.0 for v in y])
        return normal if normal.any() else None

    def minimise(c):
        return np.array([1.0 if v < 0 else 0.0 for v in c])

    return Oracles(minimise, separate, np.full(n, 0.5), 0.5, math.sqrt(n) / 2)


def ball(center, radius):
    def separate(y):
        return y - center if math.sqrt(sum((y - center) ** 2)) > radius * (1 + 1e-12) else None

    def minimise(c):
        return center - radius * c / math.sqrt(sum(c**2))

    return Oracles(minimise, separate, center, radius, radius)


def simplex(n, total):
    center = np.full(n, total / n)

    def along(v):
        return v - sum(v) / n

    def separate(y):
        i = min(range(n), key=lambda j: y[j])
        return along(-np.eye(n)[i]) if y[i] < -1e-12 else None

    def minimise(c):
        return total * np.eye(n)[min(range(n), key=lambda j: c[j])]

    inner, outer = total / math.sqrt(n * (n - 1)), total * math.sqrt((n - 1) / n)
    return Oracles(minimise, separate, center, inner, outer, lambda y: center + along(y - center), along)


def ellipsoid(center, P):
    inverse, values = np.linalg.inv(P), np.linalg.eigvalsh(P)

    def separate(y):
        z = y - center
        return inverse @ z if z @ inverse @ z > 1 + 1e-12 else None

    def minimise(c):
        return center - P @ c / math.sqrt(c @ P @ c)

    return Oracles(minimise, separate, center, math.sqrt(min(values)), math.sqrt(max(values)))


# ---------------------------------------------------------------- infeasible projections


def clip(y, K):
    distance = math.sqrt(sum((y - K.center) ** 2))
    return y if distance <= K.outer else K.center + (y - K.center) * K.outer / distance


def by_separation(K, y, delta):
    y = clip(K.hull(y), K)
    while (normal := K.separate(y)) is not None:
        y = y - delta * K.inner * normal / math.sqrt(sum(normal**2))
    return y


def by_linear_oracle(K, x, target, eps):
    y, distance = clip(target, K), sum((x - target) ** 2)
    if distance <= 3 * eps:
        return x, y
    while sum((x - y) ** 2) > 3 * eps:
        w = K.minimise(x - y)
        gap = (x - y) @ (x - w)
        if gap <= eps:
            y = y - 2 * eps / distance * (y - x)
        else:
            x = x + min(1.0, gap / sum((x - w) ** 2)) * (w - x)
    return x, y


# ---------------------------------------------------------------- algorithms


def violation(A, b, x):
    """(v, s): the largest violation, and its row or 0."""
    i = int(np.argmax(A @ x - b))
    v = A[i] @ x - b[i]
    return (v, A[i]) if v > 0 else (0.0, np.zeros(len(x)))


def ofw(K, x, rounds, T, G, D, V=1.0, guess=None):
    """Also the rounds s of the restarts."""
    b_ = 1 / (64 * G * D)

    def slope(z):
        return math.exp(z / (2 * T**0.75)) / (2 * T**0.75)

    guess = 2 * b_ * G * (V + slope(0)) if guess is None else guess
    points, restarts, Q, anchor, gradients = [x], [], 0.0, x, []
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        v, s = violation(A, b, x)
        Q += v
        n = V * b_ * gradient(x) + slope(b_ * Q) * b_ * s
        while guess < b_ * G * (V + slope(b_ * Q)):
            guess *= 2
            anchor, gradients = x, []
            restarts = [r for r in restarts if r != t] + [t]
        gradients.append(n)
        eta = D / (2 * guess * T**0.75)
        w = K.minimise(eta * sum(gradients) + 2 * (x - anchor))
        x = x + min(1.0, 2 / math.sqrt(len(gradients))) * (w - x)
        points.append(x)
    return np.array(points), restarts


def sarkar(K, x, rounds, T, G, D, V=1.0):
    b_ = 1 / (64 * G * D)
    points, Q, gradients = [x], 0.0, []
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        v, s = violation(A, b, x)
        Q += v
        gradients.append(V * b_ * gradient(x) + math.exp(b_ * Q / (2 * T**0.75)) / (2 * T**0.75) * b_ * s)
        largest = max(math.sqrt(sum(K.along(n) ** 2)) for n in gradients)
        eta = D / (2 * largest * T**0.75)
        w = K.minimise(eta * sum(gradients) + 2 * (x - points[0]))
        x = x + min(1.0, 2 / math.sqrt(t)) * (w - x)
        points.append(x)
    return np.array(points)


def scofw(K, x, rounds, T, G, D, m):
    b_, gamma = 1 / (G * D * T ** (2 / 3)), G / (G + m * D)
    c = gamma * b_ * m / 2
    points, Q, gradients = [x], 0.0, []
    for gradient, A, b in rounds:
        v, s = violation(A, b, x)
        Q += v
        gradients.append(gamma * b_ * gradient(x) + (2 * b_ * Q + 1) * b_ * s)

        def slope(z, points=points, gradients=gradients):
            """∇F(z)."""
            return sum(n + 2 * c * (z - y) for n, y in zip(gradients, points, strict=True))

        d = K.minimise(slope(x)) - x
        first, last = slope(x) @ d, slope(x + d) @ d  # F is quadratic: its derivative along d is affine
        x = x + (1.0 if last <= 0 else max(0.0, first / (first - last))) * d
        points.append(x)
    return np.array(points)


def garber_kretzu(K, x, rounds, T, G, eps=None, block=None):
    R = K.outer
    eta = R / G * T**-0.75
    eps = 60 * R**2 / math.sqrt(T) if eps is None else eps
    block = max(1, round(5 * math.sqrt(T))) if block is None else block
    theta = 4 * eta * block * G**2
    points, y, gradients = [x], x, []
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        v, s = violation(A, b, x)
        gradients.append(K.along(gradient(x) + v / theta * s))
        if t % block == 0:
            x, y = by_linear_oracle(K, x, y - eta * sum(gradients), eps)
            gradients = []
        points.append(x)
    return np.array(points)


def lu(K, x, rounds, T, G, D, m=None, V=1.0, c=1.0):
    b_ = 1 / (2 * G * D) if m is None else 1.0
    delta = min(0.5, c / math.sqrt(T)) if m is None else min(0.5, c / T)
    if m is not None:
        V = 8 * G**2 * (1 + math.log(T)) / m
    points, Q, total = [x], 0.0, 0.0
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        v, s = violation(A, b, x)
        Q += b_ * v
        weight = math.exp(Q / (2 * math.sqrt(T))) / (2 * math.sqrt(T)) if m is None else 2 * Q
        n = K.along(V * b_ * gradient(x) + weight * b_ * s)
        total += sum(n**2)
        eta = D / math.sqrt(2 * total) if m is None else 1 / (V * m * t)
        x = by_separation(K, x - eta * n, delta)
        points.append(x)
    return np.array(points)
