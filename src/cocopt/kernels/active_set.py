"""Hinge prox with several rows, by an active-set method; with infinite caps, the projection onto K ∩ {A x ≤ b}.

The dual of argmin over x in K of ½‖x − y‖² + Σ_i cap_i (⟨a_i, x⟩ − b_i)^+ has one multiplier a row, 0 ≤ ν_i ≤ cap_i
(free for equalities). For a box x(ν) = clip(y − Aᵀν) and the dual is concave, piecewise quadratic, with gradient r(ν)
= A x(ν) − b. It is maximised by an active-set method in the manner of non-negative least squares (Lawson & Hanson
1974): let the most violated row in, take Newton steps with an exact line search on the rows that are in, drop a row
whose multiplier reaches a bound. x(ν) satisfies the bounds exactly and stationarity by construction, so small
residuals r *are* optimality. A direction along which the dual grows without end proves that the rows have no common
point in the box.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import inlined, njit
from cocopt.kernels.line import clip, limit, root
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, INFEASIBLE, NONFINITE, TOUCHING, UNCONVERGED
from cocopt.kernels.workspace import ACTIVE, AT_BOUND, INACTIVE, workspace_views
from cocopt.tolerances import FAR_TARGET, FEASIBILITY, NEVER_BINDS, ROUNDING

__all__ = [
    "MIN_ROWS_BY_COLUMNS",
    "DualProblem",
    "dot",
    "hinge_prox_ball",
    "hinge_prox_box",
    "maximise_dual",
    "move_target_closer",
    "normalise",
    "over_bounds",
    "store_columns",
]

MIN_ROWS_BY_COLUMNS = 8  # rows, from which on they are multiplied by columns
STEPS = 150  # for the multiplier of a ball
MOVES = 4  # after more steps than this the result is computed from its multipliers
PIVOT = 1e-13  # below this share of a (normalised) row the rows that are in count as dependent
SHARP, LOSS = 1e-9, 1e-3  # a pivot below, or one that falls to less than this share, is not updated but computed anew


@inlined
def dot(u, v):
    """⟨u, v⟩."""
    total = 0.0
    for j in range(u.shape[0]):
        total += u[j] * v[j]
    return total


@inlined
def distance(u, v):
    """‖u − v‖."""
    total = 0.0
    for j in range(u.shape[0]):
        total += (u[j] - v[j]) ** 2
    return np.sqrt(total)


@njit
def normalise(A, b, cap, first, rows, right, caps, norms):
    """Rows of length 1 from the place ``first`` on; one that can never bind gets b = NEVER_BINDS.

    False if something is not finite.
    """
    M, n = A.shape
    for i in range(M):
        norm = np.sqrt(dot(A[i], A[i]))
        if not (norm < np.inf and b[i] > -np.inf):
            return False
        norms[first + i] = norm
        unit = 1.0 / max(norm, 1e-300) if norm > 0.0 else 0.0
        for j in range(n):
            rows[first + i, j] = A[i, j] * unit
        right[first + i] = b[i] * unit if norm > 0.0 and b[i] < np.inf else NEVER_BINDS
        caps[first + i] = cap[i] * norm if norm > 0.0 and cap[i] < np.inf else cap[i]
    return True


@inlined
def store_columns(work, count):
    """Transposes the first ``count`` rows if there are enough of them for `residuals` to multiply by columns."""
    if count >= MIN_ROWS_BY_COLUMNS:
        for i in range(count):
            for j in range(work.rows.shape[1]):
                work.columns[j, i] = work.rows[i, j]


@njit
def by_columns(columns, right, count, x, r):
    """r = A x − right of the first ``count`` rows."""
    n = x.shape[0]
    for i in range(count):
        r[i] = -right[i]
    whole = n - n % 4
    for j in range(0, whole, 4):  # four at once: r is read and written less often
        first, second, third, fourth = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        x_1, x_2, x_3, x_4 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(count):
            r[i] += (first[i] * x_1 + second[i] * x_2) + (third[i] * x_3 + fourth[i] * x_4)
    if n - whole > 1:
        first, second, x_1, x_2 = columns[whole], columns[whole + 1], x[whole], x[whole + 1]
        for i in range(count):
            r[i] += first[i] * x_1 + second[i] * x_2
    if n % 2 == 1:
        last, x_n = columns[n - 1], x[n - 1]
        for i in range(count):
            r[i] += last[i] * x_n


@njit
def move_target_closer(y, x, length, target):
    """target = x + τ (y − x), so that it is ``length`` away from x; returns τ.

    x stays its projection for every τ from 0 to 1 (its hinge prox, if the caps are multiplied by τ), and comes with
    more digits if τ (y − x) is short.
    """
    tau = min(1.0, length / max(distance(x, y), 1e-300))
    for j in range(x.shape[0]):
        target[j] = x[j] + tau * (y[j] - x[j])
    return tau


@inlined
def residuals(rows, columns, right, x, r):
    """r = A x − right; many rows are multiplied faster by columns."""
    M = rows.shape[0]
    if M >= MIN_ROWS_BY_COLUMNS:
        by_columns(columns, right, M, x, r)
        return
    for i in range(M):
        r[i] = dot(rows[i], x) - right[i]


@inlined
def respond(y, rows, nu, order, held, z):
    """z = y − Aᵀν for ν that is 0 but in the rows order[:held]; returns Σ|ν_i|."""
    n = rows.shape[1]
    price = 0.0
    for j in range(n):
        z[j] = y[j]
    for p in range(held):
        i = order[p]
        price += abs(nu[i])
        for j in range(n):
            z[j] -= nu[i] * rows[i, j]
    return price


@inlined
def settle(z, lower, upper, x, free):
    """x = clip(z), and free = 1 where x = z; returns ‖x‖, how many entries of free changed, the sum of their places.

    (If only one changed, that is where. No branches, so that this becomes vector code.)
    """
    size, changes, places = 0.0, 0, 0
    for j in range(z.shape[0]):
        p = clip(z[j], lower[j], upper[j])
        x[j] = p
        f = 1.0 if p == z[j] else 0.0
        other = 1 if f != free[j] else 0
        changes, places = changes + other, places + other * j
        free[j] = f
        size += p * p
    return np.sqrt(size), changes, places


@inlined
def stays(z, lower, upper, a, alpha, free):
    """Whether clip(z − α a) is linear from 0 to α: there a Newton step is exact."""
    others = 0
    for j in range(z.shape[0]):
        new = z[j] - alpha * a[j]
        f = 1.0 if clip(new, lower[j], upper[j]) == new else 0.0
        others += 1 if f != free[j] or (f == 0.0 and (new > upper[j]) != (z[j] > upper[j])) else 0
    return others == 0


@inlined
def newton(rows, free, r, order, k, first, known, factor, d, masked):
    """The Newton direction d on the k rows that are in: (A_F A_Fᵀ) d = r, F the coordinates between their bounds.

    Residuals before the row ``first`` count as 0.

    L D Lᵀ with pivots no smaller than PIVOT, so that dependent rows yield a direction along their dependence; of
    several that depend on others the first alone moves, as together they would overflow.
    ``factor`` holds L below the diagonal, 1/D on it and (L D)ᵀ above; its first ``known`` rows are taken as they are.
    All inner loops run along rows of ``factor``, and none waits for its own last result.
    """
    n = rows.shape[1]
    for p in range(known, k):
        row = rows[order[p]]
        for j in range(n):
            masked[j] = row[j] * free[j]
        pivot = dot(masked, row)
        for q in range(p):
            d[q] = dot(masked, rows[order[q]])
        for q in range(0, p, 2):  # two at once, as everywhere here: inner loops are short
            share = d[q] * factor[q, q]
            pivot -= d[q] * share
            factor[q, p], factor[p, q] = d[q], share
            if q + 1 < p:
                d[q + 1] -= factor[q, q + 1] * share
                other = d[q + 1] * factor[q + 1, q + 1]
                pivot -= d[q + 1] * other
                factor[q + 1, p], factor[p, q + 1] = d[q + 1], other
                for s in range(q + 2, p):
                    d[s] -= factor[q, s] * share + factor[q + 1, s] * other
        factor[p, p] = 1.0 / max(pivot, PIVOT)
        if pivot <= PIVOT:
            for q in range(p):
                if factor[q, q] == 1.0 / PIVOT:
                    factor[p, p] = 0.0
    for p in range(k):
        d[p] = r[order[p]] if p >= first else 0.0
    for p in range(first, k, 2):
        d[p] *= factor[p, p]
        if p + 1 < k:
            d[p + 1] = (d[p + 1] - factor[p, p + 1] * d[p]) * factor[p + 1, p + 1]
            for s in range(p + 2, k):
                d[s] -= factor[p, s] * d[p] + factor[p + 1, s] * d[p + 1]
    for p in range(k - 1, 0, -2):
        d[p - 1] -= factor[p, p - 1] * d[p]
        for q in range(p - 1):
            d[q] -= factor[p, q] * d[p] + factor[p - 1, q] * d[p - 1]


@njit
def update(factor, k, first, up, weight, w):
    """Adds weight·w wᵀ to the matrix of k rows that `newton` factorised, in the rows from ``first`` on, and moves these
    ``up`` places up (method C1 of Gill, Golub, Murray & Saunders 1974). False if that would be inaccurate.
    """
    for p in range(first, k):
        inverse, share = factor[p, p], w[p]
        depends = not 0.0 < inverse < 1.0 / PIVOT
        pivot = 0.0 if depends else 1.0 / inverse
        new = pivot + weight * share * share
        if (depends and p < k - 1) or not new > max(SHARP, LOSS * pivot):
            return False
        shift = weight * share / new
        weight *= pivot / new
        for s in range(p + 1, k):
            entry = factor[p, s] * inverse
            w[s] -= share * entry
            entry += shift * w[s]
            factor[p - up, s - up], factor[s - up, p - up] = entry * new, entry
        factor[p - up, p - up] = 1.0 / new
    return True


@njit
def leave(factor, k, b, w):
    """The factor of k rows without the b-th; returns how many rows of it are right."""
    if not 0.0 < factor[b, b] < 1.0 / PIVOT:
        return b
    for p in range(b + 1, k):
        w[p] = factor[p, b]
        for q in range(b):
            factor[q, p - 1], factor[p - 1, q] = factor[q, p], factor[p, q]
    return k - 1 if update(factor, k, b + 1, 1, 1.0 / factor[b, b], w) else b


class DualProblem(NamedTuple):
    """What `maximise_dual` solves: bounds, and the first ``count`` rows of a workspace."""

    target: Any  # y
    target_norm: Any  # ‖y‖
    lower: Any
    upper: Any
    count: Any  # of the rows
    equalities: Any  # so many of them, the first ones, hold with equality
    # Whether a row may join before the residuals of the active ones vanish: where bounds change often, as on a simplex,
    # that saves a third of the steps; on a box it saves none.
    eager: Any


@inlined
def maximise_dual(problem, work, nu, x):
    """The active-set method; ν and the rows' states are the start and the result. Returns a status."""
    y, y_norm, lower, upper, M, equalities, eager = problem
    rows, n = work.rows[:M], y.shape[0]
    z, a, free, factor, columns = work.z, work.direction, work.free, work.factor, work.columns
    right, caps, state, r, d = work.rhs, work.max_multiplier, work.row_state, work.residual, work.newton_step
    order = work.active
    eps = rounding(n)
    entered = -1
    for j in range(n):
        free[j] = -1.0  # not known yet
    moves, price = 0, 0.0  # since z was computed: it moves along with ν, and each time loses a little
    was = INACTIVE  # the state of the row that entered last, before it did
    k, known = 0, 0  # rows that are in, and how many of them the factor knows
    for i in range(M):
        if state[i] == ACTIVE:
            order[k] = i
            k += 1
    full, full_price = 0, 0.0  # rows at their cap, and Σ|ν_i| over them
    for i in range(M):
        if state[i] == AT_BOUND:
            full, full_price = full + 1, full_price + abs(nu[i])
    for _ in range(60 + 8 * M):
        if moves == 0:
            held = k
            if full > 0:  # they too have a price: listed behind the rows that are in
                for i in range(M):
                    if state[i] == AT_BOUND:
                        order[held] = i
                        held += 1
            price = respond(y, rows, nu, order, held, z)
        size, changes, last = settle(z, lower, upper, x, free)
        if changes > 0:
            if changes == 1 and known == k > 2:
                for p in range(k):
                    d[p] = rows[order[p], last]
                known = k if update(factor, k, 0, 0, 2.0 * free[last] - 1.0, d) else 0
            else:
                known = 0
        noise = eps * (y_norm + size + price)
        settled, amiss = True, noise
        for p in range(k):
            i = order[p]
            r[i] = dot(rows[i], x) - right[i]
            if not abs(r[i]) <= noise + eps * abs(right[i]):
                settled = False
                amiss = max(amiss, abs(r[i]))
        joins = False
        if settled or (
            eager and changes > 0 and k < np.sum(free)
        ):  # only now the other rows matter, if there is room for one
            residuals(rows, columns, right, x, r)
            for i in range(M):
                excess = (r[i] if state[i] == INACTIVE else -r[i]) - eps * abs(right[i])
                d[i] = -1.0 if state[i] == ACTIVE else excess
            worst = amiss
            for i in range(M):
                if d[i] > worst:
                    entered, worst, joins = i, d[i], True
            if settled and not joins:
                enough = noise <= 0.25 * FEASIBILITY * (y_norm + size)
                if moves > (MOVES if enough else 0):
                    moves = 0
                    continue
                return CONVERGED if enough else UNCONVERGED
        if joins:
            was = state[entered]
            state[entered] = ACTIVE
            order[k] = entered
            k += 1
        newton(rows, free, r, order, k, k - 1 if settled else 0, known, factor, d, a)
        if joins:
            if not settled and (d[k - 1] <= 0.0) == (was == INACTIVE):  # too early: it would leave at once
                state[entered] = was
                k -= 1
                newton(rows, free, r, order, k, 0, k, factor, d, a)
            elif was == AT_BOUND:
                full, full_price = full - 1, full_price - abs(nu[entered])
        known = k
        # the direction in x, and where it meets a bound of the multipliers
        for j in range(n):
            a[j] = 0.0
        rd, length, price, ceiling, blocking, signed = 0.0, 0.0, 0.0, np.inf, -1, False
        for p in range(k):
            i = order[p]
            for j in range(n):
                a[j] += d[p] * rows[i, j]
            rd += d[p] * r[i]
            length += abs(d[p])
            price += abs(nu[i])
            if i >= equalities:
                room = np.inf
                if d[p] < 0.0:
                    signed = True
                    room = nu[i] / max(-d[p], 1e-150)
                elif d[p] > 0.0 and caps[i] < np.inf:
                    room = (caps[i] - nu[i]) / max(d[p], 1e-150)
                if room < ceiling:
                    ceiling, blocking = room, p
        if not (rd > 0.0 and rd < np.inf):
            return UNCONVERGED
        slope = 0.0
        for j in range(n):
            # what rounding leaves of dependent rows must not meet an infinite bound
            a[j] = a[j] if abs(a[j]) > 1e-14 * length else 0.0
            slope += a[j] * a[j] * free[j]
        tol = 0.25 * length * noise
        alpha = min(1.0, ceiling)
        if not (tol < rd <= slope + tol and slope <= rd + tol and stays(z, lower, upper, a, alpha, free)):
            # b such that h(α) = ⟨d, r(ν + α d)⟩, consistent with the residuals in hand
            b = dot(a, x) - rd
            if ceiling == np.inf:
                least = limit(lower, upper, a, b)
                if least > length * FEASIBILITY * (size + y_norm) and not signed:
                    return INFEASIBLE
                if least > -tol:
                    return TOUCHING
            if ceiling > 0.0 and rd > tol:
                alpha, _ = root(z, lower, upper, a, b, ceiling, tol, rd, slope)
        for p in range(k):
            nu[order[p]] += alpha * d[p]
        for j in range(n):
            z[j] -= alpha * a[j]
        moves, price = moves + 1, full_price + price + alpha * length
        if alpha == ceiling:
            i = order[blocking]
            nu[i] = 0.0 if d[blocking] < 0.0 else caps[i]
            state[i] = INACTIVE if d[blocking] < 0.0 else AT_BOUND
            if state[i] == AT_BOUND:
                full, full_price = full + 1, full_price + abs(nu[i])
            if i == entered and alpha == 0.0 and state[i] == was:
                return UNCONVERGED  # rounding turned an ascent into a step back
            known = leave(factor, k, blocking, d)
            k -= 1
            for p in range(blocking, k):
                order[p] = order[p + 1]
    return UNCONVERGED


def over_bounds(load):
    """The hinge prox over K = {lower ≤ x ≤ upper} and rows of its own.

    ``load(where, rows, right, caps, norms)`` puts these, normalised, before the others and returns their number;
    where = (lower, upper, number of equalities among all rows, …).
    """

    @njit
    def prox(where, y, constraint, memory, x, nu):
        """The hinge prox of y in x, its multipliers in ν; returns a status."""
        lower, upper, equalities = where[0], where[1], where[2]
        A, b, cap = constraint
        M, n = A.shape
        work = workspace_views(memory[0], memory[1])
        rows, right, caps, norms, state = work.rows, work.rhs, work.max_multiplier, work.norms, work.row_state
        y_norm = np.sqrt(dot(y, y))
        if not y_norm < np.inf:
            return NONFINITE
        satisfied = equalities == 0
        for j in range(n):
            x[j] = clip(y[j], lower[j], upper[j])
        for i in range(M):
            nu[i] = 0.0
        own = load(where, rows, right, caps, norms)
        for i in range(own):
            satisfied = satisfied and dot(rows[i], x) <= right[i]
        for i in range(M):
            satisfied = satisfied and -np.inf < dot(A[i], x) - b[i] <= 0.0
            if not satisfied:
                break
        if satisfied:
            return CONVERGED
        if not normalise(A, b, cap, own, rows, right, caps, norms):
            return NONFINITE
        store_columns(work, own + M)
        price = nu
        if own > 0:
            price = work.multiplier
            for i in range(own + M):
                price[i] = 0.0
        for i in range(own):
            state[i] = ACTIVE if i < equalities and norms[i] > 0.0 else INACTIVE
        for i in range(M):
            state[own + i] = ACTIVE if own + i < equalities and norms[own + i] > 0.0 else INACTIVE
            # a zero row asks 0 ≤ b
            zero = norms[own + i] == 0.0 and cap[i] == np.inf
            if zero and (b[i] < 0.0 or (own + i < equalities and b[i] > 0.0)):
                return INFEASIBLE
        status, target, norm, multipliers = UNCONVERGED, y, y_norm, price
        for again in range(2):
            problem = DualProblem(target, norm, lower, upper, own + M, equalities, own > 0)
            status = maximise_dual(problem, work, price, x)
            x_norm = np.sqrt(dot(x, x))
            if again == 1 or status != CONVERGED or y_norm <= FAR_TARGET * x_norm or x_norm == 0.0:
                break
            # y − Aᵀν has lost digits that x can have, but ν has not: go on for x from a target that is near
            multipliers = price.copy()
            target = np.empty(n)
            tau = move_target_closer(y, x, x_norm, target)
            norm = np.sqrt(dot(target, target))
            for i in range(own + M):
                price[i] *= tau
                caps[i] *= tau if caps[i] < np.inf else 1.0
        for i in range(M):
            norm, given = norms[own + i], cap[i] if b[i] < 0.0 else 0.0
            nu[i] = multipliers[own + i] / max(norm, 1e-170) if norm > 0.0 else given
        return status

    return prox


@njit
def no_rows(where, rows, right, caps, norms):
    """A box has none of its own."""
    return 0


hinge_prox_box = over_bounds(no_rows)


@njit
def hinge_prox_ball(where, y, constraint, memory, x, nu):
    """The hinge prox over K = {‖x − center‖ ≤ radius}, where = (center, radius); returns a status."""
    center, radius = where
    A, b, cap = constraint
    status = _in_ball(center, radius, y, A, b, cap, memory, x, nu)
    if status == CONVERGED and distance(y, center) > FAR_TARGET * radius and radius > 0.0:
        # x has lost digits that it can have, but ν has not: go on for x from a target that is near
        target = np.empty(y.shape[0])
        tau = move_target_closer(y, x, radius, target)
        status = _in_ball(center, radius, target, A, b, tau * cap, memory, x, np.empty(A.shape[0]))
    return status


@njit
def _in_ball(center, radius, y, A, b, cap, memory, x, nu):
    """As `hinge_prox_ball`, in one go.

    With the ball's multiplier μ and s = 1/(1 + μ), the solution is center + p(s), where p(s) solves the problem
    without the ball for the target s·(y − center) and the caps s·cap. ‖p(s)‖² grows with s and is linear in s² on
    each set of active rows, so that interpolation in s² inside a bracket ends after a few steps, but where it hardly
    grows over a long way, as at a vertex near the ball: there the bracket is divided.
    """
    status = UNCONVERGED
    M, n = A.shape
    work = workspace_views(memory[0], memory[1])
    target, lower, upper = np.empty(n), np.full(n, -np.inf), np.full(n, np.inf)
    rows, right, norms, state = work.rows, work.rhs, work.norms, work.row_state
    room, caps = work.max_multiplier, work.unscaled_max_multiplier
    z_norm, c_norm = 0.0, np.sqrt(dot(center, center))
    for j in range(n):
        z_norm += (y[j] - center[j]) ** 2
    z_norm = np.sqrt(z_norm)
    if not z_norm < np.inf or not normalise(A, b, cap, 0, rows, right, caps, norms):
        return NONFINITE
    store_columns(work, M)
    largest = 0.0
    for i in range(M):
        nu[i] = 0.0
        state[i] = INACTIVE
        if norms[i] == 0.0 and cap[i] == np.inf and b[i] < 0.0:
            return INFEASIBLE
        if right[i] < NEVER_BINDS:
            right[i] -= dot(rows[i], center)
            largest = max(largest, abs(right[i]))
    rim = radius * radius
    # the bracket: low end s = 0, high end s = 1, excesses ‖p‖² − radius² at both
    low, high, low_excess, high_excess = 0.0, 1.0, -rim, 0.0
    sigma, tight = 1.0, 8.0 * ROUNDING * (rim + radius * c_norm)
    side, alike = 0, 0
    for step in range(STEPS):
        s = np.sqrt(sigma)
        for j in range(n):
            target[j] = s * (y[j] - center[j])
        for i in range(M):
            room[i] = s * min(caps[i], NEVER_BINDS) if caps[i] < np.inf else np.inf
            if state[i] == AT_BOUND:
                nu[i] = room[i]
            elif nu[i] > room[i]:
                nu[i], state[i] = room[i], AT_BOUND
        status = maximise_dual(DualProblem(target, s * z_norm, lower, upper, M, 0, False), work, nu, x)
        if status != CONVERGED:
            return status
        excess = min(dot(x, x), NEVER_BINDS) - rim
        if step == 0:
            if excess <= tight:
                break
            high_excess = excess
            sigma = 0.0
            continue
        if sigma == 0.0:
            if not excess <= -tight:  # the rows touch the ball, or miss it
                miss = np.sqrt(max(excess + rim, 0.0)) - radius
                status = INFEASIBLE if miss > FEASIBILITY * (radius + c_norm + largest) else CONVERGED
                break
            low_excess = excess
        else:
            if abs(excess) <= tight or not low < sigma < high:
                break
            alike = alike + 1 if (excess > 0.0) == (side == 1) else 0
            if excess > 0.0:
                high, high_excess = sigma, excess
                low_excess *= 0.5 if side == 1 else 1.0  # the Illinois rule: no end may stay for ever
                side = 1
            else:
                low, low_excess = sigma, excess
                high_excess *= 0.5 if side == -1 else 1.0
                side = -1
        sigma = low + (high - low) * (-low_excess / max(high_excess - low_excess, 1e-300))
        if alike > 2 or not low < sigma < high:
            sigma = 0.5 * (low + high) if 4.0 * low > high else np.sqrt(low * high) if low > 0.0 else 0.01 * high
            if not low < sigma < high:
                break
    else:
        return UNCONVERGED
    s = np.sqrt(sigma)
    for j in range(n):
        x[j] += center[j]
    for i in range(M):
        share = nu[i] / max(s, 1e-170) if nu[i] > 0.0 else 0.0
        nu[i] = share / max(norms[i], 1e-170) if norms[i] > 0.0 else cap[i] if b[i] < 0.0 else 0.0
    return status
