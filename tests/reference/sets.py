"""Projections onto single sets, naive and obviously right; nothing here is shared with the library."""

from __future__ import annotations

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np

from cocopt import Ball, Box, CappedSimplex, Ellipsoid, Halfspace, Intersection, L1Ball, Polyhedron, Product, Simplex

TIGHT = {
    "tol_gap_abs": 1e-13,
    "tol_gap_rel": 1e-13,
    "tol_feas": 1e-13,
    "tol_ktratio": 1e-10,
    "max_iter": 500,
    "max_step_fraction": 0.6,
}


def by_cvxpy(K, point):
    """argmin ‖x − point‖ over K, in units in which the point and the set have size about 1."""
    unit = max(np.abs(point).max(), K.scale)
    x = cp.Variable(K.dim)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - point / unit)), conditions(K, x, unit))
    with warnings.catch_warnings():  # the tolerances are beyond what it can always reach, and it says so
        warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
        problem.solve(solver=cp.CLARABEL, **TIGHT)
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return x.value * unit


def conditions(K, x, unit):
    """unit·x in K, as CVXPY constraints."""
    if isinstance(K, Box):
        low, high = np.isfinite(K.lower), np.isfinite(K.upper)
        rows = [x[low] >= K.lower[low] / unit] if low.any() else []
        return rows + ([x[high] <= K.upper[high] / unit] if high.any() else [])
    if isinstance(K, Ball):
        return [cp.norm(x - K.center / unit) <= K.radius / unit]
    if isinstance(K, Simplex):
        return [x >= 0, cp.sum(x) == K.total / unit]
    if isinstance(K, CappedSimplex):
        finite = np.isfinite(K.caps)
        bounds = [x[finite] <= K.caps[finite] / unit] if finite.any() else []
        return [x >= 0, cp.sum(x) == K.total / unit, *bounds]
    if isinstance(K, L1Ball):
        return [cp.norm1(x - K.center / unit) <= K.radius / unit]
    if isinstance(K, Halfspace):
        return [(K.a / np.linalg.norm(K.a)) @ x <= K.b / np.linalg.norm(K.a) / unit]
    if isinstance(K, Polyhedron):
        norms = np.linalg.norm(K.A, axis=1)
        live = (norms > 0) & np.isfinite(K.b)
        return [(K.A[live] / norms[live, None]) @ x <= K.b[live] / norms[live] / unit]
    if isinstance(K, Ellipsoid):
        root = np.linalg.cholesky(K.P)
        u = cp.Variable(K.dim)
        return [x == K.center / unit + (root / unit) @ u, cp.norm(u) <= 1]
    if isinstance(K, Intersection):
        return [condition for member in K.sets for condition in conditions(member, x, unit)]
    assert isinstance(K, Product)
    found, at = [], 0
    for part in K.sets:
        found += conditions(part, x[at : at + part.dim], unit)
        at += part.dim
    return found


def simplex_exactly(point, total):
    """The projection onto the simplex in rational arithmetic: tries every size of the support."""
    numbers = [Fraction(float(p)) for p in point]
    falling = sorted(numbers, reverse=True)
    for k in range(len(falling), 0, -1):
        theta = (sum(falling[:k]) - Fraction(float(total))) / k
        if falling[k - 1] > theta:
            return np.array([float(max(p - theta, Fraction(0))) for p in numbers])
    raise AssertionError("no support fits")


def l1_exactly(point, center, radius):
    """The projection onto the 1-norm ball in rational arithmetic."""
    offset = [Fraction(float(p)) - Fraction(float(c)) for p, c in zip(point, center, strict=True)]
    if sum(abs(o) for o in offset) <= Fraction(float(radius)):
        return np.array(point)
    falling = sorted((abs(o) for o in offset), reverse=True)
    for k in range(len(falling), 0, -1):
        theta = (sum(falling[:k]) - Fraction(float(radius))) / k
        if falling[k - 1] > theta:
            break
    kept = [max(abs(o) - theta, Fraction(0)) * (1 if o > 0 else -1) for o in offset]
    return np.array([float(Fraction(float(c)) + k) for c, k in zip(center, kept, strict=True)])


def ellipsoid_by_bisection(z, sigma):
    """The projection onto the ellipsoid of half-axes sigma along the coordinates."""
    z, square = np.asarray(z, np.longdouble), np.asarray(sigma, np.longdouble) ** 2
    if (z**2 / square).sum() <= 1:
        return z.astype(float)
    low, high = np.longdouble(0), np.sqrt((square * z**2).sum())
    for _ in range(200):
        mu = (low + high) / 2
        if (square * z**2 / (square + mu) ** 2).sum() > 1:
            low = mu
        else:
            high = mu
    return (square * z / (square + high)).astype(float)
