"""The problem of one trial, the memory that it is solved in, and its rows: values, gradients, size of their terms."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.arrays import Array
from cocopt.kernels._jit import borrowing, in_order, inlined, njit
from cocopt.kernels.vectors import dot, norm

__all__ = ["Problem", "Work", "evaluate", "gram_matrices", "newton_memory", "work_views"]

_BY_COORDINATE, _BY_ROW = 9, 19  # vectors of the workspace that have one entry per coordinate, per row


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
    diagonal: Any  # whether P is diagonal: 1, else 0
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
    """Views of three arrays, for n coordinates, R rows and k cones with p rows each."""

    J: Any  # (R, n): the rows' gradients at x
    Z: Any  # (R, n): those of the listed rows on the free coordinates, after forward substitution
    U: Any  # (n, n): the factor of the Hessian on the free coordinates
    W: Any  # (k, n): Cᵀ(C x + e)/‖C x + e‖
    G: Any  # (kn, n): CᵀC, the upper triangles one below the other
    gradient: Any  # (n): of the Lagrangian
    step: Any  # (n): the last step of x
    before: Any  # (n): x before it
    start: Any  # (n): x before the last step of the multipliers
    inverse: Any  # (n): 1/D of the factor, or 1 over the Hessian's diagonal, of the free coordinates
    flat: Any  # (n): 1 over the Hessian's diagonal, where it is diagonal, of all coordinates
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
    image: Any  # (p): C x of a cone


def newton_memory(n: int, R: int, k: int, p: int) -> tuple[Array, Array, Array]:
    """The arrays for `work_views`, with a row more in the first and two in the second for the near target of a far one.

    Their rows are slices, since the shape of an array is changed at a cost.
    """
    return np.empty((2 * R + n + k + k * n + _BY_COORDINATE + 1, n)), np.empty((_BY_ROW + 2 * R + 2, R)), np.empty(p)


@inlined
def work_views(by_coordinate, by_row, image, n, R, k):
    """The named views of the arrays of `newton_memory`."""
    m, U, W, G = by_row, 2 * R, 2 * R + n, 2 * R + n + k
    v = by_coordinate[G + k * n :]
    return Work(
        by_coordinate[:R], by_coordinate[R:U], by_coordinate[U:W], by_coordinate[W:G], by_coordinate[G : G + k * n],
        v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7].view(np.int64), v[8],
        m[0], m[1], m[2], m[3], m[4], m[5], m[6].view(np.int64), m[7], m[8], m[9], m[10], m[11], m[12], m[13], m[14],
        m[15], m[16], m[17], m[18].view(np.int64),
        m[_BY_ROW : _BY_ROW + R], m[_BY_ROW + R : _BY_ROW + 2 * R], image,
    )  # fmt: skip


@in_order
def add_four(rows, i, out):
    """What four rows of C contribute to row i of CᵀC, from the diagonal on."""
    r0, r1, r2, r3 = rows
    t0, t1, t2, t3 = r0[i], r1[i], r2[i], r3[i]
    for j in range(np.uint64(i), np.uint64(out.shape[0])):  # (see `cocopt.kernels.dense.factor`)
        out[j] += t0 * r0[j] + t1 * r1[j] + t2 * r2[j] + t3 * r3[j]


@njit
def gram_matrices(cones, G):
    """The upper triangle of CᵀC of each cone, four rows of C at once."""
    n, p = cones.shape[2], cones.shape[1]
    whole = p - p % 4
    for k in range(cones.shape[0]):
        C, top = cones[k], k * n
        for i in range(n):
            out = G[top + i]
            for j in range(np.uint64(i), np.uint64(n)):
                out[j] = 0.0
        for a in range(0, whole, 4):
            rows = C[a], C[a + 1], C[a + 2], C[a + 3]
            for i in range(n):
                add_four(rows, i, G[top + i])
        for a in range(whole, p):
            row = C[a]
            for i in range(n):
                entry, out = row[i], G[top + i]
                for j in range(np.uint64(i), np.uint64(n)):
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
    for j in range(x.shape[0]):
        J[j] = (x[j] - center[j]) * inverse
    length, reach = np.sqrt(square), size + np.sqrt(c_square)
    work.value[i] = 0.5 * (length - radius) * (1.0 + length * inverse)
    work.terms[i], work.steepness[i], work.curving[i] = reach + radius, reach * inverse, inverse


@borrowing
def evaluate_quadratic(problem, work, x, size, a, i):
    """Row i, the quadratic number a."""
    P, q, J = problem.P[a], problem.q[a], work.J[i]
    curved, linear, square, q_square = 0.0, 0.0, 0.0, 0.0
    if problem.diagonal[a] > 0.0:
        for j in range(x.shape[0]):
            J[j] = P[j, j] * x[j]
    else:
        for j in range(x.shape[0]):
            J[j] = dot(P[j], x)
    for j in range(x.shape[0]):
        z = J[j]
        curved += z * x[j]
        linear += q[j] * x[j]
        square += z * z
        q_square += q[j] * q[j]
    for j in range(x.shape[0]):
        J[j] += q[j]
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
        image[p] = dot(C[p], x)
    for p in range(C.shape[0]):
        z, entry = image[p], image[p] + e[p]
        z_square += z * z
        e_square += e[p] * e[p]
        square += entry * entry
    length = np.sqrt(square)
    inverse = 1.0 / max(length, 1e-300)
    for j in range(x.shape[0]):
        w[j] = 0.0
    for p in range(C.shape[0]):
        row, z = C[p], (image[p] + e[p]) * inverse
        for j in range(x.shape[0]):
            w[j] += z * row[j]
    for j in range(x.shape[0]):
        J[j] = w[j] - f[j]
    for j in range(x.shape[0]):
        w_square += w[j] * w[j]
        f_square += f[j] * f[j]
        linear += f[j] * x[j]
    w_norm, f_norm = np.sqrt(w_square), np.sqrt(f_square)
    work.value[i] = length - linear - problem.h[a]
    work.terms[i] = np.sqrt(z_square) + np.sqrt(e_square) + (w_norm + f_norm) * size + abs(problem.h[a])
    work.steepness[i], work.curving[i] = w_norm + f_norm, inverse


@borrowing
def evaluate(problem, work, x, count):
    """The first rows at x; whether all their values are finite, or −inf for one that never binds.

    The affine rows are in J, their lengths in ``steepness`` already; ``count`` is that of all rows, or of these and
    the balls.
    """
    size = max(norm(x), problem.least_size)
    i = problem.b.shape[0]
    for a in range(i):
        work.value[a] = dot(work.J[a], x) - problem.b[a]
        work.terms[a] = work.steepness[a] * size + abs(problem.b[a])
    for a in range(problem.radii.shape[0]):
        evaluate_ball(problem, work, x, size, a, i)
        i += 1
    for a in range(problem.r.shape[0] if i < count else 0):
        evaluate_quadratic(problem, work, x, size, a, i)
        i += 1
    for a in range(problem.h.shape[0] if i < count else 0):
        evaluate_cone(problem, work, x, size, a, i)
        i += 1
    finite = True
    for a in range(count):
        idle = work.value[a] == -np.inf
        work.value[a] = -1.0 if idle else work.value[a]
        work.terms[a] = 1.0 if idle else max(work.terms[a], 1e-300)
        finite = finite and abs(work.value[a]) < np.inf
    return finite
