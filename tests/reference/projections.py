"""Naive references for projections and hinge proxes, written to be obviously right; nothing here imports cocopt.

A set or a constraint is described by a plain tuple: the name of its class and the arguments of its constructor, such as
``("Ball", center, radius)`` or ``("Stack", [("Affine", A, b), ("NormBall", c, r)])``. Two names stand for another way
to hand over a constraint ``g``: ``("Function", g)`` as plain callables, ``("from_cvxpy", g)`` as an expression.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import linprog

from reference.least_squares import nnls

Array = np.ndarray[Any, np.dtype[np.float64]]
Description = tuple[Any, ...]


# -------------------------------------------------------------------------------------------- what a description means


def dimension(K: Description) -> int:
    match K:
        case ("Simplex", n, _):
            return int(n)
        case ("Product", parts):
            return sum(dimension(part) for part in parts)
        case ("Polyhedron", A, _):
            return int(A.shape[1])
    return len(K[1])


def membership(K: Description, x: cp.Expression) -> list[cp.Constraint]:
    """x in K, in CVXPY's words."""
    match K:
        case ("Box", lower, upper):
            low, high = np.isfinite(lower), np.isfinite(upper)
            bounds = [x[low] >= lower[low]] if low.any() else []
            return [*bounds, x[high] <= upper[high]] if high.any() else bounds
        case ("Ball", center, radius):
            return [cp.norm(x - center) <= radius]
        case ("Simplex", _, total):
            return [x >= 0, cp.sum(x) == total]
        case ("Halfspace", a, b):
            return [a @ x <= b]
        case ("Polyhedron", A, b):
            return [A @ x <= b]
        case ("L1Ball", center, radius):
            return [cp.norm1(x - center) <= radius]
        case ("Ellipsoid", center, P):
            return [cp.norm(np.linalg.inv(np.linalg.cholesky(P)) @ (x - center)) <= 1]
        case ("Product", parts):
            at = np.cumsum([0, *(dimension(part) for part in parts)])
            return [c for i, part in enumerate(parts) for c in membership(part, x[at[i] : at[i + 1]])]
    raise ValueError(K)


def outside(K: Description, x: Array) -> float:
    """By how much x breaks the worst of the inequalities that define K, each in units of length."""
    match K:
        case ("Box", lower, upper):
            return float(max(0.0, np.max(lower - x), np.max(x - upper)))
        case ("Ball", center, radius):
            return float(max(0.0, np.linalg.norm(x - center) - radius))
        case ("Simplex", n, total):
            return float(max(0.0, -x.min(), abs(x.sum() - total) / np.sqrt(n)))
        case ("Halfspace", a, b):
            return float(max(0.0, (a @ x - b) / np.linalg.norm(a)))
        case ("Polyhedron", A, b):
            return float(max(0.0, np.max((A @ x - b) / np.linalg.norm(A, axis=1))))
        case ("L1Ball", center, radius):
            return float(max(0.0, (np.abs(x - center).sum() - radius) / np.sqrt(x.size)))
        case ("Ellipsoid", center, P):
            w, V = np.linalg.eigh(P)
            r = np.linalg.norm((V.T @ (x - center)) / np.sqrt(w))
            return float(max(0.0, (r - 1) * np.linalg.norm(x - center)))
        case ("Product", parts):
            at = np.cumsum([0, *(dimension(part) for part in parts)])
            return max(outside(part, x[at[i] : at[i + 1]]) for i, part in enumerate(parts))
    raise ValueError(K)


def expressions(g: Description, x: cp.Expression) -> list[cp.Expression]:
    """The rows of g, in CVXPY's words."""
    match g:
        case ("Affine", A, b):
            active = np.isfinite(b)
            return [A[active] @ x - b[active]]
        case ("NormBall", center, radius):
            return [cp.norm(x - center) - radius]
        case ("Quadratic", P, q, r):
            return [0.5 * cp.quad_form(x, P, assume_PSD=True) + q @ x + r]
        case ("SecondOrder", A, b, c, d):
            return [cp.norm(A @ x + b) - c @ x - d]
        case ("Stack", parts):
            return [e for part in parts for e in expressions(part, x)]
        case ("Function" | "from_cvxpy", inner):
            return expressions(inner, x)
    raise ValueError(g)


def rows(g: Description, x: Array) -> Array:
    """(g_1(x), ..., g_M(x)) at one point."""
    match g:
        case ("Affine", A, b):
            return A @ x - b
        case ("NormBall", center, radius):
            return np.array([np.linalg.norm(x - center) - radius])
        case ("Quadratic", P, q, r):
            return np.array([0.5 * x @ P @ x + q @ x + r])
        case ("SecondOrder", A, b, c, d):
            return np.array([np.linalg.norm(A @ x + b) - c @ x - d])
        case ("Stack", parts):
            return np.concatenate([rows(part, x) for part in parts])
        case ("Function" | "from_cvxpy", inner):
            return rows(inner, x)
    raise ValueError(g)


def subgradient(g: Description, x: Array) -> Array:
    """A subgradient of max_i g_i at x."""
    match g:
        case ("Affine", A, b):
            return A[np.argmax(A @ x - b)]
        case ("NormBall", center, _):
            return (x - center) / max(float(np.linalg.norm(x - center)), 1e-300)
        case ("Quadratic", P, q, _):
            return P @ x + q
        case ("SecondOrder", A, b, c, _):
            return A.T @ (A @ x + b) / max(float(np.linalg.norm(A @ x + b)), 1e-300) - c
        case ("Stack", parts):
            return subgradient(parts[int(np.argmax([rows(part, x).max() for part in parts]))], x)
    raise ValueError(g)


def size(g: Description, length: float) -> float:
    """The largest term that can appear in a row of g at points of that length: the unit of its rounding errors."""
    match g:
        case ("Affine", A, b):
            return float(np.max(np.linalg.norm(A, axis=1)) * length + np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
        case ("NormBall", center, radius):
            return float(length + np.linalg.norm(center) + abs(radius))
        case ("Quadratic", P, q, r):
            return float(np.linalg.norm(P) * length**2 + np.linalg.norm(q) * length + abs(r))
        case ("SecondOrder", A, b, c, d):
            return float((np.linalg.norm(A) + np.linalg.norm(c)) * length + np.linalg.norm(b) + abs(d))
        case ("Stack", parts):
            return max(size(part, length) for part in parts)
        case ("Function" | "from_cvxpy", inner):
            return size(inner, length)
    raise ValueError(g)


# ------------------------------------------------------------------------------------------------------------ by CVXPY


def minimum(objective: cp.Expression, constraints: list[cp.Constraint]) -> float:
    """The least value, by Clarabel asked for more than it can reach: its last iterate is its best."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for tol, stride in (
        (1e-13, 0.99),
        (1e-13, 0.9),
        (1e-11, 0.99),
        (1e-11, 0.9),
        (1e-9, 0.9),
    ):  # 0.99 may go in circles
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Solution may be inaccurate")
                limits = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
                problem.solve(solver=cp.CLARABEL, max_step_fraction=stride, **limits)
        except cp.SolverError:  # it got stuck before an iterate that it would call even inaccurate
            continue
        if problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return float(problem.value)
    raise RuntimeError(f"the reference found {problem.status}")


def by_cvxpy(K: Description, g: Description | None, y: Array) -> Array:
    """argmin of ‖x − y‖² over K ∩ {g ≤ 0}; with curved boundaries a gap of 1e-14 still leaves an error of 1e-7 in x."""
    step = cp.Variable(len(y))
    limits = [] if g is None else [e <= 0 for e in expressions(g, y + step)]
    minimum(cp.sum_squares(step), membership(K, y + step) + limits)
    return y + step.value


def project(K: Description, g: Description, y: Array) -> Array:
    """The same to rounding: CVXPY's point, polished; or an error if it is BadlyConditioned."""
    return polish(pieces(K) + pieces(g), np.eye(len(y)), -y, by_cvxpy(K, g, y))


def least_violation(K: Description, g: Description) -> float:
    """min over K of max_i g_i."""
    x, t = cp.Variable(dimension(K)), cp.Variable()
    return minimum(t, membership(K, x) + [e <= t for e in expressions(g, x)])


def least_violation_point(K: Description, g: Description, y: Array) -> tuple[Array, float]:
    """Of the points of K with violation at most t + 1e-6, t the least possible, the one nearest to y; and t."""
    t = least_violation(K, g)
    step = cp.Variable(len(y))
    limits = [e <= t + 1e-6 for e in expressions(g, y + step)]
    minimum(cp.sum_squares(step), membership(K, y + step) + limits)
    return y + step.value, t


def hinge_objective(
    g: Description, x: Array, point: Array, linear: Array, weight: float | Array, cap: str, rho: float
) -> float:
    """⟨linear, x⟩ + penalty(x) + rho‖x − point‖²."""
    excess = np.maximum(rows(g, x), 0.0)
    penalty = (weight * excess).sum() if cap == "each" else weight * excess.max()
    return float(linear @ x + penalty + rho * (x - point) @ (x - point))


def hinge_prox(
    K: Description, g: Description, point: Array, linear: Array, weight: float | Array, cap: str, rho: float
) -> Array:
    """The minimiser of hinge_objective over K: CVXPY's point, polished in the variables (x, t) of the epigraph."""
    n, step = len(point), cp.Variable(len(point))
    excess = cp.pos(cp.hstack(expressions(g, point + step)))
    count = excess.size if cap == "each" else 1
    w = np.broadcast_to(weight, count)
    penalty = w @ excess if cap == "each" else w[0] * cp.max(excess)
    unit = max(1.0, rho, float(w.max()))  # keeps the coefficients that Clarabel sees near 1
    minimum((linear @ step + penalty + rho * cp.sum_squares(step)) / unit, membership(K, point + step))
    x = point + step.value
    t = np.maximum(rows(g, x), 0.0)
    every = [_lifted(piece, np.eye(n + count)[:n]) for piece in pieces(K)] + epigraph(g, n, count)
    H = np.diag(np.append(np.full(n, 2 * rho), np.zeros(count)))
    q = np.append(linear - 2 * rho * point, w)
    return polish(every, H, q, np.append(x, t if cap == "each" else t.max()))[:n]


# ------------------------------------------------------------------------------------------- by Newton's method on KKT

Piece = tuple[Callable[[Array], float], Callable[[Array], Array], Callable[[Array], Array]]


def pieces(d: Description) -> list[Piece]:
    """Smooth convex functions, each with gradient and Hessian, with K or {g ≤ 0} as common sublevel set."""
    match d:
        case ("Ball" | "NormBall", c, r):
            return [(lambda x: 0.5 * ((x - c) @ (x - c) - r * r), lambda x: x - c, lambda x: np.eye(len(x)))]
        case ("Ellipsoid", c, P):
            Q = np.linalg.inv(P)
            return [(lambda x: 0.5 * ((x - c) @ Q @ (x - c) - 1), lambda x: Q @ (x - c), lambda x: Q)]
        case ("Quadratic", P, q, r):
            return [(lambda x: 0.5 * x @ P @ x + q @ x + r, lambda x: P @ x + q, lambda x: P)]
        case ("SecondOrder", A, b, c, e):

            def bend(x: Array) -> Array:
                length = np.linalg.norm(A @ x + b)
                u = (A @ x + b) / length
                return A.T @ (np.eye(len(b)) - np.outer(u, u)) @ A / length

            return [(lambda x: float(np.linalg.norm(A @ x + b) - c @ x - e), lambda x: subgradient(d, x), bend)]
        case ("Product", parts):
            n, at, found = dimension(d), 0, []
            for part in parts:
                E = np.eye(n)[at : at + dimension(part)]
                found += [_lifted(piece, E) for piece in pieces(part)]
                at += dimension(part)
            return found
        case ("Stack", parts):
            return [piece for part in parts for piece in pieces(part)]
        case ("Function" | "from_cvxpy", inner):
            return pieces(inner)
    A, b = d[1:] if d[0] == "Affine" else inequalities(d)
    return [_row(a, rhs) for a, rhs in zip(A, b, strict=True) if np.isfinite(rhs)]


def _row(a: Array, b: float) -> Piece:
    return (lambda x: float(a @ x - b), lambda x: a, lambda x: np.zeros((len(a), len(a))))


def _lifted(piece: Piece, E: Array) -> Piece:
    """The piece of the coordinates E x."""
    f, gradient, hessian = piece
    return (lambda x: f(E @ x), lambda x: E.T @ gradient(E @ x), lambda x: E.T @ hessian(E @ x) @ E)


class BadlyConditioned(RuntimeError):
    """The reference cannot vouch for its position, as at the apex of a cone."""


def polish(every: list[Piece], H: Array, q: Array, z: Array, tol: float = 1e-11) -> Array:
    """The minimiser of ½zᵀHz + qᵀz over {all f ≤ 0} to rounding, from a good guess z.

    The guess's multipliers (non-negative least squares on the gradients of what is nearly active) name the active
    pieces. Newton's method solves Hz + q + Σ λ_i ∇f_i = 0, f_i = 0 for them; then the most negative multiplier leaves,
    or else the worst violated piece joins. What is returned satisfies the KKT conditions, so it is the solution.
    """
    n = len(z)
    near = [i for i, (f, _, _) in enumerate(every) if f(z) > -1e-3]
    multipliers, _ = nnls(np.array([every[i][1](z) for i in near]).T, -H @ z - q) if near else (np.zeros(0), 0.0)
    active = {i: m for i, m in zip(near, multipliers, strict=True) if m > 1e-6}
    for _ in range(20):
        m = np.array(list(active.values()))
        for _ in range(20):
            J = np.array([every[i][1](z) for i in active]).reshape(-1, n)
            residual = np.concatenate([H @ z + q + J.T @ m, [every[i][0](z) for i in active]])
            curvature = H + sum(w * every[i][2](z) for i, w in zip(active, m, strict=True))
            system = np.block([[curvature, J.T], [J, np.zeros((len(m), len(m)))]])
            if np.linalg.cond(system) > 1e8:
                raise BadlyConditioned
            if np.abs(residual).max() <= tol:
                break
            change = np.linalg.solve(system, -residual)
            z, m = z + change[:n], m + change[n:]
        else:
            raise BadlyConditioned
        active = dict(zip(active, m, strict=True))
        worst = max(range(len(every)), key=lambda i: every[i][0](z))
        if m.min(initial=0.0) < 0:
            del active[min(active, key=lambda i: active[i])]
        elif every[worst][0](z) > tol and worst not in active:
            active[worst] = 0.0
        else:
            return z
    raise BadlyConditioned


def epigraph(g: Description, n: int, count: int) -> list[Piece]:
    """g_i(x) ≤ t_i (or ≤ t, if count is 1) and t ≥ 0, as pieces of (x, t)."""
    match g:
        case ("Stack", parts):
            rows = [piece for part in parts for piece in pieces(_as_norm(part))]
        case ("Function" | "from_cvxpy", inner):
            return epigraph(inner, n, count)
        case _:
            rows = pieces(_as_norm(g))
    E, T = np.eye(n + count)[:n], np.eye(n + count)[n:]
    below = []
    for i, piece in enumerate(rows):
        f, gradient, hessian = _lifted(piece, E)
        t = T[i % count]
        below.append((lambda z, f=f, t=t: f(z) - t @ z, lambda z, d=gradient, t=t: d(z) - t, hessian))
    return below + [_row(-t, 0.0) for t in T]


def _as_norm(g: Description) -> Description:
    """A norm ball by its own g, not by the squares that describe the same set."""
    if g[0] != "NormBall":
        return g
    n = len(g[1])
    return ("SecondOrder", np.eye(n), -g[1], np.zeros(n), g[2])


# --------------------------------------------------------------------------------------------- exact, where polyhedral


def inequalities(K: Description) -> tuple[Array, Array]:
    """K as {x : A x ≤ b}, every bound a row, an equation two rows, an l1 ball 2^n rows."""
    match K:
        case ("Box", lower, upper):
            eye = np.eye(len(lower))
            A, b = np.vstack([eye, -eye]), np.concatenate([upper, -lower])
            return A[np.isfinite(b)], b[np.isfinite(b)]
        case ("Simplex", n, total):
            one = np.ones((1, n))
            return np.vstack([-np.eye(n), one, -one]), np.concatenate([np.zeros(n), [total, -total]])
        case ("Halfspace", a, b):
            return a[None, :], np.array([b])
        case ("Polyhedron", A, b):
            return A, b
        case ("L1Ball", center, radius):
            A = np.array(list(itertools.product([-1.0, 1.0], repeat=len(center))))
            return A, radius + A @ center
        case ("Product", parts):
            pieces = [inequalities(part) for part in parts]
            return block_diag(*(A for A, _ in pieces)), np.concatenate([b for _, b in pieces])
    raise ValueError(K)


def polyhedral(K: Description) -> bool:
    return all(map(polyhedral, K[1])) if K[0] == "Product" else K[0] not in ("Ball", "Ellipsoid")


def all_rows(K: Description, g: Description) -> tuple[Array, Array]:
    """K ∩ {g ≤ 0} as {x : A x ≤ b}, for affine g; idle rows left out."""
    A, b = inequalities(K)
    _, C, d = g
    return np.vstack([A, C[np.isfinite(d)]]), np.concatenate([b, d[np.isfinite(d)]])


def enumerate_active_sets(A: Array, b: Array, y: Array, tol: float = 1e-9) -> Array:
    """The projection of y onto {A x ≤ b}: try all sets of independent rows as active, check KKT.

    The multipliers of the solution can be supported on independent rows, so one of the tries is right.
    """
    for count in range(len(y) + 1):
        for chosen in itertools.combinations(range(len(b)), count):
            S = list(chosen)
            if count > 0 and np.linalg.matrix_rank(A[S]) < count:
                continue
            multipliers = np.linalg.solve(A[S] @ A[S].T, A[S] @ y - b[S])
            x = y - A[S].T @ multipliers
            if (multipliers >= -tol).all() and (A @ x <= b + tol).all():
                return x
    raise RuntimeError("no active set satisfies the KKT conditions: the set is empty")


def least_distance(A: Array, b: Array, y: Array) -> Array:
    """The projection of y onto {A x ≤ b}, by the active-set method of Lawson & Hanson (1974, ch. 23)."""
    norms = np.linalg.norm(A, axis=1)
    G, h = -A / norms[:, None], -(b - A @ y) / norms  # x = y + u: G u ≥ h
    unit = max(float(np.max(h)), 1e-300)  # u in units of the worst violation
    if np.max(h) <= 0:
        return y.copy()
    E = np.vstack([G.T, h / unit])
    f = np.append(np.zeros(len(y)), 1.0)
    z, _ = nnls(E, f)
    residual = E @ z - f
    return y - unit * residual[:-1] / residual[-1]


def kelley(K: Description, value: Callable[[Array], float], gradient: Callable[[Array], Array], y: Array) -> int:
    """How many cuts Kelley's method (1960) takes to a violation of 1e-7, for the projection of y onto a polyhedron."""
    A, b = inequalities(K)
    own = len(b)
    while value(x := least_distance(A, b, y)) > 1e-7:
        A, b = np.vstack([A, gradient(x)]), np.append(b, gradient(x) @ x - value(x))
        assert len(b) - own < 1000, "the cuts do not come closer"
    return len(b) - own


def least_violation_lp(K: Description, A: Array, b: Array) -> float:
    """min over a polyhedral K of max_i ⟨a_i, x⟩ − b_i, as a linear program."""
    C, d = inequalities(K)
    n = A.shape[1]
    result = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.vstack([np.hstack([A, -np.ones((len(b), 1))]), np.hstack([C, np.zeros((len(d), 1))])]),
        b_ub=np.concatenate([b, d]),
        bounds=(None, None),
        method="highs-ds",
    )
    if result.status != 0:
        raise RuntimeError(result.message)
    return float(result.fun)
