"""COLDQ, Double-Q, Yi et al. 2021 and RECOO with its queue before the argmin, as plain loops.

The argmin is found by CVXPY, for one row by the root of its multiplier. Sets are those of reference/rivals.py.
rounds: (gradient of the loss, A, b); all return x_1, x_2, …
"""

import contextlib
import math
import warnings
from functools import cache

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio")


def hinge_prox(K, M, n):
    """argmin over x in K of ½‖x − target‖² + Σ_i w_i [⟨a_i, x⟩ − b_i]_+."""
    return by_multiplier(K) if M == 1 else by_cvxpy(K, M, n)


def by_multiplier(K):
    """The hinge is max over ν in [0, w] of ν(⟨a, x⟩ − b), so the argmin is P_K(target − νa) for the best ν."""

    def argmin(target, weights, rows, rhs):
        (w,), (a,), (b,) = weights, rows, rhs

        def value(nu):
            return a @ K.project(target - nu * a) - b

        if value(0.0) <= 0:
            nu = 0.0
        elif value(w) >= 0:
            nu = w
        else:
            nu = brentq(value, 0.0, w, xtol=1e-14, rtol=1e-14, maxiter=500)
        return K.project(target - nu * a)

    return argmin


@cache  # CVXPY takes longer to compile a problem than to solve it some sixty times
def by_cvxpy(K, M, n):
    x, hinges = cp.Variable(n), cp.Variable(M, nonneg=True)
    target, w, A, b = cp.Parameter(n), cp.Parameter(M, nonneg=True), cp.Parameter((M, n)), cp.Parameter(M)
    objective = cp.sum_squares(x - target) / 2 + w @ hinges
    problem = cp.Problem(cp.Minimize(objective), [A @ x - b <= hinges, *K.constraints(x)])

    def argmin(point, weights, rows, rhs):
        target.value, w.value, A.value, b.value = point, weights, rows, rhs
        for tol in (1e-14, 1e-13, 1e-12):  # as tight as the solver can
            with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
                warnings.simplefilter("ignore", UserWarning)
                # shorter steps keep it away from the cones' boundary for longer, and so its end sharper; a warm start
                # would scale the problem as it did the last one, and may lose half of the digits
                options = dict.fromkeys(TOLERANCES, tol)
                problem.solve(solver=cp.CLARABEL, max_step_fraction=0.9, warm_start=False, **options)
                return x.value
        raise AssertionError("the solver gave up")

    return argmin


def positive_part(values):
    return np.array([max(0.0, value) for value in values])


def coldq(K, x, rounds, alpha, epsilon, T=None):
    M, n = rounds[0][1].shape
    argmin = hinge_prox(K, M, n)
    points, Q = [x], None
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        delta, least = (1 / t**2, epsilon * t**2) if T is None else (1 / T, epsilon * T)
        if t == 1:
            Q = np.full(M, least)
        else:
            Q = np.maximum((1 - delta) * Q + positive_part(A @ x - b), least)
        x = argmin(x - gradient(x) / (2 * alpha(t)), Q / (2 * alpha(t)), A, b)
        points.append(x)
    return np.array(points)


def double_q(K, x, rounds, T, G, D, epsilon, V, along):
    """``along`` is the projection onto the direction space of the affine hull of K."""
    M, n = rounds[0][1].shape
    argmin = hinge_prox(K, M, n)
    lam, beta = 1 / (2 * math.sqrt(T)), 1 / (4 * G * D * math.exp(2) + 1)
    points, q, z, total = [x], np.full(M, epsilon), np.zeros(M), 0.0
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        v = positive_part(A @ x - b)
        if t >= 2:
            q = np.maximum(epsilon * T, (1 - 1 / T) * q + v)
        z = z + beta * v
        p = V * gradient(x)
        for i in range(M):
            if v[i] > 0:
                p = p + lam * math.exp(lam * z[i]) * beta * A[i]
        total += sum(along(p) ** 2)
        alpha = math.sqrt(2) * D / math.sqrt(total)
        x = argmin(x - alpha * p, alpha * q, A, b)
        points.append(x)
    return np.array(points)


def yi2021(K, x, rounds, alpha, gamma_0):
    M, n = rounds[0][1].shape
    argmin = hinge_prox(K, M, n)
    gamma = {1: gamma_0 / math.sqrt(alpha(1))}
    points, q = [x], np.zeros(M)
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        gamma[t + 1] = gamma_0 / math.sqrt(alpha(t))
        v = positive_part(A @ x - b)
        q = q + gamma[t] * v
        ahead = q + gamma[t] * v
        x = argmin(x - alpha(t) * gradient(x) / 2, alpha(t) * gamma[t + 1] * ahead / 2, A, b)
        points.append(x)
    return np.array(points)


def recoo_before(K, x, rounds, m=None, epsilon=0.1, worst=False, scales=(1.0, 1.0, 1.0)):
    M, n = rounds[0][1].shape
    M = 1 if worst else M
    argmin = hinge_prox(K, M, n)
    points, Q = [x], np.zeros(M)
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        if worst:
            i = int(np.argmax(A @ x - b))
            A, b = A[i : i + 1], b[i : i + 1]
        alpha = scales[0] * (math.sqrt(t) if m is None else m * t / 2)
        eta, gamma = scales[1] * math.sqrt(t), scales[2] * t ** (0.5 + epsilon)
        Q = np.maximum(Q + gamma * positive_part(A @ x - b), eta)
        x = argmin(x - gradient(x) / (2 * alpha), gamma * Q / (2 * alpha), A, b)
        points.append(x)
    return np.array(points)


def recoo_after(K, x, rounds, m=None, epsilon=0.1, scales=(1.0, 1.0, 1.0)):
    """With one row."""
    (_, n) = rounds[0][1].shape
    argmin = hinge_prox(K, 1, n)
    points, Q = [x], scales[1]
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        alpha = scales[0] * (math.sqrt(t) if m is None else m * t / 2)
        gamma = scales[2] * t ** (0.5 + epsilon)
        x = argmin(x - gradient(x) / (2 * alpha), np.array([gamma * Q / (2 * alpha)]), A, b)
        Q = max(Q + gamma * max(0.0, (A @ x - b)[0]), scales[1] * math.sqrt(t + 1))
        points.append(x)
    return np.array(points)
