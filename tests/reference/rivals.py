"""RECOO, AdaGrad and CLASP-F as plain loops over one stream; RECOO's argmin by CVXPY."""

import contextlib
import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import cvxpy as cp
import numpy as np

TOLERANCES = ("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio")


# ---------------------------------------------------------------- sets: a projection, and CVXPY constraints


class Plain(NamedTuple):
    project: Callable
    constraints: Callable
    along: Callable = lambda v: v  # the part along the affine hull


def box(lower, upper):
    return Plain(
        project=lambda y: np.minimum(np.maximum(y, lower), upper),
        constraints=lambda x: [x >= lower, x <= upper],
    )


def ball(center, radius):
    def project(y):
        distance = math.sqrt(sum((y - center) ** 2))
        return y if distance <= radius else center + (y - center) * radius / distance

    return Plain(project=project, constraints=lambda x: [cp.norm(x - center) <= radius])


def simplex(total):
    def project(y):
        low, high = min(y) - total, max(y)
        for _ in range(200):
            middle = (low + high) / 2
            if sum(max(v - middle, 0.0) for v in y) > total:
                low = middle
            else:
                high = middle
        return np.array([max(v - (low + high) / 2, 0.0) for v in y])

    return Plain(project, lambda x: [x >= 0, cp.sum(x) == total], lambda v: v - sum(v) / len(v))


def ellipsoid(center, P):
    values, vectors = np.linalg.eigh(P)

    def project(y):
        z = vectors.T @ (y - center)
        if sum(z**2 / values) <= 1:
            return y
        low, high = 0.0, math.sqrt(sum(values * z**2)) + 1.0
        for _ in range(200):
            mu = (low + high) / 2
            if sum(values * z**2 / (values + mu) ** 2) > 1:
                low = mu
            else:
                high = mu
        return center + vectors @ (z * values / (values + (low + high) / 2))

    root = np.diag(values**-0.5) @ vectors.T
    return Plain(project=project, constraints=lambda x: [cp.norm(root @ (x - center)) <= 1])


# ---------------------------------------------------------------- algorithms
# rounds: (gradient of the loss, A, b); all return x_1, x_2, …


def recoo(K, x, rounds, m=None, epsilon=0.1, worst=False):
    M, n = rounds[0][1].shape
    M = 1 if worst else M
    argmin = _hinge_prox(K, M, n)
    points, Q = [x], 1.0
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        if worst:
            i = int(np.argmax(A @ x - b))
            A, b = A[i : i + 1], b[i : i + 1]
        alpha = math.sqrt(t) if m is None else m * t / 2
        gamma = t ** (0.5 + epsilon)
        x = argmin(gradient(x), Q * gamma, alpha, A, b, x)
        Q = max(Q + gamma * max(0.0, max(A @ x - b)), math.sqrt(t + 1))
        points.append(x)
    return np.array(points)


@cache  # CVXPY takes longer to compile a problem than to solve it some sixty times
def _hinge_prox(K, M, n):
    """argmin over x in K of ⟨c, x⟩ + w·max_i [⟨a_i, x⟩ − b_i]_+ + α‖x − x0‖², over 2α."""
    x, hinge = cp.Variable(n), cp.Variable(nonneg=True)
    target, w, A, b = cp.Parameter(n), cp.Parameter(nonneg=True), cp.Parameter((M, n)), cp.Parameter(M)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(x - target) / 2 + w * hinge), [A @ x - b <= hinge, *K.constraints(x)]
    )

    def argmin(c, weight, alpha, rows, rhs, x0):
        target.value, w.value = x0 - c / (2 * alpha), weight / (2 * alpha)
        A.value, b.value = rows, rhs
        for tol in (1e-14, 1e-13, 1e-12):  # as tight as the solver can
            with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
                warnings.simplefilter("ignore", UserWarning)
                # shorter steps keep it away from the cones' boundary for longer, and so its end sharper
                problem.solve(solver=cp.CLARABEL, max_step_fraction=0.9, **dict.fromkeys(TOLERANCES, tol))
                return x.value
        raise AssertionError("the solver gave up")

    return argmin


def adagrad(K, x, rounds, T, G, D, m=None, V=1.0):
    b_ = 1 / (2 * G * D) if m is None else 1.0
    if m is not None:
        V = 8 * G**2 * (1 + math.log(T)) / m
    points, Q, total = [x], 0.0, 0.0
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        i = int(np.argmax(A @ x - b))
        v = max(0.0, A[i] @ x - b[i])
        Q += b_ * v
        n = V * b_ * K.along(gradient(x))
        if v > 0:
            slope = math.exp(Q / (2 * math.sqrt(T))) / (2 * math.sqrt(T)) if m is None else 2 * Q
            n = n + slope * b_ * K.along(A[i])
        total += sum(n**2)
        if m is not None:
            eta = 1 / (V * m * t)
        else:
            eta = math.sqrt(2) * D / (2 * math.sqrt(total)) if total > 0 else 0.0
        x = K.project(x - eta * n)
        points.append(x)
    return np.array(points)


def clasp_f(K, x, rounds, step, at_xb=False):
    points = [x]
    for t, (gradient, A, b) in enumerate(rounds, start=1):
        i = int(np.argmax(A @ x - b))
        v = A[i] @ x - b[i]
        p = K.along(A[i])
        xb = K.project(x - v / sum(p**2) * p) if v > 0 else x
        x = K.project(xb - step(t) * gradient(xb if at_xb else x))
        points.append(x)
    return np.array(points)


# ---------------------------------------------------------------- streams


def regression(seed, T):
    """The paper's online linear regression: (H, y, A, b), T rounds of each."""
    rng = np.random.default_rng(seed)
    H = rng.uniform(-1, 1, (T, 4, 10))
    y = H.sum(axis=-1) + rng.normal(size=(T, 4))
    return H, y, rng.uniform(0, 2, (T, 4, 10)), rng.uniform(0, 1, (T, 4))


def svm(seed, T, n=5):
    """Labelled points u with their labels v, for 1 − v(⟨w, u⟩ − b) ≤ 0 in x = (w, b): (A, b)."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(T, n - 1))
    v = np.sign(u[:, 0] + 0.5 * rng.normal(size=T))
    A = -v[:, None] * np.concatenate([u, -np.ones((T, 1))], axis=1)
    return A[:, None, :], np.full((T, 1), -1.0)


def norm_gradient(H, y):
    def gradient(x):
        residual = H @ x - y
        return H.T @ residual / math.sqrt(sum(residual**2))

    return gradient


def quadratic_gradient(P, q):
    return lambda x: P @ x + q
