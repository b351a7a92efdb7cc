"""The Hessian of the Lagrangian on the free coordinates, and its factor H = Uᵀ D⁻¹ U; D is the diagonal of U.

All inner loops run along rows; four rows are eliminated at once. Loops that begin elsewhere than at 0 have unsigned
indices: a signed one might be negative, which counts from the end, and keeps the loop from becoming vector code.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from cocopt.kernels._jit import borrowing, in_order, njit

__all__ = ["assemble", "back_substitute", "factorise", "forward_substitute"]


@borrowing
def set_quadratic(P, weight, place, count, U):
    """U = weight·P on the upper triangle of the free coordinates."""
    everything = count == P.shape[0]
    for i in range(count):
        row, out = P[place[i]], U[i]
        if everything:  # without the detour this becomes vector code
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] = weight * row[j]
        else:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] = weight * row[place[j]]


@borrowing
def add_quadratic(P, weight, place, count, U):
    """U += weight·P on the upper triangle of the free coordinates."""
    everything = count == P.shape[0]
    for i in range(count):
        row, out = P[place[i]], U[i]
        if everything:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] += weight * row[j]
        else:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] += weight * row[place[j]]


@in_order
def set_cone(G, w, weight, place, count, U):
    """U = weight·(G − w wᵀ) on the upper triangle of the free coordinates."""
    everything = count == w.shape[0]
    for i in range(count):
        row, out, entry = G[place[i]], U[i], w[place[i]]
        if everything:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] = weight * (row[j] - entry * w[j])
        else:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] = weight * (row[place[j]] - entry * w[place[j]])


@in_order
def add_cone(G, w, weight, place, count, U):
    """U += weight·(G − w wᵀ) on the upper triangle of the free coordinates."""
    everything = count == w.shape[0]
    for i in range(count):
        row, out, entry = G[place[i]], U[i], w[place[i]]
        if everything:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] += weight * (row[j] - entry * w[j])
        else:
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] += weight * (row[place[j]] - entry * w[place[j]])


@borrowing
def assemble_diagonal(problem, work, u, first):
    """The diagonal of the balls' and the diagonal quadratics' part of the Hessian in ``flat``.

    The quadratics begin with row ``first``.
    """
    flat, identity = work.flat, 1.0
    for i in range(problem.b.shape[0], first):
        identity += u[i] * work.curving[i] if u[i] > 0.0 else 0.0
    for j in range(flat.shape[0]):
        flat[j] = identity
    for a in range(problem.r.shape[0]):
        weight, P = u[first + a], problem.P[a]
        if weight > 0.0 and problem.diagonal[a] > 0.0:
            for j in range(flat.shape[0]):
                flat[j] += weight * P[j, j]


@borrowing
def assemble(problem, work, u, count):
    """The Hessian's upper triangle in U; False if it is diagonal: then its diagonal is in ``flat``."""
    U, place, n = work.U, work.place, work.flat.shape[0]
    first, quadratics, begun = problem.b.shape[0] + problem.radii.shape[0], problem.r.shape[0], False
    assemble_diagonal(problem, work, u, first)
    for a in range(quadratics):
        weight = u[first + a]
        if weight > 0.0 and not problem.diagonal[a] > 0.0:
            if begun:
                add_quadratic(problem.P[a], weight, place, count, U)
            else:
                set_quadratic(problem.P[a], weight, place, count, U)
            begun = True
    for a in range(problem.h.shape[0]):
        i = first + quadratics + a
        weight, G = u[i] * work.curving[i], work.G[a * n : (a + 1) * n]
        if weight > 0.0:
            if begun:
                add_cone(G, work.W[a], weight, place, count, U)
            else:
                set_cone(G, work.W[a], weight, place, count, U)
            begun = True
    for k in range(count if begun else 0):
        U[k, k] += work.flat[place[k]]
    return begun


@in_order
def eliminate_two(rows, factors, first, count, out):
    """Subtracts multiples of two rows."""
    (r0, r1), (t, t1) = rows, factors
    for j in range(np.uint64(first), np.uint64(count)):
        out[j] -= t * r0[j] + t1 * r1[j]


@in_order
def eliminate_three(rows, factors, first, count, out):
    """Subtracts multiples of three rows."""
    (r0, r1, r2), (t, t1, t2) = rows, factors
    for j in range(np.uint64(first), np.uint64(count)):
        out[j] -= (t * r0[j] + t1 * r1[j]) + t2 * r2[j]


@in_order
def eliminate_four(rows, factors, first, count, out):
    """Subtracts multiples of four rows."""
    (r0, r1, r2, r3), (t, t1, t2, t3) = rows, factors
    for j in range(np.uint64(first), np.uint64(count)):
        out[j] -= (t * r0[j] + t1 * r1[j]) + (t2 * r2[j] + t3 * r3[j])


@njit
def factorise(U, inverse, count):
    """U = the factor; False if the matrix is not positive definite."""
    whole = count - count % 4
    for k in range(0, whole, 4):
        r0, r1, r2, r3 = U[k], U[k + 1], U[k + 2], U[k + 3]
        i0 = 1.0 / r0[k]
        t = r0[k + 1] * i0
        for j in range(np.uint64(k + 1), np.uint64(count)):
            r1[j] -= t * r0[j]
        i1 = 1.0 / r1[k + 1]
        eliminate_two((r0, r1), (r0[k + 2] * i0, r1[k + 2] * i1), k + 2, count, r2)
        i2 = 1.0 / r2[k + 2]
        eliminate_three((r0, r1, r2), (r0[k + 3] * i0, r1[k + 3] * i1, r2[k + 3] * i2), k + 3, count, r3)
        i3 = 1.0 / r3[k + 3]
        if not (i0 > 0.0 and i1 > 0.0 and i2 > 0.0 and i3 > 0.0):
            return False
        inverse[k], inverse[k + 1], inverse[k + 2], inverse[k + 3] = i0, i1, i2, i3
        for i in range(k + 4, count):
            factors = r0[i] * i0, r1[i] * i1, r2[i] * i2, r3[i] * i3
            eliminate_four((r0, r1, r2, r3), factors, i, count, U[i])
    for k in range(whole, count):
        row = U[k]
        pivot = 1.0 / row[k]
        if not pivot > 0.0:
            return False
        inverse[k] = pivot
        for i in range(k + 1, count):
            out, t = U[i], row[i] * pivot
            for j in range(np.uint64(i), np.uint64(count)):
                out[j] -= t * row[j]
    return True


@njit
def forward_substitute(U, inverse, count, z):
    """z = L⁻¹ z with L = Uᵀ D⁻¹."""
    whole = count - count % 2
    for k in range(0, whole, 2):
        row, after = U[k], U[k + 1]
        t = z[k] * inverse[k]
        z[k + 1] -= t * row[k + 1]
        eliminate_two((row, after), (t, z[k + 1] * inverse[k + 1]), k + 2, count, z)


@njit
def back_substitute(U, inverse, count, z):
    """z = L⁻ᵀ D⁻¹ z, two entries at once."""
    if count % 2 == 1:
        z[count - 1] *= inverse[count - 1]
    for k in range(count - count % 2 - 2, -1, -2):
        row, after, total, total1 = U[k], U[k + 1], z[k], z[k + 1]
        for j in range(np.uint64(k + 2), np.uint64(count)):
            total -= row[j] * z[j]
            total1 -= after[j] * z[j]
        z[k + 1] = total1 * inverse[k + 1]
        z[k] = (total - row[k + 1] * z[k + 1]) * inverse[k]
