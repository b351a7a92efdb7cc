"""The Hessian of the Lagrangian on the free coordinates, and its factor H = Uᵀ D⁻¹ U; D is the diagonal of U.

All inner loops run along rows; four rows are eliminated at once.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from cocopt.kernels._jit import borrowing, njit

__all__ = ["assemble", "back_substitute", "factorise", "forward_substitute"]


@borrowing
def add_matrix(M, weight, place, count, begun, U):
    """U += weight·M on the upper triangle of the free coordinates; U = weight·M if nothing is there yet."""
    keep, everything = 1.0 if begun else 0.0, count == M.shape[0]
    for i in range(count):
        row, out = M[place[i]], U[i]
        if not begun:
            for j in range(i, count):
                out[j] = 0.0
        if everything:  # without the detour this becomes vector code
            for j in range(i, count):
                out[j] = keep * out[j] + weight * row[j]
        else:
            for j in range(i, count):
                out[j] = keep * out[j] + weight * row[place[j]]


@borrowing
def assemble(problem, work, u, count):
    """The Hessian's upper triangle in U; (False, its diagonal) if it is a multiple of the identity."""
    U, place = work.U, work.place
    first, balls, quadratics = problem.b.shape[0], problem.radii.shape[0], problem.r.shape[0]
    diagonal, begun = 1.0, False
    for i in range(first, first + balls):
        diagonal += u[i] * work.curving[i] if u[i] > 0.0 else 0.0
    for i in range(first + balls, u.shape[0]):
        weight, a = u[i] * work.curving[i], i - first - balls
        if not weight > 0.0:
            continue
        add_matrix(problem.P[a] if a < quadratics else work.G[a - quadratics], weight, place, count, begun, U)
        begun = True
        if a >= quadratics:
            w = work.W[a - quadratics]
            for k in range(count):
                out, entry = U[k], weight * w[place[k]]
                for j in range(k, count):
                    out[j] -= entry * w[place[j]]
    for k in range(count if begun else 0):
        U[k, k] += diagonal
    return begun, diagonal


@njit
def factorise(U, inverse, count):
    """U = the factor; False if the matrix is not positive definite."""
    whole = count - count % 4
    for k in range(0, whole, 4):
        r0, r1, r2, r3 = U[k], U[k + 1], U[k + 2], U[k + 3]
        i0 = 1.0 / r0[k]
        t = r0[k + 1] * i0
        for j in range(k + 1, count):
            r1[j] -= t * r0[j]
        i1 = 1.0 / r1[k + 1]
        t, t1 = r0[k + 2] * i0, r1[k + 2] * i1
        for j in range(k + 2, count):
            r2[j] -= t * r0[j] + t1 * r1[j]
        i2 = 1.0 / r2[k + 2]
        t, t1, t2 = r0[k + 3] * i0, r1[k + 3] * i1, r2[k + 3] * i2
        for j in range(k + 3, count):
            r3[j] -= (t * r0[j] + t1 * r1[j]) + t2 * r2[j]
        i3 = 1.0 / r3[k + 3]
        if not (i0 > 0.0 and i1 > 0.0 and i2 > 0.0 and i3 > 0.0):
            return False
        inverse[k], inverse[k + 1], inverse[k + 2], inverse[k + 3] = i0, i1, i2, i3
        for i in range(k + 4, count):
            out = U[i]
            t, t1, t2, t3 = r0[i] * i0, r1[i] * i1, r2[i] * i2, r3[i] * i3
            for j in range(i, count):
                out[j] -= (t * r0[j] + t1 * r1[j]) + (t2 * r2[j] + t3 * r3[j])
    for k in range(whole, count):
        row = U[k]
        pivot = 1.0 / row[k]
        if not pivot > 0.0:
            return False
        inverse[k] = pivot
        for i in range(k + 1, count):
            out, t = U[i], row[i] * pivot
            for j in range(i, count):
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
        t1 = z[k + 1] * inverse[k + 1]
        for j in range(k + 2, count):
            z[j] -= t * row[j] + t1 * after[j]


@njit
def back_substitute(U, inverse, count, z):
    """z = L⁻ᵀ D⁻¹ z."""
    for k in range(count - 1, -1, -1):
        row, total = U[k], z[k]
        for j in range(k + 1, count):
            total -= row[j] * z[j]
        z[k] = total * inverse[k]
