"""Hinge prox with sparse rows over a box or a ball, by Newton's method on the dual; if max_multiplier = inf, P_K.

As in `cocopt.kernels.active_set` the dual has one multiplier per row, 0 ≤ ν_i ≤ max_multiplier_i (of any sign for
equalities), x(ν) = P_K(y − Aᵀν), and r(ν) = A x(ν) − b is its gradient. All rows that can move move at once: a
semismooth Newton method (Qi & Sun 1993) with the matrix A D Aᵀ + δ I, D the derivative of P_K, on the rows whose
multiplier is positive or should be. Rows whose multiplier would meet a bound stop there, and the others are solved for
again (a block of pivots, as of Júdice & Pires 1994); a line search along the step makes the dual grow. Over a box rows
that have little in common are first moved one by one (Hildreth 1957), and again where the line search has to stop
early. The matrix is sparse as A is: it is eliminated in the order of least degree, and what becomes dense by
Cholesky's method.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import guvectorize, njit
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip, distance, dot, norm
from cocopt.tolerances import FAR_TARGET, FEASIBILITY, NEVER_BINDS, SATISFIED

__all__ = ["sparse_project"]

MAX_STEPS = 100
MAX_STAGES = 30  # targets that are near
MAX_ACTIVE = 3000  # rows that move at once, since their matrix is stored in full
MAX_BLOCKS = 6  # in so many blocks at most multipliers meet their bounds in one step
MAX_TRIES = 8  # each with a larger δ, of one step
MAX_SEARCH = 60  # points on the line of one step
MAX_ROW_SEARCH = 40  # the same where a single row moves
NEARLY_MET = 0.01  # the share of its residual that may be left then
LEAST_DELTA, LARGEST_DELTA = 1e-13, 0.1  # δ falls with the residuals between these: convergence stays superlinear
DELTA_GROWTH = 100.0
ENOUGH = 0.5  # a step ends where the slope has fallen to this share of that at its start, of either sign
LONGEST = 1e9  # how much longer a step may become
DENSE = 0.7  # from this share of entries on what is left of the matrix is dense
UNBOUNDED = 1e9  # multipliers of this size, in units of the data, are a sign of rows without a common point

BESIDE_OTHERS = 1e-6  # of the largest length in the data, the least that counts


class Entries(NamedTuple):
    """A sparse matrix by rows, or by columns: those of line i are the entries from start[i] to start[i + 1]."""

    values: Any
    places: Any
    start: Any


class SparseProblem(NamedTuple):
    """The rows are of length 1; K is a box, or a ball if the radius is finite."""

    target: Any
    lower: Any
    upper: Any
    center: Any
    radius: Any
    rows: Any
    columns: Any
    rhs: Any
    max_multiplier: Any
    equalities: Any  # so many rows, the first ones, hold with equality


class SparseWork(NamedTuple):
    """Vectors with an entry per coordinate, per row, and the Newton matrix."""

    free: Any  # 1 where x moves with z, 0 at a bound
    normal: Any  # the unit normal of a ball at x; 0 for a box, or within a ball
    change: Any  # of z
    residual: Any
    new_residual: Any
    new_multiplier: Any
    step: Any  # of the multipliers
    solution: Any  # of the Newton equations
    diagonal: Any
    active: Any  # the rows that move, as integers
    place: Any  # of each row in ``active``, or −1
    degree: Any
    order: Any
    near: Any
    matrix: Any


@njit
def evaluate(problem, work, nu, residual, x):
    """x = P_K(y − Aᵀν), the residuals, and D; returns ‖x‖, Σ|ν_i| and the factor t of D = t (free − normal normalᵀ)."""
    z, rows, total = work.change, problem.rows, 0.0
    for j in range(x.shape[0]):
        z[j] = problem.target[j]
    for i in range(nu.shape[0]):
        if nu[i] != 0.0:
            total += abs(nu[i])
            for k in range(rows.start[i], rows.start[i + 1]):
                z[rows.places[k]] -= nu[i] * rows.values[k]
    scale = project_onto_set(problem, work, z, x)
    for i in range(nu.shape[0]):
        value = -problem.rhs[i]
        for k in range(rows.start[i], rows.start[i + 1]):
            value += rows.values[k] * x[rows.places[k]]
        residual[i] = value
    return norm(x), total, scale


@njit
def project_onto_set(problem, work, z, x):
    """x = P_K(z) and its derivative; returns its factor t."""
    free, normal, n = work.free, work.normal, x.shape[0]
    if problem.radius == np.inf:
        for j in range(n):
            x[j] = clip(z[j], problem.lower[j], problem.upper[j])
            free[j], normal[j] = 1.0 if x[j] == z[j] else 0.0, 0.0
        return 1.0
    for j in range(n):
        free[j], normal[j] = 1.0, z[j] - problem.center[j]
    length = norm(normal[:n])
    outside = length > problem.radius
    scale = problem.radius / length if outside else 1.0
    for j in range(n):
        x[j] = problem.center[j] + scale * normal[j] if outside else z[j]
        normal[j] = normal[j] / length if outside else 0.0
    return scale


@njit
def choose_rows(problem, work, nu, noise, eps):
    """Lists the rows that can move; returns their number and the largest residual among them, 0 if it is rounding."""
    count, worst = np.int64(0), 0.0
    for i in range(nu.shape[0]):
        r, tol = work.residual[i], noise + eps * abs(problem.rhs[i])
        up, down = nu[i] > 0.0 or r > tol, nu[i] < problem.max_multiplier[i] or r < -tol
        work.place[i] = -1
        if i < problem.equalities or (up and down):
            work.place[i], work.active[count] = count, i
            count += 1
            worst = max(worst, abs(r)) if abs(r) > tol else worst
    return count, worst


@njit
def assemble(problem, work, count, delta, scale):
    """The Newton matrix t A (free − normal normalᵀ) Aᵀ + δ I of the active rows."""
    rows, columns, matrix = problem.rows, problem.columns, work.matrix
    curved = problem.radius < np.inf
    for p in range(count):
        for q in range(count):
            matrix[p, q] = 0.0
    for p in range(count):
        i, along = work.active[p], 0.0
        for k in range(rows.start[i], rows.start[i + 1]):
            j = rows.places[k]
            along += rows.values[k] * work.normal[j]
            a = scale * rows.values[k] * work.free[j]
            if a != 0.0:
                for m in range(columns.start[j], columns.start[j + 1]):
                    q = work.place[columns.places[m]]
                    if q >= 0:
                        matrix[p, q] += a * columns.values[m]
        work.diagonal[p] = along
    if curved:
        for p in range(count):
            for q in range(count):
                matrix[p, q] -= scale * work.diagonal[p] * work.diagonal[q]
    for p in range(count):
        matrix[p, p] += delta


@njit
def set_right_hand_side(problem, work, nu, count, scale):
    """The residuals of the active rows, less what the steps of the rows that left change in them."""
    rows, change, solution = problem.rows, work.change, work.solution
    moved, along = False, 0.0
    for j in range(change.shape[0]):
        change[j] = 0.0
    for i in range(nu.shape[0]):
        if work.place[i] < 0 and work.step[i] != 0.0:
            moved = True
            for k in range(rows.start[i], rows.start[i + 1]):
                change[rows.places[k]] += work.step[i] * rows.values[k]
    if moved:
        along = dot(work.normal, change)
        for j in range(change.shape[0]):
            change[j] = scale * (work.free[j] * change[j] - along * work.normal[j])
    for p in range(count):
        i = work.active[p]
        value = work.residual[i]
        if moved:
            for k in range(rows.start[i], rows.start[i + 1]):
                value -= rows.values[k] * change[rows.places[k]]
        solution[p] = value


@njit
def eliminate(work, count):
    """Solves the Newton equations, the matrix of which is overwritten."""
    matrix, d, degree, near = work.matrix, work.solution, work.degree, work.near
    for p in range(count):
        entries = 0
        for q in range(count):
            entries += 1 if matrix[p, q] != 0.0 else 0
        degree[p] = entries
    left = count
    while left > 0:
        p, least = -1, count + 1
        for q in range(count):
            if 0 <= degree[q] < least:
                p, least = q, degree[q]
        if least >= DENSE * left:
            break
        degree[p] = -1
        work.order[count - left] = p
        left -= 1
        row, others = matrix[p], 0
        for q in range(count):
            if degree[q] >= 0 and row[q] != 0.0:
                near[others] = q
                others += 1
        for a in range(others):
            q = near[a]
            share, target, filled = row[q] / row[p], matrix[q], -1
            d[q] -= share * d[p]
            for c in range(others):
                s = near[c]
                filled += 1 if target[s] == 0.0 else 0
                target[s] -= share * row[s]
            degree[q] += filled
    solve_dense(work, count, left)
    for done in range(count - left - 1, -1, -1):  # backwards: what is left is solved for already
        p = work.order[done]
        row, value = matrix[p], d[p]
        degree[p] = 0
        for q in range(count):
            value -= row[q] * d[q] if degree[q] >= 0 and q != p else 0.0
        d[p] = value / row[p]


@njit
def solve_dense(work, count, left):
    """Solves the equations of the ``left`` rows that were not eliminated, by Cholesky's method."""
    matrix, d, near = work.matrix, work.solution, work.near
    L, size = np.empty((left, left)), 0
    for q in range(count):
        if work.degree[q] >= 0:
            near[size] = q
            size += 1
    for a in range(left):
        row, full = L[a], matrix[near[a]]
        for c in range(a + 1):
            row[c] = full[near[c]]
        for c in range(a):
            other, value = L[c], row[c]
            for s in range(c):
                value -= row[s] * other[s]
            row[c] = value / other[c]
        pivot = row[a]
        for s in range(a):
            pivot -= row[s] * row[s]
        row[a] = np.sqrt(max(pivot, LEAST_DELTA))
        value = d[near[a]]
        for s in range(a):
            value -= row[s] * d[near[s]]
        d[near[a]] = value / row[a]
    for a in range(left - 1, -1, -1):
        d[near[a]] /= L[a, a]
        for s in range(a):
            d[near[s]] -= L[a, s] * d[near[a]]


@njit
def find_step(problem, work, nu, count, delta, scale):
    """The step of the multipliers that Newton's equations yield within their bounds; returns the dual's slope along it.

    Multipliers that would pass a bound stop there, a block at a time, and leave the equations.
    """
    for i in range(nu.shape[0]):
        work.step[i] = 0.0
    for _ in range(MAX_BLOCKS):
        assemble(problem, work, count, delta, scale)
        set_right_hand_side(problem, work, nu, count, scale)
        eliminate(work, count)
        kept = np.int64(0)
        for p in range(count):
            i = work.active[p]
            new, most = nu[i] + work.solution[p], problem.max_multiplier[i]
            if i >= problem.equalities and not 0.0 <= new <= most:
                work.step[i], work.place[i] = clip(new, 0.0, most) - nu[i], -1
            else:
                work.step[i], work.place[i], work.active[kept] = work.solution[p], kept, i
                kept += 1
        if kept == count or kept == 0:
            break
        count = kept
    return dot(work.step, work.residual)


@njit
def take_step(problem, work, nu, x, slope):
    """Moves ν along the step until the dual's slope has fallen enough; returns what `evaluate` does, and the share."""
    new, residual, step = work.new_multiplier, work.new_residual, work.step
    low, high, low_slope, high_slope, s, kept = 0.0, np.inf, slope, 0.0, 1.0, 0
    found = (0.0, 0.0, 1.0)
    for _ in range(MAX_SEARCH):
        at = 0.0
        for i in range(nu.shape[0]):
            new[i] = nu[i] + s * step[i]
            if i >= problem.equalities:
                new[i] = clip(new[i], 0.0, problem.max_multiplier[i])
        found = evaluate(problem, work, new, residual, x)
        for i in range(nu.shape[0]):
            at += (new[i] - nu[i]) * residual[i]
        at /= s  # positive: the dual, which is concave, has grown
        if abs(at) <= ENOUGH * slope or (at > 0.0 and s > LONGEST):
            break
        if at > 0.0:
            low, low_slope, kept = s, at, max(kept, 0) + 1
        else:
            high, high_slope, kept = s, at, min(kept, 0) - 1
        if high == np.inf:
            s *= 4.0
            continue
        # regula falsi, after Illinois: an end that stays counts half
        low_share, high_share = 0.5 if kept < -1 else 1.0, 0.5 if kept > 1 else 1.0
        s = low + (high - low) * low_share * low_slope / (low_share * low_slope - high_share * high_slope)
        if not low < s < high:
            s = 0.5 * (low + high)
    for i in range(nu.shape[0]):
        nu[i], work.residual[i] = new[i], residual[i]
    return *found, s


@njit
def row_value(problem, z, i, moved):
    """(g_i, minus its slope) at P(z − moved·a_i), P onto the box."""
    rows, value, slope = problem.rows, -problem.rhs[i], 0.0
    for k in range(rows.start[i], rows.start[i + 1]):
        j, a = rows.places[k], rows.values[k]
        new = z[j] - moved * a
        x = clip(new, problem.lower[j], problem.upper[j])
        value += a * x
        slope += a * a if x == new else 0.0
    return value, slope


@njit
def move_row(problem, z, i, nu, tol):
    """By how much the multiplier ν of row i moves so that its residual nearly vanishes, the others fixed."""
    value, slope = row_value(problem, z, i, 0.0)
    least = -nu if i >= problem.equalities else -np.inf
    most = problem.max_multiplier[i] - nu if i >= problem.equalities else np.inf
    if abs(value) <= tol or (value > 0.0 and most <= 0.0) or (value < 0.0 and least >= 0.0):
        return 0.0
    enough, low, high = NEARLY_MET * abs(value), 0.0, np.inf if value > 0.0 else -np.inf  # the root is between these
    moved, last = 0.0, abs(value)
    for _ in range(MAX_ROW_SEARCH):
        newton = moved + value / slope if slope > 0.0 else 2.0 * moved + np.sign(value) * last
        if abs(high) < np.inf and not min(low, high) < newton < max(low, high):
            newton = 0.5 * (low + high)
        moved = clip(newton, least, most)
        value, slope = row_value(problem, z, i, moved)
        ahead = (value > 0.0) == (high > low)  # the root is farther away
        if abs(value) <= enough or (ahead and not least < moved < most):
            return moved
        if ahead:
            low = moved
        else:
            high = moved
    return low


@njit
def sweep(problem, work, nu, x, tol):
    """Moves the multipliers of all rows, one after the other; returns what `evaluate` does.

    z, which `evaluate` leaves in ``change``, follows them.
    """
    z, rows = work.change, problem.rows
    for i in range(nu.shape[0]):
        moved = move_row(problem, z, i, nu[i], tol)
        if moved != 0.0:
            new = nu[i] + moved
            nu[i] = clip(new, 0.0, problem.max_multiplier[i]) if i >= problem.equalities else new
            for k in range(rows.start[i], rows.start[i + 1]):
                z[rows.places[k]] -= moved * rows.values[k]
    return evaluate(problem, work, nu, work.residual, x)


@njit
def maximise_dual(problem, work, nu, x):
    """Newton's method from ν, which is also the result; returns a status."""
    eps, y_norm = rounding(x.shape[0]), norm(problem.target)
    x_norm, total, scale = evaluate(problem, work, nu, work.residual, x)
    reach = 1e-300
    for j in range(x.shape[0]):
        reach = max(reach, abs(x[j]), abs(problem.target[j]))
    worst, size, box = 0.0, y_norm + x_norm, problem.radius == np.inf
    if box:
        x_norm, total, scale = sweep(problem, work, nu, x, eps * (size + total))
    for _ in range(MAX_STEPS):
        size = y_norm + x_norm
        noise = eps * (size + total)
        count, worst = choose_rows(problem, work, nu, noise, eps)
        if worst == 0.0:
            return CONVERGED if noise <= 0.25 * FEASIBILITY * size else UNCONVERGED
        if count > work.matrix.shape[0]:
            return UNCONVERGED
        if not total < UNBOUNDED * (reach + size):
            return INFEASIBLE
        delta, slope = min(max(worst / reach, LEAST_DELTA), LARGEST_DELTA), 0.0
        for _ in range(MAX_TRIES):
            slope = find_step(problem, work, nu, count, delta, scale)
            if slope > 0.0:
                break
            delta *= DELTA_GROWTH
            count, worst = choose_rows(problem, work, nu, noise, eps)
        if not slope > 0.0:
            break
        x_norm, total, scale, share = take_step(problem, work, nu, x, slope)
        if share != 1.0 and box:  # one row has held up all others, or pushed them: each by itself can go on
            x_norm, total, scale = sweep(problem, work, nu, x, noise)
    return CONVERGED if worst <= 0.1 * SATISFIED * size else UNCONVERGED


@njit
def new_work(n, M):
    """Memory for one trial."""
    side = min(M, MAX_ACTIVE)
    of_dim, of_rows, integers = np.empty((3, n)), np.empty((6, M)), np.empty((5, M), np.int64)
    return SparseWork(
        of_dim[0], of_dim[1], of_dim[2],
        of_rows[0], of_rows[1], of_rows[2], of_rows[3], of_rows[4], of_rows[5],
        integers[0], integers[1], integers[2], integers[3], integers[4], np.empty((side, side)),
    )  # fmt: skip


@njit
def length_of_data(problem):
    """The least length in the data, but no less than BESIDE_OTHERS of the largest; 0 for a cone."""
    finite = problem.radius < np.inf
    least, largest = problem.radius if finite else np.inf, problem.radius if finite else 0.0
    for data in (problem.rhs, problem.lower, problem.upper, problem.center):
        for k in range(data.shape[0]):
            if 0.0 < abs(data[k]) < NEVER_BINDS:
                least, largest = min(least, abs(data[k])), max(largest, abs(data[k]))
    return max(least, BESIDE_OTHERS * largest) if largest > 0.0 else 0.0


@njit
def maximise_dual_in_stages(problem, work, nu, x):
    """`maximise_dual`, and where y is far away again from targets that are near, until x no longer changes.

    From afar x comes with the rounding of y, and may be at another vertex, or 0. Its nearer target moves it by its own
    length at most, or by that of the data, so that several may be needed.
    """
    status = maximise_dual(problem, work, nu, x)
    y_norm, n = norm(problem.target), x.shape[0]
    target, last, near, most = np.empty(n), np.empty(n), np.empty(nu.shape[0]), np.empty(nu.shape[0])
    for _ in range(MAX_STAGES):
        size = norm(x)
        if size == 0.0:  # which may be lost in the rounding of y
            size = length_of_data(problem)
        if status != CONVERGED or y_norm <= FAR_TARGET * size or size == 0.0:
            return status
        tau = min(1.0, size / y_norm)
        for j in range(n):
            target[j], last[j] = x[j] + tau * (problem.target[j] - x[j]), x[j]
        for i in range(nu.shape[0]):
            near[i] = tau * nu[i]
            most[i] = tau * problem.max_multiplier[i] if problem.max_multiplier[i] < np.inf else np.inf
        nearer = SparseProblem(
            target, problem.lower, problem.upper, problem.center, problem.radius,
            problem.rows, problem.columns, problem.rhs, most, problem.equalities,
        )  # fmt: skip
        status = maximise_dual(nearer, work, near, x)
        if distance(x, last) <= SATISFIED * size:
            return status
        for i in range(nu.shape[0]):
            nu[i] = problem.max_multiplier[i] if near[i] == most[i] else near[i] / tau
    return UNCONVERGED


_FLOATS, _INTS = "float64[::1]", "int64[::1]"


@guvectorize(
    [
        f"{_FLOATS}, {_FLOATS}, {_FLOATS}, {_FLOATS}, float64, {_FLOATS}, {_INTS}, {_INTS}, {_FLOATS}, {_INTS}, "
        f"{_INTS}, {_FLOATS}, {_FLOATS}, int64, {_FLOATS}, {_FLOATS}, {_FLOATS}, {_INTS}"
    ],
    "(n),(n),(n),(n),(),(z),(z),(p),(z),(z),(c),(m),(m),(),(m)->(n),(m),()",
)
def sparse_project(
    y, lower, upper, center, radius, values, places, start, column_values, column_places, column_start,
    rhs, max_multiplier, equalities, start_multiplier, x, nu, status,
):  # fmt: skip
    """K = {lower ≤ x ≤ upper}, or the ball if the radius is finite; rows of length 1, by rows and by columns."""
    for i in range(nu.shape[0]):
        nu[i] = start_multiplier[i]
    if not norm(y) < np.inf:
        status[0] = NONFINITE
        return
    rows, columns = Entries(values, places, start), Entries(column_values, column_places, column_start)
    problem = SparseProblem(y, lower, upper, center, radius, rows, columns, rhs, max_multiplier, equalities)
    status[0] = maximise_dual_in_stages(problem, new_work(y.shape[0], nu.shape[0]), nu, x)
