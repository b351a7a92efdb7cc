"""For fixed multipliers u, the minimum of the Lagrangian over the box: Newton's method on the free coordinates.

A coordinate at a bound is free if the gradient points inwards. The step goes along the Newton direction of the free
coordinates, is projected onto the box, and shortened to the minimum of its secant where it goes too far (Bertsekas
1982). Where every row is affine, a ball or a quadratic, and the free coordinates stay the same, one step is exact;
where the Hessian is diagonal, one step in all coordinates is.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocopt.kernels._jit import borrowing
from cocopt.kernels.dense.factor import assemble, back_substitute, factorise, forward_substitute
from cocopt.kernels.dense.problem import evaluate
from cocopt.kernels.rounding import rounding
from cocopt.kernels.vectors import clip, dot, norm

__all__ = ["Minimum", "minimise_over_box"]

MAX_EVALUATIONS = 30  # of the rows, for the same multipliers
MAX_SHORTENED = 20  # times that a step is shortened
DOWNHILL = 0.01  # the share of the Newton step's slope that the projected step must have
TOO_FAR = 0.5  # a step is too long if the slope at its end exceeds this share of the slope at its start


class Minimum(NamedTuple):
    """Where the Lagrangian is least, as far as it is not in the workspace."""

    found: Any  # False if the steps were used up, or a number is not finite
    free_count: Any  # free coordinates
    dense: Any  # whether the Hessian is not diagonal
    noise: Any  # rounding error of the gradient
    ready: Any  # whether z holds the gradient on the free coordinates, after forward substitution
    rough: Any  # whether the start was within the gap, so that no step was taken


@borrowing
def gradient_of_lagrangian(problem, work, x, u):
    """gradient = x − y + Σ u_i J_i; returns its rounding error."""
    y, out = problem.y, work.gradient
    x_square, y_square = 0.0, 0.0
    for j in range(x.shape[0]):
        out[j] = x[j] - y[j]
    for j in range(x.shape[0]):
        x_square += x[j] * x[j]
        y_square += y[j] * y[j]
    size = np.sqrt(x_square) + np.sqrt(y_square)
    for i in range(u.shape[0]):
        if u[i] != 0.0:
            row, t = work.J[i], u[i]
            for j in range(x.shape[0]):
                out[j] += t * row[j]
            size += abs(t) * work.steepness[i]
    return rounding(x.shape[0]) * size


@borrowing
def find_free(problem, work, x, noise):
    """Lists the free coordinates; returns how many there are and how many changed. Rounding frees none."""
    count, changes = 0, 0
    for j in range(x.shape[0]):
        slope, at_bound = work.gradient[j], 0.0
        needed = noise if work.free[j] == 0.0 else 0.0
        if x[j] <= problem.lower[j] and not slope < -needed:
            at_bound = 1.0
        if x[j] >= problem.upper[j] and not slope > needed:
            at_bound = 1.0
        f = 1.0 - at_bound
        changes += 1 if f != work.free[j] else 0
        work.free[j] = f
        work.place[count] = j
        count += 1 if f == 1.0 else 0
    return count, changes


@borrowing
def list_inverse(work, count):
    """The inverse of a diagonal Hessian on the free coordinates."""
    for k in range(count):
        work.inverse[k] = work.flat[work.place[k]]


@borrowing
def factorise_hessian(problem, work, u, count):
    """(whether the Hessian is dense, whether it is positive definite), its factor or inverse in the workspace."""
    flat = work.flat
    if assemble(problem, work, u, count):
        return True, factorise(work.U, work.inverse, count)
    definite = True
    for j in range(flat.shape[0]):
        definite = definite and flat[j] > 0.0
        flat[j] = 1.0 / flat[j]
    list_inverse(work, count)
    return False, definite


@borrowing
def newton_step(problem, work, x, count, dense):
    """Moves x by the projected Newton step, which is in ``step``; returns minus the slope along it."""
    z, place = work.z, work.place
    if dense:
        for k in range(count):
            z[k] = work.gradient[place[k]]
        forward_substitute(work.U, work.inverse, count, z)
        back_substitute(work.U, work.inverse, count, z)
        wanted = 0.0
        for k in range(count):
            wanted += z[k] * work.gradient[place[k]]
        for j in range(x.shape[0]):
            work.before[j], work.step[j] = x[j], 0.0
        length, slope = 1.0, 0.0
        for _ in range(MAX_SHORTENED):  # the projected step goes downhill if it is short enough
            for k in range(count):
                j = place[k]
                x[j] = clip(work.before[j] - length * z[k], problem.lower[j], problem.upper[j])
                work.step[j] = x[j] - work.before[j]
            slope = -dot(work.gradient, work.step)
            if slope >= DOWNHILL * length * wanted:
                break
            length *= 0.25
        return slope
    for j in range(x.shape[0]):  # exact in all coordinates at once
        work.before[j] = x[j]
        x[j] = clip(x[j] - work.gradient[j] * work.flat[j], problem.lower[j], problem.upper[j])
        work.step[j] = x[j] - work.before[j]
    return -dot(work.gradient, work.step)


@borrowing
def remaining_gap(work, count):
    """⟨gradient, H⁻¹ gradient⟩ by the factor at hand: twice what the Lagrangian exceeds its minimum by."""
    z, total = work.z, 0.0
    for k in range(count):
        z[k] = work.gradient[work.place[k]]
    forward_substitute(work.U, work.inverse, count, z)
    for k in range(count):
        total += z[k] * z[k] * work.inverse[k]
    return total


@borrowing
def minimise_over_box(problem, work, x, u, considered, last, keep_factor, gap):
    """Moves x from where it is to the minimum; with cones, until twice the gap of the Lagrangian is at most ``gap``.

    ``last`` is the previous `Minimum`, whose factor is used for the first step if ``keep_factor``; then no step is
    needed within the gap. Above the guide, since every way out of the loop returns what the loop has computed.
    """
    dense, count, slope, noise, began = last.dense, last.free_count, 0.0, 0.0, False
    for _ in range(MAX_EVALUATIONS):
        if not evaluate(problem, work, x, considered):
            break
        noise = gradient_of_lagrangian(problem, work, x, u)
        if began:
            after = dot(work.gradient, work.step)
            if after > TOO_FAR * slope and after > noise * norm(work.step):
                shrink = slope / (slope + after)
                slope *= shrink
                for j in range(x.shape[0]):
                    work.step[j] *= shrink
                    x[j] = work.before[j] + work.step[j]
                continue
        count, changes = find_free(problem, work, x, noise)
        if began and not dense:
            list_inverse(work, count)
            return Minimum(True, count, False, noise, False, False)
        if began and changes == 0 and problem.h.shape[0] == 0:
            return Minimum(True, count, True, noise, False, False)
        kept = keep_factor and dense and not began
        if changes == 0 and (kept or began) and remaining_gap(work, count) <= gap:
            return Minimum(True, count, True, noise, True, not began)
        if not (kept and changes == 0):
            dense, definite = factorise_hessian(problem, work, u, count)
            if not definite:
                break
        slope = newton_step(problem, work, x, count, dense)
        began = True
        if not slope > noise * norm(work.step):
            for j in range(x.shape[0]):
                x[j] = work.before[j]
            return Minimum(True, count, dense, noise, False, False)
    return Minimum(False, count, dense, noise, False, False)
