"""Hinge prox with several rows over a box, by a dual active-set method; if max_multiplier = inf, the projection.

The dual of argmin over lower ≤ x ≤ upper of ½‖x − y‖² + Σ_i max_multiplier_i (⟨a_i, x⟩ − b_i)^+ has one multiplier per
row, 0 ≤ ν_i ≤ max_multiplier_i (of any sign for equalities). x(ν) = clip(y − Aᵀν), and the dual is concave and
piecewise quadratic, with gradient r(ν) = A x(ν) − b. It is maximised by an active-set method in the manner of
non-negative least squares (Lawson & Hanson 1974): add the most violated row, take Newton steps with an exact line
search on the active rows, remove a row whose multiplier reaches a bound. x(ν) satisfies the bounds exactly and
stationarity by construction, so small residuals r *are* optimality. A direction along which the dual grows without end
proves that the rows have no common point in the box.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, expanded, in_order, njit
from cocopt.kernels.far_targets import MAX_STAGES, is_lost, is_near, move_target_closer, next_length, smallest_size
from cocopt.kernels.ldl import factorise, remove_from_factor, solve_factored, update_factor
from cocopt.kernels.line import Line, find_root, limit_at_infinity
from cocopt.kernels.rounding import rounding
from cocopt.kernels.status import CONVERGED, CROWDED, INFEASIBLE, NONFINITE, TOUCHING, UNCONVERGED
from cocopt.kernels.vectors import clip, dot, norm
from cocopt.kernels.workspace import ACTIVE, AT_BOUND, INACTIVE, workspace_views
from cocopt.tolerances import FEASIBILITY, NEVER_BINDS

__all__ = [
    "DualProblem",
    "dot",
    "hinge_prox_box",
    "maximise_dual",
    "normalise",
    "over_bounds",
    "rows_hold",
    "store_columns",
]

MIN_ROWS_BY_COLUMNS = 8  # from so many rows on A x is computed column by column
UPDATE_COST = 6  # that of one update of the factor, for as many rows as coordinates, in units of a new factor's over 2n
MIN_CROWDED_DIM = 50  # in fewer dimensions another start gains little and can cost as much
CROWDED_SHARE = 4  # a problem counts as crowded once the active rows are more than one in so many coordinates
MAX_UPDATES = 4  # after more steps than this z is computed anew from the multipliers before a result is accepted


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


class Direction(NamedTuple):
    """How far the multipliers can move along ``newton_step``, and what the dual gains on the way."""

    ascent: Any  # derivative of the dual
    length: Any  # Σ|newton_step|
    multiplier_sum: Any  # Σ|ν_i| over the active rows
    max_step: Any  # where the first multiplier meets a bound
    blocking: Any  # whose it is, as a place in ``active``; −1 if none meets one
    decreases: Any  # whether the multiplier of some inequality does
    curvature: Any  # minus the second derivative of the dual


@borrowing
def normalise(constraint, first, work):
    """Loads rows, scaled to length 1, from the place ``first`` on; one that never binds gets rhs = NEVER_BINDS.

    ``constraint`` is (A, b, max_multiplier). False if something is not finite.
    """
    A, b, max_multiplier = constraint
    M, n = A.shape
    for i in range(M):
        length = norm(A[i])
        if not (length < np.inf and b[i] > -np.inf):
            return False
        k, unit = first + i, 1.0 / max(length, 1e-300) if length > 0.0 else 0.0
        work.norms[k] = length
        for j in range(n):
            work.rows[k, j] = A[i, j] * unit
        most = max_multiplier[i]
        work.rhs[k] = b[i] * unit if length > 0.0 and b[i] < np.inf else NEVER_BINDS
        work.max_multiplier[k] = most * length if length > 0.0 and most < np.inf else most
    return True


@borrowing
def store_columns(work, count):
    """Transposes the first ``count`` rows if there are enough of them for `compute_residuals` to use columns."""
    if count >= MIN_ROWS_BY_COLUMNS:
        for i in range(count):
            for j in range(work.rows.shape[1]):
                work.columns[j, i] = work.rows[i, j]


@njit
def residuals_by_columns(columns, rhs, count, x, residual):
    """residual = A x − rhs of the first ``count`` rows."""
    n = x.shape[0]
    for i in range(count):
        residual[i] = -rhs[i]
    whole = n - n % 4
    for j in range(0, whole, 4):  # four at once: the residual is read and written less often
        first, second, third, fourth = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        x_1, x_2, x_3, x_4 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(count):
            residual[i] += (first[i] * x_1 + second[i] * x_2) + (third[i] * x_3 + fourth[i] * x_4)
    if n - whole > 1:
        first, second, x_1, x_2 = columns[whole], columns[whole + 1], x[whole], x[whole + 1]
        for i in range(count):
            residual[i] += first[i] * x_1 + second[i] * x_2
    if n % 2 == 1:
        last, x_n = columns[n - 1], x[n - 1]
        for i in range(count):
            residual[i] += last[i] * x_n


@borrowing
def compute_residuals(work, count, x):
    """residual = A x − rhs."""
    if count >= MIN_ROWS_BY_COLUMNS:
        residuals_by_columns(work.columns, work.rhs, count, x, work.residual)
        return
    for i in range(count):
        work.residual[i] = dot(work.rows[i], x) - work.rhs[i]


@borrowing
def list_active_rows(work, count):
    """Lists the rows whose state is ACTIVE; returns their number."""
    active_count = 0
    for i in range(count):
        if work.row_state[i] == ACTIVE:
            work.active[active_count] = i
            active_count += 1
    return active_count


@borrowing
def sum_at_bound(work, count, nu):
    """Σ|ν_i| over the rows that are AT_BOUND."""
    total = 0.0
    for i in range(count):
        if work.row_state[i] == AT_BOUND:
            total += abs(nu[i])
    return total


@borrowing
def subtract_row(work, i, nu):
    """z −= ν_i a_i; returns |ν_i|."""
    for j in range(work.z.shape[0]):
        work.z[j] -= nu[i] * work.rows[i, j]
    return abs(nu[i])


@borrowing
def compute_z(problem, work, nu, active_count):
    """z = y − Aᵀν; returns Σ|ν_i|."""
    total = 0.0
    for j in range(work.z.shape[0]):
        work.z[j] = problem.target[j]
    for p in range(active_count):
        total += subtract_row(work, work.active[p], nu)
    for i in range(problem.count):
        if work.row_state[i] == AT_BOUND:
            total += subtract_row(work, i, nu)
    return total


@borrowing
def clip_to_bounds(problem, work, x):
    """x = clip(z), and free = 1 where x = z; returns ‖x‖ and how many entries of free changed.

    ``direction`` is what they changed by. (No branches, so that this becomes vector code.)
    """
    z, free, change = work.z, work.free, work.direction
    changes = 0
    for j in range(z.shape[0]):
        p = clip(z[j], problem.lower[j], problem.upper[j])
        x[j] = p
        f = 1.0 if p == z[j] else 0.0
        change[j] = f - free[j]
        changes += 1 if f != free[j] else 0
        free[j] = f
    return norm(x), changes


@borrowing
def count_free(free):
    """How many coordinates are strictly between their bounds."""
    count = 0.0
    for j in range(free.shape[0]):
        count += free[j]
    return count


@borrowing
def update_free(work, active_count, factored, changes):
    """Adapts the factor to coordinates that became free or met a bound; returns of how many rows it is valid.

    One update each, those that became free first; if they are many, to factorise anew is faster.
    """
    change, w, n = work.direction, work.newton_step, work.free.shape[0]
    if factored != active_count or active_count <= 2 or UPDATE_COST * changes > n + active_count:
        return 0
    zero, valid, weight = np.int64(0), factored, 1.0
    for _ in range(2):
        for j in range(n):
            if change[j] == weight:
                for p in range(valid):
                    w[p] = work.rows[work.active[p], j]
                valid = update_factor(work.factor, valid, zero, weight, w)
        weight = -1.0
    return valid


@borrowing
def measure_active_residuals(work, active_count, x):
    """The residuals of the active rows."""
    for p in range(active_count):
        i = work.active[p]
        work.residual[i] = dot(work.rows[i], x) - work.rhs[i]


@borrowing
def check_active_residuals(work, active_count, noise, eps):
    """Whether the residuals of the active rows vanish but for rounding; the largest of them, at least ``noise``."""
    vanish, largest = True, noise
    for p in range(active_count):
        i = work.active[p]
        r = abs(work.residual[i])
        if not r <= noise + eps * abs(work.rhs[i]):
            vanish = False
            largest = max(largest, r)
    return vanish, largest


@borrowing
def forget_rounding(work, active_count):
    """Residuals that vanish but for rounding count as 0: the less of them there are, the less is there to solve."""
    for p in range(active_count):
        work.residual[work.active[p]] = 0.0


@borrowing
def find_most_violated_row(work, count, x, threshold, eps):
    """The row whose multiplier leaves its bound with the steepest ascent; −1 if none has more than the threshold.

    And how many have more.
    """
    compute_residuals(work, count, x)
    state, gain = work.row_state, work.newton_step
    for i in range(count):
        excess = (work.residual[i] if state[i] == INACTIVE else -work.residual[i]) - eps * abs(work.rhs[i])
        gain[i] = -1.0 if state[i] == ACTIVE else excess
    found, most, violated = -1, threshold, 0
    for i in range(count):
        violated += 1 if gain[i] > threshold else 0
        if gain[i] > most:
            found, most = i, gain[i]
    return found, violated


@in_order
def combine_rows(rows, active, weights, count, total):
    """total = Σ_p weights_p a_p over the active rows; four at once, so that the sum is read and written less often."""
    n = total.shape[0]
    for j in range(n):
        total[j] = 0.0
    whole = count - count % 4
    for p in range(0, whole, 4):
        first, second, third, fourth = rows[active[p]], rows[active[p + 1]], rows[active[p + 2]], rows[active[p + 3]]
        d_1, d_2, d_3, d_4 = weights[p], weights[p + 1], weights[p + 2], weights[p + 3]
        for j in range(n):
            total[j] += (d_1 * first[j] + d_2 * second[j]) + (d_3 * third[j] + d_4 * fourth[j])
    for p in range(whole, count):
        row, d_1 = rows[active[p]], weights[p]
        for j in range(n):
            total[j] += d_1 * row[j]


@borrowing
def newton_direction(problem, work, nu, active_count):
    """direction = Aᵀ newton_step, and what it does to the multipliers and to the dual."""
    a, d = work.direction, work.newton_step
    combine_rows(work.rows, work.active, d, active_count, a)
    ascent, length, total, max_step, blocking, decreases = 0.0, 0.0, 0.0, np.inf, -1, False
    for p in range(active_count):
        i = work.active[p]
        ascent += d[p] * work.residual[i]
        length += abs(d[p])
        total += abs(nu[i])
        if i >= problem.equalities:
            room, most = np.inf, work.max_multiplier[i]
            if d[p] < 0.0:
                decreases = True
                room = nu[i] / max(-d[p], 1e-150)
            elif d[p] > 0.0 and most < np.inf:
                room = (most - nu[i]) / max(d[p], 1e-150)
            if room < max_step:
                max_step, blocking = room, p
    curvature = 0.0
    for j in range(a.shape[0]):
        # what rounding leaves of dependent rows must not meet an infinite bound
        a[j] = a[j] if abs(a[j]) > 1e-14 * length else 0.0
        curvature += a[j] * a[j] * work.free[j]
    return Direction(ascent, length, total, max_step, blocking, decreases, curvature)


@borrowing
def stays_on_piece(problem, work, alpha):
    """Whether clip(z − α direction) is linear from 0 to α: there a Newton step is exact."""
    z, a, free, lower, upper = work.z, work.direction, work.free, problem.lower, problem.upper
    others = 0
    for j in range(z.shape[0]):
        new = z[j] - alpha * a[j]
        f = 1.0 if clip(new, lower[j], upper[j]) == new else 0.0
        others += 1 if f != free[j] or (f == 0.0 and (new > upper[j]) != (z[j] > upper[j])) else 0
    return others == 0


@borrowing
def line_search(problem, work, x, direction, tol, size):
    """(α, status, exact): the α ≤ max_step that maximises the dual, or INFEASIBLE or TOUCHING if it grows without end.

    ``exact`` says that of the active rows' residuals 1 − α is left. ``tol`` is the rounding error of the derivative;
    ``size`` is the length of the vectors in a residual.
    """
    ascent, curvature, max_step = direction.ascent, direction.curvature, direction.max_step
    alpha = min(1.0, max_step)
    quadratic = tol < ascent <= curvature + tol and curvature <= ascent + tol
    if quadratic and stays_on_piece(problem, work, alpha):
        return alpha, CONVERGED, True
    # h(α) = ⟨newton_step, r(ν + α newton_step)⟩ with b such that it agrees with the residuals in hand
    b = dot(work.direction, x) - ascent
    line = Line(work.z, problem.lower, problem.upper, work.direction, b)
    if max_step == np.inf:
        least = limit_at_infinity(line)
        if least > direction.length * FEASIBILITY * size and not direction.decreases:
            return alpha, INFEASIBLE, False
        if least > -tol:
            return alpha, TOUCHING, False
    if max_step > 0.0 and ascent > tol:
        alpha, _ = find_root(line, max_step, tol, ascent, curvature)
    return alpha, CONVERGED, False


@borrowing
def take_step(work, nu, active_count, alpha):
    """Moves the multipliers and z by α along the direction; of residuals 1 − α is left, if the step is exact."""
    for p in range(active_count):
        i = work.active[p]
        nu[i] += alpha * work.newton_step[p]
        work.residual[i] *= 1.0 - alpha
    for j in range(work.z.shape[0]):
        work.z[j] -= alpha * work.direction[j]


@borrowing
def set_at_bound(work, nu, blocking):
    """Puts the multiplier of an active row exactly on the bound that it has met; returns the row."""
    i = work.active[blocking]
    if work.newton_step[blocking] < 0.0:
        nu[i], work.row_state[i] = 0.0, INACTIVE
    else:
        nu[i], work.row_state[i] = work.max_multiplier[i], AT_BOUND
    return i


@borrowing
def remove_row(work, active_count, removed):
    """Takes a row from the list of active ones and from the factor; returns of how many rows this is valid."""
    factored = remove_from_factor(work.factor, active_count, removed, work.newton_step)
    for p in range(removed, active_count - 1):
        work.active[p] = work.active[p + 1]
    return factored


@borrowing
def is_crowded(active_count, violated, n):
    """Whether about as many rows will bind as there are coordinates, as far as active and violated ones tell."""
    return n >= MIN_CROWDED_DIM and CROWDED_SHARE * active_count > n and active_count + violated > n


@borrowing
def maximise_dual_unless_crowded(problem, work, nu, x, may_stop):
    """The active-set method; ν and the rows' states are the start and the result. Returns a status.

    If it ``may_stop``, CROWDED where the problem turns out to be crowded (`maximise_dual_in_stages`).

    Its complexity exceeds the guide, since its loop has a dozen numbers as its state; each step is a function.
    """
    eps, count = rounding(x.shape[0]), problem.count
    for j in range(x.shape[0]):
        work.free[j] = -1.0
    active_count, factored = list_active_rows(work, count), np.int64(0)
    bound_sum = sum_at_bound(work, count, nu)
    updates, multiplier_sum = 0, 0.0  # updates of z since it was computed: each loses a little
    added, state_before = -1, INACTIVE  # the row that joined last, and its state before
    exact = False  # whether the residuals of the active rows are known from those before the last step
    for _ in range(60 + 8 * count):
        if updates == 0:
            multiplier_sum = compute_z(problem, work, nu, active_count)
        x_norm, changes = clip_to_bounds(problem, work, x)
        if changes > 0:
            factored = update_free(work, active_count, factored, changes)
        exact = exact and changes == 0 and updates > 0
        if not exact:
            measure_active_residuals(work, active_count, x)
        size = problem.target_norm + x_norm
        # (where z is not clipped y is at most ‖x‖ + Σ|ν_i|; where it is clipped its rounding does not matter)
        noise = 2.0 * eps * (x_norm + multiplier_sum)
        vanish, largest = check_active_residuals(work, active_count, noise, eps)
        joining, violated = -1, 0
        if vanish or (problem.eager and changes > 0 and active_count < count_free(work.free)):
            joining, violated = find_most_violated_row(work, count, x, largest, eps)
        if vanish and joining < 0 and exact:  # to be seen, before it is believed
            measure_active_residuals(work, active_count, x)
            vanish, largest = check_active_residuals(work, active_count, noise, eps)
        if vanish and joining < 0:
            accurate = noise <= 0.25 * FEASIBILITY * size
            if updates <= (MAX_UPDATES if accurate else 0):
                return CONVERGED if accurate else UNCONVERGED
            updates = 0
            continue
        if vanish:
            forget_rounding(work, active_count)
        if joining >= 0:
            added, state_before = joining, work.row_state[joining]
            work.row_state[joining], work.active[active_count] = ACTIVE, joining
            active_count += 1
            if may_stop and is_crowded(active_count, violated, x.shape[0]):
                return CROWDED
        factorise(work, factored, active_count)
        solve_factored(work, np.int64(0), active_count)
        if joining >= 0:
            if not vanish and (work.newton_step[active_count - 1] <= 0.0) == (state_before == INACTIVE):
                work.row_state[joining] = state_before  # it joined too early, and would leave at once
                active_count -= 1
                solve_factored(work, np.int64(0), active_count)
            elif state_before == AT_BOUND:
                bound_sum -= abs(nu[joining])
        factored = active_count
        direction = newton_direction(problem, work, nu, active_count)
        if not 0.0 < direction.ascent < np.inf:
            return UNCONVERGED
        alpha, status, exact = line_search(problem, work, x, direction, 0.25 * direction.length * noise, size)
        if status != CONVERGED:
            return status
        take_step(work, nu, active_count, alpha)
        updates, multiplier_sum = updates + 1, bound_sum + direction.multiplier_sum + alpha * direction.length
        if alpha == direction.max_step:
            i = set_at_bound(work, nu, direction.blocking)
            if i == added and alpha == 0.0 and work.row_state[i] == state_before:
                return UNCONVERGED  # rounding turned an ascent into a step back
            bound_sum += abs(nu[i])
            factored = remove_row(work, active_count, direction.blocking)
            active_count -= 1
    return UNCONVERGED


@borrowing
def maximise_dual(problem, work, nu, x):
    """The active-set method from ν and the rows' states to the result, whatever the problem. Returns a status."""
    return maximise_dual_unless_crowded(problem, work, nu, x, False)


@borrowing
def rows_hold(work, count, equalities, size):
    """Whether the residuals, of a point of this size, are as small as promised; those of rows AT_BOUND need not be."""
    hold = True
    for i in range(count):
        r = abs(work.residual[i]) if i < equalities else work.residual[i]
        small = r <= 0.5 * FEASIBILITY * max(size, abs(work.rhs[i]))
        hold = hold and (small or work.row_state[i] == AT_BOUND)
    return hold


@borrowing
def forget_multipliers(work, nu, count, equalities):
    """ν = 0, and no inequality is active."""
    for i in range(count):
        nu[i] = 0.0
        work.row_state[i] = ACTIVE if i < equalities and work.norms[i] > 0.0 else INACTIVE


@expanded
def maximise_dual_in_stages(problem, work, multiplier, x):
    """`maximise_dual`, and where y is far away again from nearer and nearer targets; returns (status, ν).

    y − Aᵀν has then lost digits that x can have, but ν has not: ν is that of the first stage.

    Where about as many rows bind as there are coordinates, x is mostly strictly between the bounds, but coordinates
    would meet and leave them on the way in every other step: there the rows alone come first, and are the start.
    """
    y, _, lower, upper, count, equalities, eager = problem
    nu, status, target, tau, smallest, x_norm = multiplier, UNCONVERGED, problem.target, 1.0, 0.0, 0.0
    may_stop, unbounded, first = True, False, True
    for _ in range(MAX_STAGES + 2):
        status = maximise_dual_unless_crowded(problem, work, multiplier, x, may_stop)
        may_stop = False
        if status == CROWDED:
            free = np.full(x.shape[0], np.inf)
            problem, unbounded = DualProblem(y, problem.target_norm, -free, free, count, equalities, eager), True
            continue
        if unbounded:
            if status != CONVERGED:
                forget_multipliers(work, multiplier, count, equalities)
            problem, unbounded = DualProblem(y, problem.target_norm, lower, upper, count, equalities, eager), False
            continue
        x_norm = norm(x)
        total = 0.0
        for i in range(count):
            total += abs(multiplier[i])
        if total == 0.0 or is_near(problem.target_norm, x_norm, smallest):
            break
        if first:
            nu, target, first = multiplier.copy(), np.empty(x.shape[0]), False
            smallest = smallest_size(lower, upper, work.rhs, count)
        if status != CONVERGED and not is_lost(problem.target_norm, x_norm, smallest):
            break
        before = tau
        tau = move_target_closer(y, x, next_length(problem.target_norm, x_norm, smallest), target)
        for i in range(count):
            multiplier[i] *= tau / before
            work.max_multiplier[i] *= tau / before if work.max_multiplier[i] < np.inf else 1.0
        problem = DualProblem(target, norm(target), lower, upper, count, equalities, eager)
    if status == CONVERGED and not rows_hold(work, count, equalities, max(x_norm, smallest)):
        status = UNCONVERGED
    return status, nu


@borrowing
def satisfies_all(work, own, constraint, x):
    """Whether x satisfies K's own rows, which are loaded, and those of the constraint."""
    A, b, _ = constraint
    satisfied = True
    for i in range(own):
        satisfied = satisfied and dot(work.rows[i], x) <= work.rhs[i]
    for i in range(A.shape[0]):
        satisfied = satisfied and -np.inf < dot(A[i], x) - b[i] <= 0.0
        if not satisfied:
            break
    return satisfied


@borrowing
def set_row_states(work, own, equalities, constraint):
    """Equalities are active, other rows not; False if a row of zeros, which asks that 0 ≤ b, cannot be satisfied."""
    _, b, max_multiplier = constraint
    for i in range(own + b.shape[0]):
        work.row_state[i] = ACTIVE if i < equalities and work.norms[i] > 0.0 else INACTIVE
    feasible = True
    for i in range(b.shape[0]):
        if work.norms[own + i] == 0.0 and max_multiplier[i] == np.inf:
            feasible = feasible and not (b[i] < 0.0 or (own + i < equalities and b[i] > 0.0))
    return feasible


def over_bounds(load_own_rows):
    """The hinge prox over K = {lower ≤ x ≤ upper} and rows of its own.

    ``load_own_rows(K, work)`` loads these, normalised, before the others and returns their number.
    """

    @expanded
    def hinge_prox(K, y, constraint, memory, x, nu):
        """The hinge prox of y in x, its multipliers in ν; returns a status.

        K = (lower, upper, number of equalities among all rows, …); constraint = (A, b, max_multiplier).
        """
        work = workspace_views(memory[0], memory[1])
        lower, upper, equalities = K[0], K[1], K[2]
        _, b, max_multiplier = constraint
        y_norm = norm(y)
        if not y_norm < np.inf:
            return NONFINITE
        for j in range(y.shape[0]):
            x[j] = clip(y[j], lower[j], upper[j])
        for i in range(b.shape[0]):
            nu[i] = 0.0
        own = load_own_rows(K, work)
        if equalities == 0 and satisfies_all(work, own, constraint, x):
            return CONVERGED
        if not normalise(constraint, own, work):
            return NONFINITE
        if not set_row_states(work, own, equalities, constraint):
            return INFEASIBLE
        store_columns(work, own + b.shape[0])
        multiplier = nu
        if own > 0:  # ν has no room for K's own rows
            multiplier = work.multiplier
            for i in range(own + b.shape[0]):
                multiplier[i] = 0.0
        problem = DualProblem(y, y_norm, lower, upper, own + b.shape[0], equalities, own > 0)
        status, found = maximise_dual_in_stages(problem, work, multiplier, x)
        for i in range(b.shape[0]):
            length, given = work.norms[own + i], max_multiplier[i] if b[i] < 0.0 else 0.0
            nu[i] = found[own + i] / max(length, 1e-170) if length > 0.0 else given
        return status

    return hinge_prox


@njit
def _no_own_rows(K, work):
    return 0


hinge_prox_box = over_bounds(_no_own_rows)
