"""COLDQ, Double-Q, Yi et al. 2021 and RECOO with its queue before the argmin, as plain loops over one stream.

A set is a projection and CVXPY constraints (`Plain` of reference/rivals.py).
rounds: (gradient of the loss, A, b); all return x_1, x_2, …
"""

import math
from functools import cache

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

# ---------------------------------------------------------------- projections


def box(y):
    """Onto [0, 1]^n."""
    return np.minimum(np.maximum(y, 0.0), 1.0)


def ball(center, radius):
    def project(y):
        distance = math.sqrt(sum((y - center) ** 2))
        return y if distance <= radius else center + (y - center) * radius / distance

    return project


def simplex(total):
    """The threshold is that of the largest entries, as many as stay positive."""

    def project(y):
        ordered = sorted(y, reverse=True)
        thresholds = [(sum(ordered[: k + 1]) - total) / (k + 1) for k in range(len(y))]
        return np.maximum(y - max(thresholds), 0.0)

    return project


def ellipsoid(center, P):
    """{x : (x − center)ᵀ P⁻¹ (x − center) ≤ 1}, by the root of the multiplier's equation."""
    values, vectors = np.linalg.eigh(P)

    def project(y):
        z = vectors.T @ (y - center)
        if z @ (z / values) <= 1:
            return y
        upper = math.sqrt(z @ (values * z))
        mu = brentq(lambda mu: z @ (values * z / (values + mu) ** 2) - 1, 0.0, upper, xtol=1e-15, rtol=1e-15)
        return center + vectors @ (z * values / (values + mu))

    return project


# ---------------------------------------------------------------- the argmin


def hinge_prox(K, target, weights, A, b):
    """argmin over x in K of ½‖x − target‖² + Σ_i w_i [⟨a_i, x⟩ − b_i]_+.

    The hinge is max over ν_i in [0, w_i] of ν_i(⟨a_i, x⟩ − b_i), so it is P_K(target − Σ_i ν_i a_i) for the best ν. In
    each ν_i the derivative ⟨a_i, x⟩ − b_i never increases: its root maximises, one coordinate after the other. Where
    rows are at odds this takes too long, and the problem is left to CVXPY, whose digits are fewer.
    """
    nu = np.zeros(len(b))

    def slope(value, i):
        moved = nu.copy()
        moved[i] = value
        return A[i] @ K.project(target - moved @ A) - b[i]

    for _ in range(500):
        before = nu.copy()
        for i, w in enumerate(weights):
            if slope(0.0, i) <= 0:
                nu[i] = 0.0
            elif slope(w, i) >= 0:
                nu[i] = w
            else:
                nu[i] = brentq(slope, 0.0, w, args=(i,), xtol=1e-14, rtol=1e-14)
        x = K.project(target - nu @ A)
        gap = sum(w * max(0.0, row) - v * row for w, v, row in zip(weights, nu, A @ x - b, strict=True))
        if max(abs(nu - before)) <= 1e-11 or gap <= 1e-14:  # half of the squared distance to the argmin at most
            return x
    return by_cvxpy(K, *A.shape)(target, weights, A, b)


@cache  # CVXPY takes longer to compile a problem than to solve it some sixty times
def by_cvxpy(K, M, n):
    x, hinges = cp.Variable(n), cp.Variable(M, nonneg=True)
    target, w, A, b = cp.Parameter(n), cp.Parameter(M, nonneg=True), cp.Parameter((M, n)), cp.Parameter(M)
    objective = cp.sum_squares(x - target) / 2 + w @ hinges
    problem = cp.Problem(cp.Minimize(objective), [A @ x - b <= hinges, *K.constraints(x)])

    def argmin(point, weights, rows, rhs):
        target.value, w.value, A.value, b.value = point, weights, rows, rhs
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio"), 1e-12)
        problem.solve(solver=cp.CLARABEL, warm_start=False, **options)  # a warm start would cost digits
        assert problem.status == cp.OPTIMAL  # and not "inaccurate"
        return x.value

    return argmin


# ---------------------------------------------------------------- algorithms


def positive_part(values):
    return np.array([max(0.0, value) for value in values])


def coldq(K, x, rounds, alpha, epsilon, T=None):
    M = len(rounds[0][1])
    points, Q = [x], None
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        delta, least = (1 / t**2, epsilon * t**2) if T is None else (1 / T, epsilon * T)
        if t == 1:
            Q = np.full(M, least)
        else:
            Q = np.maximum((1 - delta) * Q + positive_part(A @ x - b), least)
        x = hinge_prox(K, x - gradient(x) / (2 * alpha(t)), Q / (2 * alpha(t)), A, b)
        points.append(x)
    return np.array(points)


def double_q(K, x, rounds, T, G, D, epsilon, V, along):
    """``along`` is the projection onto the direction space of the affine hull of K."""
    M = len(rounds[0][1])
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
        x = hinge_prox(K, x - alpha * p, alpha * q, A, b)
        points.append(x)
    return np.array(points)


def yi2021(K, x, rounds, alpha, gamma_0):
    M = len(rounds[0][1])
    gamma = {1: gamma_0 / math.sqrt(alpha(1))}
    points, q = [x], np.zeros(M)
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        gamma[t + 1] = gamma_0 / math.sqrt(alpha(t))
        v = positive_part(A @ x - b)
        q = q + gamma[t] * v
        ahead = q + gamma[t] * v
        x = hinge_prox(K, x - alpha(t) * gradient(x) / 2, alpha(t) * gamma[t + 1] * ahead / 2, A, b)
        points.append(x)
    return np.array(points)


def recoo_before(K, x, rounds, m=None, epsilon=0.1, worst=False, scales=(1.0, 1.0, 1.0)):
    M = 1 if worst else len(rounds[0][1])
    points, Q = [x], np.zeros(M)
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        if worst:
            i = int(np.argmax(A @ x - b))
            A, b = A[i : i + 1], b[i : i + 1]
        alpha = scales[0] * (math.sqrt(t) if m is None else m * t / 2)
        eta, gamma = scales[1] * math.sqrt(t), scales[2] * t ** (0.5 + epsilon)
        Q = np.maximum(Q + gamma * positive_part(A @ x - b), eta)
        x = hinge_prox(K, x - gradient(x) / (2 * alpha), gamma * Q / (2 * alpha), A, b)
        points.append(x)
    return np.array(points)


def recoo_after(K, x, rounds, m=None, epsilon=0.1, scales=(1.0, 1.0, 1.0)):
    """With one row."""
    points, Q = [x], scales[1]
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        alpha = scales[0] * (math.sqrt(t) if m is None else m * t / 2)
        gamma = scales[2] * t ** (0.5 + epsilon)
        x = hinge_prox(K, x - gradient(x) / (2 * alpha), np.array([gamma * Q / (2 * alpha)]), A, b)
        Q = max(Q + gamma * max(0.0, (A @ x - b)[0]), scales[1] * math.sqrt(t + 1))
        points.append(x)
    return np.array(points)
