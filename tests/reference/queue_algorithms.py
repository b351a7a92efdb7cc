"""Polyak feasibility steps, drift-plus-penalty, and the method of Yu, Lee and Lee as plain loops over one stream.

rounds: (gradient of the loss, rows, jacobian) per round, each a function of x; all return x_1, x_2, …
"""

import math

import numpy as np


def polyak(project, x, rounds, eta, rho, along=lambda v: v):
    """``along`` is the part of a vector along the affine hull of K."""
    points = [x]
    for gradient, rows, jacobian in rounds:
        g = rows(x)
        i = int(np.argmax(g))
        s = along(jacobian(x)[i])
        y = x - eta * along(gradient(x))
        model = g[i] + s @ (y - x) + rho
        if model > 0:
            y = y - model * s / (s @ s)
        x = project(y)
        points.append(x)
    return np.array(points)


def drift_plus_penalty(project, x, rounds, T=None):
    points, queues, left, length = [x], None, 0, 1
    for gradient, rows, jacobian in rounds:
        g, S = rows(x), jacobian(x)
        if T is None:
            if left == 0:  # a new epoch, twice as long as the last
                length = 1 if queues is None else 2 * length
                left, queues = length, [0.0] * len(g)
            left -= 1
            N = length
        else:
            N = T
            queues = [0.0] * len(g) if queues is None else queues
        V, alpha = math.sqrt(N), float(N)
        direction = V * gradient(x) + sum(q * s for q, s in zip(queues, S, strict=True))
        new = project(x - direction / (2 * alpha))
        queues = [max(0.0, q + g[i] + S[i] @ (new - x)) for i, q in enumerate(queues)]
        x = new
        points.append(x)
    return np.array(points)


def yu_lee_lee(project, x, rounds, D, L, B, m=None, hard=True, delta=None, gamma_scale=1.0, regularizer_scale=1.0):
    """The points, the last queue, and the sum of the regularizers."""

    def psi(z):
        value = 4 * D * L * math.sqrt(z)
        if delta is not None:
            value += 4 * B * math.sqrt((1 + z) * math.log(math.pi**2 / 6 * (1 + math.log2(1 + z)) ** 2 / delta))
        return value

    points, Q, weights, norms, total = [x], 0.0, 0.0, 0.0, 0.0
    for t, (gradient, rows, jacobian) in enumerate(rounds, start=1):
        third = 24 * D * L if delta is None else 24 * (D * L + 8 * B * math.sqrt(math.log(12 * t**2 / delta)))
        gamma = gamma_scale * min(1 / (12 * B * math.sqrt(t)), 1 / third, 1)
        phi = gamma * math.exp(gamma * Q)
        g = rows(x)
        i = int(np.argmax(g))
        value, s = g[i], jacobian(x)[i]
        if hard and value <= 0:
            value, s = 0.0, 0.0 * s
        n = gradient(x) + phi * s
        before, weights = weights, weights + phi**2
        norms += float(n @ n)
        if m is None:
            eta = math.sqrt(2) * D / (2 * math.sqrt(1 + norms))
        else:
            eta = 1 / (m * t + 2 * L / D * math.sqrt(weights))
        x = project(x - eta * n)
        R = regularizer_scale * (12 * gamma * B**2 + (psi(weights) - psi(before)) / phi)
        Q, total = Q + value - R, total + R
        points.append(x)
    return np.array(points), Q, total
