"""The problem of one trial, the memory that it is solved in, and its rows: values, gradients, size of their terms."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, inlined, njit
from cocopt.kernels.vectors import dot, norm

__all__ = ["Problem", "Work", "evaluate", "gram_matrices", "newton_memory", "work_views"]

_BY_COORDINATE, _BY_ROW = 8, 19  # vectors of the workspace that have one entry per coordinate, per row


class Problem(NamedTuple):
    """argmin over lower ≤ x ≤ upper of ½‖x − y‖² + Σ_i most_i g_i(x)^+.

    Of the R rows g_i affine ones come first, then balls, quadratics and cones. ``most`` may be inf.
    """

    y: Any
    lower: Any
    upper: Any
    A: Any  # affine rows ⟨a, x⟩ − b
    b: Any
    equalities: Any  # so many of them, the first ones, hold with equality
    centers: Any  # balls (‖x − c‖² − ρ²)/(2ρ): near the boundary ‖x − c‖ − ρ
    radii: Any
    P: Any  # quadratics ½xᵀPx + ⟨q, x⟩ + r
    q: Any
    r: Any
    C: Any  # cones ‖C x + e‖ − ⟨f, x⟩ − h
    e: Any
    f: Any
    h: Any
    most: Any  # (R) upper bounds of the multipliers
    most_sum: Any  # upper bound of the sum of those multipliers
    counted: Any  # (R) that are counted in it: 1 for them, else 0
    least_size: Any  # the terms of a row are taken as no smaller than those of a point of this length


class Work(NamedTuple):
    """Views of one flat array, for n coordinates, R rows and k cones with p rows each."""

    J: Any  # (R, n): the rows' gradients at x
    Z: Any  # (R, n): those of the listed rows on the free coordinates, after forward substitution
    U: Any  # (n, n): the factor of the Hessian on the free coordinates
    W: Any  # (k, n): Cᵀ(C x + e)/‖C x + e‖
    G: Any  # (k, n, n): CᵀC, the upper triangle
    gradient: Any  # (n): of the Lagrangian
    step: Any  # (n): the last step of x
    before: Any  # (n): x before it
    start: Any  # (n): x before the last step of the multipliers
    inverse: Any  # (n): 1/D of the factor
    z: Any  # (n): a vector on the free coordinates
    place: Any  # (n): the free coordinates, as integers
    free: Any  # (n): 1 for them, 0 for those at a bound
    value: Any  # (R): g_i(x)
    terms: Any  # (R): the size of the terms that make it up
    steepness: Any  # (R): the size of the terms that make up the gradient
    curving: Any  # (R): the Hessian of a row is this times P, CᵀC − w wᵀ or the identity
    last: Any  # (R): the last step of the multipliers
    u_before: Any  # (R): the multipliers before it
    listed: Any  # (R): the rows that take part, as integers; what follows is in their order, and in units of theirs
    unit: Any  # (R): the rows' units
    rho: Any  # (R): the dual's gradient
    d: Any  # (R): the step of the multipliers
    lo: Any  # (R): its bounds
    hi: Any  # (R)
    state: Any  # (R): whether a multiplier is at a bound
    p: Any  # (R): a direction, in the order of those that move
    ones: Any  # (R): another one
    weight: Any  # (R): what a multiplier adds to the bounded sum
    slope: Any  # (R): ρ − S d
    pivots: Any  # (R): 1 over the diagonal of T
    order: Any  # (R): the multipliers that move, as integers
    S: Any  # (R, R): minus the dual's Hessian
    T: Any  # (R, R): its factor on the multipliers that move
    image: Any  # (p): C x + e of a cone


def newton_memory(n: int, R: int, k: int, p: int) -> int:
    """How long the array for `work_views` is, with n + 2R more for the near target of a far one."""
    return (2 * R + n + k + k * n + _BY_COORDINATE + 1) * n + (_BY_ROW + 2 * R + 2) * R + p


@inlined
def work_views(memory, n, R, k, p):
    """The named views of an array of length `newton_memory`."""
    rows, at = R * n, 2 * R * n
    U, W = memory[at : at + n * n].reshape(n, n), memory[at + n * n : at + (n + k) * n].reshape(k, n)
    at += (n + k) * n
    G = memory[at : at + k * n * n].reshape(k, n, n)
    at += k * n * n
    v = memory[at : at + _BY_COORDINATE * n].reshape(_BY_COORDINATE, n)
    at += _BY_COORDINATE * n
    m = memory[at : at + _BY_ROW * R].reshape(_BY_ROW, R)
    at += _BY_ROW * R
    square = R * R
    return Work(
        memory[:rows].reshape(R, n), memory[rows : 2 * rows].reshape(R, n), U, W, G,
        v[0], v[1], v[2], v[3], v[4], v[5], v[6].view(np.int64), v[7],
        m[0], m[1], m[2], m[3], m[4], m[5], m[6].view(np.int64), m[7], m[8], m[9], m[10], m[11], m[12], m[13], m[14],
        m[15], m[16], m[17], m[18].view(np.int64),
        memory[at : at + square].reshape(R, R), memory[at + square : at + 2 * square].reshape(R, R),
        memory[at + 2 * square : at + 2 * square + p],
    )  # fmt: skip


@njit
def gram_matrices(C, G):
    """The upper triangle of CᵀC of each cone."""
    n = C.shape[2]
    for k in range(C.shape[0]):
        for i in range(n):
            for j in range(i, n):
                G[k, i, j] = 0.0
        for p in range(C.shape[1]):
            row = C[k, p]
            for i in range(n):
                entry, out = row[i], G[k, i]
                for j in range(i, n):
                    out[j] += entry * row[j]


@borrowing
def evaluate_ball(problem, work, x, size, a, i):
    """Row i, the ball number a."""
    radius, center, J = problem.radii[a], problem.centers[a], work.J[i]
    inverse, square, c_square = 1.0 / max(radius, 1e-300), 0.0, 0.0
    for j in range(x.shape[0]):
        z = x[j] - center[j]
        square += z * z
        c_square += center[j] * center[j]
        J[j] = z * inverse
    length, reach = np.sqrt(square), size + np.sqrt(c_square)
    work.value[i] = 0.5 * (length - radius) * (1.0 + length * inverse)
    work.terms[i], work.steepness[i], work.curving[i] = reach + radius, reach * inverse, inverse


@borrowing
def evaluate_quadratic(problem, work, x, size, a, i):
    """Row i, the quadratic number a."""
    P, q, J = problem.P[a], problem.q[a], work.J[i]
    curved, linear, square, q_square = 0.0, 0.0, 0.0, 0.0
    for j in range(x.shape[0]):
        z = dot(P[j], x)
        curved += z * x[j]
        linear += q[j] * x[j]
        square += z * z
        q_square += q[j] * q[j]
        J[j] = z + q[j]
    z_norm, q_norm = np.sqrt(square), np.sqrt(q_square)
    work.value[i] = 0.5 * curved + linear + problem.r[a]
    work.terms[i] = (0.5 * z_norm + q_norm) * size + abs(problem.r[a])
    work.steepness[i], work.curving[i] = z_norm + q_norm, 1.0


@borrowing
def evaluate_cone(problem, work, x, size, a, i):
    """Row i, the cone number a."""
    C, e, f, J, w, image = problem.C[a], problem.e[a], problem.f[a], work.J[i], work.W[a], work.image
    square, z_square, e_square, f_square, linear, w_square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for p in range(C.shape[0]):
        z = dot(C[p], x)
        z_square += z * z
        e_square += e[p] * e[p]
        image[p] = z + e[p]
        square += image[p] * image[p]
    length = np.sqrt(square)
    inverse = 1.0 / max(length, 1e-300)
    for j in range(x.shape[0]):
        w[j] = 0.0
    for p in range(C.shape[0]):
        row, z = C[p], image[p] * inverse
        for j in range(x.shape[0]):
            w[j] += z * row[j]
    for j in range(x.shape[0]):
        J[j] = w[j] - f[j]
        w_square += w[j] * w[j]
        f_square += f[j] * f[j]
        linear += f[j] * x[j]
    w_norm, f_norm = np.sqrt(w_square), np.sqrt(f_square)
    work.value[i] = length - linear - problem.h[a]
    work.terms[i] = np.sqrt(z_square) + np.sqrt(e_square) + (w_norm + f_norm) * size + abs(problem.h[a])
    work.steepness[i], work.curving[i] = w_norm + f_norm, inverse


@borrowing
def evaluate(problem, work, x):
    """The rows at x; whether all their values are finite, or −inf for one that never binds.

    The affine rows are in J, their lengths in ``steepness`` already.
    """
    size = max(norm(x), problem.least_size)
    i = problem.b.shape[0]
    for a in range(i):
        work.value[a] = dot(work.J[a], x) - problem.b[a]
        work.terms[a] = work.steepness[a] * size + abs(problem.b[a])
    for a in range(problem.radii.shape[0]):
        evaluate_ball(problem, work, x, size, a, i)
        i += 1
    for a in range(problem.r.shape[0]):
        evaluate_quadratic(problem, work, x, size, a, i)
        i += 1
    for a in range(problem.h.shape[0]):
        evaluate_cone(problem, work, x, size, a, i)
        i += 1
    total = 0.0
    for a in range(i):
        idle = work.value[a] == -np.inf
        work.value[a] = -1.0 if idle else work.value[a]
        work.terms[a] = 1.0 if idle else max(work.terms[a], 1e-300)
        total += work.value[a] * 0.0  # NaN if it is not finite
    return total == 0.0
