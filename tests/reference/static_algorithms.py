"""Mahdavi, Jenatton, Yuan-Lamperski and Yu-Neely as plain loops over one stream; argmins by CVXPY.

rounds: (gradient of the loss, rows, jacobian) per round, each a function of x; all return x_1, x_2, …
"""

import math

import cvxpy as cp
import numpy as np

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "tol_ktratio": 1e-10}


def mahdavi(project, x, rounds, T, D, G, B):
    points, multipliers = [x], None
    for gradient, rows, jacobian in rounds:
        g, S, c = rows(x), jacobian(x), gradient(x)
        M = len(g)
        if multipliers is None:
            multipliers = [0.0] * M
        a = D / 2 * math.sqrt((M + 1) * G**2 + 2 * M * B**2)
        eta = (D / 2) ** 2 / (a * math.sqrt(T))
        if 8 * (M + 1) * G**2 * eta**2 > 1:
            eta = 1 / (G * math.sqrt(8 * (M + 1)))
        delta = 2 * (M + 1) * G**2
        new = project(x - eta * (c + sum(multipliers[i] * S[i] for i in range(M))))
        multipliers = [max(0.0, w + eta * (g[i] - delta * eta * w)) for i, w in enumerate(multipliers)]
        x = new
        points.append(x)
    return np.array(points)


def jenatton(project, x, rounds, D, G, beta, m=None, hard=False):
    points, multiplier = [x], 0.0
    for t, (gradient, rows, jacobian) in enumerate(rounds, start=1):
        g = rows(x)
        i = int(np.argmax(g))
        value, s = g[i], jacobian(x)[i]
        if hard and value <= 0:
            value, s = 0.0, 0.0 * s
        if m is None:
            theta, eta = 6 * (D / 2) * G / t**beta, (D / 2) / (G * t**beta)
        else:
            theta, eta = 6 * G**2 / (m * t**beta), 1 / (m * t)
        mu = 1 / (theta * (t + 1))
        new = project(x - eta * (gradient(x) + multiplier * s))
        multiplier = max(0.0, multiplier + mu * (value - theta * multiplier))
        x = new
        points.append(x)
    return np.array(points)


def yuan_lamperski(project, x, rounds, G, step):
    points = [x]
    for t, (gradient, rows, jacobian) in enumerate(rounds, start=1):
        g, S = rows(x), jacobian(x)
        eta = step(t)
        theta = (len(g) + 1) * G**2 * eta
        direction = gradient(x)
        for value, s in zip(g, S, strict=True):
            if value > 0:
                direction = direction + value / theta * s
        x = project(x - eta * direction)
        points.append(x)
    return np.array(points)


def yu_neely(members, x, rounds, T, G, expressions):
    """``members(z)`` are CVXPY constraints z in K, ``expressions(z)`` the rows as CVXPY expressions."""
    points, queues = [x], None
    for gradient, rows, _ in rounds:
        h = T**0.25 * np.array(rows(x))
        M = len(h)
        queues = np.maximum(-h, (np.zeros(M) if queues is None else queues) + h)
        alpha = (M * G**2 + 1) * math.sqrt(T) / 2
        z = cp.Variable(len(x))
        objective = gradient(x) @ (z - x) + alpha * cp.sum_squares(z - x)
        weights = queues + h
        assert (weights >= 0).all()
        for w, row in zip(weights, expressions(z), strict=True):
            objective = objective + w * T**0.25 * row
        cp.Problem(cp.Minimize(objective / alpha), members(z)).solve(solver=cp.CLARABEL, **TIGHT)
        x = z.value
        points.append(x)
    return np.array(points)
