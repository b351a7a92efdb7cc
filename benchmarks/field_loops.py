"""Every algorithm as one would write it for a single stream: NumPy vectors of length n, one generator per trial.

A generator takes the constants of a problem and x_1, yields x_t and receives (∇f_t(x_t), g_t(x_t), A_t, b_t) for the
rows A_t x ≤ b_t. Argmins and projections onto constraints are calls of ``daqp.solve``; projections onto the box are
``np.clip``. Where a method has several forms, these are the ones that `cocopt.experiments.field.applicable` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache
from itertools import count
from math import e, exp, log, sqrt
from typing import NamedTuple

import daqp
import numpy as np

Stream = Generator[np.ndarray, tuple[np.ndarray, ...], None]
Method = Callable[["Constants", np.ndarray], Stream]

INFINITE = 1e30  # for DAQP
EXACT = {"primal_tol": 1e-11, "dual_tol": 1e-12, "eta_prox": 1e-10}


class Constants(NamedTuple):
    """What the problem tells the methods; K is the box [lower, upper]^n."""

    T: int
    G: float
    D: float
    B: float
    slack: float | None
    m: float | None  #: None unless the losses are strongly convex
    static: bool
    lower: float
    upper: float

    def clip(self, y: np.ndarray) -> np.ndarray:
        return np.clip(y, self.lower, self.upper)

    def minimise(self, c: np.ndarray) -> np.ndarray:
        """argmin over K of ⟨c, x⟩."""
        return np.where(c < 0, self.upper, self.lower)

    def project(self, y: np.ndarray, A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The projection onto K ∩ {A x ≤ b}, and the multipliers of the rows."""
        n = len(y)
        H, high, low, sense = program(n, 0, len(b), self.lower, self.upper)
        x, _, flag, info = daqp.solve(H, -y, A, np.concatenate([high, b]), low, sense, **EXACT)
        if flag != 1:
            raise RuntimeError(f"DAQP stopped with flag {flag}")
        return x, info["lam"][n:]

    def hinge_prox(self, y: np.ndarray, A: np.ndarray, b: np.ndarray, w: np.ndarray | float) -> np.ndarray:
        """argmin over K of ½‖x − y‖² + Σ_i w_i g_i^+(x), or w·max_i g_i^+(x) for a number w.

        It is the projection unless a multiplier, or their sum, exceeds w; then the hinges are more variables.
        """
        x, multipliers = self.project(y, A, b)
        each = isinstance(w, np.ndarray)
        if (multipliers <= w).all() if each else multipliers.sum() <= w:
            return x
        n, M = len(y), len(b)
        hinges = np.eye(M) if each else np.ones((M, 1))
        H, high, low, sense = program(n, hinges.shape[1], M, self.lower, self.upper)
        rows, high = np.hstack([A, -hinges]), np.concatenate([high, b])
        x, _, flag, _ = daqp.solve(H, np.append(-y, w), rows, high, low, sense, **EXACT)
        if flag != 1:
            raise RuntimeError(f"DAQP stopped with flag {flag}")
        return x[:n]


@cache  # what can be prepared outside the loop
def program(n: int, hinges: int, M: int, lower: float, upper: float) -> tuple[np.ndarray, ...]:
    """What DAQP needs for x in K, so many hinges ≥ 0 and M rows: H, upper bounds of variables, lower bounds, sense."""
    H = np.diag(np.concatenate([np.ones(n), np.zeros(hinges)]))
    high = np.concatenate([np.full(n, upper), np.full(hinges, INFINITE)])
    low = np.concatenate([np.full(n, lower), np.zeros(hinges), np.full(M, -INFINITE)])
    return H, high, low, np.zeros(n + hinges + M, dtype=np.int32)


def clasp(c: Constants, x: np.ndarray) -> Stream:
    for t in count(1):
        gradient, _, A, b = yield x
        x, _ = c.project(x - (t**-0.5 if c.m is None else 1 / (c.m * t)) * gradient, A, b)


def clasp_f(c: Constants, x: np.ndarray) -> Stream:
    for t in count(1):
        gradient, g, A, _ = yield x
        i = g.argmax()
        if g[i] > 0:
            x = c.clip(x - g[i] / (A[i] @ A[i]) * A[i])
        x = c.clip(x - t**-0.5 * gradient)


def recoo(c: Constants, x: np.ndarray) -> Stream:
    Q = 1.0
    for t in count(1):
        gradient, _, A, b = yield x
        alpha, gamma = sqrt(t), t**0.6
        x = c.hinge_prox(x - gradient / (2 * alpha), A, b, Q * gamma / (2 * alpha))
        Q = max(Q + gamma * max((A @ x - b).max(), 0.0), sqrt(t + 1))


def coldq(c: Constants, x: np.ndarray, epsilon: float = 0.5) -> Stream:
    Q = None
    for t in count(1):
        gradient, g, A, b = yield x
        if t == 1:
            Q = np.full(len(g), epsilon * c.T)
        else:
            Q = np.maximum((1 - 1 / c.T) * Q + np.maximum(g, 0.0), epsilon * c.T)
        eta = 0.5 / sqrt(t)
        x = c.hinge_prox(x - eta * gradient, A, b, eta * Q)


def double_q(c: Constants, x: np.ndarray, epsilon: float = 0.01, V: float = 5.0) -> Stream:
    rate, beta = 0.5 / sqrt(c.T), 1 / (4 * c.G * c.D * e**2 + 1)
    penalties, sums, squares = epsilon, 0.0, 0.0
    for t in count(1):
        gradient, g, A, b = yield x
        v = np.maximum(g, 0.0)
        penalties = np.full(len(v), epsilon) if t == 1 else np.maximum((1 - 1 / c.T) * penalties + v, epsilon * c.T)
        sums = sums + beta * v
        p = V * gradient + np.where(v > 0, rate * np.exp(rate * sums) * beta, 0.0) @ A
        squares += p @ p
        eta = sqrt(2) * c.D / sqrt(squares)
        x = c.hinge_prox(x - eta * p, A, b, eta * penalties)


def yi2021(c: Constants, x: np.ndarray) -> Stream:
    q = 0.0
    for t in count(1):
        gradient, g, A, b = yield x
        gamma_0 = 1 / (c.G * sqrt(2 * len(g)))
        alpha, before = 2 / (c.m * t), 2 / (c.m * max(t - 1, 1))
        added = gamma_0 / sqrt(before) * np.maximum(g, 0.0)
        q = q + added
        x = c.hinge_prox(x - alpha / 2 * gradient, A, b, sqrt(alpha) * gamma_0 / 2 * (q + added))


def yi2023(c: Constants, x: np.ndarray, kappa: float = 0.5) -> Stream:
    q = 0.0
    for t in count(1):
        gradient, g, A, _ = yield x
        alpha = beta = t**-kappa
        gamma = t ** (kappa - 1)
        violated = g > 0
        y = c.clip(x - alpha * (gradient + (q * violated) @ A))
        q = np.maximum((1 - beta * gamma) * q + gamma * violated * (g + A @ (y - x)), 0.0)
        x = y


def drift_plus_penalty(c: Constants, x: np.ndarray) -> Stream:
    V, alpha, q = sqrt(c.T), c.T, None
    while True:
        gradient, g, A, _ = yield x
        q = np.zeros(len(g)) if q is None else q
        y = c.clip(x - (V * gradient + q @ A) / (2 * alpha))
        q = np.maximum(q + g + A @ (y - x), 0.0)
        x = y


def yu_neely(c: Constants, x: np.ndarray) -> Stream:
    q, gamma = 0.0, c.T**0.25
    while True:
        gradient, g, A, _ = yield x
        h = gamma * g
        q = np.maximum(-h, q + h)
        x = c.clip(x - (gradient + gamma * (q + h) @ A) / ((len(g) * c.G**2 + 1) * sqrt(c.T)))


def mahdavi(c: Constants, x: np.ndarray) -> Stream:
    multipliers = None
    while True:
        gradient, g, A, _ = yield x
        M = len(g)
        multipliers = np.zeros(M) if multipliers is None else multipliers
        eta = c.D / 2 / sqrt(((M + 1) * c.G**2 + 2 * M * c.B**2) * c.T)
        eta = min(eta, 1 / (c.G * sqrt(8 * (M + 1))))
        x = c.clip(x - eta * (gradient + multipliers @ A))
        multipliers = np.maximum(multipliers + eta * (g - 2 * (M + 1) * c.G**2 * eta * multipliers), 0.0)


def jenatton(c: Constants, x: np.ndarray) -> Stream:
    multiplier = 0.0
    for t in count(1):
        gradient, g, A, _ = yield x
        i = g.argmax()
        value, direction = g[i], gradient
        if c.static or value > 0:
            direction = gradient + multiplier * A[i]
        else:
            value = 0.0
        if c.m is None:
            theta, eta = 3 * c.D * c.G / sqrt(t), c.D / (2 * c.G * sqrt(t))
        else:
            theta, eta = 6 * c.G**2 / (c.m * sqrt(t)), 1 / (c.m * t)
        x = c.clip(x - eta * direction)
        multiplier = max(0.0, multiplier + (value - theta * multiplier) / (theta * (t + 1)))


def yuan_lamperski(c: Constants, x: np.ndarray) -> Stream:
    eta = c.T**-0.5
    while True:
        gradient, g, A, _ = yield x
        x = c.clip(x - eta * gradient - np.maximum(g, 0.0) @ A / ((len(g) + 1) * c.G**2))


def polyak(c: Constants, x: np.ndarray) -> Stream:
    rho = min(c.slack / 2, c.slack / sqrt(c.T))
    k = (c.slack - rho) / (c.D * c.G)
    eta = k**2 * rho / (2 * (1 + k) * c.G**2)
    while True:
        gradient, g, A, _ = yield x
        i = g.argmax()
        y = x - eta * gradient
        excess = g[i] + A[i] @ (y - x) + rho
        x = c.clip(y - excess / (A[i] @ A[i]) * A[i] if excess > 0 else y)


def yu_lee_lee(c: Constants, x: np.ndarray) -> Stream:
    Q = weights = squares = 0.0
    for t in count(1):
        gradient, g, A, _ = yield x
        gamma = min(1 / (12 * c.B * sqrt(t)), 1 / (24 * c.D * c.G), 1)
        weight = gamma * exp(gamma * Q)
        i = g.argmax()
        n = gradient + weight * A[i] if g[i] > 0 else gradient
        growth = 4 * c.D * c.G * (sqrt(weights + weight**2) - sqrt(weights))
        Q += max(g[i], 0.0) - 12 * gamma * c.B**2 - growth / weight
        weights += weight**2
        squares += n @ n
        x = c.clip(x - c.D / sqrt(2 * (1 + squares)) * n)


def surrogate(b: float, V: float, weight: Callable[[float], float]) -> Callable[..., tuple[np.ndarray, float]]:
    """A function of each round that returns n_t = V b ∇f_t + Φ'(Q_t) b s_t and Q_t = b Σ v; ``weight`` is Φ'."""
    queue = 0.0

    def follow(gradient: np.ndarray, g: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, float]:
        nonlocal queue
        i, n = g.argmax(), V * b * gradient
        if g[i] > 0:
            queue += b * g[i]
            n = n + weight(queue) * b * A[i]
        return n, queue

    return follow


def adagrad(c: Constants, x: np.ndarray, project: Callable[[np.ndarray], np.ndarray] | None = None) -> Stream:
    project = c.clip if project is None else project
    rate, squares = 0.5 / sqrt(c.T), 0.0
    n_of = surrogate(1 / (2 * c.G * c.D), 1.0, lambda q: rate * exp(rate * q))
    while True:
        gradient, g, A, _ = yield x
        n, _ = n_of(gradient, g, A)
        squares += n @ n
        x = project(x - c.D / sqrt(2 * squares) * n)


def lu(c: Constants, x: np.ndarray) -> Stream:
    """AdaGrad with an infeasible projection by separating hyperplanes in place of the projection."""
    center, inner, outer = (c.lower + c.upper) / 2, (c.upper - c.lower) / 2, c.D / 2
    step = min(0.5, 1 / sqrt(c.T)) * inner

    def project(y: np.ndarray) -> np.ndarray:
        y = y - center
        y = center + y / max(1.0, sqrt(y @ y) / outer)
        while (normal := y - c.clip(y)).any():
            y = y - step / sqrt(normal @ normal) * normal
        return y

    return adagrad(c, x, project)


def switch(c: Constants, x: np.ndarray) -> Stream:
    """Both projections onto all rows so far; AdaGrad once the violation is too large."""
    A_all, b_all, violation = np.empty((0, len(x))), np.empty(0), 0.0
    for t in count(1):
        gradient, g, A, b = yield x
        x, _ = c.project(x - c.D / (c.G * sqrt(t)) * gradient, A_all, b_all)
        A_all, b_all = np.concatenate([A_all, A]), np.concatenate([b_all, b])
        x, _ = c.project(x, A_all, b_all)
        violation += max(g.max(), 0.0)
        if violation > sqrt(c.T) * log(c.T):
            yield from adagrad(c, x)


def ofw(c: Constants, x: np.ndarray) -> Stream:
    b, rate = 1 / (64 * c.G * c.D), 0.5 / c.T**0.75
    n_of = surrogate(b, 1.0, lambda q: rate * exp(rate * q))
    guess, anchor, total, age = 2 * b * c.G * (1 + rate), x, 0.0, 0
    while True:
        gradient, g, A, _ = yield x
        n, queue = n_of(gradient, g, A)
        while guess < b * c.G * (1 + rate * exp(rate * queue)):
            guess, anchor, total, age = 2 * guess, x, 0.0, 0
        total, age = total + n, age + 1
        w = c.minimise(c.D / (2 * guess * c.T**0.75) * total + 2 * (x - anchor))
        x = x + min(1.0, 2 / sqrt(age)) * (w - x)


def sarkar(c: Constants, x: np.ndarray) -> Stream:
    rate = 0.5 / c.T**0.75
    n_of = surrogate(1 / (64 * c.G * c.D), 1.0, lambda q: rate * exp(rate * q))
    start, total, largest = x, 0.0, 0.0
    for t in count(1):
        gradient, g, A, _ = yield x
        n, _ = n_of(gradient, g, A)
        total, largest = total + n, max(largest, sqrt(n @ n))
        w = c.minimise(c.D / (2 * largest * c.T**0.75) * total + 2 * (x - start))
        x = x + min(1.0, 2 / sqrt(t)) * (w - x)


def scofw(c: Constants, x: np.ndarray) -> Stream:
    b, gamma = 1 / (c.G * c.D * c.T ** (2 / 3)), c.G / (c.G + c.m * c.D)
    n_of = surrogate(b, gamma, lambda q: 2 * q + 1)
    total, curvature = 0.0, gamma * b * c.m
    for t in count(1):
        gradient, g, A, _ = yield x
        n, _ = n_of(gradient, g, A)
        total = total + n - curvature * x
        slope = total + t * curvature * x
        along = c.minimise(slope) - x
        decrease, bend = -(slope @ along), t * curvature * (along @ along)
        x = x + (1.0 if decrease >= bend else max(0.0, decrease / bend)) * along


def garber_kretzu(c: Constants, x: np.ndarray) -> Stream:
    R, center = c.D / 2, (c.lower + c.upper) / 2
    eta, eps, block = R / c.G * c.T**-0.75, 60 * R**2 / sqrt(c.T), max(1, round(5 * sqrt(c.T)))
    theta = 4 * eta * block * c.G**2
    y, total = x, 0.0
    for t in count(1):
        gradient, g, A, _ = yield x
        i = g.argmax()
        total = total + gradient
        if g[i] > 0:
            total = total + g[i] / theta * A[i]
        if t % block:
            continue
        target, total = y - eta * total, 0.0
        distance = (x - target) @ (x - target)
        y = target - center
        y = center + y / max(1.0, sqrt(y @ y) / R)
        while distance > 3 * eps and (x - y) @ (x - y) > 3 * eps:
            w = c.minimise(x - y)
            gap = (x - y) @ (x - w)
            if gap <= eps:
                y = y - 2 * eps / distance * (y - x)
            else:
                x = x + min(1.0, gap / ((x - w) @ (x - w))) * (w - x)


#: by the name on the command line
LOOPS: dict[str, Method] = {
    "adagrad": adagrad,
    "clasp": clasp,
    "clasp-f": clasp_f,
    "coldq": coldq,
    "double-q": double_q,
    "drift-plus-penalty": drift_plus_penalty,
    "garber-kretzu": garber_kretzu,
    "jenatton": jenatton,
    "lu": lu,
    "mahdavi": mahdavi,
    "ofw": ofw,
    "polyak": polyak,
    "recoo": recoo,
    "sarkar": sarkar,
    "scofw": scofw,
    "switch": switch,
    "yi2021": yi2021,
    "yi2023": yi2023,
    "yu-lee-lee": yu_lee_lee,
    "yu-neely": yu_neely,
    "yuan-lamperski": yuan_lamperski,
}
