"""Newton's method for the multipliers of a few rows, affine or curved, over a box.

The dual of argmin over lower ≤ x ≤ upper of ½‖x − y‖² + Σ_i most_i g_i(x)^+ is to maximise, over 0 ≤ u ≤ most, the
minimum over the box of the Lagrangian ½‖x − y‖² + Σ u_i g_i(x). It is concave; its gradient is g(x(u)), and where the
free coordinates F do not change its Hessian is −J_F H_FF⁻¹ J_Fᵀ: J has the gradients of the rows, H is the Hessian of
the Lagrangian. Every step maximises the quadratic model exactly (`best_step`). Along the step the model is improved for
quadratics: g falls like 1/(e + t)², as it does exactly if P is a multiple of the identity, and e follows from the
third derivative. A step is kept if at its end g does not point back by more than it pointed ahead at its start, else
a shorter one is searched for; the multiplier of a single row is bracketed instead.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing, in_order
from cocopt.kernels.dense.descent import Minimum, minimise_over_box
from cocopt.kernels.dense.factor import back_substitute, forward_substitute
from cocopt.kernels.dense.multipliers import best_step
from cocopt.kernels.dense.problem import gram_matrices
from cocopt.kernels.status import CONVERGED, NONFINITE, UNCONVERGED
from cocopt.kernels.vectors import clip, dot

__all__ = ["maximise_dual"]

MAX_STEPS = 150  # of the multipliers, shortened ones included
EXACT = 3e-14  # a step that changes every row by less, relative to its terms, ends the search;
ENOUGH = 1e-11  # so does a step below this if it is no shorter than half the last one
ROUGHLY = 0.01  # and one below this those with the rows that come first, since they only give a start for all rows
SMALL_CHANGE = 1e-3  # the factor of the Hessian is kept while no multiplier changes by more than this share
POINTS_BACK = 0.9  # a step is too long if g at its end points back by more than this share of what it did ahead,
AHEAD = 0.5  # and, if it was shortened, too short if it still points ahead by more than this share
MAX_TRIES = 16  # for its length
FARTHEST = 16.0  # a guess may exceed what is known to be too short by this factor
LONGEST = 4.0  # in Newton steps
MAX_LONGER = 2.0  # the same where the improved model has no root
MAX_FAILURES = 10  # descents that fail, after each of which only a quarter,
RETREAT = 0.25  # that is this share, of the step is taken
DRIFT = 0.25
MAX_REFINED = 5  # so many times at most
NARROW = 1e-9  # a bracket is empty if it is shorter than this share of its end
STATIONARY = 32.0  # the gradient on the free coordinates may be this many times its rounding error
DEPENDENT = 1e-24  # the share of a row's squared length on the free coordinates below which it does not move them


class Line(NamedTuple):
    """The search along a step of the multipliers."""

    ascent: Any  # φ(0), 0 if there was no step
    t: Any  # the place at hand
    lo: Any  # a place that is too short, and φ there
    phi_lo: Any
    hi: Any  # a place that is too far, inf if none is known, and φ there
    phi_hi: Any
    tries: Any


class Step(NamedTuple):
    """The step of the multipliers that maximises the quadratic model of the dual; the step itself is in ``d``."""

    drift: Any  # by how much the gradient on the free coordinates changes a row at most, relative to its terms
    error: Any  # the largest residual of a row, relative to its terms
    ascent: Any  # ⟨ρ, d⟩
    dependent: Any  # whether rows that depend on one another moved last: the step has no length of its own
    release: Any  # then twice the length at which the first coordinate leaves its bound, inf if none does
    cautious: Any  # whether the model has all coordinates free


@borrowing
def list_rows(problem, work, u, considered):
    """Lists those of the first ``considered`` rows that take part: equalities, violated ones, and those with u ≠ 0."""
    count = 0
    for i in range(considered):
        if i < problem.equalities or u[i] != 0.0 or work.value[i] > EXACT * work.terms[i]:
            work.listed[count] = i
            count += 1
    return count


@borrowing
def gather_gradient(work, minimum):
    """z = the gradient on the free coordinates, after forward substitution."""
    z, count = work.z, minimum.free_count
    for k in range(count):
        z[k] = work.gradient[work.place[k]]
    if minimum.dense:
        forward_substitute(work.U, work.inverse, count, z)


@borrowing
def linearise(problem, work, u, rows, minimum, all_free):
    """S = J H⁻¹ Jᵀ and ρ = g − J H⁻¹ gradient of the listed rows, in units in which the diagonal of S is 1.

    z is that of `gather_gradient`. Returns by how much the second term changes a row at most, relative to its terms.
    With ``all_free``, S is at least what it becomes when coordinates leave their bounds.
    """
    z, place, listed, inverse, count = work.z, work.place, work.listed, work.inverse, minimum.free_count
    drift = 0.0
    for a in range(rows):
        J, Z = work.J[listed[a]], work.Z[a]
        for k in range(count):
            Z[k] = J[place[k]]
        if minimum.dense:
            forward_substitute(work.U, inverse, count, Z)
        moved = 0.0
        for k in range(count):
            moved += Z[k] * inverse[k] * z[k]
        for b in range(a + 1):
            other, total = work.Z[b], 0.0
            for k in range(count):
                total += Z[k] * inverse[k] * other[k]
            work.S[a, b] = total
        work.rho[a] = work.value[listed[a]] - moved
        drift = max(drift, abs(moved) / work.terms[listed[a]])
    if all_free:
        add_bound_coordinates(work, rows)
    scale_rows(problem, work, u, rows)
    return drift


@borrowing
def add_bound_coordinates(work, rows):
    """S += J Jᵀ on the coordinates at their bounds."""
    for a in range(rows):
        J = work.J[work.listed[a]]
        for b in range(a + 1):
            other, total = work.J[work.listed[b]], 0.0
            for j in range(J.shape[0]):
                total += (1.0 - work.free[j]) * J[j] * other[j]
            work.S[a, b] += total


@borrowing
def scale_rows(problem, work, u, rows):
    """Divides the rows by their units, and sets the bounds of their steps."""
    for a in range(rows):
        J = work.J[work.listed[a]]
        square, own = dot(J, J), work.S[a, a]
        unit = np.sqrt(own) if own > DEPENDENT * square else np.sqrt(square)
        work.unit[a] = unit if unit > 0.0 else 1.0
    for a in range(rows):
        i, unit = work.listed[a], work.unit[a]
        work.rho[a] /= unit
        for b in range(a + 1):
            work.S[a, b] /= unit * work.unit[b]
            work.S[b, a] = work.S[a, b]
        work.weight[a] = problem.counted[i] / unit
        work.lo[a] = -np.inf if i < problem.equalities else -u[i] * unit
        work.hi[a] = (problem.most[i] - u[i]) * unit


@borrowing
def unscale_step(work, rows, threshold):
    """d and ρ in the rows' own units; returns (the largest residual of a row, relative to its terms, ⟨ρ, d⟩).

    The residual is the dual's slope along a multiplier that can move that way.
    """
    worst, ascent = 0.0, 0.0
    for a in range(rows):
        slope = work.rho[a] - threshold * work.weight[a]
        residual = slope if slope > 0.0 and work.hi[a] > 0.0 else -slope if slope < 0.0 and work.lo[a] < 0.0 else 0.0
        worst = max(worst, residual * work.unit[a] / work.terms[work.listed[a]])
        ascent += work.rho[a] * work.d[a]
    for a in range(rows):
        work.d[a] /= work.unit[a]
        work.rho[a] *= work.unit[a]
    return worst, ascent


@borrowing
def length_to_release(problem, work, x, rows, noise):
    """How long the step d may be until the first coordinate at a bound becomes free; inf if none does."""
    least = np.inf
    for j in range(x.shape[0]):
        if work.free[j] == 1.0 or problem.lower[j] == problem.upper[j]:
            continue
        rate = 0.0
        for a in range(rows):
            rate += work.d[a] * work.J[work.listed[a], j]
        if (rate < 0.0) == (x[j] <= problem.lower[j]) and rate != 0.0:
            least = min(least, (abs(work.gradient[j]) + 2.0 * noise) / abs(rate))
    return least


@in_order
def move_within_box(problem, work, x):
    """x(u) after the last step of a single affine row's multiplier, from x before it; the Hessian is diagonal."""
    J, change = work.J[work.listed[0]], work.last[work.listed[0]]
    for j in range(x.shape[0]):
        z = work.start[j] - (work.gradient[j] + change * J[j]) * work.flat[j]
        x[j] = clip(z, problem.lower[j], problem.upper[j])


@borrowing
def length_within_box(problem, work, x):
    """The length of a single row's step at which its linear model is met; the Hessian is diagonal.

    Coordinates that leave their bounds on the way make the step shorter, those that meet them make it longer. For a
    curved row, whose model is no better, a tenth is enough, and the step is no longer than Newton's.
    """
    i, step = work.listed[0], work.d[0]
    affine, sign = i < problem.b.shape[0], 1.0 if step > 0.0 else -1.0
    J, low, high, t = work.J[i], 0.0, np.inf if affine else 1.0, 1.0
    enough = EXACT * work.terms[i] if affine else 0.1 * abs(work.value[i])
    for _ in range(MAX_TRIES):
        value, fall = work.value[i], 0.0
        for j in range(x.shape[0]):
            v = x[j] - (work.gradient[j] + t * step * J[j]) * work.flat[j]
            moved = clip(v, problem.lower[j], problem.upper[j])
            value += J[j] * (moved - x[j])
            fall += J[j] * J[j] * work.flat[j] if moved == v else 0.0
        if abs(value) <= enough:
            break
        low, high = (t, high) if sign * value > 0.0 else (low, t)
        t += sign * value / max(fall * abs(step), 1e-300)
        if not low < t < high or t > FARTHEST * low > 0.0:
            t = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return t


@borrowing
def step_of_x(work, rows, minimum):
    """z = H⁻¹(gradient + Jᵀd) on the free coordinates; z holds the first term, with forward substitution."""
    z, count = work.z, minimum.free_count
    for a in range(rows):
        t, Z = work.d[a], work.Z[a]
        for k in range(count):
            z[k] += t * Z[k]
    if minimum.dense:
        back_substitute(work.U, work.inverse, count, z)
    else:
        for k in range(count):
            z[k] *= work.inverse[k]


@borrowing
def curvature_along(problem, work, rows, count):
    """⟨z, (Σ d_i ∇²g_i) z⟩ of the balls and quadratics."""
    first, balls, quadratics = problem.b.shape[0], problem.radii.shape[0], problem.r.shape[0]
    z, place, total = work.z, work.place, 0.0
    for a in range(rows):
        i, own = work.listed[a] - first, 0.0
        if i < 0 or i >= balls + quadratics or work.d[a] == 0.0:
            continue
        if i < balls:
            own = dot(z[:count], z[:count]) / problem.radii[i]
        elif problem.diagonal[i - balls] > 0.0:
            P = problem.P[i - balls]
            for k in range(count):
                own += P[place[k], place[k]] * z[k] * z[k]
        else:
            P = problem.P[i - balls]
            for k in range(count):
                row, inner = P[place[k]], 0.0
                for m in range(count):
                    inner += row[place[m]] * z[m]
                own += z[k] * inner
        total += work.d[a] * own
    return total


@borrowing
def choose_length(problem, work, rows, count, ascent):
    """(length of the step of the multipliers, length of the step of x), in Newton steps.

    Along the step φ(t) = ⟨d, g⟩ has φ(0) = ascent, φ'(0) = −ascent and φ''(0) = 3⟨x', (Σ d_i ∇²g_i) x'⟩. The model
    α/(e + t)² − γ with these has its root where (1 + t/e)² = 1/(1 − 2/e), e = 3 ascent/φ''.
    """
    bend = 3.0 * curvature_along(problem, work, rows, count)
    if not (ascent > 0.0 and abs(bend) > 1e-12 * ascent):
        return 1.0, 1.0
    e = 3.0 * ascent / bend
    kappa = 1.0 - 2.0 / e
    length = min(2.0 / (kappa + np.sqrt(kappa)), LONGEST) if kappa > 0.0 else MAX_LONGER
    return length, length / (1.0 + length / e)


@borrowing
def take_step(problem, work, x, u, rows, minimum, lengths, bracket):
    """Moves multipliers and x; returns (⟨ρ, step⟩, whether the multipliers of curved rows hardly changed).

    ``bracket`` = (lo, hi) is where the multiplier of a single row is known to be.
    """
    length, reach = lengths
    for i in range(u.shape[0]):
        work.last[i], work.u_before[i] = 0.0, u[i]
    for j in range(x.shape[0]):
        work.start[j] = x[j]
    ascent, hardly = 0.0, True
    for a in range(rows):
        i = work.listed[a]
        new = u[i] + length * work.d[a]
        if i >= problem.equalities:
            new = clip(new, 0.0, problem.most[i])
            if bracket[1] < np.inf and not bracket[0] < new < bracket[1]:
                new = 0.5 * (bracket[0] + bracket[1])
        work.last[i] = new - u[i]
        if i >= problem.b.shape[0]:
            hardly = hardly and abs(work.last[i]) <= SMALL_CHANGE * u[i]
        u[i] = new
        ascent += work.rho[a] * work.last[i]
    for k in range(minimum.free_count):
        j = work.place[k]
        x[j] = clip(x[j] - reach * work.z[k], problem.lower[j], problem.upper[j])
    return ascent, hardly


@borrowing
def fall_along(work, u, minimum):
    """How fast ⟨last, g⟩ falls along the last step of the multipliers, by the factor at hand."""
    z, count, fall = work.z, minimum.free_count, 0.0
    for k in range(count):
        z[k] = 0.0
    for i in range(u.shape[0]):
        t, J = work.last[i], work.J[i]
        if t != 0.0:
            for k in range(count):
                z[k] += t * J[work.place[k]]
    if minimum.dense:
        forward_substitute(work.U, work.inverse, count, z)
    for k in range(count):
        fall += z[k] * z[k] * work.inverse[k]
    return fall


@borrowing
def search_line(work, u, minimum, line):
    """One step of the search along the last step of the multipliers; (whether another place is to be tried, the line).

    There is none after no step, and none for a single row, whose multiplier is bracketed instead.
    φ(t) = ⟨last, g⟩ at u_before + t·last falls with t. It may fall little at first, and then, when coordinates become
    free, a lot: so the next t comes from the slope at the present one, else from the secant.
    """
    phi, unsure = 0.0, 0.0
    if not line.ascent > 0.0 or u.shape[0] == 1:
        return False, line
    for i in range(u.shape[0]):
        phi += work.last[i] * work.value[i]
        unsure += abs(work.last[i]) * work.terms[i]
    too_far = phi < -POINTS_BACK * line.ascent and phi < -EXACT * unsure
    too_short = line.hi < np.inf and phi > AHEAD * line.ascent
    if not (too_far or too_short) or line.tries >= MAX_TRIES:
        return False, line
    t, (ascent, _, lo, phi_lo, hi, phi_hi, tries) = line.t, line
    if too_far:
        hi, phi_hi = t, phi
    else:
        lo, phi_lo = t, phi
    t += phi / max(fall_along(work, u, minimum), 1e-300)
    if not lo < t < hi or tries >= MAX_TRIES // 2:
        share = phi_lo / (phi_lo - phi_hi) if tries % 2 == 0 else 0.5
        t = lo + share * (hi - lo)
    for i in range(u.shape[0]):
        u[i] = work.u_before[i] + t * work.last[i]
    return True, Line(ascent, t, lo, phi_lo, hi, phi_hi, tries + 1)


@borrowing
def steepest_free(work, count):
    """The largest entry of the gradient on the free coordinates."""
    largest = 0.0
    for k in range(count):
        largest = max(largest, abs(work.gradient[work.place[k]]))
    return largest


@borrowing
def room_of_sum(problem, u):
    """What the sum of the counted multipliers may still grow by."""
    room = problem.most_sum
    if room < np.inf:
        for i in range(u.shape[0]):
            room -= problem.counted[i] * u[i]
    return room


@borrowing
def retreat(work, x, u):
    """After a failed descent: a quarter of the last step of the multipliers, from the x before it."""
    for i in range(u.shape[0]):
        work.last[i] *= RETREAT
        u[i] = work.u_before[i] + work.last[i]
    for j in range(x.shape[0]):
        x[j] = work.start[j]


@borrowing
def narrow_bracket(work, u, bracket):
    """What is known of the multiplier, if there is a single row: its value says on which side of it the solution is.

    If nothing is left between the two, a value was not accurate enough, and the search begins again.
    """
    if u.shape[0] > 1:
        return bracket
    i = work.listed[0]
    lo, hi = (max(bracket[0], u[i]), bracket[1]) if work.rho[0] > 0.0 else (bracket[0], min(bracket[1], u[i]))
    return (lo, hi) if hi == np.inf or hi - lo > NARROW * hi else (0.0, np.inf)


@borrowing
def rows_at_first(problem, warm):
    """How many rows are considered at first: affine rows and balls, unless no row needs a factor, or all are known."""
    plain, factors = problem.b.shape[0] + problem.radii.shape[0], problem.h.shape[0]
    for a in range(problem.r.shape[0]):
        factors += 0 if problem.diagonal[a] > 0.0 else 1
    return plain if plain > 0 and factors > 0 and not warm else plain + problem.r.shape[0] + problem.h.shape[0]


@borrowing
def model_step(problem, work, x, u, rows, minimum, was_cautious):
    """The `Step` of the listed rows, and what the sum of multipliers may grow by.

    Where the free coordinates alone say little about its length, all coordinates count as free (see `linearise`).
    """
    room = room_of_sum(problem, u)
    drift, dependent, error, ascent, release = 0.0, False, 0.0, 0.0, 0.0
    if not minimum.ready:
        gather_gradient(work, minimum)
    for attempt in range(2):
        drift = linearise(problem, work, u, rows, minimum, attempt == 1)
        dependent, too_long, threshold = best_step(work, rows, room)
        error, ascent = unscale_step(work, rows, threshold if room <= ENOUGH * problem.most_sum else 0.0)
        release = 2.0 * length_to_release(problem, work, x, rows, minimum.noise) if dependent else 1.0
        if release < np.inf and (was_cautious or not too_long):
            break
    return Step(drift, error, ascent, dependent, release, attempt == 1), room


@borrowing
def choose_lengths(problem, work, x, rows, minimum, step, room):
    """(length of the step of the multipliers, that of x, whether a single affine row moves x within the box)."""
    if step.dependent:
        return min(1.0, step.release), 0.0 if step.release < 1.0 else 1.0, False
    if rows == 1 and not minimum.dense and minimum.free_count < x.shape[0] and step.ascent > 0.0:
        affine = work.listed[0] < problem.b.shape[0]
        share = length_within_box(problem, work, x) if affine or work.d[0] > 0.0 else 1.0
        return share, share, affine
    if room == np.inf:
        length, reach = choose_length(problem, work, rows, minimum.free_count, step.ascent)
        return length, reach, False
    return 1.0, 1.0, False


@borrowing
def needs_refining(step, minimum):
    """Whether x is too far from the minimum of the Lagrangian for the rows' values there to be known."""
    return step.drift > DRIFT * step.error and step.drift > EXACT and not minimum.rough


@borrowing
def is_exact(error, last_error, n):
    """Whether the search is over: the error is rounding, or little and does not fall any more."""
    return error <= EXACT * (1.0 + 0.01 * n) or (error <= ENOUGH and error > 0.5 * last_error)


@borrowing
def is_unbounded(step, room):
    """Whether the multipliers grow along the step without end."""
    return step.dependent and step.release == np.inf and room == np.inf


@borrowing
def status_of_failure(count, warm):
    """Where all begins, nothing can fail but numbers that are not finite."""
    return UNCONVERGED if count > 0 or warm else NONFINITE


@borrowing
def begin(work, considered):
    """All coordinates are free, and the rows from ``considered`` on are not evaluated yet."""
    for j in range(work.free.shape[0]):
        work.free[j] = 1.0
    for i in range(considered, work.value.shape[0]):
        work.value[i], work.terms[i] = 0.0, 1.0


@borrowing
def maximise_dual(problem, work, x, u, warm):
    """x and u are the start and the result; returns a status.

    Affine rows and balls alone come first where others need a factor; with a ``warm`` start, all rows at once.
    """
    n, R = x.shape[0], u.shape[0]
    considered = rows_at_first(problem, warm)
    has_gram, keep_factor, gap, bracket = False, False, np.inf, (0.0, np.inf)
    last_error, failures, refined, was_cautious = np.inf, 0, 0, False
    nowhere = line = Line(0.0, 1.0, 0.0, 0.0, np.inf, 0.0, 0)
    minimum = Minimum(True, n, False, 0.0, False, False)
    begin(work, considered)
    for count in range(MAX_STEPS):
        minimum = minimise_over_box(problem, work, x, u, considered, minimum, keep_factor, gap)
        if not minimum.found:
            failures += 1
            if count == 0 or failures > MAX_FAILURES:
                return status_of_failure(count, warm)
            retreat(work, x, u)
            keep_factor = False
            continue
        rows = list_rows(problem, work, u, considered)
        step, room = model_step(problem, work, x, u, rows, minimum, was_cautious)
        was_cautious = step.cautious
        if refined < MAX_REFINED and needs_refining(step, minimum):
            refined += 1
            gap, keep_factor = 0.01 * gap if gap < np.inf else 0.0, False
            continue
        refined = 0
        again, line = search_line(work, u, minimum, line)
        if again:
            keep_factor = False
            continue
        error = max(step.error, step.drift)
        if considered < R and error <= ROUGHLY:
            considered, last_error, line, gap = R, np.inf, nowhere, np.inf
            continue
        if is_exact(error, last_error, n):
            if steepest_free(work, minimum.free_count) > STATIONARY * minimum.noise and gap > 0.0:
                gap, keep_factor = 0.0, False
                continue
            return CONVERGED
        last_error = np.inf if minimum.rough else error
        bracket = narrow_bracket(work, u, bracket)
        if considered == R and not has_gram:
            gram_matrices(problem.C, work.G)
            has_gram = True
        if is_unbounded(step, room):
            return UNCONVERGED
        step_of_x(work, rows, minimum)
        length, reach, along_affine = choose_lengths(problem, work, x, rows, minimum, step, room)
        ascent, keep_factor = take_step(problem, work, x, u, rows, minimum, (length, reach), bracket)
        if along_affine:
            move_within_box(problem, work, x)
        gap, line = 0.1 * ascent, Line(ascent, 1.0, 0.0, ascent, np.inf, 0.0, 0)
    return UNCONVERGED
